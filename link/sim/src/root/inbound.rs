//! From the wire to memory: reads that are answered, writes that become visible.

use std::collections::VecDeque;

use super::RootSettings;
use crate::des::Picoseconds;
use crate::pcie::{Kind, LinkSettings, Tlp, completions};

/// Bytes of a line.
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
    /// A read request is there. Each of its completions leaves when the data of its last byte are there. Returns when the
    /// first one does if no event is scheduled.
    pub fn read(
        &mut self,
        now: Picoseconds,
        request: &Tlp,
        settings: &RootSettings,
        link: &LinkSettings,
    ) -> Option<Picoseconds> {
        let was_empty = self.answers.is_empty();
        // A read pushes the writes in front of it (Base Specification, table of ordering rules): it sees what they wrote.
        let start = now.max(self.reads_free).max(self.writes_seen);
        let length = u64::from(request.length_bytes.max(1));
        let boundary = link.completion_boundary_bytes;
        let mut lines = 0;
        let pieces = completions(request.address, length, boundary, link.max_payload_bytes, settings.answers);
        for piece in pieces {
            lines += lines_of(piece.address, u64::from(piece.length_bytes));
            let ready = start + settings.read_latency + settings.read_interval * (lines - 1);
            let completion = Tlp {
                body: request.body,
                requester: request.requester,
                tag: request.tag,
                ..Tlp::new(Kind::CompletionWithData, piece.address, piece.length_bytes)
            };
            self.answers.push_back((ready, completion));
        }
        self.reads_free = start + settings.read_interval * lines;
        let first = self.answers.front().map(|(at, _)| *at);
        first.filter(|_| was_empty)
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

    /// A write is there, or something that must not be seen before the writes in front of it. Returns when it is seen, if
    /// no event is scheduled.
    pub fn arrive(&mut self, now: Picoseconds, tlp: Tlp, settings: &RootSettings) -> Option<Picoseconds> {
        let was_empty = self.arrivals.is_empty();
        let mut seen = now;
        if tlp.kind == Kind::MemoryWrite {
            let start = now.max(self.writes_free);
            let lines = lines_of(tlp.address, u64::from(tlp.length_bytes));
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
