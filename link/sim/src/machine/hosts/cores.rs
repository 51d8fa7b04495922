//! Time passes: events happen until a program has its turn.

use super::{HostId, Hosts, HostsEvent, LOST, Place};
use crate::des::Picoseconds;
use crate::machine::Next;
use crate::pcie::{Class, LinkEnd};

impl Hosts {
    /// Lets everything happen until it is the turn of a program; `None` when nothing more happens before or at `until`.
    pub fn advance(&mut self, until: Picoseconds) -> Option<Place> {
        loop {
            if let Some(place) = self.due.take() {
                return Some(place);
            }
            let event = self.calendar.next_until(until)?;
            self.happen(event);
        }
    }

    fn happen(&mut self, event: HostsEvent) {
        match event {
            HostsEvent::Link(event) => self.link_happens(event),
            HostsEvent::Hop(event) => self.hop_happens(event),
            HostsEvent::Switch(event) => self.switch_happens(event),
            HostsEvent::Turn { place, number } => self.turn_comes(place, number),
            HostsEvent::Tend(place) => self.tend(place),
            HostsEvent::RootSends(host) => self.root_sends(host),
            HostsEvent::RootAnswers(host) => self.root_answers(host),
            HostsEvent::HostSees(host) => self.host_sees(host),
            HostsEvent::EngineStarts(host) => self.engine_starts(host),
            HostsEvent::EngineAborts { host, number } => self.engine_aborts(host, number),
            HostsEvent::EngineSends(host) => self.engine_sends(host),
            HostsEvent::EngineLands(host) => self.engine_lands(host),
            HostsEvent::EngineTimesOut { host, id } => self.engine_times_out(host, id),
            HostsEvent::Interrupted(host) => self.handles_interrupt(host),
            HostsEvent::LoadTimesOut(place) => self.load_answered(place, Some(LOST)),
            HostsEvent::LinkChanges { host, is_up } => self.set_link(host, is_up),
        }
    }

    /// The program of a core has done what it wanted to; also before its first turn. One that polls has its turn at `until` at the latest.
    pub fn end_turn(&mut self, place: Place, next: Next, until: Picoseconds) {
        let (state, _) = self.core(place);
        state.next = next;
        state.until = until;
        self.settle_core(place);
    }

    /// Sends what a core has stored, and schedules its next turn if it can be known.
    pub(super) fn settle_core(&mut self, place: Place) {
        let LinkEnd { link, side } = self.host(place.host).root;
        // With a packet that waits for the link, its leaving is the event.
        if self.links[link].waiting(side, Class::Posted) == 0 {
            self.schedule_send(place.host);
        }
        let now = self.calendar.now();
        let (state, path) = self.core(place);
        let tend_at = state.core.tend_at(&path);
        if let Some(at) = tend_at.filter(|at| state.tended_at.is_none_or(|tended| tended > *at)) {
            state.tended_at = Some(at.max(now));
            self.calendar.schedule(at.max(now), HostsEvent::Tend(place));
        }
        let (state, _) = self.core(place);
        if !state.core.is_ready() {
            if state.next == Next::Poll {
                // What it waits for is not a change of memory.
                state.next = Next::Again;
            }
            return;
        }
        let (clock, until) = (state.core.clock(), state.until);
        match state.next {
            Next::Again => self.give_turn(place, clock),
            Next::At(at) => self.give_turn(place, clock.max(at)),
            Next::Poll => {
                // Its polls from here on are counted from when it was done.
                if until != Picoseconds::NEVER {
                    self.give_turn(place, clock.max(until));
                }
                self.core(place).0.polls = true;
            }
            Next::Never => return,
        }
        self.core(place).0.next = Next::Never;
    }

    /// A program gets its turn at `at`.
    fn give_turn(&mut self, place: Place, at: Picoseconds) {
        let (state, _) = self.core(place);
        state.polls = false;
        state.turn = state.turn.wrapping_add(1);
        let number = state.turn;
        self.calendar.schedule(at.max(self.calendar.now()), HostsEvent::Turn { place, number });
    }

    fn turn_comes(&mut self, place: Place, number: u32) {
        let now = self.calendar.now();
        let (state, mut path) = self.core(place);
        if state.turn != number {
            return;
        }
        state.polls = false;
        state.core.pass_to(now, &mut path);
        let clock = state.core.clock();
        if clock > now {
            // Interrupts came in between: the program goes on behind their handlers.
            self.give_turn(place, clock);
            return;
        }
        self.due = Some(place);
    }

    fn tend(&mut self, place: Place) {
        let now = self.calendar.now();
        let (state, mut path) = self.core(place);
        if state.tended_at == Some(now) {
            state.tended_at = None;
        }
        state.core.tend(now, &mut path);
        self.settle_core(place);
    }

    /// Something that programs of a host can see has changed: those that poll see it at their next poll.
    pub(super) fn host_changed(&mut self, host: HostId) {
        let now = self.calendar.now();
        for core in 0..self.settings.cores {
            let place = Place { host, core };
            let (state, _) = self.core(place);
            if !state.polls {
                continue;
            }
            let (clock, poll) = (state.core.clock(), state.core.settings().poll.0);
            let polls = now.since(clock).0.div_ceil(poll);
            self.give_turn(place, clock + Picoseconds(polls * poll));
        }
    }

    /// The answer to a core's load across is there, or never comes.
    pub(super) fn load_answered(&mut self, place: Place, lost: Option<u64>) {
        let now = self.calendar.now();
        let (state, mut path) = self.core(place);
        state.loaded = lost.unwrap_or(state.loaded);
        state.core.answered(now, &mut path);
        self.settle_core(place);
    }
}
