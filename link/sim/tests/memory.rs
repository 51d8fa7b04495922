//! A link in use allocates nothing, and stays as large as it is.

use beeline_link_sim::des::{Calendar, Model, Picoseconds, run};
use beeline_link_sim::pcie::{
    Advertised, Class, Generation, Kind, Lanes, Link, LinkEvent, LinkId, LinkSettings, Side, Tlp,
};

/// Writes down, reads up, and what answers them: all classes, with credits that run out.
struct Traffic {
    link: Link,
    arrived: u64,
}

impl Traffic {
    fn top_up(&mut self, calendar: &mut Calendar<LinkEvent>) {
        self.fill(Side::Upstream, Kind::MemoryWrite, calendar);
        // Answers share the wire with the writes: who asked faster than it is answered would let them pile up.
        if self.link.waiting(Side::Upstream, Class::Completion) < 6 {
            self.fill(Side::Downstream, Kind::MemoryRead, calendar);
        }
    }

    fn fill(&mut self, side: Side, kind: Kind, calendar: &mut Calendar<LinkEvent>) {
        while self.link.waiting(side, kind.class()) < 6 {
            let tlp = Tlp::new(kind, 1 << 32, 64);
            self.link.send(side, tlp, calendar).expect("64 bytes fit a packet");
        }
    }
}

impl Model for Traffic {
    type Event = LinkEvent;

    fn happen(&mut self, event: LinkEvent, calendar: &mut Calendar<LinkEvent>) {
        let Some(arrival) = self.link.happen(event, calendar) else { return };
        self.arrived += 1;
        self.link.free(arrival.side, &arrival.tlp, calendar);
        if arrival.tlp.kind == Kind::MemoryRead {
            let answer = Tlp::new(Kind::CompletionWithData, 1 << 32, 64);
            self.link.send(Side::Upstream, answer, calendar).expect("64 bytes fit a packet");
        }
        self.top_up(calendar);
    }
}

#[test]
fn a_link_allocates_nothing_once_it_is_under_way() {
    for generation in Generation::ALL {
        let lanes = Lanes::new(4).expect("a width that exists");
        let mut settings = LinkSettings::new(generation, lanes);
        settings.advertised = [[Advertised::finite(8, 40); 3]; 2];
        settings.flight = Picoseconds::from_ns(60);
        let mut traffic =
            Traffic { link: Link::new(LinkId(0), settings).expect("settings of a link"), arrived: 0 };
        let mut calendar = Calendar::new();
        traffic.top_up(&mut calendar);
        run(&mut traffic, &mut calendar, Picoseconds::from_ns(100_000));
        let before = traffic.arrived;
        let made = allocation_counter::measure(|| {
            run(&mut traffic, &mut calendar, Picoseconds::from_ns(400_000));
        });
        assert_eq!(made.count_total, 0, "{generation:?}");
        assert!(traffic.arrived > before * 3, "{generation:?}: it goes on");
    }
}
