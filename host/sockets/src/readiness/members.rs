//! The connections of a set, and the list of those that may have news: only these are looked at by a wait.

use std::collections::HashMap;
use std::os::fd::RawFd;

use rustix::event::epoll::Event;

use super::member::Member;
use super::watched::Watched;

#[derive(Debug)]
pub(crate) struct Members<W> {
    by_number: HashMap<RawFd, Member<W>>,
    /// Numbers of those whose windows may have something. A byte for each window that says so comes in [`Watched::has_news`], which is all that
    /// is asked of a member that has none.
    active: Vec<RawFd>,
    /// Where the next wait begins in the list: behind the last that was reported.
    next: usize,
}

impl<W: Watched> Members<W> {
    pub(crate) fn new() -> Self {
        Members { by_number: HashMap::new(), active: Vec::new(), next: 0 }
    }

    pub(crate) fn get_mut(&mut self, number: RawFd) -> Option<&mut Member<W>> {
        self.by_number.get_mut(&number)
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = RawFd> {
        self.by_number.keys().copied()
    }

    pub(crate) fn connections(&self) -> impl Iterator<Item = RawFd> {
        self.by_number.iter().filter(|(_, member)| member.watched().is_some()).map(|(number, _)| *number)
    }

    pub(crate) fn has_data(&self, data: u64) -> bool {
        self.by_number.values().any(|member| member.data() == data)
    }

    pub(crate) fn insert(&mut self, number: RawFd, member: Member<W>) {
        self.by_number.insert(number, member);
    }

    pub(crate) fn active_count(&self) -> usize {
        self.active.len()
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
            self.active.push(number);
        }
    }

    /// Takes a member out of the list, and the sleeper from its sender.
    fn deactivate(&mut self, number: RawFd, sleeper: Option<&W::Sleeper>) {
        let Some(member) = self.by_number.get_mut(&number) else { return };
        member.leave_sleeper(sleeper);
        let Some(at) = member.active_at.take() else { return };
        self.active.swap_remove(at);
        if let Some(moved) = self.active.get(at).and_then(|moved| self.by_number.get_mut(moved)) {
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
        self.next = 0;
    }

    /// Takes the sleeper from every member, which then has nobody to ring.
    pub(crate) fn leave_sleepers(&mut self, sleeper: Option<&W::Sleeper>) {
        self.by_number.values_mut().for_each(|member| member.leave_sleeper(sleeper));
    }

    /// Takes those out of the list whose windows have ended. Says whether one that stays has nobody to ring.
    pub(crate) fn prune(&mut self, sleeper: Option<&W::Sleeper>) -> bool {
        let mut lacks = false;
        let mut at = 0;
        while let Some(number) = self.active.get(at).copied() {
            let Some(member) = self.by_number.get(&number) else { break };
            if member.watched().is_some_and(|watched| watched.may_have_news() || watched.has_news()) {
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
        self.active.iter().any(|number| by_number.get_mut(number).is_some_and(Member::is_reportable))
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
            let at = (first + visited) % count;
            visited += 1;
            let Some(event) = self.by_number.get_mut(&self.active[at]).and_then(Member::take) else {
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
