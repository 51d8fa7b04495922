//! Where things lie in the memory of a port, computed from `spec` in one place for both halves.

use beeline_mmio::{Region, Word};
use beeline_spec::formats::{
    PORT_ANSWERS, PORT_REGISTER_LINES, port_device_memory as device, port_host_memory as host,
    port_register_answer,
};
use beeline_spec::{LINE_BYTES, regs};

/// Lines of the register channel.
pub(crate) const REGISTER_LINES: u32 = PORT_REGISTER_LINES as u32;
/// Register reads that may be under way.
pub(crate) const ANSWERS: u16 = PORT_ANSWERS as u16;
/// Bytes of the memory that a host makes when it opens a port.
pub(crate) const HOST_BYTES: usize = host::BYTES;
/// Low bits of a bus address that are an offset in a region; the bits above name the region.
pub(crate) const REGION_SHIFT: u32 = 32;
/// Regions are numbered from 1, so that no bus address is 0: that means "none" to a device.
pub(crate) const FIRST_REGION: u32 = 1;

const _: () = assert!(device::REGISTER_CHANNEL_OFFSET + PORT_REGISTER_LINES * LINE_BYTES <= device::BYTES);
const _: () = assert!(host::ANSWERS_OFFSET + PORT_ANSWERS * port_register_answer::BYTES <= host::BYTES);
const _: () = assert!(PORT_ANSWERS.is_power_of_two() && PORT_REGISTER_LINES.is_power_of_two());

/// Bytes of the memory that a NIC process makes for a port of `queues` queues.
pub(crate) const fn device_bytes(queues: u32) -> usize {
    let bytes = device::BYTES + queues as usize * regs::DOORBELL_STRIDE as usize;
    bytes.next_multiple_of(4096)
}

/// Where in that memory the doorbell at a register offset lies; `None` for what is no doorbell of these queues.
pub(crate) fn doorbell_place(offset_bytes: u32, queues: u32) -> Option<usize> {
    let inside = offset_bytes.checked_sub(regs::DOORBELL)?;
    let is_word = inside.is_multiple_of(8) && inside / regs::DOORBELL_STRIDE < queues;
    is_word.then_some(device::BYTES + inside as usize)
}

/// The bus address of a region's first byte.
pub(crate) const fn region_address(index: u32) -> u64 {
    (index as u64) << REGION_SHIFT
}

/// The stamp that says an answer belongs to the read with this tag; never zero.
pub(crate) const fn stamp(tag: u16) -> u64 {
    1 << 16 | tag as u64
}

/// The entry that answers a read.
#[derive(Debug)]
pub(crate) struct AnswerWords {
    /// The register's value.
    pub(crate) value: Word,
    /// Says which read it answers; written last.
    pub(crate) stamp: Word,
}

/// The answer entries in a host's memory.
pub(crate) fn answers(region: &Region) -> Box<[AnswerWords]> {
    (0..PORT_ANSWERS)
        .map(|index| {
            let at = host::ANSWERS_OFFSET + index * port_register_answer::BYTES;
            AnswerWords {
                value: region.word(at + port_register_answer::VALUE_OFFSET),
                stamp: region.word(at + port_register_answer::STAMP_OFFSET),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_doorbells_of_the_port_have_a_place() {
        let second = regs::DOORBELL + regs::DOORBELL_STRIDE + regs::doorbell::RX_FREED;
        assert_eq!(doorbell_place(regs::DOORBELL, 2), Some(device::BYTES));
        assert_eq!(doorbell_place(second, 2), Some(device::BYTES + 64 + 8));
        for wrong in
            [0, regs::DOORBELL - 8, regs::DOORBELL + 4, regs::DOORBELL + 2 * regs::DOORBELL_STRIDE, u32::MAX]
        {
            assert_eq!(doorbell_place(wrong, 2), None, "{wrong:#x}");
        }
        assert!(doorbell_place(second, 2).unwrap() + 8 <= device_bytes(2));
        assert!(stamp(0) != 0 && stamp(u16::MAX) != stamp(0));
    }
}
