//! Calls of an owner on its segment.

use crate::scope::{Fault, Scope};
use crate::state::{Connection, Listener, Segment, State, ToldOfLink, ToldOfUser};
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
        let member = &state.members[who];
        let life = member.entries.len() as u8;
        let is_fault = self.fault == Some(Fault::EntryIsUsedAgainUnderAClaim);
        let mut entries: Vec<u8> =
            member.entries.iter().copied().filter(|it| is_fault || !state.is_claimed(who, *it)).collect();
        entries.push(life);
        entries.sort_unstable();
        entries.dedup();
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
        entries.into_iter().map(made).collect()
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
                let is_up = down & 1 << by == 0;
                let told = if is_up { ToldOfLink::Up { is_changed: false } } else { ToldOfLink::Down };
                segment.prepared[usize::from(by)].get_or_insert(told);
                Ok(())
            }
            Call::SetAvailable(by) if segment.prepared[usize::from(by)].is_some() => {
                segment.available |= 1 << by;
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
        let refused = match segment.prepared[usize::from(by)] {
            _ if segment.is_empty => Some(Refused::IllegalOperation),
            None => Some(Refused::SegmentNotPrepared),
            Some(_) if !is_forced && segment.available & 1 << by == 0 => Some(Refused::IllegalOperation),
            Some(_) => None,
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
            segment.available &= !(1 << by);
        }
        vec![(Answer::Done, next)]
    }

    /// Takes the users off a segment, and tells them to look.
    fn force(&self, state: &mut State, owner: usize) {
        let Some((life, forced)) = state.members[owner].segment.as_ref().map(|it| (it.life, it.forced))
        else {
            return;
        };
        for member in &mut state.members {
            for connection in &mut member.connections {
                let Connection::Made(made) = connection else { continue };
                if (usize::from(made.owner), made.life, made.forced) == (owner, life, forced) {
                    made.is_forced = true;
                    member.is_rung |= !member.is_dead && self.fault != Some(Fault::ForceDoesNotRing);
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
