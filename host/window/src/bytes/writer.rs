//! The sender's end of a byte stream.
//!
//! The writer looks at the credits itself, before it sends: it knows then that a message has room, and it takes note of what
//! was freed before the lines are stored again (`account.rs`).

use core::ops::Deref;

use beeline_contract_memory::{CreditSource, StorePort};
use beeline_spec::Kind;
use beeline_spec::header::lines_of;

use super::account::Account;
use crate::error::SendError;
use crate::payload::payload_bytes_of;
use crate::{Position, Sent, Writer};

/// Lines of the longest message that a stream is cut into, in windows of at least four times as many; a quarter of the window
/// in smaller ones. A message is read when all of it has arrived, so a shorter one is read sooner and a longer one has fewer
/// headers. A write of 16 KiB is one message.
pub const MESSAGE_LINES: u32 = 257;

/// Why nothing can be written to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ByteWriteError {
    /// [`ByteWriter::shut_down`] was called before.
    #[error("the stream was shut down for writing")]
    Shut,
    /// The receiver is gone or cannot be believed.
    #[error(transparent)]
    Send(#[from] SendError),
}

/// Writes a byte stream through a window. Dropping it sends what was kept for coalescing and ends the stream, as
/// [`ByteWriter::shut_down`] does.
///
/// One line of the window is kept for the end mark, so that an end never waits for room.
#[derive(Debug)]
pub struct ByteWriter<P: StorePort, C: CreditSource> {
    pub(super) writer: Writer<P, C>,
    account: Account,
    message_lines: u32,
    is_shut: bool,
}

impl<P: StorePort, C: CreditSource> ByteWriter<P, C> {
    /// Writes a stream from the next message of `writer` on. Allocates 4 bytes for each line of the window.
    ///
    /// # Panics
    /// If the window has one line only.
    pub fn new(mut writer: Writer<P, C>) -> Self {
        let lines = writer.lines();
        assert!(lines >= 2, "a stream needs a window of two lines: one of them is kept for the end mark");
        writer.abandon();
        let account = Account::new(lines, writer.position().0);
        ByteWriter { writer, account, message_lines: MESSAGE_LINES.min((lines / 4).max(1)), is_shut: false }
    }

    /// Writes as many of `bytes`, from the first on, as there is room for, and returns how many; 0 when there is no room. Never
    /// waits.
    ///
    /// They are with the receiver as soon as they are stored: nothing is kept back, and what [`ByteWriter::write_more`] kept goes
    /// with them. Costs a message for each [`MESSAGE_LINES`], and no look at the credits unless they seem out.
    ///
    /// # Errors
    /// [`ByteWriteError`]; nothing of `bytes` was taken then.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, ByteWriteError> {
        self.check_open()?;
        let mut taken = 0;
        if self.writer.stream.open {
            taken = self.append(bytes);
            self.flush();
        }
        while taken < bytes.len() {
            let left = &bytes[taken..];
            match self.room_for_message(left.len()) {
                Ok(0) => break,
                Ok(room_bytes) => {
                    let now = &left[..room_bytes.min(left.len())];
                    let position = self.writer.position().0;
                    // The lines are free and the message is short enough.
                    if self.writer.try_send(now)? == Sent::Full {
                        break;
                    }
                    self.account.sent(position, now.len() as u32);
                    taken += now.len();
                }
                // The next call says so again.
                Err(_) if taken > 0 => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(taken)
    }

    /// As [`ByteWriter::write`] of the slices one after the other, in as few messages as for one slice.
    ///
    /// # Errors
    /// As [`ByteWriter::write`].
    pub fn write_vectored<B: Deref<Target = [u8]>>(&mut self, slices: &[B]) -> Result<usize, ByteWriteError> {
        let mut filled = slices.iter().filter(|slice| !slice.is_empty());
        if let (Some(only), None) = (filled.next(), filled.next()) {
            return self.write(only);
        }
        self.check_open()?;
        let mut taken = 0;
        for slice in slices {
            let now = match self.write_more(slice) {
                Ok(now) => now,
                Err(error) if taken == 0 => return Err(error),
                Err(_) => break,
            };
            taken += now;
            if now < slice.len() {
                break;
            }
        }
        self.flush();
        Ok(taken)
    }

    /// As [`ByteWriter::write`], but the last bytes may be kept back, to share a message with those of later calls: until
    /// [`ByteWriter::write`] or [`ByteWriter::flush`], or until they fill a message. For small writes when more is to come
    /// (`MSG_MORE`). Bytes kept are in the window already, without a header: nothing is copied twice.
    ///
    /// # Errors
    /// As [`ByteWriter::write`].
    pub fn write_more(&mut self, bytes: &[u8]) -> Result<usize, ByteWriteError> {
        self.check_open()?;
        let mut taken = 0;
        while taken < bytes.len() {
            if !self.writer.stream.open {
                match self.room_for_message(self.writer.max_reservation_bytes as usize) {
                    Ok(0) => break,
                    Ok(room_bytes) => {
                        let capacity_bytes = room_bytes.min(self.writer.max_reservation_bytes as usize);
                        self.writer.open_stream(capacity_bytes as u32);
                    }
                    Err(_) if taken > 0 => break,
                    Err(error) => return Err(error.into()),
                }
            }
            taken += self.append(&bytes[taken..]);
            if self.left_bytes() == 0 {
                self.flush();
            }
        }
        Ok(taken)
    }

    /// Sends what [`ByteWriter::write_more`] kept back. It has its room, so this neither fails nor waits; does not wait for the
    /// receiver either.
    pub fn flush(&mut self) {
        if !self.writer.stream.open {
            return;
        }
        match self.writer.stream.written_bytes() {
            0 => self.writer.cancel(),
            bytes => {
                let position = self.writer.position().0;
                self.writer.close_stream(Kind::Data, bytes);
                self.account.sent(position, bytes);
            }
        }
    }

    /// Ends the stream (`SHUT_WR`): the reader gets what was written and then the end. What was kept back is sent first. The
    /// other direction, a window of its own, is not touched. A second call does nothing.
    ///
    /// [`Sent::Full`] only where messages that were sent before there was a stream still fill the window.
    ///
    /// # Errors
    /// The receiver cannot be believed.
    pub fn shut_down(&mut self) -> Result<Sent, SendError> {
        if self.is_shut {
            return Ok(Sent::Sent);
        }
        self.flush();
        if !self.writer.credits.has(1) {
            self.look_at_credits()?;
        }
        let position = self.writer.position().0;
        let sent = self.writer.try_send(&[])?;
        if sent == Sent::Sent {
            self.account.sent(position, 0);
            self.is_shut = true;
        }
        Ok(sent)
    }

    /// Whether the stream was shut down.
    pub fn is_shut_down(&self) -> bool {
        self.is_shut
    }

    /// Bytes that [`ByteWriter::write`] would take now. Looks at the credits.
    ///
    /// # Errors
    /// As [`ByteWriter::write`].
    pub fn room_bytes(&mut self) -> Result<usize, ByteWriteError> {
        self.check_open()?;
        self.look_at_credits()?;
        // What is kept back has its lines; a message that is open is ended by a write and gives back those it does not need.
        let stream = &self.writer.stream;
        let (open_bytes, held_lines) = match stream.open {
            true => (stream.left_bytes() as usize, lines_of(stream.capacity_bytes)),
            false => (0, 0),
        };
        let usable = (self.writer.credits.free_lines() - held_lines).saturating_sub(1);
        let (whole, rest) = (usable / self.message_lines, usable % self.message_lines);
        let rest_bytes = if rest == 0 { 0 } else { payload_bytes_of(rest) as usize };
        Ok(open_bytes + whole as usize * payload_bytes_of(self.message_lines) as usize + rest_bytes)
    }

    /// Bytes written that the receiver has not released yet, as far as it has told (`SIOCOUTQ`); those kept back are among them.
    /// Looks at the credits, and costs a load for each message that was released since the last look.
    ///
    /// Exactly: the bytes of the stream in lines of the window that no credit covers. A receiver frees a line when its last byte
    /// is read, and tells of it when enough lines have gathered, when it finds nothing more to read, or when it is told to
    /// ([`super::ByteReader::push_credits`]). So the count is never too small, and too great by what was read of a line that is not
    /// finished, and by lines that are not told of yet. It is 0 when everything was read and the reader has looked once more.
    ///
    /// # Errors
    /// The receiver cannot be believed.
    pub fn unacknowledged_bytes(&mut self) -> Result<u64, SendError> {
        self.look_at_credits()?;
        let stream = &self.writer.stream;
        let kept_bytes = if stream.open { stream.written_bytes() } else { 0 };
        Ok(self.account.unacknowledged_bytes() + u64::from(kept_bytes))
    }

    /// Lines of the window.
    pub fn lines(&self) -> u32 {
        self.writer.lines()
    }

    /// Returns the position of the next message.
    pub fn position(&self) -> Position {
        self.writer.position()
    }

    /// The port, to look at what it counts.
    pub fn port(&self) -> &P {
        self.writer.port()
    }

    /// As [`StorePort::progress`]: for whoever waits without writing.
    pub fn progress(&mut self) {
        self.writer.progress();
    }

    /// Makes everything written so far visible before anything that is stored later, for a stream that goes on by another path. The
    /// stream itself does not need it.
    pub fn fence(&mut self) {
        self.writer.fence();
    }

    fn check_open(&self) -> Result<(), ByteWriteError> {
        if self.is_shut { Err(ByteWriteError::Shut) } else { Ok(()) }
    }

    /// Bytes that the open message takes.
    fn left_bytes(&self) -> usize {
        if self.writer.stream.open { self.writer.stream.left_bytes() as usize } else { 0 }
    }

    /// Appends as much as the open message takes.
    fn append(&mut self, bytes: &[u8]) -> usize {
        let now = bytes.len().min(self.left_bytes());
        self.writer.append(&bytes[..now]);
        now
    }

    /// How long the next message may be, for one that wants so many bytes; 0 if there is no room. No message is open.
    #[inline]
    fn room_for_message(&mut self, wanted_bytes: usize) -> Result<usize, SendError> {
        let most_bytes = payload_bytes_of(self.message_lines);
        let wanted_bytes = wanted_bytes.min(most_bytes as usize) as u32;
        if self.writer.credits.has(lines_of(wanted_bytes) + 1) {
            return Ok(wanted_bytes as usize);
        }
        self.find_room(wanted_bytes)
    }

    #[cold]
    #[inline(never)]
    fn find_room(&mut self, wanted_bytes: u32) -> Result<usize, SendError> {
        self.look_at_credits()?;
        let usable = self.writer.credits.known_free().saturating_sub(1);
        if usable == 0 {
            self.writer.progress();
            return Ok(0);
        }
        Ok(wanted_bytes.min(payload_bytes_of(usable)) as usize)
    }

    /// Looks at the credits and takes note of what was freed.
    fn look_at_credits(&mut self) -> Result<(), SendError> {
        self.writer.credits.refresh(0)?;
        if self.writer.stream.open {
            self.writer.credits.hold();
        }
        self.account.freed(self.writer.credits.freed());
        Ok(())
    }
}

impl<P: StorePort, C: CreditSource> Drop for ByteWriter<P, C> {
    fn drop(&mut self) {
        // A receiver that cannot be believed gets no end.
        let _ = self.shut_down();
    }
}

/// Takes what there is room for; `WouldBlock` when there is none. Flushing sends what was kept back and waits for nobody.
#[cfg(feature = "std")]
impl<P: StorePort, C: CreditSource> std::io::Write for ByteWriter<P, C> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match ByteWriter::write(self, bytes)? {
            0 if !bytes.is_empty() => Err(std::io::ErrorKind::WouldBlock.into()),
            taken => Ok(taken),
        }
    }

    fn write_vectored(&mut self, slices: &[std::io::IoSlice<'_>]) -> std::io::Result<usize> {
        match ByteWriter::write_vectored(self, slices)? {
            0 if slices.iter().any(|slice| !slice.is_empty()) => Err(std::io::ErrorKind::WouldBlock.into()),
            taken => Ok(taken),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        ByteWriter::flush(self);
        Ok(())
    }
}

#[cfg(feature = "std")]
impl From<ByteWriteError> for std::io::Error {
    fn from(error: ByteWriteError) -> Self {
        let kind = match error {
            ByteWriteError::Send(SendError::Credits(_)) => std::io::ErrorKind::InvalidData,
            _ => std::io::ErrorKind::BrokenPipe,
        };
        std::io::Error::new(kind, error)
    }
}

#[cfg(test)]
mod tests;
