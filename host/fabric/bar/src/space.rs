//! The mapped memory: its header, its words, and what orders stores and loads of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use beeline_contract_adapter::Unconfirmed;
use beeline_fabric::{CLAIM_WORDS, COUNT_STRIDE, ENTRY_WORDS, HEADER_WORDS};
use beeline_fabric_transfer::Credits;
use beeline_heartbeat::{MappedState, Side};
use beeline_mmio::fence::{flush_write_combining, order_all, order_stores};
use beeline_mmio::{
    LINE_BYTES, LoadWindow, MappedSegment, OnLoss, Pace, Region, SegmentOptions, StoreKernel, StoreWindow,
    Word, Words,
};

use crate::error::{NotMapped, OpenError};
use crate::layout::{ALIGN, JOINT_WORDS, JOINTS, Layout, WINDOW_LINES};
use crate::memory::{BarMemory, Source};

/// Marks a memory of this version.
const FORMAT: u64 = 0x0bee_f055 << 32 | 2;
const FORMAT_AT: usize = 0;
const BYTES_AT: usize = 8;
const COUNTS_AT: usize = 16;

/// The memory, as one member has it mapped.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) segment: MappedSegment,
    pub(crate) source: Source,
    on_loss: OnLoss,
    region: Region,
    pub(crate) layout: Layout,
    /// Nothing is stored any more.
    is_mute: AtomicBool,
    /// Whoever comes does not find the memory.
    is_lost: AtomicBool,
}

/// Words of a board or of what is used: those of one kind, and those of another behind them, each a power of two.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    head: Words,
    tail: Words,
    /// The first word of the second kind, in the numbers of the fabric.
    tail_from: u32,
}

impl Table {
    /// The words, and which of them this number is; `None` for one that the memory has not, as a peer may name one.
    #[inline]
    fn find(&self, word: u32) -> Option<(&Words, usize)> {
        let (words, at) = match word.checked_sub(self.tail_from) {
            Some(at) => (&self.tail, at),
            None => (&self.head, word),
        };
        ((at as usize) < words.count()).then_some((words, at as usize))
    }

    /// Zero for a word that is not there. Acquire: pairs with [`Space::publish`].
    #[inline]
    pub(crate) fn load(&self, word: u32) -> u64 {
        self.find(word).map_or(0, |(words, at)| words.load_acquire(at))
    }
}

impl Space {
    /// Maps the memory, and makes it one for so many members if nobody has used it yet.
    pub(crate) fn open(memory: &BarMemory, members: usize, on_loss: OnLoss) -> Result<Arc<Self>, OpenError> {
        Self::of(memory.open()?, members, on_loss)
    }

    /// As [`Space::open`], of memory that is open.
    pub(crate) fn of(source: Source, members: usize, on_loss: OnLoss) -> Result<Arc<Self>, OpenError> {
        let segment = source.map(SegmentOptions { on_loss, ..SegmentOptions::default() })?;
        let found = segment.bytes() as u64;
        // A page, so that there is a header to look at.
        let too_small = || OpenError::too_small(found, members);
        let region = segment.region().filter(|region| region.bytes() >= 4096).ok_or_else(too_small)?;
        let [format, bytes, counts] = [FORMAT_AT, BYTES_AT, COUNTS_AT].map(|at| region.word(at));
        let layout = match format.load_acquire() {
            0 => {
                let layout = Layout::new(found, members).ok_or_else(too_small)?;
                let said = [
                    (&bytes, layout.bytes),
                    (&counts, u64::from(layout.entries) << 32 | layout.members as u64),
                ];
                for (word, value) in said {
                    if region.is_device() {
                        word.store(value);
                    } else {
                        // Of two who come first only one has written it, and nobody writes it later.
                        let _or_not = word.compare_exchange(0, value);
                    }
                }
                order_stores();
                format.store_release(FORMAT);
                flush_write_combining();
                order_all();
                // Of two who come first with different numbers the later has written them in a device, perhaps only after this look: so each
                // member looks again with each beat (`shared.rs`).
                header(found, bytes.load_acquire(), counts.load_acquire())?
            }
            FORMAT => header(found, bytes.load_acquire(), counts.load_acquire())?,
            found => return Err(OpenError::NotOurs { found }),
        };
        Ok(Arc::new(Space {
            segment,
            source,
            on_loss,
            region,
            layout,
            is_mute: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
        }))
    }

    /// Maps a memory that somebody has used: nothing of it is made here.
    pub(crate) fn look(memory: &BarMemory, on_loss: OnLoss) -> Result<Self, OpenError> {
        let source = memory.open()?;
        let segment = source.map(SegmentOptions { on_loss, ..SegmentOptions::default() })?;
        let region = segment.region().filter(|region| region.bytes() >= 4096);
        let region = region.ok_or(OpenError::NotOurs { found: 0 })?;
        let [format, bytes, counts] =
            [FORMAT_AT, BYTES_AT, COUNTS_AT].map(|at| region.word(at).load_acquire());
        if format != FORMAT {
            return Err(OpenError::NotOurs { found: format });
        }
        let layout = header(segment.bytes() as u64, bytes, counts)?;
        let (is_mute, is_lost) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Space { segment, source, on_loss, region, layout, is_mute, is_lost })
    }

    /// Looks whether the header still is that of the layout: who came first at the same time may have written another one.
    pub(crate) fn check_header(&self) -> Result<(), OpenError> {
        let [bytes, counts] = [BYTES_AT, COUNTS_AT].map(|at| self.region.word(at).load_acquire());
        let said = header(self.segment.bytes() as u64, bytes, counts)?;
        if said == self.layout { Ok(()) } else { Err(OpenError::Remade) }
    }

    /// Whether what was loaded before this is what members have stored. A device that was reset, or whose memory is switched off, faults nowhere
    /// and gives ones or zeros.
    pub(crate) fn answers(&self) -> bool {
        !self.is_device() || self.region.word(FORMAT_AT).load_acquire() == FORMAT
    }

    fn at(&self, offset: u64) -> usize {
        // A layout is inside of the mapping, whose size is a `usize`.
        offset as usize
    }

    /// The number of the member that has a slot; zero if none has it.
    pub(crate) fn number(&self, slot: usize) -> Word {
        self.region.word(self.at(self.layout.slot(slot)))
    }

    /// Counts as long as the member of a slot lives.
    pub(crate) fn beat(&self, slot: usize) -> Word {
        self.region.word(self.at(self.layout.slot(slot)) + 8)
    }

    /// The number of the member that has a slot or had it last, which is not cleared: as long as it is the same, nobody else has used the area.
    pub(crate) fn tenant(&self, slot: usize) -> Word {
        self.region.word(self.at(self.layout.slot(slot)) + 16)
    }

    /// The numbers of the memories that several members hold and that a slot's member uses; zero for none.
    pub(crate) fn joint_uses(&self, slot: usize) -> Words {
        self.region.words(self.at(self.layout.joint_uses(slot)), JOINTS)
    }

    /// What several members hold of a slot's area.
    pub(crate) fn joints(&self, slot: usize) -> Words {
        self.region.words(self.at(self.layout.joints(slot)), JOINTS * JOINT_WORDS)
    }

    /// What a slot says of one of those memories: its phase.
    pub(crate) fn joint_phase(&self, slot: usize, at: usize) -> Word {
        self.region.word(self.at(self.layout.joints(slot)) + 8 * (at * JOINT_WORDS + 1))
    }

    /// The number of the member whose area one slot's member uses or has mapped, of those that had the other slot; zero if it has none.
    pub(crate) fn holds(&self, from: usize, to: usize) -> Word {
        self.region.word(self.at(self.layout.line(from, to)))
    }

    /// What somebody who takes no part asks a slot's member for.
    pub(crate) fn asked(&self, slot: usize) -> Words {
        self.region.words(self.at(self.layout.asked(slot)), LINE_BYTES / 8)
    }

    /// Who asks: the first of those words.
    pub(crate) fn asker(&self, slot: usize) -> Word {
        self.region.word(self.at(self.layout.asked(slot)))
    }

    /// Two words for each name.
    pub(crate) fn names(&self, slot: usize) -> Words {
        self.region.words(self.at(self.layout.names(slot)), 2 * self.layout.entries as usize)
    }

    pub(crate) fn board(&self, slot: usize) -> Table {
        let (head, entries) = (HEADER_WORDS as usize, (ENTRY_WORDS * self.layout.entries) as usize);
        let at = self.at(self.layout.board(slot));
        let (head, tail) = (self.region.words(at, head), self.region.words(at + head * 8, entries));
        Table { head, tail, tail_from: HEADER_WORDS }
    }

    pub(crate) fn uses(&self, from: usize, to: usize) -> Table {
        let entries = self.layout.entries as usize;
        let at = self.at(self.layout.uses(from, to));
        let head = self.region.words(at, entries);
        let tail = self.region.words(at + entries * 8, entries * COUNT_STRIDE as usize);
        Table { head, tail, tail_from: CLAIM_WORDS }
    }

    /// What each window is for that one slot's member sends another's messages through.
    pub(crate) fn window_word(&self, (from, to): (usize, usize), window: usize) -> Word {
        self.region.word(self.at(self.layout.yard(from, to)) + 8 * window)
    }

    /// The lines of such a window, as its sender has them: all of one value; and its credits. They are pushed out with the word that says
    /// what the window is for.
    pub(crate) fn blank_window(
        &self,
        pair: (usize, usize),
        window: usize,
        blank: u64,
    ) -> (StoreWindow, Credits) {
        let at = self.at(self.layout.window(pair, window));
        let bytes = WINDOW_LINES as usize * LINE_BYTES;
        self.region.fill(at, bytes, blank);
        self.region.word(at + bytes).store(0);
        let lines = self.region.store_window(at, WINDOW_LINES, StoreKernel::Cached);
        (lines, Credits::new(&self.region, at + bytes))
    }

    /// As [`Space::blank_window`], as its receiver has it.
    pub(crate) fn window(&self, pair: (usize, usize), window: usize) -> (LoadWindow, Credits) {
        let at = self.at(self.layout.window(pair, window));
        let lines = self.region.load_window(at, WINDOW_LINES).for_sender(StoreKernel::Cached);
        (lines, Credits::new(&self.region, at + WINDOW_LINES as usize * LINE_BYTES))
    }

    /// The heartbeats of two slots, as the first has them.
    pub(crate) fn link(&self, own: usize, peer: usize) -> MappedState {
        let side = if own < peer { Side::First } else { Side::Second };
        MappedState::new(&self.region, self.at(self.layout.link(own, peer)), side)
    }

    /// Makes every word of a slot zero but those that say whose it is.
    pub(crate) fn clear(&self, slot: usize) {
        let (start, end) = (self.at(self.layout.slot(slot)) + 64, self.at(self.layout.slot_end(slot)));
        self.region.fill(start, end - start, 0);
        // Another thread beats for this member: its words are no older than these zeros.
        self.push_out();
    }

    /// Makes a part of a slot's area zero, and gives its pages back where they are those of a file; `pace` decides when each piece goes.
    pub(crate) fn punch(&self, slot: usize, offset: u64, bytes: u64, pace: &dyn Pace) {
        let part = beeline_fabric::Part { offset: 0, bytes: bytes.next_multiple_of(ALIGN) };
        let Some((at, bytes)) = self.layout.place(slot, offset, part) else { return };
        // What is gone would become memory of this process alone.
        if self.is_mute() || !self.is_intact() {
            return;
        }
        let is_given_back = !self.region.is_device() && self.region.remove_pages(at, bytes, pace).is_ok();
        if !is_given_back {
            self.region.fill_paced(at, bytes, 0, pace);
            // Another thread may give the next segment its first bytes.
            self.push_out();
        }
    }

    /// Maps a part of the memory once more, with options of its own; where in that it begins.
    pub(crate) fn map_again(
        &self,
        (start, bytes): (usize, usize),
        options: SegmentOptions,
    ) -> Result<(MappedSegment, usize), NotMapped> {
        let page_bytes = self.source.page_bytes().map_err(NotMapped::Unexamined)?;
        let before = start % page_bytes as usize;
        let options = SegmentOptions {
            offset_bytes: (start - before) as u64,
            bytes: Some(before + bytes),
            // One that is below `before` is no multiple of a page, which is said.
            address: options.address.map(|address| address.wrapping_sub(before)),
            on_loss: self.on_loss,
            ..options
        };
        Ok((self.source.map(options)?, before))
    }

    pub(crate) fn is_device(&self) -> bool {
        self.region.is_device()
    }

    /// Whether nothing that was accessed was gone, and others find the memory.
    #[inline]
    pub(crate) fn is_intact(&self) -> bool {
        // Relaxed: who does not see it yet has looked before.
        self.segment.is_intact() && !self.is_lost.load(Ordering::Relaxed)
    }

    /// Others do not find the memory any more ([`Source::lost_path`]). Nothing is stored: they find that out by themselves, and are to
    /// learn the same, that all is lost and not that a link is down.
    pub(crate) fn lose(&self) {
        self.mute();
        self.is_lost.store(true, Ordering::Relaxed);
    }

    /// Stores a word of a table; nothing if there is no such word.
    pub(crate) fn publish(&self, table: &Table, word: u32, value: u64) {
        if let Some((words, at)) = table.find(word) {
            self.ordered(|| words.store_release(at, value));
        }
    }

    /// Stores nothing any more: the words are another member's.
    pub(crate) fn mute(&self) {
        self.is_mute.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_mute(&self) -> bool {
        self.is_mute.load(Ordering::Relaxed)
    }

    /// Makes stores that are seen after those before them, and soon; `None` if this member stores nothing any more. Memory that combines
    /// stores keeps no order of its own, and may keep them in the core until it stores something else. So all that others look for is
    /// stored in here: numbers of slots, beats, links, names, words of boards and of what is used, what windows are for, and messages. Credits
    /// do the same ([`Credits`]). What is not: zeros of a slot and of an area, which are pushed out at their end; a window that is made blank,
    /// which its word pushes out; and what a program stores into a segment, which a barrier or the next trigger pushes out.
    pub(crate) fn ordered<T>(&self, store: impl FnOnce() -> T) -> Option<T> {
        if self.is_mute() {
            return None;
        }
        if self.region.is_device() {
            order_stores();
        }
        let stored = store();
        self.push_out();
        Some(stored)
    }

    /// Empties the write-combining buffers of this core, if stores to the memory may be in them.
    fn push_out(&self) {
        if self.region.is_device() {
            flush_write_combining();
            #[cfg(test)]
            PUSHES.with(|pushes| pushes.set(pushes.get() + 1));
        }
    }

    /// Orders what this thread has stored before what it loads after this, as all see it. Stores to a device are on their way when they have
    /// left the core; a load of the device comes behind them.
    #[inline]
    pub(crate) fn barrier(&self) -> Result<(), Unconfirmed> {
        order_all();
        if self.region.is_device() {
            std::hint::black_box(self.region.word(FORMAT_AT).load_acquire());
            order_all();
        }
        if self.is_intact() { Ok(()) } else { Err(Unconfirmed) }
    }
}

#[cfg(test)]
thread_local! {
    /// How often this thread has emptied its core's write-combining buffers.
    pub(crate) static PUSHES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// What a header says, which anybody may have written, of a memory of `found` bytes.
fn header(found: u64, bytes: u64, counts: u64) -> Result<Layout, OpenError> {
    if bytes > found {
        return Err(OpenError::Cut { found, said: bytes });
    }
    let (members, entries) = (counts & u64::from(u32::MAX), counts >> 32);
    let layout = Layout::of(bytes, members as usize, entries as u32);
    layout.ok_or(OpenError::Unsound { members, entries })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs::File;

    use beeline_mmio::PIECE_BYTES;

    use super::*;
    use crate::test_members::memory;

    fn open(memory: &BarMemory, members: usize) -> Result<Arc<Space>, OpenError> {
        Space::open(memory, members, OnLoss::Fatal)
    }

    #[test]
    fn what_is_stored_to_a_device_is_pushed_out_of_the_core() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let device = Space::of(Source::of_test_bar(dir.path(), 4 << 20), 2, OnLoss::Fatal).unwrap();
        let (_dir, memory) = memory(4 << 20);
        let file = open(&memory, 2).unwrap();
        for (space, expected) in [(device, 4), (file, 0)] {
            let before = PUSHES.get();
            space.publish(&space.board(0), 1, 7);
            assert_eq!(space.ordered(|| space.beat(0).store(3)), Some(()));
            space.clear(0);
            space.punch(0, 0, 4096, &beeline_mmio::Unpaced);
            assert_eq!(PUSHES.get() - before, expected, "{}", space.is_device());
            space.mute();
            assert_eq!(space.ordered(|| panic!("nothing is stored any more")), None::<()>);
        }
    }

    #[test]
    fn layout_is_that_of_the_first_who_opens() {
        let (_dir, memory) = memory(4 << 20);
        let first = open(&memory, 4).unwrap();
        assert_eq!(open(&memory, 16).unwrap().layout, first.layout);
        assert_eq!(first.layout.members, 4);
    }

    /// Both have found a memory that nobody has used yet.
    #[test]
    fn who_came_first_at_the_same_time_with_other_members_is_noticed_in_a_device_and_takes_the_others_numbers_in_a_file()
     {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let device =
            |members| Space::of(Source::of_test_bar(dir.path(), 4 << 20), members, OnLoss::Fatal).unwrap();
        let space = device(4);
        assert!(space.check_header().is_ok());
        space.region.word(FORMAT_AT).store(0);
        device(8);
        assert!(matches!(space.check_header(), Err(OpenError::Remade)));
        let (_dir, memory) = memory(4 << 20);
        let space = open(&memory, 4).unwrap();
        space.region.word(FORMAT_AT).store(0);
        assert_eq!(open(&memory, 8).unwrap().layout, space.layout);
        assert!(space.check_header().is_ok());
    }

    #[test]
    fn file_that_is_shorter_than_its_header_says_is_refused() {
        let (_dir, memory) = memory(4 << 20);
        drop(open(&memory, 4).unwrap());
        let BarMemory::File(path) = &memory else { unreachable!() };
        File::options().write(true).open(path).unwrap().set_len(2 << 20).unwrap();
        let refused = open(&memory, 4);
        assert!(matches!(refused, Err(OpenError::Cut { found: 0x20_0000, said: 0x40_0000 })), "{refused:?}");
    }

    #[test]
    fn memory_of_something_else_is_refused() {
        let (_dir, small) = memory(2048);
        let refused = open(&small, 2);
        let needed = Layout::least_bytes(2).unwrap();
        assert!(matches!(refused, Err(OpenError::TooSmall { needed: found, .. }) if found == needed));
        assert!(matches!(open(&small, 17), Err(OpenError::Members { members: 17 })));
        let (_dir, memory) = memory(4 << 20);
        let space = open(&memory, 4).unwrap();
        for counts in [0, 4, 64 << 32 | 17, u64::MAX] {
            space.region.word(COUNTS_AT).store(counts);
            assert!(matches!(open(&memory, 4), Err(OpenError::Unsound { .. })), "{counts:#x}");
        }
        space.region.word(FORMAT_AT).store(7);
        assert!(matches!(open(&memory, 4), Err(OpenError::NotOurs { found: 7 })));
    }

    #[test]
    fn word_that_the_memory_has_not_is_zero_and_is_not_stored() {
        let (_dir, memory) = memory(4 << 20);
        let space = open(&memory, 2).unwrap();
        let (board, entries) = (space.board(0), space.layout.entries);
        let uses = space.uses(0, 1);
        space.region.fill(0, space.region.bytes(), u64::MAX);
        let last = HEADER_WORDS + ENTRY_WORDS * entries - 1;
        assert_eq!((board.load(last), board.load(last + 1), board.load(u32::MAX)), (u64::MAX, 0, 0));
        assert_eq!(
            (uses.load(entries - 1), uses.load(entries), uses.load(CLAIM_WORDS - 1)),
            (u64::MAX, 0, 0)
        );
        let count = CLAIM_WORDS + COUNT_STRIDE * entries;
        assert_eq!((uses.load(count - 1), uses.load(count), uses.load(u32::MAX)), (u64::MAX, 0, 0));
        space.publish(&board, last + 1, 7);
        space.publish(&uses, entries, 7);
        let whole: Vec<u64> =
            (0..space.region.bytes()).step_by(8).map(|at| space.region.word(at).load()).collect();
        assert!(whole.iter().all(|word| *word == u64::MAX));
    }

    #[test]
    fn memory_that_is_given_back_is_zero_and_each_piece_of_it_is_paced() {
        #[derive(Default)]
        struct Pieces(Cell<usize>);
        impl Pace for Pieces {
            fn piece(&self, work: &mut dyn FnMut()) {
                self.0.set(self.0.get() + 1);
                work();
            }
        }
        let (_dir, memory) = memory(8 << 20);
        let space = open(&memory, 2).unwrap();
        let area = space.layout.area(1) as usize;
        space.region.fill(area, 3 * PIECE_BYTES, 7);
        let pace = Pieces::default();
        space.punch(1, 0, 2 * PIECE_BYTES as u64, &pace);
        assert_eq!(pace.0.get(), 2);
        let words = [0, 2 * PIECE_BYTES - 8, 2 * PIECE_BYTES].map(|at| space.region.word(area + at).load());
        assert_eq!(words, [0, 0, 7]);
    }

    #[test]
    fn slot_that_is_cleared_keeps_its_number_and_leaves_the_others() {
        let (_dir, memory) = memory(4 << 20);
        let space = open(&memory, 3).unwrap();
        space.region.fill(0, space.region.bytes(), 9);
        space.clear(1);
        assert_eq!([0, 1, 2].map(|slot| space.number(slot).load()), [9, 9, 9]);
        assert_eq!([0, 1, 2].map(|slot| space.board(slot).load(0)), [9, 0, 9]);
        assert_eq!([0, 1, 2].map(|slot| space.uses(slot, 2).load(CLAIM_WORDS)), [9, 0, 9]);
        assert_eq!([0, 1, 2].map(|slot| space.holds(slot, 0).load()), [9, 0, 9]);
        assert_eq!(space.region.word(space.layout.area(0) as usize).load(), 9);
    }
}
