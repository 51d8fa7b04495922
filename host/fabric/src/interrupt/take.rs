//! Taking: what a member that waits for an interrupt makes of the counts of those that trigger it.

use alloc::vec::Vec;

use beeline_contract_adapter::ViewPort;

use super::Place;
use crate::board::layout::{Claim, count_word};
use crate::ids::PairId;

/// Most triggers of a counting interrupt that are kept.
const MOST_KEPT: u64 = 1 << 32;
/// Triggers between two looks that nobody can have made: the count ran backwards. Fewer are believed, since a program that is busy may not
/// look for hours.
const WILD: u64 = 1 << 63;

/// What has come of an interrupt without data and was not taken.
///
/// A trigger that comes while nobody waits is kept until the next wait: of a plain interrupt one, of a counting one each, up to 2^32.
/// A triggerer that goes has its last triggers taken first.
#[derive(Debug)]
pub struct Take<V> {
    place: Place,
    is_counting: bool,
    kept: u64,
    triggerers: Vec<Triggerer<V>>,
}

#[derive(Debug)]
struct Triggerer<V> {
    pair: PairId,
    uses: V,
    seen: u64,
    /// Its count was wild once: nothing of it is believed any more.
    is_struck: bool,
}

impl<V: ViewPort> Take<V> {
    /// Nothing has come, and nobody triggers.
    pub fn new(place: Place, is_counting: bool) -> Self {
        Take { place, is_counting, kept: 0, triggerers: Vec::new() }
    }

    /// Takes in a member that uses this one, with what it says that it uses.
    pub fn admit(&mut self, pair: PairId, uses: V) {
        self.triggerers.push(Triggerer { pair, uses, seen: 0, is_struck: false });
    }

    /// Forgets members that are not there any more, after what they left is taken.
    pub fn retain(&mut self, mut is_there: impl FnMut(PairId) -> bool) {
        self.look();
        self.triggerers.retain(|it| is_there(it.pair));
    }

    /// Whether this pair is among those that are looked at.
    pub fn has(&self, pair: PairId) -> bool {
        self.triggerers.iter().any(|it| it.pair == pair)
    }

    /// Takes one interrupt, if one has come.
    #[inline]
    pub fn take(&mut self) -> bool {
        if self.kept == 0 || !self.is_counting {
            self.look();
        }
        let has_come = self.kept != 0;
        self.kept -= u64::from(has_come);
        has_come
    }

    /// Has it triggered by this member itself.
    pub fn raise(&mut self) {
        self.kept = with(self.kept, 1, self.is_counting);
    }

    /// Forgets what has come.
    pub fn forget(&mut self) {
        self.look();
        self.kept = 0;
    }

    #[inline]
    fn look(&mut self) {
        for triggerer in &mut self.triggerers {
            let new = triggerer.new_since(self.place);
            self.kept = with(self.kept, new, self.is_counting);
        }
    }
}

/// What is kept when more has come.
#[inline]
fn with(kept: u64, new: u64, is_counting: bool) -> u64 {
    if is_counting { (kept + new).min(MOST_KEPT) } else { kept.max(new.min(1)) }
}

impl<V: ViewPort> Triggerer<V> {
    /// Triggers since the last look.
    #[inline]
    fn new_since(&mut self, place: Place) -> u64 {
        if self.is_struck || !claims(&self.uses, place) {
            return 0;
        }
        let count = self.uses.load(count_word(place.slot));
        let new = count.wrapping_sub(self.seen);
        if new >= WILD {
            self.is_struck = true;
            return 0;
        }
        self.seen = count;
        new
    }
}

/// Whether a member says that it is, or was, connected to this interrupt: its count is then one of this interrupt.
#[inline]
fn claims(uses: &impl ViewPort, place: Place) -> bool {
    // Pairs with the claim that is published after the count was zeroed (`Ports::connect`).
    Claim::of(uses.load(u32::from(place.slot.0))).incarnation == place.incarnation
}

/// Whether messages of a data interrupt may come from a member: it has said so by a count.
pub fn has_begun(uses: &impl ViewPort, place: Place) -> bool {
    claims(uses, place) && uses.load(count_word(place.slot)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Slot;
    use alloc::rc::Rc;
    use core::cell::Cell;

    const PLACE: Place = Place { slot: Slot(3), incarnation: 7 };

    /// The claim and the count of one member.
    #[derive(Clone, Debug)]
    struct Uses(Rc<Cell<(u64, u64)>>);

    impl Uses {
        fn of(incarnation: u32, count: u64) -> Self {
            Uses(Rc::new(Cell::new((Claim { incarnation, count: 1, ..Claim::default() }.word(), count))))
        }

        fn set_count(&self, count: u64) {
            self.0.set((self.0.get().0, count));
        }
    }

    impl ViewPort for Uses {
        fn load(&self, word: u32) -> u64 {
            match word {
                3 => self.0.get().0,
                word if word == count_word(Slot(3)) => self.0.get().1,
                _ => panic!("word {word} is of nobody"),
            }
        }
    }

    fn take_of(is_counting: bool, uses: &[&Uses]) -> Take<Uses> {
        let mut take = Take::new(PLACE, is_counting);
        for (pair, uses) in (1..).zip(uses) {
            take.admit(PairId(pair), (*uses).clone());
        }
        take
    }

    #[test]
    fn triggers_between_two_waits_are_one_unless_they_are_counted() {
        for (is_counting, expected) in [(false, 1), (true, 5)] {
            let (one, other) = (Uses::of(7, 3), Uses::of(7, 2));
            let mut take = take_of(is_counting, &[&one, &other]);
            assert_eq!((0..9).filter(|_| take.take()).count(), expected);
            one.set_count(4);
            assert!(take.take() && !take.take());
        }
    }

    #[test]
    fn kept_trigger_and_those_after_it_are_one() {
        let uses = Uses::of(7, 1);
        let mut take = take_of(false, &[&uses]);
        take.retain(|_| true);
        uses.set_count(2);
        assert!(take.take() && !take.take());
    }

    #[test]
    fn counts_of_another_incarnation_are_none() {
        let uses = Uses::of(6, 3);
        let mut take = take_of(true, &[&uses]);
        assert!(!take.take() && !has_begun(&uses, PLACE));
        uses.0.set(Uses::of(7, 0).0.get());
        assert!(!take.take() && !has_begun(&uses, PLACE));
        uses.set_count(1);
        assert!(take.take() && !take.take() && has_begun(&uses, PLACE));
    }

    #[test]
    fn last_triggers_of_a_member_that_goes_are_kept() {
        let (one, other) = (Uses::of(7, 2), Uses::of(7, 0));
        let mut take = take_of(true, &[&one, &other]);
        take.retain(|pair| pair == PairId(2));
        one.set_count(9);
        assert_eq!((0..9).filter(|_| take.take()).count(), 2);
        assert!(!take.has(PairId(1)) && take.has(PairId(2)));
    }

    #[test]
    fn wild_counts_are_no_triggers_and_strike_their_member_alone() {
        for wild in [u64::MAX, (1 << 63) + 1, 0] {
            let (liar, other) = (Uses::of(7, 1), Uses::of(7, 0));
            let mut take = take_of(true, &[&liar, &other]);
            assert!(take.take());
            liar.set_count(wild);
            other.set_count(1);
            assert!(take.take() && !take.take(), "{wild:#x}");
            let struck: Vec<_> = take.triggerers.iter().map(|it| it.is_struck).collect();
            assert_eq!(struck, [true, false]);
            liar.set_count(2);
            assert!(!take.take());
        }
    }

    #[test]
    fn triggerer_is_believed_however_long_nobody_looked() {
        for is_counting in [false, true] {
            for triggers in [1 << 32, 1 << 40, (1 << 63) - 1] {
                let uses = Uses::of(7, 1);
                let mut take = take_of(is_counting, &[&uses]);
                assert!(take.take());
                uses.set_count(1 + triggers);
                assert!(take.take(), "{triggers} triggers, counted: {is_counting}");
                take.forget();
                uses.set_count(2 + triggers);
                assert!(take.take() && !take.take());
            }
        }
    }

    #[test]
    fn at_most_so_many_triggers_are_kept_and_they_can_be_forgotten() {
        let uses = Uses::of(7, MOST_KEPT - 1);
        let mut take = take_of(true, &[&uses]);
        take.retain(|_| true);
        uses.set_count(2 * (MOST_KEPT - 1));
        take.retain(|_| true);
        assert_eq!(take.kept, MOST_KEPT);
        take.forget();
        assert!(!take.take());
    }
}
