//! The member of this process: its tables under one lock, and what is done with the memory for them.
//!
//! Nobody wakes anybody: a thread of this process looks at the words of others once in a millisecond, and beats; whoever waits looks more
//! often. Nothing that is done under the lock waits for another member.

mod holding;
mod wants;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use beeline_contract_link::Heartbeat;
use beeline_contract_memory::WaitPolicy;
use beeline_fabric::{
    AdapterNumber, Call, Done, LocalEvent, LocalInterrupt, LocalSegment, Member, MemberNumber, Nanos, NodeId,
    PairId, Refusal, Ticket, Told, Value,
};
use beeline_heartbeat::MappedFile;
use beeline_mmio::thread::Running;
use beeline_mmio::{SharedMemory, ThisProcess};

use crate::error::Lost;
use crate::interrupts::waited::{Waited, What};
use crate::joint::{Holding, Joints};
use crate::names::OwnNames;
use crate::peer::{Change, Peer};
use crate::space::Space;
use crate::waiting::wait_with;
use crate::words::{OneMemory, Published, View};

/// How long nobody looks who has nothing to do.
const NAP: Duration = Duration::from_millis(1);

/// What all threads of the process that use the member have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) space: Arc<Space>,
    pub(crate) slot: usize,
    pub(crate) number: MemberNumber,
    pub(crate) node: NodeId,
    pub(crate) adapter: AdapterNumber,
    pub(crate) state: Mutex<State>,
    pub(crate) started: Instant,
    pub(crate) process: ThisProcess,
    pub(crate) ended: Ended,
    /// Whether who waits polls and does not sleep.
    pub(crate) polls: AtomicBool,
}

/// Whether the member has left, and the thread that looks until then.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    has: Mutex<bool>,
    changed: Condvar,
    thread: Mutex<Option<Running<()>>>,
}

impl Ended {
    pub(crate) fn set(&self) {
        *self.has.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Says which thread looks.
    pub(crate) fn keep(&self, thread: Running<()>) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    /// Waits until that thread has ended, if the member has left. Not in a child of fork, which has no such thread.
    fn join(&self) {
        if !*self.has.lock().unwrap_or_else(PoisonError::into_inner) {
            return;
        }
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The last that is dropped may be dropped on that thread.
        if let Some(thread) = thread.filter(|thread| !thread.is_this_thread()) {
            // A thread that panicked has said so.
            let _panicked = thread.join();
        }
    }

    /// Forgets that thread, of which a child of fork has nothing but the handle.
    fn forget(&self) {
        // Another thread of the parent may have held the lock.
        if let Ok(mut thread) = self.thread.try_lock() {
            std::mem::forget(thread.take());
        }
    }

    /// Waits for so long at most; whether it has.
    pub(crate) fn wait(&self, at_most: Duration) -> bool {
        let has = self.has.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(has, at_most, |has| !*has);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// The tables.
pub(crate) struct State {
    pub(crate) member: Member<OneMemory>,
    pub(crate) board: Published,
    pub(crate) names: OwnNames,
    /// By slot, this member's own too.
    pub(crate) peers: Vec<Peer>,
    /// What came of calls whose threads have not taken it yet.
    outcomes: BTreeMap<Ticket, Result<Value, Refusal>>,
    next_beat: Duration,
    beats: u64,
    pub(crate) standing: Standing,
    /// Memory of segments that this process has alone.
    pub(crate) private: BTreeMap<LocalSegment, Arc<SharedMemory>>,
    /// Memory that several members hold.
    pub(crate) joints: Joints,
    /// Segments of this member that are such memory.
    pub(crate) holdings: BTreeMap<LocalSegment, Holding>,
    /// The memory of segments whose names are being put, by the calls that wait for that.
    pub(crate) coming: BTreeMap<Ticket, Holding>,
    /// The last question that was answered, by its ticket.
    pub(crate) answered: Option<NonZeroU64>,
    /// Interrupts of this member.
    pub(crate) interrupts: BTreeMap<LocalInterrupt, Arc<Waited>>,
}

/// Whether this member still is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Here,
    /// Another one has its slot: it was silent for too long, or somebody has overwritten its number. It stores nothing more.
    Displaced,
    /// Memory is gone under the mapping, or its device does not answer.
    NoMemory,
    /// The header is another one: whoever comes finds everything at other places. It stores nothing more.
    Remade,
    /// The file was deleted, or another one has its path: whoever comes meets others, and none of these. Stopping here is what lets a program
    /// meet them too, by joining once more.
    NoFile,
    /// It leaves as soon as nothing is mapped any more: until then it beats, so that nobody takes its slot.
    Leaving,
    Left,
}

impl std::fmt::Debug for State {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (standing, peers) = (&self.standing, &self.peers);
        out.debug_struct("State").field("standing", standing).field("peers", peers).finish_non_exhaustive()
    }
}

impl State {
    pub(crate) fn new(
        member: Member<OneMemory>,
        (board, names, joints): (Published, OwnNames, Joints),
        peers: Vec<Peer>,
    ) -> Self {
        State {
            member,
            board,
            names,
            peers,
            outcomes: BTreeMap::new(),
            next_beat: Duration::ZERO,
            beats: 0,
            standing: Standing::Here,
            private: BTreeMap::new(),
            joints,
            holdings: BTreeMap::new(),
            coming: BTreeMap::new(),
            answered: None,
            interrupts: BTreeMap::new(),
        }
    }

    pub(crate) fn peer_of(&mut self, pair: PairId) -> Option<&mut Peer> {
        self.peers.iter_mut().find(|peer| peer.provider == Some(pair) || peer.consumer == Some(pair))
    }

    fn sort_told(&mut self, space: &Arc<Space>, (own, number): (usize, MemberNumber)) {
        while let Some(told) = self.member.next_event() {
            if let Told::Outcome(ticket, outcome) = told {
                if let Ok(Value::Interrupt(local, _, kind, place)) = outcome {
                    // In the hold of the lock in which others learn of it: so it hears of everybody who may trigger it.
                    let waited = Arc::new(Waited::new(space, own, What::new(kind, number, place)));
                    for peer in &self.peers {
                        peer.consumer.into_iter().for_each(|pair| waited.admit(pair, peer.slot));
                    }
                    self.interrupts.insert(local, waited);
                }
                if let Some(holding) = self.coming.remove(&ticket)
                    && let Ok(Value::Local(local, _)) = outcome
                {
                    self.holdings.insert(local, holding);
                }
                self.outcomes.insert(ticket, outcome);
            }
        }
    }
}

impl Shared {
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the tables, and everything that the member wants after it.
    pub(crate) fn enter<T>(&self, act: impl FnOnce(&mut State, Nanos) -> T) -> T {
        let mut state = self.lock();
        let now = nanos(self.now());
        let result = act(&mut state, now);
        self.carry_out(&mut state, now);
        state.sort_told(&self.space, (self.slot, self.number));
        result
    }

    /// A child of fork is not the member, and one that has lost its slot or its memory is none any more.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        self.check_process()?;
        match self.lock().standing {
            Standing::Here => Ok(()),
            Standing::NoMemory | Standing::NoFile => Err(Refusal::NoLinkAccess),
            Standing::Displaced | Standing::Remade | Standing::Leaving | Standing::Left => {
                Err(Refusal::System)
            }
        }
    }

    /// Why this member is one no more.
    pub(crate) fn lost(&self) -> Option<Lost> {
        match self.lock().standing {
            Standing::Here | Standing::Leaving | Standing::Left => None,
            Standing::Displaced => Some(Lost::Displaced),
            Standing::NoMemory => Some(Lost::NoMemory),
            Standing::Remade => Some(Lost::Remade),
            Standing::NoFile => {
                Some(Lost::NoFile { path: self.space.source.path().map(Into::into).unwrap_or_default() })
            }
        }
    }

    /// A child of fork has none of the memory mapped.
    pub(crate) fn check_process(&self) -> Result<(), Refusal> {
        if self.process.is_this() { Ok(()) } else { Err(Refusal::System) }
    }

    /// How a thread waits that would wait by this policy.
    pub(crate) fn policy(&self, policy: WaitPolicy) -> WaitPolicy {
        // Relaxed: who begins to wait sees what was set before.
        if self.polls.load(Ordering::Relaxed) { WaitPolicy::SPIN } else { policy }
    }

    /// Makes a call, and waits until it is done.
    pub(crate) fn call(&self, call: Call) -> Result<Value, Refusal> {
        match call {
            // Also of a member that is none any more: its program gives back what it has.
            Call::RemoveSegment { .. } | Call::Disconnect(_) => self.check_process()?,
            _ => self.check()?,
        }
        match self.enter(|state, now| state.member.call(call, now))? {
            Done::Now(value) => Ok(value),
            Done::Wait(ticket) => self.wait(ticket),
        }
    }

    fn wait(&self, ticket: Ticket) -> Result<Value, Refusal> {
        let look = |_| {
            // Before the outcome, which comes with the loss: a wait for an event is told that all is lost.
            let standing = self.check();
            let outcome = self.lock().outcomes.remove(&ticket);
            match outcome {
                Some(Ok(Value::LocalEvent(event))) => {
                    return Ok(Some(Value::LocalEvent(self.believed(event))));
                }
                Some(outcome) => return outcome.map(Some),
                None => {}
            }
            self.tend();
            standing.map(|()| None)
        };
        let found = wait_with(self.policy(WaitPolicy::new().spins(100)), None, look)?;
        found.ok_or(Refusal::System)
    }

    /// What has happened to a segment by words that were loaded before this. What is gone reads as zero, as if a user had disconnected.
    pub(crate) fn believed(&self, event: LocalEvent) -> LocalEvent {
        match event {
            LocalEvent::Disconnect(node) if !self.space.is_intact() => LocalEvent::Lost(node),
            event => event,
        }
    }

    /// Looks at everything that others store, and beats if it is time.
    pub(crate) fn tend(&self) {
        if !self.process.is_this() {
            return;
        }
        self.enter(|state, now| {
            self.look_at_all(state, now);
            state.member.look(now);
        });
    }

    fn look_at_all(&self, state: &mut State, now: Nanos) {
        if !matches!(state.standing, Standing::Here | Standing::Leaving) {
            return;
        }
        let number = self.space.number(self.slot).load_acquire();
        // After the load: what is gone is zero.
        if !self.space.is_intact() {
            return self.lose(state, Standing::NoMemory, now);
        }
        if number != self.number.0 {
            self.space.mute();
            return self.lose(state, self.standing_without(Standing::Displaced), now);
        }
        let time = Duration::from_nanos(now.0);
        if time >= state.next_beat {
            // Of a file the header is written once; whoever scribbles on it hurts only who comes later.
            if self.space.is_device() && self.space.check_header().is_err() {
                self.space.mute();
                return self.lose(state, self.standing_without(Standing::Remade), now);
            }
            if let Some(path) = self.space.source.lost_path() {
                tracing::error!(path = %path.display(), "the file that members share was deleted or replaced");
                self.space.lose();
                return self.lose(state, Standing::NoFile, now);
            }
            if state.beats != 0 && time > state.next_beat + Heartbeat::of::<MappedFile>().bound() {
                state.suspect_holdings();
            }
            state.next_beat = time + Heartbeat::of::<MappedFile>().period() / 2;
            state.beats = state.beats.wrapping_add(1);
            self.space.ordered(|| self.space.beat(self.slot).store_release(state.beats));
            for at in 0..state.peers.len() {
                self.look_at(state, at, time);
            }
            self.take_back(state);
            if state.standing == Standing::Here {
                self.answer(state, now);
            }
            if state.joints.is_any_lost() || state.is_any_made_anew(self.node) {
                self.space.mute();
                return self.lose(state, Standing::Displaced, now);
            }
        }
        for at in 0..state.peers.len() {
            let peer = &mut state.peers[at];
            if peer.is_new() {
                self.take_in(state, at);
            }
        }
    }

    /// What a member is behind words that are not its own any more: this, unless they are no words of the memory.
    fn standing_without(&self, standing: Standing) -> Standing {
        if self.space.answers() { standing } else { Standing::NoMemory }
    }

    fn look_at(&self, state: &mut State, at: usize, time: Duration) {
        state.peers[at].saw_beats(self.space.beat(at).load_acquire(), time);
        let (change, line) = state.peers[at].look(time);
        match change {
            Change::Left => self.forget(state, at, Member::gone),
            // Its process may only stand still. Who has taken its slot has cleared what it claims.
            Change::Lost | Change::TakenForDead => {
                if change == Change::TakenForDead {
                    state.suspect_holdings();
                }
                let is_replaced = !state.peers[at].has_slot(&self.space);
                state.joints.keep_of(at, is_replaced);
                self.forget(state, at, if is_replaced { Member::replaced } else { Member::silent });
            }
            Change::Came | Change::Nothing => {}
        }
        // Behind all that: who sees it sees that this member claims nothing of the last session.
        if let Some(line) = line {
            state.peers[at].push(&self.space, &line);
        }
    }

    /// The member that has a slot is there: what it claims counts from here on.
    fn take_in(&self, state: &mut State, at: usize) {
        let number = MemberNumber(self.space.number(at).load_acquire());
        if number.0 == 0 {
            return;
        }
        let peer = &mut state.peers[at];
        peer.came(number);
        let uses = View::new(self.space.uses(at, self.slot));
        let pair = state.member.admit(number.node(), uses);
        peer.consumer = Some(pair);
        state.interrupts.values().for_each(|interrupt| interrupt.admit(pair, at));
    }

    fn forget(&self, state: &mut State, at: usize, tell: impl Fn(&mut Member<OneMemory>, PairId, Nanos)) {
        let pairs = state.peers[at].forget();
        for pair in pairs.into_iter().flatten() {
            // What it has triggered is still taken.
            state.interrupts.values().for_each(|interrupt| interrupt.gone(pair));
            tell(&mut state.member, pair, nanos(self.now()));
        }
        state.peers[at].claims.clear();
        state.peers[at].yard.clear();
        state.peers[at].let_go(&self.space, self.slot);
    }

    /// Ends everything with everybody, without another word.
    fn lose(&self, state: &mut State, standing: Standing, now: Nanos) {
        tracing::warn!(?standing, slot = self.slot, "a member of the fabric is none any more");
        state.standing = standing;
        for at in 0..state.peers.len() {
            for pair in state.peers[at].forget().into_iter().flatten() {
                state.member.silent(pair, now);
            }
        }
        let _no_adapter = state.member.call(Call::SetLink(self.adapter, false), now);
        state.member.cancel_attempts();
    }

    /// Ends what this member is to others, and leaves when nothing is mapped any more.
    pub(crate) fn leave(&self) {
        if !self.process.is_this() {
            return self.ended.forget();
        }
        self.enter(|state, _| match state.standing {
            Standing::Here => {
                state.member.leave();
                state.names.clear();
                state.standing = Standing::Leaving;
                self.leave_if_unmapped(state);
            }
            Standing::Leaving | Standing::Left => {}
            // A member that is one no more has nothing to look for.
            _ => self.ended.set(),
        });
        self.ended.join();
    }

    /// Gives up a map of the area of a slot, as `unmap` does; without the last one the member leaves, if it was to.
    pub(crate) fn unmap(&self, slot: usize, unmap: impl FnOnce(&mut State, Nanos)) {
        self.enter(|state, now| {
            unmap(state, now);
            state.peers[slot].let_go(&self.space, self.slot);
            self.leave_if_unmapped(state);
        });
        self.ended.join();
    }

    /// Says to all that nothing of this member comes any more, once it is so.
    fn leave_if_unmapped(&self, state: &mut State) {
        let is_mapped = state.peers.iter().any(|peer| peer.maps != 0);
        if state.standing != Standing::Leaving || is_mapped {
            return;
        }
        let time = self.now();
        state.peers.iter_mut().for_each(|peer| peer.farewell(&self.space, time));
        self.space.ordered(|| self.space.number(self.slot).store_release(0));
        self.space.mute();
        state.standing = Standing::Left;
        self.ended.set();
    }
}

pub(crate) fn nanos(time: Duration) -> Nanos {
    // Some five hundred years.
    Nanos(time.as_nanos() as u64)
}

/// Beats and looks until the member leaves, on a thread of its own.
pub(crate) fn serve(shared: &std::sync::Weak<Shared>) {
    while let Some(shared) = shared.upgrade() {
        shared.tend();
        if shared.ended.wait(NAP) {
            return;
        }
    }
}

/// A counter that gives random-looking numbers, each once.
#[derive(Debug)]
pub(crate) struct Numbers(AtomicU64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Numbers(AtomicU64::new(seed))
    }

    pub(crate) fn next(&self) -> u64 {
        let next = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        (next ^ next >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}
