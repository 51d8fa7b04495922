//! The member of this process, and who carries out what it wants.
//!
//! One lock keeps its tables, and is held for them alone: never while something is carried out, mapped or dropped. Whoever makes a
//! call carries out what the member wants for it, without the lock, and brings the answer back. The domain's thread never takes it.
//! What another process may delay, the first contact with a member, has a thread of its own.

mod exporting;
mod holding;
mod lending;
mod making;
mod program;
mod visits;
mod wants;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use beeline_domain::Domain;
use beeline_fabric::{
    AdapterNumber, Call, Done, LocalInterrupt, LocalSegment, Memory, Nanos, NodeId, Part, Refusal,
    RemoteSegment, Ticket, Told, Value, Want, ring,
};
use beeline_fabric_transfer::Of;
use beeline_mmio::{Flag, ReadOnlyMemory, SharedMemory, ThisProcess};

use crate::backing::Backing;
use crate::bell::{Bells, FlagBell, MAX_SLEEP};
use crate::fetch::{Found, Place};
use crate::names::Names;
use crate::packets::Who;
use crate::pair::Pair;
use crate::sequence::{Calls, Sequence};
use crate::several::Several;
use crate::state::State;
use crate::terms::Terms;
use crate::users::Exports;
use crate::words::View;

/// What all threads of the process that use the fabric have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    /// For threads that outlive a call.
    pub(crate) itself: Weak<Shared>,
    pub(crate) domain: Domain,
    pub(crate) own: Who,
    /// What others map of this member.
    pub(crate) board: ReadOnlyMemory,
    pub(crate) board_view: View,
    pub(crate) bank: Arc<SharedMemory>,
    /// The flags of this member's interrupts, and what others map of them.
    pub(crate) bells: Bells,
    pub(crate) bells_memory: SharedMemory,
    /// Whoever waits sleeps on it; rings and departures of peers wake all.
    pub(crate) bell: Flag,
    /// Who waits for one of several things.
    pub(crate) several: Several,
    pub(crate) names: Names,
    /// Has who keeps maps of a segment let go of it.
    pub(crate) lets_go: LetsGo,
    pub(crate) state: Mutex<State>,
    pub(crate) started: Instant,
    pub(crate) process: ThisProcess,
    /// Nobody waits any more for what threads of this member are told by others.
    pub(crate) has_left: AtomicBool,
    /// Nothing of this member sleeps, and nobody has to wake it.
    pub(crate) polls: AtomicBool,
    pub(crate) terms: RwLock<Arc<Terms>>,
    /// Who may connect to segments that are made.
    pub(crate) exports: RwLock<Arc<Exports>>,
}

/// What is done before a segment is removed or disconnected from.
#[derive(Default)]
pub(crate) struct LetsGo(OnceLock<Box<dyn Fn(Of) + Send + Sync>>);

impl LetsGo {
    /// Says what is done, once.
    pub(crate) fn set(&self, lets_go: impl Fn(Of) + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(lets_go));
    }

    fn of(&self, of: Of) {
        if let Some(lets_go) = self.0.get() {
            lets_go(of);
        }
    }
}

impl std::fmt::Debug for LetsGo {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("LetsGo")
    }
}

impl Calls for Shared {
    fn call(&self, call: Call) -> Result<Value, Refusal> {
        Shared::call(self, call)
    }
}

impl Shared {
    /// Makes a call, and waits until it is done.
    pub(crate) fn call(&self, call: Call) -> Result<Value, Refusal> {
        self.check_process()?;
        match self.enter(|state, now| state.member.call(call, now))? {
            Done::Now(value) => Ok(value),
            Done::Wait(ticket) => self.wait(ticket),
        }
    }

    /// Removes a segment, with its memory if it has one of its own.
    pub(crate) fn remove(&self, local: LocalSegment, is_forced: bool) -> Result<Value, Refusal> {
        self.lets_go.of(Of::Local(local));
        let removed = self.call(Call::RemoveSegment { local, is_forced })?;
        let memory = self.lock().own.remove(&local);
        self.drop_elsewhere(memory);
        Ok(removed)
    }

    pub(crate) fn disconnect(&self, remote: RemoteSegment) -> Result<Value, Refusal> {
        self.lets_go.of(Of::Remote(remote));
        let ended = self.call(Call::Disconnect(remote))?;
        let memory = self.lock().fetched.remove(&remote);
        self.drop_elsewhere(memory);
        Ok(ended)
    }

    /// Has memory dropped on another thread, which is woken only if there is some.
    fn drop_elsewhere(&self, memory: Option<impl Send + 'static>) {
        if let Some(memory) = memory {
            self.domain.disposer().dispose(memory);
        }
    }

    /// Makes a call that gives something to be mapped. Also if this process does not have its memory it counts as mapped.
    pub(crate) fn call_to_map(&self, of: Of, part: Part) -> Result<Found, Refusal> {
        self.check_process()?;
        let call = match of {
            Of::Local(local) => Call::MapLocal(local, part),
            Of::Remote(remote) => Call::MapRemote(remote, part),
        };
        self.enter(|state, now| {
            let Done::Now(value) = state.member.call(call, now)? else { return Ok(Found::Nowhere) };
            let place = match (value, of) {
                (Value::MapRemote(_, _, part), Of::Remote(remote)) => {
                    return Ok(state.find(remote, part));
                }
                (Value::MapLocal(Memory::Bank { offset }, part), _) => Some((&self.bank, offset, part)),
                (Value::MapLocal(Memory::Own { .. }, part), Of::Local(local)) => {
                    return Ok(state.find_local(local, part));
                }
                _ => None,
            };
            Ok(place.map_or(Found::Nowhere, |(memory, offset, part)| {
                Found::Here(Place { memory: Backing::Memory(Arc::clone(memory)), offset, part })
            }))
        })
    }

    /// What is loaded of a connection by who checks sequences.
    pub(crate) fn sequence(&self, remote: RemoteSegment) -> Result<Sequence, Refusal> {
        self.check_process()?;
        let views = || {
            self.enter(|state, _| {
                let first = state.member.view(remote, &self.board_view)?;
                let others = state.member.views_of_others(remote, &self.board_view);
                let peer = |pair| state.pairs.get(&pair).and_then(Pair::peer).cloned();
                let views = first.into_iter().chain(others).map(|(pair, view)| (view, peer(pair)));
                Ok::<_, Refusal>((views.collect::<Vec<_>>(), state.member.is_held(remote)))
            })
        };
        let views = match views()? {
            // The names have been looked at for a holder in place of those that have gone.
            (none, true) if none.is_empty() => views()?.0,
            (views, _) => views,
        };
        let member: Weak<dyn Calls> = Weak::<Shared>::clone(&self.itself);
        Ok(Sequence::new(views, (member, remote), self.process))
    }

    pub(crate) fn probe(&self, node: NodeId, adapter: AdapterNumber) -> Result<(), Refusal> {
        self.check_process()?;
        self.enter(|state, _| state.member.probe(node, adapter))?;
        match self.names.is_alive(node) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::NodeNotResponding),
            Err(error) => {
                tracing::warn!(%error, "the names of the fabric are not to be had");
                Err(Refusal::System)
            }
        }
    }

    pub(crate) fn is_link_up(&self, adapter: AdapterNumber) -> Result<bool, Refusal> {
        self.check_process()?;
        self.lock().member.is_link_up(adapter)
    }

    /// Takes out an interrupt that is removed.
    pub(crate) fn forget_interrupt(&self, local: LocalInterrupt) {
        let forgotten = self.lock().interrupts.remove(&local);
        // Without the lock: it may have the last mapping of a yard.
        drop(forgotten);
    }

    /// The next event of something that has a callback.
    pub(crate) fn next_event(&self) -> Option<Told> {
        self.check_process().ok()?;
        self.enter(|state, now| state.member.look(now));
        self.enter(|state, _| state.member.next_callback())
    }

    /// Takes in a member that uses this one's segments.
    pub(crate) fn admit(&self, node: NodeId, other_user: Option<u32>, claims: View, pair: Pair) {
        self.enter(|state, _| state.admit(node, other_user, claims, pair));
    }

    /// Looks at what other members publish, and who is gone.
    pub(crate) fn look(&self) {
        self.enter(|state, now| state.member.look(now));
    }

    /// Ends the calls of other threads that wait until they are connected.
    pub(crate) fn cancel_attempts(&self) {
        if self.check_process().is_ok() {
            self.enter(|state, _| state.member.cancel_attempts());
        }
    }

    /// Leaves the fabric: others lose their connections to this member.
    pub(crate) fn leave(&self) {
        if self.check_process().is_err() {
            return;
        }
        // Relaxed: threads look at it over and over.
        self.has_left.store(true, Ordering::Relaxed);
        self.enter(|state, _| state.member.leave());
        self.let_go_of_all_programs_memory();
        let interrupts = std::mem::take(&mut self.lock().interrupts);
        interrupts.values().for_each(|interrupt| {
            interrupt.remove();
        });
        self.names.leave();
        let pairs = std::mem::take(&mut self.lock().pairs);
        drop(pairs);
    }

    /// A child of fork has none of what the member publishes, and would use its parent's sockets.
    pub(crate) fn check_process(&self) -> Result<(), Refusal> {
        if self.process.is_this() { Ok(()) } else { Err(Refusal::System) }
    }

    /// Whether who waits polls. Relaxed: who begins to wait sees what was set before.
    pub(crate) fn polls(&self) -> bool {
        self.polls.load(Ordering::Relaxed)
    }

    pub(crate) fn now(&self) -> Nanos {
        // Some five hundred years.
        Nanos(self.started.elapsed().as_nanos() as u64)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the tables, and carries out everything that the member wants after it. What one call wants, and what follows
    /// from that, is carried out by its thread and delays no other one.
    pub(crate) fn enter<T>(&self, act: impl FnOnce(&mut State, Nanos) -> T) -> T {
        let (result, wants) = self.alter(act);
        self.carry_out_all(wants);
        result
    }

    /// Does something with the tables; gives what the member wants after it, too.
    fn alter<T>(&self, act: impl FnOnce(&mut State, Nanos) -> T) -> (T, Vec<Want>) {
        let mut state = self.lock();
        let now = self.now();
        let dead = state.take_dead(now);
        let result = act(&mut state, now);
        let has_news = state.sort_told();
        let wants: Vec<_> = std::iter::from_fn(|| state.member.next_want()).collect();
        drop(state);
        if let Some(dead) = dead {
            dead.wake();
            self.domain.disposer().dispose(dead.pairs);
        }
        if has_news {
            self.wake_all();
        }
        (result, wants)
    }

    /// Brings an answer to the member, and gives what it wants after that.
    fn bring(&self, act: impl FnOnce(&mut State, Nanos)) -> Vec<Want> {
        let ((), wants) = self.alter(act);
        // Also if nobody is told anything: an attempt of a thread that sleeps may go on sooner than that thread knows.
        self.wake_all();
        wants
    }

    /// Wakes every thread that waits; one that is about to sleep looks again.
    pub(crate) fn wake_all(&self) {
        ring(&FlagBell::of_rung(self.bell.clone()));
        self.several.wake_all();
    }

    /// What threads sleep on that wait for an outcome, or for one of several things. Rings of peers wake both.
    pub(crate) fn rung(&self) -> [&Flag; 2] {
        [&self.bell, self.several.flag()]
    }

    /// Waits until the outcome of a call is there. A peer that changes something and rings nobody costs who waits for it the longest sleep.
    fn wait(&self, ticket: Ticket) -> Result<Value, Refusal> {
        let bell = FlagBell::of_rung(self.bell.clone());
        let mut state = self.lock();
        loop {
            if let Some(outcome) = state.outcomes.remove(&ticket) {
                return outcome;
            }
            if self.polls() {
                drop(state);
                std::thread::yield_now();
                self.look();
                state = self.lock();
                continue;
            }
            let announced = state.sleepers.announce(&bell);
            drop(state);
            announced.order(&bell);
            self.enter(|state, now| state.member.look(now));
            state = self.lock();
            if !state.outcomes.contains_key(&ticket) {
                let wake_at = state.member.wake_at();
                drop(state);
                let left = wake_at.map(|at| Duration::from_nanos(at.0.saturating_sub(self.now().0)));
                announced.park(&bell.clone().at_most(left.unwrap_or(MAX_SLEEP)));
                state = self.lock();
            }
            state.sleepers.withdraw(announced, &bell);
        }
    }
}
