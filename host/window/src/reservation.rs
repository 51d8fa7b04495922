//! A message built piece by piece, straight into the window.
//!
//! At most one line is staged besides the header word. The header is stored last, because only then are the length
//! and the escapes known; a receiver takes it whenever it comes. A reservation that is dropped without a commit
//! becomes a void message over the same lines, since what was stored cannot be taken back.

use beeline_contract_memory::{CreditSource, Line, StorePort};
use beeline_spec::header::lines_of;
use beeline_spec::{Header, Kind, LINE_BYTES, WORD_BYTES, WORDS_PER_LINE, escape};

use crate::Writer;
use crate::error::{SendError, WriteError};
use crate::stream::Stream;

impl<P: StorePort, C: CreditSource> Writer<P, C> {
    /// Opens a message of at most `bytes` of payload, to be written piece by piece; `None` when there is no room.
    ///
    /// # Errors
    /// As [`Writer::try_send`].
    pub fn reserve(&mut self, bytes: usize) -> Result<Option<Reservation<'_, P, C>>, SendError> {
        let max_bytes = self.max_reservation_bytes as usize;
        if bytes > max_bytes {
            return Err(SendError::TooLong { bytes, max_bytes });
        }
        let lines = lines_of(bytes as u32);
        if !self.credits.has(lines) && !self.find_room(lines)? {
            return Ok(None);
        }
        Ok(Some(Reservation::open(self, bytes as u32)))
    }

    /// Opens a message of at most `capacity_bytes`; the lines it needs are free.
    pub(crate) fn open_stream(&mut self, capacity_bytes: u32) {
        self.stream = Stream { open: true, capacity_bytes, ..Stream::default() };
        self.credits.hold();
    }

    /// Appends bytes that fit.
    pub(crate) fn append(&mut self, mut bytes: &[u8]) {
        debug_assert!(bytes.len() <= self.stream.left_bytes() as usize);
        while !bytes.is_empty() {
            let mut at = self.stream.staged_bytes();
            if at == LINE_BYTES {
                self.store_staged();
                at = 0;
            }
            if at == 0 && bytes.len() >= LINE_BYTES {
                bytes = self.append_lines(bytes);
                continue;
            }
            let (now, rest) = bytes.split_at(bytes.len().min(LINE_BYTES - at));
            self.stream.staged[at..at + now.len()].copy_from_slice(now);
            self.stream.written_bytes += now.len() as u32;
            bytes = rest;
        }
    }

    /// Stores the whole lines of `bytes` without staging them, as long as nothing in them is to be escaped; a line
    /// with an escape is staged. Gives back what is left.
    fn append_lines<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let (whole, rest) = bytes.split_at(bytes.len() - bytes.len() % LINE_BYTES);
        if !self.escapes(whole) {
            self.store_run(self.credits.next() + u64::from(self.stream.stored_lines), whole);
            self.stream.stored_lines += (whole.len() / LINE_BYTES) as u32;
            self.stream.written_bytes += whole.len() as u32;
            return rest;
        }
        for line in whole.chunks_exact(LINE_BYTES) {
            self.stream.staged.copy_from_slice(line);
            self.stream.written_bytes += LINE_BYTES as u32;
            self.store_staged();
        }
        rest
    }

    /// The staged line as words, blanks escaped. Word 0 of a first line is left for the header.
    fn staged_line(&mut self) -> Line {
        let staged = self.stream.staged.as_chunks::<WORD_BYTES>().0;
        let mut words: Line = core::array::from_fn(|slot| u64::from_le_bytes(staged[slot]));
        let blank = self.blank();
        let first = usize::from(self.stream.stored_lines == 0);
        if blank != 0 {
            for (slot, word) in words.iter_mut().enumerate().skip(first) {
                if *word == blank {
                    *word = escape::link(self.stream.escape_last);
                    self.stream.escape_last = self.stream.stored_lines * WORDS_PER_LINE as u32 + slot as u32;
                }
            }
        }
        words
    }

    /// Stores the staged line and begins a new one. A first line goes without its header word.
    fn store_staged(&mut self) {
        let words = self.staged_line();
        let position = self.credits.next() + u64::from(self.stream.stored_lines);
        if self.stream.stored_lines == 0 {
            for (slot, word) in words.iter().enumerate().skip(1) {
                self.store_word(position, slot as u32, *word);
            }
            self.fence_after(position);
        } else {
            self.store(position, &words);
        }
        self.stream.stored_lines += 1;
        self.stream.staged = [0; LINE_BYTES];
    }

    /// Ends the open message: what is staged is padded and stored, the header last.
    pub(crate) fn close_stream(&mut self, kind: Kind, length_bytes: u32) {
        let lines = lines_of(length_bytes);
        let position = self.credits.next();
        if lines == 1 {
            let mut words = self.staged_line();
            words[0] = self.stream_header(kind, length_bytes);
            self.store(position, &words);
        } else {
            while self.stream.stored_lines < lines {
                self.store_staged();
            }
            self.store_word(position, 0, self.stream_header(kind, length_bytes));
            self.fence_after(position);
        }
        self.stream.open = false;
        self.credits.release();
        self.finish(lines);
    }

    fn stream_header(&self, kind: Kind, length_bytes: u32) -> u64 {
        // Nobody follows the escapes of a void message.
        let escape_last = if kind == Kind::Void { 0 } else { self.stream.escape_last };
        Header { escape_last, ..self.header(kind, length_bytes) }.encode()
    }

    /// Discards an open message: it leaves no trace if none of its lines was stored, and becomes void over the lines it was
    /// reserved for otherwise. Nothing happens when none is open.
    pub(crate) fn abandon(&mut self) {
        match self.stream {
            Stream { open: false, .. } => {}
            Stream { stored_lines: 0, .. } => self.cancel(),
            Stream { capacity_bytes, .. } => self.close_stream(Kind::Void, capacity_bytes),
        }
    }

    /// Gives up an open message of which nothing was stored: it leaves no trace.
    pub(crate) fn cancel(&mut self) {
        debug_assert_eq!(self.stream.stored_lines, 0);
        self.stream.open = false;
        self.credits.release();
    }
}

/// An open message. [`Reservation::commit`] sends it; dropping it discards it.
#[derive(Debug)]
pub struct Reservation<'w, P: StorePort, C: CreditSource> {
    writer: &'w mut Writer<P, C>,
}

impl<'w, P: StorePort, C: CreditSource> Reservation<'w, P, C> {
    pub(crate) fn open(writer: &'w mut Writer<P, C>, capacity_bytes: u32) -> Self {
        writer.open_stream(capacity_bytes);
        Reservation { writer }
    }

    /// Appends bytes to the payload. Whole lines are stored at once, straight from `bytes`.
    ///
    /// # Errors
    /// [`WriteError`] when the reservation has less room left; none of the bytes was taken.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        if bytes.len() > self.left_bytes() {
            return Err(WriteError {
                bytes: bytes.len(),
                written_bytes: self.written_bytes(),
                reserved_bytes: self.writer.stream.capacity_bytes as usize,
            });
        }
        self.writer.append(bytes);
        Ok(())
    }

    /// Appends a word, little-endian.
    ///
    /// # Errors
    /// As [`Reservation::write`].
    pub fn put_u64(&mut self, value: u64) -> Result<(), WriteError> {
        self.write(&value.to_le_bytes())
    }

    /// Payload bytes written so far.
    pub fn written_bytes(&self) -> usize {
        self.writer.stream.written_bytes() as usize
    }

    /// Payload bytes that may still be written.
    pub fn left_bytes(&self) -> usize {
        self.writer.stream.left_bytes() as usize
    }

    /// Sends the message with the bytes written so far; lines reserved and not needed are not used.
    pub fn commit(self) {
        let length_bytes = self.writer.stream.written_bytes();
        self.writer.close_stream(Kind::Data, length_bytes);
    }
}

impl<P: StorePort, C: CreditSource> Drop for Reservation<'_, P, C> {
    fn drop(&mut self) {
        self.writer.abandon();
    }
}

/// Takes what fits, as `std::io::Write` says; never blocks, and is flushed only by [`Reservation::commit`].
#[cfg(feature = "std")]
impl<P: StorePort, C: CreditSource> std::io::Write for Reservation<'_, P, C> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = &bytes[..bytes.len().min(self.left_bytes())];
        self.writer.append(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
