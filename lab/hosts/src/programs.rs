//! Programs on cores. Each is a thread, of which one at a time runs: the one whose turn it is.
//!
//! A member's code waits inside its calls, for the answer of a read across, while time goes on for the other hosts. So each program has a
//! stack of its own. Whoever waits lets time pass until it is somebody's turn, and hands over to that one; threads do not run side by
//! side, and what they do does not depend on the system's scheduler.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use beeline_contract_memory::Line;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::Next;
use beeline_link_sim::machine::hosts::{HostId, Hosts, Place, Region};

/// A program, and the host whose first core it runs on.
pub type Program<'a, T> = (HostId, Box<dyn FnOnce(Core) -> T + Send + 'a>);

/// A core, for the program that runs on it. Clones are the same core.
///
/// Where hosts have several adapters, each has a port of its own, and buffers that combine writes. Stores and loads across go by the first
/// adapter whose links are up at both ends, or by one that was chosen ([`Core::by`]).
#[derive(Clone)]
pub struct Core {
    machine: Arc<Machine>,
    place: Place,
    chosen: Option<u16>,
    /// By adapter, whether what was stored by it may still be on its way.
    is_under_way: Arc<Vec<AtomicBool>>,
}

struct Machine {
    state: Mutex<State>,
    /// By host, told when it is the turn of its program.
    turns: Vec<Condvar>,
}

struct State {
    hosts: Hosts,
    due: Option<Place>,
    /// Whether a program has its turn: no other one lets time pass meanwhile, when its thread begins or is woken for nothing.
    is_taken: bool,
    /// Nothing more happens, or a program has failed.
    is_over: bool,
}

/// Runs programs, at most one on each host, until all have ended; returns what each gives, and the hosts.
///
/// # Panics
/// If a program panics, or waits for something that never happens.
pub fn run<T: Send>(hosts: Hosts, programs: Vec<Program<'_, T>>) -> (Vec<T>, Hosts) {
    let most = programs.iter().map(|(host, _)| usize::from(host.0) + 1).max().unwrap_or(0);
    let mut state = State { hosts, due: None, is_taken: false, is_over: false };
    for (host, _) in &programs {
        state.hosts.end_turn(Place { host: *host, core: 0 }, Next::Again, Picoseconds::NEVER);
    }
    let adapters = state.hosts.adapters();
    let turns = (0..most).map(|_| Condvar::new()).collect();
    let machine = Arc::new(Machine { state: Mutex::new(state), turns });
    let results = thread::scope(|scope| {
        let started: Vec<_> = programs
            .into_iter()
            .map(|(host, program)| {
                let core = Core {
                    machine: Arc::clone(&machine),
                    place: Place { host, core: 0 },
                    chosen: None,
                    is_under_way: Arc::new((0..adapters).map(|_| AtomicBool::new(false)).collect()),
                };
                beeline_mmio::thread::spawn_in(scope, "host", move || {
                    let ended = Ended(core.clone());
                    core.await_turn(core.lock(), core.place);
                    let result = program(core);
                    drop(ended);
                    result
                })
                .expect("a thread for each host can be started")
            })
            .collect();
        let ended = started.into_iter().map(|thread| thread.join());
        ended.collect::<Vec<_>>()
    });
    let give = |result: thread::Result<T>| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let results = results.into_iter().map(give).collect();
    let machine = Arc::into_inner(machine).expect("no program has kept its core");
    (results, machine.state.into_inner().unwrap_or_else(PoisonError::into_inner).hosts)
}

/// The end of a program, by a panic, too.
struct Ended(Core);

impl Drop for Ended {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_over |= thread::panicking();
        state.is_taken = false;
        self.0.send_at_all_ports(&mut state.hosts);
        state.hosts.end_turn(self.0.place, Next::Never, Picoseconds::NEVER);
        self.0.hand_over(&mut state);
    }
}

impl Core {
    /// Whose memory its loads show, and whose link its stores leave by.
    pub fn host(&self) -> HostId {
        self.place.host
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.machine.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn hosts<T>(&self, f: impl FnOnce(&mut Hosts, Place) -> T) -> T {
        f(&mut self.lock().hosts, self.place)
    }

    /// Lets time pass until it is somebody's turn.
    fn hand_over(&self, state: &mut State) {
        if state.due.is_none() && !state.is_taken && !state.is_over {
            state.due = state.hosts.advance(Picoseconds::NEVER);
            state.is_over = state.due.is_none();
        }
        match state.due {
            _ if state.is_over => self.machine.turns.iter().for_each(Condvar::notify_all),
            Some(place) if place != self.place => {
                self.turn_of(place).notify_all();
            }
            _ => {}
        }
    }

    /// What wakes the program that waits at a place. Ports of one host have one program.
    fn turn_of(&self, place: Place) -> &Condvar {
        &self.machine.turns[usize::from(place.host.0) % self.machine.turns.len()]
    }

    fn await_turn(&self, mut state: MutexGuard<'_, State>, at: Place) {
        loop {
            self.hand_over(&mut state);
            if state.is_over {
                drop(state);
                panic!("nothing more happens that the program on host {} waits for", self.place.host.0);
            }
            if state.due == Some(at) {
                state.due = None;
                state.is_taken = true;
                return;
            }
            state = self.turn_of(at).wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the turn. Returns at the next one: one that polls has it when something has changed, and at `until` at the latest.
    pub fn wait(&self, next: Next, until: Picoseconds) {
        self.wait_at(self.place, next, until);
    }

    /// Lets what was stored by adapters behind the first one leave while the program waits.
    fn send_at_all_ports(&self, hosts: &mut Hosts) {
        for adapter in 1..self.adapters() {
            let port = Place { host: hosts.port(self.place.host, adapter), ..self.place };
            hosts.end_turn(port, Next::Never, Picoseconds::NEVER);
        }
    }

    fn wait_at(&self, place: Place, next: Next, until: Picoseconds) {
        let mut state = self.lock();
        state.is_taken = false;
        self.send_at_all_ports(&mut state.hosts);
        state.hosts.end_turn(place, next, until);
        self.await_turn(state, place);
    }

    /// Waits until what was stored has left the program's hands: it can store the next.
    pub fn catch_up(&self) {
        for port in self.ports() {
            self.wait_at(port, Next::Again, Picoseconds::NEVER);
            self.hosts(|hosts, place| align(hosts, port, place));
        }
    }

    /// This core, whose stores and loads across go by one adapter from here on.
    ///
    /// # Panics
    /// If its host does not have that adapter.
    #[must_use]
    pub fn by(&self, adapter: u16) -> Core {
        assert!(adapter < self.adapters(), "a host without adapter {adapter}");
        Core { chosen: Some(adapter), ..self.clone() }
    }

    /// How many adapters its host has.
    pub fn adapters(&self) -> u16 {
        self.is_under_way.len() as u16
    }

    /// The ports by which its packets leave: all of its host, or that of the adapter that was chosen.
    fn ports(&self) -> Vec<Place> {
        let chosen = |adapter: &u16| self.chosen.is_none_or(|chosen| chosen == *adapter);
        (0..self.adapters()).filter(chosen).map(|adapter| self.port(adapter)).collect()
    }

    fn port(&self, adapter: u16) -> Place {
        self.hosts(|hosts, place| Place { host: hosts.port(place.host, adapter), ..place })
    }

    /// The adapter by which the next store or load across goes.
    fn adapter(&self) -> u16 {
        if self.adapters() == 1 {
            return 0;
        }
        let is_up = |adapter: &u16| self.is_up_at_both_ends(*adapter);
        self.chosen.or_else(|| (0..self.adapters()).find(is_up)).unwrap_or(0)
    }

    /// Whether the links of an adapter are up at both ends of its row.
    pub(crate) fn is_up_at_both_ends(&self, adapter: u16) -> bool {
        let ends = [HostId(0), HostId(1)];
        self.hosts(|hosts, _| ends.iter().all(|end| hosts.is_up(hosts.port(*end, adapter))))
    }

    /// Stores by an adapter, which are under way from then on.
    fn cross(&self, adapter: u16, store: impl FnOnce(&mut Hosts, Place)) {
        self.is_under_way[usize::from(adapter)].store(true, Relaxed);
        self.at_port(adapter, store);
    }

    /// Does something at the port of an adapter, which takes the program's time.
    pub(crate) fn at_port(&self, adapter: u16, f: impl FnOnce(&mut Hosts, Place)) {
        self.hosts(|hosts, place| {
            let port = Place { host: hosts.port(place.host, adapter), ..place };
            align(hosts, place, port);
            f(hosts, port);
            align(hosts, port, place);
        });
    }

    fn load_by(&self, adapter: u16, address: u64) -> u64 {
        self.at_port(adapter, |hosts, port| hosts.load_across(port, address));
        let port = self.port(adapter);
        self.wait_at(port, Next::Again, Picoseconds::NEVER);
        self.is_under_way[usize::from(adapter)].store(false, Relaxed);
        self.hosts(|hosts, place| {
            align(hosts, port, place);
            hosts.loaded(port)
        })
    }

    /// Waits until what was stored by other adapters than this one has come, or is lost.
    fn await_others(&self, adapter: u16, address: u64) {
        for other in (0..self.adapters()).filter(|other| *other != adapter) {
            if self.is_under_way[usize::from(other)].load(Relaxed) {
                self.at_port(other, |hosts, port| hosts.fence(port));
                self.load_by(other, address);
            }
        }
    }

    /// Does nothing until then.
    pub fn sleep_until(&self, at: Picoseconds) {
        self.wait(Next::At(at), Picoseconds::NEVER);
    }

    /// Polls until it finds something. What a poll finds costs as one that finds nothing.
    pub fn poll<T>(&self, mut find: impl FnMut() -> Option<T>) -> T {
        loop {
            if let Some(found) = find() {
                self.hosts(|hosts, place| {
                    let poll = hosts.poll_time();
                    hosts.work(place, poll);
                });
                return found;
            }
            self.wait(Next::Poll, Picoseconds::NEVER);
        }
    }

    /// The time of this core: when it has done what it was asked to do.
    pub fn now(&self) -> Picoseconds {
        self.hosts(|hosts, place| hosts.clock(place))
    }

    /// Does something for so long.
    pub fn work(&self, span: Picoseconds) {
        self.hosts(|hosts, place| hosts.work(place, span));
    }

    /// Stores a line across, write-combined.
    pub fn store_line(&self, address: u64, words: &Line) {
        self.cross(self.adapter(), |hosts, port| hosts.store_line(port, address, words));
    }

    /// Stores a word across, write-combined.
    pub fn store_word(&self, address: u64, value: u64) {
        self.cross(self.adapter(), |hosts, port| hosts.store_word(port, address, value));
    }

    /// Stores a word across, behind all stores of this core.
    pub fn store_in_order(&self, address: u64, value: u64) {
        let adapter = self.adapter();
        self.await_others(adapter, address);
        self.cross(adapter, |hosts, port| hosts.store_in_order(port, address, value));
    }

    /// Lets what was stored leave the core.
    pub fn fence(&self) {
        (0..self.adapters()).for_each(|adapter| self.at_port(adapter, |hosts, port| hosts.fence(port)));
    }

    /// Loads a word across, behind all stores of this core; all ones if the answer is lost.
    pub fn load_across(&self, address: u64) -> u64 {
        let adapter = self.adapter();
        self.await_others(adapter, address);
        self.load_by(adapter, address)
    }

    /// Loads a word of this host's memory.
    pub fn load(&self, region: Region, offset: usize) -> u64 {
        self.hosts(|hosts, place| hosts.load(place, region, offset))
    }

    /// Loads bytes of this host's memory.
    pub fn copy_out(&self, region: Region, offset: usize, into: &mut [u8]) {
        self.hosts(|hosts, place| hosts.copy_out(place, region, offset, into));
    }

    /// Stores a word to this host's memory.
    pub fn store(&self, region: Region, offset: usize, value: u64) {
        self.hosts(|hosts, place| hosts.store(place, region, offset, value));
    }

    /// How often links of this host have gone down.
    pub fn downs(&self) -> u64 {
        self.hosts(|hosts, place| downs(hosts, place.host))
    }

    /// How often the link at a port of the switch has gone down, if it is up.
    pub(crate) fn downs_of(&self, port: HostId) -> Option<u64> {
        self.hosts(|hosts, _| is_up(hosts, port).then(|| downs(hosts, port)))
    }

    /// Whether a link of this host is up.
    pub fn is_link_up(&self) -> bool {
        self.hosts(|hosts, place| is_up(hosts, place.host))
    }

    /// Whether the link of an adapter of this host is up.
    pub(crate) fn is_adapter_up(&self, adapter: u16) -> bool {
        self.hosts(|hosts, place| hosts.is_up(hosts.port(place.host, adapter)))
    }

    /// Where stores to a group go, if the switch has it.
    pub(crate) fn group_address(&self, group: usize) -> Option<u64> {
        self.hosts(|hosts, _| hosts.group_address(group))
    }

    /// Memory of this host that a group is copied to, if the switch has it.
    pub(crate) fn group_memory(&self, group: usize) -> Option<Region> {
        self.hosts(|hosts, place| hosts.group_memory(place.host, group))
    }

    /// Has a group copied to this host from here on, or not. `false` if the switch does not do that.
    pub(crate) fn set_receives(&self, group: usize, receives: bool) -> bool {
        self.hosts(|hosts, place| hosts.set_receives(place.host, group, receives))
    }

    /// Has a host take requests of another one, or of a device, or not.
    pub(crate) fn set_requester(&self, host: HostId, requester: HostId, is_taken: bool) {
        self.hosts(|hosts, _| hosts.set_requester(host, requester, is_taken));
    }
}

fn downs(hosts: &Hosts, host: HostId) -> u64 {
    (0..hosts.adapters()).map(|adapter| hosts.downs(hosts.port(host, adapter))).sum()
}

fn is_up(hosts: &Hosts, host: HostId) -> bool {
    (0..hosts.adapters()).any(|adapter| hosts.is_up(hosts.port(host, adapter)))
}

/// Brings the clock of a place up to that of another one, at which the program was until then.
fn align(hosts: &mut Hosts, from: Place, to: Place) {
    let (from, at) = (hosts.clock(from), hosts.clock(to));
    if from > at {
        hosts.work(to, from.since(at));
    }
}
