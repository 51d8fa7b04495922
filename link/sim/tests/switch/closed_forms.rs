//! Times through a switch in which nothing else is.

use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::pcie::{Generation, Kind, Tlp};

use super::{GROUP_AT, SPAN_BYTES, Star, base, group, settings};

/// A line with its header and framing is 88 bytes, and a link of Gen1 x4 does a byte a ns.
const LINE_NS: u64 = 88;
const LATENCY_NS: u64 = 110;
/// Memory of the host, as far up as the devices: headers are as long.
const MEMORY_AT: u64 = 1 << 33;

fn star(devices: u16, groups: &[beeline_link_sim::pcie::Group]) -> Star {
    let links = vec![settings(Generation::Gen1, 4, 8); usize::from(devices) + 1];
    Star::new(Picoseconds::from_ns(LATENCY_NS), &links, groups).expect("a switch that can be")
}

fn line(address: u64) -> Tlp {
    Tlp::new(Kind::MemoryWrite, address, 64)
}

fn times(star: &Star) -> Vec<(u16, u64)> {
    star.arrived.iter().map(|arrived| (arrived.port, arrived.at.0 / 1000)).collect()
}

/// Both links and the switch, whatever the ports: to a device, to memory of the host, from device to device.
#[test]
fn a_packet_takes_both_links_and_the_switch() {
    for (from, address, to) in [(0, base(2), 2), (1, MEMORY_AT, 0), (1, base(3), 3)] {
        let mut star = star(3, &[]);
        star.run(&[(0, from, line(address))]);
        assert_eq!(times(&star), [(to, 2 * LINE_NS + LATENCY_NS)]);
        star.assert_at_rest();
    }
}

/// Through memory of the host a packet crosses the switch twice, and two links more: the way between peers is shorter by
/// that.
#[test]
fn peers_are_nearer_than_memory_by_a_crossing_and_two_links() {
    let mut near = star(2, &[]);
    near.run(&[(0, 1, line(base(2)))]);
    let mut far = star(2, &[]);
    // The second half begins long after the first, so that nothing of that is on its way.
    let later_ps = 5_000_000_000;
    far.run(&[(0, 1, line(MEMORY_AT)), (later_ps, 0, line(base(2)))]);
    let through_memory = far.arrived[0].at.0 + far.arrived[1].at.0 - later_ps;
    assert_eq!(through_memory - near.arrived[0].at.0, 1000 * (2 * LINE_NS + LATENCY_NS));
}

/// Copies leave at once, each by its own wire, to the same offset of each receiver, and none to the sender.
#[test]
fn copies_take_their_own_wires() {
    let mut star = star(4, &[group(&[1, 2, 4])]);
    star.run(&[(0, 0, line(GROUP_AT + 640)), (1_000_000, 2, line(GROUP_AT + 64))]);
    let at = 2 * LINE_NS + LATENCY_NS;
    assert_eq!(times(&star), [(1, at), (2, at), (4, at), (1, 1000 + at), (4, 1000 + at)]);
    for arrived in &star.arrived {
        assert_eq!(arrived.tlp.address - base(arrived.port), if arrived.at.0 < 1_000_000 { 640 } else { 64 });
    }
    assert_eq!(star.copies, 5);
    star.assert_at_rest();
}

/// Seven that answer at once come one wire time after the other.
#[test]
fn answers_to_one_port_share_its_wire() {
    let mut star = star(7, &[]);
    let packets: Vec<_> = (1..=7).map(|port| (0, port, line(MEMORY_AT))).collect();
    star.run(&packets);
    let expected: Vec<_> = (0..7).map(|nth| (0, (2 + nth) * LINE_NS + LATENCY_NS)).collect();
    assert_eq!(times(&star), expected);
}

/// Two that send without end to one port get half of it each, however much the first has sent before the other began.
#[test]
fn ingresses_take_turns() {
    let mut star = star(3, &[]);
    let tagged = |body, port: u16| Tlp { body, requester: port, ..line(base(3)) };
    let mut packets: Vec<_> = (0..20).map(|body| (0, 1, tagged(body, 1))).collect();
    packets.extend((0..10).map(|body| (400_000, 2, tagged(body, 2))));
    star.run(&packets);
    let from: Vec<_> = star.arrived.iter().map(|arrived| arrived.tlp.requester).collect();
    let second = from.iter().position(|port| *port == 2).unwrap();
    let turns = &from[second..second + 16];
    assert!(turns.iter().zip(&turns[1..]).all(|(one, next)| one != next), "{from:?}");
    star.assert_at_rest();
}

/// A device that frees nothing stops those that send to it. A port that has packets for it and for others has no room left
/// when they fill its buffer; another port goes on.
#[test]
fn a_slow_receiver_is_felt_where_its_packets_come_from() {
    let mut star = star(3, &[]);
    star.naps[3] = Picoseconds::from_ns(100_000);
    let mut packets: Vec<_> = (0..40).map(|_| (0, 0, line(base(3)))).collect();
    packets.push((1000, 0, line(base(2))));
    packets.push((1000, 1, line(base(2) + SPAN_BYTES / 2)));
    star.run(&packets);
    let to_two: Vec<_> = star.arrived.iter().filter(|arrived| arrived.port == 2).collect();
    assert_eq!(to_two[0].tlp.address, base(2) + SPAN_BYTES / 2);
    assert_eq!(to_two[0].at.0, 1000 + 1000 * (2 * LINE_NS + LATENCY_NS));
    // 40 packets, 8 of them in its own buffer and 8 in that of the switch, 8 at each nap.
    assert!(to_two[1].at.0 > 300_000_000, "{:?}", to_two[1]);
    star.assert_at_rest();
}

/// Of a group with one slow receiver, the others get as many as the room of the ingress lets in, and no more.
#[test]
fn room_is_free_when_the_last_copy_has_left() {
    let mut star = star(2, &[group(&[1, 2])]);
    star.naps[2] = Picoseconds::from_ns(1_000_000);
    let packets: Vec<_> = (0..40).map(|nth| (0, 0, line(GROUP_AT + nth * 64))).collect();
    star.run(&packets);
    let early = |port| {
        star.arrived.iter().filter(|arrived| arrived.port == port && arrived.at.0 < 500_000_000).count()
    };
    assert_eq!((early(1), early(2)), (16, 8));
    assert_eq!(star.arrived.len(), 80);
    star.assert_at_rest();
}
