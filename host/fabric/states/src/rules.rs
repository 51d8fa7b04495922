//! What each call does in each state, as it is documented.

mod around;
mod interrupts;
mod local;
mod remote;

use crate::scope::Scope;
use crate::state::{Listener, State};
use crate::step::{Answer, Call, Event, Of, Refused, Step};

impl Scope {
    /// What may come of a call, each with the state that follows. Nothing if the call is not to be made in this state.
    pub(crate) fn outcomes(&self, state: &State, who: usize, call: Call) -> Vec<(Answer, State)> {
        match call {
            Call::Create { is_empty } => self.create(state, who, is_empty),
            Call::Register | Call::Prepare(_) | Call::SetAvailable(_) => self.set_up(state, who, call),
            Call::SetUnavailable { by, is_forced } => self.set_unavailable(state, who, by, is_forced),
            Call::Notify => self.notify(state, who),
            Call::Remove { is_forced } => self.remove(state, who, is_forced),
            Call::WaitLocal { is_blocking } => self.wait(state, who, Of::Segment, is_blocking),
            Call::WaitRemote { at, is_blocking } => self.wait(state, who, Of::Connection(at), is_blocking),
            Call::Connect { at, node, by } => match self.attempt(state, who, node, by) {
                Ok(made) => vec![(Answer::Done, self.connected(state, who, at, made))],
                Err((reason, next)) => vec![(Answer::Refused(reason), next)],
            },
            Call::Seek { at, node, by } => vec![(Answer::Done, self.seek(state, who, (at, node, by)))],
            Call::Disconnect(at) => self.disconnect(state, who, at),
            Call::StartSequence(at) => self.start(state, who, at),
            Call::CheckSequence(at) => self.check(state, who, at),
            Call::CreateInterrupt
            | Call::RemoveInterrupt
            | Call::ConnectInterrupt { .. }
            | Call::DisconnectInterrupt(_)
            | Call::Trigger(_)
            | Call::Hear => self.of_interrupts(state, who, call),
            Call::SetLink { by, is_up } => vec![(Answer::Done, self.set_link(state, who, by, is_up))],
            Call::Kill => vec![(Answer::Done, self.kill(state, who))],
            Call::Look | Call::Learn(_) | Call::Tick => vec![(Answer::Done, self.around(state, who, call))],
            Call::Told(of) => self.told(state, who, of),
        }
    }

    fn listener(state: &mut State, who: usize, of: Of) -> Option<&mut Listener> {
        let member = &mut state.members[who];
        match of {
            Of::Segment => member.segment.as_mut().map(|segment| &mut segment.listener),
            Of::Connection(at) => member.connections[at].listener_mut(),
        }
    }

    fn wait(&self, state: &State, who: usize, of: Of, is_blocking: bool) -> Vec<(Answer, State)> {
        let mut next = state.clone();
        match Self::listener(&mut next, who, of) {
            None | Some(Listener::Waiting) => return Vec::new(),
            Some(Listener::Callback) => {
                return vec![(Answer::Refused(Refused::IllegalOperation), state.clone())];
            }
            Some(listener) if is_blocking => *listener = Listener::Waiting,
            Some(_) => {}
        }
        let events = self.events(state, who, of);
        match events.is_empty() {
            true if is_blocking => vec![(Answer::Waits, next)],
            true => vec![(Answer::NoEvent, next)],
            false => events.into_iter().map(|(event, next)| (Answer::Event(event), next)).collect(),
        }
    }

    /// Tells what is waited for, or what a callback is for.
    fn told(&self, state: &State, who: usize, of: Of) -> Vec<(Answer, State)> {
        let told = |(event, mut state): (Event, State)| {
            if let Some(listener @ Listener::Waiting) = Self::listener(&mut state, who, of) {
                *listener = Listener::Nobody;
            }
            (Answer::Event(event), state)
        };
        self.events(state, who, of).into_iter().map(told).collect()
    }

    /// Makes a step, or several that are one for everybody.
    pub(crate) fn stepped(&self, state: &State, who: usize, call: Call) -> Vec<(Step, State)> {
        let outcomes = self.outcomes(state, who, call).into_iter();
        outcomes
            .map(|(answer, mut state)| {
                for member in 0..state.members.len() {
                    if state.members[member].is_looking && !self.has_news(&state, member) {
                        state.members[member].is_looking = false;
                    }
                }
                (Step { who, call, answer }, state)
            })
            .collect()
    }
}
