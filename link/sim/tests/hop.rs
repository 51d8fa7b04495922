//! Two links in a row: time, back-pressure, and that nothing is lost between them.

use beeline_link_sim::des::{Calendar, Model, Picoseconds, run};
use beeline_link_sim::pcie::{
    AckRule, Advertised, Amount, Class, Generation, Hop, HopEvent, Kind, Lanes, Link, LinkEvent, LinkId,
    LinkSettings, MayPass, Side, Tlp, may_pass,
};
use proptest::prelude::*;

const UPPER: LinkId = LinkId(0);
const LOWER: LinkId = LinkId(1);

/// A root, a switch and a device. Packets that arrive at the ends are freed at once, those at the device when it is awake.
struct Row {
    upper: Link,
    lower: Link,
    hop: Hop,
    /// How many packets one may pass at the hop.
    passes: usize,
    awake: bool,
    asleep: Vec<Tlp>,
    arrived: [Vec<Tlp>; 2],
    last_arrival: Picoseconds,
}

#[derive(Clone, Copy)]
enum Event {
    Link(LinkEvent),
    Hop(HopEvent),
    Send(Side, Tlp),
    Wake,
}

impl From<LinkEvent> for Event {
    fn from(event: LinkEvent) -> Event {
        Event::Link(event)
    }
}

impl From<HopEvent> for Event {
    fn from(event: HopEvent) -> Event {
        Event::Hop(event)
    }
}

impl Row {
    fn new(settings: [LinkSettings; 2], latency: Picoseconds, awake: bool) -> Row {
        let [upper, lower] = settings;
        let mut upper = Link::new(UPPER, upper).expect("settings of a link");
        let mut lower = Link::new(LOWER, lower).expect("settings of a link");
        let hop = Hop::new(0, latency, &mut upper, &mut lower);
        let (asleep, arrived) = (Vec::new(), Default::default());
        Row { upper, lower, hop, passes: 0, awake, asleep, arrived, last_arrival: Picoseconds::ZERO }
    }

    fn arrives(&mut self, link: LinkId, side: Side, tlp: Tlp, calendar: &mut Calendar<Event>) {
        match (link, side) {
            (UPPER, Side::Downstream) | (LOWER, Side::Upstream) => {
                return self.hop.enter_passing(side, tlp, self.passes, calendar);
            }
            (UPPER, Side::Upstream) => self.upper.free(side, &tlp, calendar),
            _ if self.awake => self.lower.free(side, &tlp, calendar),
            _ => self.asleep.push(tlp),
        }
        self.arrived[side as usize].push(tlp);
        self.last_arrival = calendar.now();
    }
}

impl Model for Row {
    type Event = Event;

    fn happen(&mut self, event: Event, calendar: &mut Calendar<Event>) {
        match event {
            Event::Link(event) => {
                let link = if event.link == UPPER { &mut self.upper } else { &mut self.lower };
                if let Some(arrival) = link.happen(event, calendar) {
                    self.arrives(event.link, arrival.side, arrival.tlp, calendar);
                }
            }
            Event::Hop(event) => self.hop.happen(event, &mut self.upper, &mut self.lower, calendar),
            Event::Send(Side::Upstream, tlp) => {
                self.upper.send(Side::Upstream, tlp, calendar).expect("it fits");
            }
            Event::Send(Side::Downstream, tlp) => {
                self.lower.send(Side::Downstream, tlp, calendar).expect("it fits");
            }
            Event::Wake => {
                self.awake = true;
                for tlp in std::mem::take(&mut self.asleep) {
                    self.lower.free(Side::Downstream, &tlp, calendar);
                }
            }
        }
        self.hop.settle(&mut self.upper, &mut self.lower, calendar);
    }
}

fn settings(generation: Generation, lanes: u8, posted_lines: u32) -> LinkSettings {
    let lanes = Lanes::new(lanes).expect("a width that exists");
    LinkSettings {
        max_payload_bytes: 128,
        advertised: [[Advertised::finite(posted_lines, posted_lines * 4); 3]; 2],
        ordered_sets: false,
        acknowledge: AckRule { after: Picoseconds::from_ns(1_000_000), packets: u32::MAX },
        ..LinkSettings::new(generation, lanes)
    }
}

const LINE: Tlp = Tlp::new(Kind::MemoryWrite, 1 << 32, 64);

#[test]
fn a_packet_takes_both_links_and_the_hop() {
    let links = [settings(Generation::Gen1, 4, 8), settings(Generation::Gen2, 1, 8)];
    let mut row = Row::new(links, Picoseconds::from_ns(150), true);
    let mut calendar = Calendar::new();
    calendar.schedule(Picoseconds::ZERO, Event::Send(Side::Upstream, LINE));
    run(&mut row, &mut calendar, Picoseconds::NEVER);
    // 88 bytes of 1 ns, the hop, 88 bytes of 2 ns.
    assert_eq!(row.last_arrival, Picoseconds::from_ns(88 + 150 + 176));
}

/// A device that frees nothing fills its own buffer and that of the hop, and no more leaves the root.
#[test]
fn back_pressure_is_felt_at_the_root() {
    let (at_hop, at_device) = (6, 4);
    let mut row = Row::new(
        [settings(Generation::Gen3, 8, at_hop), settings(Generation::Gen3, 8, at_device)],
        Picoseconds(1000),
        false,
    );
    let mut calendar = Calendar::new();
    for _ in 0..50 {
        calendar.schedule(Picoseconds::ZERO, Event::Send(Side::Upstream, LINE));
    }
    run(&mut row, &mut calendar, Picoseconds::from_ns(100_000));
    assert_eq!(row.arrived[Side::Downstream as usize].len(), at_device as usize);
    assert_eq!(row.upper.waiting(Side::Upstream, Class::Posted), 50 - (at_hop + at_device) as usize);
    assert_eq!(row.upper.credits_left(Side::Upstream, Class::Posted), Amount::default());
    calendar.schedule(Picoseconds::from_ns(2_000_000), Event::Wake);
    run(&mut row, &mut calendar, Picoseconds::NEVER);
    assert_eq!(row.arrived[Side::Downstream as usize].len(), 50);
    assert_eq!(row.upper.credits_left(Side::Upstream, Class::Posted), Amount { headers: 6, data_units: 24 });
}

proptest! {
    #[test]
    fn nothing_is_lost_and_no_rule_broken(
        packets in prop::collection::vec((any::<[bool; 3]>(), 0usize..4, 0u16..3, 0u64..100_000), 1..80),
        generations in prop::array::uniform2(prop::sample::select(Generation::ALL.to_vec())),
        lines in prop::array::uniform2(2u32..8),
        look_ahead in 0usize..3,
        passes in 0usize..4,
    ) {
        let kinds = [Kind::MemoryWrite, Kind::MemoryRead, Kind::NonPostedWrite, Kind::CompletionWithData];
        let link = |n: usize| LinkSettings { look_ahead, ..settings(generations[n], 4, lines[n]) };
        let mut row = Row::new([link(0), link(1)], Picoseconds(7000), true);
        row.passes = passes;
        let mut calendar = Calendar::new();
        let mut packets: Vec<_> = packets;
        packets.sort_by_key(|packet| packet.3);
        for (body, ([down, relaxed, id_ordered], kind, requester, at_ps)) in packets.iter().enumerate() {
            let plain = Tlp::new(kinds[*kind], 0, if *kind == 2 { 4 } else { 64 });
            let tlp = Tlp {
                body: body as u32, relaxed: *relaxed, id_ordered: *id_ordered, requester: *requester, ..plain
            };
            let from = if *down { Side::Upstream } else { Side::Downstream };
            calendar.schedule(Picoseconds(*at_ps), Event::Send(from, tlp));
        }
        run(&mut row, &mut calendar, Picoseconds::NEVER);
        prop_assert_eq!(row.arrived[0].len() + row.arrived[1].len(), packets.len());
        for arrived in &row.arrived {
            for (place, second) in arrived.iter().enumerate() {
                for first in arrived[place + 1..].iter().filter(|first| first.body < second.body) {
                    prop_assert_ne!(may_pass(second, first), MayPass::No, "{:?} over {:?}", second, first);
                }
            }
        }
    }
}
