//! Each thread's record of pins: found without a lock, and given up when the thread ends.

use core::cell::Cell;
use core::ptr;

use super::pins::{Pin, Pins, Record, ShortPin};
use super::{barrier, own_word};
use crate::sync::{AtomicPtr, AtomicU32, Ordering};

/// The pins of all threads of this process.
pub(super) static PINS: Pins =
    Pins::of(AtomicPtr::new(ptr::null_mut()), AtomicU32::new(0), AtomicU32::new(0));

/// Gives the record of a thread up when the thread ends.
struct Mark(Cell<Option<&'static Record>>);

impl Drop for Mark {
    fn drop(&mut self) {
        // What destructors of this thread do from here on has a record for each use.
        own_word::set(None);
        RECORD.set(None);
        if let Some(record) = self.0.get() {
            record.give_up(&PINS);
        }
    }
}

thread_local! {
    static RECORD: Cell<Option<&'static Record>> = const { Cell::new(None) };
    static MARK: Mark = const { Mark(Cell::new(None)) };
}

/// The calling thread, by the address of a variable of its own: also while it ends, and in a child of fork.
fn this_thread() -> usize {
    RECORD.with(|record| ptr::from_ref(record).addr())
}

/// Runs `body` with `bits` pinned for the calling thread. It is called in one place, so that the compiler puts it there.
#[inline(always)]
pub(super) fn pinned<R>(bits: u64, body: impl FnOnce(&Pin<'_>) -> R) -> R {
    let (record, is_for_this_use) = match RECORD.get() {
        Some(record) if record.has_room() => (record, false),
        _ => record_elsewhere(),
    };
    // Given up after the pin, and also when `body` panics.
    let _given_up = is_for_this_use.then(|| GivenUp(record));
    let pin = record.pin(&PINS, bits).expect("nobody else pins in it, and it has room");
    body(&pin)
}

/// Pins `bits` for the calling thread if it has a record in which nothing is pinned, and does not fence.
#[inline(always)]
pub(super) fn short_pin(bits: u64) -> Option<ShortPin<'static>> {
    own_word::get()?.pin_shortly(bits)
}

/// A record with room, for a thread that has none, or whose record is full; and whether it is for one use alone.
#[cold]
#[inline(never)]
fn record_elsewhere() -> (&'static Record, bool) {
    let record = PINS.record_of(this_thread(), is_fenced());
    // A thread that ends has no mark any more.
    let is_first = RECORD.get().is_none()
        && MARK.try_with(|mark| mark.0.set(Some(record))).is_ok_and(|()| {
            own_word::set((!record.is_fenced()).then_some(record));
            RECORD.set(Some(record));
            true
        });
    (record, !is_first)
}

/// Gives its record up when it is dropped.
struct GivenUp(&'static Record);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.give_up(&PINS);
    }
}

/// Whether the calling thread has pinned something.
pub(super) fn has_pins() -> bool {
    PINS.has_pins(this_thread())
}

/// Whether users fence, because the kernel refuses the barrier. It is asked before the first pin.
pub(super) fn is_fenced() -> bool {
    const UNKNOWN: u32 = 0;
    const GRANTED: u32 = 1;
    const FENCED: u32 = 2;
    // No `OnceLock`: a child of fork has no thread that would finish its initialization.
    static ANSWER: AtomicU32 = AtomicU32::new(UNKNOWN);
    // Acquire, here and below: whoever has the answer has the registrations that came before it.
    let known = ANSWER.load(Ordering::Acquire);
    let answer = if known == UNKNOWN {
        // Threads that come at the same time all ask, which is harmless; the answer of one counts for all.
        forget_others_in_children();
        let own = if barrier::register() { GRANTED } else { FENCED };
        ANSWER.compare_exchange(UNKNOWN, own, Ordering::AcqRel, Ordering::Acquire).err().unwrap_or(own)
    } else {
        known
    };
    answer == FENCED
}

/// Threads that were in a function when a process forked are in none in the child, where nobody ends their pins.
fn forget_others_in_children() {
    extern "C" fn in_child() {
        PINS.forget_others(this_thread());
    }
    if !cfg!(miri) {
        // SAFETY: the function only changes atomics, which it may between fork and exec. It fails for want of memory: then a remover
        // in a child waits for who was inside at the fork.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}
