//! Whatever is sent arrives once, in an order that the table permits, into room that is there.

use beeline_link_sim::des::{Calendar, Model, Picoseconds, Stream, run, stream};
use beeline_link_sim::pcie::{
    AckRule, Advertised, Amount, Class, Encoding, Generation, Kind, Lanes, Limit, Link, LinkEvent, LinkId,
    LinkSettings, MayPass, Side, Tlp, UpdateRule, may_pass,
};
use proptest::prelude::*;
use rand::RngExt;

/// Two ends that send what they have at random times, and free what they get after random times.
struct Ends {
    link: Link,
    random: Stream,
    /// By side: what it has sent, and what has arrived there.
    sent: [Vec<Tlp>; 2],
    arrived: [Vec<Tlp>; 2],
    /// By side and class: what lies in the buffer there.
    held: [[Amount; 3]; 2],
    hold_ps: u64,
}

#[derive(Clone, Copy)]
enum Event {
    Link(LinkEvent),
    Send(Side, Tlp),
    Free(Side, Tlp),
}

impl From<LinkEvent> for Event {
    fn from(event: LinkEvent) -> Event {
        Event::Link(event)
    }
}

fn fits(limit: Limit, held: u32) -> bool {
    match limit {
        Limit::Finite(all) => held <= all,
        Limit::Infinite => true,
    }
}

impl Ends {
    fn arrives(&mut self, side: Side, tlp: Tlp, calendar: &mut Calendar<Event>) {
        self.arrived[side as usize].push(tlp);
        let class = tlp.kind.class() as usize;
        let held = &mut self.held[side as usize][class];
        held.headers += 1;
        held.data_units += tlp.data_units();
        // The receiver counts for itself: had the transmitter fewer than no credits, a buffer would run over.
        let room = self.link.settings().advertised[side as usize][class];
        assert!(fits(room.headers, held.headers) && fits(room.data_units, held.data_units), "{tlp:?}");
        let delay_ps = self.random.random_range(0..=self.hold_ps);
        calendar.schedule_in(Picoseconds(delay_ps), Event::Free(side, tlp));
    }
}

impl Model for Ends {
    type Event = Event;

    fn happen(&mut self, event: Event, calendar: &mut Calendar<Event>) {
        match event {
            Event::Link(event) => {
                if let Some(arrival) = self.link.happen(event, calendar) {
                    self.arrives(arrival.side, arrival.tlp, calendar);
                }
            }
            Event::Send(side, tlp) => {
                let body = self.sent[side as usize].len() as u32;
                let tlp = Tlp { body, ..tlp };
                self.sent[side as usize].push(tlp);
                self.link.send(side, tlp, calendar).expect("the link carries all these packets");
            }
            Event::Free(side, tlp) => {
                let held = &mut self.held[side as usize][tlp.kind.class() as usize];
                held.headers -= 1;
                held.data_units -= tlp.data_units();
                self.link.free(side, &tlp, calendar);
            }
        }
    }
}

fn any_packet() -> impl Strategy<Value = (Side, Tlp, u64)> {
    let kinds = vec![
        Kind::MemoryWrite,
        Kind::Message,
        Kind::MemoryRead,
        Kind::NonPostedWrite,
        Kind::Atomic,
        Kind::CompletionWithData,
        Kind::Completion,
    ];
    let side = prop::sample::select(vec![Side::Upstream, Side::Downstream]);
    let ids = (0u16..3, 0u16..3, 0u16..4);
    (side, prop::sample::select(kinds), 0u32..=253, 0u64..3, any::<[bool; 3]>(), ids, 0u64..200_000).prop_map(
        |(side, kind, length, skipped, [relaxed, id_ordered, digest], (requester, completer, tag), at_ps)| {
            let length_bytes = match kind {
                Kind::NonPostedWrite | Kind::Completion => 1,
                Kind::Atomic => 8,
                _ => length,
            };
            let plain = Tlp::new(kind, (1 << 33) + skipped, length_bytes);
            (side, Tlp { relaxed, id_ordered, digest, requester, completer, tag, ..plain }, at_ps)
        },
    )
}

fn any_settings() -> impl Strategy<Value = LinkSettings> {
    let room = || (1u32..6, 16u32..40).prop_map(|(headers, units)| Advertised::finite(headers, units));
    let advertised = prop_oneof![3 => room(), 1 => Just(Advertised::INFINITE)];
    let advertised = prop::array::uniform2(prop::array::uniform3(advertised));
    let lanes = prop::sample::select(vec![1u8, 2, 4, 8, 12, 16]);
    let rules = (0u64..100_000, 1u32..5, 0u64..100_000, 1u32..5);
    (prop::sample::select(Generation::ALL.to_vec()), lanes, advertised, rules, 0u64..50_000, 0usize..3)
        .prop_map(|(generation, lanes, advertised, rules, flight_ps, look_ahead)| LinkSettings {
            advertised,
            acknowledge: AckRule { after: Picoseconds(rules.0), packets: rules.1 },
            update: UpdateRule { after: Picoseconds(rules.2), one_in: rules.3 },
            flight: Picoseconds(flight_ps),
            look_ahead,
            ..LinkSettings::new(generation, Lanes::new(lanes).expect("a width that exists"))
        })
}

fn run_ends(settings: LinkSettings, packets: &[(Side, Tlp, u64)], seed: u64) -> (Ends, Picoseconds) {
    let mut calendar = Calendar::new();
    for (side, tlp, at_ps) in packets {
        calendar.schedule(Picoseconds(*at_ps), Event::Send(*side, *tlp));
    }
    let mut ends = Ends {
        link: Link::new(LinkId(0), settings).expect("settings of a link"),
        random: stream(seed, "ends"),
        sent: Default::default(),
        arrived: Default::default(),
        held: Default::default(),
        hold_ps: 100_000,
    };
    run(&mut ends, &mut calendar, Picoseconds::from_ns(1_000_000_000));
    assert!(calendar.is_empty(), "everything comes to an end");
    (ends, calendar.now())
}

/// What `side` sent is what arrived across, in an order that the table permits.
fn check_direction(ends: &Ends, side: Side) {
    let (sent, arrived) = (&ends.sent[side as usize], &ends.arrived[side.other() as usize]);
    assert_eq!(sent.len(), arrived.len(), "nothing is stuck when credits come back");
    let mut by_number = arrived.clone();
    by_number.sort_by_key(|tlp| tlp.body);
    assert_eq!(&by_number, sent, "each arrives once, as it was sent");
    for (place, second) in arrived.iter().enumerate() {
        for first in arrived[place + 1..].iter().filter(|first| first.body < second.body) {
            assert_ne!(may_pass(second, first), MayPass::No, "{second:?} over {first:?}");
        }
    }
    let carried = ends.link.carried(side);
    let useful = |tlp: &Tlp| if tlp.kind.has_data() { u64::from(tlp.length_bytes) } else { 0 };
    assert_eq!(
        carried.tlps.iter().map(|kind| kind.useful_bytes).sum::<u64>(),
        sent.iter().map(useful).sum::<u64>()
    );
    let encoding = ends.link.settings().generation.encoding();
    let wire: u64 = sent.iter().map(|tlp| u64::from(tlp.wire_bytes(encoding))).sum();
    let each = if encoding == Encoding::Flits { 0 } else { 8 };
    assert_eq!(carried.wire_bytes(), wire + carried.dllps * each);
}

fn check_credits(ends: &Ends, side: Side) {
    for class in Class::ALL {
        let advertised = ends.link.settings().advertised[side.other() as usize][class as usize];
        let left = ends.link.credits_left(side, class);
        assert!(advertised.headers == Limit::Infinite || advertised.headers == Limit::Finite(left.headers));
        let units = Limit::Finite(left.data_units);
        assert!(advertised.data_units == Limit::Infinite || advertised.data_units == units);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_packet_arrives_once_in_a_permitted_order(
        settings in any_settings(),
        packets in prop::collection::vec(any_packet(), 1..80),
        seed: u64,
    ) {
        let (ends, end) = run_ends(settings.clone(), &packets, seed);
        for side in [Side::Upstream, Side::Downstream] {
            check_direction(&ends, side);
            check_credits(&ends, side);
        }
        let (again, end_again) = run_ends(settings, &packets, seed);
        prop_assert_eq!(end, end_again, "a seed determines a run");
        prop_assert_eq!(ends.arrived, again.arrived);
    }
}
