//! Memory that several members hold: where it lies, and who uses it.
//!
//! It lies in the area of the member that made it, whose slot says of each such memory its number, its place and its size. Every member says
//! in words of its own slot which of them it uses: holds, or has mapped. As long as a member that lives uses one, nobody takes the slot in
//! whose area it is (`claim.rs`), even if the member that made it is gone.
//!
//! Who begins to use a memory and who takes it back each store, pass a barrier and look at the other's words: so at least one of them
//! sees the other. Where the member that made it is gone, who takes its slot is in that one's place.
//!
//! A member that is killed while it looks leaves the memory closing, and perhaps another that uses it. So in a file a member that begins to
//! use it opens it again by a compare-and-swap. The member that made it, which may only stand still, closes it by another, and so only if
//! nobody has opened it.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use beeline_fabric::{Name, Part, Refusal};

use crate::layout::{JOINT_WORDS, JOINTS};
use crate::peer::Peer;
use crate::space::Space;

/// What the words of a memory say of it.
const FREE: u64 = 0;
const OPEN: u64 = 1;
/// The member that made it is looking whether anybody uses it.
const CLOSING: u64 = 2;
/// That member has found that nobody does.
const CLOSED: u64 = 3;

/// A memory that several members hold, as its words were found once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Joint {
    /// The slot in whose area it lies.
    pub(crate) slot: usize,
    /// The member that made it.
    tenant: u64,
    /// Which of the memories of that slot it is.
    at: usize,
    pub(crate) group: NonZeroU64,
    /// Where in the whole memory it begins.
    pub(crate) start: usize,
    pub(crate) bytes: u64,
}

/// A segment of this member that others hold, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holding {
    pub(crate) name: Name,
    pub(crate) group: NonZeroU64,
    /// Others may have taken this member for dead since it has the segment.
    pub(crate) is_suspect: bool,
}

/// A memory of this member's own area.
#[derive(Clone, Copy, Debug)]
struct Made {
    at: usize,
    offset: u64,
    bytes: u64,
    /// Somebody may store into it who does not say so any more, or never has.
    is_kept: bool,
}

/// What this member uses of a memory.
#[derive(Clone, Copy, Debug)]
struct Use {
    joint: Joint,
    at: usize,
    /// Segments and maps.
    count: usize,
}

/// What a memory was that nobody uses any more: an offset of this member's area, its size, and whether it must not be used again.
pub(crate) type Unused = ((u64, u64), bool);

/// The memories that this member has made or uses. They are kept here, and in words for others.
#[derive(Debug)]
pub(crate) struct Joints {
    space: Arc<Space>,
    own: usize,
    made: BTreeMap<NonZeroU64, Made>,
    uses: BTreeMap<NonZeroU64, Use>,
}

/// The memory of a number, if it is open and whoever takes the slot has not come.
fn find(space: &Space, group: NonZeroU64) -> Option<Joint> {
    (0..space.layout.members).find_map(|slot| {
        let words = space.joints(slot);
        let found = (0..JOINTS).find(|at| words.load_acquire(at * JOINT_WORDS) == group.get())?;
        read(space, slot, found, group)
    })
}

fn read(space: &Space, slot: usize, at: usize, group: NonZeroU64) -> Option<Joint> {
    let words = space.joints(slot);
    let load = |word: usize| words.load_acquire(at * JOINT_WORDS + word);
    let (phase, offset, bytes) = (load(1), load(2), load(3));
    let (start, _) = space.layout.place(slot, offset, Part { offset: 0, bytes })?;
    let (number, tenant) = (space.number(slot).load_acquire(), space.tenant(slot).load_acquire());
    let is_its = tenant != 0 && [0, tenant].contains(&number);
    let is_open = load(0) == group.get() && phase == OPEN && bytes != 0;
    (is_open && is_its).then_some(Joint { slot, tenant, at, group, start, bytes })
}

impl Joint {
    /// Where in the whole memory a part of it is, and its size.
    pub(crate) fn place(&self, part: Part) -> Option<(usize, usize)> {
        let end = part.offset.checked_add(part.bytes).filter(|end| *end <= self.bytes)?;
        // What ends inside the mapping has sizes of the machine.
        Some((self.start + (end - part.bytes) as usize, part.bytes as usize))
    }
}

impl Joints {
    pub(crate) fn new(space: &Arc<Space>, own: usize) -> Self {
        Joints { space: Arc::clone(space), own, made: BTreeMap::new(), uses: BTreeMap::new() }
    }

    /// Says of a part of this member's area that others may hold it under a number that no other memory has.
    pub(crate) fn make(&mut self, group: NonZeroU64, (offset, bytes): (u64, u64)) -> Result<(), Refusal> {
        let is_free = |at: &usize| self.made.values().all(|made| made.at != *at);
        let at = (0..JOINTS).find(is_free).ok_or(Refusal::MaxEntries)?;
        for (word, value) in [(1, OPEN), (2, offset), (3, bytes), (0, group.get())] {
            self.store_made(at, word, value);
        }
        self.made.insert(group, Made { at, offset, bytes, is_kept: false });
        Ok(())
    }

    /// Takes back what this member has made and has told nobody of.
    pub(crate) fn withdraw(&mut self, group: NonZeroU64) {
        if let Some(Made { at, .. }) = self.made.remove(&group) {
            self.store_made(at, 0, FREE);
        }
    }

    /// Takes that somebody may have mapped a memory who does not say that it uses it: it is not used again.
    pub(crate) fn keep(&mut self, group: NonZeroU64) {
        if let Some(made) = self.made.get_mut(&group) {
            made.is_kept = true;
        }
    }

    /// Begins to use the memory of a number once more.
    ///
    /// # Errors
    /// [`Refusal::NotConnected`]: there is none, or it may be gone. [`Refusal::MaxEntries`]: this member uses as many as it can.
    pub(crate) fn begin(&mut self, group: NonZeroU64, peers: &mut [Peer]) -> Result<Joint, Refusal> {
        if let Some(used) = self.uses.get_mut(&group) {
            used.count += 1;
            return Ok(used.joint);
        }
        self.open_again(group, peers);
        let joint = find(&self.space, group).ok_or(Refusal::NotConnected)?;
        let is_free = |at: &usize| self.uses.values().all(|used| used.at != *at);
        let at = (0..JOINTS).find(is_free).ok_or(Refusal::MaxEntries)?;
        self.store_use(at, group.get());
        let peer = peers.get_mut(joint.slot).ok_or(Refusal::NotConnected)?;
        peer.hold_joint(&self.space, self.own, joint.tenant);
        // Pairs with the barriers of who takes it back (`Joints::take_back`) and of who takes its slot (`claim.rs`).
        let is_ordered = self.space.barrier().is_ok();
        if !is_ordered || read(&self.space, joint.slot, joint.at, group) != Some(joint) {
            self.store_use(at, 0);
            peer.let_joint_go(&self.space, self.own);
            return Err(Refusal::NotConnected);
        }
        self.uses.insert(group, Use { joint, at, count: 1 });
        Ok(joint)
    }

    /// Ends the look of a member that is not heard any more whether anybody uses a memory. A device has no such operation.
    fn open_again(&self, group: NonZeroU64, peers: &[Peer]) {
        if self.space.is_device() {
            return;
        }
        for peer in peers.iter().filter(|peer| peer.number.is_none() && peer.slot != self.own) {
            let words = self.space.joints(peer.slot);
            let found = (0..JOINTS).find(|at| words.load_acquire(at * JOINT_WORDS) == group.get());
            found.into_iter().for_each(|at| {
                let phase = self.space.joint_phase(peer.slot, at);
                let _is_open = self.space.ordered(|| phase.compare_exchange(CLOSING, OPEN));
            });
        }
    }

    /// Ends one use of a memory.
    pub(crate) fn end(&mut self, group: NonZeroU64, peers: &mut [Peer]) {
        let Some(used) = self.uses.get_mut(&group) else { return };
        used.count -= 1;
        if used.count != 0 {
            return;
        }
        let Use { joint, at, .. } = *used;
        self.uses.remove(&group);
        self.store_use(at, 0);
        if let Some(peer) = peers.get_mut(joint.slot) {
            peer.let_joint_go(&self.space, self.own);
        }
    }

    /// Takes back what this member has made and nobody uses.
    pub(crate) fn take_back(&mut self) -> Vec<Unused> {
        // Without a look first, who joins would find memory that is used closed every now and then.
        let unused: Vec<_> = self.made.keys().copied().filter(|group| !self.is_used(*group)).collect();
        unused.into_iter().filter_map(|group| self.close(group)).collect()
    }

    fn close(&mut self, group: NonZeroU64) -> Option<Unused> {
        let Made { at, offset, bytes, is_kept } = *self.made.get(&group)?;
        self.store_made(at, 1, CLOSING);
        // Pairs with the barrier of who begins to use it.
        if self.space.barrier().is_err() || self.is_used(group) {
            self.store_made(at, 1, OPEN);
            return None;
        }
        // Of a file somebody may have opened it again, who took this member for dead, and may use it by now.
        let phase = self.space.joint_phase(self.own, at);
        let close = || self.space.is_device() || phase.compare_exchange(CLOSING, CLOSED).is_ok();
        if self.space.ordered(close) != Some(true) {
            return None;
        }
        self.store_made(at, 0, FREE);
        self.made.remove(&group);
        Some(((offset, bytes), is_kept))
    }

    fn is_used(&self, group: NonZeroU64) -> bool {
        let others = (0..self.space.layout.members).filter(|slot| *slot != self.own);
        self.uses.contains_key(&group) || others.into_iter().any(|slot| self.is_used_by(slot, group))
    }

    /// Whether a slot has a member that says so; one that was killed goes on to say it until its slot is another's.
    fn is_used_by(&self, slot: usize, group: NonZeroU64) -> bool {
        let uses = self.space.joint_uses(slot);
        let says_so = (0..JOINTS).any(|at| uses.load_acquire(at) == group.get());
        says_so && self.space.number(slot).load_acquire() != 0
    }

    /// Takes that the member of a slot is not heard any more: its process may only stand still, and store later. If another one has
    /// cleared what it used, it may have used anything.
    pub(crate) fn keep_of(&mut self, slot: usize, is_replaced: bool) {
        let used: Vec<_> = self.made.keys().copied().filter(|group| self.is_used_by(slot, *group)).collect();
        for (group, made) in &mut self.made {
            made.is_kept |= is_replaced || used.contains(group);
        }
    }

    /// Whether the area of a memory that this member uses has become another member's: this one was taken for dead.
    pub(crate) fn is_any_lost(&self) -> bool {
        self.uses.values().any(|used| self.space.tenant(used.joint.slot).load_acquire() != used.joint.tenant)
    }

    fn store_made(&self, at: usize, word: usize, value: u64) {
        let words = self.space.joints(self.own);
        self.space.ordered(|| words.store_release(at * JOINT_WORDS + word, value));
    }

    fn store_use(&self, at: usize, value: u64) {
        let words = self.space.joint_uses(self.own);
        self.space.ordered(|| words.store_release(at, value));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use beeline_fabric::MemberNumber;
    use beeline_mmio::OnLoss;

    use super::*;
    use crate::test_members::memory;

    const GROUP: NonZeroU64 = NonZeroU64::new(77).unwrap();
    const BYTES: u64 = 4096;

    /// One of two members, of the number 5 more than its slot.
    struct Side {
        space: Arc<Space>,
        joints: Joints,
        peers: Vec<Peer>,
    }

    impl Side {
        fn begin(&mut self) -> Result<Joint, Refusal> {
            self.joints.begin(GROUP, &mut self.peers)
        }

        fn end(&mut self) {
            self.joints.end(GROUP, &mut self.peers);
        }
    }

    /// A maker in slot 0, which has made a memory, and another member in slot 1.
    fn sides() -> (tempfile::TempDir, [Side; 2]) {
        let (dir, memory) = memory(4 << 20);
        let mut sides = [0, 1].map(|own| {
            let space = Space::open(&memory, 2, OnLoss::Fatal).unwrap();
            for word in [space.number(own), space.tenant(own)] {
                word.store(5 + own as u64);
            }
            let joints = Joints::new(&space, own);
            let peers = (0..2).map(|slot| Peer::new(&space, (own, slot), 1)).collect();
            Side { space, joints, peers }
        });
        sides[0].joints.make(GROUP, (64 << 10, BYTES)).unwrap();
        (dir, sides)
    }

    #[test]
    fn memory_that_somebody_uses_is_not_taken_back_and_is_then() {
        let (_dir, [mut maker, mut other]) = sides();
        let joint = other.begin().unwrap();
        assert_eq!((joint.slot, joint.bytes), (0, BYTES));
        assert_eq!(joint.start as u64, maker.space.layout.area(0) + (64 << 10));
        assert_eq!(maker.begin(), Ok(joint));
        assert_eq!(maker.joints.take_back(), []);
        maker.end();
        assert_eq!((maker.joints.take_back(), maker.joints.close(GROUP)), (vec![], None));
        other.end();
        assert_eq!((other.begin(), other.begin()), (Ok(joint), Ok(joint)), "it is open again");
        other.end();
        assert_eq!(maker.joints.take_back(), [], "one use is left");
        other.end();
        assert_eq!(maker.joints.take_back(), [((64 << 10, BYTES), false)]);
        assert_eq!(maker.joints.take_back(), []);
        assert_eq!(other.begin(), Err(Refusal::NotConnected));
    }

    #[test]
    fn memory_that_is_being_taken_back_or_is_another_members_is_not_used() {
        let (_dir, [maker, mut other]) = sides();
        let space = &maker.space;
        let phase = |value| maker.joints.store_made(0, 1, value);
        other.peers[0].came(MemberNumber(5));
        for closed in [CLOSING, CLOSED] {
            phase(closed);
            assert_eq!(other.begin(), Err(Refusal::NotConnected));
        }
        phase(OPEN);
        for (word, before, now) in [(space.number(0), 5, 9), (space.tenant(0), 5, 9), (space.tenant(0), 5, 0)]
        {
            word.store(now);
            assert_eq!(other.begin(), Err(Refusal::NotConnected));
            word.store(before);
        }
        assert_eq!(space.joint_uses(1).load_acquire(0), 0);
        assert_eq!(space.holds(1, 0).load(), 0);
        // Its maker has left, and the memory is there.
        space.number(0).store(0);
        other.begin().unwrap();
        assert_eq!((space.joint_uses(1).load_acquire(0), space.holds(1, 0).load()), (GROUP.get(), 5));
        assert!(!other.joints.is_any_lost());
        space.tenant(0).store(9);
        assert!(other.joints.is_any_lost());
    }

    #[test]
    fn memory_that_a_member_was_closing_that_is_not_heard_any_more_is_opened_again() {
        let (_dir, [mut maker, mut other]) = sides();
        maker.joints.store_made(0, 1, CLOSED);
        assert_eq!(other.begin(), Err(Refusal::NotConnected), "it is nobody's");
        maker.joints.store_made(0, 1, CLOSING);
        other.begin().unwrap();
        assert_eq!(maker.joints.take_back(), []);
        other.end();
        assert_eq!(maker.joints.take_back().len(), 1, "its member only stood still");
    }

    #[test]
    fn memory_that_is_withdrawn_is_none_and_leaves_its_words_to_the_next() {
        let (_dir, [mut maker, mut other]) = sides();
        maker.joints.withdraw(GROUP);
        assert_eq!(other.begin(), Err(Refusal::NotConnected));
        assert_eq!(maker.joints.take_back(), []);
        maker.joints.make(GROUP, (128 << 10, BYTES)).unwrap();
        assert_eq!(other.begin().map(|joint| joint.at), Ok(0));
    }

    /// One thread uses the memory over and over and opens it again, the other takes it back and makes it anew.
    #[test]
    fn memory_is_never_taken_back_while_another_thread_uses_it() {
        let (_dir, [mut maker, mut other]) = sides();
        let (is_used, uses) = (AtomicBool::new(false), AtomicU64::new(0));
        let spin = || (0..100).for_each(|_| std::hint::spin_loop());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while uses.load(Ordering::Relaxed) < 20_000 {
                    if other.begin().is_ok() {
                        is_used.store(true, Ordering::SeqCst);
                        spin();
                        is_used.store(false, Ordering::SeqCst);
                        other.end();
                        uses.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
            while uses.load(Ordering::Relaxed) < 20_000 {
                // Without the look before: so both are close to each other more often.
                if maker.joints.close(GROUP).is_some() {
                    let is_free = (0..100).all(|_| !is_used.load(Ordering::SeqCst));
                    uses.fetch_add(if is_free { 0 } else { 1 << 32 }, Ordering::Relaxed);
                    maker.joints.make(GROUP, (64 << 10, BYTES)).unwrap();
                }
            }
        });
        assert_eq!(uses.into_inner() >> 32, 0, "it was taken back while it was used");
    }

    #[test]
    fn slot_of_a_memory_is_held_until_its_last_use_ends() {
        let (_dir, [_maker, mut other]) = sides();
        let held = |side: &Side| side.space.holds(1, 0).load();
        other.begin().unwrap();
        other.begin().unwrap();
        other.end();
        other.peers[0].let_go(&other.space, 1);
        assert_eq!(held(&other), 5);
        other.end();
        assert_eq!(held(&other), 0);
    }

    #[test]
    fn memory_that_who_is_silent_used_is_kept_and_all_is_where_nobody_knows() {
        for (is_used, is_replaced, is_kept) in
            [(true, false, true), (false, false, false), (false, true, true), (true, true, true)]
        {
            let (_dir, [mut maker, mut other]) = sides();
            if is_used {
                other.begin().unwrap();
            }
            maker.joints.keep_of(1, is_replaced);
            if is_used {
                other.end();
            }
            assert_eq!(maker.joints.take_back(), [((64 << 10, BYTES), is_kept)], "{is_used} {is_replaced}");
        }
    }

    #[test]
    fn words_that_make_no_memory_are_none() {
        let (_dir, [maker, mut other]) = sides();
        let area = maker.space.layout.area_bytes;
        for (offset, bytes) in [(0, area + 1), (area, 1), (u64::MAX, 1), (1, u64::MAX), (0, 0)] {
            maker.joints.store_made(0, 2, offset);
            maker.joints.store_made(0, 3, bytes);
            assert_eq!(other.begin(), Err(Refusal::NotConnected), "{offset} {bytes}");
        }
    }

    #[test]
    fn part_that_reaches_out_of_a_memory_is_nowhere() {
        let (_dir, [mut maker, _other]) = sides();
        let joint = maker.begin().unwrap();
        let place = |offset, bytes| joint.place(Part { offset, bytes });
        assert_eq!(place(96, 4000), Some((joint.start + 96, 4000)));
        assert_eq!((place(97, 4000), place(u64::MAX, 1), place(1, u64::MAX)), (None, None, None));
    }
}
