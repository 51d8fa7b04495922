//! What is going to happen, in order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::Picoseconds;

/// Events that are kept sorted, at most.
const MOST_NEAR: usize = 32;

/// Events that are scheduled, and the time it is.
///
/// Events leave by time; those of one time in the order in which they were scheduled. The next few are kept sorted, where
/// one that is scheduled moves past those before it: most models have no more than these. Others wait in a heap, at
/// O(log n) comparisons of two words, with n the events that are scheduled and have not happened; memory grows to the
/// largest n and stays. An event cannot be taken back: who does not want it any more keeps a generation number in it, and
/// ignores it when it happens.
pub struct Calendar<E> {
    /// The next events, the first of them last. All happen before those of the heap; there is one, unless there is none.
    near: Vec<Entry<E>>,
    heap: BinaryHeap<Entry<E>>,
    now: Picoseconds,
    /// Scheduled so far; the number of the next entry.
    scheduled: u64,
    happened: u64,
}

impl<E> Default for Calendar<E> {
    fn default() -> Self {
        Calendar::new()
    }
}

impl<E> Calendar<E> {
    /// An empty calendar, at time zero.
    pub fn new() -> Self {
        Calendar {
            near: Vec::with_capacity(MOST_NEAR),
            heap: BinaryHeap::with_capacity(64),
            now: Picoseconds::ZERO,
            scheduled: 0,
            happened: 0,
        }
    }

    /// The time it is.
    #[inline]
    pub fn now(&self) -> Picoseconds {
        self.now
    }

    /// `event` happens at `at`, after all that was scheduled for that time before.
    ///
    /// # Panics
    /// If `at` is over: a cause after its effect is an error in the model, not a state that it can go on from.
    #[inline]
    pub fn schedule(&mut self, at: Picoseconds, event: E) {
        assert!(at >= self.now, "an event at {at} was scheduled at {}; schedule it now or later", self.now);
        let entry = Entry { at, number: self.scheduled, event };
        self.scheduled += 1;
        if self.near.len() == MOST_NEAR {
            self.make_room();
        }
        // One that is scheduled now is behind all others of its time: the first of those that are not later is next.
        let place = self.near.iter().position(|other| other.at <= at).unwrap_or(self.near.len());
        if place == 0 && !self.heap.is_empty() {
            self.heap.push(entry);
        } else {
            self.near.insert(place, entry);
        }
    }

    /// `event` happens `span` from now.
    #[inline]
    pub fn schedule_in(&mut self, span: Picoseconds, event: E) {
        self.schedule(self.now + span, event);
    }

    /// The next event, which happens now: time moves to it. `None` if nothing is scheduled.
    #[inline]
    pub fn next_event(&mut self) -> Option<E> {
        let Entry { at, event, .. } = self.near.pop()?;
        if self.near.is_empty() && !self.heap.is_empty() {
            self.fetch();
        }
        self.now = at;
        self.happened += 1;
        Some(event)
    }

    /// As [`Calendar::next_event`], but `None` and no change if it is later than `until`.
    #[inline]
    pub fn next_until(&mut self, until: Picoseconds) -> Option<E> {
        if self.next_at()? > until {
            return None;
        }
        self.next_event()
    }

    /// When the next event happens, if any is scheduled.
    #[inline]
    pub fn next_at(&self) -> Option<Picoseconds> {
        self.near.last().map(|entry| entry.at)
    }

    /// Moves time on to `to`, where nothing happens on the way. Earlier times are ignored.
    ///
    /// # Panics
    /// If something is scheduled before `to`.
    pub fn pass_to(&mut self, to: Picoseconds) {
        if let Some(at) = self.next_at() {
            assert!(at >= to, "time was to pass to {to}, over an event at {at}; let it happen first");
        }
        self.now = self.now.max(to);
    }

    /// Events that have happened so far.
    #[inline]
    pub fn happened(&self) -> u64 {
        self.happened
    }

    /// Events that are scheduled and have not happened.
    #[inline]
    pub fn len(&self) -> usize {
        self.near.len() + self.heap.len()
    }

    /// Whether nothing is scheduled.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.near.is_empty()
    }

    /// The latest half of those that are near go to the heap.
    #[cold]
    fn make_room(&mut self) {
        self.heap.extend(self.near.drain(..MOST_NEAR / 2));
    }

    /// The first few of the heap come near.
    #[cold]
    fn fetch(&mut self) {
        self.near.extend(std::iter::from_fn(|| self.heap.pop()).take(MOST_NEAR / 2));
        self.near.reverse();
    }
}

/// One event in the heap, which has the largest on top: the order is the reverse of time's.
struct Entry<E> {
    at: Picoseconds,
    number: u64,
    event: E,
}

impl<E> Entry<E> {
    /// Time and number as one integer: one comparison without a branch.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.at.0) << 64 | u128::from(self.number)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}
