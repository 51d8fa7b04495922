//! The segment of an end of a message queue: words that say what it is, a word of credits, a window.
//!
//! ```text
//! byte  0  format            8  lines of the window     16  number of this end     24  number of its peer, 0 before it has one
//!      32  blank            40  longest message         64  credits: lines that the peer has freed of its own window
//!     128  the window, which the peer sends into
//! ```

use beeline_fabric::Refusal;
use beeline_mmio::{Region, StoreKernel, Word};
use beeline_spec::escape::{blank_from_random, is_blank_value};
use beeline_window::{Receiver, WindowConfig, Writer};

use crate::credits::{Credits, Inlet, Sender, push_out};

const FORMAT: u64 = 0x0bee_f002 << 32 | 1;
const FORMAT_AT: usize = 0;
const LINES_AT: usize = 8;
const NUMBER_AT: usize = 16;
const PEER_AT: usize = 24;
const BLANK_AT: usize = 32;
const LONGEST_AT: usize = 40;
const CREDITS_AT: usize = 64;
const WINDOW_AT: usize = 128;

const LINE_BYTES: u64 = 64;
/// What a message has beside its payload.
const HEADER_BYTES: u64 = 8;
/// Lines of the largest window: 1 GiB.
const MOST_LINES: u64 = 1 << 24;

/// How large a window is, and what goes through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) lines: u32,
    pub(crate) max_message_bytes: u32,
}

impl Room {
    /// That of a window which takes so many of the longest messages.
    pub(crate) fn of(max_messages: u32, max_message_bytes: u32) -> Result<Self, Refusal> {
        if max_messages == 0 || max_message_bytes == 0 {
            return Err(Refusal::IllegalParameter);
        }
        let of_one = (u64::from(max_message_bytes) + HEADER_BYTES).div_ceil(LINE_BYTES);
        let lines = of_one.checked_mul(max_messages.into()).filter(|lines| *lines <= MOST_LINES);
        // Two at least: what is freed is another line than what is sent.
        let lines = lines.ok_or(Refusal::Nospc)?.next_power_of_two().max(2) as u32;
        Ok(Room { lines, max_message_bytes })
    }

    pub(crate) fn bytes(&self) -> u64 {
        LINE_BYTES * u64::from(self.lines)
    }

    /// The window and the words before it.
    pub(crate) fn segment_bytes(&self) -> u64 {
        WINDOW_AT as u64 + self.bytes()
    }
}

/// What an end says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) room: Room,
    /// A random number, another one each time that an end makes its segment.
    pub(crate) number: u64,
    blank: u64,
}

/// The words of a segment whose first byte is at `start`, a multiple of 64, of a mapping.
#[derive(Debug)]
pub(crate) struct Words {
    region: Region,
    start: usize,
}

impl Words {
    pub(crate) fn new(region: Region, start: usize) -> Self {
        Words { region, start }
    }

    pub(crate) fn is_device(&self) -> bool {
        self.region.is_device()
    }

    fn word(&self, at: usize) -> Word {
        self.region.word(self.start + at)
    }

    fn credits(&self) -> Credits {
        Credits::new(&self.region, self.start + CREDITS_AT)
    }

    /// Makes the segment one of an end without a peer. Nobody else has it yet.
    pub(crate) fn begin(&self, room: Room, random: [u64; 2]) -> Header {
        let [number, blank] = [random[0] | 1, blank_from_random(random[1])];
        let words = [
            (FORMAT_AT, FORMAT),
            (LINES_AT, room.lines.into()),
            (NUMBER_AT, number),
            (PEER_AT, 0),
            (BLANK_AT, blank),
            (LONGEST_AT, room.max_message_bytes.into()),
            (CREDITS_AT, 0),
        ];
        words.into_iter().for_each(|(at, value)| self.word(at).store(value));
        self.region.fill(self.start + WINDOW_AT, room.bytes() as usize, blank);
        Header { room, number, blank }
    }

    /// What the segment of another end says, of which `bytes` are mapped; `None` if it is no queue. Each word is read once.
    pub(crate) fn read(&self, bytes: u64) -> Option<Header> {
        if bytes < WINDOW_AT as u64 || self.word(FORMAT_AT).load() != FORMAT {
            return None;
        }
        let lines = self.word(LINES_AT).load();
        let longest = self.word(LONGEST_AT).load();
        let (number, blank) = (self.word(NUMBER_AT).load(), self.word(BLANK_AT).load());
        let is_window = (2..=MOST_LINES).contains(&lines) && lines.is_power_of_two();
        let room =
            Room { lines: lines as u32, max_message_bytes: u32::try_from(longest).unwrap_or(u32::MAX) };
        let is_one = is_window && room.segment_bytes() <= bytes && number != 0 && is_blank_value(blank);
        is_one.then_some(Header { room, number, blank })
    }

    /// The number of the peer of the end whose segment this is. What that end stored before is visible then.
    pub(crate) fn peer(&self) -> u64 {
        // Acquire: pairs with `take_peer`.
        self.word(PEER_AT).load_acquire()
    }

    /// Says of this end's own segment who its peer is, once.
    pub(crate) fn take_peer(&self, number: u64) {
        // Release: pairs with `peer`.
        self.word(PEER_AT).store_release(number);
        if self.is_device() {
            push_out();
        }
    }

    /// The end that sends into this segment, which is the other end's. Its credits come into `own`.
    pub(crate) fn sender(&self, header: &Header, own: &Words) -> Sender {
        let window = self.region.store_window(self.start + WINDOW_AT, header.room.lines, StoreKernel::Cached);
        Writer::new(window, own.credits(), header.window())
    }

    /// The end that receives from this segment, which is its own. Its credits go into `other`.
    pub(crate) fn inlet(&self, header: &Header, other: &Words) -> Inlet {
        let window = self.region.load_window(self.start + WINDOW_AT, header.room.lines);
        let lines = window.for_sender(StoreKernel::Cached);
        Receiver::new(lines, other.credits(), header.window())
    }
}

impl Header {
    /// What both ends of the window know.
    fn window(&self) -> WindowConfig {
        let [_, epoch, ..] = self.number.to_le_bytes();
        WindowConfig::blank(self.blank, epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        Words::new(Region::private(4096), 64)
    }

    #[test]
    fn window_takes_as_many_of_the_longest_messages_as_was_said() {
        assert_eq!(Room::of(0, 8), Err(Refusal::IllegalParameter));
        assert_eq!(Room::of(8, 0), Err(Refusal::IllegalParameter));
        assert_eq!(Room::of(1 << 24, 57), Err(Refusal::Nospc));
        assert_eq!(Room::of(u32::MAX, u32::MAX), Err(Refusal::Nospc));
        let lines = |messages, bytes| Room::of(messages, bytes).unwrap().lines;
        assert_eq!([lines(1, 1), lines(16, 56), lines(16, 57), lines(17, 56)], [2, 16, 32, 32]);
        assert_eq!(Room::of(16, 56).unwrap().segment_bytes(), 128 + 16 * 64);
    }

    #[test]
    fn header_comes_back_and_what_is_none_is_refused() {
        let (words, room) = (words(), Room::of(4, 100).unwrap());
        assert_eq!(words.read(4096), None);
        let header = words.begin(room, [8, 7]);
        assert_eq!(words.read(room.segment_bytes()), Some(header));
        assert_eq!(header.number, 9);
        assert_eq!(words.read(room.segment_bytes() - 1), None);
        assert_eq!(words.read(127), None);
        for (at, wrong) in [
            (FORMAT_AT, 1),
            (LINES_AT, 3),
            (LINES_AT, 1),
            (LINES_AT, 1 << 32 | 8),
            (NUMBER_AT, 0),
            (BLANK_AT, 7),
        ] {
            let right = words.word(at).load();
            words.word(at).store(wrong);
            assert_eq!(words.read(4096), None, "{wrong:#x} at {at}");
            words.word(at).store(right);
        }
        assert_eq!(words.read(4096), Some(header));
    }
}
