//! The connections of a set, and the list of those that may have news: only these are looked at by a wait.

use std::collections::HashMap;
use std::os::fd::RawFd;

use rustix::event::epoll::Event;

use super::member::Member;
use super::watched::{Glance, Watched};

pub(crate) struct Members<W: Watched> {
    by_number: HashMap<RawFd, Member<W>>,
    /// Those whose windows may have something.
    active: Vec<Active<W>>,
    /// Of them those that the program has taken out.
    parked: usize,
    /// Where the next wait begins in the list: behind the last that was reported.
    next: usize,
}

/// What a wait looks at of a member that has nothing, fifty thousand times a second.
struct Active<W: Watched> {
    number: RawFd,
    glance: Option<W::Glance>,
}

impl<W: Watched> Active<W> {
    /// Whether nothing has come since it was looked at.
    #[inline]
    fn is_empty_still(&self) -> bool {
        self.glance.as_ref().is_some_and(Glance::is_empty_still)
    }
}

impl<W: Watched> std::fmt::Debug for Members<W> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Members").field("all", &self.by_number.len()).finish_non_exhaustive()
    }
}

impl<W: Watched> Members<W> {
    pub(crate) fn new() -> Self {
        Members { by_number: HashMap::new(), active: Vec::new(), parked: 0, next: 0 }
    }

    pub(crate) fn get_mut(&mut self, number: RawFd) -> Option<&mut Member<W>> {
        self.by_number.get_mut(&number)
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = RawFd> {
        self.by_number.keys().copied()
    }

    pub(crate) fn connections(&self) -> impl Iterator<Item = RawFd> {
        let is_one = |member: &Member<W>| member.watched().is_some() && !member.is_parked;
        self.by_number.iter().filter(move |(_, member)| is_one(member)).map(|(number, _)| *number)
    }

    pub(crate) fn has_data(&self, data: u64) -> bool {
        self.by_number.values().any(|member| member.data() == data)
    }

    pub(crate) fn insert(&mut self, number: RawFd, member: Member<W>) {
        self.by_number.insert(number, member);
    }

    /// Members of the program's whose windows are looked at.
    pub(crate) fn active_count(&self) -> usize {
        self.active.len() - self.parked
    }

    /// All whose windows are looked at.
    pub(crate) fn looked_at_count(&self) -> usize {
        self.active.len()
    }

    /// What the program puts in again, as it had it before: its sender knows the sleeper still.
    pub(crate) fn unpark(&mut self, number: RawFd, watched: W, event: Event) -> bool {
        let Some(member) = self.by_number.get_mut(&number).filter(|member| member.is_parked_of(watched))
        else {
            return false;
        };
        member.modify(event);
        self.parked -= 1;
        true
    }

    /// Takes a member out as the program sees it. Programs that put it in again at once, as those do that wait now to read and now to write, shall not have
    /// its sender told each time: it stays in the list until somebody sleeps. False where there is no such member.
    pub(crate) fn park(&mut self, number: RawFd) -> bool {
        match self.by_number.get_mut(&number) {
            Some(member) if member.has_sleeper && member.active_at.is_some() => {
                self.parked += usize::from(!member.is_parked);
                member.park();
                true
            }
            _ => false,
        }
    }

    /// Whether the program has taken it out, and nothing else was made of its number.
    pub(crate) fn is_parked(&self, number: RawFd) -> bool {
        self.by_number.get(&number).is_some_and(|member| member.is_parked)
    }

    pub(crate) fn has_sleeper(&self, number: RawFd) -> bool {
        self.by_number.get(&number).is_some_and(|member| member.has_sleeper)
    }

    /// Puts a member into the list, if it is not there.
    pub(crate) fn activate(&mut self, number: RawFd) {
        if let Some(member) = self.by_number.get_mut(&number)
            && member.active_at.is_none()
        {
            member.active_at = Some(self.active.len());
            self.active.push(Active { number, glance: None });
        }
    }

    /// Takes a member out of the list, and the sleeper from its sender.
    fn deactivate(&mut self, number: RawFd, sleeper: Option<&W::Sleeper>) {
        let Some(member) = self.by_number.get_mut(&number) else { return };
        member.leave_sleeper(sleeper);
        let Some(at) = member.active_at.take() else { return };
        self.parked -= usize::from(member.is_parked);
        self.active.swap_remove(at);
        if let Some(moved) = self.active.get(at).and_then(|moved| self.by_number.get_mut(&moved.number)) {
            moved.active_at = Some(at);
        }
    }

    pub(crate) fn remove(&mut self, number: RawFd, sleeper: Option<&W::Sleeper>) {
        self.deactivate(number, sleeper);
        self.by_number.remove(&number);
    }

    /// Takes everything out.
    pub(crate) fn clear(&mut self, sleeper: Option<&W::Sleeper>) {
        self.leave_sleepers(sleeper);
        self.active.clear();
        self.by_number.clear();
        (self.parked, self.next) = (0, 0);
    }

    /// Takes the sleeper from every member, which then has nobody to ring.
    pub(crate) fn leave_sleepers(&mut self, sleeper: Option<&W::Sleeper>) {
        self.by_number.values_mut().for_each(|member| member.leave_sleeper(sleeper));
    }

    /// Takes those out of the list whose windows have ended, and those that the program has taken out. Says whether one that stays has nobody to ring.
    pub(crate) fn prune(&mut self, sleeper: Option<&W::Sleeper>) -> bool {
        let mut lacks = false;
        let mut at = 0;
        while let Some(number) = self.active.get(at).map(|active| active.number) {
            let Some(member) = self.by_number.get(&number) else { break };
            if member.is_parked {
                self.remove(number, sleeper);
            } else if member.watched().is_some_and(|watched| watched.may_have_news() || watched.has_news()) {
                lacks |= !member.has_sleeper;
                at += 1;
            } else {
                self.deactivate(number, sleeper);
            }
        }
        lacks
    }

    /// Whether a member has something to report.
    pub(crate) fn has_reportable(&mut self) -> bool {
        let by_number = &mut self.by_number;
        let mut is_reportable =
            |number| by_number.get_mut(number).is_some_and(|member: &mut Member<W>| member.is_reportable());
        self.active.iter().any(|active| !active.is_empty_still() && is_reportable(&active.number))
    }

    /// Reports members behind the first `filled` events of `out`, beginning behind the last that was reported; at most `visits` are looked at. A member
    /// whose data an event of the first `filled` has becomes one with it. Returns how many events there are then, and how many members were looked at.
    ///
    /// Members that share their data share an event too; all bits are told.
    pub(crate) fn take(&mut self, out: &mut [Event], filled: usize, visits: usize) -> (usize, usize) {
        let (already, mut filled, mut visited) = (filled, filled, 0);
        let count = self.active.len();
        let first = if self.next < count { self.next } else { 0 };
        while visited < visits.min(count) && filled < out.len() {
            let mut at = first + visited;
            if at >= count {
                at -= count;
            }
            visited += 1;
            let active = &mut self.active[at];
            // What its edge was told at was forgotten when it was found empty.
            if active.is_empty_still() {
                continue;
            }
            let Some(member) = self.by_number.get_mut(&active.number) else { continue };
            let Some(event) = member.take() else {
                if active.glance.is_none() {
                    active.glance = member.watched().and_then(W::glance);
                }
                continue;
            };
            self.next = at + 1;
            if !join(&mut out[..already], event) {
                out[filled] = event;
                filled += 1;
            }
        }
        (filled, visited)
    }
}

/// Adds the bits of `event` to one of the same data; false where there is none.
pub(crate) fn join(events: &mut [Event], event: Event) -> bool {
    let data = event.data.u64();
    let Some(same) = events.iter_mut().find(|other| other.data.u64() == data) else { return false };
    // A field of a packed structure is copied, not borrowed.
    let flags = same.flags;
    same.flags = flags | event.flags;
    true
}
