//! The receiving end of a window as a byte stream.

use std::io;
use std::time::{Duration, Instant};

use beeline_contract_memory::Sleeper;
use beeline_domain::{Armed, Event, MemoryCreditSink, MemorySleeper, Source, listen_all};
use beeline_mmio::LoadWindow;
use beeline_tuning::ReceiveTuning;
use beeline_wait::Waiter;
use beeline_window::{ByteRead, ByteReader, ReceiveError, WaitPolicy};

use crate::origin::Origin;
use crate::receiver::{Open, Receiver};
use crate::{Error, RecvError};

/// Reads the byte streams of one sender after the other. Made by [`Receiver::into_bytes`].
///
/// A stream ends when its sender shuts it down or drops its [`crate::ByteSender`]. A sender whose program ends without that is
/// [`RecvError::SenderGone`], after every byte that arrived. An end and an error stay until [`ByteReceiver::next_stream`].
///
/// ```no_run
/// # fn main() -> Result<(), beeline::Error> {
/// let mut receiver = beeline::Domain::open("demo")?.receiver("bytes")?.into_bytes();
/// let mut bytes = [0; 1000];
/// while let count @ 1.. = receiver.read(&mut bytes)? {
///     println!("{:?}", &bytes[..count]);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ByteReceiver {
    origin: Origin,
    wait: WaitPolicy,
    tuning: Option<ReceiveTuning>,
    open: Option<OpenStream>,
}

#[derive(Debug)]
struct OpenStream {
    reader: ByteReader<LoadWindow, MemoryCreditSink>,
    sleeper: MemorySleeper,
}

impl From<Open> for OpenStream {
    fn from(open: Open) -> Self {
        OpenStream { reader: ByteReader::new(open.receiver), sleeper: open.sleeper }
    }
}

impl OpenStream {
    /// What the program is told of an error of the stream.
    fn told(&self, error: ReceiveError) -> RecvError {
        RecvError::new(error, self.sleeper.peer().departure())
    }
}

impl Receiver {
    /// Reads bytes instead of messages from here on: the payloads that come, one after the other. The sender does the same
    /// ([`crate::Sender::into_bytes`]); it may send messages too, where an empty one is the end.
    pub fn into_bytes(self) -> ByteReceiver {
        let Receiver { origin, wait, tuning, open, is_over } = self;
        ByteReceiver { origin, wait, tuning, open: open.filter(|_| !is_over).map(OpenStream::from) }
    }
}

impl ByteReceiver {
    /// Reads the next bytes into `bytes`, as many as it takes and have arrived; waits for a sender and for the first byte. 0 at the
    /// end of the stream, and for no `bytes`.
    ///
    /// # Errors
    /// The sender has ended without an end of its stream, or is faulty; or this process was forked and there is no sender, nor will
    /// be.
    pub fn read(&mut self, bytes: &mut [u8]) -> Result<usize, RecvError> {
        count_of(self.read_until(bytes, None)?)
    }

    /// As [`ByteReceiver::read`], for at most `timeout`: [`ByteRead::Nothing`] when nothing came.
    ///
    /// # Errors
    /// As [`ByteReceiver::read`].
    pub fn read_timeout(&mut self, bytes: &mut [u8], timeout: Duration) -> Result<ByteRead, RecvError> {
        self.read_until(bytes, Instant::now().checked_add(timeout))
    }

    /// As [`ByteReceiver::read`] of what is there: [`ByteRead::Nothing`] when nothing is. Never waits; enters the kernel only
    /// while there is no sender.
    ///
    /// # Errors
    /// As [`ByteReceiver::read`].
    #[inline]
    pub fn try_read(&mut self, bytes: &mut [u8]) -> Result<ByteRead, RecvError> {
        let Some(open) = self.look_for_sender()? else { return Ok(ByteRead::Nothing) };
        open.reader.read(bytes).map_err(|error| open.told(error))
    }

    /// Reads until `bytes` is full; returns how many there were, fewer only at the end of the stream or in front of an error.
    ///
    /// # Errors
    /// As [`ByteReceiver::read`].
    pub fn read_full(&mut self, bytes: &mut [u8]) -> Result<usize, RecvError> {
        let (open, wait) = self.open_until(None)?.ok_or(RecvError::Forked)?;
        let found = open.reader.read_full_wait(bytes, &mut Waiter::new(wait, &mut open.sleeper, None));
        count_of(found.map_err(|error| open.told(error))?)
    }

    /// Copies bytes from the one on that is `offset` bytes after the next, as many as `bytes` takes and have arrived, and leaves
    /// them to be read. [`ByteRead::Nothing`] if fewer have arrived. Never waits.
    ///
    /// # Errors
    /// As [`ByteReceiver::read`], which says the same error again.
    pub fn peek(&mut self, offset: u64, bytes: &mut [u8]) -> Result<ByteRead, RecvError> {
        let Some(open) = self.look_for_sender()? else { return Ok(ByteRead::Nothing) };
        open.reader.peek(offset, bytes).map_err(|error| open.told(error))
    }

    /// Bytes that can be read without waiting. Looks at each line that has arrived since it was asked last.
    pub fn queued_bytes(&mut self) -> u64 {
        self.look_for_sender().ok().flatten().map_or(0, |open| open.reader.queued_bytes())
    }

    /// Whether every byte of the stream was read and its sender has shut it down.
    pub fn is_at_end(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.reader.is_at_end())
    }

    /// Whether a sender is connected, or has left a stream.
    pub fn has_sender(&self) -> bool {
        self.open.is_some()
    }

    /// Lets go of the stream, whether it has ended or not: what follows is of the next sender, which gets a fresh window. In an arena
    /// there is none, and reads fail with [`RecvError::SenderGone`].
    pub fn next_stream(&mut self) {
        self.open = None;
    }

    fn read_until(&mut self, bytes: &mut [u8], deadline: Option<Instant>) -> Result<ByteRead, RecvError> {
        let Some((open, wait)) = self.open_until(deadline)? else { return Ok(ByteRead::Nothing) };
        let found = open.reader.read_wait(bytes, &mut Waiter::new(wait, &mut open.sleeper, deadline));
        found.map_err(|error| open.told(error))
    }

    /// The stream in use, after a wait for a sender if there is none.
    fn open_until(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<Option<(&mut OpenStream, &WaitPolicy)>, RecvError> {
        if self.open.is_none() {
            self.check_next()?;
            let time = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let parts = self.origin.accept(time.unwrap_or(Duration::MAX));
            self.open = parts.map(|parts| Open::new(parts, self.tuning).into());
        }
        Ok(self.open.as_mut().map(|open| (open, &self.wait)))
    }

    /// The stream in use, after a look for a sender and for its end that does not wait.
    #[inline]
    fn look_for_sender(&mut self) -> Result<Option<&mut OpenStream>, RecvError> {
        if self.open.is_none() {
            self.check_next()?;
            let parts = self.origin.accept(Duration::ZERO);
            self.open = parts.map(|parts| Open::new(parts, self.tuning).into());
        }
        let Some(open) = self.open.as_mut() else { return Ok(None) };
        if open.sleeper.is_peer_gone() {
            open.reader.sender_gone();
        }
        Ok(Some(open))
    }

    fn check_next(&self) -> Result<(), RecvError> {
        if self.origin.has_next() { Ok(()) } else { Err(RecvError::SenderGone) }
    }
}

/// Ready while bytes, an end, or the first sender may be there for [`ByteReceiver::try_read`]; so always once a stream has ended,
/// until [`ByteReceiver::next_stream`].
impl Source for ByteReceiver {
    fn listen(&mut self, event: &Event) -> Armed {
        self.origin.signal(Some(event));
        let open = match self.look_for_sender() {
            Ok(Some(open)) => open,
            Ok(None) => return Armed::Wait,
            Err(_) => return Armed::Ready,
        };
        // The sender may wait for lines that it was not told of.
        open.reader.push_credits();
        open.sleeper.announce(event);
        listen_all([&open.sleeper]);
        if open.sleeper.is_peer_gone() || open.reader.is_readable() { Armed::Ready } else { Armed::Wait }
    }

    fn unlisten(&mut self) {
        self.origin.signal(None);
        if let Some(open) = &mut self.open {
            open.sleeper.unlisten();
        }
    }
}

/// [`ByteReceiver::read`]: waits for the first byte.
impl io::Read for ByteReceiver {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        ByteReceiver::read(self, bytes).map_err(into_io)
    }

    fn read_vectored(&mut self, slices: &mut [io::IoSliceMut<'_>]) -> io::Result<usize> {
        let Some(first) = slices.iter().position(|slice| !slice.is_empty()) else { return Ok(0) };
        let count = ByteReceiver::read(self, &mut slices[first]).map_err(into_io)?;
        if count < slices[first].len() {
            return Ok(count);
        }
        // An error behind bytes waits for the next read.
        let rest = self.open.as_mut().map(|open| open.reader.read_vectored(&mut slices[first + 1..]));
        match rest {
            Some(Ok(ByteRead::Bytes(more))) => Ok(count + more),
            Some(Err(error)) => {
                if let Some(open) = &mut self.open {
                    open.reader.keep_error(error);
                }
                Ok(count)
            }
            _ => Ok(count),
        }
    }
}

/// What a read without a deadline found, 0 at the end. It finds nothing only in a forked child, where no sender ever comes.
fn count_of(found: ByteRead) -> Result<usize, RecvError> {
    match found {
        ByteRead::Bytes(count) => Ok(count),
        ByteRead::End => Ok(0),
        ByteRead::Nothing => Err(RecvError::Forked),
    }
}

fn into_io(error: RecvError) -> io::Error {
    let kind = match &error {
        RecvError::SenderFaulty { .. } => io::ErrorKind::InvalidData,
        RecvError::Forked => io::ErrorKind::NotConnected,
        _ => io::ErrorKind::ConnectionReset,
    };
    io::Error::new(kind, Error::from(error))
}
