//! From the wire to memory: reads that are answered, writes that become visible.

use std::collections::VecDeque;

use super::{Bandwidth, RootSettings};
use crate::des::Picoseconds;
use crate::pcie::{Kind, LinkSettings, Tlp, completions};

const LINE_BYTES: u64 = 64;

/// What the device sent and memory has not done yet.
#[derive(Debug, Default)]
pub struct Inbound {
    /// Completions, with the time at which they may leave.
    answers: VecDeque<(Picoseconds, Tlp)>,
    reads_free: Picoseconds,
    /// Writes, interrupts and answers to loads, with the time at which they are seen, in the order in which they came.
    arrivals: VecDeque<(Picoseconds, Tlp)>,
    writes_free: Picoseconds,
    /// When the last write is seen.
    writes_seen: Picoseconds,
}

impl Inbound {
    /// A read request is there. Each of its completions leaves when the data of its last byte are there, which memory gives
    /// in its turn. Returns when the first one does if no event is scheduled.
    pub fn read(
        &mut self,
        now: Picoseconds,
        request: &Tlp,
        settings: &RootSettings,
        link: &LinkSettings,
        memory: &mut Bandwidth,
    ) -> Option<Picoseconds> {
        let was_empty = self.answers.is_empty();
        let mut start = self.read_starts(now);
        let length = u64::from(request.length_bytes.max(1));
        let boundary = link.completion_boundary_bytes;
        let pieces = completions(request.address, length, boundary, link.max_payload_bytes, settings.answers);
        for piece in pieces {
            let lines = lines_of(piece.address, u64::from(piece.length_bytes));
            start = start.max(memory.take(now, lines, settings.memory_rate));
            let ready = start + settings.read_latency + settings.read_interval * (lines - 1);
            start += settings.read_interval * lines;
            let completion = Tlp {
                body: request.body,
                requester: request.requester,
                tag: request.tag,
                ..Tlp::new(Kind::CompletionWithData, piece.address, piece.length_bytes)
            };
            self.answers.push_back((ready, completion));
        }
        self.reads_free = start;
        let first = self.answers.front().map(|(at, _)| *at);
        first.filter(|_| was_empty)
    }

    /// A read request is there for what is no memory. One completion without data, an unsupported request by its status, ends
    /// it however many bytes it asked for (Base Specification, sections 2.2.9 and 2.3.1). Returns as [`Inbound::read`].
    pub fn refuse(
        &mut self,
        now: Picoseconds,
        request: &Tlp,
        settings: &RootSettings,
    ) -> Option<Picoseconds> {
        let was_empty = self.answers.is_empty();
        let ready = self.read_starts(now) + settings.read_latency;
        let completion = Tlp {
            body: request.body,
            requester: request.requester,
            tag: request.tag,
            ..Tlp::new(Kind::Completion, request.address, 0)
        };
        self.answers.push_back((ready, completion));
        was_empty.then_some(ready)
    }

    /// When a read that is there may begin. It pushes the writes in front of it (Base Specification, table of ordering
    /// rules): it sees what they wrote.
    fn read_starts(&self, now: Picoseconds) -> Picoseconds {
        now.max(self.reads_free).max(self.writes_seen)
    }

    /// The completion that leaves at `now`, and when the next one does.
    pub fn next_answer(&mut self, now: Picoseconds) -> Option<(Tlp, Option<Picoseconds>)> {
        let (at, _) = self.answers.front()?;
        if *at > now {
            return None;
        }
        let (_, tlp) = self.answers.pop_front()?;
        Some((tlp, self.answers.front().map(|(at, _)| (*at).max(now))))
    }

    /// A write is there, or something that must not be seen before the writes in front of it. What goes to memory waits for
    /// its turn there; an interrupt does not go there. Returns when it is seen, if no event is scheduled.
    pub fn arrive(
        &mut self,
        now: Picoseconds,
        tlp: Tlp,
        settings: &RootSettings,
        memory: Option<&mut Bandwidth>,
    ) -> Option<Picoseconds> {
        let was_empty = self.arrivals.is_empty();
        let mut seen = now;
        if tlp.kind == Kind::MemoryWrite {
            let lines = lines_of(tlp.address, u64::from(tlp.length_bytes));
            let turn = memory.map_or(now, |memory| memory.take(now, lines, settings.memory_rate));
            let start = turn.max(self.writes_free);
            self.writes_free = start + settings.write_ingest * lines;
            seen = start + settings.write_visible;
            self.writes_seen = self.writes_seen.max(seen);
        }
        if let Some((last, _)) = self.arrivals.back() {
            seen = seen.max(*last);
        }
        self.arrivals.push_back((seen, tlp));
        was_empty.then_some(seen)
    }

    /// When the last write that has come is seen, or was.
    pub fn writes_seen(&self) -> Picoseconds {
        self.writes_seen
    }

    /// Writes that are here and not seen yet, oldest first.
    pub fn writes(&self) -> impl Iterator<Item = &Tlp> {
        self.arrivals.iter().map(|(_, tlp)| tlp).filter(|tlp| tlp.kind == Kind::MemoryWrite)
    }

    /// What is seen now, and when the next one is.
    pub fn next_seen(&mut self) -> Option<(Tlp, Option<Picoseconds>)> {
        let (_, tlp) = self.arrivals.pop_front()?;
        Some((tlp, self.arrivals.front().map(|(at, _)| *at)))
    }
}

/// Lines that a range touches.
fn lines_of(address: u64, length: u64) -> u64 {
    (address % LINE_BYTES + length).div_ceil(LINE_BYTES)
}
