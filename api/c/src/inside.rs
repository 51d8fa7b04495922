//! What a client's handle names: the client, its calls' numbers, and the answer that it holds.
//!
//! In Rust the end of a call borrows its client, so that the compiler lets nothing else happen to the client while an
//! answer lies in its window. C has no such borrow: here the answer is held beside the client it borrows from, with its
//! lifetime taken away, and whatever touches the client lets go of the answer first ([`Inside::client`]).

use core::ptr::NonNull;

use beeline_ffi::{Failure, Outcome};
use beeline_rpc::shm::{Client, ShmTransport};
use beeline_rpc::{Body, CallError, CallId, Completion, Transport};

use crate::descriptor::Descriptor;
use crate::status::NO_ANSWER;

/// A message in a reply window, whose client is not borrowed as far as the compiler knows.
type Window = <ShmTransport as Transport>::Message<'static>;

/// A client and the answer that it holds.
pub(crate) struct Inside {
    /// Borrows from `client`, and is dropped before anything else is done with it.
    pub(crate) held: Option<Held>,
    /// From `Box::into_raw`: a `Box` would claim to be the only way to what `held` points at.
    client: NonNull<Client>,
    pub(crate) calls: Numbers,
    pub(crate) descriptor: Descriptor,
    /// Memory of answers to calls that wait.
    pub(crate) spare: Vec<u8>,
}

/// Numbers of calls in C: 1 and on, never the same twice.
pub(crate) struct Numbers {
    /// By slot: calls that have not ended.
    calls: Box<[Option<(CallId, u64)>]>,
    /// Calls whose slot was used again before their end was polled, as it may be after a server is lost.
    displaced: Vec<(CallId, u64)>,
    next: u64,
}

impl Numbers {
    fn new(slots: usize) -> Self {
        Numbers { calls: vec![None; slots].into_boxed_slice(), displaced: Vec::new(), next: 1 }
    }

    #[inline(always)]
    pub(crate) fn begin(&mut self, id: CallId) -> u64 {
        let number = self.next;
        self.next += 1;
        if let Some(last) = self.calls[id.slot()].replace((id, number)) {
            self.displace(last);
        }
        number
    }

    #[cold]
    fn displace(&mut self, last: (CallId, u64)) {
        self.displaced.push(last);
    }

    /// The number of a call that has ended.
    #[inline(always)]
    pub(crate) fn end(&mut self, id: CallId) -> u64 {
        match self.calls[id.slot()] {
            Some((known, number)) if known == id => {
                self.calls[id.slot()] = None;
                number
            }
            _ => self.end_displaced(id),
        }
    }

    #[cold]
    fn end_displaced(&mut self, id: CallId) -> u64 {
        let place = self.displaced.iter().position(|(known, _)| *known == id);
        let place = place.expect("a call that ends was begun, and ends once");
        self.displaced.swap_remove(place).1
    }

    /// The call of a number, if it has not ended.
    pub(crate) fn find(&self, call: u64) -> Option<CallId> {
        let mut open = self.calls.iter().flatten().chain(&self.displaced);
        open.find(|(_, number)| *number == call).map(|(id, _)| *id)
    }
}

/// What a completion said, for C to read.
pub(crate) enum Held {
    /// Where it lies.
    Window(Body<'static, Window>),
    /// The detail of a failure, or the answer to a call that waited.
    Bytes(Vec<u8>),
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Client>();
};

// SAFETY: the client is `Send` (asserted above) and `client` is the only way to it but for `held`, which borrows from it and
// moves with it; no other thread has either.
unsafe impl Send for Inside {}

impl Inside {
    /// The client, with no answer held.
    #[inline(always)]
    pub(crate) fn client(&mut self) -> &mut Client {
        self.held = None;
        // SAFETY: from `Box::into_raw` in `new`, freed only in `drop`; `&mut self` is the only way to it besides `held`,
        // which is empty now.
        unsafe { self.client.as_mut() }
    }

    /// The client, with no answer held, and its descriptor.
    pub(crate) fn client_and_descriptor(&mut self) -> (&mut Client, &mut Descriptor) {
        self.held = None;
        // SAFETY: as in `client`; the descriptor is another field, and no way to the client.
        (unsafe { self.client.as_mut() }, &mut self.descriptor)
    }

    /// One poll of the client; what has ended, its answer held.
    #[inline(always)]
    pub(crate) fn poll(&mut self) -> Option<(CallId, Result<(), CallError>)> {
        self.held = None;
        // SAFETY: as in `client`. The lifetime is longer than the truth: what is polled borrows the client for as long as
        // it is kept. It is kept in `held` only, never moved out, and `client`, this function and `drop` empty that
        // before they touch the client again. The client itself does not move: it is in memory of its own.
        let client: &'static mut Client = unsafe { &mut *self.client.as_ptr() };
        let Completion { id, result } = client.poll()?;
        let result = match result {
            Ok(body) => {
                self.held = Some(Held::Window(body));
                Ok(())
            }
            Err(CallError::Failed { code, detail }) => {
                self.held = Some(Held::Bytes(detail.to_vec()));
                Err(CallError::Failed { code, detail })
            }
            Err(error) => Err(error),
        };
        Some((id, result))
    }

    pub(crate) fn new(client: Client) -> Self {
        let slots = client.max_outstanding();
        Inside {
            held: None,
            client: NonNull::from(Box::leak(Box::new(client))),
            calls: Numbers::new(slots),
            descriptor: Descriptor::default(),
            spare: Vec::new(),
        }
    }

    pub(crate) fn held(&mut self) -> Outcome<&mut Held> {
        self.held.as_mut().ok_or_else(no_answer)
    }
}

#[cold]
fn no_answer() -> Failure {
    let why = "no answer is held: the last poll gave none, or the client was used for something else since";
    Failure::new(NO_ANSWER, why)
}

impl Drop for Inside {
    fn drop(&mut self) {
        let (client, descriptor) = self.client_and_descriptor();
        descriptor.withdraw(client);
        // SAFETY: from `Box::leak` in `new`; nothing borrows it any more, and nothing uses it afterwards.
        drop(unsafe { Box::from_raw(self.client.as_ptr()) });
    }
}

impl Held {
    #[inline(always)]
    pub(crate) fn length(&self) -> usize {
        match self {
            Held::Window(body) => body.len(),
            Held::Bytes(bytes) => bytes.len(),
        }
    }

    #[inline(always)]
    pub(crate) fn word(&mut self, index: usize) -> u64 {
        match self {
            // Words of a message are counted from its header on; no message has so many that this can be too many.
            Held::Window(body) if index < body.len().div_ceil(8) => body.word(index),
            Held::Window(_) => 0,
            Held::Bytes(bytes) => word_of(bytes, index),
        }
    }

    #[inline(always)]
    pub(crate) fn copy_from(&mut self, first_word: usize, out: &mut [u8]) -> usize {
        match self {
            Held::Window(body) if first_word < body.len().div_ceil(8) => body.copy_out_from(first_word, out),
            Held::Window(_) => 0,
            Held::Bytes(bytes) => {
                let rest = bytes.get(first_word.saturating_mul(8)..).unwrap_or_default();
                let copied = rest.len().min(out.len());
                out[..copied].copy_from_slice(&rest[..copied]);
                copied
            }
        }
    }
}

fn word_of(bytes: &[u8], index: usize) -> u64 {
    let rest = bytes.get(index.saturating_mul(8)..).unwrap_or_default();
    let mut word = [0; 8];
    let there = rest.len().min(8);
    word[..there].copy_from_slice(&rest[..there]);
    u64::from_le_bytes(word)
}
