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

    /// A message of so many bytes was sent at `position`.
    #[inline]
    pub(super) fn sent(&mut self, position: u64, bytes: u32) {
        self.lengths[(position & self.mask) as usize] = bytes;
        self.sent_bytes += u64::from(bytes);
    }

    /// Every line before `freed`, which is at most the position of the next message, is free. To be called before one of those
    /// lines is stored again: that is where the length of its message is kept. Costs a load for each message freed since.
    pub(super) fn freed(&mut self, freed: u64) {
        self.freed = freed;
        while self.start < freed {
            let known = self.partly_freed.take();
            let bytes = known.unwrap_or_else(|| self.lengths[(self.start & self.mask) as usize]);
            let end = self.start + u64::from(lines_of(bytes));
            if end > freed {
                self.partly_freed = Some(bytes);
                break;
            }
            self.start = end;
            self.start_bytes += u64::from(bytes);
        }
    }

    /// Bytes sent and in lines that are not free.
    pub(super) fn unacknowledged_bytes(&self) -> u64 {
        let lines = self.freed.saturating_sub(self.start);
        let partly = if lines == 0 { 0 } else { lines * LINE_BYTES as u64 - WORD_BYTES as u64 };
        self.sent_bytes - self.start_bytes - partly
    }
}
