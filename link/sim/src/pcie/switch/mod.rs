//! A switch: packets that come in by one of its ports leave by another, or by several.

mod egress;
mod routes;

use std::collections::VecDeque;

use self::egress::Egress;
use self::routes::{Route, Routes};
use super::{Class, Kind, Link, LinkEvent, Side, Tlp};
use crate::des::{Calendar, Picoseconds};

pub use routes::{Downstream, Group, Receiver, SwitchError, UPSTREAM_PORT};

/// The first packet that came in by a port has crossed the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchEvent {
    /// The port by which it came in.
    pub port: u16,
}

/// An end of a link, among the links of a model: where a port of a switch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEnd {
    pub link: usize,
    pub side: Side,
}

/// What becomes of a packet that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// It leaves by so many ports: 1 but for multicast, of which no copy goes back to where it came from.
    Copies(u16),
    /// No port has the address. A request that wants an answer gets one that says so (unsupported request).
    Refused,
}

/// A switch of one upstream port and any number of downstream ports.
///
/// A packet holds its room in the buffer of the port it came by until every egress that it goes to has put it on its wire:
/// with a slow receiver, a port runs out of room and packets to others wait behind those to it. Buffers are by ingress and
/// egress, so that nothing but room makes one egress wait for another. Each egress takes from its ingresses in turn, class by
/// class; of one ingress nothing passes what the ordering table forbids it to. It stores and forwards, as a
/// [`Hop`](super::Hop): `latency` is from the last byte on one link to the first that may leave on the other.
#[derive(Debug)]
pub struct Switch {
    latency: Picoseconds,
    routes: Routes,
    ports: Vec<Port>,
    /// Packets inside, by the number that their copies carry in `hold`.
    inside: Vec<Inside>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Port {
    end: LinkEnd,
    /// What came in by it, with the time at which it is across. Only the first has an event.
    crossing: VecDeque<(Picoseconds, Tlp, Route)>,
    egress: Egress,
}

/// What a packet inside still holds.
#[derive(Clone, Copy, Debug)]
struct Inside {
    /// The packet as it came, and by which port; `None` if the switch has made it itself.
    came: Option<(u16, Tlp)>,
    copies_left: u16,
}

impl Switch {
    /// An empty switch between these ends of `links`; the upstream port is the first. `downstream` says what is behind each
    /// other port, and `groups` to whom addresses are copied. It watches its ends.
    ///
    /// # Errors
    /// There is no such switch: addresses that two have, a group of nobody, links that carry packets of different sizes.
    pub fn new(
        latency: Picoseconds,
        ends: &[LinkEnd],
        downstream: &[Downstream],
        groups: &[Group],
        links: &mut [Link],
    ) -> Result<Switch, SwitchError> {
        let routes = Routes::new(ends.len(), downstream, groups)?;
        let sizes = |end: &LinkEnd| {
            let settings = links[end.link].settings();
            [
                ("max_payload_bytes", settings.max_payload_bytes),
                ("max_read_request_bytes", settings.max_read_request_bytes),
            ]
        };
        for (port, end) in ends.iter().enumerate() {
            for ((what, found), (_, first)) in sizes(end).into_iter().zip(sizes(&ends[0])) {
                if first != found {
                    return Err(SwitchError::Sizes { port, what, found, first });
                }
            }
        }
        for end in ends {
            links[end.link].watch(end.side);
        }
        let port =
            |end: &LinkEnd| Port { end: *end, crossing: VecDeque::new(), egress: Egress::new(ends.len()) };
        let ports = ends.iter().map(port).collect();
        Ok(Switch { latency, routes, ports, inside: Vec::new(), free: Vec::new() })
    }

    /// Says whether a port gets copies of what comes to a group from here on. At first all receivers of a group do. `false` if it
    /// is none of them.
    pub fn set_receives(&mut self, group: u16, port: u16, receives: bool) -> bool {
        self.routes.set_receives(group, port, receives)
    }

    /// A packet has arrived at a port. The switch gives its room back when it has left.
    pub fn enter<E: From<LinkEvent> + From<SwitchEvent>>(
        &mut self,
        port: u16,
        tlp: Tlp,
        links: &mut [Link],
        calendar: &mut Calendar<E>,
    ) -> Entered {
        let route = self.routes.route(port, &tlp);
        let copies = Routes::copies(route);
        if route != Route::Nowhere && copies > 0 {
            let hold = self.hold(Inside { came: Some((port, tlp)), copies_left: copies });
            self.cross(port, Tlp { hold, ..tlp }, route, calendar);
            return Entered::Copies(copies);
        }
        let LinkEnd { link, side } = self.ports[usize::from(port)].end;
        links[link].free(side, &tlp, calendar);
        if route != Route::Nowhere {
            return Entered::Copies(0);
        }
        if tlp.kind.class() == Class::NonPosted {
            let hold = self.hold(Inside { came: None, copies_left: 1 });
            let header = Tlp::new(Kind::Completion, 0, 0).header;
            let answer = Tlp { kind: Kind::Completion, header, hold, ..tlp };
            self.cross(port, answer, Route::Port(port), calendar);
        }
        Entered::Refused
    }

    /// An event of this switch happens.
    ///
    /// # Panics
    /// If the event is not one that this switch scheduled.
    pub fn happen<E: From<LinkEvent> + From<SwitchEvent>>(
        &mut self,
        event: SwitchEvent,
        links: &mut [Link],
        calendar: &mut Calendar<E>,
    ) {
        let crossing = &mut self.ports[usize::from(event.port)].crossing;
        let (_, tlp, route) =
            crossing.pop_front().expect("a packet crosses for each event that was scheduled");
        if let Some((at, ..)) = crossing.front() {
            calendar.schedule(*at, event.into());
        }
        match route {
            Route::Port(egress) => self.ports[usize::from(egress)].egress.push(event.port, tlp),
            Route::Group(group, receivers) => {
                for receiver in self.routes.receivers(group, receivers) {
                    let copy = Tlp { address: receiver.address(tlp.address), ..tlp };
                    self.ports[usize::from(receiver.port)].egress.push(event.port, copy);
                }
            }
            Route::Nowhere => {}
        }
        self.settle(links, calendar);
    }

    /// Gives back the room of packets that have left and lets the next ones leave. Call it when an event of a link at one of
    /// its ports has happened, and when something else was sent or freed there.
    pub fn settle<E: From<LinkEvent>>(&mut self, links: &mut [Link], calendar: &mut Calendar<E>) {
        loop {
            let mut has_moved = false;
            for port in 0..self.ports.len() {
                let LinkEnd { link, side } = self.ports[port].end;
                while let Some(tlp) = links[link].next_departed(side) {
                    self.left(tlp.hold, links, calendar);
                    has_moved = true;
                }
                for class in Class::ALL {
                    // One of a class waits at the link, so that its wire has no gap; who is next is decided here.
                    while links[link].waiting(side, class) == 0
                        && let Some(tlp) = self.ports[port].egress.take(class)
                    {
                        let sent = links[link].send(side, tlp, calendar);
                        sent.expect("the links of a switch agree on the sizes of packets");
                        has_moved = true;
                    }
                }
            }
            if !has_moved {
                return;
            }
        }
    }

    /// Packets inside: those that cross, those that wait, and those of which not every copy has left.
    pub fn held(&self) -> usize {
        self.inside.len() - self.free.len()
    }

    fn hold(&mut self, inside: Inside) -> u32 {
        if let Some(number) = self.free.pop() {
            self.inside[number as usize] = inside;
            return number;
        }
        self.inside.push(inside);
        self.inside.len() as u32 - 1
    }

    fn cross<E: From<SwitchEvent>>(&mut self, port: u16, tlp: Tlp, route: Route, calendar: &mut Calendar<E>) {
        let crossing = &mut self.ports[usize::from(port)].crossing;
        let at = calendar.now() + self.latency;
        if crossing.is_empty() {
            calendar.schedule(at, SwitchEvent { port }.into());
        }
        crossing.push_back((at, tlp, route));
    }

    /// A copy is on its wire; with the last one, the room where the packet came in is free.
    fn left<E: From<LinkEvent>>(&mut self, hold: u32, links: &mut [Link], calendar: &mut Calendar<E>) {
        let inside = &mut self.inside[hold as usize];
        inside.copies_left -= 1;
        if inside.copies_left > 0 {
            return;
        }
        self.free.push(hold);
        if let Some((port, tlp)) = inside.came {
            let LinkEnd { link, side } = self.ports[usize::from(port)].end;
            links[link].free(side, &tlp, calendar);
        }
    }
}
