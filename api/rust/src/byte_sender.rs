//! The sending end of a window as a byte stream.

use std::io;
use std::time::{Duration, Instant};

use beeline_contract_memory::Sleeper;
use beeline_domain::{MemoryCredits, MemorySleeper, PeerWindow};
use beeline_wait::{Wait, Waiter};
use beeline_window::{ByteWriter, Sent, WaitPolicy};

use crate::sender::Sender;
use crate::{Error, Flushed, SendError};

/// Writes a byte stream to one receiver. Made by [`Sender::into_bytes`].
///
/// Dropping it ends the stream, as [`ByteSender::shut_down`] does; what was written stays for the receiver. Several threads take
/// turns with one that is in a [`crate::Shared`]: what a thread writes in its turn stands together.
///
/// ```no_run
/// # fn main() -> Result<(), beeline::Error> {
/// let mut sender = beeline::Domain::open("demo")?.sender("bytes")?.into_bytes();
/// sender.write_all(&[7; 100_000])?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ByteSender {
    writer: ByteWriter<PeerWindow, MemoryCredits>,
    sleeper: MemorySleeper,
    wait: WaitPolicy,
}

impl Sender {
    /// Writes bytes instead of messages from here on. Messages sent before are in front of them.
    ///
    /// # Panics
    /// If the window has one line only, which no [`crate::Receiver`] offers.
    pub fn into_bytes(self) -> ByteSender {
        let Sender { writer, sleeper, wait } = self;
        ByteSender { writer: ByteWriter::new(writer), sleeper, wait }
    }
}

impl ByteSender {
    /// Writes as many of `bytes` as there is room for, and returns how many; waits for room for the first.
    ///
    /// They are with the receiver at once. [`ByteSender::write_more`] gathers small writes.
    ///
    /// # Errors
    /// The receiver is gone or faulty, or the stream was shut down; nothing was written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, SendError> {
        self.write_until(bytes, None)
    }

    /// As [`ByteSender::write`], for at most `timeout`: 0 when there was no room for so long.
    ///
    /// # Errors
    /// As [`ByteSender::write`].
    pub fn write_timeout(&mut self, bytes: &[u8], timeout: Duration) -> Result<usize, SendError> {
        self.write_until(bytes, Instant::now().checked_add(timeout))
    }

    /// As [`ByteSender::write`] of what there is room for now: 0 when there is none. Never waits, never enters the kernel but
    /// to wake a receiver that sleeps.
    ///
    /// # Errors
    /// As [`ByteSender::write`].
    #[inline]
    pub fn try_write(&mut self, bytes: &[u8]) -> Result<usize, SendError> {
        Ok(self.writer.write(bytes)?)
    }

    /// Writes all of `bytes`, waiting for room.
    ///
    /// # Errors
    /// As [`ByteSender::write`]; some of `bytes` may have been written.
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<(), SendError> {
        let mut left = bytes;
        while !left.is_empty() {
            let mut waiter = Waiter::new(&self.wait, &mut self.sleeper, None);
            let taken = self.writer.write_all_wait(left, &mut waiter)?;
            left = &left[taken..];
        }
        Ok(())
    }

    /// As [`ByteSender::try_write`], but the last bytes may be kept back, to share a message with those of later calls, until a
    /// write of another kind, [`ByteSender::send_kept`], or the end.
    ///
    /// # Errors
    /// As [`ByteSender::write`].
    pub fn write_more(&mut self, bytes: &[u8]) -> Result<usize, SendError> {
        Ok(self.writer.write_more(bytes)?)
    }

    /// Sends what [`ByteSender::write_more`] kept back. Never waits.
    pub fn send_kept(&mut self) {
        self.writer.flush();
    }

    /// Bytes that [`ByteSender::try_write`] would take now.
    ///
    /// # Errors
    /// As [`ByteSender::write`].
    pub fn room_bytes(&mut self) -> Result<usize, SendError> {
        Ok(self.writer.room_bytes()?)
    }

    /// Bytes written that the receiver has not read yet, as far as it has told: never too few. It tells when enough has gathered
    /// and when it finds nothing more to read, so what stays is 0 once it has read everything and looked again.
    ///
    /// # Errors
    /// The receiver is faulty.
    pub fn unacknowledged_bytes(&mut self) -> Result<u64, SendError> {
        Ok(self.writer.unacknowledged_bytes()?)
    }

    /// Sends what was kept back and waits until [`ByteSender::unacknowledged_bytes`] is 0, for at most `timeout`.
    ///
    /// # Errors
    /// As [`ByteSender::write`], also after [`ByteSender::shut_down`].
    pub fn wait_acknowledged(&mut self, timeout: Duration) -> Result<Flushed, SendError> {
        let deadline = Instant::now().checked_add(timeout);
        let mut waiter = Waiter::new(&self.wait, &mut self.sleeper, deadline);
        Ok(Flushed::when(self.writer.acknowledged_wait(&mut waiter)?))
    }

    /// Ends the stream: the receiver reads what was written and then the end. Nothing can be written any more. Waits only where
    /// messages that were sent before [`Sender::into_bytes`] fill the window. A second call does nothing.
    ///
    /// # Errors
    /// As [`ByteSender::write`].
    pub fn shut_down(&mut self) -> Result<(), SendError> {
        let writer = &mut self.writer;
        Waiter::new(&self.wait, &mut self.sleeper, None).wait(|peer_gone| match writer.shut_down()? {
            Sent::Sent => Ok(Some(())),
            Sent::Full if peer_gone => Err(SendError::ReceiverGone),
            Sent::Full => Ok(None),
        })?;
        Ok(())
    }

    /// Whether the receiver's program has ended. Costs one load.
    pub fn is_receiver_gone(&self) -> bool {
        self.sleeper.is_peer_gone()
    }

    fn write_until(&mut self, bytes: &[u8], deadline: Option<Instant>) -> Result<usize, SendError> {
        let mut waiter = Waiter::new(&self.wait, &mut self.sleeper, deadline);
        Ok(self.writer.write_wait(bytes, &mut waiter)?)
    }
}

/// [`ByteSender::write`]: waits for room for the first byte. `flush` sends what was kept back and waits for nobody.
impl io::Write for ByteSender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        ByteSender::write(self, bytes).map_err(into_io)
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let taken = self.writer.write_vectored(slices).map_err(|error| into_io(error.into()))?;
        match slices.iter().find(|slice| !slice.is_empty()) {
            Some(first) if taken == 0 => io::Write::write(self, first),
            _ => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send_kept();
        Ok(())
    }
}

fn into_io(error: SendError) -> io::Error {
    let kind = match &error {
        SendError::ReceiverFaulty { .. } => io::ErrorKind::InvalidData,
        _ => io::ErrorKind::BrokenPipe,
    };
    io::Error::new(kind, Error::from(error))
}
