//! A yard: the windows of one pair for the messages of data interrupts.
//!
//! A member that triggers makes it and has it alone with the member of the interrupts, so that it spoils nobody's messages but its own. Each
//! entry of that member's board has a window in it and a word of credits; what is not used takes no memory. The window is blank before the
//! count is raised that says so ([`beeline_fabric::has_begun`]), and anew for each incarnation of the entry.

use std::os::fd::OwnedFd;

use beeline_fabric::{MemberNumber, Place, Slot};
use beeline_fabric_transfer::Credits;
pub(crate) use beeline_fabric_transfer::{Inlet, Sender};
use beeline_mmio::{MapError, MemoryOptions, Region, SharedMemory, StoreKernel};
use beeline_spec::escape::blank_from_random;
use beeline_window::{Receiver, WindowConfig, Writer};

use crate::bell::map_for_itself;
use crate::words::WordsError;

/// Lines of a window: three of the longest messages, or this many of up to 56 bytes.
const LINES: u32 = 128;
const LINE_BYTES: usize = 64;
/// The window, then the line of its credits.
const WINDOW_BYTES: usize = LINES as usize * LINE_BYTES;
const STRIDE_BYTES: usize = WINDOW_BYTES + LINE_BYTES;
/// Bytes of a memory with a window for each entry. A limit on the size of files makes it smaller: then the last entries have none.
const MOST_BYTES: usize = STRIDE_BYTES << 16;

/// What a pair's messages go through, mapped.
#[derive(Clone, Debug)]
pub(crate) struct Yard(Region);

impl Yard {
    /// A yard, and what the other member maps of it.
    pub(crate) fn create() -> Result<(Self, SharedMemory), WordsError> {
        let create = |bytes| SharedMemory::create("beeline-yard", bytes, MemoryOptions::default());
        let memory = match create(MOST_BYTES) {
            Err(MapError::FileSize { limit_bytes, .. }) => create(limit_bytes as usize)?,
            created => created?,
        };
        Ok((Yard(map_for_itself(&memory)?), memory))
    }

    /// One of so many bytes that a member which triggers has passed.
    pub(crate) fn of(fd: OwnedFd, bytes: u64) -> Result<Self, WordsError> {
        // More than that is nobody's yard.
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(MOST_BYTES);
        Ok(Yard(map_for_itself(&SharedMemory::from_fd(fd, bytes)?)?))
    }

    /// Whether it has a window for an entry.
    pub(crate) fn has(&self, slot: Slot) -> bool {
        start_of(slot) + STRIDE_BYTES <= self.0.bytes()
    }

    /// The end of who triggers an interrupt of a member, whose entry has a window. That is made blank, so the other end begins after this.
    pub(crate) fn sender(&self, owner: MemberNumber, place: Place) -> Sender {
        let (start, config) = (start_of(place.slot), config(owner, place));
        self.0.fill(start, WINDOW_BYTES, config.blank);
        self.0.word(start + WINDOW_BYTES).store(0);
        Writer::new(self.0.store_window(start, LINES, StoreKernel::Cached), self.credits(place.slot), config)
    }

    /// The end of the interrupt's member, for an entry that has a window.
    pub(crate) fn inlet(&self, owner: MemberNumber, place: Place) -> Inlet {
        let lines = self.0.load_window(start_of(place.slot), LINES).for_sender(StoreKernel::Cached);
        Receiver::new(lines, self.credits(place.slot), config(owner, place))
    }

    fn credits(&self, slot: Slot) -> Credits {
        Credits::new(&self.0, start_of(slot) + WINDOW_BYTES)
    }
}

/// Where the window of an entry begins.
fn start_of(slot: Slot) -> usize {
    usize::from(slot.0) * STRIDE_BYTES
}

/// What both ends know: random numbers of members make a random blank, another for each incarnation.
fn config(owner: MemberNumber, place: Place) -> WindowConfig {
    let entry = u64::from(place.incarnation) << 16 | u64::from(place.slot.0);
    let random = (owner.0 ^ entry).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let [epoch, ..] = place.incarnation.to_le_bytes();
    WindowConfig::blank(blank_from_random(random ^ random >> 32), epoch)
}

#[cfg(test)]
mod tests {
    use beeline_fabric::MAX_MESSAGE_BYTES;
    use beeline_window::Sent;

    use super::*;

    const OWNER: MemberNumber = MemberNumber(0x1234_5678_9abc_def0);

    fn place(slot: u16, incarnation: u32) -> Place {
        Place { slot: Slot(slot), incarnation }
    }

    #[test]
    fn messages_of_every_size_come_whole_and_a_full_window_takes_no_more() {
        let (own, memory) = Yard::create().unwrap();
        let bytes = memory.bytes() as u64;
        let theirs = Yard::of(memory.into_fd(), bytes).unwrap();
        for slot in [0, 1, u16::MAX] {
            let (mut sender, mut inlet) =
                (own.sender(OWNER, place(slot, 3)), theirs.inlet(OWNER, place(slot, 3)));
            for bytes in [0, 1, 56, 57, MAX_MESSAGE_BYTES] {
                let message: Vec<u8> = (0..bytes).map(|byte| byte as u8).collect();
                assert_eq!(sender.try_send(&message), Ok(Sent::Sent));
                let mut into = vec![0; bytes];
                assert_eq!(inlet.poll().unwrap().unwrap().copy_out(&mut into), bytes);
                assert_eq!(into, message);
                inlet.push_credits();
            }
            let sent = (0..9).take_while(|_| sender.try_send(&[1; MAX_MESSAGE_BYTES]) == Ok(Sent::Sent));
            assert_eq!(sent.count(), 3);
        }
    }

    #[test]
    fn entries_beyond_a_yard_that_is_smaller_have_no_window() {
        let memory =
            || SharedMemory::create("beeline-test", 2 * STRIDE_BYTES + 4096, MemoryOptions::default());
        let yard = Yard::of(memory().unwrap().into_fd(), 2 * STRIDE_BYTES as u64 + 4096).unwrap();
        assert!(yard.has(Slot(0)) && yard.has(Slot(1)) && !yard.has(Slot(2)));
        for bytes in [0, STRIDE_BYTES as u64, u64::MAX] {
            assert!(Yard::of(memory().unwrap().into_fd(), bytes).is_err(), "{bytes}");
        }
    }

    #[test]
    fn next_incarnation_of_an_entry_begins_with_a_blank_window_and_another_blank() {
        let (yard, _memory) = Yard::create().unwrap();
        assert_eq!(yard.sender(OWNER, place(5, 1)).try_send(b"old"), Ok(Sent::Sent));
        let mut sender = yard.sender(OWNER, place(5, 2));
        let mut inlet = yard.inlet(OWNER, place(5, 2));
        assert!(inlet.poll().unwrap().is_none());
        assert_eq!(sender.try_send(b"new"), Ok(Sent::Sent));
        assert_eq!(inlet.poll().unwrap().unwrap().len(), 3);
        let blanks = [place(5, 1), place(5, 2), place(6, 1)].map(|place| config(OWNER, place).blank);
        assert!(blanks[0] != blanks[1] && blanks[1] != blanks[2] && blanks[0] != blanks[2]);
    }
}
