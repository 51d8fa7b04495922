//! Calls on interrupts of one group: each member that has one is connected to and triggered for itself.

use crate::scope::{Fault, Scope};
use crate::state::{Interrupt, State, Trigger};
use crate::step::{Answer, Call, Refused};

impl Scope {
    pub(super) fn of_interrupts(&self, state: &State, who: usize, call: Call) -> Vec<(Answer, State)> {
        match call {
            Call::CreateInterrupt => self.create_interrupt(state, who),
            Call::ConnectInterrupt { at, owner, by } => self.connect_interrupt(state, who, (at, owner, by)),
            Call::Trigger(at) => self.trigger(state, who, at),
            Call::Hear => {
                let heard = state.members[who].interrupt.map(|it| (Answer::Heard(it.heard), state.clone()));
                heard.into_iter().collect()
            }
            _ => {
                let mut next = state.clone();
                match call {
                    Call::DisconnectInterrupt(at) => next.members[who].triggers[at] = None,
                    _ => Self::remove_interrupt(&mut next, who),
                }
                vec![(Answer::Done, next)]
            }
        }
    }

    /// Nobody is refused because others have the number.
    fn create_interrupt(&self, state: &State, who: usize) -> Vec<(Answer, State)> {
        let life = state.members[who].entries.len() as u8;
        let made = |entry: u8| {
            let mut state = state.clone();
            state.members[who].interrupt = Some(Interrupt { life, heard: 0 });
            state.members[who].entries.push(entry);
            (Answer::Created { entry }, state)
        };
        self.free_entries(state, who).into_iter().map(made).collect()
    }

    fn remove_interrupt(state: &mut State, who: usize) {
        let member = &state.members[who];
        let entry = member.life().map_or(0, |life| member.entries[usize::from(life)]);
        let is_claimed = state.is_claimed(who, entry);
        let member = &mut state.members[who];
        member.interrupt = None;
        member.removed_under_users |= u8::from(is_claimed) << entry;
    }

    /// The entries that what a member makes next may get: those that nobody claims, and a new one.
    pub(super) fn free_entries(&self, state: &State, who: usize) -> Vec<u8> {
        let used = &state.members[who].entries;
        let is_fault = self.fault == Some(Fault::EntryIsUsedAgainUnderAClaim);
        let mut entries: Vec<u8> =
            used.iter().copied().filter(|it| is_fault || !state.is_claimed(who, *it)).collect();
        entries.push(used.len() as u8);
        entries.sort_unstable();
        entries.dedup();
        entries
    }

    fn connect_interrupt(
        &self,
        state: &State,
        who: usize,
        (at, owner, by): (usize, usize, u8),
    ) -> Vec<(Answer, State)> {
        if !state.members[who].is_up(by) {
            return vec![(Answer::Refused(Refused::NoLinkAccess), state.clone())];
        }
        let Some(Interrupt { life, .. }) = state.members[owner].interrupt else { return Vec::new() };
        let mut next = state.clone();
        next.members[who].contacts |= 1 << owner;
        next.members[owner].contacts |= 1 << who;
        if !state.members[owner].is_up(by) {
            return vec![(Answer::Refused(Refused::NoRemoteLinkAccess), next)];
        }
        next.members[who].connects += 1;
        next.members[who].triggers[at] = Some(Trigger { owner: owner as u8, life, by });
        vec![(Answer::Done, next)]
    }

    fn trigger(&self, state: &State, who: usize, at: usize) -> Vec<(Answer, State)> {
        let Some(Trigger { owner, life, by }) = state.members[who].triggers[at] else { return Vec::new() };
        let owner = usize::from(owner);
        let is_there = state.members[owner].interrupt.is_some_and(|it| it.life == life);
        let refused = if !is_there || state.members[who].knows_dead(owner) {
            Some(Refused::NotConnected)
        } else if !state.members[who].is_up(by) {
            Some(Refused::NoLinkAccess)
        } else if !state.members[owner].is_up(by) {
            Some(Refused::NoRemoteLinkAccess)
        } else {
            None
        };
        let mut next = state.clone();
        next.members[who].has_triggered |= u8::from(refused.is_none()) << owner;
        let owner = &mut next.members[owner];
        if let Some(interrupt) = owner.interrupt.as_mut().filter(|_| refused.is_none() && !owner.is_dead) {
            interrupt.heard |= 1 << who;
        }
        vec![(refused.map_or(Answer::Done, Answer::Refused), next)]
    }
}
