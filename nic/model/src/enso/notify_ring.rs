//! A ring of notifications: that of one pipe, or of several whose queues name its owner.
//!
//! The host polls one place for all of them. It takes notifications in their order, so one that it has seen says that it
//! has seen those before. Of each pipe at most one is under way that it has not ([`super::rx_pipe`]), and a ring has an
//! entry for each of its pipes, so none overwrites another. A pipe whose queue stops may leave one behind that nobody
//! answers for: its entry stays taken until a later one was seen, and where entries run out no further pipe joins.
//!
//! From: pipes. To: host memory. Sadok et al., OSDI'23 (one notification buffer for the pipes of a thread).

use beeline_spec::WORD_BYTES;
use beeline_spec::pipe::Notification;

use crate::engine::{Cause, QueueSettings, Shared};

/// Longest ring of notifications.
const MAX_NOTIFICATIONS: u32 = 1 << 16;

/// The ring of a started queue. Counts are absolute: `seen <= written <= seen + entries`.
#[derive(Debug)]
pub(crate) struct NotifyRing {
    address: u64,
    entries: u32,
    written: u64,
    /// Those that the host is known to have taken.
    seen: u64,
    /// Pipes that it tells of.
    pipes: usize,
    /// Notifications of pipes that have left, which the host is not known to have taken.
    left_behind: Vec<u64>,
}

impl NotifyRing {
    /// The ring of a queue, which tells of its pipe.
    pub(super) fn new(settings: &QueueSettings) -> Result<Self, Cause> {
        let (address, entries) = (settings.rx_completion_address, settings.rx_notify_entries);
        if !entries.is_power_of_two() || entries > MAX_NOTIFICATIONS {
            return Err(Cause::BadLength);
        }
        let bytes = u64::from(entries) * WORD_BYTES as u64;
        if !address.is_multiple_of(WORD_BYTES as u64) || address.checked_add(bytes).is_none() {
            return Err(Cause::DmaError);
        }
        Ok(NotifyRing { address, entries, written: 0, seen: 0, pipes: 1, left_behind: Vec::new() })
    }

    /// One more pipe; `false` when there is no entry for it.
    pub(super) fn join(&mut self) -> bool {
        let seen = self.seen;
        self.left_behind.retain(|index| *index >= seen);
        let has_room = self.pipes + self.left_behind.len() < self.entries as usize;
        self.pipes += usize::from(has_room);
        has_room
    }

    /// A pipe goes, and with it who would say that its last notification was seen, if one is under way.
    pub(super) fn leave(&mut self, under_way: Option<u64>) {
        self.pipes -= 1;
        self.left_behind.extend(under_way.filter(|index| *index >= self.seen));
    }

    /// The host has taken a notification, and so those before it.
    pub(super) fn saw(&mut self, index: u64) {
        self.seen = self.seen.max(index + 1);
    }

    /// Writes the next notification and gives its index. `None`: the DMA port has no room.
    pub(super) fn write(&mut self, notification: Notification, shared: &mut Shared) -> Option<u64> {
        debug_assert!(self.written - self.seen < u64::from(self.entries), "an entry for each pipe");
        let index = self.written;
        let word = notification.encode(index, self.entries);
        let slot = index & u64::from(self.entries - 1);
        let done = shared.dma.write(self.address + slot * WORD_BYTES as u64, &word.to_le_bytes());
        if !done {
            return None;
        }
        shared.counters.notifications += 1;
        self.written += 1;
        Some(index)
    }
}

/// The rings of all queues: of each that has a pipe and no other queue's ring.
#[derive(Debug)]
pub(crate) struct NotifyRings {
    rings: Box<[Option<NotifyRing>]>,
}

impl NotifyRings {
    pub(crate) fn new(queues: usize) -> Self {
        NotifyRings { rings: (0..queues).map(|_| None).collect() }
    }

    /// A queue with a pipe starts: makes its ring, or finds it a place in that of the owner it names.
    pub(crate) fn start(
        &mut self,
        queue: usize,
        settings: &QueueSettings,
        shared: &mut Shared,
    ) -> Result<(), Cause> {
        let Some(owner) = settings.rx_notify_owner else {
            self.rings[queue] = Some(NotifyRing::new(settings)?);
            return Ok(());
        };
        let owned = self.of(owner.0);
        if owned.is_some_and(NotifyRing::join) {
            return Ok(());
        }
        shared.counters.bad_accesses += 1;
        Err(Cause::NoRing)
    }

    #[inline]
    pub(crate) fn of(&mut self, owner: u16) -> Option<&mut NotifyRing> {
        self.rings.get_mut(usize::from(owner))?.as_mut()
    }

    /// The owner stops: nothing is written to its memory from here on.
    pub(crate) fn stop(&mut self, owner: u16) {
        self.rings[usize::from(owner)] = None;
    }
}
