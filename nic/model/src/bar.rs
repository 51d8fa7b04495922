//! What an offset in the BAR names. Pure decoding: no register's value is here.
//!
//! Comes from: the link's reads and writes ([`crate::Nic`]). Goes to: the windows of the engines, the registers
//! ([`crate::registers`]) or nowhere, and then it is counted.

use beeline_contract_device::QueueId;
use beeline_spec::{LINE_BYTES, WORD_BYTES, regs};

use crate::NicConfig;

/// What lies at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A register of the device, by its offset.
    Device(u32),
    /// A word of the capability list, by its index.
    Capability(usize),
    /// A counter, by its offset in the counter block.
    Counter(u32),
    /// A register of a queue that there is, by its offset in the queue's block.
    Queue(QueueId, u32),
    /// A doorbell of a queue that there is, by its offset in the doorbell block.
    Doorbell(QueueId, u32),
    /// No aligned register, or none of a queue that there is.
    Nothing,
}

/// Offsets of one device, precomputed.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    aperture: u64,
    stride_log2: u32,
    window_bytes: u64,
    queues: u32,
}

/// Index and offset in an array of blocks.
fn in_array(offset: u32, base: u32, count: u32, stride: u32) -> Option<(u32, u32)> {
    let distance = offset.checked_sub(base)?;
    let index = distance / stride;
    (index < count).then_some((index, distance % stride))
}

impl Decoder {
    /// For a device with these sizes.
    pub(crate) fn new(config: &NicConfig) -> Self {
        Decoder {
            aperture: config.aperture_bytes(),
            stride_log2: config.window_stride_bytes().ilog2(),
            window_bytes: u64::from(config.window_lines) * LINE_BYTES as u64,
            queues: config.queues,
        }
    }

    /// Whether an offset lies at or behind the first window.
    #[inline]
    pub(crate) fn is_in_aperture(&self, offset: u64) -> bool {
        offset >= self.aperture
    }

    /// The queue and the offset in its window of an access of `bytes`; `None` unless it lies wholly inside one.
    #[inline]
    pub(crate) fn window(&self, offset: u64, bytes: usize) -> Option<(QueueId, u64)> {
        let distance = offset.checked_sub(self.aperture)?;
        let queue = distance >> self.stride_log2;
        let within = distance & ((1 << self.stride_log2) - 1);
        let fits = queue < u64::from(self.queues) && within + bytes as u64 <= self.window_bytes;
        fits.then_some((QueueId(queue as u16), within))
    }

    /// The queue and the line in its window of a whole line at `offset`; `None` when there is none.
    #[inline]
    pub(crate) fn whole_line(&self, offset: u64) -> Option<(QueueId, u32)> {
        // An offset before the aperture wraps to a queue that there cannot be.
        let distance = offset.wrapping_sub(self.aperture);
        let queue = distance >> self.stride_log2;
        let within = distance & ((1 << self.stride_log2) - 1);
        let is_line = queue < u64::from(self.queues)
            && within < self.window_bytes
            && within.is_multiple_of(LINE_BYTES as u64);
        is_line.then_some((QueueId(queue as u16), (within / LINE_BYTES as u64) as u32))
    }

    /// What lies at an offset before the windows.
    pub(crate) fn register(&self, offset: u64) -> Target {
        let Ok(offset) = u32::try_from(offset) else { return Target::Nothing };
        if !offset.is_multiple_of(WORD_BYTES as u32) {
            return Target::Nothing;
        }
        if let Some((queue, register)) = in_array(offset, regs::DOORBELL, self.queues, regs::DOORBELL_STRIDE)
        {
            return Target::Doorbell(QueueId(queue as u16), register);
        }
        if let Some((queue, register)) = in_array(offset, regs::QUEUE, self.queues, regs::QUEUE_STRIDE) {
            return Target::Queue(QueueId(queue as u16), register);
        }
        match offset {
            regs::COUNTERS..regs::QUEUE => Target::Counter(offset - regs::COUNTERS),
            regs::CAPABILITIES..regs::COUNTERS => {
                Target::Capability((offset - regs::CAPABILITIES) as usize / WORD_BYTES)
            }
            0..regs::CAPABILITIES => Target::Device(offset),
            _ => Target::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoder() -> (Decoder, u64) {
        let config = NicConfig { queues: 3, window_lines: 4, span_lines: 2, ..NicConfig::default() };
        (Decoder::new(&config), config.aperture_bytes())
    }

    #[test]
    fn a_window_access_lies_inside_one_window() {
        let (decoder, aperture) = decoder();
        assert_eq!(decoder.window(aperture, 256), Some((QueueId(0), 0)));
        assert_eq!(decoder.window(aperture + 4096 * 2 + 255, 1), Some((QueueId(2), 255)));
        for (offset, bytes) in [(0, 257), (255, 2), (256, 1), (4096 * 3, 1), (u64::MAX - aperture, 1)] {
            assert_eq!(decoder.window(aperture + offset, bytes), None, "{bytes} at {offset}");
        }
        assert_eq!(decoder.window(aperture - 1, 1), None);
        assert_eq!(decoder.whole_line(aperture + 4096 + 192), Some((QueueId(1), 3)));
        for offset in [aperture - 64, 0, aperture + 1, aperture + 256, aperture + 3 * 4096] {
            assert_eq!(decoder.whole_line(offset), None, "{offset:#x}");
        }
    }

    #[test]
    fn every_register_is_where_the_map_says() {
        let (decoder, aperture) = decoder();
        let queue = |index: u32| u64::from(regs::QUEUE + index * regs::QUEUE_STRIDE);
        let bell = |index: u32| u64::from(regs::DOORBELL + index * regs::DOORBELL_STRIDE);
        for (offset, expected) in [
            (u64::from(regs::CONTROL), Target::Device(regs::CONTROL)),
            (u64::from(regs::CAPABILITIES) + 8, Target::Capability(1)),
            (u64::from(regs::COUNTERS) + 0x38, Target::Counter(0x38)),
            (queue(2) + u64::from(regs::queue::BLANK), Target::Queue(QueueId(2), regs::queue::BLANK)),
            (
                bell(1) + u64::from(regs::doorbell::RX_FREED),
                Target::Doorbell(QueueId(1), regs::doorbell::RX_FREED),
            ),
            (queue(3), Target::Nothing),
            (bell(3), Target::Nothing),
            (4, Target::Nothing),
            (aperture - 8, Target::Nothing),
            (1 << 40, Target::Nothing),
        ] {
            assert_eq!(decoder.register(offset), expected, "{offset:#x}");
        }
    }
}
