//! The members of a set whose windows are quiet: what a look at each needs lies side by side, apart from the receivers.
//!
//! A look is a load of the word that the next message begins with, and a comparison. Looks do not wait for each other, so loads of
//! many windows are on their way at a time; a receiver each between them would be some lines more to load, one after the other.
//! What a look takes for a beginning is looked at again by the receiver, which has the last word, and so is a member that somebody
//! else may have received from since.
//!
//! Looks go round. Members from the cursor on are due in this round, and none that is due is ever put behind it.

use alloc::vec::Vec;

use beeline_contract_memory::HeaderPort;

/// A round is over after so many shares at most.
pub(super) const ROUND_SHARES: usize = 4;

/// In place of a member's place: it is not idle.
const NOWHERE: u32 = u32::MAX;

/// What a look at a member needs.
#[derive(Debug)]
pub(super) struct Watch<H> {
    /// `None` where only the receiver can tell.
    pub(super) headers: Option<H>,
    /// Where the next message begins, and what is there until then.
    pub(super) line: u32,
    pub(super) free_header: u64,
}

#[derive(Debug)]
struct Member<H> {
    watch: Watch<H>,
    slot: u32,
}

impl<H: HeaderPort> Member<H> {
    #[inline(always)]
    fn may_have_begun(&self) -> bool {
        let Watch { headers, line, free_header } = &self.watch;
        headers.as_ref().is_none_or(|headers| headers.load_header(*line) != *free_header)
    }
}

/// Idle members, by the number of their slot.
#[derive(Debug)]
pub(super) struct Idle<H> {
    members: Vec<Member<H>>,
    /// Where in `members` that of a slot is.
    places: Vec<u32>,
    /// Members before this one were looked at in this round.
    cursor: usize,
    share: usize,
}

impl<H: HeaderPort> Idle<H> {
    pub(super) fn new() -> Self {
        Idle { members: Vec::new(), places: Vec::new(), cursor: 0, share: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Makes room for the members of so many slots.
    pub(super) fn reserve(&mut self, slots: usize) {
        self.members.reserve(slots - self.members.len());
        self.places.resize(slots, NOWHERE);
    }

    /// How many looks keep a round from taking more than [`ROUND_SHARES`] times as many.
    pub(super) fn share(&mut self) -> usize {
        self.begin_round_if_due();
        self.share.min(self.len())
    }

    fn begin_round_if_due(&mut self) {
        if self.cursor == self.members.len() {
            self.cursor = 0;
            self.share = self.members.len().div_ceil(ROUND_SHARES);
        }
    }

    /// Takes in a member that was just found to have nothing: it is not due in this round.
    pub(super) fn insert(&mut self, slot: u32, watch: Watch<H>) {
        let last = self.members.len();
        self.members.push(Member { watch, slot });
        // The one that was at the cursor is due: it goes to the end.
        self.members.swap(self.cursor, last);
        self.note_place(last);
        self.note_place(self.cursor);
        self.cursor += 1;
    }

    /// Takes a member out, if it is one.
    pub(super) fn remove(&mut self, slot: u32) -> Option<Watch<H>> {
        let mut place = self.place(slot)?;
        if place < self.cursor {
            // The last member may be due, so it must not come to lie here.
            self.cursor -= 1;
            self.members.swap(place, self.cursor);
            self.note_place(place);
            place = self.cursor;
        }
        let removed = self.members.swap_remove(place);
        if place < self.members.len() {
            self.note_place(place);
        }
        self.places[slot as usize] = NOWHERE;
        Some(removed.watch)
    }

    /// Somebody may receive from a member: from now on only its receiver can tell.
    pub(super) fn distrust(&mut self, slot: u32) {
        if let Some(place) = self.place(slot) {
            self.members[place].watch.headers = None;
        }
    }

    /// As [`Idle::distrust`] for every member.
    pub(super) fn distrust_all(&mut self) {
        self.members.iter_mut().for_each(|member| member.watch.headers = None);
    }

    /// Looks at the next members, at most `looks`, of which it takes off what it has made, until one may have begun.
    #[inline]
    pub(super) fn next_begun(&mut self, looks: &mut usize) -> Option<u32> {
        while *looks > 0 && !self.members.is_empty() {
            self.begin_round_if_due();
            let due = &self.members[self.cursor..];
            let due = &due[..due.len().min(*looks)];
            let found = due.iter().position(Member::may_have_begun);
            let looked = found.map_or(due.len(), |before| before + 1);
            *looks -= looked;
            self.cursor += looked;
            if found.is_some() {
                return Some(self.members[self.cursor - 1].slot);
            }
        }
        None
    }

    /// Whether a member may have begun; `false` if it is none.
    #[inline]
    pub(super) fn may_have_begun(&self, slot: u32) -> bool {
        self.place(slot).is_some_and(|place| self.members[place].may_have_begun())
    }

    /// Those that may have begun.
    pub(super) fn begun(&self) -> impl Iterator<Item = u32> {
        self.members.iter().filter(|member| member.may_have_begun()).map(|member| member.slot)
    }

    #[inline]
    fn place(&self, slot: u32) -> Option<usize> {
        let place = *self.places.get(slot as usize)?;
        (place != NOWHERE).then_some(place as usize)
    }

    fn note_place(&mut self, place: usize) {
        self.places[self.members[place].slot as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A window of which one word is looked at: whether it has begun.
    struct Quiet(bool);

    impl HeaderPort for Quiet {
        fn load_header(&self, _: u32) -> u64 {
            u64::from(self.0)
        }
    }

    fn watch(has_begun: bool) -> Watch<Quiet> {
        Watch { headers: Some(Quiet(has_begun)), line: 0, free_header: 0 }
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Insert(u32),
        Remove(u32),
        /// Looks of one share; those that have begun leave, or stay.
        Share {
            leave: bool,
        },
    }

    const SLOTS: u32 = 40;

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0..SLOTS).prop_map(Step::Insert),
            1 => (0..SLOTS).prop_map(Step::Remove),
            2 => any::<bool>().prop_map(|leave| Step::Share { leave }),
        ];
        prop::collection::vec(step, 0..300)
    }

    proptest! {
        /// Whatever comes and goes, a member is looked at within two rounds.
        #[test]
        #[cfg_attr(miri, ignore = "it is slow, and nothing of it is unsafe")]
        fn no_member_waits_longer_than_two_rounds(steps in steps()) {
            let mut idle = Idle::new();
            idle.reserve(SLOTS as usize);
            // Shares since each member was looked at last; every member has begun, so that each look shows.
            let mut waiting = [None::<usize>; SLOTS as usize];
            for step in steps {
                match step {
                    Step::Insert(slot) if waiting[slot as usize].is_none() => {
                        idle.insert(slot, watch(true));
                        waiting[slot as usize] = Some(0);
                    }
                    Step::Insert(_) => {}
                    Step::Remove(slot) => {
                        let was_there = waiting[slot as usize].take().is_some();
                        prop_assert_eq!(idle.remove(slot).is_some(), was_there);
                    }
                    Step::Share { leave } => {
                        let mut looks = idle.share();
                        waiting.iter_mut().flatten().for_each(|shares| *shares += 1);
                        while let Some(slot) = idle.next_begun(&mut looks) {
                            let shares = waiting[slot as usize].as_mut().expect("it is a member");
                            *shares = 0;
                            if leave {
                                waiting[slot as usize] = None;
                                prop_assert!(idle.remove(slot).is_some());
                            }
                        }
                        prop_assert!(looks == 0 || leave);
                    }
                }
                let longest = waiting.iter().flatten().max().copied().unwrap_or_default();
                prop_assert!(longest < 2 * ROUND_SHARES, "{} shares without a look", longest);
                prop_assert_eq!(idle.len(), waiting.iter().flatten().count());
                for slot in 0..SLOTS {
                    prop_assert_eq!(idle.may_have_begun(slot), waiting[slot as usize].is_some());
                }
            }
        }
    }

    #[test]
    fn looks_pass_over_what_is_quiet_and_stop_at_what_is_not() {
        let mut idle = Idle::new();
        idle.reserve(9);
        (0..9).for_each(|slot| idle.insert(slot, watch(slot == 6)));
        let mut looks = 9;
        assert_eq!(idle.next_begun(&mut looks), Some(6));
        assert_eq!((idle.next_begun(&mut looks), looks), (None, 0));
        idle.distrust(2);
        assert_eq!(idle.begun().collect::<Vec<_>>(), [2, 6]);
        idle.distrust_all();
        assert_eq!(idle.begun().count(), 9);
    }
}
