//! Sleeping and waking over memory shared with a peer: the protocol of [`crate::protocol`] on a real futex word, with
//! the real membarrier.

use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence, fence};
use std::time::Duration;

use beeline_contract_memory::Sleeper;
use beeline_mmio::{Flag, MAX_FLAGS, WaitOutcome, membarrier};

use crate::peer::Signalled;
use crate::protocol::{self, Barriers, Futex};
use crate::sync::AtomicBool;
use crate::{Event, Peer};

/// Longest single sleep. A hostile peer may never wake us, so a caller that waits longer looks again this often.
pub const MAX_SLEEP: Duration = Duration::from_secs(1);

impl Futex for Flag {
    #[inline(always)]
    fn load(&self) -> u32 {
        Flag::load(self)
    }

    fn set(&self, bits: u32) {
        Flag::set(self, bits);
    }

    fn clear(&self, bits: u32) {
        Flag::clear(self, bits);
    }

    fn take(&self) -> u32 {
        self.swap(protocol::AWAKE)
    }

    fn wait(&self, expected: u32, timeout: Duration) -> bool {
        Flag::wait(self, expected, timeout) != WaitOutcome::TimedOut
    }

    fn wake(&self) {
        // One side owns the flag, and one thread of it sleeps at a time; a second one costs nothing.
        Flag::wake(self, u32::MAX >> 1);
    }
}

#[derive(Clone, Copy, Debug)]
struct MachineBarriers {
    /// Whether a side lacks membarrier, so that the light barrier must be a real one too.
    full: bool,
}

impl Barriers for MachineBarriers {
    #[inline(always)]
    fn light(&self) {
        // Configuration on the hot path, always predicted: a peer without membarrier is the exception, and it must not
        // make senders to other peers pay.
        if self.full {
            // Pairs with the fence in `heavy` of the other side.
            fence(Ordering::SeqCst);
        } else {
            // Keeps the compiler from moving the flag's load up; the sleeper's membarrier does it for the CPU.
            compiler_fence(Ordering::SeqCst);
        }
    }

    fn heavy(&self) {
        // Where it is refused, both sides know it from the rendezvous (`Peer::needs_full_fence`) and the fence serves.
        if self.full || membarrier::global_expedited().is_err() {
            // Pairs with the fence in `light` of the other side.
            fence(Ordering::SeqCst);
        }
    }
}

/// Sleeps on a futex word that the peer looks at after its stores: a receiver that waits for messages, or a sender
/// that waits for credits. The sleeper pays for the ordering; the peer does not fence (docs/design.md, decision 5).
///
/// Whatever a sleep returns, look again: a hostile peer can wake us for nothing, and never when it should. Cost of one:
/// a membarrier (0.2 to 20 µs, by the cores it must interrupt) and a futex call.
#[derive(Debug)]
pub struct MemorySleeper {
    flag: Flag,
    peer: Peer,
    barriers: MachineBarriers,
    watch: u64,
    /// What is signalled when the peer has taken the flag, and the number to remove it by.
    listener: Option<(u64, Event)>,
    /// Whether it was announced since it was last signalled.
    is_armed: Arc<AtomicBool>,
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slept {
    /// The last look found something: there was no sleep.
    Ready,
    /// Somebody changed the flag or a signal came.
    Woken,
    /// The bound passed.
    TimedOut,
    /// The peer died or closed its end.
    PeerGone,
}

impl MemorySleeper {
    /// Sleeps on `flag`, which `peer` checks with a [`Waker`] on the same word. The domain's thread wakes it too when
    /// the peer goes.
    pub fn new(flag: Flag, peer: &Peer) -> Self {
        let watch = peer.watch(&flag);
        MemorySleeper {
            flag,
            peer: peer.clone(),
            barriers: MachineBarriers { full: peer.needs_full_fence() },
            watch,
            listener: None,
            is_armed: Arc::new(AtomicBool::new(false)),
        }
    }

    /// The three steps of [`Sleeper`] in one: announces the sleep, looks once more with `look`, and sleeps unless it
    /// says `true`; at most `limit` and at most [`MAX_SLEEP`].
    pub fn sleep(&mut self, limit: Duration, look: impl FnOnce() -> bool) -> Slept {
        self.prepare();
        let slept = if look() {
            self.cancel();
            Slept::Ready
        } else if self.is_peer_gone() {
            self.cancel();
            Slept::PeerGone
        } else if protocol::park(&self.flag, limit.min(MAX_SLEEP)) {
            Slept::Woken
        } else {
            Slept::TimedOut
        };
        if slept != Slept::Ready && self.is_peer_gone() { Slept::PeerGone } else { slept }
    }

    /// The word slept on, for [`park_any`].
    pub fn flag(&self) -> &Flag {
        &self.flag
    }

    /// Wakes whoever else of this process sleeps or listens on the same word.
    pub fn wake(&self) {
        if self.flag.load() != protocol::AWAKE {
            protocol::wake(&self.flag, || self.peer.signal_listeners(Signalled::Taken));
        }
    }

    /// Announces that this side listens: from now on a wake-up of the peer, and its departure, end in a signal of
    /// `event`. Call [`listen_all`] after it, then look once more ([`crate::Source`]).
    pub fn announce(&mut self, event: &Event) {
        if !self.listener.as_ref().is_some_and(|(_, old)| old.is_same(event)) {
            self.forget_listener();
            let number = self.peer.watch_event(event, &self.flag, &self.is_armed);
            self.listener = Some((number, event.clone()));
        }
        protocol::announce(&self.flag, &self.is_armed);
    }

    /// Takes the announcement back. Who shares the word with other listeners must not.
    pub fn unlisten(&mut self) {
        // Relaxed: a signal that is on its way may still come.
        self.is_armed.store(false, Ordering::Relaxed);
        protocol::cancel(&self.flag, protocol::LISTENING);
    }

    fn forget_listener(&mut self) {
        if let Some((number, _)) = self.listener.take() {
            self.peer.unwatch(number);
        }
    }

    /// The peer that is waited for.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }
}

/// The first step of [`Sleeper`] for several at once, with one barrier for all.
pub fn prepare_all<'a>(sleepers: impl IntoIterator<Item = &'a MemorySleeper>) {
    order_all(sleepers.into_iter().inspect(|sleeper| sleeper.flag.set(protocol::ASLEEP)));
}

/// What follows [`MemorySleeper::announce`] of several: one barrier for all, after which a last look is taken.
pub fn listen_all<'a>(sleepers: impl IntoIterator<Item = &'a MemorySleeper>) {
    order_all(sleepers.into_iter());
}

fn order_all<'a>(sleepers: impl Iterator<Item = &'a MemorySleeper>) {
    let (mut is_any, mut full) = (false, false);
    for sleeper in sleepers {
        is_any = true;
        full |= sleeper.barriers.full;
    }
    if is_any {
        // Whoever has membarrier is reached by it; the fence is for peers that have not.
        MachineBarriers { full: false }.heavy();
        if full {
            MachineBarriers { full }.heavy();
        }
    }
}

/// The last step of [`Sleeper`] for several at once: sleeps until one of them is woken, at most `limit` and at most
/// [`MAX_SLEEP`]. Each was prepared before, and is cancelled after. A kernel may know no such sleep (before 5.16), and none takes
/// more than [`MAX_FLAGS`]: then it lasts a millisecond at most, and whoever has so many listens by one [`Event`] instead.
pub fn park_any(flags: &[&Flag], limit: Duration) {
    let limit = limit.min(MAX_SLEEP);
    let short = limit.min(Duration::from_millis(1));
    if flags.is_empty() {
        std::thread::sleep(short);
        return;
    }
    let limit = if flags.len() > MAX_FLAGS { short } else { limit };
    let values = flags.iter().map(|flag| protocol::parked_value(*flag).map(|value| (*flag, value)));
    let Some(flags) = values.collect::<Option<Vec<_>>>() else { return };
    if Flag::wait_any(&flags, limit).is_none() {
        std::thread::sleep(short);
    }
}

impl Sleeper for MemorySleeper {
    fn prepare(&mut self) {
        protocol::prepare(&self.flag, protocol::ASLEEP, &self.barriers);
    }

    /// Sleeps at most `limit` and at most [`MAX_SLEEP`].
    fn park(&mut self, limit: Duration) {
        protocol::park(&self.flag, limit.min(MAX_SLEEP));
    }

    fn cancel(&mut self) {
        protocol::cancel(&self.flag, protocol::ASLEEP);
    }

    /// After `true`, every store that the peer made before it went is visible here.
    #[inline]
    fn is_peer_gone(&self) -> bool {
        // One relaxed load as long as the peer is there; the acquire is for the caller that now reads what it left.
        !self.peer.is_alive() && self.peer.departure().is_some()
    }
}

impl Drop for MemorySleeper {
    fn drop(&mut self) {
        self.peer.unwatch(self.watch);
        self.forget_listener();
    }
}

/// What [`Waker::wake_if_asleep`] does, once, for a flag that nobody keeps; `ring` has those who listen told.
pub(crate) fn wake_if_asleep(flag: &Flag, peer: &Peer, ring: impl FnOnce()) {
    protocol::wake_if_asleep(flag, &MachineBarriers { full: peer.needs_full_fence() }, ring);
}

/// The other side of a [`MemorySleeper`]: wakes the owner of a futex word if it sleeps or listens.
#[derive(Clone, Debug)]
pub struct Waker {
    flag: Flag,
    peer: Peer,
    barriers: MachineBarriers,
}

impl Waker {
    /// Looks at `flag`, which `peer` sleeps on.
    pub fn new(flag: Flag, peer: &Peer) -> Self {
        Waker { flag, peer: peer.clone(), barriers: MachineBarriers { full: peer.needs_full_fence() } }
    }

    /// Call it after the stores that the peer waits for. While the peer is awake it costs one load of a line that
    /// stays in this core's cache, and no fence; otherwise one system call. Says whether it woke.
    #[inline]
    pub fn wake_if_asleep(&self) -> bool {
        protocol::wake_if_asleep(&self.flag, &self.barriers, || self.peer.ring_taken())
    }
}
