//! What two members say to each other when one wants to use the other's segments: one request and one answer. And then one more for each
//! connection to a segment that has a memory of its own.
//!
//! Little-endian, exact lengths. Neither is trusted: what a peer says is checked where it is used.

use beeline_fabric::{Lent, MemberNumber, NodeId, Slot};

/// Version of the packets, of boards, claims, yards and bells.
const VERSION: u16 = 2;
const MAGIC: &[u8; 4] = b"BEEF";

/// The request of a member that wants to use another one's segments. Its claims and a yard come with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Who asks.
    pub(crate) who: Who,
    pub(crate) yard_bytes: u64,
}

/// A member of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) node: NodeId,
    pub(crate) member: MemberNumber,
}

/// The answer. The board, the bank and the bells come with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Welcome {
    pub(crate) bank_bytes: u64,
}

/// The request of a member that is connected to a segment with a memory of its own, and has not mapped it yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fetch(pub(crate) Lent);

/// What comes with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Memory of the host.
    Memory,
    /// Files of a BAR.
    Device,
}

/// The answer. The memory comes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fetched {
    pub(crate) kind: Kind,
    /// The size of the memory, or of the part of a device.
    pub(crate) bytes: u64,
    /// Where in the memory the segment begins, or where in the device's BAR the part does.
    pub(crate) offset: u64,
}

/// Why a packet is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PacketError {
    #[error("{0} bytes are no packet of the fabric")]
    Length(usize),
    #[error("memory of the kind {0} is not known")]
    Kind(u16),
    #[error("the packet does not begin as those of the fabric do")]
    Magic,
    #[error("the other member speaks version {0} of the fabric, this one version {VERSION}")]
    Version(u16),
}

/// Takes the next bytes of a packet whose length is checked.
fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let (first, rest) = bytes.split_first_chunk().expect("the length was checked");
    *bytes = rest;
    *first
}

fn check(packet: &[u8], length: usize) -> Result<&[u8], PacketError> {
    let mut rest = packet;
    if packet.len() != length {
        return Err(PacketError::Length(packet.len()));
    }
    if take(&mut rest) != *MAGIC {
        return Err(PacketError::Magic);
    }
    match u16::from_le_bytes(take(&mut rest)) {
        VERSION => Ok(rest),
        other => Err(PacketError::Version(other)),
    }
}

impl Hello {
    /// `magic:4 | version:2 | node:2 | member:8 | yard bytes:8`
    const BYTES: usize = 24;

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let (node, member) = (self.who.node.0.to_le_bytes(), self.who.member.0.to_le_bytes());
        [MAGIC.as_slice(), &VERSION.to_le_bytes(), &node, &member, &self.yard_bytes.to_le_bytes()].concat()
    }

    pub(crate) fn of(packet: &[u8]) -> Result<Self, PacketError> {
        let mut rest = check(packet, Self::BYTES)?;
        let node = NodeId(u16::from_le_bytes(take(&mut rest)));
        let member = MemberNumber(u64::from_le_bytes(take(&mut rest)));
        Ok(Hello { who: Who { node, member }, yard_bytes: u64::from_le_bytes(take(&mut rest)) })
    }
}

impl Welcome {
    /// `magic:4 | version:2 | zero:2 | bank bytes:8`
    const BYTES: usize = 16;

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [MAGIC.as_slice(), &VERSION.to_le_bytes(), &[0; 2], &self.bank_bytes.to_le_bytes()].concat()
    }

    pub(crate) fn of(packet: &[u8]) -> Result<Self, PacketError> {
        let mut rest = check(packet, Self::BYTES)?;
        let [_, _] = take(&mut rest);
        Ok(Welcome { bank_bytes: u64::from_le_bytes(take(&mut rest)) })
    }
}

impl Fetch {
    /// `magic:4 | version:2 | slot:2 | incarnation:4`
    const BYTES: usize = 12;

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let (slot, incarnation) = (self.0.slot.0.to_le_bytes(), self.0.incarnation.to_le_bytes());
        [MAGIC.as_slice(), &VERSION.to_le_bytes(), &slot, &incarnation].concat()
    }

    pub(crate) fn of(packet: &[u8]) -> Result<Self, PacketError> {
        let mut rest = check(packet, Self::BYTES)?;
        let slot = Slot(u16::from_le_bytes(take(&mut rest)));
        Ok(Fetch(Lent { slot, incarnation: u32::from_le_bytes(take(&mut rest)) }))
    }
}

impl Fetched {
    /// `magic:4 | version:2 | kind:2 | bytes:8 | offset:8`
    const BYTES: usize = 24;

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let kind: u16 = match self.kind {
            Kind::Memory => 0,
            Kind::Device => 1,
        };
        let (bytes, offset) = (self.bytes.to_le_bytes(), self.offset.to_le_bytes());
        [MAGIC.as_slice(), &VERSION.to_le_bytes(), &kind.to_le_bytes(), &bytes, &offset].concat()
    }

    pub(crate) fn of(packet: &[u8]) -> Result<Self, PacketError> {
        let mut rest = check(packet, Self::BYTES)?;
        let kind = match u16::from_le_bytes(take(&mut rest)) {
            0 => Kind::Memory,
            1 => Kind::Device,
            other => return Err(PacketError::Kind(other)),
        };
        let bytes = u64::from_le_bytes(take(&mut rest));
        Ok(Fetched { kind, bytes, offset: u64::from_le_bytes(take(&mut rest)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_back_and_others_are_none() {
        let who = Who { node: NodeId(0x0804), member: MemberNumber(0xfedc_ba98_7654_3210) };
        let hello = Hello { who, yard_bytes: 5 << 40 };
        assert_eq!(Hello::of(&hello.to_bytes()), Ok(hello));
        let welcome = Welcome { bank_bytes: 1 << 46 };
        assert_eq!(Welcome::of(&welcome.to_bytes()), Ok(welcome));
        let fetch = Fetch(Lent { slot: Slot(0xfedc), incarnation: 0x8765_4321 });
        assert_eq!(Fetch::of(&fetch.to_bytes()), Ok(fetch));
        for kind in [Kind::Memory, Kind::Device] {
            let fetched = Fetched { kind, bytes: 5 << 40, offset: 7 << 40 };
            assert_eq!(Fetched::of(&fetched.to_bytes()), Ok(fetched));
        }
        for length in [0, 6, 16, 23, 25] {
            assert_eq!(Hello::of(&vec![0; length]), Err(PacketError::Length(length)));
        }
        let mut bytes = hello.to_bytes();
        bytes[4] = 9;
        assert_eq!(Hello::of(&bytes), Err(PacketError::Version(9)));
        bytes[0] = b'b';
        assert_eq!(Hello::of(&bytes), Err(PacketError::Magic));
    }

    #[test]
    fn packet_of_each_kind_is_one_in_its_length_version_and_magic_only() {
        fn refuses_others<T>(packet: &[u8], of: fn(&[u8]) -> Result<T, PacketError>) {
            for length in (0..=packet.len() + 8).filter(|length| *length != packet.len()) {
                let mut other = packet.to_vec();
                other.resize(length, 0);
                assert_eq!(of(&other).err(), Some(PacketError::Length(length)));
            }
            for (at, want) in [(0, PacketError::Magic), (3, PacketError::Magic), (4, PacketError::Version(3))]
            {
                let mut other = packet.to_vec();
                other[at] ^= 1;
                assert_eq!(of(&other).err(), Some(want));
            }
        }
        let who = Who { node: NodeId(1), member: MemberNumber(2) };
        refuses_others(&Hello { who, yard_bytes: 3 }.to_bytes(), Hello::of);
        refuses_others(&Welcome { bank_bytes: 4 }.to_bytes(), Welcome::of);
        refuses_others(&Fetch(Lent { slot: Slot(5), incarnation: 6 }).to_bytes(), Fetch::of);
        let mut fetched = Fetched { kind: Kind::Device, bytes: 7, offset: 8 }.to_bytes();
        fetched[7] = 1;
        assert_eq!(Fetched::of(&fetched), Err(PacketError::Kind(0x101)));
        refuses_others(&Fetched { kind: Kind::Memory, bytes: 7, offset: 8 }.to_bytes(), Fetched::of);
    }
}
