//! What goes out: frames kept until they are acknowledged, what is missing, and when it is sent again.
//!
//! Frames lie ready to leave in a ring; a transmission stamps the newest acknowledgement and hands the frame to the
//! up-link. Each transmission has a place in an order of its own, repeats included. A frame is missing when one that
//! left more than [`REORDER_DEGREE`] places later has arrived, or one that left half a time-out later: so frames may
//! overtake one another by that many places and nothing is repeated in vain. The first frame is missing, too, when
//! nothing was acknowledged for a whole time-out (RFC 6298); that is the caller's watch.
//!
//! From: `connection/`. To: the up-link, through [`Wire`].

use crate::header::{self, Kind, Numbers, Template, stamp};
use crate::ring::{REORDER_DEGREE, stride};
use crate::round_trip::RoundTrip;
use crate::sequence::{Sequence, Session};
use crate::time::Nanos;
use crate::{HEAD_BYTES, MOST_WINDOW};

const SLOTS: usize = MOST_WINDOW as usize;

/// A sink of frames.
pub(crate) trait Wire {
    /// Takes a frame; `false`: there is no room for it now.
    fn put(&mut self, frame: &[u8]) -> bool;
}

/// A frame in the ring.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    frame_bytes: u16,
    /// Times it left.
    transmissions: u16,
    /// When it left last, and its place among all transmissions then.
    sent_at: Nanos,
    order: u64,
}

/// Result of an attempt to send a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The frame left for the first time.
    Fresh,
    Again,
    /// The up-link has no room for it now.
    Refused,
}

/// Effects of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Frames that are acknowledged for good now.
    pub(crate) acknowledged: u32,
    /// A round trip in nanoseconds, if a frame that left once only was among them.
    pub(crate) round_trip_ns: Option<u64>,
    /// Frames found missing.
    pub(crate) lost: u32,
    /// Among those found missing are some that left after the last time any were.
    pub(crate) is_new_loss: bool,
}

/// One side's sending half.
#[derive(Debug)]
pub(crate) struct Outbox {
    ring: Box<[u8]>,
    stride: usize,
    slots: [Slot; SLOTS],
    /// The earliest number not acknowledged.
    first: Sequence,
    /// The earliest number that never left.
    fresh: Sequence,
    /// The number that the next message gets.
    end: Sequence,
    /// The other side has room for numbers before this one.
    edge: Sequence,
    window: u32,
    /// Bit i: number `first + i` arrived.
    arrived: u64,
    /// Bit i: number `first + i` left and is missing; it leaves again as soon as it may.
    missing: u64,
    /// Transmissions made.
    order: u64,
    /// The latest transmission known to have arrived: its place, and when it was made.
    latest: (u64, Nanos),
    /// Losses among transmissions before this place are one event.
    loss_event: u64,
    /// Numbers from here on left at most once.
    repeated_before: Sequence,
    /// The last number with which an answer was asked for because it filled the window.
    asked: Sequence,
}

impl Outbox {
    pub(crate) fn new(ours: Session, window: u8, message_bytes: usize) -> Self {
        let stride = stride(HEAD_BYTES + message_bytes);
        let first = Sequence::first(ours);
        Outbox {
            ring: vec![0; stride * SLOTS].into_boxed_slice(),
            stride,
            slots: [Slot::default(); SLOTS],
            first,
            fresh: first,
            end: first,
            edge: first,
            window: window.into(),
            arrived: 0,
            missing: 0,
            order: 0,
            latest: (0, Nanos(0)),
            loss_event: 0,
            repeated_before: first,
            asked: before(first),
        }
    }

    /// Starts afresh under another session, in the same memory.
    pub(crate) fn reset(&mut self, ours: Session) {
        let first = Sequence::first(ours);
        (self.first, self.fresh, self.end, self.edge) = (first, first, first, first);
        (self.arrived, self.missing, self.order, self.loss_event) = (0, 0, 0, 0);
        (self.latest, self.repeated_before, self.asked) = ((0, Nanos(0)), first, before(first));
    }

    /// The other side has room for so many messages that were not acknowledged.
    pub(crate) fn give_room(&mut self, room: u8) {
        // The edge never goes back: an answer that was overtaken names an older one.
        self.edge = self.edge.max(self.first.plus(room.into()));
    }

    /// Messages under way that this side allows itself.
    #[inline]
    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    /// Whether one more message is taken.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.end.since(self.first) < self.window && self.end < self.edge
    }

    /// Whether the other side, and not this side's own window, is what stops one more.
    pub(crate) fn is_held_back(&self) -> bool {
        self.end >= self.edge
    }

    /// Puts a message into the ring. There must be room, in the window and in the frame.
    #[inline]
    pub(crate) fn push(&mut self, template: &Template, kind: Kind, head: &[u8], rest: &[u8]) {
        debug_assert!(self.end.since(self.first) < SLOTS as u32);
        let message_bytes = head.len() + rest.len();
        let frame_bytes = HEAD_BYTES + message_bytes;
        let slot = self.end.slot();
        let frame = &mut self.ring[slot * self.stride..][..frame_bytes];
        let (front, message) = frame.split_at_mut(HEAD_BYTES);
        front.copy_from_slice(&template.head(kind, self.end.wire(), message_bytes as u16));
        let (first, second) = message.split_at_mut(head.len());
        first.copy_from_slice(head);
        second.copy_from_slice(rest);
        self.slots[slot] = Slot { frame_bytes: frame_bytes as u16, ..Slot::default() };
        self.end = self.end.plus(1);
    }

    /// Whether a frame waits to leave.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.missing != 0 || self.fresh != self.end
    }

    /// Sends one frame, a missing one before a fresh one. `None`: none waits.
    #[inline]
    pub(crate) fn transmit(
        &mut self,
        mut numbers: Numbers,
        now: Nanos,
        wire: &mut impl Wire,
    ) -> Option<Left> {
        let is_repeat = self.missing != 0;
        let sequence = match is_repeat {
            true => self.first.plus(self.missing.trailing_zeros()),
            false if self.fresh != self.end => self.fresh,
            false => return None,
        };
        let index = sequence.slot();
        let slot = &mut self.slots[index];
        let frame = &mut self.ring[index * self.stride..][..usize::from(slot.frame_bytes)];
        // The other side is asked not to wait when this side can do nothing until it answers; but not for every
        // message of a stream that keeps the window full.
        let fills = sequence.plus(1) == self.end
            && (self.end.since(self.first) >= self.window || self.end >= self.edge)
            && sequence.since(self.asked) >= self.end.since(self.first).div_ceil(4);
        numbers.wants_answer |= is_repeat || fills;
        if let Some(head) = frame.first_chunk_mut::<{ header::BYTES }>() {
            stamp(head, numbers);
        }
        if !wire.put(frame) {
            return Some(Left::Refused);
        }
        self.order += 1;
        slot.transmissions = slot.transmissions.saturating_add(1);
        (slot.sent_at, slot.order) = (now, self.order);
        if fills {
            self.asked = sequence;
        }
        if is_repeat {
            self.missing &= self.missing - 1;
            self.repeated_before = self.repeated_before.max(sequence.plus(1));
            Some(Left::Again)
        } else {
            self.fresh = sequence.plus(1);
            Some(Left::Fresh)
        }
    }

    /// Takes an acknowledgement: numbers before `number` arrived, and those that `selective` names. `None`: it names
    /// what never left, and nothing of it is believed.
    #[inline]
    pub(crate) fn acknowledge(
        &mut self,
        number: u32,
        selective: u64,
        room: u8,
        trip: &RoundTrip,
        now: Nanos,
    ) -> Option<Progress> {
        let ahead = self.first.distance(number);
        let under_way = self.fresh.since(self.first);
        if ahead < 0 {
            // An older one that was overtaken: what it says is known, since what arrived stays arrived.
            return Some(Progress::default());
        }
        let count = ahead as u32;
        let left = under_way.checked_sub(count)?;
        // Bit i is number + 1 + i, and nothing from `left` on has left.
        if selective.checked_shr(left.saturating_sub(1)).unwrap_or(0) != 0 {
            return None;
        }
        let mut progress = Progress { acknowledged: count, ..Progress::default() };
        let has_repeats = self.first < self.repeated_before;
        if count > 0 {
            self.forget(count, trip, now, &mut progress);
        }
        self.give_room(room);
        let news = (selective << 1) & !self.arrived;
        if news != 0 {
            self.note_all(news, trip, now, &mut progress);
        }
        if self.arrived != 0 || has_repeats {
            self.find_missing(trip, &mut progress);
        }
        Some(progress)
    }

    /// Frees the first `count` numbers.
    #[inline]
    fn forget(&mut self, count: u32, trip: &RoundTrip, now: Nanos, progress: &mut Progress) {
        let these = u64::MAX.checked_shr(64 - count).unwrap_or(u64::MAX);
        self.note_all(these & !self.arrived, trip, now, progress);
        self.first = self.first.plus(count);
        self.arrived = self.arrived.checked_shr(count).unwrap_or(0);
        self.missing = self.missing.checked_shr(count).unwrap_or(0);
    }

    /// Notes that the numbers of these bits arrived.
    #[inline]
    fn note_all(&mut self, bits: u64, trip: &RoundTrip, now: Nanos, progress: &mut Progress) {
        let mut left = bits;
        while left != 0 {
            let slot = &self.slots[self.first.plus(left.trailing_zeros()).slot()];
            left &= left - 1;
            let elapsed = now.since(slot.sent_at);
            let is_single = slot.transmissions == 1;
            if is_single {
                // Karn: only of these is it known which transmission is acknowledged. The last one waited least.
                progress.round_trip_ns = Some(elapsed);
            }
            // An answer that comes sooner after a repeat than any ever did answers an earlier transmission.
            if (is_single || elapsed >= trip.least_seen_ns()) && slot.order > self.latest.0 {
                self.latest = (slot.order, slot.sent_at);
            }
        }
        self.arrived |= bits;
        self.missing &= !bits;
    }

    /// Finds frames in front of which others arrived that left too long after them.
    fn find_missing(&mut self, trip: &RoundTrip, progress: &mut Progress) {
        let (latest_order, latest_at) = self.latest;
        let long_ns = trip.plain_timeout_ns() / 2;
        for index in 0..self.fresh.since(self.first) {
            let bit = 1 << index;
            let slot = &self.slots[self.first.plus(index).slot()];
            let is_overtaken = slot.order + REORDER_DEGREE < latest_order
                || (slot.order < latest_order && latest_at.since(slot.sent_at) >= long_ns);
            if (self.arrived | self.missing) & bit == 0 && is_overtaken {
                self.missing |= bit;
                progress.lost += 1;
                progress.is_new_loss |= slot.order >= self.loss_event;
            }
        }
        if progress.is_new_loss {
            self.loss_event = self.order + 1;
        }
    }

    /// Nothing was acknowledged in time: the first frame is missing. `false` if none is under way.
    pub(crate) fn time_out(&mut self) -> bool {
        let is_under_way = self.is_under_way();
        if is_under_way {
            self.missing |= 1;
            self.loss_event = self.order + 1;
        }
        is_under_way
    }

    /// Whether frames left that were not acknowledged.
    #[inline]
    pub(crate) fn is_under_way(&self) -> bool {
        self.fresh != self.first
    }

    /// Messages taken and not acknowledged.
    #[inline]
    pub(crate) fn unacknowledged(&self) -> u32 {
        self.end.since(self.first)
    }

    /// The number that the next message gets.
    pub(crate) fn end(&self) -> Sequence {
        self.end
    }
}

/// A number a window before the first, as if an answer had been asked for long ago.
fn before(first: Sequence) -> Sequence {
    first.minus(MOST_WINDOW.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, Config, MacAddress};

    const OURS: Session = Session(0x7_ffff_fffd);

    /// Frames that left, by number and by whether an answer was asked for.
    #[derive(Default)]
    struct Log(Vec<(u32, bool)>);

    impl Wire for Log {
        fn put(&mut self, frame: &[u8]) -> bool {
            let there = Address::from(MacAddress([2, 0, 0, 0, 0, 2]));
            let head = header::Head::read(frame, there).unwrap();
            self.0.push((head.number.wrapping_sub(OURS.0 as u32), head.wants_answer));
            true
        }
    }

    struct Bench {
        outbox: Outbox,
        trip: RoundTrip,
        log: Log,
    }

    impl Bench {
        fn new(window: u8, room: u8) -> Self {
            let config = Config::client(MacAddress([2, 0, 0, 0, 0, 1]));
            let mut outbox = Outbox::new(OURS, window, 16);
            outbox.give_room(room);
            Bench { outbox, trip: RoundTrip::new(&config), log: Log::default() }
        }

        /// Sends all there is room for, at this time; gives what left.
        fn fill(&mut self, now: Nanos) -> Vec<(u32, bool)> {
            let [here, there] = [1, 2].map(|last| Address::from(MacAddress([2, 0, 0, 0, 0, last])));
            let template = Template::new(here, there, OURS, Session(1));
            while self.outbox.has_room() {
                self.outbox.push(&template, Kind::Data, b"x", b"");
                while self.outbox.transmit(Numbers::default(), now, &mut self.log).is_some() {}
            }
            while self.outbox.transmit(Numbers::default(), now, &mut self.log).is_some() {}
            std::mem::take(&mut self.log.0)
        }

        fn acknowledge(&mut self, number: u32, selective: u64, room: u8, now: Nanos) -> Option<Progress> {
            let number = (OURS.0 as u32).wrapping_add(number);
            self.outbox.acknowledge(number, selective, room, &self.trip, now)
        }
    }

    #[test]
    fn full_window_or_a_quarter_of_it_asks_for_an_acknowledgement() {
        let mut bench = Bench::new(8, 64);
        let asked: Vec<u32> =
            bench.fill(Nanos(0)).into_iter().filter(|(_, asks)| *asks).map(|f| f.0).collect();
        assert_eq!(asked, [7]);
        for number in 1..=4 {
            bench.acknowledge(number, 0, 64, Nanos(1000)).unwrap();
            let left = bench.fill(Nanos(1000));
            assert_eq!(left, [(7 + number, number % 2 == 0)], "once a quarter of the window");
        }
    }

    #[test]
    fn room_that_was_told_is_not_taken_back_by_an_older_word() {
        let mut bench = Bench::new(64, 4);
        assert_eq!(bench.fill(Nanos(0)).len(), 4);
        bench.acknowledge(2, 0, 6, Nanos(10)).unwrap();
        bench.acknowledge(2, 0, 2, Nanos(10)).unwrap();
        assert_eq!(bench.fill(Nanos(10)).len(), 4, "room for 2 + 6");
        assert!(bench.outbox.is_held_back());
    }

    #[test]
    fn what_never_left_cannot_be_acknowledged() {
        let mut bench = Bench::new(8, 64);
        bench.fill(Nanos(0));
        assert!(bench.acknowledge(9, 0, 64, Nanos(1)).is_none());
        assert!(bench.acknowledge(8, 1, 64, Nanos(1)).is_none());
        assert!(bench.acknowledge(0, 1 << 7, 64, Nanos(1)).is_none(), "number 8");
        assert_eq!(bench.acknowledge(0, 1 << 6, 64, Nanos(1)).map(|p| p.acknowledged), Some(0), "number 7");
        assert_eq!(bench.acknowledge(8, 0, 64, Nanos(1)).map(|p| p.acknowledged), Some(8));
        assert!(!bench.outbox.is_under_way());
    }

    #[test]
    fn an_acknowledgement_that_comes_too_soon_is_of_the_first_transmission() {
        let mut bench = Bench::new(16, 64);
        bench.trip.measured(100_000);
        bench.fill(Nanos(0));
        // The time-out was too short: everything arrived, and is only late.
        assert!(bench.outbox.time_out());
        assert_eq!(bench.fill(Nanos(1_000_000)), [(0, true)]);
        let progress = bench.acknowledge(1, 0, 64, Nanos(1_000_100)).unwrap();
        assert_eq!((progress.acknowledged, progress.lost, progress.round_trip_ns), (1, 0, None));
        // Had it taken a round trip, the repeat would have been what arrived, and the others would be missing.
        let mut bench = Bench::new(16, 64);
        bench.trip.measured(100_000);
        bench.fill(Nanos(0));
        assert!(bench.outbox.time_out());
        bench.fill(Nanos(1_000_000));
        assert_eq!(bench.acknowledge(1, 0, 64, Nanos(1_100_000)).unwrap().lost, 15);
    }
}
