//! Senders of all queues, and the adversary between them and the devices.

use std::collections::VecDeque;

use beeline_nic_contract::Enables;
use beeline_nic_rtl::RtlConfig;
use beeline_spec::formats::MIN_FRAME_BYTES;
use beeline_spec::header::lines_of;
use beeline_spec::{Header, Kind, LINE_BYTES};

use crate::coverage::Coverage;
use crate::pair::Pair;

/// SplitMix64 (Steele, Lea and Flood, OOPSLA'14).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }

    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// What a run is like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub queues: u16,
    /// Most pieces of a line.
    pub split: u64,
    /// Longest payload in bytes.
    pub longest: u64,
    pub credits: bool,
    /// Lines with which a frame may begin before its message is whole; 0: it never does.
    pub cut_through_lines: u64,
    /// Writers break rules and die.
    pub breaks: bool,
}

impl Shape {
    pub const DEFAULT: Shape =
        Shape { queues: 16, split: 5, longest: 1600, credits: true, cut_through_lines: 0, breaks: false };
}

/// A line of a message, in pieces that have not been written.
#[derive(Clone, Debug)]
struct Line {
    bytes: [u8; LINE_BYTES],
    left: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
struct Sender {
    epoch: u8,
    /// Position of `lines[0]`: the earliest line that lacks something.
    frontier: u64,
    /// Position behind the last line.
    end: u64,
    lines: VecDeque<Line>,
    /// Messages under way: the position behind each, and its frames.
    messages: VecDeque<(u64, Vec<Vec<u8>>)>,
    /// Frames of messages that are whole, since the last comparison.
    frames: Vec<Vec<u8>>,
    has_failed: bool,
}

#[derive(Debug)]
pub struct Traffic {
    random: Random,
    shape: Shape,
    window_lines: u64,
    span_lines: u64,
    longest: u64,
    max_frame: u64,
    senders: Vec<Sender>,
    lines_written: u64,
    coverage: Coverage,
    has_started: bool,
}

impl Traffic {
    pub fn new(seed: u64, config: &RtlConfig, shape: Shape) -> Self {
        let room = u64::from(config.window_lines) * 64 - 8;
        Traffic {
            random: Random(seed),
            shape,
            window_lines: config.window_lines.into(),
            span_lines: config.span_lines.into(),
            longest: shape.longest.min(room),
            max_frame: config.max_frame_bytes.into(),
            senders: vec![Sender::default(); shape.queues.into()],
            lines_written: 0,
            coverage: Coverage::default(),
            has_started: false,
        }
    }

    pub fn queues(&self) -> u16 {
        self.shape.queues
    }

    pub fn breaks(&self) -> bool {
        self.shape.breaks
    }

    pub fn lines_written(&self) -> u64 {
        self.lines_written
    }

    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Frames that must have left since the last round.
    pub fn expected(&self, queue: u16) -> &[Vec<u8>] {
        &self.senders[usize::from(queue)].frames
    }

    fn start_all(&mut self, pair: &mut Pair) {
        pair.set_cut_through(self.shape.queues, self.shape.cut_through_lines);
        for queue in 0..self.shape.queues {
            self.start(pair, queue, queue as u8 + 1);
        }
        self.has_started = true;
    }

    fn start(&mut self, pair: &mut Pair, queue: u16, epoch: u8) {
        let (class, weight) = (self.random.below(3) as u8, self.random.below(5) as u8);
        pair.start(queue, epoch, class, weight, self.shape.credits);
        self.senders[usize::from(queue)] = Sender { epoch, ..Sender::default() };
    }

    /// A few thousand lines; at the end everything that was begun is whole, or its queue has failed.
    pub fn round(&mut self, pair: &mut Pair) {
        if !self.has_started {
            self.start_all(pair);
        }
        for sender in &mut self.senders {
            sender.frames.clear();
        }
        let busiest = 1 + self.random.below(self.shape.queues.into());
        let stands = self.random.below(3) * 30;
        for _ in 0..2000 + self.random.below(4000) {
            self.step(pair, busiest, stands);
        }
        pair.wire_ready(true);
        self.finish(pair);
        if self.shape.breaks {
            self.break_a_rule(pair);
        }
    }

    /// Writes that begin messages and do not end them.
    pub fn unfinished(&mut self, pair: &mut Pair, writes: u64) {
        for _ in 0..writes {
            self.step(pair, self.shape.queues.into(), 50);
        }
    }

    fn step(&mut self, pair: &mut Pair, busiest: u64, stands: u64) {
        if stands > 0 {
            pair.wire_ready(self.random.below(100) >= stands);
        }
        let queue = self.random.below(busiest) as u16;
        self.fill(pair, queue);
        self.write_some(pair, queue);
        pair.collect();
    }

    /// Lays messages out while the window has room and few lines wait.
    fn fill(&mut self, pair: &Pair, queue: u16) {
        while !self.senders[usize::from(queue)].has_failed
            && (self.senders[usize::from(queue)].lines.len() as u64) < self.span_lines + 4
        {
            let sender = &self.senders[usize::from(queue)];
            // Without credits back-pressure keeps a sender from a line that waits, but not from the next lap of a line
            // that is on its way; so half the window stays between its laps.
            let free = if self.shape.credits {
                self.window_lines - (sender.end - pair.freed(queue))
            } else {
                (self.window_lines / 2).saturating_sub(sender.end - sender.frontier)
            };
            if !self.lay_message(queue, free) {
                return;
            }
        }
    }

    fn lay_message(&mut self, queue: u16, free: u64) -> bool {
        let random = &mut self.random;
        let length = match random.below(8) {
            0 => random.below(MIN_FRAME_BYTES as u64 + 3),
            1..5 => MIN_FRAME_BYTES as u64 + random.below(50),
            5 | 6 => random.below(self.longest.min(400)),
            _ => random.below(self.longest),
        };
        let (kind, payload, frames) = match random.below(12) {
            0 => (Kind::Void, vec![0xee; length as usize], Vec::new()),
            1 | 2 => batch(random, length, self.max_frame),
            _ => {
                let payload = bytes(random, length.min(self.max_frame));
                let frames = if payload.len() < MIN_FRAME_BYTES { Vec::new() } else { vec![payload.clone()] };
                (Kind::Data, payload, frames)
            }
        };
        let lines = u64::from(lines_of(payload.len() as u32));
        if lines > free {
            return false;
        }
        let is_runt = kind == Kind::Data && frames.is_empty();
        self.coverage.message(if is_runt { 3 } else { usize::from(kind.code()) - 1 });
        self.lay(queue, kind, &payload, frames);
        true
    }

    fn lay(&mut self, queue: u16, kind: Kind, payload: &[u8], frames: Vec<Vec<u8>>) {
        let sender = &mut self.senders[usize::from(queue)];
        let mut raw = Header::new(kind, payload.len() as u32, sender.epoch).encode().to_le_bytes().to_vec();
        raw.extend_from_slice(payload);
        raw.resize(raw.len().next_multiple_of(LINE_BYTES), 0);
        for line in raw.as_chunks::<LINE_BYTES>().0 {
            let left = cut(&mut self.random, self.shape.split);
            self.coverage.line(left.len(), sender.end % self.window_lines, self.window_lines);
            sender.lines.push_back(Line { bytes: *line, left });
            sender.end += 1;
        }
        sender.messages.push_back((sender.end, frames));
    }

    /// Writes a piece of any line inside the span, or two whole lines at once.
    fn write_some(&mut self, pair: &mut Pair, queue: u16) {
        let sender = &mut self.senders[usize::from(queue)];
        if sender.has_failed || sender.lines.is_empty() {
            return;
        }
        let reach = (sender.lines.len() as u64).min(self.span_lines);
        // In order, backwards, or anywhere.
        let from = match self.random.below(4) {
            0 => 0,
            1 => reach - 1,
            _ => self.random.below(reach),
        };
        let Some(ahead) =
            (0..reach).map(|i| (from + i) % reach).find(|i| !sender.lines[*i as usize].left.is_empty())
        else {
            return;
        };
        let place = (sender.frontier + ahead) % self.window_lines;
        let line = &mut sender.lines[ahead as usize];
        let enables = line.left.pop().expect("it was not empty");
        let mut data = line.bytes.to_vec();
        let is_pair = enables == u64::MAX
            && ahead + 1 < reach
            && place + 1 < self.window_lines
            && sender.lines[ahead as usize + 1].left == [u64::MAX]
            && self.random.once_in(4);
        if is_pair {
            data.extend_from_slice(&sender.lines[ahead as usize + 1].bytes);
            sender.lines[ahead as usize + 1].left.clear();
        }
        for (i, byte) in data.iter_mut().enumerate().take(LINE_BYTES) {
            if enables >> i & 1 == 0 {
                *byte = 0x5a;
            }
        }
        self.coverage.piece(ahead as usize, enables);
        let (first, count) = (
            enables.trailing_zeros() as usize,
            64 - (enables.leading_zeros() + enables.trailing_zeros()) as usize,
        );
        if is_pair || enables == u64::MAX {
            pair.write(queue, place * 64, &data, Enables::All);
        } else if count as u32 == enables.count_ones() {
            pair.write(queue, place * 64 + first as u64, &data[first..first + count], Enables::All);
        } else {
            pair.write(queue, place * 64, &data, Enables::Mask(enables));
        }
        self.note_progress(queue);
    }

    fn note_progress(&mut self, queue: u16) {
        let sender = &mut self.senders[usize::from(queue)];
        while sender.lines.front().is_some_and(|line| line.left.is_empty()) {
            sender.lines.pop_front();
            sender.frontier += 1;
            self.lines_written += 1;
        }
        while sender.messages.front().is_some_and(|(end, _)| *end <= sender.frontier) {
            let (_, frames) = sender.messages.pop_front().expect("it is there");
            sender.frames.extend(frames);
        }
    }

    /// Writes everything that is laid out.
    fn finish(&mut self, pair: &mut Pair) {
        for queue in 0..self.shape.queues {
            while !self.senders[usize::from(queue)].has_failed
                && !self.senders[usize::from(queue)].lines.is_empty()
            {
                self.write_some(pair, queue);
                pair.collect();
            }
        }
    }

    /// One queue breaks a rule, or dies in the middle of a message, and is started anew.
    fn break_a_rule(&mut self, pair: &mut Pair) {
        pair.settle();
        let queue = self.random.below(self.shape.queues.into()) as u16;
        let which = self.random.below(6) as usize;
        let (frontier, epoch) =
            (self.senders[usize::from(queue)].frontier, self.senders[usize::from(queue)].epoch);
        let at = |position: u64| position % self.window_lines * 64;
        let header = |word: u64| {
            let mut line = [0x33; LINE_BYTES];
            line[..8].copy_from_slice(&word.to_le_bytes());
            line
        };
        let good = Header::new(Kind::Data, 40, epoch).encode();
        match which {
            0 => pair.write(queue, at(frontier + self.span_lines), &[7; 64], Enables::All),
            1 => {
                pair.write(queue, at(frontier), &[7; 20], Enables::All);
                pair.write(queue, at(frontier) + 19, &[8; 5], Enables::All);
            }
            2 => pair.write(
                queue,
                at(frontier),
                &header(good ^ 1 << self.random.below(5).wrapping_add(58)),
                Enables::All,
            ),
            3 => {
                let too_long = Header::new(Kind::Data, (self.window_lines * 64) as u32, epoch).encode();
                pair.write(queue, at(frontier), &header(too_long), Enables::All);
            }
            4 => {
                let mut line = header(Header::new(Kind::Batch, 56, epoch).encode());
                line[8..10].copy_from_slice(&14u16.to_le_bytes());
                line[24..26].copy_from_slice(&60u16.to_le_bytes());
                pair.write(queue, at(frontier), &line, Enables::All);
            }
            // Dies: pieces of a few lines, some of them whole.
            _ => {
                for i in 0..1 + self.random.below(self.span_lines - 1) {
                    let bytes = 1 + self.random.below(64) as usize;
                    pair.write(queue, at(frontier + 1 + i), &[9; 64][..bytes], Enables::All);
                }
            }
        }
        if which < 5 {
            self.coverage.rule_broken(which);
        }
        self.senders[usize::from(queue)].has_failed = which < 5;
        // Late stores of the old life, to a queue that takes none any more.
        pair.settle();
        if which < 5 {
            pair.write(queue, at(frontier + 1), &[1; 64], Enables::All);
        }
        pair.compare(self);
        self.coverage.restart();
        pair.stop(queue);
        for sender in &mut self.senders {
            sender.frames.clear();
        }
        self.start(pair, queue, epoch.wrapping_add(1));
    }
}

fn bytes(random: &mut Random, count: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count as usize + 8);
    while (bytes.len() as u64) < count {
        bytes.extend_from_slice(&random.word().to_le_bytes());
    }
    bytes.truncate(count as usize);
    bytes
}

/// A batch of about `length` bytes: kind, payload, its frames.
fn batch(random: &mut Random, length: u64, max_frame: u64) -> (Kind, Vec<u8>, Vec<Vec<u8>>) {
    let (mut payload, mut frames) = (Vec::new(), Vec::new());
    loop {
        let count = match random.below(5) {
            0 => random.below(MIN_FRAME_BYTES as u64),
            1 => random.below(300).min(max_frame),
            _ => MIN_FRAME_BYTES as u64 + random.below(60),
        };
        let record = bytes(random, count.min(max_frame));
        if payload.len() + record.len() + 10 > length as usize && !payload.is_empty() {
            return (Kind::Batch, payload, frames);
        }
        payload.extend_from_slice(&(record.len() as u16).to_le_bytes());
        payload.extend_from_slice(&record);
        payload.resize(payload.len().next_multiple_of(8), 0);
        if record.len() >= MIN_FRAME_BYTES {
            frames.push(record);
        }
        if payload.len() >= length as usize {
            return (Kind::Batch, payload, frames);
        }
    }
}

/// Cuts a line into at most `most` pieces: runs of bytes, or bytes picked one by one.
fn cut(random: &mut Random, most: u64) -> Vec<u64> {
    let pieces = if random.once_in(2) { 1 } else { 1 + random.below(most) };
    let mut left = u64::MAX;
    let mut cuts = Vec::new();
    for _ in 1..pieces {
        let mask = if random.once_in(3) { random.word() } else { u64::MAX << (random.below(63) + 1) };
        let piece = left & mask;
        if piece != 0 && piece != left {
            cuts.push(piece);
            left &= !piece;
        }
    }
    cuts.push(left);
    for i in (1..cuts.len()).rev() {
        cuts.swap(i, random.below(i as u64 + 1) as usize);
    }
    cuts
}
