//! How many packets and events a second the simulation does, in real time, on one core.
//!
//! `cargo run --release -p beeline-link-sim --example rate`. Figures are of this machine and of now: an unquiet machine
//! gives less, and a model with more in it than a link gives less too.

use std::time::{Duration, Instant};

use beeline_link_sim::des::{Calendar, Model, Picoseconds, Stream, run, stream};
use beeline_link_sim::pcie::{
    Advertised, Generation, Kind, Lanes, Link, LinkEvent, LinkId, LinkSettings, Side, Tlp,
};
use rand::RngExt;

/// Events that each schedule one more, at a random distance: the core alone.
struct Churn(Stream);

impl Model for Churn {
    type Event = u64;

    fn happen(&mut self, event: u64, calendar: &mut Calendar<u64>) {
        calendar.schedule_in(Picoseconds(self.0.random_range(1..100_000)), event);
    }
}

/// Writes of 64 bytes that go to the device without a pause; each is freed when it is there.
struct Writes {
    link: Link,
    arrived: u64,
    /// Writes that wait at the sender; it tops them up.
    ahead: usize,
}

impl Writes {
    const LINE: Tlp = Tlp::new(Kind::MemoryWrite, 1 << 32, 64);

    fn top_up(&mut self, calendar: &mut Calendar<LinkEvent>) {
        while self.link.waiting(Side::Upstream, Self::LINE.kind.class()) < self.ahead {
            self.link.send(Side::Upstream, Self::LINE, calendar).expect("a line is a legal packet");
        }
    }
}

impl Model for Writes {
    type Event = LinkEvent;

    fn happen(&mut self, event: LinkEvent, calendar: &mut Calendar<LinkEvent>) {
        if let Some(arrival) = self.link.happen(event, calendar) {
            self.arrived += 1;
            self.link.free(arrival.side, &arrival.tlp, calendar);
            self.top_up(calendar);
        }
    }
}

fn report(what: &str, count: u64, took: Duration) {
    let seconds = took.as_secs_f64();
    println!("{what}: {:.1} M/s, {:.1} ns each", count as f64 / seconds / 1e6, seconds * 1e9 / count as f64);
}

fn main() {
    for scheduled in [10, 100, 10_000] {
        let mut calendar = Calendar::new();
        (0..scheduled).for_each(|event| calendar.schedule(Picoseconds(event), event));
        let mut model = Churn(stream(1, "churn"));
        let start = Instant::now();
        let events = run(&mut model, &mut calendar, Picoseconds(500_000_000_000 / scheduled));
        report(&format!("events, {scheduled} scheduled"), events, start.elapsed());
    }
    let finite = [[Advertised::finite(64, 256); 3]; 2];
    for (what, advertised) in [("infinite credits", [[Advertised::INFINITE; 3]; 2]), ("64 credits", finite)] {
        let lanes = Lanes::new(16).expect("a width that exists");
        let flight = Picoseconds::from_ns(100);
        let settings = LinkSettings { flight, advertised, ..LinkSettings::new(Generation::Gen4, lanes) };
        let link = Link::new(LinkId(0), settings).expect("settings of a link");
        let mut model = Writes { link, arrived: 0, ahead: 8 };
        let mut calendar = Calendar::new();
        model.top_up(&mut calendar);
        let start = Instant::now();
        let events = run(&mut model, &mut calendar, Picoseconds::from_ns(30_000_000));
        let per = events as f64 / model.arrived as f64;
        report(
            &format!("64 B writes, Gen4 x16, {what}, {per:.2} events each"),
            model.arrived,
            start.elapsed(),
        );
    }
}
