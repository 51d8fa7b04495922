//! How far a message is that is built piece by piece.

use beeline_spec::{LINE_BYTES, WORD_BYTES};

/// State of the open message. It lives in the writer, so that a reservation that was forgotten can still be ended.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) open: bool,
    pub(crate) capacity_bytes: u32,
    pub(crate) written_bytes: u32,
    /// Lines stored. The first one is stored without its header word.
    pub(crate) stored_lines: u32,
    pub(crate) escape_last: u32,
    /// The line not yet stored, as bytes of the message; those past what was written are zero.
    pub(crate) staged: [u8; LINE_BYTES],
}

impl Default for Stream {
    fn default() -> Self {
        Stream {
            open: false,
            capacity_bytes: 0,
            written_bytes: 0,
            stored_lines: 0,
            escape_last: 0,
            staged: [0; LINE_BYTES],
        }
    }
}

impl Stream {
    /// Bytes of the staged line that are taken, header word included: 0 to 64. A full line stays staged until more
    /// comes, so that a message of one line is stored by one line store.
    #[inline]
    pub(crate) fn staged_bytes(&self) -> usize {
        WORD_BYTES + self.written_bytes as usize - self.stored_lines as usize * LINE_BYTES
    }

    #[inline]
    pub(crate) fn written_bytes(&self) -> u32 {
        self.written_bytes
    }

    #[inline]
    pub(crate) fn left_bytes(&self) -> u32 {
        self.capacity_bytes - self.written_bytes
    }
}
