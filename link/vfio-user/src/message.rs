//! The messages of vfio-user (protocol 0.0), as bytes: pure, bounded, total. Little-endian; a request is a header and what its
//! command has, an answer the same with the reply bit.

use std::os::fd::OwnedFd;

/// Bytes of a header: number, command, length of the whole message, flags, errno.
pub(crate) const HEADER_BYTES: usize = 16;
/// Longest message that is taken: an access of a region has at most so much data, and a version's text is far shorter.
pub(crate) const MAX_MESSAGE_BYTES: usize = HEADER_BYTES + 16 + MAX_ACCESS_BYTES;
/// Most bytes of one access of a region, as the version's text says.
pub(crate) const MAX_ACCESS_BYTES: usize = 4096;
/// Most descriptors that are taken with one message; the version's text asks for fewer.
pub(crate) const MAX_FDS: usize = 64;

/// Bits of a header's flags.
const KIND_MASK: u32 = 0xf;
const REPLY: u32 = 1;
const NO_REPLY: u32 = 1 << 4;
const ERROR: u32 = 1 << 5;

/// Numbers of commands.
pub(crate) mod command {
    pub(crate) const VERSION: u16 = 1;
    pub(crate) const DMA_MAP: u16 = 2;
    pub(crate) const DMA_UNMAP: u16 = 3;
    pub(crate) const DEVICE_INFO: u16 = 4;
    pub(crate) const REGION_INFO: u16 = 5;
    pub(crate) const IRQ_INFO: u16 = 7;
    pub(crate) const SET_IRQS: u16 = 8;
    pub(crate) const REGION_READ: u16 = 9;
    pub(crate) const REGION_WRITE: u16 = 10;
    pub(crate) const DEVICE_RESET: u16 = 13;
}

/// A header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) number: u16,
    pub(crate) command: u16,
    /// Bytes of the whole message.
    pub(crate) bytes: u32,
    pub(crate) flags: u32,
    pub(crate) errno: u32,
}

/// Why a message is not one of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Its length is none that a message can have.
    #[error("a message of {0} bytes")]
    Length(u32),
    /// It is not of the kind that is expected: a reply where a command belongs, or the other way.
    #[error("flags {0:#x} where others belong")]
    Kind(u32),
    /// It is shorter than its command needs.
    #[error("a message of command {command} with {found} bytes behind its header")]
    Short { command: u16, found: usize },
    /// The version's text is none.
    #[error("a version without a text")]
    Text,
    /// There are more descriptors than there may be.
    #[error("more than {MAX_FDS} descriptors")]
    Descriptors,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Header {
    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES]) -> Self {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Header {
            number: u16::from_le_bytes([bytes[0], bytes[1]]),
            command: u16::from_le_bytes([bytes[2], bytes[3]]),
            bytes: word(4),
            flags: word(8),
            errno: word(12),
        }
    }

    fn encode(self, out: &mut Vec<u8>) {
        out.extend(self.number.to_le_bytes());
        out.extend(self.command.to_le_bytes());
        for word in [self.bytes, self.flags, self.errno] {
            out.extend(word.to_le_bytes());
        }
    }

    /// Bytes behind the header.
    ///
    /// # Errors
    /// No message has this length.
    pub(crate) fn body_bytes(&self) -> Result<usize, Malformed> {
        let bytes = self.bytes as usize;
        let is_sound = (HEADER_BYTES..=MAX_MESSAGE_BYTES).contains(&bytes);
        if is_sound { Ok(bytes - HEADER_BYTES) } else { Err(Malformed::Length(self.bytes)) }
    }

    pub(crate) fn is_reply(&self) -> bool {
        self.flags & KIND_MASK == REPLY
    }

    pub(crate) fn is_command(&self) -> bool {
        self.flags & KIND_MASK == 0
    }

    pub(crate) fn wants_reply(&self) -> bool {
        self.flags & NO_REPLY == 0
    }

    pub(crate) fn is_error(&self) -> bool {
        self.flags & ERROR != 0
    }
}

/// What a client asks.
#[derive(Debug)]
pub(crate) enum Request {
    Version {
        major: u16,
    },
    DmaMap {
        flags: u32,
        offset_bytes: u64,
        address: u64,
        bytes: u64,
        fds: Vec<OwnedFd>,
    },
    DmaUnmap {
        flags: u32,
        address: u64,
        bytes: u64,
    },
    DeviceInfo,
    RegionInfo {
        index: u32,
    },
    IrqInfo {
        index: u32,
    },
    SetIrqs {
        flags: u32,
        index: u32,
        first: u32,
        count: u32,
        fds: Vec<OwnedFd>,
    },
    RegionRead {
        offset_bytes: u64,
        region: u32,
        bytes: u32,
    },
    RegionWrite {
        offset_bytes: u64,
        region: u32,
        data: Vec<u8>,
    },
    Reset,
    /// Of a command that is not served.
    Unknown,
}

impl Request {
    /// What the body of a message says.
    ///
    /// # Errors
    /// It is too short for its command.
    pub(crate) fn decode(command: u16, body: &[u8], fds: Vec<OwnedFd>) -> Result<Self, Malformed> {
        let short = || Malformed::Short { command, found: body.len() };
        let word = |at: usize| u32_at(body, at).ok_or_else(short);
        let long = |at: usize| u64_at(body, at).ok_or_else(short);
        Ok(match command {
            command::VERSION => {
                let major = u16_at(body, 0).ok_or_else(short)?;
                // The text says what the client can; nothing that this server does depends on it.
                let text = body.get(4..).ok_or_else(short)?;
                if text.last() != Some(&0) && !text.is_empty() {
                    return Err(Malformed::Text);
                }
                Request::Version { major }
            }
            command::DMA_MAP => Request::DmaMap {
                flags: word(4)?,
                offset_bytes: long(8)?,
                address: long(16)?,
                bytes: long(24)?,
                fds,
            },
            command::DMA_UNMAP => Request::DmaUnmap { flags: word(4)?, address: long(8)?, bytes: long(16)? },
            command::DEVICE_INFO => Request::DeviceInfo,
            command::REGION_INFO => Request::RegionInfo { index: word(8)? },
            command::IRQ_INFO => Request::IrqInfo { index: word(8)? },
            command::SET_IRQS => {
                Request::SetIrqs { flags: word(4)?, index: word(8)?, first: word(12)?, count: word(16)?, fds }
            }
            command::REGION_READ => {
                Request::RegionRead { offset_bytes: long(0)?, region: word(8)?, bytes: word(12)? }
            }
            command::REGION_WRITE => {
                let (offset_bytes, region, bytes) = (long(0)?, word(8)?, word(12)? as usize);
                let data = body.get(16..).filter(|data| data.len() == bytes).ok_or_else(short)?;
                Request::RegionWrite { offset_bytes, region, data: data.to_vec() }
            }
            command::DEVICE_RESET => Request::Reset,
            _ => Request::Unknown,
        })
    }
}

/// Header and body as they go over the socket.
pub(crate) fn message(number: u16, command: u16, flags: u32, errno: u32, body: &[u8]) -> Vec<u8> {
    let bytes = (HEADER_BYTES + body.len()) as u32;
    let mut out = Vec::with_capacity(HEADER_BYTES + body.len());
    Header { number, command, bytes, flags, errno }.encode(&mut out);
    out.extend(body);
    out
}

/// An answer to a command.
pub(crate) fn reply(to: &Header, body: &[u8]) -> Vec<u8> {
    message(to.number, to.command, REPLY, 0, body)
}

/// An answer that says why not.
pub(crate) fn refusal(to: &Header, errno: u32) -> Vec<u8> {
    message(to.number, to.command, REPLY | ERROR, errno, &[])
}

/// Words, one behind the other.
pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_body_of_any_command_is_a_request_or_too_short(command: u16, body in proptest::collection::vec(any::<u8>(), 0..200)) {
            match Request::decode(command, &body, Vec::new()) {
                Ok(Request::RegionWrite { data, .. }) => prop_assert_eq!(data.len() + 16, body.len()),
                Ok(_) => {}
                Err(error) => {
                    let is_short = matches!(error, Malformed::Short { .. } | Malformed::Text);
                    prop_assert!(is_short);
                }
            }
        }

        #[test]
        fn a_header_comes_back(number: u16, command: u16, bytes: u32, flags: u32, errno: u32) {
            let header = Header { number, command, bytes, flags, errno };
            let mut out = Vec::new();
            header.encode(&mut out);
            prop_assert_eq!(Header::decode(out.as_slice().try_into().unwrap()), header);
        }
    }

    #[test]
    fn lengths_that_no_message_has_are_refused() {
        for (bytes, is_sound) in [
            (0, false),
            (15, false),
            (16, true),
            (MAX_MESSAGE_BYTES as u32, true),
            (MAX_MESSAGE_BYTES as u32 + 1, false),
            (u32::MAX, false),
        ] {
            let header = Header { number: 0, command: 0, bytes, flags: 0, errno: 0 };
            assert_eq!(header.body_bytes().is_ok(), is_sound, "{bytes}");
        }
    }
}
