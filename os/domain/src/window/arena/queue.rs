//! Windows that clients have opened, until the program accepts them; and what whoever accepts sleeps on.
//!
//! A client tells what it opens in memory (`tells.rs`), and then looks at a flag beside it, which no other client can reach. Who waits
//! for windows sleeps on the flags of all clients together, so that the client that opens one wakes it, and no other thread has to run.
//! One thread does so for all that wait; the others wait for it. Who listens by descriptor sets another bit of the flags: then a client
//! sends a packet, after which the domain's thread looks and signals. So does each client beyond those that one sleep can be for.
//!
//! What a client stores into its flag has whoever sleeps wake up for nothing, or learn of a window of that client later.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use beeline_mmio::{Flag, MAX_FLAGS, Region};

use crate::Event;
use crate::protocol::{self, ASLEEP, Futex, LISTENING};
use crate::sleeper::{MAX_SLEEP, MemorySleeper, listen_all, park_any, prepare_all};

/// A client that may have opened windows.
pub(super) trait Client: Send + Sync {
    /// Whether it has told something that was not heard. A load.
    fn has_told(&self) -> bool;
    /// Hears some of it, in a time that a constant bounds, and puts what was opened in the queue; whether there is more.
    fn hear_some(this: &Arc<Self>) -> bool;
    /// Hears what it has told until now; what it tells meanwhile may be left.
    fn hear_all(this: &Arc<Self>);
    /// Sleeps on the flag that it looks at.
    fn sleeper(&self) -> &MemorySleeper;
}

/// What clients have opened, until it is accepted: no more of each than it may have open, and of no more that have gone since than
/// `departed.rs` bounds.
#[derive(Debug)]
pub(super) struct Queue<T, C> {
    /// Held over no system call: the domain's thread takes it.
    state: Mutex<State<T, C>>,
    arrived: Condvar,
    /// What the thread that sleeps on their flags is woken by in this process.
    own: Flag,
    /// Whether clients are to send packets.
    is_listening: AtomicBool,
    /// Held while the bits of clients are set for that: another thread that does the same must not find bits that are not ordered yet.
    listening: Mutex<()>,
    can_wait_for_any: bool,
}

#[derive(Debug)]
struct State<T, C> {
    waiting: VecDeque<T>,
    clients: Arc<Vec<Arc<C>>>,
    /// What is signalled when a window is opened.
    event: Option<Event>,
    is_closed: bool,
    /// Whether a thread sleeps on their flags, or is about to.
    has_sleeper: bool,
    /// Threads that wait beside it.
    beside: usize,
}

impl<T, C: Client> Queue<T, C> {
    pub(super) fn new() -> Self {
        let own = Region::private(64).flag(0);
        // It is not what is expected, so nobody sleeps.
        let can_wait_for_any = Flag::wait_any(&[(&own, ASLEEP)], Duration::ZERO).is_some();
        let state = State {
            waiting: VecDeque::new(),
            clients: Arc::default(),
            event: None,
            is_closed: false,
            has_sleeper: false,
            beside: 0,
        };
        let (state, arrived) = (Mutex::new(state), Condvar::new());
        let (is_listening, listening) = (AtomicBool::new(false), Mutex::new(()));
        Queue { state, arrived, own, is_listening, listening, can_wait_for_any }
    }

    fn lock(&self) -> MutexGuard<'_, State<T, C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a client in, before that knows of it. For those that listen its flag is set after its first request.
    pub(super) fn join(&self, client: &Arc<C>) {
        let mut state = self.lock();
        Arc::make_mut(&mut state.clients).push(Arc::clone(client));
        self.rouse(state);
    }

    /// Forgets a client, all of which was heard.
    pub(super) fn leave(&self, client: &Arc<C>) {
        let mut state = self.lock();
        Arc::make_mut(&mut state.clients).retain(|known| !Arc::ptr_eq(known, client));
    }

    /// Puts a window in; gives it back if nobody will take it.
    pub(super) fn push(&self, opened: T) -> Result<(), T> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(opened);
        }
        state.waiting.push_back(opened);
        let (event, has_beside) = (state.event.clone(), state.beside > 0);
        self.rouse(state);
        if has_beside {
            self.arrived.notify_one();
        }
        if let Some(event) = event {
            event.signal();
        }
        Ok(())
    }

    /// Has whoever sleeps on their flags look again. It set its flag with the lock held, so it is found here, or finds what was changed.
    fn rouse(&self, state: MutexGuard<'_, State<T, C>>) {
        let has_sleeper = state.has_sleeper;
        drop(state);
        if has_sleeper {
            protocol::rouse(&self.own);
        }
    }

    /// The state, with a window in it unless nobody has told of one.
    fn looked(&self) -> MutexGuard<'_, State<T, C>> {
        loop {
            let state = self.lock();
            if !state.waiting.is_empty() {
                return state;
            }
            let told: Vec<_> = state.clients.iter().filter(|client| client.has_told()).cloned().collect();
            if told.is_empty() {
                return state;
            }
            drop(state);
            for client in &told {
                C::hear_some(client);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.looked().waiting.is_empty()
    }

    pub(super) fn try_take(&self) -> Option<T> {
        self.looked().waiting.pop_front()
    }

    /// Takes a window, and waits for one until `deadline` (`None`: for ever).
    pub(super) fn take(&self, deadline: Option<Instant>) -> Option<T> {
        loop {
            let mut state = self.looked();
            let opened = state.waiting.pop_front();
            let left =
                deadline.map_or(MAX_SLEEP, |deadline| deadline.saturating_duration_since(Instant::now()));
            if opened.is_some() || left.is_zero() {
                let hands_over = !state.has_sleeper && state.beside > 0;
                drop(state);
                if hands_over {
                    // One of the others sleeps on their flags from now on.
                    self.arrived.notify_one();
                }
                return opened;
            }
            let left = left.min(MAX_SLEEP);
            if state.has_sleeper {
                state.beside += 1;
                let (mut state, _) =
                    self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
                state.beside -= 1;
                continue;
            }
            state.has_sleeper = true;
            Futex::set(&self.own, ASLEEP);
            let clients = Arc::clone(&state.clients);
            drop(state);
            self.sleep(&clients, left);
            self.lock().has_sleeper = false;
        }
    }

    /// Sleeps until a client has told something, or something was put in or changed here.
    fn sleep(&self, clients: &[Arc<C>], limit: Duration) {
        let most = if self.can_wait_for_any { MAX_FLAGS - 1 } else { 0 };
        let (near, far) = clients.split_at(most.min(clients.len()));
        prepare_all(near.iter().map(|client| client.sleeper()));
        listen(far);
        // The last look.
        if !clients.iter().any(|client| client.has_told()) {
            let flags_of_near = near.iter().map(|client| client.sleeper().flag());
            let flags: Vec<_> = std::iter::once(&self.own).chain(flags_of_near).collect();
            match *flags {
                [own] => drop(protocol::park(own, limit)),
                _ => park_any(&flags, limit),
            }
        }
        let flags_of_near = near.iter().map(|client| client.sleeper().flag());
        for flag in std::iter::once(&self.own).chain(flags_of_near) {
            if Futex::load(flag) & ASLEEP != 0 {
                protocol::cancel(flag, ASLEEP);
            }
        }
    }

    /// Has `event` signalled when a window is opened. What was opened before is found by the next look.
    pub(super) fn signal(&self, event: Option<&Event>) {
        let mut changed = event.cloned();
        self.listen_if(|state| {
            std::mem::swap(&mut state.event, &mut changed);
            event.is_some() || state.is_closed
        });
        // The old one may be the last, and is closed outside the lock.
        drop(changed);
    }

    /// Changes what decides whether clients are to send packets, and has them do so, or not. The clients of then.
    fn listen_if(&self, change: impl FnOnce(&mut State<T, C>) -> bool) -> Arc<Vec<Arc<C>>> {
        let _in_order = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        let is_listening = change(&mut state);
        self.is_listening.store(is_listening, Ordering::Relaxed);
        let clients = Arc::clone(&state.clients);
        drop(state);
        // The bits are not taken back when nobody listens any more, which is a packet for nothing at most, and spares the barrier when
        // somebody does again.
        if is_listening {
            listen(&clients);
        }
        clients
    }

    /// Sets the bit of a client again that it took, for the domain's thread, which hears the client afterwards.
    pub(super) fn listen_again(&self, client: &Arc<C>) {
        // Relaxed: whoever sets it then sets the bits, too.
        if self.is_listening.load(Ordering::Relaxed) {
            listen(std::slice::from_ref(client));
        }
    }

    /// Takes nothing more, and gives what waits and what will come up.
    pub(super) fn close(&self) {
        let mut left = VecDeque::new();
        let clients = self.listen_if(|state| {
            state.is_closed = true;
            std::mem::swap(&mut state.waiting, &mut left);
            true
        });
        // Outside the lock: each tells its sender.
        drop(left);
        for client in clients.iter() {
            C::hear_all(client);
        }
    }
}

/// Has clients send a packet when they have told something, from here on.
fn listen<C: Client>(clients: &[Arc<C>]) {
    let sleepers = clients.iter().map(|client| client.sleeper());
    let to_set: Vec<_> = sleepers.filter(|sleeper| Futex::load(sleeper.flag()) & LISTENING == 0).collect();
    for sleeper in &to_set {
        Futex::set(sleeper.flag(), LISTENING);
    }
    listen_all(to_set);
}

#[cfg(test)]
#[cfg(not(loom))]
#[path = "queue_tests.rs"]
mod tests;
