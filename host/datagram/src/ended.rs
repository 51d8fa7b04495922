//! Connections that ended not long ago, so that their late frames neither bring them back nor look unmatched.

use std::collections::VecDeque;

use crate::Address;
use crate::handshake::OFFER_NS;
use crate::sequence::{Sequence, Session};
use crate::time::Nanos;

/// Number of ended connections whose sessions are kept.
const MOST: usize = 256;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) remote: Address,
    pub(crate) ours: Session,
    pub(crate) theirs: Session,
    /// Everything before this number had arrived.
    pub(crate) arrived: Sequence,
    /// The other side's close was among it, so that it got all that it will ever get.
    pub(crate) is_complete: bool,
    pub(crate) at: Nanos,
}

/// The last ones that ended, oldest first.
#[derive(Debug)]
pub(crate) struct EndedList(VecDeque<Ended>);

impl EndedList {
    pub(crate) fn new() -> Self {
        EndedList(VecDeque::with_capacity(MOST))
    }

    /// Remembers one. `true` when another had to be forgotten although an offer as old as it could still be taken up:
    /// then offers must be withdrawn, or a replayed frame could bring the forgotten one back.
    pub(crate) fn add(&mut self, ended: Ended) -> bool {
        let forgotten = if self.0.len() == MOST { self.0.pop_front() } else { None };
        self.0.push_back(ended);
        forgotten.is_some_and(|old| ended.at.since(old.at) < OFFER_NS)
    }

    pub(crate) fn find(&self, remote: Address, ours: Session, theirs: Session) -> Option<&Ended> {
        // Sessions of this side are random, so that the first comparison nearly always decides.
        self.0.iter().find(|ended| ended.ours == ours && ended.theirs == theirs && ended.remote == remote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MacAddress;

    fn ended(number: u64, at: Nanos) -> Ended {
        let remote = Address::from(MacAddress([2, 0, 0, 0, 0, 1]));
        let (ours, theirs) = (Session(number), Session(number + 1));
        Ended { remote, ours, theirs, arrived: Sequence::first(theirs), is_complete: false, at }
    }

    #[test]
    fn the_list_is_bounded_and_says_when_that_is_dangerous() {
        let mut list = EndedList::new();
        for number in 0..MOST as u64 {
            assert!(!list.add(ended(number, Nanos(0))));
        }
        let remote = ended(0, Nanos(0)).remote;
        assert!(list.find(remote, Session(0), Session(1)).is_some());
        assert!(list.find(remote, Session(0), Session(2)).is_none());
        assert!(list.add(ended(1000, Nanos(OFFER_NS - 1))));
        assert!(list.find(remote, Session(0), Session(1)).is_none());
        assert!(!list.add(ended(1001, Nanos(OFFER_NS))));
    }
}
