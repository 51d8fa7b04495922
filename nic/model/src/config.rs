//! What a NIC is built with, and which sizes make sense.

use std::fmt;

use beeline_spec::caps::Capabilities;
use beeline_spec::formats::{self, feature};
use beeline_spec::header::lines_of;
use beeline_spec::{Interface, LINE_BYTES, regs};

/// Fewest bytes from one window to the next, so that each can be mapped by itself.
const PAGE_BYTES: u64 = 4096;
/// Most lines of a window: what a message's length field can name.
const MAX_WINDOW_LINES: u32 = 1 << 18;
/// Most lines of the pool: 1 GiB.
const MAX_POOL_LINES: u32 = 1 << 24;
/// Most lines of all contexts together: 1 GiB.
const MAX_CONTEXT_LINES: u64 = 1 << 24;

/// Fewest lines of a message that must be there before its frame may begin: two beats, each of which reaches into the
/// line behind its own, and the line that the RTL looks ahead for. Less would save little, and every gap would be an
/// underrun.
pub(crate) const CUT_THROUGH_LEAST_LINES: u32 = 4;

/// The sizes of a NIC.
///
/// A queue that counts on credits alone (queue control `backpressure` 0) reserves a context and `window_lines` of the
/// pool while it is enabled, and fails to start when there are not as many; queues with back-pressure share the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicConfig {
    /// Queues of the port, 1 to 1024.
    pub queues: u32,
    /// Lines of each queue's transmit window, a power of two.
    pub window_lines: u32,
    /// Reorder span in lines, a power of two, at most `window_lines`.
    pub span_lines: u32,
    /// Reorder contexts shared by the queues.
    pub contexts: u32,
    /// Lines of the buffer pool shared by the queues.
    pub pool_lines: u32,
    /// Whether the windows are blank windows (the link sees only memory) or observed.
    pub blank: bool,
    /// Longest frame that is transmitted or received, in bytes, FCS excluded.
    pub max_frame_bytes: u32,
    /// What becomes of a frame from the wire while the host lends no room for it: refused, so that the wire keeps it
    /// (`true`), or dropped and counted.
    pub rx_lossless: bool,
    /// Station address.
    pub mac: [u8; 6],
}

impl Default for NicConfig {
    /// 16 queues with windows of 64 KiB, enough pool and contexts for all of them at once.
    fn default() -> Self {
        NicConfig {
            queues: 16,
            window_lines: 1024,
            span_lines: 64,
            contexts: 16,
            pool_lines: 16 * 1024,
            blank: false,
            max_frame_bytes: formats::MAX_FRAME_BYTES as u32,
            rx_lossless: true,
            mac: [0x02, 0xbe, 0xe1, 0x1e, 0, 0],
        }
    }
}

impl NicConfig {
    /// Bytes of the BAR from one queue's window to the next: the window, or a page where the window is smaller.
    pub const fn window_stride_bytes(&self) -> u64 {
        let bytes = self.window_lines as u64 * LINE_BYTES as u64;
        if bytes < PAGE_BYTES { PAGE_BYTES } else { bytes }
    }

    /// Offset in the BAR of the first window: behind the registers, at a multiple of a window's bytes.
    pub const fn aperture_bytes(&self) -> u64 {
        let registers = regs::DOORBELL + regs::DOORBELL_COUNT * regs::DOORBELL_STRIDE;
        (registers as u64).next_power_of_two().next_multiple_of(self.window_stride_bytes())
    }

    /// Bytes of the BAR, a power of two.
    pub const fn bar_bytes(&self) -> u64 {
        (self.aperture_bytes() + self.queues as u64 * self.window_stride_bytes()).next_power_of_two()
    }

    /// The station address as its register has it.
    pub(crate) fn mac_word(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.mac);
        u64::from_le_bytes(bytes)
    }

    /// What the capability list says of a NIC with these sizes.
    pub fn capabilities(&self) -> Capabilities {
        let interfaces = Interface::ALL.into_iter().fold(0, |bits, interface| bits | 1 << interface.code());
        Capabilities {
            reorder_span_lines: Some(self.span_lines),
            aperture: Some((self.aperture_bytes(), self.window_stride_bytes())),
            queues: Some(self.queues),
            blank: Some(self.blank),
            interfaces: Some(interfaces),
            pool_lines: Some(self.pool_lines),
            contexts: Some(self.contexts),
            max_frame_bytes: Some(self.max_frame_bytes),
            features: Some(
                1 << feature::CHECKSUMS | 1 << feature::CUT_THROUGH | 1 << feature::SHARED_NOTIFICATIONS,
            ),
        }
    }

    /// Whether a NIC can be made with these sizes.
    ///
    /// # Errors
    /// The first size that makes no sense, with what it may be.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let within = |what, found: u32, least: u32, most: u32| {
            if (least..=most).contains(&found) {
                Ok(())
            } else {
                Err(ConfigError::OutOfRange { what, found, least, most })
            }
        };
        within("queues", self.queues, 1, formats::MAX_QUEUES as u32)?;
        within("window_lines", self.window_lines, 2, MAX_WINDOW_LINES)?;
        within("span_lines", self.span_lines, 1, self.window_lines)?;
        for (what, found) in [("window_lines", self.window_lines), ("span_lines", self.span_lines)] {
            if !found.is_power_of_two() {
                return Err(ConfigError::NotPowerOfTwo { what, found });
            }
        }
        let (least, most) = (formats::MIN_FRAME_BYTES as u32, formats::MAX_FRAME_BYTES as u32);
        within("max_frame_bytes", self.max_frame_bytes, least, most)?;
        let most = (MAX_CONTEXT_LINES / u64::from(self.span_lines)).min(u32::MAX.into()) as u32;
        within("contexts", self.contexts, 1, most)?;
        let longest_lines = lines_of(self.max_frame_bytes).min(self.window_lines);
        within("pool_lines", self.pool_lines, longest_lines, MAX_POOL_LINES)?;
        if self.mac[0] & 1 == 1 {
            return Err(ConfigError::GroupAddress(self.mac));
        }
        Ok(())
    }
}

/// Why no NIC can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// A size is not one that this NIC can have.
    OutOfRange {
        /// Field of [`NicConfig`].
        what: &'static str,
        found: u32,
        /// Least value it may have.
        least: u32,
        /// Greatest value it may have.
        most: u32,
    },
    /// A size that addresses are masked with is not a power of two.
    NotPowerOfTwo {
        /// Field of [`NicConfig`].
        what: &'static str,
        found: u32,
    },
    /// The station address is a group address.
    GroupAddress([u8; 6]),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::OutOfRange { what, found, least, most } => {
                write!(out, "a NIC with {what} = {found} cannot be made: choose {least} to {most}")
            }
            ConfigError::NotPowerOfTwo { what, found } => {
                write!(out, "a NIC with {what} = {found} cannot be made: choose a power of two")
            }
            ConfigError::GroupAddress([a, b, c, d, e, f]) => write!(
                out,
                "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x} cannot be a station address: it is a group address; \
                 clear the lowest bit of the first byte"
            ),
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_has_room_for_every_queue_on_credits() {
        let config = NicConfig::default();
        assert_eq!(config.validate(), Ok(()));
        assert!(config.contexts >= config.queues);
        assert!(config.pool_lines >= config.queues * config.window_lines);
    }

    #[test]
    fn an_error_is_a_sentence_with_the_numbers() {
        let error = NicConfig { queues: 2000, ..NicConfig::default() }.validate().unwrap_err();
        assert_eq!(error.to_string(), "a NIC with queues = 2000 cannot be made: choose 1 to 1024");
        let error = NicConfig { window_lines: 1000, ..NicConfig::default() }.validate().unwrap_err();
        assert_eq!(error.to_string(), "a NIC with window_lines = 1000 cannot be made: choose a power of two");
    }

    #[test]
    fn sizes_that_make_no_sense_are_refused() {
        let good = NicConfig::default();
        for bad in [
            NicConfig { queues: 0, ..good.clone() },
            NicConfig { window_lines: 1, ..good.clone() },
            NicConfig { window_lines: 1 << 19, ..good.clone() },
            NicConfig { span_lines: 2048, ..good.clone() },
            NicConfig { span_lines: 3, ..good.clone() },
            NicConfig { contexts: 0, ..good.clone() },
            NicConfig { contexts: 1 << 20, ..good.clone() },
            NicConfig { pool_lines: 100, ..good.clone() },
            NicConfig { max_frame_bytes: 13, ..good.clone() },
            NicConfig { max_frame_bytes: 9217, ..good.clone() },
            NicConfig { mac: [1, 0, 0, 0, 0, 0], ..good.clone() },
        ] {
            assert!(bad.validate().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn windows_do_not_meet_registers_or_each_other() {
        for window_lines in [2, 64, 1024, 1 << 18] {
            let config = NicConfig { window_lines, span_lines: 2, ..NicConfig::default() };
            let (aperture, stride) = config.capabilities().aperture.unwrap();
            let registers = u64::from(regs::DOORBELL + regs::DOORBELL_COUNT * regs::DOORBELL_STRIDE);
            assert!(aperture >= registers && aperture % stride == 0 && stride >= PAGE_BYTES);
            assert!(stride >= u64::from(window_lines) * 64);
            assert!(config.bar_bytes() >= aperture + 16 * stride && config.bar_bytes().is_power_of_two());
        }
    }
}
