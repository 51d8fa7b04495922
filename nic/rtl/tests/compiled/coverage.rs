//! What a run has met: places in the span, wraps, shapes of pieces.

use std::fmt;

/// Counts of what was met.
#[derive(Clone, Debug)]
pub struct Coverage {
    /// Writes by lines from the earliest line that lacks something: 0 to 63, and more.
    ahead: [u64; 65],
    /// Lines by their number of pieces, 1 to 8 and more.
    pieces: [u64; 9],
    /// Pieces by first byte in the line.
    first_byte: [u64; 64],
    /// Lines at a window's first and last place.
    wraps: [u64; 2],
    /// Messages by kind: data, void, batch; and runts.
    kinds: [u64; 4],
    /// Rules broken: beyond the span, lines again, bytes twice, malformed messages, time-outs.
    breaks: [u64; 5],
    /// Queues that were started anew.
    restarts: u64,
}

impl Default for Coverage {
    fn default() -> Self {
        let (ahead, first_byte) = ([0; 65], [0; 64]);
        Coverage {
            ahead,
            pieces: [0; 9],
            first_byte,
            wraps: [0; 2],
            kinds: [0; 4],
            breaks: [0; 5],
            restarts: 0,
        }
    }
}

impl Coverage {
    pub fn piece(&mut self, ahead: usize, enables: u64) {
        self.ahead[ahead.min(64)] += 1;
        self.first_byte[enables.trailing_zeros() as usize & 63] += 1;
    }

    pub fn line(&mut self, pieces: usize, place: u64, window_lines: u64) {
        self.pieces[pieces.min(9) - 1] += 1;
        self.wraps[0] += u64::from(place == 0);
        self.wraps[1] += u64::from(place + 1 == window_lines);
    }

    pub fn message(&mut self, kind: usize) {
        self.kinds[kind] += 1;
    }

    pub fn rule_broken(&mut self, which: usize) {
        self.breaks[which] += 1;
    }

    pub fn restart(&mut self) {
        self.restarts += 1;
    }
}

/// Lines from which on a run must have met everything that can be met.
const ENOUGH_LINES: u64 = 100_000;

impl Coverage {
    /// What a run of so many lines with such a span has not met, of what every long one meets.
    pub fn missing(&self, lines: u64, span_lines: usize) -> Vec<String> {
        if lines < ENOUGH_LINES {
            return Vec::new();
        }
        let places = self.ahead[..span_lines.min(64)].iter().enumerate();
        let mut missing: Vec<String> =
            places.filter(|(_, count)| **count == 0).map(|(place, _)| format!("place {place}")).collect();
        let ends = ["a window's first place", "a window's last place"];
        missing.extend(
            self.wraps.iter().zip(ends).filter(|(count, _)| **count == 0).map(|(_, end)| end.to_owned()),
        );
        missing
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |counts: &[u64]| counts.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
        let deepest = self.ahead.iter().rposition(|count| *count > 0).unwrap_or(0);
        writeln!(out, "  writes by place in the span, 0 up: {}", list(&self.ahead[..=deepest]))?;
        writeln!(out, "  lines by pieces, 1 to 8 and more: {}", list(&self.pieces))?;
        let bytes = self.first_byte.iter().filter(|count| **count > 0).count();
        writeln!(
            out,
            "  pieces began at {bytes} of 64 bytes; lines at a window's start {}, end {}",
            self.wraps[0], self.wraps[1]
        )?;
        let [data, void, batch, runt] = self.kinds;
        writeln!(out, "  messages: {data} data, {void} void, {batch} batch, {runt} runts")?;
        let [beyond, again, twice, malformed, times] = self.breaks;
        write!(
            out,
            "  rules broken: {beyond} beyond the span, {again} lines again, {twice} bytes twice, {malformed} malformed \
             messages; {times} time-outs; {} queues started anew",
            self.restarts
        )
    }
}
