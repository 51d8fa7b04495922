//! The device's side of every way to receive: where a frame goes, and the words that tell the host of it.
//!
//! Each does what a sound device does, in room that the host has told it of, except that every word which says something
//! passes through a [`Lie`] on its way. Nothing here trusts the host's counts to be sane: after a lie they are not.

mod buffers;
mod entries;
mod lines;
mod pipe;
mod ring;

pub use buffers::BufferFiller;
pub use entries::EntryFiller;
pub use lines::LineFiller;
pub use pipe::{NotifyFiller, Pipe, PipeFiller};
pub use ring::RingFiller;

use crate::opened::{Words, padded_words};
use crate::scripted::Scripted;

/// Longest frame a receive buffer of these queues holds.
pub const MAX_FRAME_BYTES: usize = 1536;
/// Lines of each window, of the receive ring and of the pipe.
pub const LINES: u32 = 64;
/// Buffers that are lent by descriptors.
pub const BUFFERS: u32 = 8;
/// Notifications of a pipe's ring.
pub const NOTIFICATIONS: u32 = 4;
/// Entries of coherent lines, and their buffers.
pub const LINE_ENTRIES: u32 = 4;
/// Buffers beside them.
pub const LINE_BUFFERS: u32 = 2;

/// What a word says that is written for the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// A frame is there.
    There,
    /// How long it is, or where it lies, once another word has said that it is there.
    Which,
}

/// What becomes of a word that says something.
pub type Lie<'a> = &'a mut dyn FnMut(Says, u64) -> u64;

/// Tells the truth.
pub fn truth(_says: Says, word: u64) -> u64 {
    word
}

/// The device's side of one way to receive.
pub trait Filler {
    /// Puts a frame where the next one belongs; `false` when the host lends no room.
    fn put(&mut self, link: &Scripted, frame: &[u8], lie: Lie<'_>) -> bool;

    /// Does what the device does without a frame: looks at what came back, tells what it could not tell before.
    fn progress(&mut self, _link: &Scripted) {}

    /// Frames that the host can find so far.
    fn announced(&self) -> u64;

    /// The doorbell by which the host frees, and what a frame of so many bytes takes.
    fn frees(&self, _frame_bytes: usize) -> Option<(u32, u64)> {
        None
    }

    /// The queue has a new life.
    fn restart(&mut self, epoch: u8);
}

/// Writes bytes at a word of a part of memory that begins at word `base` and wraps after `wrap` words.
fn write(words: &Words, (base, at, wrap): (usize, usize, usize), bytes: &[u8]) {
    let mut words = words.borrow_mut();
    for (index, word) in padded_words(bytes).into_iter().enumerate() {
        words[base + (at + index) % wrap] = word;
    }
}
