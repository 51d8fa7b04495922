//! A message that C reads: one handle for each receiver, that means something while a message is held.
//!
//! In Rust a message borrows its receiver. Here it lies in the handle's slot with its lifetime taken away, and whatever
//! touches the receiver empties the slot first (`inside.rs`). A message of a drain stays where the drain has it: the slot
//! has a pointer to it for the time of the callback, so that no message of a drain is moved.

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};

use beeline::{Message, MessageRef};
use beeline_ffi::{Caller, Failure, Handle, Kind, Memory, Outcome, Owned, SlotRef, edge_or};

use super::status::NO_MESSAGE;

/// `beeline_window_each`. It may unwind as far as Rust is concerned: what comes out of it ends at the edge or the process,
/// never in undefined behaviour.
pub(crate) type Each =
    unsafe extern "C-unwind" fn(context: *mut c_void, message: Handle<beeline_window_message>, length: usize);

/// What a receiver's message handle names.
pub struct beeline_window_message(pub(crate) Held);

impl Kind for beeline_window_message {
    const NAME: &'static str = "message";
    const TAG: u8 = 0x2d;
}

/// Only functions of the receiver enter as a new owner; whoever else uses a message must own it already.
pub(crate) static MESSAGES: Owned<beeline_window_message> = Owned::new();

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Message<'static>>();
};

// SAFETY: messages and bytes are `Send` (asserted above). What is lent moves to no other thread: `Lending` empties the slot
// before the drain returns, and meanwhile the slot is its thread's, which is in the drain and so neither ends nor releases
// the slot (the receiver is busy).
unsafe impl Send for beeline_window_message {}

/// A message in C's hands, or about to be.
pub(crate) enum Held {
    Nothing,
    /// A wait has found it; the next poll gives it.
    Waiting(Message<'static>),
    /// A poll has given it.
    Given(Message<'static>),
    /// It was given, and left its window before.
    Copied(Vec<u8>),
    /// A drain is running.
    Lent(NonNull<Lent>),
}

/// What a drain has in its hands: NULL between two messages.
pub(crate) struct Lent(Cell<*mut MessageRef<'static>>);

impl Lent {
    pub(crate) fn nothing() -> Self {
        Lent(Cell::new(null_mut()))
    }
}

/// A receiver's message handle, and the thread that uses both.
pub(crate) type Place = (SlotRef<beeline_window_message>, Caller);

/// Has the handle name what a drain lends, until this is dropped.
pub(crate) struct Lending<'a> {
    place: Place,
    lent: &'a Lent,
}

impl<'a> Lending<'a> {
    pub(crate) fn begin(place: Place, lent: &'a Lent) -> Self {
        set(place, Held::Lent(NonNull::from(lent)));
        Lending { place, lent }
    }

    /// Has C look at a message.
    #[inline(always)]
    pub(crate) fn give(&self, message: MessageRef<'_>, each: Each, context: *mut c_void) {
        self.lend(message, |message, length| {
            // SAFETY: what C gave to `beeline_window_drain` as a callback, with the context that goes with it; the header has it
            // be callable until that function returns.
            unsafe { each(context, message, length) }
        });
    }

    /// Has the handle name a message for the time of `call`, which is given the handle and the message's length.
    #[inline(always)]
    pub(crate) fn lend(
        &self,
        mut message: MessageRef<'_>,
        call: impl FnOnce(Handle<beeline_window_message>, usize),
    ) {
        let length = message.len();
        // The lifetimes are longer than the truth: the pointer is taken back below, or by the drop of this if C unwinds.
        self.lent.0.set((&raw mut message).cast());
        call(self.place.0.handle(), length);
        self.lent.0.set(null_mut());
    }
}

impl Drop for Lending<'_> {
    fn drop(&mut self) {
        set(self.place, Held::Nothing);
    }
}

fn set(place: Place, held: Held) {
    let (slot, caller) = place;
    slot.enter_as(caller).expect("a message is its receiver's thread's").0 = held;
}

/// Has C look at a message that no drain has, through its callback.
pub(crate) fn give_held(place: Place, held: Held, each: Each, context: *mut c_void) {
    let length = held.length();
    // Empties the slot, however the callback ends.
    struct Emptied(Place);
    impl Drop for Emptied {
        fn drop(&mut self) {
            set(self.0, Held::Nothing);
        }
    }
    set(place, held);
    let _emptied = Emptied(place);
    // SAFETY: as in `Lending::give`.
    unsafe { each(context, place.0.handle(), length) };
}

/// What C can read of a message.
enum Readable<'a> {
    Message(&'a mut Message<'static>),
    Lent(&'a mut MessageRef<'static>),
    Bytes(&'a [u8]),
}

impl Held {
    pub(crate) fn length(&self) -> usize {
        match self {
            Held::Waiting(message) | Held::Given(message) => message.len(),
            Held::Copied(bytes) => bytes.len(),
            Held::Nothing | Held::Lent(_) => 0,
        }
    }

    #[inline(always)]
    fn readable(&mut self) -> Outcome<Readable<'_>> {
        match self {
            Held::Lent(lent) => {
                // SAFETY: `Lending` keeps the borrow that this was made of, and empties the slot before it is dropped.
                let message = unsafe { lent.as_ref() }.0.get();
                // SAFETY: set by `Lending::give` for as long as its message is there, NULL otherwise; this is the only use
                // of it meanwhile, as nobody else is inside the slot and the drain waits for its callback.
                unsafe { message.as_mut() }.map(Readable::Lent).ok_or_else(no_message)
            }
            Held::Given(message) => Ok(Readable::Message(message)),
            Held::Copied(bytes) => Ok(Readable::Bytes(bytes)),
            Held::Nothing | Held::Waiting(_) => Err(no_message()),
        }
    }
}

#[cold]
fn no_message() -> Failure {
    let why = "no message is held: the callback has returned, or the receiver was used since; copy what is needed afterwards";
    Failure::new(NO_MESSAGE, why)
}

/// Word `index` of bytes, little-endian; zero past their end.
fn word_of(bytes: &[u8], index: usize) -> u64 {
    let mut word = [0; 8];
    let _ = copy_of(bytes, index, &mut word);
    u64::from_le_bytes(word)
}

fn copy_of(bytes: &[u8], first_word: usize, out: &mut [u8]) -> usize {
    let rest = bytes.get(first_word.saturating_mul(8)..).unwrap_or_default();
    let copied = rest.len().min(out.len());
    out[..copied].copy_from_slice(&rest[..copied]);
    copied
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_message_length(message: Handle<beeline_window_message>) -> usize {
    edge_or(
        "beeline_window_message_length",
        |_| 0,
        || {
            Ok(match MESSAGES.enter_own(message)?.0.readable()? {
                Readable::Message(message) => message.len(),
                Readable::Lent(message) => message.len(),
                Readable::Bytes(bytes) => bytes.len(),
            })
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_message_word(message: Handle<beeline_window_message>, index: usize) -> u64 {
    edge_or(
        "beeline_window_message_word",
        |_| 0,
        || {
            Ok(match MESSAGES.enter_own(message)?.0.readable()? {
                Readable::Message(message) => message.word(index),
                Readable::Lent(message) => message.word(index),
                Readable::Bytes(bytes) => word_of(bytes, index),
            })
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_message_copy(
    message: Handle<beeline_window_message>,
    first_word: usize,
    out: Memory<'_>,
    capacity: usize,
) -> usize {
    edge_or(
        "beeline_window_message_copy",
        |_| 0,
        || {
            let mut pass = MESSAGES.enter_own(message)?;
            let message = pass.0.readable()?;
            let out = out.fill(capacity, "out")?;
            Ok(match message {
                Readable::Message(message) => message.copy_out_from(first_word, out),
                Readable::Lent(message) => message.copy_out_from(first_word, out),
                Readable::Bytes(bytes) => copy_of(bytes, first_word, out),
            })
        },
    )
}
