//! What tells a program at once that a node is not there: ICMP's "destination unreachable" (RFC 792, RFC 4443). It comes from the address that is not there: the
//! kernel takes no packet from a device whose source is an address of its own.

use std::net::IpAddr;

use etherparse::{
    Icmpv4Type, Icmpv6Type, NetSlice, PacketBuilder, SlicedPacket, TransportSlice, icmpv4, icmpv6,
};

use crate::packet::Packet;

/// Of the packet that could not go, so much is given back: its head and the ports behind it, whatever options it has.
const QUOTED_BYTES: usize = 128;
const HOPS: u8 = 64;

/// Why a packet does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreachable {
    Host,
    /// Packets of so many bytes would go (RFC 1191, RFC 8201).
    TooLong {
        longest_bytes: u16,
    },
}

/// The message for a packet's sender; none where there must be none: an error is not answered by one, nor a later fragment.
pub(crate) fn answer(packet: &[u8], why: Unreachable) -> Option<Vec<u8>> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    if is_error(sliced.transport.as_ref()) || is_later_fragment(sliced.net.as_ref()) {
        return None;
    }
    let quoted = &packet[..packet.len().min(QUOTED_BYTES)];
    let mut told = Vec::new();
    let Packet { source, destination } = Packet::of(packet)?;
    match (destination, source) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let unreachable = Icmpv4Type::DestinationUnreachable(match why {
                Unreachable::Host => icmpv4::DestUnreachableHeader::Host,
                Unreachable::TooLong { longest_bytes } => {
                    icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: longest_bytes }
                }
            });
            let builder = PacketBuilder::ipv4(from.octets(), to.octets(), HOPS).icmpv4(unreachable);
            builder.write(&mut told, quoted).ok()?;
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let unreachable = match why {
                Unreachable::Host => Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::Address),
                Unreachable::TooLong { longest_bytes } => {
                    Icmpv6Type::PacketTooBig { mtu: u32::from(longest_bytes) }
                }
            };
            let builder = PacketBuilder::ipv6(from.octets(), to.octets(), HOPS).icmpv6(unreachable);
            builder.write(&mut told, quoted).ok()?;
        }
        _ => return None,
    }
    Some(told)
}

fn is_error(transport: Option<&TransportSlice<'_>>) -> bool {
    match transport {
        // Echoes, router messages, time stamps and masks ask for something; the others are of something that went wrong.
        Some(TransportSlice::Icmpv4(message)) => !matches!(message.type_u8(), 0 | 8 | 9 | 10 | 13..=18),
        Some(TransportSlice::Icmpv6(message)) => message.type_u8() < 128,
        _ => false,
    }
}

fn is_later_fragment(net: Option<&NetSlice<'_>>) -> bool {
    match net {
        Some(NetSlice::Ipv4(slice)) => slice.header().fragments_offset().value() != 0,
        // Its transport is not sliced, and whatever it is, it is no whole packet.
        Some(NetSlice::Ipv6(slice)) => slice.is_payload_fragmented(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 4);
    const AWAY: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 9);

    fn v4(build: impl FnOnce(etherparse::PacketBuilderStep<etherparse::IpHeaders>) -> Vec<u8>) -> Vec<u8> {
        build(PacketBuilder::ipv4(OWN.octets(), AWAY.octets(), 64))
    }

    fn echo(payload: usize) -> Vec<u8> {
        v4(|step| {
            let mut bytes = Vec::new();
            step.icmpv4_echo_request(1, 2).write(&mut bytes, &vec![0; payload]).unwrap();
            bytes
        })
    }

    #[test]
    fn echo_to_nobody_is_told_so_with_the_packet_quoted() {
        let packet = echo(300);
        let told = answer(&packet, Unreachable::Host).unwrap();
        let sliced = SlicedPacket::from_ip(&told).unwrap();
        let Some(TransportSlice::Icmpv4(message)) = sliced.transport else { panic!("{told:?}") };
        assert_eq!((message.type_u8(), message.code_u8()), (3, 1));
        assert_eq!(message.payload(), &packet[..QUOTED_BYTES]);
        let addresses = Packet::of(&told).unwrap();
        assert_eq!((addresses.source, addresses.destination), (AWAY.into(), OWN.into()));
    }

    #[test]
    fn echo_by_ipv6_is_told_so() {
        let mut packet = Vec::new();
        let step = PacketBuilder::ipv6([0xfc; 16], [0xfd; 16], 64);
        step.icmpv6_echo_request(1, 2).write(&mut packet, &[7; 20]).unwrap();
        let told = answer(&packet, Unreachable::Host).unwrap();
        let sliced = SlicedPacket::from_ip(&told).unwrap();
        let Some(TransportSlice::Icmpv6(message)) = sliced.transport else { panic!("{told:?}") };
        assert_eq!((message.type_u8(), message.code_u8()), (1, 3));
        let addresses = Packet::of(&told).unwrap();
        assert_eq!((addresses.source, addresses.destination), ([0xfd; 16].into(), [0xfc; 16].into()));
    }

    #[test]
    fn errors_and_later_fragments_are_not_answered() {
        let told = answer(&echo(10), Unreachable::Host).unwrap();
        assert_eq!(answer(&told, Unreachable::Host), None, "an error");
        let mut fragment = echo(10);
        fragment[7] = 1;
        assert_eq!(answer(&fragment, Unreachable::Host), None, "a later fragment");
        assert_eq!(answer(&[], Unreachable::Host), None);
    }
}
