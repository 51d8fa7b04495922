//! Rendezvous messages: a header of 32 bytes and a payload, in one packet of a `SOCK_SEQPACKET` socket.
//!
//! Little-endian, fixed widths. Nothing in a packet is trusted: length, version, kind and number of descriptors are
//! checked against what the kernel says arrived, and a packet that fails is the end of its connection.

/// Longest packet in bytes, header included.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// Most descriptors in one packet.
pub const MAX_FDS: usize = 32;
pub(crate) const HEADER_BYTES: usize = 32;
/// Longest payload in bytes.
pub const MAX_PAYLOAD_BYTES: usize = MAX_MESSAGE_BYTES - HEADER_BYTES;
/// Longest payload of a notification in bytes.
pub const MAX_NOTIFICATION_BYTES: usize = 4096;
/// Most descriptors in one notification.
pub const MAX_NOTIFICATION_FDS: usize = 4;
/// Notifications of one connection that a client has not taken, most of all. With [`MAX_NOTIFICATION_BYTES`] it bounds what
/// one connection can make either side hold.
pub const MAX_UNTAKEN_NOTIFICATIONS: usize = 256;
/// Descriptors in the notifications of one connection that a client has not taken, most of all.
pub const MAX_UNTAKEN_FDS: usize = 32;

const MAGIC: u32 = u32::from_le_bytes(*b"BEE\x01");
const VERSION: u16 = 4;
const FLAG_MEMBARRIER: u32 = 1;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// First packet of a client.
    Hello,
    /// A later request of a client.
    Call,
    /// The owner's answer.
    Reply,
    /// The owner's refusal; the payload is the reason in UTF-8.
    Refusal,
    /// The last packet of either side: it closes in order, it does not die.
    Bye,
    /// Either side has stored what the other waits for by descriptor. It has neither payload nor descriptors. The serial names
    /// the branch of the connection that it is about, or none: then it is for all who listen ([`WAKE_ALL`]) or for those whose flags
    /// were taken ([`WAKE_TAKEN`]).
    Wake,
    /// What the owner tells without being asked. The serial counts the notifications of the connection, from 1.
    Notify,
    /// The client's program has taken notifications; the serial says how many in all. Neither payload nor descriptors.
    Taken,
    /// Before a client's first request: it shows the owner's secret, and the answer is its own. A client waits for that before
    /// it sends anything else.
    Prove,
    /// What a client tells and gets no answer to. It has no descriptors.
    Tell,
}

impl Kind {
    const fn code(self) -> u16 {
        match self {
            Kind::Hello => 1,
            Kind::Call => 2,
            Kind::Reply => 3,
            Kind::Refusal => 4,
            Kind::Bye => 5,
            Kind::Wake => 6,
            Kind::Notify => 7,
            Kind::Taken => 8,
            Kind::Prove => 10,
            Kind::Tell => 9,
        }
    }

    const fn from_code(code: u16) -> Option<Self> {
        match code {
            1 => Some(Kind::Hello),
            2 => Some(Kind::Call),
            3 => Some(Kind::Reply),
            4 => Some(Kind::Refusal),
            5 => Some(Kind::Bye),
            6 => Some(Kind::Wake),
            7 => Some(Kind::Notify),
            8 => Some(Kind::Taken),
            9 => Some(Kind::Tell),
            10 => Some(Kind::Prove),
            _ => None,
        }
    }
}

/// Serial of a [`Kind::Wake`] for everybody who listens.
pub(crate) const WAKE_ALL: u32 = 0;
/// Serial of a [`Kind::Wake`] for those whose flags were taken; no branch has it for a name. Every packet is for those.
pub(crate) const WAKE_TAKEN: u32 = u32::MAX;

/// What a header says, apart from the sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// What the packet is.
    pub kind: Kind,
    /// Whether the sender's process takes part in expedited membarriers, as caller and as target.
    pub membarrier: bool,
    /// Number of the request, echoed in its answer.
    pub serial: u32,
    /// When the sender's process started, in clock ticks since boot: how a process is told from a later one with the
    /// same process id, where the kernel gives no pidfd of a socket's peer.
    pub started_ticks: u64,
}

/// Why a packet is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Too short for a header.
    #[error("a packet of {bytes} bytes, a header alone has {HEADER_BYTES}")]
    Short {
        /// Bytes that arrived.
        bytes: usize,
    },
    /// Longer than a packet may be, or more descriptors than it may have.
    #[error("a packet longer than {MAX_MESSAGE_BYTES} bytes or with more than {MAX_FDS} descriptors")]
    Truncated,
    /// Not one of our packets.
    #[error("the packet starts with {found:#010x}, not with our magic number {MAGIC:#010x}")]
    Magic {
        /// First word of the packet.
        found: u32,
    },
    /// The peer speaks another version of the protocol.
    #[error(
        "the peer speaks version {found} of the rendezvous, this is version {VERSION}; upgrade the older one"
    )]
    Version {
        /// The peer's version.
        found: u16,
    },
    /// An unknown kind of packet, or one that has no place here.
    #[error("a packet of kind {found}, which is unknown or out of place")]
    Kind {
        /// The kind's code.
        found: u16,
    },
    /// The payload has another length than the header says.
    #[error("the header says {said} bytes of payload, {found} arrived")]
    Payload {
        /// Bytes the header says.
        said: u32,
        /// Bytes that arrived.
        found: usize,
    },
    /// Another number of descriptors arrived than the header says.
    #[error("the header says {said} descriptors, {found} arrived")]
    Descriptors {
        /// Number the header says.
        said: u16,
        /// Number that arrived.
        found: usize,
    },
    /// A notification has another number than the one after the last.
    #[error("notification {found} came where {expected} was due")]
    Sequence { expected: u32, found: u32 },
    /// A notification is larger than one may be.
    #[error(
        "a notification of {bytes} bytes and {fds} descriptors; at most {MAX_NOTIFICATION_BYTES} and {MAX_NOTIFICATION_FDS} \
         are allowed"
    )]
    LargeNotification {
        /// Bytes of its payload.
        bytes: usize,
        /// Number of its descriptors.
        fds: usize,
    },
    /// More notifications came than an owner may send before they are taken.
    #[error(
        "more than {MAX_UNTAKEN_NOTIFICATIONS} notifications, or {MAX_UNTAKEN_FDS} descriptors in them, that were not taken"
    )]
    Flood,
    /// A client says that it has taken notifications that it was not sent, or none.
    #[error(
        "the client says it has taken {said} notifications, {known} were taken before and {sent} were sent"
    )]
    NotTaken {
        /// Number that the client says, of all that were sent over the connection.
        said: u32,
        /// Number that it said before.
        known: u32,
        sent: u32,
    },
}

impl Header {
    /// The header's bytes. The caller has checked payload and descriptors against the limits.
    pub(crate) fn encode(self, payload_bytes: usize, fd_count: usize) -> [u8; HEADER_BYTES] {
        debug_assert!(payload_bytes <= MAX_PAYLOAD_BYTES && fd_count <= MAX_FDS);
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.kind.code().to_le_bytes());
        bytes[8..12].copy_from_slice(&(u32::from(self.membarrier) * FLAG_MEMBARRIER).to_le_bytes());
        bytes[12..16].copy_from_slice(&self.serial.to_le_bytes());
        bytes[16..20].copy_from_slice(&(payload_bytes as u32).to_le_bytes());
        bytes[20..22].copy_from_slice(&(fd_count as u16).to_le_bytes());
        bytes[24..32].copy_from_slice(&self.started_ticks.to_le_bytes());
        bytes
    }

    /// Reads a packet that arrived with `fd_count` descriptors; gives the header and the payload.
    pub(crate) fn decode(packet: &[u8], fd_count: usize) -> Result<(Self, &[u8]), WireError> {
        let Some((bytes, payload)) = packet.split_first_chunk::<HEADER_BYTES>() else {
            return Err(WireError::Short { bytes: packet.len() });
        };
        let [word0, word1, word2, word3] = *bytes.as_chunks::<8>().0 else {
            return Err(WireError::Short { bytes: packet.len() });
        };
        let (word0, word1) = (u64::from_le_bytes(word0), u64::from_le_bytes(word1));
        let word2 = u64::from_le_bytes(word2);
        let (magic, version, code) = (word0 as u32, (word0 >> 32) as u16, (word0 >> 48) as u16);
        if magic != MAGIC {
            return Err(WireError::Magic { found: magic });
        }
        if version != VERSION {
            return Err(WireError::Version { found: version });
        }
        let kind = Kind::from_code(code).ok_or(WireError::Kind { found: code })?;
        let (said_payload, said_fds) = (word2 as u32, (word2 >> 32) as u16);
        if said_payload as usize != payload.len() {
            return Err(WireError::Payload { said: said_payload, found: payload.len() });
        }
        if usize::from(said_fds) != fd_count {
            return Err(WireError::Descriptors { said: said_fds, found: fd_count });
        }
        let header = Header {
            kind,
            membarrier: word1 as u32 & FLAG_MEMBARRIER != 0,
            serial: (word1 >> 32) as u32,
            started_ticks: u64::from_le_bytes(word3),
        };
        Ok((header, payload))
    }

    /// The error for a packet that is well formed but has no place where it came.
    pub(crate) fn out_of_place(self) -> WireError {
        WireError::Kind { found: self.kind.code() }
    }
}

/// What this process is in a domain, most of which it says in every header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub uid: u32,
    pub membarrier: bool,
    pub started_ticks: u64,
    /// Whether permissions of files keep everybody but the owner from offers without a list. Never sent.
    pub has_permissions: bool,
}

impl Identity {
    pub(crate) fn header(&self, kind: Kind, serial: u32) -> Header {
        Header { kind, membarrier: self.membarrier, serial, started_ticks: self.started_ticks }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    const HELLO: Header =
        Header { kind: Kind::Hello, membarrier: true, serial: 7, started_ticks: u64::MAX - 3 };

    fn packet(header: Header, payload: &[u8], fd_count: usize) -> Vec<u8> {
        [&header.encode(payload.len(), fd_count), payload].concat()
    }

    #[test]
    fn a_packet_comes_back() {
        use Kind::{Bye, Call, Hello, Notify, Prove, Refusal, Reply, Taken, Tell, Wake};
        for kind in [Hello, Call, Reply, Refusal, Bye, Wake, Notify, Taken, Tell, Prove] {
            for membarrier in [false, true] {
                let header = Header { kind, membarrier, ..HELLO };
                assert_eq!(Header::decode(&packet(header, b"body", 3), 3), Ok((header, &b"body"[..])));
            }
        }
    }

    #[test]
    fn every_field_is_checked() {
        let good = packet(HELLO, b"body", 0);
        assert_eq!(Header::decode(&good[..31], 0), Err(WireError::Short { bytes: 31 }));
        assert_eq!(Header::decode(&good[..35], 0), Err(WireError::Payload { said: 4, found: 3 }));
        assert_eq!(Header::decode(&good, 1), Err(WireError::Descriptors { said: 0, found: 1 }));
        let with = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            Header::decode(&bytes, 0).map(|(header, _)| header)
        };
        assert!(matches!(with(0, 0), Err(WireError::Magic { .. })));
        assert_eq!(with(4, 1), Err(WireError::Version { found: 1 }));
        assert_eq!(with(6, 11), Err(WireError::Kind { found: 11 }));
        assert_eq!(with(19, 1), Err(WireError::Payload { said: 4 | 1 << 24, found: 4 }));
        assert_eq!(with(21, 1), Err(WireError::Descriptors { said: 256, found: 0 }));
    }

    #[test]
    fn no_bytes_make_it_panic() {
        // A walk through headers that differ in one byte, and through every prefix.
        let good = packet(HELLO, b"", 0);
        for at in 0..HEADER_BYTES {
            for value in 0..=255 {
                let mut bytes = good.clone();
                bytes[at] = value;
                let _ = Header::decode(&bytes, usize::from(value));
            }
            assert!(Header::decode(&good[..at], 0).is_err());
        }
    }
}
