//! A switch among links: a root and some devices that each take what comes, when they are awake.

mod closed_forms;
mod conservation;
mod refusals;

use beeline_link_sim::des::{Calendar, Model, Picoseconds, run};
use beeline_link_sim::pcie::{
    AckRule, Advertised, Class, Downstream, Entered, Generation, Group, Lanes, Limit, Link, LinkEnd,
    LinkEvent, LinkId, LinkSettings, Receiver, Side, Switch, SwitchError, SwitchEvent, Tlp, UPSTREAM_PORT,
};

/// Bytes of the addresses of each device, and of a group.
const SPAN_BYTES: u64 = 1 << 20;
/// Where the addresses of a port begin.
fn base(port: u16) -> u64 {
    (1 << 40) + u64::from(port) * SPAN_BYTES
}
/// Where those of the group of all devices begin.
const GROUP_AT: u64 = 1 << 44;

/// The requester ID of what is behind a port.
fn id(port: u16) -> u16 {
    port << 8
}

/// A packet that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrived {
    at: Picoseconds,
    port: u16,
    tlp: Tlp,
}

/// Link 0 leads to the root, link n to the device behind port n.
struct Star {
    links: Vec<Link>,
    switch: Switch,
    arrived: Vec<Arrived>,
    refused: u64,
    copies: u64,
    /// From an arrival to the room that is given back, by port.
    naps: Vec<Picoseconds>,
}

#[derive(Clone, Copy)]
enum Event {
    Link(LinkEvent),
    Switch(SwitchEvent),
    Send(u16, Tlp),
    Free(u16, Tlp),
}

impl From<LinkEvent> for Event {
    fn from(event: LinkEvent) -> Event {
        Event::Link(event)
    }
}

impl From<SwitchEvent> for Event {
    fn from(event: SwitchEvent) -> Event {
        Event::Switch(event)
    }
}

/// The side of the link of a port where the switch is.
fn inner(port: u16) -> Side {
    if port == UPSTREAM_PORT { Side::Downstream } else { Side::Upstream }
}

fn downstream(devices: u16) -> Vec<Downstream> {
    let of = |port| Downstream { addresses: base(port)..base(port + 1), requesters: id(port)..id(port + 1) };
    (1..=devices).map(of).collect()
}

fn group(receivers: &[u16]) -> Group {
    let receivers = receivers.iter().map(|port| Receiver::new(*port, base(*port))).collect();
    Group { addresses: GROUP_AT..GROUP_AT + SPAN_BYTES, receivers }
}

impl Star {
    fn new(latency: Picoseconds, links: &[LinkSettings], groups: &[Group]) -> Result<Star, SwitchError> {
        let link = |(n, settings): (u16, &LinkSettings)| {
            Link::new(LinkId(n), settings.clone()).expect("settings of a link")
        };
        let mut links: Vec<_> = (0..).zip(links).map(link).collect();
        let ends: Vec<_> = (0..links.len()).map(|link| LinkEnd { link, side: inner(link as u16) }).collect();
        let behind = downstream(links.len() as u16 - 1);
        let switch = Switch::new(latency, &ends, &behind, groups, &mut links)?;
        let naps = vec![Picoseconds::ZERO; links.len()];
        Ok(Star { links, switch, arrived: Vec::new(), refused: 0, copies: 0, naps })
    }

    /// Sends these packets, each from behind a port at a time, and lets everything happen.
    fn run(&mut self, packets: &[(u64, u16, Tlp)]) {
        let mut calendar = Calendar::new();
        for (at_ps, port, tlp) in packets {
            calendar.schedule(Picoseconds(*at_ps), Event::Send(*port, *tlp));
        }
        run(self, &mut calendar, Picoseconds::NEVER);
    }

    /// Nothing is inside, and every credit is back.
    fn assert_at_rest(&self) {
        assert_eq!(self.switch.held(), 0);
        for (port, link) in self.links.iter().enumerate() {
            for side in [Side::Upstream, Side::Downstream] {
                for class in Class::ALL {
                    let given = link.settings().advertised[side.other() as usize][class as usize];
                    let left = link.credits_left(side, class);
                    for (given, left) in [(given.headers, left.headers), (given.data_units, left.data_units)]
                    {
                        let is_back = given == Limit::Infinite || given == Limit::Finite(left);
                        assert!(is_back, "port {port}, {side:?}, {class:?}: {left} of {given:?}");
                    }
                    assert_eq!(link.waiting(side, class), 0);
                }
            }
        }
    }
}

impl Model for Star {
    type Event = Event;

    fn happen(&mut self, event: Event, calendar: &mut Calendar<Event>) {
        match event {
            Event::Link(event) => {
                let port = event.link.0;
                let Some(arrival) = self.links[usize::from(port)].happen(event, calendar) else {
                    return self.switch.settle(&mut self.links, calendar);
                };
                let tlp = arrival.tlp;
                if arrival.side == inner(port) {
                    match self.switch.enter(port, tlp, &mut self.links, calendar) {
                        Entered::Copies(copies) => self.copies += u64::from(copies),
                        Entered::Refused => self.refused += 1,
                    }
                } else {
                    self.arrived.push(Arrived { at: calendar.now(), port, tlp });
                    calendar.schedule_in(self.naps[usize::from(port)], Event::Free(port, tlp));
                }
            }
            Event::Switch(event) => self.switch.happen(event, &mut self.links, calendar),
            Event::Send(port, tlp) => {
                let from = inner(port).other();
                self.links[usize::from(port)].send(from, tlp, calendar).expect("it fits");
            }
            Event::Free(port, tlp) => {
                self.links[usize::from(port)].free(inner(port).other(), &tlp, calendar);
            }
        }
        self.switch.settle(&mut self.links, calendar);
    }
}

fn settings(generation: Generation, lanes: u8, lines: u32) -> LinkSettings {
    LinkSettings {
        max_payload_bytes: 128,
        advertised: [[Advertised::finite(lines, lines * 8); 3]; 2],
        ordered_sets: false,
        acknowledge: AckRule { after: Picoseconds::from_ns(1_000_000), packets: u32::MAX },
        ..LinkSettings::new(generation, Lanes::new(lanes).expect("a width that exists"))
    }
}
