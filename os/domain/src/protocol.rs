//! Sleeping without a fence per message: the lock-free part, generic so that loom runs this very code.
//!
//! A receiver that has nothing to read sets a flag, makes its store and everybody's earlier stores visible with a
//! *heavy* barrier, looks once more, and only then sleeps. A sender stores its message, passes a *light* barrier, and
//! looks at the flag. Store buffering, the one reordering that every CPU does, could hide both stores from both
//! loads; a barrier on each side forbids that. The light one is a compiler barrier on the machine: the heavy one,
//! `MEMBARRIER_CMD_GLOBAL_EXPEDITED`, runs a full barrier on the sender's core for it (docs/design.md, decision 5). In
//! the loom model, which has no membarrier, both are SeqCst fences; with either taken out the model finds the lost
//! wake-up.
//!
//! Who waits by descriptor does the same with another bit of the same word. A waker takes both bits with one swap, so
//! that a sleeper and a listener on one word are both told, and each withdraws its own bit only.
//!
//! What it does not do: trust the flag. The other process can write anything into it, or never look at it. Every
//! sleep is bounded, and every return means no more than "look again".

use std::time::Duration;

use crate::sync::{AtomicBool, AtomicU8, Ordering, fence};

/// Value of the flag while its owner is awake.
pub(crate) const AWAKE: u32 = 0;
/// Bit of the flag: somebody sleeps on the word, or is about to.
///
/// It is set twice, so that the word is the same in both byte orders: the kernel compares it in the machine's, and processes of
/// both may share it.
pub(crate) const ASLEEP: u32 = 0x0100_0001;
/// Bit of the flag: somebody waits for a descriptor to become readable, or is about to. Set twice as [`ASLEEP`] is.
pub(crate) const LISTENING: u32 = 0x0200_0002;
const _: () = assert!(ASLEEP.swap_bytes() == ASLEEP && LISTENING.swap_bytes() == LISTENING);

/// A word that one side sleeps on.
pub(crate) trait Futex {
    /// Relaxed; the barriers order it.
    fn load(&self) -> u32;
    /// Sets bits; release, pairs with the acquire of `take`: who takes a bit comes after what its owner did before it
    /// set the bit, the emptying of its descriptor among them.
    fn set(&self, bits: u32);
    /// Clears bits; relaxed, nobody reads anything by it.
    fn clear(&self, bits: u32);
    /// Takes all bits; acquire and release, pairs with `set`.
    fn take(&self) -> u32;
    /// Sleeps while the word is `expected`, at most `timeout`; `false` when the bound passed.
    fn wait(&self, expected: u32, timeout: Duration) -> bool;
    fn wake(&self);
}

/// The two barriers that stand between a store and a load on each side.
pub(crate) trait Barriers {
    /// Once for every message: between the sender's last store and its load of the flag.
    fn light(&self);
    /// Once for every sleep: between the sleeper's store of the flag and its last look.
    fn heavy(&self);
}

/// Announces with `bit` that the owner of `flag` is about to sleep or to listen. Then it looks once more, and waits or
/// cancels.
pub(crate) fn prepare(flag: &impl Futex, bit: u32, barriers: &impl Barriers) {
    flag.set(bit);
    // Pairs with the light barrier of `wake_if_asleep`: either that side's load sees the bit, or the look that follows
    // here sees that side's stores.
    barriers.heavy();
}

/// Announces that the owner of `flag` listens; the barrier and the last look come after it. `is_armed` tells the thread that signals
/// that the descriptor was emptied for this announcement.
pub(crate) fn announce(flag: &impl Futex, is_armed: &AtomicBool) {
    // Release: pairs with the swap of `is_to_be_signalled`, whose signal comes after the emptying of the descriptor.
    is_armed.store(true, Ordering::Release);
    flag.set(LISTENING);
}

/// Whether the descriptor of a listener is to be signalled, for the thread that has just read a packet of the peer: somebody
/// took the bit of its word, which is its alone, and it has not been told since it announced it.
///
/// Whatever packet was read: a waker that takes the bit and finds no room for its packet knows that an unread one is there,
/// and that this is asked after each that is read.
pub(crate) fn is_to_be_signalled(flag: &impl Futex, is_armed: &AtomicBool) -> bool {
    // The caller passes a full barrier after the packet that it read; see `wake`.
    flag.load() & LISTENING == 0 && is_armed.swap(false, Ordering::AcqRel)
}

/// The value to sleep on; `None` when there is no sleep: the bit was taken, or the peer stored what is no flag, which is
/// thrown away so that a later sleep is one.
pub(crate) fn parked_value(flag: &impl Futex) -> Option<u32> {
    let value = flag.load();
    if value & !(ASLEEP | LISTENING) != 0 {
        flag.take();
        return None;
    }
    (value & ASLEEP != 0).then_some(value)
}

/// Sleeps until woken, at most `timeout`; `false` when the bound passed. A listener that comes meanwhile changes the
/// word, and may end the sleep.
pub(crate) fn park(flag: &impl Futex, timeout: Duration) -> bool {
    let woken = parked_value(flag).is_none_or(|value| flag.wait(value, timeout));
    cancel(flag, ASLEEP);
    woken
}

/// Takes the announcement back, so that senders do not pay for a wake-up that nobody needs.
pub(crate) fn cancel(flag: &impl Futex, bit: u32) {
    flag.clear(bit);
}

/// After a store: wakes the owner of `flag` if it sleeps, and has `ring` tell it if it listens. While it is awake this
/// costs one load of a line that stays in this core's cache.
#[inline]
pub(crate) fn wake_if_asleep(flag: &impl Futex, barriers: &impl Barriers, ring: impl FnOnce()) -> bool {
    // Pairs with the heavy barrier of `prepare`.
    barriers.light();
    if flag.load() == AWAKE {
        return false;
    }
    wake(flag, ring);
    true
}

/// Takes the bits first, so that a sleeper between its last look and its sleep does not fall asleep any more.
#[cold]
pub(crate) fn wake(flag: &impl Futex, ring: impl FnOnce()) {
    let bits = flag.take();
    // Either the packet finds room, or the thread that makes room by reading one sees that the bit is taken: pairs with the barrier
    // between its reading and its look.
    fence(Ordering::SeqCst);
    if bits & ASLEEP != 0 {
        flag.wake();
    }
    if bits & LISTENING != 0 {
        ring();
    }
}

/// Wakes the sleepers of a flag whatever it says: the peer that could write into it has gone. Listeners are told apart
/// from the flag.
pub(crate) fn rouse(flag: &impl Futex) {
    flag.take();
    flag.wake();
}

/// Whether a peer is there: written once, by the domain's thread or by who gives a branch up, read by everybody.
#[derive(Debug)]
pub(crate) struct Presence(AtomicU8);

const PRESENT: u8 = 0;
const CLOSED: u8 = 1;
const DIED: u8 = 2;

/// How a peer went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// Its process ended: kernel evidence, never silence.
    Died,
    /// It closed its end of the connection and lives on.
    Closed,
}

impl Presence {
    pub(crate) fn new() -> Self {
        Presence(AtomicU8::new(PRESENT))
    }

    /// Returns whether the peer is there: one relaxed load, for hot paths.
    #[inline(always)]
    pub(crate) fn is_present(&self) -> bool {
        self.0.load(Ordering::Relaxed) == PRESENT
    }

    /// Acquire: pairs with `depart`, so that whoever sees a departure sees what the domain's thread saw before it, the
    /// last stores of the peer included.
    pub(crate) fn departure(&self) -> Option<Departure> {
        match self.0.load(Ordering::Acquire) {
            PRESENT => None,
            CLOSED => Some(Departure::Closed),
            _ => Some(Departure::Died),
        }
    }

    /// Marks the peer as gone; `false` if it was before. The caller then calls [`rouse`] on every flag that is slept on for that
    /// peer.
    pub(crate) fn depart(&self, how: Departure) -> bool {
        let value = match how {
            Departure::Closed => CLOSED,
            Departure::Died => DIED,
        };
        // Release: pairs with `departure`. The first departure counts.
        let is_first = self.0.compare_exchange(PRESENT, value, Ordering::Release, Ordering::Relaxed).is_ok();
        // Pairs with the heavy barrier of `prepare`: either the sleeper's last look sees the departure, or what
        // follows here takes its bit.
        fence(Ordering::SeqCst);
        is_first
    }
}

#[cfg(test)]
#[cfg(loom)]
#[path = "protocol_loom.rs"]
pub(crate) mod loom_models;

#[cfg(test)]
#[cfg(loom)]
#[path = "protocol_loom_listening.rs"]
mod loom_models_of_listening;

#[cfg(test)]
#[cfg(not(loom))]
#[path = "protocol_litmus.rs"]
mod litmus;
