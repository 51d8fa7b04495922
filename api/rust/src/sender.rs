//! The sending end of a window.

use std::time::{Duration, Instant};

use beeline_contract_memory::Sleeper;
use beeline_domain::{MemoryCredits, MemorySleeper, PeerWindow, SenderParts};
use beeline_mmio::{Choice, StoreKernel, Traffic};
use beeline_spec::header::lines_of;
use beeline_wait::Waiter;
use beeline_window::{FencePolicy, WaitPolicy, WindowConfig, Writer};

use crate::{Flushed, KernelError, SendError, SenderOptions, Sent, Taken, WriteError};

/// Sends messages to one receiver. Made by [`crate::Domain::sender`]; there is one for a window.
///
/// What was sent stays for the receiver when this is dropped. `Send`, not `Sync`: one thread at a time sends.
#[derive(Debug)]
pub struct Sender {
    pub(crate) writer: Writer<PeerWindow, MemoryCredits>,
    pub(crate) sleeper: MemorySleeper,
    pub(crate) wait: WaitPolicy,
}

impl Sender {
    pub(crate) fn new(parts: SenderParts, options: SenderOptions) -> Self {
        // Without membarrier on both sides a sleeping receiver could miss a message that is not fenced.
        let fence_policy = match options.fences {
            FencePolicy::None | FencePolicy::PerWrap if parts.needs_fence_per_message => {
                FencePolicy::PerMessage
            }
            asked => asked,
        };
        let config = WindowConfig { blank: parts.blank, epoch: parts.epoch, fence_policy };
        Sender {
            writer: Writer::new(parts.store, parts.credits, config),
            sleeper: parts.sleeper,
            wait: options.wait,
        }
    }

    /// Sends a message, waiting for room.
    ///
    /// # Errors
    /// The message can never fit, or the receiver is gone or faulty.
    pub fn send(&mut self, message: &[u8]) -> Result<(), SendError> {
        let sent = self.writer.send_wait(message, &mut Waiter::new(&self.wait, &mut self.sleeper, None))?;
        debug_assert_eq!(sent, Sent::Sent, "there is no deadline");
        Ok(())
    }

    /// As [`Sender::send`], for at most `timeout`: [`Sent::Full`] when there was no room for so long, and nothing was sent.
    ///
    /// # Errors
    /// As [`Sender::send`].
    pub fn send_timeout(&mut self, message: &[u8], timeout: Duration) -> Result<Sent, SendError> {
        let deadline = Instant::now().checked_add(timeout);
        Ok(self.writer.send_wait(message, &mut Waiter::new(&self.wait, &mut self.sleeper, deadline))?)
    }

    /// Sends a message if there is room: [`Sent::Full`] when there is none, and nothing was sent. Never waits, never enters
    /// the kernel.
    ///
    /// # Errors
    /// The message can never fit, or the receiver is faulty.
    #[inline]
    pub fn try_send(&mut self, message: &[u8]) -> Result<Sent, SendError> {
        Ok(self.writer.try_send(message)?)
    }

    /// Sends messages in order, waiting for room like [`Sender::send`]: less work a message, above all for messages of up to 56
    /// bytes. A receiver that sleeps is woken when the last of them is there, or the window is full.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), beeline::Error> {
    /// # let mut sender = beeline::Domain::open("demo")?.sender("numbers")?;
    /// let numbers: Vec<[u8; 8]> = (0..1000u64).map(u64::to_le_bytes).collect();
    /// sender.send_all(&numbers)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Sender::send`]; the messages in front of the one that could not be sent were.
    pub fn send_all<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> Result<(), SendError> {
        let mut left = messages;
        loop {
            let Taken(sent) = self.try_send_all(left)?;
            let Some((next, rest)) = left[sent..].split_first() else { return Ok(()) };
            self.send(next.as_ref())?;
            left = rest;
        }
    }

    /// Sends messages in order, as many as there is room for, and returns how many were sent. Never waits.
    ///
    /// # Errors
    /// As [`Sender::try_send`], for the first of `messages`; nothing was sent then. Where a later one cannot be sent, those in
    /// front of it are, and a call that begins with it says why.
    #[inline]
    pub fn try_send_all<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> Result<Taken, SendError> {
        Ok(self.writer.try_send_all(messages)?)
    }

    /// Opens a message of at most `bytes` bytes, to be written piece by piece straight into the window; waits for
    /// room.
    ///
    /// # Errors
    /// As [`Sender::send`].
    pub fn reserve(&mut self, bytes: usize) -> Result<Reservation<'_>, SendError> {
        self.room_until(bytes, None)?;
        let inner =
            self.writer.reserve(bytes)?.expect("room was just waited for, and only this sender takes any");
        Ok(Reservation { inner })
    }

    /// Opens a batch of at most `bytes` bytes: many small messages in few lines. Each takes 2 bytes more than it has,
    /// rounded up to 8. Waits for room.
    ///
    /// # Errors
    /// As [`Sender::send`].
    pub fn batch(&mut self, bytes: usize) -> Result<Batch<'_>, SendError> {
        self.room_until(bytes, None)?;
        let inner =
            self.writer.batch(bytes)?.expect("room was just waited for, and only this sender takes any");
        Ok(Batch { inner })
    }

    /// Waits until there is room for a message, a reservation or a batch of `bytes` bytes, for at most `timeout`; returns
    /// whether there is. A call of that size that follows does not wait.
    ///
    /// # Errors
    /// As [`Sender::send`].
    pub fn wait_for_room(&mut self, bytes: usize, timeout: Duration) -> Result<bool, SendError> {
        self.room_until(bytes, Instant::now().checked_add(timeout))
    }

    /// Waits until everything sent has been received, for at most `timeout`. The receiver tells when it looks for the next
    /// message. Not needed before dropping the sender: what was sent stays.
    ///
    /// # Errors
    /// As [`Sender::send`].
    pub fn flush(&mut self, timeout: Duration) -> Result<Flushed, SendError> {
        let deadline = Instant::now().checked_add(timeout);
        let mut waiter = Waiter::new(&self.wait, &mut self.sleeper, deadline);
        Ok(Flushed::when(self.writer.room_wait(u32::MAX, &mut waiter)?))
    }

    /// Stores with another kernel from the next message on: with that of a tuning that was found since
    /// ([`crate::TuningWatch`], [`crate::Tuning::kernel`]). Changes no message, whenever it is called; the receiver is not told.
    ///
    /// # Errors
    /// This machine lacks the kernel, or it does not store to memory; the sender stores as before.
    pub fn set_kernel(&mut self, kernel: StoreKernel) -> Result<(), KernelError> {
        Choice::make(Traffic::Latency, Some(kernel))?;
        self.writer.port_mut().set_kernel(kernel);
        Ok(())
    }

    /// The kernel that messages are stored with.
    pub fn kernel(&self) -> StoreKernel {
        self.writer.port().kernel()
    }

    /// The longest message in bytes.
    pub fn max_message_bytes(&self) -> usize {
        self.writer.max_payload_bytes()
    }

    /// Whether the receiver's program has ended. Costs one load.
    pub fn is_receiver_gone(&self) -> bool {
        self.sleeper.is_peer_gone()
    }

    fn room_until(&mut self, bytes: usize, deadline: Option<Instant>) -> Result<bool, SendError> {
        let max_bytes = self.max_message_bytes();
        if bytes > max_bytes {
            return Err(SendError::TooLong { bytes, max_bytes });
        }
        let mut waiter = Waiter::new(&self.wait, &mut self.sleeper, deadline);
        Ok(self.writer.room_wait(lines_of(bytes as u32), &mut waiter)?)
    }
}

/// An open message. [`Reservation::commit`] sends it; dropping it discards it.
#[derive(Debug)]
pub struct Reservation<'s> {
    inner: beeline_window::Reservation<'s, PeerWindow, MemoryCredits>,
}

impl Reservation<'_> {
    /// Appends bytes. Whole lines are stored at once, straight from `bytes`.
    ///
    /// # Errors
    /// It is more than was reserved; nothing of it was taken.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.inner.write(bytes)
    }

    /// Appends a word, little-endian.
    ///
    /// # Errors
    /// As [`Reservation::write`].
    pub fn put_u64(&mut self, value: u64) -> Result<(), WriteError> {
        self.write(&value.to_le_bytes())
    }

    /// Bytes that may still be written.
    pub fn left_bytes(&self) -> usize {
        self.inner.left_bytes()
    }

    /// Sends what was written.
    pub fn commit(self) {
        self.inner.commit();
    }
}

/// Takes what fits; sent by [`Reservation::commit`] only.
impl std::io::Write for Reservation<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        std::io::Write::write(&mut self.inner, bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// An open batch. [`Batch::send`] sends it, and the receiver gets message by message; dropping it discards it, so a `?` in the
/// middle publishes no part of it.
#[derive(Debug)]
pub struct Batch<'s> {
    inner: beeline_window::Batch<'s, PeerWindow, MemoryCredits>,
}

impl Batch<'_> {
    /// Adds a message. [`Sent::Full`]: it has no room in this batch, which stays open as it was; send it and open another.
    ///
    /// # Errors
    /// No batch of this size can hold it.
    pub fn push(&mut self, message: &[u8]) -> Result<Sent, SendError> {
        Ok(self.inner.push(message)?)
    }

    /// Messages in the batch.
    pub fn len(&self) -> usize {
        self.inner.records() as usize
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sends the messages of the batch; an empty batch leaves no trace.
    pub fn send(self) {
        self.inner.send();
    }
}
