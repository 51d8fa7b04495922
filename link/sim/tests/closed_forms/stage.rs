//! A link with a device below it that writes and reads memory, and a memory above it that answers.

use beeline_link_sim::des::{Calendar, Model, Picoseconds, run};
use beeline_link_sim::pcie::{
    Answers, Cut, Kind, Link, LinkEvent, LinkId, LinkSettings, Side, Tlp, completions, requests,
};

/// The model.
pub struct Stage {
    pub link: Link,
    /// When the last packet arrived, at either side.
    pub last_arrival: Picoseconds,
    /// From a read request to the first of its completions.
    pub memory: Picoseconds,
    answers: Answers,
    calendar: Option<Calendar<Event>>,
}

#[derive(Clone, Copy)]
pub enum Event {
    Link(LinkEvent),
    Send(Side, Tlp),
    Answer(Tlp),
}

impl From<LinkEvent> for Event {
    fn from(event: LinkEvent) -> Event {
        Event::Link(event)
    }
}

impl Stage {
    pub fn new(settings: LinkSettings, answers: Answers) -> Stage {
        Stage {
            link: Link::new(LinkId(0), settings).expect("settings of a link"),
            last_arrival: Picoseconds::ZERO,
            memory: Picoseconds::ZERO,
            answers,
            calendar: Some(Calendar::new()),
        }
    }

    /// A packet leaves at `at`.
    pub fn send_at(&mut self, at: Picoseconds, from: Side, tlp: Tlp) {
        let calendar = self.calendar.as_mut().expect("the stage is not running");
        calendar.schedule(at, Event::Send(from, tlp));
    }

    /// The device writes `count` transfers of `size` bytes, `stride` apart, at once.
    pub fn write(&mut self, address: u64, size: u64, stride: u64, count: u64) {
        let most_bytes = self.link.settings().max_payload_bytes;
        self.transfer(Kind::MemoryWrite, most_bytes, address, size, stride, count);
    }

    /// The device reads them.
    pub fn read(&mut self, address: u64, size: u64, stride: u64, count: u64) {
        let most_bytes = self.link.settings().max_read_request_bytes;
        self.transfer(Kind::MemoryRead, most_bytes, address, size, stride, count);
    }

    fn transfer(&mut self, kind: Kind, most_bytes: u32, address: u64, size: u64, stride: u64, count: u64) {
        for index in 0..count {
            for piece in requests(address + index * stride, size, most_bytes, Cut::WhenFull) {
                let tlp = Tlp::new(kind, piece.address, piece.length_bytes);
                self.send_at(Picoseconds::ZERO, Side::Downstream, tlp);
            }
        }
    }

    /// Runs until no event is left.
    pub fn run(&mut self) {
        let mut calendar = self.calendar.take().expect("the stage is not running");
        run(self, &mut calendar, Picoseconds::NEVER);
        self.calendar = Some(calendar);
    }

    fn answer(&mut self, request: Tlp, calendar: &mut Calendar<Event>) {
        let settings = self.link.settings();
        let pieces = completions(
            request.address,
            u64::from(request.length_bytes),
            settings.completion_boundary_bytes,
            settings.max_payload_bytes,
            self.answers,
        );
        for piece in pieces {
            let tlp = Tlp::new(Kind::CompletionWithData, piece.address, piece.length_bytes);
            self.link.send(Side::Upstream, tlp, calendar).expect("completions are cut to fit");
        }
    }
}

impl Model for Stage {
    type Event = Event;

    fn happen(&mut self, event: Event, calendar: &mut Calendar<Event>) {
        match event {
            Event::Link(event) => {
                let Some(arrival) = self.link.happen(event, calendar) else { return };
                self.last_arrival = calendar.now();
                self.link.free(arrival.side, &arrival.tlp, calendar);
                if arrival.tlp.kind == Kind::MemoryRead {
                    calendar.schedule_in(self.memory, Event::Answer(arrival.tlp));
                }
            }
            Event::Send(from, tlp) => {
                self.link.send(from, tlp, calendar).expect("requests are cut to fit");
            }
            Event::Answer(request) => self.answer(request, calendar),
        }
    }
}
