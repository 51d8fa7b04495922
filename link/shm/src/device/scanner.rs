//! From words that appear in a blank window to "a write arrived".
//!
//! A device behind PCIe sees writes; a core that plays one sees only memory. Where a word stops being blank, it has
//! arrived. The scanner watches the *frontier* line, delivers it in one write when it is found whole, in pieces with
//! byte enables when it is not, and blanks it again once all 64 bytes were delivered (docs/design.md, decision 3: that,
//! before the device returns credit for it, is what makes reuse safe without a sender's fence).
//!
//! While the frontier's line is incomplete it looks ahead, so that stores that overtook others reach the device in
//! the order in which they arrived, and the device's reorder unit, not this file, recovers it (HotOS'25 §3.1). Every
//! arrival ahead is counted only if the frontier's line is seen to be incomplete *afterwards*: that is disorder, and
//! not two looks at different times.

use core::sync::atomic::{Ordering, fence};

use beeline_contract_device::{Accept, Device, Enables, Write};
use beeline_contract_memory::{GROUP_LINES, Line, LoadPort};
use beeline_spec::{LINE_BYTES, WORDS_PER_LINE};

use super::PortCounters;

/// Every word of a line.
const ALL: u8 = u8::MAX;

/// What the scanner is told once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanConfig {
    /// Lines beyond an incomplete one that are looked at; below the window's lines.
    pub(crate) ahead_lines: u32,
    /// Lines delivered before the others get their turn.
    pub(crate) burst_lines: u32,
    /// How far ahead of the frontier whole lines are fetched into the cache.
    pub(crate) prefetch_lines: u32,
}

/// The scanner of one queue's window.
#[derive(Debug)]
pub(crate) struct Scanner<L> {
    port: L,
    blank: u64,
    line_mask: u64,
    /// Offset of the window in the BAR.
    base_bytes: u64,
    config: ScanConfig,
    /// Position of the first line of which something is still to arrive.
    frontier: u64,
    /// Words delivered of the lines from the frontier on; a ring, so a power of two.
    delivered: Box<[u8]>,
    /// Lines beyond the frontier of which something was delivered.
    beyond: u32,
    /// Distance at which the next idle look ahead is made.
    next_look: u32,
    /// Position from which on groups are looked for.
    groups_from: u64,
    /// Lines delivered in runs since a group was looked for that had not arrived.
    lines_in_groups: u32,
    /// Position of a line that the device waits for, and lines before it; below the frontier: none.
    awaited: u64,
    /// Looks at that line before the others are looked at.
    patience: u32,
    /// Lines before this position are likely to have arrived, as the last of them has.
    expected: u64,
    /// The bytes of a run on their way to the device.
    run: Run,
    /// Lines from the first on that [`Scanner::prepare`] has made blank.
    prepared: u32,
}

/// Lines of a message that are waited for together: the sender stores undisturbed, and what it stored comes over at once.
const AWAITED_LINES: u32 = 4 * GROUP_LINES;

/// Looks at the last line that is awaited before whatever else arrived is looked at: it may have overtaken that line.
const PATIENCE: u32 = 32;

/// Most lines that are handed to the device in one call.
const RUN_LINES: u32 = 4 * GROUP_LINES;

/// Lines that must have been found in groups one after the other before others are fetched ahead: then the sender is well in
/// front. A line that is fetched before it is stored must be fetched back by the sender.
const LINES_BEFORE_PREFETCH: u32 = 32;

/// The bytes of lines that follow each other, aligned so that no vector store into them crosses a cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Run([[u8; LINE_BYTES]; RUN_LINES as usize]);

/// What came of one look at a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Nothing,
    /// Something was delivered, or the frontier's line is complete now.
    Progress,
    /// The device refused a write.
    Refused,
}

impl<L: LoadPort> Scanner<L> {
    /// A scanner of a window at `base_bytes` of the BAR. [`Scanner::start`] it before scanning.
    pub(crate) fn new(port: L, base_bytes: u64, mut config: ScanConfig) -> Self {
        let lines = port.lines();
        config.ahead_lines = config.ahead_lines.min(lines - 1);
        let ring = (config.ahead_lines as usize + 1).next_power_of_two();
        Scanner {
            port,
            blank: 0,
            line_mask: u64::from(lines) - 1,
            base_bytes,
            config,
            frontier: 0,
            delivered: vec![0; ring].into_boxed_slice(),
            beyond: 0,
            next_look: 0,
            groups_from: 0,
            lines_in_groups: 0,
            awaited: 0,
            patience: 0,
            expected: 0,
            run: Run([[0; LINE_BYTES]; RUN_LINES as usize]),
            prepared: 0,
        }
    }

    /// Blanks more of the window, at most `lines` lines, which it takes off; whether the whole window is blank now. The
    /// sender must not be storing, and the scanner not be scanning.
    pub(crate) fn prepare(&mut self, blank: u64, lines: &mut u32) -> bool {
        if self.blank != blank {
            (self.blank, self.prepared) = (blank, 0);
        }
        let end = self.port.lines().min(self.prepared.saturating_add(*lines));
        for line in self.prepared..end {
            self.port.blank_line(line, blank);
        }
        *lines -= end - self.prepared;
        self.prepared = end;
        end == self.port.lines()
    }

    /// Begins at the first line of a window that is blank; what [`Scanner::prepare`] has not done is done here. The sender
    /// must not be storing.
    pub(crate) fn start(&mut self, blank: u64) {
        let mut all = u32::MAX;
        self.prepare(blank, &mut all);
        // From here on lines are stored into.
        self.prepared = 0;
        self.frontier = 0;
        self.delivered.fill(0);
        self.beyond = 0;
        self.next_look = 0;
        self.groups_from = 0;
        self.lines_in_groups = 0;
        (self.awaited, self.expected) = (0, 0);
    }

    /// Position of the first line of which something is still to arrive; tells how many lines were taken.
    pub(crate) fn frontier(&self) -> u64 {
        self.frontier
    }

    /// Whether a part of a line, something beyond an incomplete line, or some lines of a message were delivered and the rest
    /// never came.
    pub(crate) fn is_torn(&self) -> bool {
        self.frontier < self.awaited || self.beyond > 0 || self.delivered[self.slot(self.frontier)] != 0
    }

    #[inline(always)]
    fn slot(&self, position: u64) -> usize {
        position as usize & (self.delivered.len() - 1)
    }

    #[inline(always)]
    fn line(&self, position: u64) -> u32 {
        (position & self.line_mask) as u32
    }

    /// Delivers what has arrived, at most `burst_lines` lines; whether it was anything.
    #[inline]
    pub(crate) fn scan<D: Device>(&mut self, device: &mut D, counters: &mut PortCounters) -> bool {
        let mut any = false;
        let mut words = Line::default();
        let mut left = self.config.burst_lines;
        while left > 0 {
            if self.frontier < self.awaited && self.beyond == 0 && !self.has_awaited() {
                return any;
            }
            let arrived = self.arrived_run(left);
            if arrived != 0 {
                let taken = self.deliver_run(arrived, device, counters);
                any |= taken > 0;
                if taken < arrived {
                    return any;
                }
                left -= arrived;
                if self.frontier >= self.awaited {
                    self.await_lines(device);
                }
                continue;
            }
            left -= 1;
            let slot = self.slot(self.frontier);
            let line = self.line(self.frontier);
            let before = self.delivered[slot];
            if before == ALL {
                // It was delivered, and blanked, while an earlier line was still incomplete.
                self.advance();
                any = true;
                continue;
            }
            let arrived = self.port.arrived_into(line, self.blank, &mut words);
            if arrived == ALL && before == 0 {
                self.port.prefetch(self.line(self.frontier + u64::from(self.config.prefetch_lines)));
                let write = Write {
                    offset_bytes: self.offset(line),
                    data: bytes_of(&mut words),
                    enables: Enables::All,
                };
                if device.write_arrived(write) == Accept::Refused {
                    counters.refused_writes += 1;
                    return any;
                }
                counters.whole_lines += 1;
                self.port.blank_line(line, self.blank);
                self.advance();
                if self.frontier >= self.awaited {
                    self.await_lines(device);
                }
                any = true;
                continue;
            }
            match self.incomplete(arrived, device, counters) {
                Outcome::Progress => any = true,
                Outcome::Nothing | Outcome::Refused => return any,
            }
        }
        any
    }

    /// Asks the device how far from the frontier on it waits for lines.
    #[inline(always)]
    fn await_lines<D: Device>(&mut self, device: &D) {
        let lines = device.awaited_lines(self.offset(self.line(self.frontier))).min(AWAITED_LINES);
        if lines > 1 {
            self.awaited = self.frontier + u64::from(lines) - 1;
            self.patience = PATIENCE;
        }
    }

    /// Whether the lines that are awaited are to be looked at: the last of them has arrived, or it was looked at often enough.
    fn has_awaited(&mut self) -> bool {
        if self.port.arrived_words(self.line(self.awaited), self.blank) != ALL {
            self.patience = self.patience.saturating_sub(1);
            return self.patience == 0;
        }
        // They are likely to be there all, and come over together.
        (self.frontier..self.awaited).for_each(|position| self.port.prefetch(self.line(position)));
        (self.groups_from, self.expected) = (self.frontier, self.awaited + 1);
        self.awaited = 0;
        true
    }

    /// How many lines from the frontier's on have arrived, of which nothing was delivered; at most `most`. Whole groups, but for
    /// the end of what is expected.
    #[inline(always)]
    fn arrived_run(&mut self, most: u32) -> u32 {
        let is_untouched = self.beyond == 0 && self.delivered[self.slot(self.frontier)] == 0;
        if self.frontier < self.groups_from || !is_untouched {
            return 0;
        }
        // A run ends with the window: the device is told of lines that follow each other in its address space.
        let until_end = self.port.lines() - self.line(self.frontier);
        let most = most.min(RUN_LINES).min(until_end);
        let mut lines = 0;
        while lines + GROUP_LINES <= most && self.has_group(self.frontier + u64::from(lines)) {
            lines += GROUP_LINES;
        }
        let expected = self.expected.saturating_sub(self.frontier).min(u64::from(most)) as u32;
        while lines < expected && self.port.arrived_words(self.line(self.frontier) + lines, self.blank) == ALL
        {
            lines += 1;
        }
        lines
    }

    /// Whether the lines from a position on have arrived, a whole group. Where that was not so, the question waits until the
    /// frontier is behind it: a line that is looked at before it is stored must be fetched back by the sender.
    #[inline(always)]
    fn has_group(&mut self, position: u64) -> bool {
        let line = self.line(position);
        if self.port.arrived_group(line, self.blank) {
            return true;
        }
        self.groups_from = position + u64::from(GROUP_LINES);
        self.lines_in_groups = 0;
        false
    }

    /// Delivers lines from the frontier's on, which have arrived. Returns how many lines the device took.
    #[inline(always)]
    fn deliver_run<D: Device>(&mut self, lines: u32, device: &mut D, counters: &mut PortCounters) -> u32 {
        let first = self.line(self.frontier);
        let run = &mut self.run.0[..lines as usize];
        let is_behind = self.lines_in_groups >= LINES_BEFORE_PREFETCH;
        self.lines_in_groups = self.lines_in_groups.saturating_add(lines);
        for (group, bytes) in run.chunks_mut(GROUP_LINES as usize).enumerate() {
            let line = first + group as u32 * GROUP_LINES;
            if is_behind {
                (0..GROUP_LINES)
                    .for_each(|next| self.port.prefetch(line + self.config.prefetch_lines + next));
            }
            self.port.load_lines(line, bytes.as_flattened_mut());
        }
        let offset_bytes = self.base_bytes + u64::from(first) * LINE_BYTES as u64;
        let taken = device.lines_arrived(offset_bytes, run) as u32;
        counters.whole_lines += u64::from(taken);
        let whole = taken & !(GROUP_LINES - 1);
        for group in (0..whole).step_by(GROUP_LINES as usize) {
            self.port.blank_group(first + group, self.blank);
        }
        (whole..taken).for_each(|ahead| self.port.blank_line(first + ahead, self.blank));
        counters.refused_writes += u64::from(taken < lines);
        // Nothing of a later line was delivered, so none is noted to be behind the frontier now.
        self.frontier += u64::from(taken);
        taken
    }

    #[inline(always)]
    fn offset(&self, line: u32) -> u64 {
        self.base_bytes + u64::from(line) * LINE_BYTES as u64
    }

    #[inline(always)]
    fn advance(&mut self) {
        let slot = self.slot(self.frontier);
        self.delivered[slot] = 0;
        self.frontier += 1;
        if self.beyond > 0 && self.delivered[self.slot(self.frontier)] != 0 {
            self.beyond -= 1;
        }
    }

    /// The frontier's line is not complete: delivers what is new of it, or looks ahead.
    fn incomplete<D: Device>(&mut self, arrived: u8, device: &mut D, counters: &mut PortCounters) -> Outcome {
        let position = self.frontier;
        let before = self.delivered[self.slot(position)];
        if arrived & !before != 0 {
            // Most partial lines are stores under way, and one more look finds the rest.
            let (again, mut words) = self.port.arrived(self.line(position), self.blank);
            if again == ALL && before == 0 {
                return Outcome::Progress;
            }
            return self.deliver(position, again, &mut words, device, counters);
        }
        let ahead = self.config.ahead_lines;
        if ahead == 0 {
            return Outcome::Nothing;
        }
        if before == 0 && self.beyond == 0 {
            // Idle, as far as can be seen: one line a round, so that waiting stays as cheap as looking at two lines.
            self.next_look = if self.next_look >= ahead { 1 } else { self.next_look + 1 };
            return self.look_ahead(self.next_look, device, counters);
        }
        let mut any = Outcome::Nothing;
        for distance in 1..=ahead {
            match self.look_ahead(distance, device, counters) {
                Outcome::Nothing => {}
                Outcome::Progress => any = Outcome::Progress,
                Outcome::Refused => return Outcome::Refused,
            }
        }
        any
    }

    fn look_ahead<D: Device>(
        &mut self,
        distance: u32,
        device: &mut D,
        counters: &mut PortCounters,
    ) -> Outcome {
        let position = self.frontier + u64::from(distance);
        let slot = self.slot(position);
        let before = self.delivered[slot];
        if before == ALL {
            return Outcome::Nothing;
        }
        let (arrived, mut words) = self.port.arrived(self.line(position), self.blank);
        if arrived & !before == 0 {
            return Outcome::Nothing;
        }
        // Acquire: the next look at the frontier's line is after the one just made. Pairs with the sender's order of
        // stores, whatever it was; without it two looks in the wrong order would be taken for disorder.
        fence(Ordering::Acquire);
        let (front, _) = self.port.arrived(self.line(self.frontier), self.blank);
        if front | self.delivered[self.slot(self.frontier)] == ALL {
            return Outcome::Progress;
        }
        let look = self.deliver(position, arrived, &mut words, device, counters);
        if look == Outcome::Progress {
            counters.ahead_writes += 1;
            self.beyond += u32::from(before == 0);
        }
        look
    }

    /// Delivers the words of a line that are new, as one write with byte enables.
    fn deliver<D: Device>(
        &mut self,
        position: u64,
        arrived: u8,
        words: &mut Line,
        device: &mut D,
        counters: &mut PortCounters,
    ) -> Outcome {
        let (slot, line) = (self.slot(position), self.line(position));
        let before = self.delivered[slot];
        let new = arrived & !before;
        let enables = if new == ALL { Enables::All } else { Enables::Mask(byte_mask(new)) };
        let write = Write { offset_bytes: self.offset(line), data: bytes_of(words), enables };
        if device.write_arrived(write) == Accept::Refused {
            counters.refused_writes += 1;
            return Outcome::Refused;
        }
        if new == ALL {
            counters.whole_lines += 1;
        } else {
            counters.partial_writes += 1;
            counters.split_lines += u64::from(before == 0);
        }
        self.delivered[slot] = before | new;
        if before | new == ALL {
            self.port.blank_line(line, self.blank);
        }
        Outcome::Progress
    }
}

/// A line as the bytes a write carries. No copy where the CPU is little-endian: the line was loaded as a vector, and
/// taking it apart word by word costs more than delivering it.
#[inline(always)]
fn bytes_of(words: &mut Line) -> &[u8] {
    if cfg!(target_endian = "big") {
        for word in words.iter_mut() {
            *word = word.to_le();
        }
    }
    bytemuck::bytes_of(words)
}

/// Byte enables of the words in `words`.
#[inline]
fn byte_mask(words: u8) -> u64 {
    (0..WORDS_PER_LINE).filter(|word| words >> word & 1 == 1).fold(0, |mask, word| mask | 0xff << (8 * word))
}

#[cfg(test)]
#[path = "scanner_tests.rs"]
mod tests;
