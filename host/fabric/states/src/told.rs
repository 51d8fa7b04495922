//! Events: the difference between how things stand and what a program has been told.

use std::cmp::Ordering;

use crate::scope::{Fault, Scope};
use crate::state::{Connection, Listener, Standing, State, Told, ToldOfLink};
use crate::step::{Event, Of};

impl Scope {
    /// The events that may be told next of a segment or a connection, each with what follows. None if all has been told.
    pub(crate) fn events(&self, state: &State, who: usize, of: Of) -> Vec<(Event, State)> {
        match of {
            Of::Segment => {
                let mut events = self.events_of_links(state, who);
                events.extend(self.events_of_users(state, who));
                events
            }
            Of::Connection(at) => self.event_of_connection(state, who, at).into_iter().collect(),
        }
    }

    fn events_of_links(&self, state: &State, who: usize) -> Vec<(Event, State)> {
        let member = &state.members[who];
        let Some(segment) = &member.segment else { return Vec::new() };
        let told = |by: u8| {
            let (next, event) = match (segment.prepared[usize::from(by)]?, member.is_up(by)) {
                (ToldOfLink::Up { is_changed: false }, true) | (ToldOfLink::Down, false) => return None,
                (ToldOfLink::Up { .. }, _) => (ToldOfLink::Down, Event::NotOperational(by)),
                (ToldOfLink::Down, true) => (ToldOfLink::Up { is_changed: false }, Event::Operational(by)),
            };
            let mut state = state.clone();
            state.members[who].segment.as_mut()?.prepared[usize::from(by)] = Some(next);
            Some((event, state))
        };
        (0..self.adapters).filter_map(told).collect()
    }

    fn events_of_users(&self, state: &State, who: usize) -> Vec<(Event, State)> {
        let Some(segment) = &state.members[who].segment else { return Vec::new() };
        let told = |user: usize| {
            let mut told = segment.told[user];
            let node = self.nodes[user];
            // Connections that were ended by force are told to be so before those that came since.
            let is_over = told.forced != segment.forced && told.count != 0;
            let now = if is_over { 0 } else { state.users(who, user) };
            let event = match now.cmp(&told.count) {
                _ if told.ended != 0 && !is_over && told.count == 0 => {
                    told.count = 1;
                    Event::Connect(node)
                }
                _ if told.ended != 0 && !is_over => {
                    told.count -= 1;
                    told.ended -= 1;
                    Event::Disconnect(node)
                }
                Ordering::Greater => {
                    told.count += 1;
                    Event::Connect(node)
                }
                Ordering::Less if state.members[who].knows_dead(user) => {
                    told.count -= if self.fault == Some(Fault::DeathIsTwoEvents) { 2 } else { 1 };
                    Event::LostBy(node)
                }
                Ordering::Less => {
                    told.count -= 1;
                    Event::Disconnect(node)
                }
                Ordering::Equal => return None,
            };
            told.forced = match (event, told.count) {
                (_, 0) => 0,
                (Event::Connect(_), _) => segment.forced,
                _ => told.forced,
            };
            let mut next = state.clone();
            next.members[who].segment.as_mut()?.told[user] = told;
            Some((event, next))
        };
        (0..self.nodes.len()).filter(|user| *user != who).filter_map(told).collect()
    }

    fn event_of_connection(&self, state: &State, who: usize, at: usize) -> Option<(Event, State)> {
        let Connection::Made(made) = &state.members[who].connections[at] else { return None };
        let standing = state.standing(who, made);
        let up = if standing == Standing::Operational { Told::Up { is_changed: false } } else { Told::Down };
        let is_early = self.fault == Some(Fault::LostBeforeConnect);
        let (told, event) = match (made.told, standing) {
            (Told::Lost, _) => return None,
            (Told::Connecting, Standing::Gone) if is_early => (Told::Lost, Event::IsLost),
            (Told::Connecting, _) => (up, Event::Connected),
            (_, Standing::Gone) => (Told::Lost, Event::IsLost),
            (told, _) if made.is_asked => (told, Event::IsAsked),
            (Told::Up { is_changed: false }, Standing::Operational)
            | (Told::Down, Standing::NotOperational) => {
                return None;
            }
            (Told::Up { .. }, _) => (Told::Down, Event::IsNotOperational),
            (Told::Down, Standing::Operational) => (up, Event::IsOperational),
        };
        let mut state = state.clone();
        if let Connection::Made(made) = &mut state.members[who].connections[at] {
            made.told = told;
            made.was_told_of |= event == Event::Connected;
            made.is_asked &= event != Event::IsAsked;
        }
        Some((event, state))
    }

    /// What a member's program is told of by itself: calls that wait, and callbacks.
    pub(crate) fn listened(&self, state: &State, who: usize) -> Vec<Of> {
        let member = &state.members[who];
        let of_segment = member.segment.as_ref().filter(|segment| segment.listener != Listener::Nobody);
        let connections = member.connections.iter().enumerate();
        let of_connections = connections.filter(|(_, connection)| connection.listener() != Listener::Nobody);
        let segment = of_segment.map(|_| Of::Segment);
        segment.into_iter().chain(of_connections.map(|(at, _)| Of::Connection(at))).collect()
    }

    /// Whether something has happened that a member's program is to be told of, and has not been.
    pub(crate) fn has_news(&self, state: &State, who: usize) -> bool {
        let is_alive = !state.members[who].is_dead;
        is_alive && self.listened(state, who).into_iter().any(|of| !self.events(state, who, of).is_empty())
    }
}

impl Connection {
    pub(crate) fn listener(&self) -> Listener {
        match self {
            Connection::None => Listener::Nobody,
            Connection::Connecting { listener, .. } => *listener,
            Connection::Made(made) => made.listener,
        }
    }

    pub(crate) fn listener_mut(&mut self) -> Option<&mut Listener> {
        match self {
            Connection::None => None,
            Connection::Connecting { listener, .. } => Some(listener),
            Connection::Made(made) => Some(&mut made.listener),
        }
    }
}
