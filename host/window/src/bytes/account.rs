//! Which bytes of a stream the receiver has released, by the lines that it has freed.

use alloc::boxed::Box;
use alloc::vec;

use beeline_spec::header::lines_of;
use beeline_spec::{LINE_BYTES, WORD_BYTES};

/// The messages of a stream that are not wholly freed, and the bytes before them.
#[derive(Debug)]
pub(super) struct Account {
    /// For a message that starts at line `i` of the window: its payload bytes. 4 bytes a line.
    lengths: Box<[u32]>,
    mask: u64,
    /// Bytes of every message sent.
    sent_bytes: u64,
    /// Start of the first message that is not wholly freed.
    start: u64,
    /// Bytes of the messages before it.
    start_bytes: u64,
    /// Its own bytes, if its first line is free: another message may start there now.
    partly_freed: Option<u32>,
    /// Every line before this position is free, as last seen.
    freed: u64,
}

impl Account {
    /// For a window of `lines` lines whose next message is at `position`.
    pub(super) fn new(lines: u32, position: u64) -> Self {
        Account {
            lengths: vec![0; lines as usize].into_boxed_slice(),
            mask: u64::from(lines) - 1,
            sent_bytes: 0,
            start: position,
            start_bytes: 0,
            partly_freed: None,
            freed: 0,
        }
    }

    /// A message of so many bytes was sent at `position`, in lines that were free. Counts the messages whose lengths stood at its lines
    /// first, so that a lap's are counted one by one and not in one call.
    #[inline]
    pub(super) fn sent(&mut self, position: u64, bytes: u32) {
        let end = position + u64::from(lines_of(bytes));
        self.count_to(end.saturating_sub(self.mask + 1));
        self.lengths[(position & self.mask) as usize] = bytes;
        self.sent_bytes += u64::from(bytes);
    }

    /// Every line before `freed`, which is at most the position of the next message, is free. To be called before one of those
    /// lines is stored again.
    pub(super) fn freed(&mut self, freed: u64) {
        self.freed = freed;
    }

    /// Counts the messages that start before `limit` and are wholly freed.
    #[inline]
    fn count_to(&mut self, limit: u64) {
        while self.start < limit {
            let known = self.partly_freed.take();
            let bytes = known.unwrap_or_else(|| self.lengths[(self.start & self.mask) as usize]);
            let end = self.start + u64::from(lines_of(bytes));
            if end > self.freed {
                self.partly_freed = Some(bytes);
                break;
            }
            self.start = end;
            self.start_bytes += u64::from(bytes);
        }
    }

    /// Bytes sent and in lines that are not free. Costs a load for each message freed since the last call, a lap's at most.
    pub(super) fn unacknowledged_bytes(&mut self) -> u64 {
        self.count_to(self.freed);
        let lines = self.freed.saturating_sub(self.start);
        let partly = if lines == 0 { 0 } else { lines * LINE_BYTES as u64 - WORD_BYTES as u64 };
        self.sent_bytes - self.start_bytes - partly
    }
}
