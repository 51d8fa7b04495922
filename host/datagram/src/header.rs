//! The head of a frame: 56 bytes, read once and checked before anything in it is believed.
//!
//! The layout is `datagram_frame` of `spec/formats.toml`. What [`Head::read`] gives is for this endpoint, of this
//! version, and as long as it claims; whether its sessions exist is the endpoint's question.

use beeline_spec::formats::{
    DATAGRAM_ETHERTYPE, DATAGRAM_VERSION, datagram_flags as flag, datagram_frame as f, datagram_kind as kind,
};

use crate::sequence::Session;
use crate::stats::EndpointStats;
use crate::{Address, MOST_WINDOW, MacAddress, Port};

/// Bytes of the head.
pub(crate) const BYTES: usize = f::BYTES;
/// Where an Ethernet header has its two addresses.
const DESTINATION: usize = 0;
const SOURCE: usize = 6;
/// Short frames are padded to 60 bytes, and some interfaces leave the 4 bytes of FCS in.
const PADDED_BYTES: usize = 64;
const ANSWER: u8 = 1 << flag::ANSWER_LSB;

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Open = kind::OPEN,
    Welcome = kind::WELCOME,
    Data = kind::DATA,
    Ack = kind::ACK,
    Close = kind::CLOSE,
    Reset = kind::RESET,
}

/// A head that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    /// The endpoint it comes from.
    pub(crate) from: Address,
    pub(crate) to_session: Session,
    pub(crate) from_session: Session,
    pub(crate) number: u32,
    pub(crate) acknowledged: u32,
    pub(crate) selective: u64,
    pub(crate) message_bytes: u16,
    pub(crate) room: u8,
    pub(crate) wants_answer: bool,
}

/// Reasons for which a frame is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stray {
    Foreign,
    Short,
    Long,
    Version,
    Malformed,
    Source,
}

impl Stray {
    #[cold]
    pub(crate) fn count(self, stats: &mut EndpointStats) {
        *match self {
            Stray::Foreign => &mut stats.foreign,
            Stray::Short => &mut stats.short,
            Stray::Long => &mut stats.long,
            Stray::Version => &mut stats.version,
            Stray::Malformed => &mut stats.malformed,
            Stray::Source => &mut stats.source,
        } += 1;
    }
}

/// Copies `N` bytes from `at`; both are constants, so that this is one load.
#[inline(always)]
fn bytes<const N: usize>(head: &[u8; BYTES], at: usize) -> [u8; N] {
    let mut value = [0; N];
    value.copy_from_slice(&head[at..at + N]);
    value
}

impl Head {
    /// Reads the head of a frame for the endpoint `local`.
    #[inline]
    pub(crate) fn read(frame: &[u8], local: Address) -> Result<Head, Stray> {
        let Some(head) = frame.first_chunk::<BYTES>() else { return Err(too_short(frame)) };
        let is_ours = bytes(head, DESTINATION) == local.mac.0
            && bytes(head, f::ETHERTYPE_OFFSET) == ETHERTYPE
            && u16::from_le_bytes(bytes(head, f::TO_PORT_OFFSET)) == local.port.0;
        if !is_ours {
            return Err(Stray::Foreign);
        }
        if head[f::VERSION_OFFSET] != DATAGRAM_VERSION as u8 {
            return Err(Stray::Version);
        }
        let kind = match head[f::KIND_OFFSET] {
            kind::DATA => Kind::Data,
            kind::ACK => Kind::Ack,
            kind::OPEN => Kind::Open,
            kind::WELCOME => Kind::Welcome,
            kind::CLOSE => Kind::Close,
            kind::RESET => Kind::Reset,
            _ => return Err(Stray::Malformed),
        };
        let message_bytes = u16::from_le_bytes(bytes(head, f::LENGTH_BYTES_OFFSET));
        let (room, flags) = (head[f::ROOM_OFFSET], head[f::FLAGS_OFFSET]);
        if room > MOST_WINDOW || flags & !ANSWER != 0 || (message_bytes > 0 && kind != Kind::Data) {
            return Err(Stray::Malformed);
        }
        let claimed = BYTES + usize::from(message_bytes);
        if frame.len() < claimed {
            return Err(Stray::Short);
        }
        if frame.len() > claimed.max(PADDED_BYTES) {
            return Err(Stray::Long);
        }
        let mac = MacAddress(bytes(head, SOURCE));
        let from = Address { mac, port: Port(u16::from_le_bytes(bytes(head, f::FROM_PORT_OFFSET))) };
        if !mac.is_station() || from == local {
            return Err(Stray::Source);
        }
        Ok(Head {
            kind,
            from,
            to_session: Session(u64::from_le_bytes(bytes(head, f::TO_SESSION_OFFSET))),
            from_session: Session(u64::from_le_bytes(bytes(head, f::FROM_SESSION_OFFSET))),
            number: u32::from_le_bytes(bytes(head, f::NUMBER_OFFSET)),
            acknowledged: u32::from_le_bytes(bytes(head, f::ACKNOWLEDGED_OFFSET)),
            selective: u64::from_le_bytes(bytes(head, f::SELECTIVE_OFFSET)),
            message_bytes,
            room,
            wants_answer: flags & ANSWER != 0,
        })
    }
}

const ETHERTYPE: [u8; 2] = (DATAGRAM_ETHERTYPE as u16).to_be_bytes();

/// A frame without a head: of this protocol or not.
#[cold]
fn too_short(frame: &[u8]) -> Stray {
    let ethertype = frame.get(f::ETHERTYPE_OFFSET..f::ETHERTYPE_OFFSET + 2);
    if ethertype.is_some_and(|found| found != ETHERTYPE) { Stray::Foreign } else { Stray::Short }
}

/// The head of the frames of one connection, in which only the numbers change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Template([u8; BYTES]);

/// The fields that differ between frames of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) acknowledged: u32,
    pub(crate) selective: u64,
    pub(crate) room: u8,
    pub(crate) wants_answer: bool,
}

impl Template {
    /// Heads from one endpoint to another, between two sessions.
    pub(crate) fn new(local: Address, remote: Address, ours: Session, theirs: Session) -> Self {
        let mut head = [0; BYTES];
        let mut put = |at: usize, value: &[u8]| head[at..at + value.len()].copy_from_slice(value);
        put(DESTINATION, &remote.mac.0);
        put(SOURCE, &local.mac.0);
        put(f::ETHERTYPE_OFFSET, &ETHERTYPE);
        put(f::VERSION_OFFSET, &[DATAGRAM_VERSION as u8]);
        put(f::TO_SESSION_OFFSET, &theirs.0.to_le_bytes());
        put(f::FROM_SESSION_OFFSET, &ours.0.to_le_bytes());
        put(f::TO_PORT_OFFSET, &remote.port.0.to_le_bytes());
        put(f::FROM_PORT_OFFSET, &local.port.0.to_le_bytes());
        Template(head)
    }

    /// The head of a frame of this kind and number, with `message_bytes` behind it; numbers are stamped later.
    #[inline]
    pub(crate) fn head(&self, kind: Kind, number: u32, message_bytes: u16) -> [u8; BYTES] {
        let mut head = self.0;
        head[f::KIND_OFFSET] = kind as u8;
        head[f::NUMBER_OFFSET..f::NUMBER_OFFSET + 4].copy_from_slice(&number.to_le_bytes());
        head[f::LENGTH_BYTES_OFFSET..f::LENGTH_BYTES_OFFSET + 2]
            .copy_from_slice(&message_bytes.to_le_bytes());
        head
    }
}

/// Brings the acknowledgement in a frame's head up to date, just before it leaves.
#[inline]
pub(crate) fn stamp(head: &mut [u8; BYTES], numbers: Numbers) {
    let Numbers { acknowledged, selective, room, wants_answer } = numbers;
    head[f::ACKNOWLEDGED_OFFSET..f::ACKNOWLEDGED_OFFSET + 4].copy_from_slice(&acknowledged.to_le_bytes());
    head[f::SELECTIVE_OFFSET..f::SELECTIVE_OFFSET + 8].copy_from_slice(&selective.to_le_bytes());
    head[f::ROOM_OFFSET] = room;
    head[f::FLAGS_OFFSET] = u8::from(wants_answer) << flag::ANSWER_LSB;
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Address = Address { mac: MacAddress([2, 0, 0, 0, 0, 1]), port: Port(7) };
    const THERE: Address = Address { mac: MacAddress([2, 0, 0, 0, 0, 2]), port: Port(9) };

    fn frame(message: &[u8]) -> Vec<u8> {
        let template = Template::new(THERE, HERE, Session(11), Session(12));
        let mut head = template.head(Kind::Data, 13, message.len() as u16);
        stamp(&mut head, Numbers { acknowledged: 14, selective: 15, room: 16, wants_answer: true });
        [&head, message].concat()
    }

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let head = Head::read(&frame(b"hello"), HERE).unwrap();
        let expected = Head {
            kind: Kind::Data,
            from: THERE,
            to_session: Session(12),
            from_session: Session(11),
            number: 13,
            acknowledged: 14,
            selective: 15,
            message_bytes: 5,
            room: 16,
            wants_answer: true,
        };
        assert_eq!(head, expected);
        assert_eq!(&frame(b"")[12..14], [0x88, 0xb5], "the EtherType is in network byte order");
    }

    #[test]
    fn padding_is_no_message_and_more_is_no_padding() {
        for total in 57..=64 {
            let mut padded = frame(b"x");
            padded.resize(total, 0);
            assert_eq!(Head::read(&padded, HERE).unwrap().message_bytes, 1);
        }
        let mut long = frame(b"x");
        long.resize(65, 0);
        assert_eq!(Head::read(&long, HERE), Err(Stray::Long));
        let mut long = frame(&[0; 100]);
        long.push(0);
        assert_eq!(Head::read(&long, HERE), Err(Stray::Long));
    }

    #[test]
    fn every_wrong_field_has_its_cause() {
        let with = |at: usize, value: u8| {
            let mut frame = frame(b"hello");
            frame[at] = value;
            Head::read(&frame, HERE).map(|head| head.kind)
        };
        assert_eq!(with(DESTINATION + 5, 9), Err(Stray::Foreign));
        assert_eq!(with(f::ETHERTYPE_OFFSET, 8), Err(Stray::Foreign));
        assert_eq!(with(f::TO_PORT_OFFSET, 8), Err(Stray::Foreign));
        assert_eq!(with(f::VERSION_OFFSET, 2), Err(Stray::Version));
        assert_eq!(with(f::KIND_OFFSET, 0), Err(Stray::Malformed));
        assert_eq!(with(f::KIND_OFFSET, 7), Err(Stray::Malformed));
        assert_eq!(with(f::ROOM_OFFSET, 65), Err(Stray::Malformed));
        assert_eq!(with(f::FLAGS_OFFSET, 2), Err(Stray::Malformed));
        assert_eq!(
            with(f::KIND_OFFSET, kind::ACK),
            Err(Stray::Malformed),
            "an acknowledgement has no message"
        );
        assert_eq!(with(f::LENGTH_BYTES_OFFSET, 6), Err(Stray::Short));
        assert_eq!(with(f::LENGTH_BYTES_OFFSET + 1, 1), Err(Stray::Short));
        assert_eq!(with(SOURCE, 3), Err(Stray::Source), "a group cannot send");
        let mut own = frame(b"");
        own[SOURCE..SOURCE + 6].copy_from_slice(&HERE.mac.0);
        own[f::FROM_PORT_OFFSET] = 7;
        assert_eq!(Head::read(&own, HERE), Err(Stray::Source), "from this endpoint itself");
    }

    #[test]
    fn a_frame_cut_anywhere_is_short() {
        let whole = frame(b"hello");
        for length in 14..whole.len() {
            assert_eq!(Head::read(&whole[..length], HERE), Err(Stray::Short), "{length}");
        }
        let mut other = whole;
        other[12] = 8;
        assert_eq!(Head::read(&other[..20], HERE), Err(Stray::Foreign));
    }
}
