//! What this member holds of one entry of another member: connections to each incarnation. One word is published of it.

use alloc::vec::Vec;

use crate::board::layout::Claim;

/// Connections to an entry, the incarnation that was connected to last behind the others. None of the counts is zero.
///
/// The last is what is published, so the word names an incarnation with connections as long as there are any: a lost connection, whose
/// incarnation is over, keeps the entry though the member has connected to the next one since.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held(Vec<Claim>);

impl Held {
    /// What is published of this.
    pub(crate) fn claim(&self) -> Claim {
        self.0.last().copied().unwrap_or_default()
    }

    /// Connections to an incarnation.
    pub(crate) fn count(&self, incarnation: u32) -> u32 {
        self.0.iter().find(|claim| claim.incarnation == incarnation).map_or(0, |claim| claim.count)
    }

    /// Takes in how many connections to an incarnation there are. That is what is published from here on.
    pub(crate) fn set(&mut self, claim: Claim) {
        let at = self.0.iter().position(|held| held.incarnation == claim.incarnation);
        if let Some(at) = at {
            self.0.remove(at);
        }
        self.0.push(claim);
    }

    /// Ends one connection to an incarnation. Whether there was one.
    pub(crate) fn end(&mut self, incarnation: u32) -> bool {
        let Some(claim) = self.0.iter_mut().find(|claim| claim.incarnation == incarnation) else {
            return false;
        };
        claim.count -= 1;
        self.0.retain(|claim| claim.count != 0);
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_has_connections_until_the_last_of_any_incarnation_ends() {
        let mut held = Held::default();
        let (old, new) = (Claim { incarnation: 3, count: 2 }, Claim { incarnation: 4, count: 1 });
        held.set(old);
        held.set(new);
        assert_eq!((held.claim(), held.count(3), held.count(5)), (new, 2, 0));
        assert!(held.end(3) && held.end(4) && !held.end(4));
        assert_eq!((held.claim(), held.is_empty()), (Claim { incarnation: 3, count: 1 }, false));
        assert!(held.end(3));
        assert_eq!((held.claim(), held.is_empty()), (Claim::default(), true));
    }

    #[test]
    fn incarnation_that_a_member_goes_back_to_is_the_one_that_is_published() {
        let mut held = Held::default();
        for incarnation in [3, 4, 3] {
            let count = held.count(incarnation) + 1;
            held.set(Claim { incarnation, count });
        }
        assert_eq!(held.claim(), Claim { incarnation: 3, count: 2 });
        assert!(held.end(3) && held.end(3));
        assert_eq!(held.claim(), Claim { incarnation: 4, count: 1 });
    }
}
