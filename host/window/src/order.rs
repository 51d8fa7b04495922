//! The receiver's long way: what is more than a plain message of one line.
//!
//! Long messages arrive line by line, void ones are skipped, escapes are followed once, a batch is handed out record by
//! record, a sender's death is told apart from its silence. Nothing that the sender writes is trusted: the header is
//! read once and checked, chains and records are bounded by it, and every access stays inside the window whatever
//! changes meanwhile. What is malformed is final.

use beeline_contract_memory::{CreditSink, LoadPort};
use beeline_spec::batch::Cursor;
use beeline_spec::escape::EscapeError;
use beeline_spec::header::words_of;
use beeline_spec::{Header, Kind, WORDS_PER_LINE, escape};

use crate::arrival::ArrivalTest;
use crate::delivery::Delivery;
use crate::error::{ReceiveError, Torn};
use crate::phase::Phase;
use crate::{Position, Receiver};

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> Receiver<L, S, A> {
    fn enter(&mut self, phase: Phase) {
        self.is_long = !matches!(phase, Phase::Start);
        self.phase = phase;
    }

    /// Remembers an error for good.
    #[cold]
    pub(crate) fn poison(&mut self, error: ReceiveError) -> ReceiveError {
        self.enter(Phase::Failed(error));
        error
    }

    /// The error that ended this receiver, if any.
    pub(crate) fn check_alive(&self) -> Result<(), ReceiveError> {
        match &self.phase {
            Phase::Failed(error) => Err(*error),
            _ => Ok(()),
        }
    }

    /// The next message, when the short way has not found one.
    #[inline(never)]
    pub(crate) fn resume(&mut self) -> Result<Option<Delivery>, ReceiveError> {
        match &self.phase {
            Phase::Start => self.begin(),
            Phase::Arriving { header, arrived_lines } => {
                let (header, arrived_lines) = (*header, *arrived_lines);
                match self.scan(header, arrived_lines)? {
                    None if !self.is_long => self.begin(),
                    found => Ok(found),
                }
            }
            // The handle was forgotten instead of dropped: the message is given again.
            Phase::Delivered { header } => Ok(Some(Delivery::message(header.length_bytes))),
            Phase::Batch { .. } => match self.next_record()? {
                None => self.begin(),
                found => Ok(found),
            },
            Phase::Failed(ReceiveError::Torn(_)) => {
                self.phase = Phase::Failed(ReceiveError::Gone);
                Err(ReceiveError::Gone)
            }
            Phase::Failed(error) => Err(*error),
        }
    }

    /// Looks for the header at the next start, and goes on to what it begins.
    fn begin(&mut self) -> Result<Option<Delivery>, ReceiveError> {
        // Void messages and empty batches are skipped here rather than by calling ourselves, and in one poll hardly
        // more than a window of them, so that a sender of nothing else cannot keep the caller here. A dead sender has
        // left a window of them at most, so its end is always found.
        let last = self.next_start + self.mask + 1;
        while self.next_start <= last {
            let line = self.line(0);
            let (arrived, header) = self.test.arrived_head(&mut self.port, line);
            if arrived & 1 == 0 {
                return self.idle();
            }
            let position = Position(self.next_start);
            let header = match Header::decode(header, self.lines(), self.epoch) {
                Ok(header) => header,
                Err(error) => return Err(self.poison(ReceiveError::Header { position, error })),
            };
            let found = self.scan(header, 0)?;
            if found.is_some() || self.is_long {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Looks for the rest of a message whose header is known. Gives nothing in [`Phase::Arriving`] when it is not
    /// complete, and nothing in [`Phase::Start`] when it was skipped.
    fn scan(&mut self, header: Header, mut arrived_lines: u32) -> Result<Option<Delivery>, ReceiveError> {
        let lines = header.lines();
        // The last line first, for the reason that `has_rest` gives; how far the message has come is not lost by it.
        if arrived_lines < lines && self.look(lines - 1) != 0xff {
            self.enter(Phase::Arriving { header, arrived_lines });
            return self.idle();
        }
        while arrived_lines < lines {
            if self.look(arrived_lines) != 0xff {
                self.enter(Phase::Arriving { header, arrived_lines });
                return self.idle();
            }
            self.prefetch(self.next_start + u64::from(arrived_lines));
            arrived_lines += 1;
        }
        if header.kind == Kind::Void {
            self.free(lines);
            return Ok(None);
        }
        if header.escape_last != 0 {
            self.find_escapes(header.escape_last)?;
        }
        if header.kind == Kind::Batch {
            self.enter(Phase::Batch { lines, cursor: Cursor::new(header.length_bytes) });
            return self.next_record();
        }
        self.enter(Phase::Delivered { header });
        Ok(Some(Delivery::message(header.length_bytes)))
    }

    /// The next record of the batch in hand; after the last one the batch is freed.
    fn next_record(&mut self) -> Result<Option<Delivery>, ReceiveError> {
        let Phase::Batch { lines, mut cursor } = self.phase.clone() else { return Ok(None) };
        match cursor.next(|payload_word| self.message_word(1 + payload_word)) {
            Ok(Some(record)) => {
                self.phase = Phase::Batch { lines, cursor };
                Ok(Some(Delivery::record(record)))
            }
            Ok(None) => {
                self.free(lines);
                Ok(None)
            }
            Err(error) => {
                Err(self.poison(ReceiveError::Batch { position: Position(self.next_start), error }))
            }
        }
    }

    /// Follows the chain of escapes once and marks the words it goes through.
    #[cold]
    #[inline(never)]
    pub(crate) fn find_escapes(&mut self, escape_last: u32) -> Result<(), ReceiveError> {
        let position = Position(self.next_start);
        if self.test.blank().is_none() {
            return Err(self.poison(ReceiveError::UnexpectedEscape { position, index: escape_last }));
        }
        self.has_escapes = true;
        self.mark_escapes(escape_last).map_err(|error| self.poison(ReceiveError::Escape { position, error }))
    }

    /// Marks the words that a chain of the message at the next start goes through.
    pub(crate) fn mark_escapes(&mut self, escape_last: u32) -> Result<(), EscapeError> {
        let (start, mask) = (self.next_start, self.mask);
        let place = |index: u32| {
            let line = (start + u64::from(index) / WORDS_PER_LINE as u64) & mask;
            (line as u32, index % WORDS_PER_LINE as u32)
        };
        let (port, escaped) = (&mut self.port, &mut self.escaped);
        let load = |index| {
            let (line, slot) = place(index);
            port.load_word(line, slot)
        };
        let mark = |index| {
            let (line, slot) = place(index);
            escaped[line as usize] |= 1 << slot;
        };
        escape::walk(escape_last, load, mark).map(|_| ())
    }

    /// Nothing to deliver: what is held back for the sender is pushed.
    fn idle(&mut self) -> Result<Option<Delivery>, ReceiveError> {
        self.push_credits();
        if self.sender_gone {
            return Err(self.end());
        }
        Ok(None)
    }

    /// The sender is gone and the message at the next start incomplete.
    #[cold]
    fn end(&mut self) -> ReceiveError {
        let words_seen = (0..=self.mask)
            .map(|ahead| {
                let line = self.line(ahead as u32);
                u64::from(self.test.touched(&mut self.port, line).count_ones())
            })
            .sum();
        let words_expected = match &self.phase {
            Phase::Arriving { header, .. } => Some(words_of(header.length_bytes)),
            _ => None,
        };
        let torn = Torn::new(Position(self.next_start), words_seen, words_expected);
        self.poison(if words_seen == 0 { ReceiveError::Gone } else { ReceiveError::Torn(torn) })
    }

    /// The caller is done with what was delivered on the long way.
    #[inline(never)]
    pub(crate) fn release_long(&mut self) {
        match &self.phase {
            Phase::Delivered { header } => self.free(header.lines()),
            Phase::Batch { lines, cursor } if cursor.is_done() => self.free(*lines),
            _ => {}
        }
    }

    /// Makes the message of `lines` lines at the next start free and moves the next start past it.
    pub(crate) fn free(&mut self, lines: u32) {
        if self.has_escapes {
            self.forget_escapes(lines);
        }
        self.enter(Phase::Start);
        self.release_lines(lines);
    }

    #[cold]
    fn forget_escapes(&mut self, lines: u32) {
        self.unmark_escapes(lines);
        self.has_escapes = false;
    }

    /// Takes the marks from `lines` lines from the next start on.
    #[cold]
    pub(crate) fn unmark_escapes(&mut self, lines: u32) {
        for ahead in 0..lines {
            let line = self.line(ahead);
            self.escaped[line as usize] = 0;
        }
    }
}
