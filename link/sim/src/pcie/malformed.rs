//! Packets that break the rules of a link: an error in the model that made them, found where they enter.

use thiserror::Error;

use super::{Kind, LinkSettings, PAGE_BYTES, Tlp};

/// A packet that this link does not carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// It has more payload than the link permits.
    #[error(
        "{kind:?} at {address:#x}: {payload_bytes} bytes of payload, at most {most_bytes}; cut it with `requests`"
    )]
    Payload {
        kind: Kind,
        address: u64,
        /// Sum of the double words, as bytes.
        payload_bytes: u32,
        /// The maximum payload.
        most_bytes: u32,
    },
    /// It asks for more than the link permits.
    #[error(
        "a read at {address:#x} asks for {length_bytes} bytes, at most {most_bytes}; cut it with `requests`"
    )]
    Read {
        address: u64,
        /// Sum of the double words, as bytes.
        length_bytes: u32,
        /// The maximum read request.
        most_bytes: u32,
    },
    /// It crosses a multiple of 4 KiB.
    #[error(
        "{kind:?} at {address:#x}: {length_bytes} bytes cross a boundary of 4 KiB; cut it with `requests`"
    )]
    Page { kind: Kind, address: u64, length_bytes: u32 },
}

/// Whether a link of these settings carries the packet.
#[inline]
pub(super) fn check(tlp: &Tlp, settings: &LinkSettings) -> Result<(), Malformed> {
    let Tlp { kind, address, length_bytes, .. } = *tlp;
    let payload_bytes = tlp.payload_bytes();
    if payload_bytes > settings.max_payload_bytes {
        let most_bytes = settings.max_payload_bytes;
        return Err(Malformed::Payload { kind, address, payload_bytes, most_bytes });
    }
    let most_bytes = settings.max_read_request_bytes;
    if kind == Kind::MemoryRead && tlp.length_dw() * 4 > most_bytes {
        return Err(Malformed::Read { address, length_bytes: tlp.length_dw() * 4, most_bytes });
    }
    if address % PAGE_BYTES + u64::from(length_bytes) > PAGE_BYTES {
        return Err(Malformed::Page { kind, address, length_bytes });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcie::{Generation, Lanes};

    fn refused(kind: Kind, address: u64, length_bytes: u32) -> Option<String> {
        let settings = LinkSettings::new(Generation::Gen3, Lanes::new(8).unwrap());
        check(&Tlp::new(kind, address, length_bytes), &settings).err().map(|error| error.to_string())
    }

    #[test]
    fn what_breaks_a_rule_is_named() {
        assert_eq!(refused(Kind::MemoryWrite, 0, 256), None);
        assert_eq!(refused(Kind::MemoryRead, 0, 512), None);
        let text = refused(Kind::MemoryWrite, 1, 256).unwrap();
        assert!(text.contains("MemoryWrite at 0x1: 260 bytes of payload, at most 256"), "{text}");
        let text = refused(Kind::MemoryRead, 0, 513).unwrap();
        assert!(text.contains("asks for 516 bytes, at most 512"), "{text}");
        let text = refused(Kind::MemoryRead, 4095, 2).unwrap();
        assert!(text.contains("2 bytes cross a boundary of 4 KiB"), "{text}");
        assert_eq!(refused(Kind::MemoryRead, 4095, 1), None);
    }
}
