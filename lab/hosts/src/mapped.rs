//! A segment of another host, mapped: stores that cross, and sequences that say whether they have come.

use beeline_fabric::{ConnectionView, SequenceStart, SequenceStatus};
use beeline_link_sim::machine::hosts::HostId;

use crate::session::Sessions;
use crate::words::View;

/// A part of a connected segment. Stores are write-combined: they leave in any order until a barrier.
pub struct Mapped {
    pub(crate) sessions: Sessions,
    pub(crate) peer: HostId,
    pub(crate) address: u64,
    pub(crate) bytes: usize,
    pub(crate) view: ConnectionView<View>,
}

impl Mapped {
    /// Stores bytes, of which the first and the number are multiples of eight.
    ///
    /// # Panics
    /// If they are not, or lie outside of the part.
    pub fn copy_in(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.bytes, "a store outside the map");
        let (words, rest) = bytes.as_chunks::<8>();
        assert!(rest.is_empty() && offset.is_multiple_of(8), "stores are of words");
        let mut at = self.address + offset as u64;
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>().into_iter();
        while !words.as_slice().is_empty() {
            match words.as_slice().first_chunk() {
                Some(line) if at.is_multiple_of(64) => {
                    self.sessions.core.store_line(at, line);
                    words.nth(7);
                    at += 64;
                }
                _ => {
                    self.sessions.core.store_word(at, words.as_slice()[0]);
                    words.next();
                    at += 8;
                }
            }
        }
    }

    /// Stores a word, write-combined.
    ///
    /// # Panics
    /// If it is outside of the part.
    pub fn store_word(&self, offset: usize, value: u64) {
        self.copy_in(offset, &value.to_le_bytes());
    }

    /// Lets stores so far leave the core.
    pub fn flush(&self) {
        self.sessions.core.fence();
    }

    /// Begins a sequence, if both links are up and nothing that was lost is still to be pushed anew.
    pub fn start(&self) -> (SequenceStatus, Option<SequenceStart>) {
        match self.view.start() {
            (SequenceStatus::Ok, _) if !self.sessions.is_whole(self.peer) => (SequenceStatus::Pending, None),
            found => found,
        }
    }

    /// Waits until all stores so far have come, and says what happened since a sequence began.
    pub fn check(&self, start: SequenceStart) -> SequenceStatus {
        let is_confirmed = self.sessions.confirm(self.peer).is_ok();
        match self.view.check(start) {
            SequenceStatus::Ok if is_confirmed => SequenceStatus::Ok,
            SequenceStatus::Ok if self.sessions.core.is_link_up() => SequenceStatus::Retriable,
            SequenceStatus::Ok => SequenceStatus::Pending,
            found => found,
        }
    }
}
