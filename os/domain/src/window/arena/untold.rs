//! What a client is still to be told, by one thread at a time.

use std::collections::BTreeSet;

use super::messages::{Lease, Note};

/// Notes that the client has not been told. Whoever adds one begins to tell them, unless another thread does already, which then looks
/// again before it goes.
#[derive(Debug, Default)]
pub(super) struct Untold {
    /// Windows whose end the client is to be told. One that it has returned is not among them: its name may be another window's by
    /// then.
    ends: BTreeSet<u32>,
    /// What was lent. No more is lent unasked until the client was told.
    leases: Vec<Lease>,
    /// Whether a thread tells.
    is_telling: bool,
    /// Whether it has found no room.
    is_full: bool,
    /// Whether somebody came since it took the last note: a note that found no room may find some now.
    is_wanted: bool,
}

impl Untold {
    pub(super) fn add_end(&mut self, name: u32) {
        self.ends.insert(name);
    }

    pub(super) fn forget_end(&mut self, name: u32) {
        self.ends.remove(&name);
    }

    /// Not while the client is still to be told of others.
    pub(super) fn add_leases(&mut self, leases: Vec<Lease>) {
        self.leases = leases;
    }

    pub(super) fn has_leases(&self) -> bool {
        !self.leases.is_empty()
    }

    #[cfg(test)]
    pub(super) fn is_being_told(&self) -> bool {
        self.is_telling
    }

    #[cfg(test)]
    pub(super) fn has_ends(&self) -> bool {
        !self.ends.is_empty()
    }

    /// Whether the caller is to tell what there is: [`Untold::next`] and [`Untold::end`] in turns, until there is nothing next.
    pub(super) fn begin(&mut self) -> bool {
        self.is_wanted = true;
        !std::mem::replace(&mut self.is_telling, true)
    }

    /// What is next for the thread that tells; with `None` it tells no more.
    pub(super) fn next(&mut self) -> Option<Note> {
        let is_in_vain = self.is_full && !self.is_wanted;
        (self.is_full, self.is_wanted) = (false, false);
        let note = match self.ends.first() {
            _ if is_in_vain => None,
            Some(&name) => Some(Note::Ended { name }),
            None if self.has_leases() => Some(Note::Lent(self.leases.clone())),
            None => None,
        };
        self.is_telling = note.is_some();
        note
    }

    /// The client was told, or had no room.
    pub(super) fn end(&mut self, note: &Note, is_told: bool) {
        self.is_full = !is_told;
        match note {
            Note::Ended { name } if is_told => self.forget_end(*name),
            Note::Lent(_) if is_told => self.leases.clear(),
            _ => {}
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn end(name: u32) -> Note {
        Note::Ended { name }
    }

    #[test]
    fn one_thread_tells_all_that_is_added_meanwhile() {
        let mut untold = Untold::default();
        untold.add_end(1);
        assert!(untold.begin());
        assert_eq!(untold.next(), Some(end(1)));
        untold.add_end(2);
        assert!(!untold.begin(), "another thread tells");
        untold.end(&end(1), true);
        assert_eq!(untold.next(), Some(end(2)));
        untold.end(&end(2), true);
        assert_eq!(untold.next(), None);
        assert!(untold.begin(), "nobody tells any more");
    }

    #[test]
    fn note_that_found_no_room_is_told_when_there_is_room_even_while_it_is_tried() {
        let mut untold = Untold::default();
        let lease = Lease { name: 1, lines: 64, offset_bytes: 0, blank: 1 << 63, epoch: 1 };
        untold.add_leases(vec![lease]);
        for is_room_made_meanwhile in [false, true] {
            assert!(untold.begin());
            let note = untold.next().unwrap();
            if is_room_made_meanwhile {
                assert!(!untold.begin());
            }
            untold.end(&note, false);
            assert!(untold.has_leases());
            assert_eq!(untold.next().is_some(), is_room_made_meanwhile);
        }
        untold.end(&Note::Lent(vec![lease]), true);
        assert!(!untold.has_leases() && untold.next().is_none());
    }

    #[test]
    fn end_of_a_window_that_was_returned_is_not_told() {
        let mut untold = Untold::default();
        untold.add_end(1);
        untold.forget_end(1);
        assert!(untold.begin());
        assert_eq!(untold.next(), None);
    }
}
