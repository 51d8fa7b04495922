//! Connecting, disconnecting, and sequences of a connection.

use crate::scope::{Fault, Scope};
use crate::state::{Connection, Listener, Made, Segment, Standing, Started, State, Told};
use crate::step::{Answer, Refused, Sequence};

impl Scope {
    /// A connection to the segment of a node, or why there is none, with what the attempt leaves behind.
    pub(super) fn attempt(
        &self,
        state: &State,
        who: usize,
        node: u8,
        by: u8,
    ) -> Result<Made, (Refused, State)> {
        let (own, adapters) = (state.members[who].down, self.adapters_of(by));
        if adapters & !own == 0 {
            return Err((Refused::NoLinkAccess, state.clone()));
        }
        let living = |other: &usize| self.nodes[*other] == node && !state.members[*other].is_dead;
        if !(0..self.nodes.len()).any(|other| living(&other)) {
            return Err((Refused::NodeNotResponding, state.clone()));
        }
        let found = (0..self.owners)
            .filter(living)
            .find_map(|owner| state.members[owner].segment.as_ref().map(|segment| (owner, segment)));
        let Some((owner, segment)) = found else { return Err((Refused::NoSuchSegment, state.clone())) };
        let mut next = state.clone();
        next.members[who].contacts |= 1 << owner;
        next.members[owner].contacts |= 1 << who;
        let paths = segment.available & adapters;
        if paths == 0 {
            return Err((Refused::ConnectionRefused, next));
        }
        if paths & !own == 0 {
            return Err((Refused::NoLinkAccess, next));
        }
        if paths & !own & !state.members[owner].down == 0 {
            return Err((Refused::NoRemoteLinkAccess, next));
        }
        let listener = if self.has_callbacks { Listener::Callback } else { Listener::Nobody };
        Ok(Made {
            owner: owner as u8,
            life: segment.life,
            forced: segment.forced,
            paths,
            listener,
            told: Told::Up { is_changed: false },
            is_asked: false,
            sequence: None,
            is_forced: false,
            was_told_of: true,
        })
    }

    pub(super) fn connected(&self, state: &State, who: usize, at: usize, made: Made) -> State {
        let mut state = state.clone();
        let owner = &mut state.members[usize::from(made.owner)];
        owner.contacts |= 1 << who;
        let listens = owner.segment.as_ref().is_some_and(|segment| segment.listener != Listener::Nobody);
        owner.is_rung |= listens && self.fault != Some(Fault::ConnectDoesNotRing);
        let member = &mut state.members[who];
        member.contacts |= 1 << made.owner;
        member.connects += 1;
        member.connections[at] = Connection::Made(made);
        state
    }

    pub(super) fn seek(&self, state: &State, who: usize, (at, node, by): (usize, u8, u8)) -> State {
        let mut next = state.clone();
        let listener = if self.has_callbacks { Listener::Callback } else { Listener::Nobody };
        next.members[who].connections[at] = Connection::Connecting { node, by, listener };
        self.tried(&next, who, at)
    }

    /// Whether an attempt would succeed if it were made now.
    pub(crate) fn would_connect(&self, state: &State, who: usize) -> bool {
        let would = |connection: &Connection| match connection {
            Connection::Connecting { node, by, .. } => self.attempt(state, who, *node, *by).is_ok(),
            _ => false,
        };
        state.members[who].connections.iter().any(would)
    }

    /// What follows when an attempt is made, if there is one.
    pub(super) fn tried(&self, state: &State, who: usize, at: usize) -> State {
        let Connection::Connecting { node, by, listener } = state.members[who].connections[at] else {
            return state.clone();
        };
        match self.attempt(state, who, node, by) {
            Ok(made) => {
                let (told, was_told_of) = (Told::Connecting, false);
                let mut state = self.connected(state, who, at, Made { listener, told, was_told_of, ..made });
                state.members[who].is_looking = true;
                state
            }
            Err((_, state)) => state,
        }
    }

    pub(super) fn disconnect(&self, state: &State, who: usize, at: usize) -> Vec<(Answer, State)> {
        let connection = &state.members[who].connections[at];
        let is_cancelled = match connection {
            Connection::None => return Vec::new(),
            connection => connection.listener() == Listener::Waiting,
        };
        let mut next = state.clone();
        next.members[who].connections[at] = Connection::None;
        if let Connection::Made(made) = connection
            && self.fault != Some(Fault::DisconnectDoesNotRing)
        {
            let owner = &mut next.members[usize::from(made.owner)];
            let is_it = |it: &&mut Segment| (it.life, it.forced) == (made.life, made.forced);
            if let Some(segment) = owner.segment.as_mut().filter(is_it).filter(|_| !owner.is_dead) {
                segment.told[who].ended += 1;
                owner.is_rung |= segment.listener != Listener::Nobody;
            }
        }
        vec![(if is_cancelled { Answer::DoneAndCancelled } else { Answer::Done }, next)]
    }

    pub(super) fn start(&self, state: &State, who: usize, at: usize) -> Vec<(Answer, State)> {
        let mut next = state.clone();
        let answer = match &mut next.members[who].connections[at] {
            Connection::None => return Vec::new(),
            Connection::Connecting { .. } => Answer::Refused(Refused::SegmentNotConnected),
            Connection::Made(made) => match state.standing(who, made) {
                Standing::Operational => {
                    made.sequence = state.path(who, made).map(|by| Started { by, is_changed: false });
                    Answer::Sequence(Sequence::Ok)
                }
                Standing::NotOperational => Answer::Sequence(Sequence::Pending),
                Standing::Gone => Answer::Sequence(Sequence::NotRetriable),
            },
        };
        // Where nobody checks sequences, all begin alike.
        if !self.has_sequences {
            next = state.clone();
        }
        vec![(answer, next)]
    }

    pub(super) fn check(&self, state: &State, who: usize, at: usize) -> Vec<(Answer, State)> {
        let Connection::Made(made) = &state.members[who].connections[at] else { return Vec::new() };
        let Some(Started { is_changed, .. }) = made.sequence else { return Vec::new() };
        let found = match (state.standing(who, made), is_changed) {
            (Standing::Gone, _) => Sequence::NotRetriable,
            (Standing::NotOperational, _) => Sequence::Pending,
            (Standing::Operational, true) => Sequence::Retriable,
            (Standing::Operational, false) => Sequence::Ok,
        };
        vec![(Answer::Sequence(found), state.clone())]
    }
}
