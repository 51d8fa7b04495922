//! Time passes: events happen until a program has its turn.

use std::cell::RefCell;
use std::rc::Rc;

use beeline_contract_device::Device;

use super::state::Around;
use super::{CoreId, Event, Machine, MachineError, MachineSettings, Next, Pause};
use crate::des::Picoseconds;
use crate::pcie::{Class, Side};

/// A machine that the programs on its cores share. Clones are the same machine.
pub struct Sim<D> {
    pub(super) machine: Rc<RefCell<Machine<D>>>,
}

impl<D> Clone for Sim<D> {
    fn clone(&self) -> Self {
        Sim { machine: Rc::clone(&self.machine) }
    }
}

impl<D: Device> Sim<D> {
    /// A machine at time zero. For one seed, programs that do the same see the same.
    ///
    /// # Errors
    /// There is no such machine.
    pub fn new(device: D, settings: MachineSettings, seed: u64) -> Result<Self, MachineError> {
        Sim::with_devices(vec![device], settings, seed)
    }

    /// A machine with a device for each branch of its switch.
    ///
    /// # Errors
    /// There is no such machine; there are more devices or fewer than branches.
    pub fn with_devices(devices: Vec<D>, settings: MachineSettings, seed: u64) -> Result<Self, MachineError> {
        Ok(Sim { machine: Rc::new(RefCell::new(Machine::new(devices, settings, seed)?)) })
    }

    /// Looks at the machine, or changes it.
    pub fn with<T>(&self, f: impl FnOnce(&mut Machine<D>) -> T) -> T {
        f(&mut self.machine.borrow_mut())
    }

    /// Lets everything happen until there is something for the caller to do; `None` when nothing more happens before or at
    /// `until`, where time stands then.
    pub fn advance(&self, until: Picoseconds) -> Option<Pause> {
        self.machine.borrow_mut().advance(until)
    }

    /// See [`Machine::end_turn`].
    pub fn end_turn(&self, core: CoreId, next: Next) {
        self.machine.borrow_mut().end_turn(core, next);
    }

    /// A core does something for so long, besides its accesses: what software costs.
    pub fn work(&self, core: CoreId, span: Picoseconds) {
        self.around(|around| around.work(core, span));
    }

    /// An interrupt of a core now, beside those that come at random: what its write-combining buffers hold leaves, and its
    /// handler runs.
    pub fn interrupt_core(&self, core: CoreId) {
        let around = &mut self.machine.borrow_mut().around;
        let now = around.calendar.now();
        let (state, mut path) = around.state(usize::from(core.0));
        let at = now.max(state.core.clock());
        state.core.interrupt(at, &mut path);
        around.settle_core(usize::from(core.0));
    }

    /// Interrupts at random that a core has handled.
    pub fn interrupts(&self, core: CoreId) -> u64 {
        self.machine.borrow().around.core_states[usize::from(core.0)].core.interrupts()
    }
}

impl<D: Device> Machine<D> {
    fn advance(&mut self, until: Picoseconds) -> Option<Pause> {
        loop {
            if self.around.let_go > 0 {
                return Some(Pause::Frame);
            }
            if let Some(core) = self.around.due.take() {
                return Some(Pause::Turn(core));
            }
            let Some(event) = self.around.calendar.next_until(until) else {
                if until != Picoseconds::NEVER {
                    self.around.calendar.pass_to(until);
                }
                return None;
            };
            self.happen(event);
        }
    }

    #[inline]
    fn happen(&mut self, event: Event) {
        match event {
            Event::Link(event) => self.around.link_happens(event),
            Event::Hop(event) => self.around.hop_happens(event),
            Event::Turn { core, number } => self.around.turn_comes(core, number),
            Event::Tend { core } => self.around.tend(usize::from(core)),
            Event::RootSends => self.around.root_sends(),
            Event::RootAnswers => self.around.root_answers(),
            Event::HostSees => self.around.host_sees(),
            Event::Switch(event) => self.around.switch_happens(event),
            Event::DeviceSees(device) => self.device_sees(device),
            Event::DeviceReads(device) => self.around.device_reads(device),
            Event::DeviceGets(device) => self.device_gets(device),
            Event::DeviceSends(device) => self.around.device_sends(device),
            Event::DeviceAnswers(device) => self.around.device_answers(device),
            Event::DeviceLooks => self.device_looks(),
            Event::HostGets => self.around.host_gets(),
            Event::DeviceWakes(device) => self.device_wakes(device),
            Event::WireTakes(device) => self.wire_takes(device),
            Event::FrameComes(device) => self.frame_comes(device),
        }
    }
}

impl Around {
    /// Sends what a core has stored, and schedules its next turn if it can be known.
    pub(super) fn settle_core(&mut self, index: usize) {
        // With a packet that waits for the link, its leaving is the event.
        if self.links[0].waiting(Side::Upstream, Class::Posted) == 0 {
            self.schedule_send();
        }
        let now = self.calendar.now();
        let (state, path) = self.state(index);
        let tend_at = state.core.tend_at(&path);
        if let Some(at) = tend_at.filter(|at| state.tended_at.is_none_or(|tended| tended > *at)) {
            state.tended_at = Some(at.max(now));
            self.calendar.schedule(at.max(now), Event::Tend { core: index as u16 });
        }
        let state = &mut self.core_states[index];
        if state.core.is_ready() {
            let clock = state.core.clock();
            let at = match state.next {
                Next::Again => clock,
                Next::At(at) => clock.max(at),
                Next::Poll => {
                    // Its polls from here on are counted from when it was done.
                    state.polls = true;
                    return;
                }
                Next::Never => return,
            };
            state.next = Next::Never;
            self.give_turn(index, at);
        } else if state.next == Next::Poll {
            // What it waits for is not a change of memory.
            state.next = Next::Again;
        }
    }

    /// A program gets its turn at `at`.
    pub(super) fn give_turn(&mut self, index: usize, at: Picoseconds) {
        let state = &mut self.core_states[index];
        state.polls = false;
        state.turn = state.turn.wrapping_add(1);
        let event = Event::Turn { core: index as u16, number: state.turn };
        self.calendar.schedule(at.max(self.calendar.now()), event);
    }

    fn turn_comes(&mut self, core: u16, number: u32) {
        let now = self.calendar.now();
        let (state, mut path) = self.state(usize::from(core));
        if state.turn != number {
            return;
        }
        state.core.pass_to(now, &mut path);
        let clock = state.core.clock();
        if clock > now {
            // Interrupts came in between: the program goes on behind their handlers.
            self.give_turn(usize::from(core), clock);
            return;
        }
        self.due = Some(CoreId(core));
    }

    fn tend(&mut self, index: usize) {
        let now = self.calendar.now();
        let (state, mut path) = self.state(index);
        if state.tended_at == Some(now) {
            state.tended_at = None;
        }
        state.core.tend(now, &mut path);
        self.settle_core(index);
    }

    /// Something that programs can see has changed: those that poll see it at their next poll.
    pub(super) fn host_changed(&mut self) {
        let now = self.calendar.now();
        for index in 0..self.core_states.len() {
            let state = &self.core_states[index];
            if !state.polls {
                continue;
            }
            let (clock, poll) = (state.core.clock(), state.core.settings().poll.0);
            let polls = now.since(clock).0.div_ceil(poll);
            self.core_states[index].next = Next::Never;
            self.give_turn(index, clock + Picoseconds(polls * poll));
        }
    }
}
