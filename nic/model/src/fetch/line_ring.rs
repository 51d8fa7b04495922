//! Lines of a ring in host memory, fetched ahead of their use: a ring of entries (`inline`) or a pipe (`enso`).
//!
//! The host posts lines and tells their absolute count; the device fetches them in bursts, several at a time, while it
//! still works on earlier ones. Answers come in any order; lines are used in order. What is long is fetched in long
//! reads, because nothing lies between one line and the next. A count is hostile until checked, like any of a host's.
//!
//! From: doorbells and the answers to reads. To: [`crate::inline`], [`crate::enso`]. Not here: what the lines mean.

use beeline_spec::{LINE_BYTES, WORD_BYTES};

use super::descriptor_ring::{Fetch, READ_BOUNDARY_BYTES};

/// Longest ring: 256 MiB.
const MAX_LINES: u32 = 1 << 22;

/// How far a ring is fetched ahead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    /// Lines that were fetched and not used yet, or are being fetched; a power of two.
    pub lines: u32,
    /// Lines of one read; at most 64.
    pub burst: u32,
    /// Reads under way.
    pub fetches: u32,
}

/// The ring. Counts are absolute: `taken <= arrived <= requested <= posted`.
#[derive(Debug)]
pub(crate) struct LineRing {
    address: u64,
    lines: u32,
    ahead: Ahead,
    posted: u64,
    requested: u64,
    /// The first line that has not arrived.
    arrived: u64,
    taken: u64,
    fetches: u32,
    /// The line of absolute position i at i modulo the lines ahead, and whether it has arrived.
    memory: Box<[[u8; LINE_BYTES]]>,
    is_here: Box<[bool]>,
}

impl LineRing {
    /// A ring of `lines` at `address`. `None` when the size is not a power of two up to 2^22, or the address is not
    /// that of an aligned line.
    pub(crate) fn new(address: u64, lines: u32, ahead: Ahead) -> Option<Self> {
        debug_assert!(ahead.lines.is_power_of_two());
        let bytes = u64::from(lines) * LINE_BYTES as u64;
        let is_sound = lines.is_power_of_two()
            && lines <= MAX_LINES
            && address.is_multiple_of(LINE_BYTES as u64)
            && address.checked_add(bytes).is_some();
        is_sound.then(|| LineRing {
            address,
            lines,
            ahead,
            posted: 0,
            requested: 0,
            arrived: 0,
            taken: 0,
            fetches: 0,
            memory: vec![[0; LINE_BYTES]; ahead.lines as usize].into_boxed_slice(),
            is_here: vec![false; ahead.lines as usize].into_boxed_slice(),
        })
    }

    /// Lines of the ring, a power of two.
    pub(crate) fn lines(&self) -> u32 {
        self.lines
    }

    /// Lines posted since the queue was enabled.
    #[inline]
    pub(crate) fn posted(&self) -> u64 {
        self.posted
    }

    /// Lines used since the queue was enabled: the absolute position of the next one.
    #[inline]
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Lines from the next one on that have arrived.
    #[inline]
    pub(crate) fn arrived(&self) -> u32 {
        (self.arrived - self.taken) as u32
    }

    /// The host has posted `posted` lines; the first `done` are its own again. `false`: the value runs backwards or
    /// past the ring, and is ignored.
    #[inline]
    #[must_use]
    pub(crate) fn post(&mut self, posted: u64, done: u64) -> bool {
        if posted < self.posted || posted - done > u64::from(self.lines) {
            return false;
        }
        self.posted = posted;
        true
    }

    /// The next read to ask for, if one is possible now; counts are in lines.
    #[inline]
    pub(crate) fn next_fetch(&self) -> Option<Fetch> {
        let room = u64::from(self.ahead.lines) - (self.requested - self.taken);
        let wanted = (self.posted - self.requested).min(u64::from(self.ahead.burst));
        // A burst waits until there is room for all of it: one long read costs less than many short ones.
        if wanted == 0 || wanted > room || self.fetches == self.ahead.fetches {
            return None;
        }
        let index = self.requested & u64::from(self.lines - 1);
        let address = self.address + index * LINE_BYTES as u64;
        let before_boundary = (READ_BOUNDARY_BYTES - address % READ_BOUNDARY_BYTES) / LINE_BYTES as u64;
        let count = wanted.min(u64::from(self.lines) - index).min(before_boundary);
        Some(Fetch { first: self.requested, count: count as u32, address })
    }

    /// The read that [`LineRing::next_fetch`] gave has been asked for.
    #[inline]
    pub(crate) fn fetch_started(&mut self, fetch: Fetch) {
        self.requested += u64::from(fetch.count);
        self.fetches += 1;
    }

    /// The lines from absolute position `first` on have arrived; `bytes` is as long as was asked for.
    #[inline]
    pub(crate) fn fetched(&mut self, first: u64, bytes: &[u8]) {
        self.fetches -= 1;
        for (position, line) in (first..).zip(bytes.as_chunks::<LINE_BYTES>().0) {
            let slot = self.slot(position);
            self.memory[slot] = *line;
            self.is_here[slot] = true;
        }
        while self.arrived < self.requested && self.is_here[self.slot(self.arrived)] {
            let slot = self.slot(self.arrived);
            self.is_here[slot] = false;
            self.arrived += 1;
        }
    }

    #[inline]
    fn slot(&self, position: u64) -> usize {
        (position & u64::from(self.ahead.lines - 1)) as usize
    }

    /// Word `word` of the next line, which must have arrived.
    #[inline]
    pub(crate) fn word(&self, word: usize) -> u64 {
        debug_assert!(self.arrived() > 0);
        u64::from_le_bytes(self.memory[self.slot(self.taken)].as_chunks::<WORD_BYTES>().0[word])
    }

    /// `bytes` bytes from `skip` bytes after the next line's start on; all must have arrived. In one piece where they
    /// lie so, else gathered in `scratch`.
    pub(crate) fn bytes<'a>(&'a self, skip: usize, bytes: usize, scratch: &'a mut [u8]) -> &'a [u8] {
        let memory = self.memory.as_flattened();
        let start = self.slot(self.taken) * LINE_BYTES + skip;
        match memory.get(start..start + bytes) {
            Some(whole) => whole,
            None => {
                let start = start % memory.len();
                let first = bytes.min(memory.len() - start);
                scratch[..first].copy_from_slice(&memory[start..start + first]);
                scratch[first..bytes].copy_from_slice(&memory[..bytes - first]);
                &scratch[..bytes]
            }
        }
    }

    /// Uses up `lines` that have arrived.
    #[inline]
    pub(crate) fn take(&mut self, lines: u32) {
        debug_assert!(lines <= self.arrived());
        self.taken += u64::from(lines);
    }

    /// Whether everything posted has been used.
    #[inline]
    pub(crate) fn is_used_up(&self) -> bool {
        self.taken == self.posted
    }

    /// The next `lines`, posted but not asked for, came by another way.
    pub(crate) fn skip(&mut self, lines: u32) {
        debug_assert!(self.taken == self.requested && self.taken + u64::from(lines) <= self.posted);
        self.taken += u64::from(lines);
        (self.requested, self.arrived) = (self.taken, self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AHEAD: Ahead = Ahead { lines: 16, burst: 8, fetches: 4 };

    fn line(position: u64) -> [u8; LINE_BYTES] {
        [position as u8; LINE_BYTES]
    }

    #[test]
    fn lines_come_out_in_order_whatever_order_they_arrive_in() {
        let mut ring = LineRing::new(4096 - 128, 32, AHEAD).unwrap();
        let mut under_way = Vec::new();
        let (mut posted, mut used) = (0, 0u64);
        for round in 0..2000u64 {
            posted = (posted + round % 7).min(used + 32);
            assert!(ring.post(posted, used));
            while let Some(fetch) = ring.next_fetch() {
                let bytes = u64::from(fetch.count) * 64;
                assert_eq!(fetch.address / 4096, (fetch.address + bytes - 1) / 4096, "crosses a boundary");
                ring.fetch_started(fetch);
                under_way.push(fetch);
            }
            if !under_way.is_empty() {
                let fetch = under_way.remove(round as usize % under_way.len());
                let bytes: Vec<u8> =
                    (fetch.first..fetch.first + u64::from(fetch.count)).flat_map(line).collect();
                ring.fetched(fetch.first, &bytes);
            }
            let lines = ring.arrived().min(3);
            let mut scratch = [0; 192];
            let found = ring.bytes(8, (lines as usize * 64).saturating_sub(8), &mut scratch);
            let expected: Vec<u8> = (used..used + u64::from(lines)).flat_map(line).skip(8).collect();
            assert_eq!(found, expected);
            ring.take(lines);
            used += u64::from(lines);
        }
        assert!(used > 3000, "{used}");
    }

    #[test]
    fn counts_that_make_no_sense_are_refused() {
        let mut ring = LineRing::new(0, 32, AHEAD).unwrap();
        assert!(ring.post(32, 0) && !ring.post(31, 0) && !ring.post(33, 0) && !ring.post(u64::MAX, 0));
        for (address, lines) in [(0, 0), (0, 3), (0, 1 << 23), (32, 4), (u64::MAX - 63, 2)] {
            assert!(LineRing::new(address, lines, AHEAD).is_none(), "{lines} at {address:#x}");
        }
    }

    #[test]
    fn what_came_by_another_way_is_not_fetched() {
        let mut ring = LineRing::new(0, 32, AHEAD).unwrap();
        assert!(ring.post(3, 0));
        ring.skip(3);
        assert!(ring.is_used_up() && ring.next_fetch().is_none());
        assert!(ring.post(5, 3));
        assert_eq!(ring.next_fetch(), Some(Fetch { first: 3, count: 2, address: 192 }));
    }
}
