//! What has to be known of a packet to carry it: from where it comes, and where it goes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;

/// A packet whose head is there, and says of how many bytes it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub source: IpAddr,
    pub destination: IpAddr,
}

impl Packet {
    /// The packet that these bytes are; `None`: they are none, or more or less than one.
    #[inline]
    pub(crate) fn of(bytes: &[u8]) -> Option<Packet> {
        match bytes.first()? >> 4 {
            4 => {
                let head: &[u8; IPV4_BYTES] = bytes.first_chunk()?;
                let head_bytes = usize::from(head[0] & 0xf) * 4;
                let whole = usize::from(u16::from_be_bytes([head[2], head[3]]));
                let is_one = whole == bytes.len() && (IPV4_BYTES..=whole).contains(&head_bytes);
                let address = |at: usize| -> IpAddr {
                    Ipv4Addr::new(head[at], head[at + 1], head[at + 2], head[at + 3]).into()
                };
                is_one.then(|| Packet { source: address(12), destination: address(16) })
            }
            6 => {
                let head: &[u8; IPV6_BYTES] = bytes.first_chunk()?;
                let whole = IPV6_BYTES + usize::from(u16::from_be_bytes([head[4], head[5]]));
                let address = |at: usize| -> IpAddr {
                    let octets: [u8; 16] = std::array::from_fn(|octet| head[at + octet]);
                    Ipv6Addr::from(octets).into()
                };
                (whole == bytes.len()).then(|| Packet { source: address(8), destination: address(24) })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use super::*;

    fn v4(payload: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let builder = PacketBuilder::ipv4([10, 77, 0, 4], [10, 77, 0, 8], 64).udp(7, 9);
        builder.write(&mut bytes, &vec![1; payload]).unwrap();
        bytes
    }

    fn v6(payload: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (from, to) = (Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 4), Ipv6Addr::LOCALHOST);
        let builder = PacketBuilder::ipv6(from.octets(), to.octets(), 64).udp(7, 9);
        builder.write(&mut bytes, &vec![1; payload]).unwrap();
        bytes
    }

    #[test]
    fn addresses_are_where_each_version_has_them() {
        let packet = Packet::of(&v4(100)).unwrap();
        assert_eq!(
            (packet.source.to_string(), packet.destination.to_string()),
            ("10.77.0.4".into(), "10.77.0.8".into())
        );
        let packet = Packet::of(&v6(100)).unwrap();
        assert_eq!(
            (packet.source.to_string(), packet.destination.to_string()),
            ("fd00::4".into(), "::1".into())
        );
    }

    #[test]
    fn bytes_that_are_more_or_less_than_a_packet_are_none() {
        for whole in [v4(10), v6(10)] {
            (0..whole.len()).for_each(|bytes| assert_eq!(Packet::of(&whole[..bytes]), None, "{bytes}"));
            assert_eq!(Packet::of(&[whole.clone(), vec![0]].concat()), None);
        }
        let mut short_head = v4(10);
        short_head[0] = 0x44;
        assert_eq!(Packet::of(&short_head), None);
        let mut long_head = v4(0);
        long_head[0] = 0x4f;
        assert_eq!(Packet::of(&long_head), None, "the head ends behind the packet");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_packet_or_none(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = Packet::of(&bytes);
        }
    }
}
