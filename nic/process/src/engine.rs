//! The loop: round the ports, then whatever does not have to be looked at every time.
//!
//! A round costs a few loads for each port that is silent. The clock is read every few rounds, up-links that cost no
//! system call are polled as often, those that do and the service's commands more rarely, and everything after each time that
//! the core was offered to others. When nothing arrives the loop rests as its policy says; sleep follows docs/design.md, decision 5: say so in every host's memory, order that
//! before everything else on all cores, look once more, and only then wait.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use beeline_domain::{Peer, PeerId, process_name};
use beeline_link_shm::DevicePort;
use beeline_mmio::membarrier;
use beeline_nic_model::Nic;
use beeline_wait::{Idle, Rest};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::clock::Clock;
use crate::departures::Departures;
use crate::endpoints::{Endpoints, Host};
use crate::port_link::PortLink;
use crate::statistics::{LoopCounters, Raw};

/// Rounds between looks at the clock and at up-links that cost no system call.
const ROUNDS_PER_CLOCK: u64 = 16;
/// Rounds between looks at commands, at what hosts opened and closed, and at up-links that cost a system call.
const ROUNDS_PER_COMMAND: u64 = 512;
/// A shorter sleep than this is not worth its system calls.
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);

/// How long a guest's stores may wait for a loop that sleeps: nothing wakes it.
const FUNCTION_LOOK: Duration = Duration::from_micros(250);

/// What the service's thread asks of the loop.
pub(crate) enum Command {
    /// A port under this number.
    Open { number: u32, peer: Peer, link: Box<DevicePort<Nic>> },
    /// The host of a port is gone. The port may be too: then only its number is given back.
    Departed { number: u32, id: PeerId },
    /// Copy every counter.
    Statistics(SyncSender<Raw>),
}

/// The loop and everything it owns.
pub(crate) struct Engine {
    endpoints: Endpoints,
    commands: Receiver<Command>,
    /// Signalled with every command.
    event: Arc<OwnedFd>,
    idle: Idle,
    clock: Clock,
    counters: LoopCounters,
    departures: Departures,
}

impl Engine {
    pub(crate) fn new(
        endpoints: Endpoints,
        commands: Receiver<Command>,
        event: Arc<OwnedFd>,
        idle: Idle,
        departures: Departures,
    ) -> Self {
        let (clock, counters) = (Clock::start(), LoopCounters::default());
        Engine { endpoints, commands, event, idle, clock, counters, departures }
    }

    /// Runs until `stop` is set; then closes every port and brings captures to their files.
    pub(crate) fn run(&mut self, stop: &AtomicBool) -> Raw {
        // Relaxed: nothing is published with the flag, and it is looked at again and again.
        while !stop.load(Ordering::Relaxed) {
            let any = self.round();
            if any {
                self.counters.busy += 1;
                self.idle.busy();
                continue;
            }
            match self.idle.rest() {
                Rest::Spin => std::hint::spin_loop(),
                Rest::Yield => {
                    self.counters.yields += 1;
                    std::thread::yield_now();
                    // Where others want the core, each yield takes as long as all of them run: hundreds of rounds would be seconds,
                    // after which hosts that open a port have given the NIC up.
                    if self.look_everywhere() {
                        self.counters.busy += 1;
                        self.idle.busy();
                    }
                }
                Rest::Sleep(limit) => self.sleep(limit),
            }
        }
        self.serve_commands();
        let mut last = self.raw();
        self.departures.cut_short(&mut self.endpoints, &mut self.counters);
        for number in self.endpoints.live().to_vec() {
            if let Some(mut port) = self.endpoints.remove(number) {
                port.link.close(None);
            }
        }
        self.endpoints.flush_uplinks();
        // What still waited is lost with the NIC, and counted.
        last.switch = self.endpoints.switch.counters;
        last.rounds = self.counters;
        last
    }

    /// Goes round once; whether anything was done.
    #[inline]
    fn round(&mut self) -> bool {
        self.counters.rounds += 1;
        let mut any = false;
        let mut index = 0;
        while let Some(number) = self.endpoints.live().get(index).copied() {
            match self.endpoints.turn(number) {
                Ok(worked) => any |= worked,
                Err(error) => {
                    self.expel(number, error);
                    continue;
                }
            }
            index += 1;
        }
        if !self.departures.is_empty() {
            any |= self.departures.round(&mut self.endpoints, &mut self.counters);
        }
        if self.counters.rounds.is_multiple_of(ROUNDS_PER_CLOCK) {
            self.time_passed();
            any |= self.endpoints.poll_uplinks(false);
            if self.counters.rounds.is_multiple_of(ROUNDS_PER_COMMAND) {
                any |= self.endpoints.poll_uplinks(true);
                any |= self.serve_commands();
                // A host that accesses no register would otherwise make memory for ever, and nobody would drop it.
                self.endpoints.apply_updates();
            }
        }
        any
    }

    fn time_passed(&mut self) {
        let now = self.clock.now();
        self.endpoints.time_passed(now);
        self.departures.time_passed(now, &mut self.endpoints);
    }

    /// Everything that is looked at now and then, at once: before sleeping, and after others may have had the core.
    fn look_everywhere(&mut self) -> bool {
        let mut any = self.serve_commands();
        self.endpoints.apply_updates();
        self.time_passed();
        any |= self.endpoints.poll_uplinks(false) | self.endpoints.poll_uplinks(true);
        any | self.round()
    }

    fn serve_commands(&mut self) -> bool {
        let mut any = false;
        while let Ok(command) = self.commands.try_recv() {
            any = true;
            match command {
                Command::Open { number, peer, link } => {
                    self.counters.ports_opened += 1;
                    tracing::info!("port {number} opened by {}", process_name(peer.pid()));
                    self.endpoints.open(number, Host::Process(peer), PortLink::Process(*link));
                }
                Command::Departed { number, id } => {
                    let now = self.clock.now();
                    self.departures.begin(number, id, now, &mut self.endpoints, &mut self.counters);
                }
                // Whoever asked may have stopped waiting.
                Command::Statistics(answer) => drop(answer.try_send(self.raw())),
            }
        }
        any
    }

    fn raw(&self) -> Raw {
        Raw {
            uptime_ms: self.clock.now().as_ns() / 1_000_000,
            rounds: self.counters,
            switch: self.endpoints.switch.counters,
            addresses: self.endpoints.switch.addresses() as u64,
            ports: self.endpoints.port_statistics(),
            leaving: self.departures.count(),
            uplinks: self.endpoints.uplink_statistics(),
        }
    }

    #[cold]
    fn expel(&mut self, number: u32, error: beeline_link_shm::PortError) {
        let Some(port) = self.endpoints.port_mut(number) else { return };
        tracing::warn!("port {number} of {} closed: {error}", port.host.name());
        port.link.close(Some(error));
        // Accesses of a function are made here and break no protocol.
        let Some(id) = port.host.peer().map(Peer::id) else { return };
        self.counters.ports_expelled += 1;
        // Its number is given back when its host goes. What of its frames is still in its device is lost, and counted.
        self.departures.expel(number, id, self.clock.now(), &mut self.endpoints);
    }

    fn announce(&self, is_asleep: bool) {
        for number in self.endpoints.live() {
            if let Some(port) = self.endpoints.port(*number) {
                port.link.announce_sleep(is_asleep);
            }
        }
    }

    fn sleep(&mut self, limit: Duration) {
        self.endpoints.flush_uplinks();
        self.announce(true);
        // SeqCst: the announcement is before the last look. Pairs with the membarrier for hosts that registered, and
        // with the fence in `NicWaker::stored` of the others.
        fence(Ordering::SeqCst);
        let ordered = membarrier::global_expedited();
        if !self.look_everywhere() && ordered.is_ok() {
            let due = [self.endpoints.wake_at(), self.departures.wake_at(&self.endpoints)]
                .into_iter()
                .flatten()
                .min();
            let due = due.map_or(limit, |at| Clock::until(self.clock.now(), at));
            let limit =
                limit.min(due).min(if self.endpoints.has_functions() { FUNCTION_LOOK } else { limit });
            if limit >= SHORTEST_SLEEP {
                self.counters.sleeps += 1;
                let was_woken = self.wait(limit);
                // Before the clock is looked at, so that what is found is a host's doing and not a timer's.
                // A guest's store wakes nobody, so it tells nothing of lost wake-ups.
                if !was_woken && !self.endpoints.has_functions() && self.round() {
                    self.counters.slept_through += 1;
                }
            }
        }
        self.announce(false);
        self.idle.slept();
    }

    /// Waits for a host's store, a command or a frame of an up-link, at most `limit`; whether one of them ended it.
    fn wait(&mut self, limit: Duration) -> bool {
        let event = |number: &u32| Some((*number, self.endpoints.port(*number)?.link.event()?));
        let (numbers, events): (Vec<u32>, Vec<_>) = self.endpoints.live().iter().filter_map(event).unzip();
        let mut sources = vec![PollFd::from_borrowed_fd(self.event.as_fd(), PollFlags::IN)];
        sources.extend(events.into_iter().map(|event| PollFd::from_borrowed_fd(event, PollFlags::IN)));
        let descriptors = self.endpoints.uplinks().filter_map(|uplink| uplink.descriptor());
        sources.extend(descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)));
        let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
        // However it ends, the loop looks at everything again; a signal counts as being woken.
        let was_woken = poll(&mut sources, Some(&limit)) != Ok(0);
        let rang = |(number, source): (u32, &PollFd<'_>)| (!source.revents().is_empty()).then_some(number);
        let rang: Vec<u32> = numbers.into_iter().zip(&sources[1..]).filter_map(rang).collect();
        // This event never leaves the process, so it is as non-blocking as it was made.
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.event, &mut count);
        rang.into_iter().for_each(|number| self.endpoints.clear_event(number));
        was_woken
    }
}

#[cfg(test)]
mod tests;
