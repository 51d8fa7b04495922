//! Bring-up: from a link to a device that is known and on.
//!
//! The mark and the version are read first, and another major version is refused; then the capability list (unknown
//! entries are skipped, known ones checked against what any Beeline NIC can mean); then reset, station address,
//! multiplexer, enable, and a read-back that shows that all of it has arrived. Each state has one operation under way.
//!
//! From: [`Port::poll`](crate::Port::poll). To: a port whose numbers the rest of the driver computes with.

use alloc::vec::Vec;

use beeline_contract_link::Link;
use beeline_spec::caps::Capabilities;
use beeline_spec::formats::{MAX_FRAME_BYTES, MAX_QUEUES, MIN_FRAME_BYTES};
use beeline_spec::regs::{self, field};

use crate::error::PortError;
use crate::port::Port;
use crate::port::bring_up_state::BringUp;
use crate::port::script::{Step, Ticket};
use crate::port::steps::{mux_steps, until_active, write};

/// Register map this driver speaks.
const SUPPORTED_MAJOR: u16 = 1;
/// What register `magic` reads as: the bytes `BEELINE1`.
const MAGIC: u64 = u64::from_le_bytes(*b"BEELINE1");
/// The capability list has its own 256 words in the register map.
const CAPS_MAX_BYTES: u32 = 256 * 8;

impl<L: Link> Port<L> {
    /// Takes the outcome of the operation under way, if it is there, and starts the next.
    pub(crate) fn advance_bring_up(&mut self) -> Result<(), PortError> {
        let ticket = match self.bring_up {
            BringUp::New => {
                self.bring_up = BringUp::Magic(self.start_read(regs::MAGIC, "answer a read of its mark"));
                return Ok(());
            }
            BringUp::Magic(ticket)
            | BringUp::Version(ticket)
            | BringUp::CapsPlace(ticket)
            | BringUp::CapsWord { ticket, .. }
            | BringUp::Enable(ticket)
            | BringUp::Mac(ticket) => ticket,
            BringUp::Ready | BringUp::Failed(_) => return Ok(()),
        };
        let Some(outcome) = self.script.take(ticket) else { return Ok(()) };
        let value = outcome?;
        self.bring_up = match self.bring_up {
            BringUp::Magic(_) => {
                if value != MAGIC {
                    return Err(PortError::NotBeeline { magic: value });
                }
                BringUp::Version(self.start_read(regs::VERSION, "answer a read of its version"))
            }
            BringUp::Version(_) => {
                check_version(value)?;
                BringUp::CapsPlace(self.start_read(regs::CAPS, "say where its capabilities are"))
            }
            BringUp::CapsPlace(_) => {
                let (offset, bytes) = check_caps_place(value)?;
                self.next_caps_word(offset, offset + bytes)
            }
            BringUp::CapsWord { next, end, .. } => {
                self.caps_words.push(value);
                if next < end {
                    self.next_caps_word(next, end)
                } else {
                    self.caps = check_caps(Capabilities::parse(&self.caps_words).map_err(PortError::Caps)?)?;
                    BringUp::Enable(self.start_device())
                }
            }
            BringUp::Enable(_) => BringUp::Mac(self.start_read(regs::MAC, "tell its station address")),
            BringUp::Mac(_) => {
                self.mac = value & field::mac::ADDRESS_MASK;
                BringUp::Ready
            }
            // Not one of them waits for an outcome.
            BringUp::New | BringUp::Ready | BringUp::Failed(_) => return Ok(()),
        };
        Ok(())
    }

    /// Starts the read of a register.
    pub(crate) fn start_read(&mut self, offset: u32, what: &'static str) -> Ticket {
        self.script.push([Step::Read { offset, what }])
    }

    fn next_caps_word(&mut self, offset: u32, end: u32) -> BringUp {
        let ticket = self.start_read(offset, "answer a read of its capability list");
        BringUp::CapsWord { ticket, next: offset + 8, end }
    }

    /// Reset, address, multiplexer, enable, and a read-back that flushes all of it.
    fn start_device(&mut self) -> Ticket {
        let mut steps = Vec::new();
        if self.config.reset {
            steps.push(write(regs::CONTROL, field::control::RESET_MASK << field::control::RESET_LSB));
            steps.push(until_active(false));
        }
        if let Some(mac) = self.config.mac {
            let mut bytes = [0; 8];
            bytes[..6].copy_from_slice(&mac);
            steps.push(write(regs::MAC, u64::from_le_bytes(bytes)));
        }
        steps.extend(mux_steps(self.config.mux));
        steps.push(until_active(true));
        self.script.push(steps)
    }
}

fn check_version(value: u64) -> Result<(), PortError> {
    use field::version as f;
    let found_major = (value >> f::MAJOR_LSB & f::MAJOR_MASK) as u16;
    let found_minor = (value >> f::MINOR_LSB & f::MINOR_MASK) as u16;
    if found_major == SUPPORTED_MAJOR {
        return Ok(());
    }
    Err(PortError::Version { found_major, found_minor, supported_major: SUPPORTED_MAJOR })
}

fn check_caps_place(value: u64) -> Result<(u32, u32), PortError> {
    use field::caps_offset as f;
    let offset = (value >> f::OFFSET_LSB & f::OFFSET_MASK) as u32;
    let bytes = (value >> f::BYTES_LSB & f::BYTES_MASK) as u32;
    let first = regs::CAPABILITIES;
    let inside = offset >= first && u64::from(offset) + u64::from(bytes) <= u64::from(first + CAPS_MAX_BYTES);
    if inside && offset.is_multiple_of(8) && bytes.is_multiple_of(8) && bytes > 0 {
        return Ok((offset, bytes));
    }
    Err(PortError::CapsPlace { offset, bytes })
}

/// What the rest of the driver relies on, checked once: every number it computes with is in a sane range.
fn check_caps(caps: Capabilities) -> Result<Capabilities, PortError> {
    let within = |name, value: Option<u32>, low: usize, high: usize| match value {
        Some(v) if (low..=high).contains(&(v as usize)) => Ok(()),
        other => Err(PortError::Capability { name, value: other.map(u64::from) }),
    };
    within("queues", caps.queues, 1, MAX_QUEUES)?;
    within("max_frame", caps.max_frame_bytes, MIN_FRAME_BYTES, MAX_FRAME_BYTES)?;
    if caps.interfaces.is_none() {
        return Err(PortError::Capability { name: "interfaces", value: None });
    }
    if caps.blank.is_none() {
        return Err(PortError::Capability { name: "window_kind", value: None });
    }
    Ok(caps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_magic_is_the_one_of_the_register_map() {
        assert_eq!(MAGIC, 0x3145_4e49_4c45_4542);
    }

    #[test]
    fn a_capability_list_outside_its_place_is_refused() {
        let place = |offset: u64, bytes: u64| check_caps_place(offset | bytes << 32);
        assert_eq!(place(0x1000, 64), Ok((0x1000, 64)));
        assert_eq!(place(0x1000, 2048), Ok((0x1000, 2048)));
        for (offset, bytes) in
            [(0x1000, 0), (0x1000, 2056), (0xff8, 64), (0x1004, 64), (0xffff_fff8, 0xffff_fff8)]
        {
            assert!(matches!(place(offset, bytes), Err(PortError::CapsPlace { .. })), "{offset:#x} {bytes}");
        }
    }

    #[test]
    fn capabilities_that_no_device_has_are_refused() {
        let good = Capabilities {
            queues: Some(4),
            max_frame_bytes: Some(9216),
            interfaces: Some(2),
            blank: Some(false),
            ..Capabilities::default()
        };
        assert!(check_caps(good).is_ok());
        let bad = [
            Capabilities { queues: Some(0), ..good },
            Capabilities { queues: Some(u32::MAX), ..good },
            Capabilities { max_frame_bytes: Some(1 << 20), ..good },
            Capabilities { interfaces: None, ..good },
            Capabilities { blank: None, ..good },
        ];
        for caps in bad {
            assert!(matches!(check_caps(caps), Err(PortError::Capability { .. })), "{caps:?}");
        }
    }
}
