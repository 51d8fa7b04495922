//! Whatever goes through whatever switch: it arrives once at each destination, in an order that may be, and nothing is left.

use std::collections::BTreeMap;

use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::pcie::{Generation, Kind, LinkSettings, MayPass, Tlp, may_pass};
use proptest::prelude::*;

use super::{GROUP_AT, Star, base, group, id, settings};

/// Where a packet goes, and where from: numbers that a topology of any size makes ports of.
#[derive(Clone, Copy, Debug)]
struct Any {
    from: u16,
    to: u16,
    is_copied: bool,
    kind: usize,
    bytes: u32,
    attributes: [bool; 2],
    at_ps: u64,
}

fn any_packet() -> impl Strategy<Value = Any> {
    (0u16..100, 0u16..100, prop::bool::weighted(0.2), 0usize..3, 1u32..128, any::<[bool; 2]>(), 0u64..200_000)
        .prop_map(|(from, to, is_copied, kind, bytes, attributes, at_ps)| Any {
            from,
            to,
            is_copied,
            kind,
            bytes,
            attributes,
            at_ps,
        })
}

fn any_link() -> impl Strategy<Value = LinkSettings> {
    let lanes = prop::sample::select(vec![1u8, 4, 8]);
    let generation = prop::sample::select(Generation::ALL.to_vec());
    (generation, lanes, 2u32..9, 0usize..3).prop_map(|(generation, lanes, lines, look_ahead)| LinkSettings {
        look_ahead,
        ..settings(generation, lanes, lines)
    })
}

/// The packet, and to which ports it goes.
fn packet(any: Any, body: u32, ports: u16, receivers: &[u16]) -> (u64, u16, Tlp, Vec<u16>) {
    let from = any.from % ports;
    let to = (from + 1 + any.to % (ports - 1)) % ports;
    let [relaxed, id_ordered] = any.attributes;
    let address_of = |port| if port == 0 { 0x1000 } else { base(port) + 256 };
    let (kind, address, to) = match any.kind {
        0 if any.is_copied => {
            let to = receivers.iter().copied().filter(|port| *port != from).collect();
            (Kind::MemoryWrite, GROUP_AT + 256, to)
        }
        0 => (Kind::MemoryWrite, address_of(to), vec![to]),
        1 => (Kind::MemoryRead, address_of(to), vec![to]),
        _ => (Kind::CompletionWithData, 0, vec![to]),
    };
    let plain = Tlp::new(kind, address, any.bytes);
    // Of a completion the requester says where it goes.
    let requester = id(if kind == Kind::CompletionWithData { to[0] } else { from });
    let completer = id(from);
    (
        any.at_ps,
        from,
        Tlp { body, requester, completer, tag: body as u16 % 3, relaxed, id_ordered, ..plain },
        to,
    )
}

proptest! {
    #[test]
    fn everything_arrives_once_in_an_order_that_may_be(
        links in prop::collection::vec(any_link(), 2..9),
        packets in prop::collection::vec(any_packet(), 1..120),
        naps in prop::collection::vec(0u64..50_000, 9),
        members in any::<u16>(),
    ) {
        let ports = links.len() as u16;
        let mut receivers: Vec<_> = (0..ports).filter(|port| members >> port & 1 == 1).collect();
        if receivers.is_empty() {
            receivers.push(1);
        }
        let mut packets: Vec<_> = packets.into_iter().collect();
        packets.sort_by_key(|any| any.at_ps);
        let packets: Vec<_> =
            (0..).zip(&packets).map(|(body, any)| packet(*any, body, ports, &receivers)).collect();
        let sent: Vec<_> = packets.iter().map(|(at, from, tlp, _)| (*at, *from, *tlp)).collect();
        let run = || {
            let mut star = Star::new(Picoseconds(7000), &links, &[group(&receivers)]).unwrap();
            star.naps = naps[..links.len()].iter().map(|ps| Picoseconds(*ps)).collect();
            star.run(&sent);
            star
        };
        let star = run();
        star.assert_at_rest();
        prop_assert_eq!(star.refused, 0);
        let mut there: BTreeMap<u32, Vec<u16>> = BTreeMap::new();
        for one in &star.arrived {
            let (_, _, tlp, _) = &packets[one.tlp.body as usize];
            prop_assert_eq!((one.tlp.kind, one.tlp.length_bytes), (tlp.kind, tlp.length_bytes));
            there.entry(one.tlp.body).or_default().push(one.port);
        }
        for (_, _, tlp, to) in &packets {
            let mut found = there.remove(&tlp.body).unwrap_or_default();
            found.sort_unstable();
            prop_assert_eq!(&found, to, "{:?}", tlp);
        }
        let source = |tlp: &Tlp| packets[tlp.body as usize].1;
        for (place, second) in star.arrived.iter().enumerate() {
            for first in &star.arrived[place + 1..] {
                // `second` arrived in front of `first`, which was sent before it on the same way.
                let is_one_way = first.port == second.port && source(&first.tlp) == source(&second.tlp);
                if is_one_way && first.tlp.body < second.tlp.body {
                    prop_assert_ne!(may_pass(&second.tlp, &first.tlp), MayPass::No, "{:?} {:?}", second, first);
                }
            }
        }
        prop_assert_eq!(run().arrived, star.arrived);
    }
}
