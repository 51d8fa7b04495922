//! What a sender's handle names: the sender, and the reservation or batch that is open in it.
//!
//! In Rust an open message borrows its sender, so that nothing else is sent in between. Here it is held beside the sender,
//! with its lifetime taken away, and while it is open every other use of the sender is refused ([`OPEN`]).

use core::ffi::c_int;
use core::ptr::NonNull;
use std::time::{Duration, Instant};

use beeline::{Batch, Flushed, Reservation, Sender, Sent, Taken};
use beeline_ffi::{Failure, Kind, Outcome, Piece};

use super::status::{FULL, NOT_OPEN, OK, OPEN, duration, of_send, unless_gone};

/// A sender of C.
pub struct beeline_window_sender {
    /// Borrows from `sender`, and ends before anything else is done with it.
    open: Option<Open>,
    /// From `Box::leak`: a `Box` would claim to be the only way to what `open` points at.
    sender: NonNull<Sender>,
    pub(crate) max_bytes: usize,
}

/// An open message, or several.
enum Open {
    Reservation(Reservation<'static>),
    Batch(Batch<'static>),
}

impl Kind for beeline_window_sender {
    const NAME: &'static str = "sender";
    const TAG: u8 = 0x2f;
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Sender>();
    is_send::<Open>();
};

// SAFETY: the sender and what is open are `Send` (asserted above), and `sender` is the only way to the sender but for `open`,
// which moves with it.
unsafe impl Send for beeline_window_sender {}

impl beeline_window_sender {
    pub(crate) fn new(sender: Sender) -> Self {
        let max_bytes = sender.max_message_bytes();
        beeline_window_sender { open: None, sender: NonNull::from(Box::leak(Box::new(sender))), max_bytes }
    }

    /// The sender, in which nothing is open. The lifetime is longer than the truth: a reservation or batch borrows the
    /// sender for as long as it is kept. It is kept in `open` only, and while it is there this gives no other.
    #[inline(always)]
    fn sender(&mut self) -> Outcome<&'static mut Sender> {
        if self.open.is_some() {
            return Err(is_open());
        }
        // SAFETY: from `Box::leak` in `new`, freed only in `drop`; nothing is open (checked above), so `&mut self` is the only
        // way to it.
        Ok(unsafe { self.sender.as_mut() })
    }

    #[inline(always)]
    pub(crate) fn try_send(&mut self, message: &[u8]) -> Outcome<c_int> {
        let sender = self.sender()?;
        match sender.try_send(message) {
            Ok(Sent::Sent) => Ok(OK),
            Ok(Sent::Full) => full(sender),
            Err(error) => Err(of_send(&error)),
        }
    }

    pub(crate) fn send(&mut self, message: &[u8], timeout_ns: u64) -> Outcome<c_int> {
        let sender = self.sender()?;
        match sender.send_timeout(message, duration(timeout_ns)) {
            Ok(Sent::Sent) => Ok(OK),
            Ok(Sent::Full) => full(sender),
            Err(error) => Err(of_send(&error)),
        }
    }

    /// Sends what there is room for, and counts it in `sent`.
    #[inline(always)]
    pub(crate) fn try_send_all(&mut self, messages: &[Piece<'_>], sent: &mut usize) -> Outcome<c_int> {
        let sender = self.sender()?;
        let Taken(count) = sender.try_send_all(messages).map_err(|error| of_send(&error))?;
        *sent = count;
        if count > 0 || messages.is_empty() { Ok(OK) } else { full(sender) }
    }

    /// Sends all, waiting for room, and counts in `sent`.
    pub(crate) fn send_all(
        &mut self,
        messages: &[Piece<'_>],
        timeout_ns: u64,
        sent: &mut usize,
    ) -> Outcome<c_int> {
        let sender = self.sender()?;
        let deadline = Instant::now().checked_add(duration(timeout_ns));
        loop {
            let left = &messages[*sent..];
            let Taken(count) = sender.try_send_all(left).map_err(|error| of_send(&error))?;
            *sent += count;
            let Some(next) = left.get(count) else { return Ok(OK) };
            let left = deadline.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
            match sender.send_timeout(next.as_ref(), left) {
                Ok(Sent::Sent) => *sent += 1,
                Ok(Sent::Full) => return full(sender),
                Err(error) => return Err(of_send(&error)),
            }
        }
    }

    pub(crate) fn wait_for_room(&mut self, bytes: usize, timeout_ns: u64) -> Outcome<c_int> {
        let sender = self.sender()?;
        has_room(sender, bytes, timeout_ns).map(|has_room| if has_room { OK } else { FULL })
    }

    pub(crate) fn flush(&mut self, timeout_ns: u64) -> Outcome<c_int> {
        match self.sender()?.flush(duration(timeout_ns)) {
            Ok(Flushed::All) => Ok(OK),
            Ok(Flushed::TimedOut) => Ok(FULL),
            Err(error) => Err(of_send(&error)),
        }
    }

    /// Whether the receiver lives.
    pub(crate) fn check_receiver(&mut self) -> Outcome<c_int> {
        unless_gone(self.sender()?.is_receiver_gone(), OK)
    }

    pub(crate) fn reserve(&mut self, bytes: usize, timeout_ns: u64) -> Outcome<c_int> {
        let sender = self.sender()?;
        if !has_room(sender, bytes, timeout_ns)? {
            return Ok(FULL);
        }
        let reservation = sender.reserve(bytes).map_err(|error| of_send(&error))?;
        self.open = Some(Open::Reservation(reservation));
        Ok(OK)
    }

    pub(crate) fn batch(&mut self, bytes: usize, timeout_ns: u64) -> Outcome<c_int> {
        let sender = self.sender()?;
        if !has_room(sender, bytes, timeout_ns)? {
            return Ok(FULL);
        }
        let batch = sender.batch(bytes).map_err(|error| of_send(&error))?;
        self.open = Some(Open::Batch(batch));
        Ok(OK)
    }

    #[inline(always)]
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Outcome<c_int> {
        match &mut self.open {
            Some(Open::Reservation(reservation)) => {
                reservation.write(bytes).map_err(|error| Failure::invalid(error.to_string()))?;
                Ok(OK)
            }
            Some(Open::Batch(_)) => Err(Failure::new(NOT_OPEN, "a batch is open, not a reservation: push")),
            None => Err(not_open()),
        }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, message: &[u8]) -> Outcome<c_int> {
        match &mut self.open {
            Some(Open::Batch(batch)) => match batch.push(message) {
                Ok(Sent::Sent) => Ok(OK),
                Ok(Sent::Full) => Ok(FULL),
                Err(error) => Err(of_send(&error)),
            },
            Some(Open::Reservation(_)) => {
                Err(Failure::new(NOT_OPEN, "a reservation is open, not a batch: write"))
            }
            None => Err(not_open()),
        }
    }

    pub(crate) fn commit(&mut self) -> Outcome<c_int> {
        match self.open.take() {
            Some(Open::Reservation(reservation)) => reservation.commit(),
            Some(Open::Batch(batch)) => batch.send(),
            None => return Err(not_open()),
        }
        Ok(OK)
    }

    pub(crate) fn discard(&mut self) -> Outcome<c_int> {
        self.open.take().map(|_| OK).ok_or_else(not_open)
    }
}

impl Drop for beeline_window_sender {
    fn drop(&mut self) {
        self.open = None;
        // SAFETY: from `Box::leak` in `new`; nothing borrows it any more, and nothing uses it afterwards.
        drop(unsafe { Box::from_raw(self.sender.as_ptr()) });
    }
}

fn has_room(sender: &mut Sender, bytes: usize, timeout_ns: u64) -> Outcome<bool> {
    let has_room = sender.wait_for_room(bytes, duration(timeout_ns)).map_err(|error| of_send(&error))?;
    if !has_room {
        full(sender)?;
    }
    Ok(has_room)
}

#[cold]
fn full(sender: &Sender) -> Outcome<c_int> {
    unless_gone(sender.is_receiver_gone(), FULL)
}

#[cold]
fn is_open() -> Failure {
    Failure::new(OPEN, "a reservation or a batch is open in this sender: commit or discard it first")
}

#[cold]
fn not_open() -> Failure {
    Failure::new(NOT_OPEN, "no reservation or batch is open in this sender: begin one first")
}
