//! What this member holds of one entry of another member: connections to each incarnation. One word is published of it.

use alloc::vec::Vec;

use crate::board::layout::{Claim, ENDED};

/// Connections to an entry. It stays when none is left, since what is published says how many have ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// Those to the incarnation that was connected to last.
    latest: Claim,
    /// Those to others, by incarnation. None of the counts is zero.
    others: Vec<(u32, u32)>,
}

impl Held {
    /// What is published of this.
    ///
    /// As long as there are connections to any incarnation it keeps the entry: one that is lost may be mapped.
    pub(crate) fn claim(&self) -> Claim {
        Claim { has_others: !self.others.is_empty(), ..self.latest }
    }

    /// Connections to an incarnation.
    pub(crate) fn count(&self, incarnation: u32) -> u32 {
        if self.latest.incarnation == incarnation {
            return self.latest.count;
        }
        self.others.iter().find(|other| other.0 == incarnation).map_or(0, |other| other.1)
    }

    /// With one connection more, to an incarnation that is the latest from here on.
    pub(crate) fn with_one_more(&self, incarnation: u32) -> Self {
        let mut held = self.clone();
        if held.latest.incarnation != incarnation {
            let count = held.count(incarnation);
            held.others.retain(|other| other.0 != incarnation);
            if held.latest.count != 0 {
                held.others.push((held.latest.incarnation, held.latest.count));
            }
            held.latest = Claim { incarnation, count, ..Claim::default() };
        }
        held.latest.count += 1;
        held
    }

    /// Ends one connection to an incarnation. Whether there was one.
    pub(crate) fn end(&mut self, incarnation: u32) -> bool {
        if self.latest.is_of(incarnation) {
            self.latest.count -= 1;
            self.latest.ended = (self.latest.ended + 1) % ENDED;
            return true;
        }
        let Some(other) = self.others.iter_mut().find(|other| other.0 == incarnation) else { return false };
        other.1 -= 1;
        self.others.retain(|other| other.1 != 0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(incarnations: &[u32]) -> Held {
        incarnations.iter().fold(Held::default(), |held, incarnation| held.with_one_more(*incarnation))
    }

    #[test]
    fn what_is_published_keeps_the_entry_until_the_last_connection_to_any_incarnation_ends() {
        let mut held = held(&[3, 3, 4]);
        let latest = Claim { incarnation: 4, ended: 0, has_others: true, count: 1 };
        assert_eq!((held.claim(), held.count(3), held.count(5)), (latest, 2, 0));
        assert!(held.end(3) && held.end(4) && !held.end(4));
        assert_eq!(held.claim(), Claim { ended: 1, count: 0, ..latest });
        assert!(held.claim().keeps_entry() && held.end(3));
        assert_eq!(held.claim(), Claim { ended: 1, has_others: false, count: 0, ..latest });
        assert!(!held.claim().keeps_entry() && !held.end(3));
    }

    #[test]
    fn connections_that_have_ended_are_counted_of_the_latest_incarnation() {
        let mut held = held(&[3]);
        for _ in 0..3 {
            held = held.with_one_more(3);
            assert!(held.end(3));
        }
        assert_eq!(held.claim(), Claim { incarnation: 3, ended: 3, has_others: false, count: 1 });
        held.latest.ended = ENDED - 1;
        assert!(held.end(3));
        assert_eq!(held.claim().ended, 0);
        held.latest.ended = 5;
        assert_eq!(held.with_one_more(4).claim().ended, 0);
    }

    #[test]
    fn incarnation_that_a_member_goes_back_to_is_the_one_that_is_published() {
        let mut held = held(&[3, 4, 3]);
        assert_eq!(held.claim(), Claim { incarnation: 3, ended: 0, has_others: true, count: 2 });
        assert!(held.end(3) && held.end(3));
        assert_eq!(held.claim(), Claim { incarnation: 3, ended: 2, has_others: true, count: 0 });
    }
}
