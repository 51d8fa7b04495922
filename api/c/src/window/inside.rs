//! What a receiver's handle names: the receiver, the message that C holds, and what was received and not given yet.
//!
//! Before anything is done with the receiver, the slot of its message is emptied, since a message borrows the receiver.
//! A message that a wait has found, and one for which C had no space, stay in the slot for the next function that gives
//! messages. Bulk reading (`drain_into`) cannot stop in the middle of a run: what has no space then is copied aside.
//! An error that came behind messages is kept for the next call, so that no call gives both.

use core::ffi::{c_int, c_void};
use core::mem::{MaybeUninit, replace};
use core::ptr::NonNull;
use std::collections::VecDeque;

use beeline::{Message, MessageRef, Receiver, RecvError};
use beeline_ffi::{Caller, Failure, Handle, Kind, Out, Outcome, Pass, SlotRef};

use super::message::{Each, Held, Lending, Lent, MESSAGES, beeline_window_message, give_held};
use super::status::{EMPTY, NO_SPACE, OK, duration, of_recv};
use crate::descriptor::Descriptor;

/// Messages that are read at once: as many lines as the receiver below tests together. At most one less have to be copied
/// aside.
const RUN_MESSAGES: usize = 8;
/// The least space that a run is begun with for each of its messages: one line.
const LINE_BYTES: usize = 64;
/// Messages begin at multiples of this, as seen from the start of C's memory.
const ALIGN_BYTES: usize = 8;

/// A receiver of C.
pub struct beeline_window_receiver {
    /// From `Box::leak`: a `Box` would claim to be the only way to what a held message borrows.
    receiver: NonNull<Receiver>,
    message: SlotRef<beeline_window_message>,
    /// Messages that have left the window; all are in front of the one in the slot, and of those in the window.
    left_over: VecDeque<Vec<u8>>,
    failed: Option<RecvError>,
    /// The longest message of the last run; halved by each shorter one since, so that one long message ends no runs for good.
    longest_bytes: usize,
    descriptor: Descriptor,
}

impl Kind for beeline_window_receiver {
    const NAME: &'static str = "receiver";
    const TAG: u8 = 0x2b;
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Receiver>();
};

// SAFETY: the receiver is `Send` (asserted above) and `receiver` is the only way to it but for the message in the slot, which
// belongs to the same thread.
unsafe impl Send for beeline_window_receiver {}

/// `struct beeline_window_span`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct beeline_window_span {
    offset: usize,
    length: usize,
}

impl beeline_window_receiver {
    pub(crate) fn new(receiver: Receiver) -> Outcome<Self> {
        let message = MESSAGES.slot(MESSAGES.insert(beeline_window_message(Held::Nothing))?);
        Ok(beeline_window_receiver {
            receiver: NonNull::from(Box::leak(Box::new(receiver))),
            message,
            left_over: VecDeque::new(),
            failed: None,
            longest_bytes: 0,
            descriptor: Descriptor::default(),
        })
    }

    pub(crate) fn message(&self) -> Handle<beeline_window_message> {
        self.message.handle()
    }

    fn slot(&self, caller: Caller) -> Pass<beeline_window_message> {
        self.message.enter_as(caller).expect("a message is its receiver's thread's")
    }

    /// The receiver, of which no message is held. The lifetime is longer than the truth: what is received borrows the
    /// receiver for as long as it is kept. It is kept in the message's slot only, and emptied before the next call of this.
    #[inline(always)]
    fn receiver(&mut self) -> &'static mut Receiver {
        // SAFETY: from `Box::leak` in `new`, freed only in `drop`; every caller has emptied the slot, and lets go of what an
        // earlier call gave before it calls again.
        unsafe { self.receiver.as_mut() }
    }

    /// Gives the next message to C's hands; its length, or `None` if there is none.
    #[inline(always)]
    pub(crate) fn poll(&mut self, caller: Caller) -> Outcome<Option<usize>> {
        let mut slot = self.slot(caller);
        let next = match replace(&mut slot.0, Held::Nothing) {
            Held::Waiting(message) => Some(Held::Given(message)),
            over => {
                drop(over);
                if self.has_kept() { Some(self.kept()?) } else { self.received()?.map(Held::Given) }
            }
        };
        let Some(held) = next else { return Ok(None) };
        let length = held.length();
        slot.0 = held;
        Ok(Some(length))
    }

    /// The next message of the window, if it is there.
    #[inline(always)]
    fn received(&mut self) -> Outcome<Option<Message<'static>>> {
        self.receiver().try_recv().map_err(|error| of_recv(&error))
    }

    /// Whether something is to be given before the window is looked at again.
    #[inline(always)]
    fn has_kept(&self) -> bool {
        !self.left_over.is_empty() || self.failed.is_some()
    }

    /// What [`Self::has_kept`] tells of.
    #[cold]
    fn kept(&mut self) -> Outcome<Held> {
        match (self.left_over.pop_front(), self.failed.take()) {
            (Some(bytes), failed) => {
                self.failed = failed;
                Ok(Held::Copied(bytes))
            }
            (None, Some(error)) => Err(of_recv(&error)),
            (None, None) => Ok(Held::Nothing),
        }
    }

    /// How a call ends that has given so many messages and would have given more.
    fn ended(&mut self, given: usize) -> Outcome<c_int> {
        match self.failed.take() {
            Some(error) if given == 0 => Err(of_recv(&error)),
            failed => {
                self.failed = failed;
                Ok(if given == 0 { EMPTY } else { OK })
            }
        }
    }

    /// Gives at most `max` messages to C's callback, and counts them in `given`.
    pub(crate) fn drain(
        &mut self,
        caller: Caller,
        max: usize,
        (each, context): (Each, *mut c_void),
        given: &mut usize,
    ) -> Outcome<c_int> {
        let place = (self.message, caller);
        // The pass must not stay: the callback enters the slot.
        let waiting = replace(&mut self.slot(caller).0, Held::Nothing);
        if let Held::Waiting(message) = waiting {
            give_held(place, Held::Given(message), each, context);
            *given += 1;
        } else {
            drop(waiting);
            while *given < max
                && let Some(bytes) = self.left_over.pop_front()
            {
                give_held(place, Held::Copied(bytes), each, context);
                *given += 1;
            }
        }
        if *given < max && self.failed.is_none() {
            let lent = Lent::nothing();
            let lending = Lending::begin(place, &lent);
            let ended = self.receiver().drain(max - *given, |message| {
                // Counted first: a callback that ends the process has had its message.
                *given += 1;
                lending.give(message, each, context);
            });
            self.failed = ended.err();
        }
        self.ended(*given)
    }

    /// Copies messages into C's memory, as many as there are spans and space for.
    pub(crate) fn drain_into(&mut self, caller: Caller, filled: &mut Filled<'_>) -> Outcome<c_int> {
        let mut slot = self.slot(caller);
        let held = replace(&mut slot.0, Held::Nothing);
        if let Held::Waiting(mut message) = held {
            let Some(out) = filled.place(message.len()) else {
                let length = message.len();
                slot.0 = Held::Waiting(message);
                return filled.no_space(length);
            };
            let _ = message.copy_out(out);
        } else {
            drop(held);
        }
        while let Some(bytes) = self.left_over.front() {
            match filled.place(bytes.len()) {
                Some(out) => out.copy_from_slice(bytes),
                None => return filled.full(bytes.len()),
            }
            self.left_over.pop_front();
        }
        while self.failed.is_none() && !filled.is_over() {
            if filled.has_space_for(RUN_MESSAGES, self.longest_bytes) {
                if self.run_into(filled) {
                    continue;
                }
                break;
            }
            let mut message = match self.receiver().try_recv() {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            };
            let length = message.len();
            self.longest_bytes = length.max(self.longest_bytes / 2);
            let Some(out) = filled.place(length) else {
                slot.0 = Held::Waiting(message);
                return filled.full(length);
            };
            let _ = message.copy_out(out);
        }
        match self.left_over.front() {
            // The first of a run had no space, and nothing was in front of it.
            Some(bytes) if filled.taken == 0 => filled.no_space(bytes.len()),
            _ => self.ended(filled.taken),
        }
    }

    /// Copies a run of messages; whether it was a whole one that had space.
    #[inline(always)]
    fn run_into(&mut self, filled: &mut Filled<'_>) -> bool {
        let receiver = self.receiver();
        let (left_over, mut longest_bytes) = (&mut self.left_over, 0);
        let ended = receiver.drain(RUN_MESSAGES, |mut message| {
            let length = message.len();
            longest_bytes = longest_bytes.max(length);
            // Behind one that had no space, none may be in front of it.
            if left_over.is_empty()
                && let Some(out) = filled.place(length)
            {
                let _ = message.copy_out(out);
            } else {
                set_aside(left_over, message);
            }
        });
        self.longest_bytes = longest_bytes;
        match ended {
            Ok(count) => count == RUN_MESSAGES && self.left_over.is_empty(),
            Err(error) => {
                self.failed = Some(error);
                false
            }
        }
    }

    /// Waits until there is something to give.
    pub(crate) fn wait(&mut self, caller: Caller, timeout_ns: u64) -> Outcome<c_int> {
        let mut slot = self.slot(caller);
        let held = replace(&mut slot.0, Held::Nothing);
        if let Held::Waiting(_) = held {
            slot.0 = held;
            return Ok(OK);
        }
        drop(held);
        if self.has_kept() {
            return Ok(OK);
        }
        match self.receiver().recv_timeout(duration(timeout_ns)) {
            Ok(Some(message)) => {
                slot.0 = Held::Waiting(message);
                Ok(OK)
            }
            Ok(None) => Ok(EMPTY),
            Err(error) => {
                self.failed = Some(error);
                Ok(OK)
            }
        }
    }

    /// Empties the slot, for what is done with the receiver besides receiving.
    fn settle(&mut self, caller: Caller) {
        let held = replace(&mut self.slot(caller).0, Held::Nothing);
        if let Held::Waiting(message) = held {
            self.left_over.push_front(message.to_vec());
        }
    }

    pub(crate) fn has_sender(&mut self, caller: Caller) -> bool {
        self.settle(caller);
        self.receiver().has_sender() || self.has_kept()
    }

    /// Gives the message's handle up, so that another thread may use the receiver.
    pub(crate) fn release_message(&mut self, caller: Caller) -> Outcome<()> {
        self.settle(caller);
        MESSAGES.release(self.message.handle())
    }

    pub(crate) fn descriptor(&mut self, descriptor: Out<'_, c_int>) -> Outcome<c_int> {
        self.descriptor.tell(descriptor)
    }

    pub(crate) fn arm(&mut self, caller: Caller, at_most_ns: Out<'_, u64>) -> Outcome<c_int> {
        self.settle(caller);
        let receiver = self.receiver();
        if self.has_kept() {
            return self.descriptor.find_ready(receiver, at_most_ns);
        }
        self.descriptor.arm(receiver, at_most_ns)
    }

    pub(crate) fn disarm(&mut self, caller: Caller) {
        self.settle(caller);
        let receiver = self.receiver();
        self.descriptor.disarm(receiver);
    }
}

impl Drop for beeline_window_receiver {
    fn drop(&mut self) {
        // It is nobody's, this thread's, or a thread's that has ended: whoever owns it owned the receiver. What it holds
        // borrows the receiver, and ends first.
        drop(MESSAGES.remove(self.message.handle()));
        let receiver = self.receiver();
        self.descriptor.withdraw(receiver);
        // SAFETY: from `Box::leak` in `new`; nothing borrows it any more, and nothing uses it afterwards.
        drop(unsafe { Box::from_raw(self.receiver.as_ptr()) });
    }
}

/// Copies a message that had no space. Not in the loop over those that have: it would cost them registers.
#[cold]
#[inline(never)]
fn set_aside(left_over: &mut VecDeque<Vec<u8>>, mut message: MessageRef<'_>) {
    let mut bytes = Vec::new();
    message.copy_to(&mut bytes);
    left_over.push_back(bytes);
}

/// Memory of C that messages are copied to, one after the other.
pub(crate) struct Filled<'a> {
    memory: &'a mut [u8],
    /// Where the next message begins; not past the end.
    next: usize,
    spans: &'a mut [MaybeUninit<beeline_window_span>],
    pub(crate) taken: usize,
}

impl<'a> Filled<'a> {
    pub(crate) fn new(memory: &'a mut [u8], spans: &'a mut [MaybeUninit<beeline_window_span>]) -> Self {
        Filled { memory, next: 0, spans, taken: 0 }
    }

    /// Space for a message of so many bytes, which counts as taken; `None` if a span or bytes are missing.
    #[inline(always)]
    fn place(&mut self, length: usize) -> Option<&mut [u8]> {
        let offset = self.next;
        let span = self.spans.get_mut(self.taken)?;
        let end = offset + length;
        if end > self.memory.len() {
            return None;
        }
        span.write(beeline_window_span { offset, length });
        self.taken += 1;
        self.next = end.next_multiple_of(ALIGN_BYTES).min(self.memory.len());
        Some(&mut self.memory[offset..end])
    }

    fn is_over(&self) -> bool {
        self.taken == self.spans.len()
    }

    #[inline(always)]
    fn has_space_for(&self, messages: usize, length: usize) -> bool {
        let each = length.max(LINE_BYTES).next_multiple_of(ALIGN_BYTES);
        self.spans.len() - self.taken >= messages && (self.memory.len() - self.next) / messages >= each
    }

    /// How a call ends whose next message, of so many bytes, finds no space.
    fn full(&mut self, length: usize) -> Outcome<c_int> {
        if self.taken > 0 { Ok(OK) } else { self.no_space(length) }
    }

    #[cold]
    fn no_space(&mut self, length: usize) -> Outcome<c_int> {
        if let Some(first) = self.spans.first_mut() {
            first.write(beeline_window_span { offset: 0, length });
        }
        let capacity = self.memory.len();
        let why = format!(
            "the next message has {length} bytes, and the memory {capacity}; give more, or take the message by a poll"
        );
        Err(Failure::new(NO_SPACE, why))
    }
}
