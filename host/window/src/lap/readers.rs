//! The sender's account of free lines, where several receivers must have seen a line before it is stored again.
//!
//! Each receiver pushes an absolute count of its own into memory local to the sender, and the slowest of them decides. No
//! count is trusted: one that runs backwards or ahead of what was sent closes the account until its receiver is removed, so
//! that no store over a line that another receiver still reads can follow from it. Counts are looked at only when those known
//! allow no more, so in a stream their cache lines move once in many messages.

use alloc::vec::Vec;

use beeline_contract_memory::CreditSource;

use super::error::LapSendError;
use super::reader_id::ReaderId;

#[derive(Debug)]
struct Reader<C> {
    id: ReaderId,
    source: C,
    /// Position at which it joined: its counts begin there.
    base: u64,
    /// Last believed count.
    freed: u64,
    failed: Option<LapSendError>,
}

impl<C: CreditSource> Reader<C> {
    /// Looks at the count that was pushed; `next` is the first position not yet sent.
    fn look(&mut self, next: u64) -> Result<(), LapSendError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let (found, sent, reader) = (self.source.freed_lines(), next - self.base, self.id);
        let error = if found < self.freed {
            LapSendError::Backwards { reader, found, before: self.freed }
        } else if found > sent {
            LapSendError::Ahead { reader, found, sent }
        } else {
            self.freed = found;
            return Ok(());
        };
        self.failed = Some(error);
        Err(error)
    }

    /// First position that it has not freed, as far as is known without looking.
    fn position(&self) -> u64 {
        self.base + self.freed
    }
}

#[derive(Debug)]
pub(crate) struct Readers<C> {
    readers: Vec<Reader<C>>,
    /// First position not yet sent.
    next: u64,
    /// First position that may not be stored into; equal to `next` while nobody receives or one is not to be believed.
    limit: u64,
    window_lines: u64,
    joined: u64,
}

impl<C: CreditSource> Readers<C> {
    /// Nobody has joined.
    pub(crate) fn new(window_lines: u32) -> Self {
        let window_lines = u64::from(window_lines);
        Readers { readers: Vec::new(), next: 0, limit: 0, window_lines, joined: 0 }
    }

    /// First position not yet sent.
    #[inline(always)]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether `lines` more may be stored, as far as is known without looking.
    #[inline(always)]
    pub(crate) fn has(&self, lines: u32) -> bool {
        self.next + u64::from(lines) <= self.limit
    }

    /// Lines that may be stored, as far as is known without looking.
    pub(crate) fn known_free(&self) -> u32 {
        (self.limit - self.next) as u32
    }

    /// Looks at every receiver's count; then as [`Readers::has`].
    #[cold]
    pub(crate) fn refresh(&mut self, lines: u32) -> Result<bool, LapSendError> {
        if self.readers.is_empty() {
            return Err(LapSendError::NoReader);
        }
        let next = self.next;
        let mut looked = Ok(());
        for reader in &mut self.readers {
            looked = looked.and(reader.look(next));
        }
        self.set_limit();
        looked.map(|()| self.has(lines))
    }

    /// Counts `lines` as sent.
    #[inline(always)]
    pub(crate) fn spend(&mut self, lines: u32) {
        self.next += u64::from(lines);
    }

    /// Takes in a receiver that begins at the next position.
    pub(crate) fn join(&mut self, source: C) -> ReaderId {
        let id = ReaderId::new(self.joined);
        self.joined += 1;
        self.readers.push(Reader { id, source, base: self.next, freed: 0, failed: None });
        self.set_limit();
        id
    }

    /// Lets a receiver go: what it has not freed does not count any more.
    pub(crate) fn remove(&mut self, id: ReaderId) -> Option<C> {
        let index = self.readers.iter().position(|reader| reader.id == id)?;
        let reader = self.readers.swap_remove(index);
        self.set_limit();
        Some(reader.source)
    }

    /// The receiver that has freed least, and up to where, as far as is known without looking.
    pub(crate) fn slowest(&self) -> Option<(ReaderId, u64)> {
        let slowest = self.readers.iter().min_by_key(|reader| reader.position())?;
        Some((slowest.id, slowest.position()))
    }

    fn set_limit(&mut self) {
        let is_closed = self.readers.iter().any(|reader| reader.failed.is_some());
        self.limit = match self.slowest() {
            Some((_, position)) if !is_closed => position + self.window_lines,
            _ => self.next,
        };
    }
}
