//! From the cores to the wire: latency, a packet at a time, lines that are merged.

use std::collections::VecDeque;

use super::RootSettings;
use crate::des::Picoseconds;
use crate::pcie::{Class, Tlp};

const LINE_BYTES: u32 = 64;

/// Packets of the cores on their way through the root complex, in the order in which they are ready.
#[derive(Debug)]
pub struct Outbound {
    queue: VecDeque<(Picoseconds, Tlp)>,
    /// Places that are taken: by packets here, and by those that the link has not taken yet.
    taken: usize,
    places: usize,
    next_at: Picoseconds,
    /// Since when the link has taken all writes that it was given.
    clear_since: Picoseconds,
    /// When an event will come to send, if one will.
    scheduled: Option<Picoseconds>,
}

/// What leaves next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// The first packet, now: [`Outbound::pop`] is to follow. If two lines were merged, the body of the second.
    Packet(Option<u32>),
    /// Nothing can leave before this time.
    Later(Picoseconds),
    Nothing,
}

impl Outbound {
    /// Empty.
    pub fn new(settings: &RootSettings) -> Self {
        Outbound {
            queue: VecDeque::new(),
            taken: 0,
            places: settings.write_places.max(1),
            next_at: Picoseconds::ZERO,
            clear_since: Picoseconds::ZERO,
            scheduled: None,
        }
    }

    /// Whether a core may hand over one more.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.taken < self.places
    }

    /// A packet left a core and is ready at `ready`. Cores run ahead of each other, so it may be before others.
    #[inline]
    pub fn enter(&mut self, ready: Picoseconds, tlp: Tlp) {
        self.taken += 1;
        let mut at = self.queue.len();
        while at > 0 && self.queue[at - 1].0 > ready {
            at -= 1;
        }
        if at == self.queue.len() {
            self.queue.push_back((ready, tlp))
        } else {
            self.queue.insert(at, (ready, tlp))
        }
    }

    /// When an event is to be scheduled for the first packet, if none is that comes in time. It is `now` at the earliest, and
    /// not before the wire is free: until then the packet would only wait at another place.
    #[inline]
    pub fn to_schedule(&mut self, now: Picoseconds, wire_free_at: Picoseconds) -> Option<Picoseconds> {
        let at = self.queue.front()?.0.max(self.next_at).max(wire_free_at).max(now);
        if self.scheduled.is_some_and(|scheduled| scheduled <= at) {
            return None;
        }
        self.scheduled = Some(at);
        Some(at)
    }

    /// An event that was scheduled for `now` happens.
    #[inline]
    pub fn woken(&mut self, now: Picoseconds) {
        // It may have been scheduled for a time that was over when the core told of the packet.
        if self.scheduled.is_some_and(|at| at <= now) {
            self.scheduled = None;
        }
    }

    /// The packet that leaves at `now`, or that left before and was not asked for because the wire was busy.
    #[inline]
    pub fn take(&mut self, now: Picoseconds, settings: &RootSettings) -> Outgoing {
        let Some((ready, _)) = self.queue.front() else { return Outgoing::Nothing };
        let at = self.next_at.max(*ready);
        if at > now {
            return Outgoing::Later(at);
        }
        let at = at.max(self.clear_since);
        self.next_at = at + settings.write_interval;
        Outgoing::Packet(if settings.merges { self.merge(at) } else { None })
    }

    /// The packet that leaves, of two lines if two were merged.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn pop(&mut self) -> Tlp {
        // Copied from where it lies, as a link does it.
        let first = self.queue.front().expect("a packet that leaves").1;
        self.queue.pop_front();
        first
    }

    /// A packet has left for the wire at `now`; its places are free.
    #[inline]
    pub fn left(&mut self, now: Picoseconds, tlp: &Tlp) {
        // Of writes the link has one at a time.
        if tlp.kind.class() == Class::Posted {
            self.clear_since = now;
        }
        self.taken -= if tlp.kind.has_data() && tlp.length_bytes > LINE_BYTES { 2 } else { 1 };
    }

    /// Places that are taken: by packets that wait here, and by those that the link has not taken yet.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Packets that wait here.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Joins the second packet to the first if both are lines that make up 128 bytes. Returns the body of the second.
    fn merge(&mut self, now: Picoseconds) -> Option<u32> {
        let ((_, first), (ready, second)) = (self.queue.front()?, self.queue.get(1)?);
        // Of one core, to which both are acknowledged.
        let is_line = |tlp: &Tlp| {
            let is_alike = tlp.kind == first.kind && tlp.requester == first.requester;
            is_alike && tlp.kind.has_data() && tlp.length_bytes == LINE_BYTES
        };
        let joins = first.address.is_multiple_of(2 * u64::from(LINE_BYTES))
            && second.address == first.address + u64::from(LINE_BYTES);
        if !(joins && is_line(first) && is_line(second) && *ready <= now) {
            return None;
        }
        let (_, second) = self.queue.remove(1)?;
        self.queue.front_mut()?.1.length_bytes = 2 * LINE_BYTES;
        Some(second.body)
    }
}
