//! The ports of a device: what came and waits for its logic, what its logic wants and waits for the link.

use std::collections::VecDeque;

use super::DeviceSettings;
use crate::des::Picoseconds;
use crate::pcie::Tlp;

/// Things that happen one after the other, each at its time; only the first has an event.
#[derive(Debug)]
pub struct Line<T> {
    waiting: VecDeque<(Picoseconds, T)>,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Line { waiting: VecDeque::new() }
    }
}

impl<T> Line<T> {
    /// It happens at `at`, or with the one before it if that is later. Returns when, if an event is to be scheduled.
    #[inline]
    pub fn push(&mut self, at: Picoseconds, what: T) -> Option<Picoseconds> {
        let at = self.waiting.back().map_or(at, |(last, _)| at.max(*last));
        self.waiting.push_back((at, what));
        (self.waiting.len() == 1).then_some(at)
    }

    /// The first one, which happens now.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.waiting.front().map(|(_, what)| what)
    }

    /// The first one is done with. Returns when the next one happens.
    #[inline]
    pub fn drop_front(&mut self) -> Option<Picoseconds> {
        self.waiting.pop_front();
        self.waiting.front().map(|(at, _)| *at)
    }

    /// Takes the first one; and when the next one happens.
    #[inline]
    pub fn pop(&mut self) -> Option<(T, Option<Picoseconds>)> {
        let (_, what) = self.waiting.pop_front()?;
        Some((what, self.waiting.front().map(|(at, _)| *at)))
    }

    /// Whether the first one happens by `now`.
    #[inline]
    pub fn is_due(&self, now: Picoseconds) -> bool {
        self.waiting.front().is_some_and(|(at, _)| *at <= now)
    }

    /// Returns when the last one happens.
    pub fn last_at(&self) -> Option<Picoseconds> {
        self.waiting.back().map(|(at, _)| *at)
    }

    /// Returns how many are waiting.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether nothing is waiting.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// Something that does one thing at a time.
#[derive(Debug, Default)]
pub struct Server {
    free: Picoseconds,
}

impl Server {
    /// It begins at `at` or when it is free, and is free again after `span`. Returns when it begins.
    #[inline]
    pub fn begin(&mut self, at: Picoseconds, span: Picoseconds) -> Picoseconds {
        let start = at.max(self.free);
        self.free = start + span;
        start
    }

    /// Returns when everything that was begun is done.
    #[inline]
    pub fn free_at(&self) -> Picoseconds {
        self.free
    }
}

/// Everything of a device that takes time.
#[derive(Debug)]
pub struct Ports {
    /// Writes and loads that came, until the logic has seen them.
    pub incoming: Line<Tlp>,
    intake: Server,
    /// Read requests that wait for a tag or for the engine.
    pub requests: Line<Tlp>,
    request_engine: Server,
    free_tags: Vec<u16>,
    /// Whether a request waits for a tag.
    pub awaits_tag: bool,
    /// Data of reads on their way to the logic, by the number of the read.
    pub data: Line<u32>,
    path_in: Server,
    path_out: Server,
    /// What both paths pass through.
    shared: Server,
    /// Writes and interrupts.
    pub outgoing: Line<Tlp>,
    /// Answers to loads. A write may pass them, and does while its register is read; they pass no write in front of them
    /// (Base Specification, table of ordering rules: a completion without relaxed ordering).
    pub answers: Line<Tlp>,
    write_engine: Server,
}

impl Ports {
    /// Idle ports.
    pub fn new(settings: &DeviceSettings) -> Self {
        Ports {
            incoming: Line::default(),
            intake: Server::default(),
            requests: Line::default(),
            request_engine: Server::default(),
            free_tags: (0..settings.read_tags.max(1)).rev().collect(),
            awaits_tag: false,
            data: Line::default(),
            path_in: Server::default(),
            path_out: Server::default(),
            shared: Server::default(),
            outgoing: Line::default(),
            answers: Line::default(),
            write_engine: Server::default(),
        }
    }

    /// A write or a load came.
    #[inline]
    pub fn came(&mut self, now: Picoseconds, tlp: Tlp, settings: &DeviceSettings) -> Option<Picoseconds> {
        let span = if tlp.kind.has_data() {
            settings.ingress_interval.max(settings.ingress_rate.time(tlp.length_bytes.into()))
        } else {
            Picoseconds::ZERO
        };
        let start = self.intake.begin(now, span);
        // What a load costs inside is the register's affair; it only does not overtake the writes in front of it.
        let inside = if tlp.kind.has_data() { settings.ingress_latency } else { Picoseconds::ZERO };
        self.incoming.push(start + inside, tlp)
    }

    /// The logic wants a read request to leave.
    pub fn request(&mut self, now: Picoseconds, tlp: Tlp, settings: &DeviceSettings) -> Option<Picoseconds> {
        let start = self.request_engine.begin(now, settings.read_interval);
        let at = self.requests.push(start + settings.read_start, tlp);
        // With a request that waits for a tag in front, the tag is the event.
        at.filter(|_| !self.awaits_tag)
    }

    /// A tag for a request.
    pub fn take_tag(&mut self) -> Option<u16> {
        self.free_tags.pop()
    }

    /// A tag is free again.
    pub fn free_tag(&mut self, tag: u16) {
        self.free_tags.push(tag);
    }

    /// Tags that are free.
    pub fn tags_left(&self) -> usize {
        self.free_tags.len()
    }

    /// Packets that wait here, for the logic or for the link.
    pub fn waiting(&self) -> usize {
        self.incoming.len() + self.requests.len() + self.data.len() + self.outgoing.len() + self.answers.len()
    }

    /// The data of a read are all there.
    pub fn completed(
        &mut self,
        now: Picoseconds,
        read: u32,
        bytes: u64,
        settings: &DeviceSettings,
    ) -> Option<Picoseconds> {
        let span = settings.data_rate.time(bytes) + settings.read_transfer;
        let start = self.path_in.begin(now, span);
        let shared = settings.shared_rate.time(bytes) + settings.read_transfer;
        let passed = self.passed(start, shared, settings).max(start + span);
        self.data.push(passed + settings.read_finish, read)
    }

    /// The logic wants a packet of a write to leave.
    pub fn write(&mut self, now: Picoseconds, tlp: Tlp, settings: &DeviceSettings) -> Option<Picoseconds> {
        let start = self.write_engine.begin(now + settings.write_start, settings.write_interval);
        self.outgoing.push(start, tlp)
    }

    /// The data of a write pass the data path before its packets leave; returns when they have.
    pub fn store(&mut self, now: Picoseconds, bytes: u64, settings: &DeviceSettings) -> Picoseconds {
        let span = settings.data_rate.time(bytes);
        let start = self.path_out.begin(now, span);
        self.passed(start, settings.shared_rate.time(bytes), settings).max(start + span)
    }

    /// When a transfer that takes so long of what both paths share has passed it. Transfers pass in the order in which they are
    /// wanted, so that a device that wants many at once holds the other direction back by all of them.
    #[inline]
    fn passed(&mut self, start: Picoseconds, span: Picoseconds, settings: &DeviceSettings) -> Picoseconds {
        if settings.shared_rate.is_unlimited() { start } else { self.shared.begin(start, span) + span }
    }

    /// The logic answers a load: when its register has been read, and behind the writes that the logic wanted before.
    pub fn answer(&mut self, now: Picoseconds, tlp: Tlp, settings: &DeviceSettings) -> Option<Picoseconds> {
        let written = self.outgoing.last_at().unwrap_or(now);
        self.answers.push(written.max(now + settings.register_read), tlp)
    }
}
