//! Pipes: frames back to back in host memory, and the notifications that tell how far one is filled (`enso`).
//!
//! A frame starts on a line with a header word that names its length; nothing else stands between frames. How far a
//! pipe is filled is told apart from it: by the tail doorbell to the device, by a notification to the host. So the
//! header need not come last, and a frame goes in one write.
//!
//! Source: Sadok et al., OSDI'23 (Ensō), whose NIC finds a packet's length in its IP header; frames that are not IP
//! have none, so here the length stands in front.

use crate::formats::{pipe_header as h, rx_notification as n};
use crate::{LINE_BYTES, WORD_BYTES};

/// Lines a frame takes in a pipe, its header included.
#[inline]
pub const fn lines_of(frame_bytes: u32) -> u32 {
    (WORD_BYTES as u32 + frame_bytes).div_ceil(LINE_BYTES as u32)
}

/// Encodes the header word of a frame in a pipe.
#[inline]
pub const fn header(frame_bytes: u16) -> u64 {
    (frame_bytes as u64) << h::LENGTH_BYTES_LSB
}

/// The length that a header names; `None` when a reserved bit is set or it names no byte.
#[inline]
pub const fn frame_bytes(header: u64) -> Option<u16> {
    let bytes = (header >> h::LENGTH_BYTES_LSB & h::LENGTH_BYTES_MASK) as u16;
    if header >> h::RESERVED_LSB != 0 || bytes == 0 { None } else { Some(bytes) }
}

/// A decoded notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Lines of the pipe written since the queue was enabled, modulo 2^32.
    pub tail_lines: u32,
    /// The queue whose pipe it is.
    pub queue: u16,
    /// Epoch of the queue, where its pipe shares the ring of another; 0 otherwise.
    pub epoch: u8,
}

/// What notification number `index` (from 0 on) of a ring of `entries` has as its lap bit.
#[inline]
const fn lap(index: u64, entries: u32) -> u64 {
    (index / entries as u64 + 1) & 1
}

impl Notification {
    /// The word of notification number `index` of a ring of `entries`.
    #[inline]
    pub const fn encode(self, index: u64, entries: u32) -> u64 {
        (self.tail_lines as u64) << n::TAIL_LINES_LSB
            | (self.queue as u64) << n::QUEUE_ID_LSB
            | lap(index, entries) << n::LAP_LSB
            | (self.epoch as u64) << n::EPOCH_LSB
    }

    /// Reads the word where notification number `index` of a ring of `entries` goes; `None` while it is not there.
    #[inline]
    pub const fn decode(word: u64, index: u64, entries: u32) -> Option<Self> {
        let is_new = word >> n::LAP_LSB & n::LAP_MASK == lap(index, entries);
        if !is_new || word >> n::RESERVED_LSB != 0 {
            return None;
        }
        let tail_lines = (word >> n::TAIL_LINES_LSB & n::TAIL_LINES_MASK) as u32;
        let queue = (word >> n::QUEUE_ID_LSB & n::QUEUE_ID_MASK) as u16;
        Some(Notification { tail_lines, queue, epoch: (word >> n::EPOCH_LSB & n::EPOCH_MASK) as u8 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_56_bytes_of_a_frame() {
        assert_eq!([1, 56, 57, 120, 121].map(lines_of), [1, 1, 2, 2, 3]);
    }

    #[test]
    fn a_header_names_a_length_and_nothing_else() {
        assert_eq!(frame_bytes(header(9216)), Some(9216));
        assert_eq!(frame_bytes(header(0)), None);
        assert_eq!(frame_bytes(header(64) | 1 << 16), None);
        assert_eq!(frame_bytes(header(64) | 1 << 63), None);
    }

    #[test]
    fn a_notification_is_new_once_in_each_lap() {
        let zeroed = 0;
        let notification = Notification { tail_lines: u32::MAX, queue: 7, epoch: 0xa5 };
        for index in 0..8 {
            assert_eq!(Notification::decode(zeroed, index, 4).is_some(), index >= 4, "{index}");
            let word = notification.encode(index, 4);
            assert_eq!(Notification::decode(word, index, 4), Some(notification));
            assert_eq!(Notification::decode(word, index + 4, 4), None, "what the last lap left is old");
        }
        assert_eq!(Notification::decode(notification.encode(0, 4) | 1 << 57, 0, 4), None);
    }
}
