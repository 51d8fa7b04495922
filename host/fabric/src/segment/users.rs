//! What a program has been told of the connections to a segment of its, and what is to be told of them.
//!
//! Events are the difference of what was told and what members say now. They say how many connections have ended, too, so one that was
//! made and ended between two looks is told; and what a member said last is kept when it is gone, so who has disconnected before it ended
//! is not taken for lost.

use alloc::collections::{BTreeMap, VecDeque};

use crate::board::layout::ENDED;
use crate::event::LocalEvent;
use crate::ids::{NodeId, PairId};

/// Connections that have ended without having been told of, of one member. Earlier ones are told of no more.
const MAX_UNTOLD: u32 = 1024;
/// Members that are gone of which nothing was told, and something is to be.
const MAX_UNTOLD_MEMBERS: usize = 64;

/// What a member says of its connections to a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) pair: PairId,
    pub(crate) node: NodeId,
    pub(crate) count: u32,
    /// How many have ended, modulo [`ENDED`]. `None` if its claim is of another incarnation.
    pub(crate) ended: Option<u32>,
}

/// Members that use a segment, or did, as its program knows them.
#[derive(Debug, Default)]
pub(crate) struct Users {
    told: BTreeMap<PairId, Told>,
    gone: VecDeque<Gone>,
}

/// A member that is gone, of which something is to be told.
#[derive(Debug)]
struct Gone {
    told: Told,
    last: Seen,
    /// That of the segment when the member went.
    incarnation: u32,
}

/// What the program has been told of a member's connections.
#[derive(Clone, Copy, Debug)]
struct Told {
    node: NodeId,
    incarnation: u32,
    count: u32,
    ended: u32,
}

impl Users {
    /// The next event that has not been told, of a segment of this incarnation.
    pub(crate) fn next_event(
        &mut self,
        incarnation: u32,
        seen: impl Iterator<Item = Seen>,
    ) -> Option<LocalEvent> {
        while let Some(gone) = self.gone.front_mut() {
            let ended = gone.last.ended.filter(|_| gone.incarnation == incarnation);
            // Connections that were not told of are not told of as lost either.
            let last = Seen { count: 0, ended, ..gone.last };
            let event = gone.told.next_event(incarnation, last, LocalEvent::Lost);
            if event.is_some() {
                return event;
            }
            self.gone.pop_front();
        }
        for seen in seen {
            let mut told = self.told_of(incarnation, seen);
            if let Some(event) = told.next_event(incarnation, seen, LocalEvent::Disconnect) {
                if told.is_nothing() {
                    self.told.remove(&seen.pair);
                } else {
                    self.told.insert(seen.pair, told);
                }
                return Some(event);
            }
        }
        None
    }

    /// Takes in that a member is gone, which said this last.
    pub(crate) fn gone(&mut self, incarnation: u32, last: Seen) {
        let told = self.told_of(incarnation, last);
        self.told.remove(&last.pair);
        let is_untold = last.ended.is_some_and(|ended| ended != told.ended);
        if told.count != 0 || is_untold && self.gone.len() < MAX_UNTOLD_MEMBERS {
            self.gone.push_back(Gone { told, last, incarnation });
        }
    }

    fn told_of(&self, incarnation: u32, of: Seen) -> Told {
        let nothing = Told { node: of.node, incarnation, count: 0, ended: 0 };
        self.told.get(&of.pair).copied().unwrap_or(nothing)
    }
}

impl Told {
    /// The next event of this member. `ends` is what a connection that is no more is told as, unless it was counted as ended.
    fn next_event(
        &mut self,
        incarnation: u32,
        seen: Seen,
        ends: fn(NodeId) -> LocalEvent,
    ) -> Option<LocalEvent> {
        let node = self.node;
        if self.incarnation != incarnation {
            if self.count != 0 {
                self.count -= 1;
                return Some(ends(node));
            }
            *self = Told { node, incarnation, count: 0, ended: 0 };
        }
        let ended = seen.ended.unwrap_or(self.ended);
        let untold = ended.wrapping_sub(self.ended) % ENDED;
        if untold > MAX_UNTOLD {
            self.ended = ended.wrapping_sub(MAX_UNTOLD) % ENDED;
        }
        match (untold, self.count) {
            (0, count) if count < seen.count => self.count += 1,
            (0, count) if count > seen.count => {
                self.count -= 1;
                return Some(ends(node));
            }
            (0, _) => return None,
            (_, 0) => self.count = 1,
            _ => {
                self.count -= 1;
                self.ended = (self.ended + 1) % ENDED;
                return Some(LocalEvent::Disconnect(node));
            }
        }
        Some(LocalEvent::Connect(node))
    }

    fn is_nothing(self) -> bool {
        (self.count, self.ended) == (0, 0)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use LocalEvent::{Connect, Disconnect, Lost};

    use super::*;

    const INCARNATION: u32 = 3;

    fn seen(number: u64, count: u32, ended: u32) -> Seen {
        Seen { pair: PairId(number), node: NodeId(number as u16), count, ended: Some(ended) }
    }

    fn told(users: &mut Users, incarnation: u32, seen: &[Seen]) -> Vec<LocalEvent> {
        core::iter::from_fn(|| users.next_event(incarnation, seen.iter().copied())).collect()
    }

    #[test]
    fn events_are_what_is_seen_and_was_not_told() {
        let (mut users, one, two) = (Users::default(), NodeId(1), NodeId(2));
        let seen_first = [seen(1, 2, 0), seen(2, 0, 0)];
        assert_eq!(told(&mut users, INCARNATION, &seen_first), [Connect(one); 2]);
        let seen_next = [seen(1, 1, 1), seen(2, 0, 1)];
        let expected = [Disconnect(one), Connect(two), Disconnect(two)];
        assert_eq!(told(&mut users, INCARNATION, &seen_next), expected);
        // A claim that was taken back is not counted as ended.
        assert_eq!(told(&mut users, INCARNATION, &[seen(1, 2, 1)]), [Connect(one)]);
        assert_eq!(told(&mut users, INCARNATION, &[seen(1, 1, 1)]), [Disconnect(one)]);
        assert_eq!(told(&mut users, INCARNATION, &[seen(1, 1, 2)]), [Disconnect(one), Connect(one)]);
    }

    #[test]
    fn connections_that_come_and_go_between_two_looks_are_told_up_to_a_number() {
        let mut users = Users::default();
        let several = told(&mut users, INCARNATION, &[seen(1, 0, 3)]);
        assert_eq!(several, [Connect(NodeId(1)), Disconnect(NodeId(1))].repeat(3));
        let many = told(&mut users, INCARNATION, &[seen(1, 0, 5000)]);
        assert_eq!(many.len(), 2 * MAX_UNTOLD as usize);
        // The count begins again at zero.
        assert_eq!(told(&mut users, INCARNATION, &[seen(1, 0, ENDED - 1)]).len(), 2 * MAX_UNTOLD as usize);
        assert_eq!(told(&mut users, INCARNATION, &[seen(1, 0, 1)]).len(), 4);
    }

    #[test]
    fn who_disconnects_and_ends_is_not_lost() {
        let (mut users, one) = (Users::default(), NodeId(1));
        assert_eq!(told(&mut users, INCARNATION, &[seen(1, 2, 0)]), [Connect(one); 2]);
        users.gone(INCARNATION, seen(1, 1, 1));
        users.gone(INCARNATION, seen(2, 0, 1));
        let expected = [Disconnect(one), Lost(one), Connect(NodeId(2)), Disconnect(NodeId(2))];
        assert_eq!(told(&mut users, INCARNATION, &[]), expected);
    }

    #[test]
    fn members_of_which_nothing_is_to_be_told_are_not_kept() {
        let mut users = Users::default();
        for number in 0..1000 {
            users.gone(INCARNATION, seen(number, 1, 0));
            users.gone(INCARNATION, Seen { ended: None, ..seen(number, 0, 0) });
        }
        assert_eq!(told(&mut users, INCARNATION, &[]), []);
        for number in 0..1000 {
            users.gone(INCARNATION, seen(number, 0, 1));
        }
        assert_eq!(told(&mut users, INCARNATION, &[]).len(), 2 * MAX_UNTOLD_MEMBERS);
        // One that the program knows of is told of, however many there are.
        let known: Vec<_> = (0..1000).map(|number| seen(number, 1, 0)).collect();
        assert_eq!(told(&mut users, INCARNATION, &known).len(), 1000);
        known.iter().for_each(|last| users.gone(INCARNATION, *last));
        let lost: Vec<_> = known.iter().map(|seen| Lost(seen.node)).collect();
        assert_eq!(told(&mut users, INCARNATION, &[]), lost);
        assert!(users.told.is_empty());
    }

    #[test]
    fn connections_of_an_incarnation_that_is_over_are_disconnected_before_new_ones_count() {
        let (mut users, one) = (Users::default(), NodeId(1));
        let now = [seen(1, 1, 0)];
        assert_eq!(told(&mut users, INCARNATION, &now), [Connect(one)]);
        let next = INCARNATION + 1;
        let expected = [Disconnect(one), Connect(one), Disconnect(one), Connect(one)];
        assert_eq!(told(&mut users, next, &[seen(1, 1, 1)]), expected);
        users.gone(next, seen(1, 1, 1));
        // Taken from its users by force in between: its end is its own, and what came before is nobody's.
        assert_eq!(told(&mut users, next + 1, &[]), [Lost(one)]);
        users.gone(next, seen(1, 0, 7));
        assert_eq!(told(&mut users, next + 1, &[]), []);
    }
}
