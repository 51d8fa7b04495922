//! The model, for a checker: which calls are made in a state, and what must hold in every state.

use stateright::{Model, Property};

use crate::scope::Scope;
use crate::state::{Connection, Made, Member, Standing, State, Told};
use crate::step::{Call, Step};

impl Scope {
    pub(crate) fn first(&self) -> State {
        let member = |_: &u8| Member {
            connections: vec![Connection::None; self.connections],
            triggers: vec![None; self.connections],
            ..Member::default()
        };
        State { members: self.nodes.iter().map(member).collect() }
    }

    /// Every step from a state, each with the state that follows.
    pub(crate) fn steps(&self, state: &State) -> Vec<(Step, State)> {
        let members = 0..state.members.len();
        let looking = members.clone().find(|who| state.members[*who].is_looking);
        if let Some(who) = looking {
            return self.tellings(state, who);
        }
        let mut steps: Vec<_> = members.clone().flat_map(|who| self.of_around(state, who)).collect();
        if self.is_prompt && !steps.is_empty() {
            steps.truncate(1);
            return steps;
        }
        for who in members.filter(|who| !state.members[*who].is_dead) {
            steps.extend(self.tellings(state, who));
            let calls = if self.is_of_interrupts {
                self.calls_on_interrupts(state, who)
            } else {
                let mut calls = self.calls_of_owner(state, who);
                calls.extend(self.calls_of_user(state, who));
                calls
            };
            for call in self.calls_of_any(state, who).into_iter().chain(calls) {
                steps.extend(self.stepped(state, who, call));
            }
        }
        steps
    }

    fn tellings(&self, state: &State, who: usize) -> Vec<(Step, State)> {
        self.listened(state, who)
            .into_iter()
            .flat_map(|of| self.stepped(state, who, Call::Told(of)))
            .collect()
    }

    /// What is on its way to a member.
    fn of_around(&self, state: &State, who: usize) -> Vec<(Step, State)> {
        let member = &state.members[who];
        if member.is_dead {
            return Vec::new();
        }
        let is_news =
            |of: &usize| state.members[*of].is_dead && member.has_contact(*of) && !member.knows_dead(*of);
        let mut calls: Vec<Call> = (0..state.members.len()).filter(is_news).map(Call::Learn).collect();
        calls.extend(member.is_rung.then_some(Call::Look));
        calls.extend(self.would_connect(state, who).then_some(Call::Tick));
        calls.into_iter().flat_map(|call| self.stepped(state, who, call)).collect()
    }

    fn calls_of_owner(&self, state: &State, who: usize) -> Vec<Call> {
        let member = &state.members[who];
        let mut calls = Vec::new();
        if who >= self.owners {
            return calls;
        }
        if member.segment.is_none() {
            if member.entries.len() < usize::from(self.lives) {
                calls.push(Call::Create { is_empty: false });
                calls.extend(self.has_empty.then_some(Call::Create { is_empty: true }));
            }
            return calls;
        }
        calls.extend(self.has_empty.then_some(Call::Register));
        for by in self.numbers_of_adapters() {
            calls.extend([Call::Prepare(by), Call::SetAvailable(by)]);
            calls.extend([false, true].map(|is_forced| Call::SetUnavailable { by, is_forced }));
        }
        calls.extend(self.has_notices.then_some(Call::Notify));
        calls.extend([false, true].map(|is_forced| Call::Remove { is_forced }));
        calls.push(Call::WaitLocal { is_blocking: false });
        calls.extend(self.has_waits.then_some(Call::WaitLocal { is_blocking: true }));
        calls
    }

    fn calls_of_user(&self, state: &State, who: usize) -> Vec<Call> {
        let member = &state.members[who];
        let mut calls = Vec::new();
        if who < self.owners {
            return calls;
        }
        let free = member.connections.iter().position(|connection| *connection == Connection::None);
        if let Some(at) = free.filter(|_| member.connects < self.connects) {
            for by in self.numbers_of_adapters() {
                let node = self.nodes[0];
                calls.push(Call::Connect { at, node, by });
                let seeks = member.connections.iter().any(|it| matches!(it, Connection::Connecting { .. }));
                calls.extend((self.has_seekers && !seeks).then_some(Call::Seek { at, node, by }));
            }
        }
        for (at, _) in member.connections.iter().enumerate().filter(|(_, it)| **it != Connection::None) {
            calls.extend([Call::Disconnect(at), Call::StartSequence(at), Call::CheckSequence(at)]);
            calls.push(Call::WaitRemote { at, is_blocking: false });
            calls.extend(self.has_waits.then_some(Call::WaitRemote { at, is_blocking: true }));
        }
        calls
    }

    fn calls_on_interrupts(&self, state: &State, who: usize) -> Vec<Call> {
        let member = &state.members[who];
        if who < self.owners {
            return match member.interrupt {
                Some(_) => vec![Call::RemoveInterrupt, Call::Hear],
                None if member.entries.len() < usize::from(self.lives) => vec![Call::CreateInterrupt],
                None => Vec::new(),
            };
        }
        let free = member.triggers.iter().position(Option::is_none);
        let mut calls = Vec::new();
        if let Some(at) = free.filter(|_| member.connects < self.connects) {
            // A registry has no others.
            let there = (0..self.owners).filter(|owner| {
                let it = &state.members[*owner];
                it.interrupt.is_some() && !it.is_dead
            });
            let by = || self.numbers_of_adapters();
            calls
                .extend(there.flat_map(|owner| by().map(move |by| Call::ConnectInterrupt { at, owner, by })));
        }
        for at in (0..member.triggers.len()).filter(|at| member.triggers[*at].is_some()) {
            calls.extend([Call::DisconnectInterrupt(at), Call::Trigger(at)]);
        }
        calls
    }

    fn calls_of_any(&self, state: &State, who: usize) -> Vec<Call> {
        let member = &state.members[who];
        let mut calls = Vec::new();
        if member.link_changes < self.link_changes {
            calls.extend((0..self.adapters).map(|by| Call::SetLink { by, is_up: !member.is_up(by) }));
        }
        let dead = state.members.iter().filter(|member| member.is_dead).count();
        calls.extend((dead < usize::from(self.deaths)).then_some(Call::Kill));
        calls
    }
}

impl Model for Scope {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![self.first()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        actions.extend(self.steps(state).into_iter().map(|(step, _)| step));
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        self.stepped(state, step.who, step.call).into_iter().find(|(it, _)| *it == step).map(|(_, next)| next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("a connection ends by force, by death or by its program", ends_by_force),
            Property::always("an event that a program waits for is told", is_told),
            Property::always("an entry is not used again under a claim", is_unclaimed),
            Property::always("no more connections end than were made", counts_are_right),
            Property::always("a connection is told of before its end", is_told_of_first),
        ]
    }
}

fn made_of(state: &State) -> impl Iterator<Item = (usize, &Made)> {
    let living = state.members.iter().enumerate().filter(|(_, member)| !member.is_dead);
    living.flat_map(|(who, member)| member.made().map(move |made| (who, made)))
}

fn ends_by_force(_: &Scope, state: &State) -> bool {
    made_of(state).all(|(who, made)| {
        let is_dead = state.members[who].knows_dead(usize::from(made.owner));
        state.standing(who, made) != Standing::Gone || made.is_forced || is_dead
    })
}

fn is_told(scope: &Scope, state: &State) -> bool {
    (0..state.members.len()).all(|who| {
        let member = &state.members[who];
        !scope.has_news(state, who) || member.is_rung || member.is_looking
    })
}

fn is_unclaimed(_: &Scope, state: &State) -> bool {
    let owners = state.members.iter().enumerate().filter(|(_, member)| !member.is_dead);
    owners.filter_map(|(who, member)| Some((who, member, member.life()?))).all(|(owner, member, life)| {
        let entry = member.entries[usize::from(life)];
        let is_old = |of: u8, other: u8| {
            usize::from(of) == owner && other != life && member.entries[usize::from(other)] == entry
        };
        let users = || (0..state.members.len()).filter(|user| !member.knows_dead(*user));
        let made = users().flat_map(|user| state.members[user].made());
        let triggers = users().flat_map(|user| state.members[user].triggers());
        made.map(|made| (made.owner, made.life))
            .chain(triggers.map(|trigger| (trigger.owner, trigger.life)))
            .all(|(of, life)| !is_old(of, life))
    })
}

fn counts_are_right(_: &Scope, state: &State) -> bool {
    let segments = state.members.iter().filter_map(|member| member.segment.as_ref());
    segments.flat_map(|segment| &segment.told).all(|told| told.count >= 0)
}

fn is_told_of_first(_: &Scope, state: &State) -> bool {
    made_of(state).all(|(_, made)| made.was_told_of || matches!(made.told, Told::Connecting))
}
