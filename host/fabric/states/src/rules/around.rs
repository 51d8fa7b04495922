//! What happens to members: links, deaths, and what is on its way to them.

use crate::scope::{Fault, Scope};
use crate::state::{Connection, Listener, State, Told, ToldOfLink, ToldOfUser};
use crate::step::Call;

impl Scope {
    pub(super) fn set_link(&self, state: &State, who: usize, by: u8, is_up: bool) -> State {
        let mut state = state.clone();
        let member = &mut state.members[who];
        member.down = if is_up { member.down & !(1 << by) } else { member.down | 1 << by };
        member.link_changes += 1;
        member.is_looking = true;
        if let Some(Some(ToldOfLink::Up { is_changed })) =
            member.segment.as_mut().map(|segment| &mut segment.prepared[usize::from(by)])
        {
            *is_changed = true;
        }
        for (other, member) in state.members.iter_mut().enumerate() {
            for connection in &mut member.connections {
                let Connection::Made(made) = connection else { continue };
                if made.paths & 1 << by != 0 && (other == who || usize::from(made.owner) == who) {
                    if let Told::Up { is_changed } = &mut made.told {
                        *is_changed |= made.paths.count_ones() == 1;
                    }
                    if let Some(started) = made.sequence.as_mut().filter(|started| started.by == by) {
                        started.is_changed = true;
                    }
                    member.is_rung |=
                        other != who && !member.is_dead && self.fault != Some(Fault::LinkDoesNotRing);
                }
            }
        }
        state
    }

    pub(super) fn kill(&self, state: &State, who: usize) -> State {
        let mut state = state.clone();
        let member = &mut state.members[who];
        (member.is_dead, member.is_rung, member.is_looking) = (true, false, false);
        // What its program waited for and believed is gone with it. What others see of it stays until they learn.
        if let Some(segment) = &mut member.segment {
            segment.listener = Listener::Nobody;
            segment.told.fill(ToldOfUser::default());
        }
        if let Some(interrupt) = &mut member.interrupt {
            interrupt.heard = 0;
        }
        for connection in &mut member.connections {
            match connection {
                Connection::Made(made) => {
                    made.listener = Listener::Nobody;
                    (made.told, made.is_asked, made.sequence, made.was_told_of) =
                        (Told::Up { is_changed: false }, false, None, true);
                }
                _ => *connection = Connection::None,
            }
        }
        state
    }

    /// What happens to a member without a call of its program.
    pub(super) fn around(&self, state: &State, who: usize, call: Call) -> State {
        let mut state = state.clone();
        match call {
            Call::Learn(of) => {
                let member = &mut state.members[who];
                member.known_dead |= 1 << of;
                if let Some(interrupt) = &mut member.interrupt {
                    interrupt.heard &= !(1 << of);
                }
            }
            Call::Look => state.members[who].is_rung = false,
            _ => {
                for at in 0..state.members[who].connections.len() {
                    state = self.tried(&state, who, at);
                }
            }
        }
        state.members[who].is_looking = true;
        state
    }
}
