//! Calls of an owner on its segment.

use crate::scope::{Fault, Scope};
use crate::state::{Connection, Listener, Made, Segment, State, ToldOfLink, ToldOfUser};
use crate::step::{Answer, Call, Refused};

impl Scope {
    pub(super) fn create(&self, state: &State, who: usize, is_empty: bool) -> Vec<(Answer, State)> {
        let has = |other: &usize| {
            let it = &state.members[*other];
            self.nodes[*other] == self.nodes[who] && !it.is_dead && it.segment.is_some()
        };
        if (0..self.owners).any(|other| has(&other)) {
            return vec![(Answer::Refused(Refused::SegmentidUsed), state.clone())];
        }
        let life = state.members[who].entries.len() as u8;
        let made = |entry: u8| {
            let mut state = state.clone();
            let listener = if self.has_callbacks { Listener::Callback } else { Listener::Nobody };
            let prepared = vec![None; usize::from(self.adapters)];
            let told = vec![ToldOfUser::default(); self.nodes.len()];
            let segment = Segment { life, forced: 0, is_empty, prepared, available: 0, listener, told };
            state.members[who].segment = Some(segment);
            state.members[who].entries.push(entry);
            (Answer::Created { entry }, state)
        };
        self.free_entries(state, who).into_iter().map(made).collect()
    }

    /// Steps from an empty segment to one that is available.
    pub(super) fn set_up(&self, state: &State, who: usize, call: Call) -> Vec<(Answer, State)> {
        let mut next = state.clone();
        let member = &mut next.members[who];
        let (down, Some(segment)) = (member.down, &mut member.segment) else { return Vec::new() };
        let outcome = match call {
            Call::Register if segment.is_empty => {
                segment.is_empty = false;
                Ok(())
            }
            _ if segment.is_empty || call == Call::Register => Err(Refused::IllegalOperation),
            Call::Prepare(by) => {
                for by in (0..self.adapters).filter(|each| self.adapters_of(by) & 1 << each != 0) {
                    let is_up = down & 1 << by == 0;
                    let told = if is_up { ToldOfLink::Up { is_changed: false } } else { ToldOfLink::Down };
                    segment.prepared[usize::from(by)].get_or_insert(told);
                }
                Ok(())
            }
            Call::SetAvailable(by) if segment.has_prepared() & self.adapters_of(by) != 0 => {
                segment.available |= segment.has_prepared() & self.adapters_of(by);
                Ok(())
            }
            _ => Err(Refused::SegmentNotPrepared),
        };
        vec![(outcome.map_or_else(Answer::Refused, |()| Answer::Done), next)]
    }

    pub(super) fn set_unavailable(
        &self,
        state: &State,
        who: usize,
        by: u8,
        is_forced: bool,
    ) -> Vec<(Answer, State)> {
        let Some(segment) = &state.members[who].segment else { return Vec::new() };
        let adapters = self.adapters_of(by);
        let refused = match segment.has_prepared() & adapters {
            _ if segment.is_empty => Some(Refused::IllegalOperation),
            0 => Some(Refused::SegmentNotPrepared),
            _ if !is_forced && segment.available & adapters == 0 => Some(Refused::IllegalOperation),
            _ => None,
        };
        if let Some(refused) = refused {
            return vec![(Answer::Refused(refused), state.clone())];
        }
        if is_forced && state.members[who].forces == self.forces {
            return Vec::new();
        }
        let mut next = state.clone();
        if is_forced {
            self.force(&mut next, who);
            next.members[who].forces += 1;
            next.members[who].is_looking = true;
        }
        if let Some(segment) = &mut next.members[who].segment {
            segment.forced += u8::from(is_forced);
            // Who is taken off a segment is told of by that alone.
            segment.told.iter_mut().filter(|_| is_forced).for_each(|told| told.ended = 0);
            segment.available &= !adapters;
        }
        vec![(Answer::Done, next)]
    }

    pub(super) fn notify(&self, state: &State, who: usize) -> Vec<(Answer, State)> {
        if state.members[who].segment.is_none() {
            return Vec::new();
        }
        let mut next = state.clone();
        let rings = self.fault != Some(Fault::NotifyDoesNotRing);
        Self::change_users(&mut next, who, rings, |made, is_dead| made.is_asked |= !is_dead);
        vec![(Answer::Done, next)]
    }

    /// Takes the users off a segment, and tells them to look.
    fn force(&self, state: &mut State, owner: usize) {
        let rings = self.fault != Some(Fault::ForceDoesNotRing);
        Self::change_users(state, owner, rings, |made, _| made.is_forced = true);
    }

    /// Changes each connection to a segment, and tells its member to look.
    fn change_users(state: &mut State, owner: usize, rings: bool, change: impl Fn(&mut Made, bool)) {
        let Some((life, forced)) = state.members[owner].segment.as_ref().map(|it| (it.life, it.forced))
        else {
            return;
        };
        for member in &mut state.members {
            for connection in &mut member.connections {
                let Connection::Made(made) = connection else { continue };
                if (usize::from(made.owner), made.life, made.forced) == (owner, life, forced) {
                    change(made, member.is_dead);
                    member.is_rung |= rings && !member.is_dead;
                }
            }
        }
    }

    pub(super) fn remove(&self, state: &State, who: usize, is_forced: bool) -> Vec<(Answer, State)> {
        let Some(segment) = &state.members[who].segment else { return Vec::new() };
        let is_used = (0..self.nodes.len()).any(|user| state.users(who, user) > 0);
        if is_used && !is_forced && self.fault != Some(Fault::RemovalForgetsUsers) {
            return vec![(Answer::Refused(Refused::Busy), state.clone())];
        }
        let is_cancelled = segment.listener == Listener::Waiting;
        let mut next = state.clone();
        if is_forced {
            self.force(&mut next, who);
        }
        next.members[who].segment = None;
        vec![(if is_cancelled { Answer::DoneAndCancelled } else { Answer::Done }, next)]
    }
}
