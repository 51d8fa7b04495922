//! The words of one direction of a connection: those that its sender publishes, and those that its receiver does.

/// Words of the sender: the ledger.
pub const SENDER_WORDS: u32 = SLOTS * SLOT_WORDS;
/// Words of the receiver, in two lines.
pub const RECEIVER_WORDS: u32 = 16;

/// Entries that fit. A path goes up only once the receiver has passed all entries, so at most three are on the way: up, down, and where
/// the stream is resumed.
pub(crate) const SLOTS: u32 = 4;
pub(crate) const MOST_ON_THE_WAY: usize = 3;
const SLOT_WORDS: u32 = 4;

/// Receiver: whether it reads by the ledger, whether it reads at all, and how many entries it has passed.
pub(crate) const STANDING: u32 = 0;
/// Receiver: 0, or one more than the bytes that it has of a stream whose window is lost.
pub(crate) const LOST_AT: u32 = 1;
/// Receiver: how many bytes of the stream its program has. It changes with each read, and a sender looks at the other two with each write:
/// it is in a line of its own.
pub(crate) const CURSOR: u32 = 8;

pub(crate) const READY: u64 = 1 << 63;
pub(crate) const GONE: u64 = 1 << 62;
/// It looks for an entry for the last time.
pub(crate) const STOPPING: u64 = 1 << 61;
/// It has found none: it reads the socket as any program does.
pub(crate) const STOPPED: u64 = 1 << 60;
pub(crate) const PASSED: u64 = STOPPED - 1;

/// The word of an entry that says which it is. It is published last of the three.
pub(crate) fn head(index: u64) -> u32 {
    (index % u64::from(SLOTS)) as u32 * SLOT_WORDS
}

/// The word of the stream's offset.
pub(crate) fn offset(index: u64) -> u32 {
    head(index) + 1
}

/// The word of the count of bytes that the socket had been given.
pub(crate) fn given(index: u64) -> u32 {
    head(index) + 2
}
