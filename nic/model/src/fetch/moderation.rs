//! When something that may wait is due: after so many events, or so much time after the first of them.
//!
//! One rule for completions, receive interrupts and the credits of kPIO+WC: a count that is reached makes it due at
//! once; a time makes it due when the oldest event has waited that long. Where no time is set, an owner that has
//! nothing more to do reports at once, because no later event would.

use beeline_contract_device::SimTime;

/// Events that have not been reported.
#[derive(Clone, Debug)]
pub(crate) struct Moderation {
    events: u32,
    wait: SimTime,
    pending: u32,
    /// When the oldest pending event happened.
    since: SimTime,
}

impl Moderation {
    /// Due after `events` (0 counts as 1) or, unless it is 0, `time_ns`.
    pub(crate) fn new(events: u32, time_ns: u32) -> Self {
        let wait = SimTime::from_ns(u64::from(time_ns));
        Moderation { events: events.max(1), wait, pending: 0, since: SimTime(0) }
    }

    /// `count` more events happened.
    #[inline]
    pub(crate) fn note(&mut self, count: u32, now: SimTime) {
        if self.pending == 0 {
            self.since = now;
        }
        self.pending = self.pending.saturating_add(count);
    }

    /// Whether a report is due. `is_idle`: the owner has nothing under way that would bring another event.
    #[inline]
    pub(crate) fn is_due(&self, now: SimTime, is_idle: bool) -> bool {
        self.pending >= self.events
            || self.pending > 0 && if self.wait.0 == 0 { is_idle } else { now.0 >= self.deadline_or_max().0 }
    }

    /// Everything has been reported.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.pending = 0;
    }

    /// When the time alone makes a report due.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<SimTime> {
        (self.pending > 0 && self.wait.0 > 0).then(|| self.deadline_or_max())
    }

    fn deadline_or_max(&self) -> SimTime {
        SimTime(self.since.0.saturating_add(self.wait.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: SimTime = SimTime::from_ns(100);

    #[test]
    fn a_count_makes_it_due_at_once() {
        let mut moderation = Moderation::new(3, 0);
        moderation.note(2, NOW);
        assert!(!moderation.is_due(NOW, false));
        moderation.note(1, NOW);
        assert!(moderation.is_due(NOW, false));
        moderation.clear();
        assert!(!moderation.is_due(NOW, true));
        let mut each = Moderation::new(0, 0);
        each.note(1, NOW);
        assert!(each.is_due(NOW, false), "0 counts as 1");
    }

    #[test]
    fn without_a_time_idleness_makes_it_due() {
        let mut moderation = Moderation::new(8, 0);
        moderation.note(1, NOW);
        assert!(moderation.is_due(NOW, true) && !moderation.is_due(NOW, false));
        assert_eq!(moderation.deadline(), None);
    }

    #[test]
    fn the_oldest_event_waits_no_longer_than_the_time() {
        let mut moderation = Moderation::new(8, 50);
        moderation.note(1, NOW);
        moderation.note(1, SimTime::from_ns(149));
        assert_eq!(moderation.deadline(), Some(SimTime::from_ns(150)));
        assert!(!moderation.is_due(SimTime::from_ns(149), true), "idleness does not hurry a timer");
        assert!(moderation.is_due(SimTime::from_ns(150), false));
    }

    #[test]
    fn a_time_without_end_does_not_overflow() {
        let mut moderation = Moderation::new(8, u32::MAX);
        moderation.note(1, SimTime(u64::MAX - 1));
        assert!(!moderation.is_due(SimTime(u64::MAX - 1), true));
    }
}
