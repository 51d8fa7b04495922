//! Senders of all queues, and the adversary between them and the devices.
//!
//! `random`: where choices come from; `messages`: what is sent; `sender`: one queue's sender and what must have become of
//! what it wrote; `adversary`: owners that break rules in the middle of it. Here: rounds of honest traffic.

mod adversary;
mod messages;
mod random;
mod sender;

use beeline_contract_device::Enables;
use beeline_nic_rtl::RtlConfig;
use beeline_spec::header::lines_of;
use beeline_spec::{Kind, LINE_BYTES};

use crate::coverage::Coverage;
use crate::pair::Pair;

use messages::{Payload, cut, lay_out, payload};
use random::Random;
pub use sender::Agreement;
use sender::{Message, Sender};

/// What owners do who keep no rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaks {
    Never,
    /// Bytes that are written twice, and whatever else both devices judge alike whatever their pipelines hold: every count
    /// of theirs is equal.
    InOrder,
    /// Everything, stops and time-outs in the middle of traffic included.
    Anywhen,
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
    pub breaks: Breaks,
}

impl Shape {
    pub const DEFAULT: Shape = Shape {
        queues: 16,
        split: 5,
        longest: 1600,
        credits: true,
        cut_through_lines: 0,
        breaks: Breaks::Never,
    };
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
    now_ns: u64,
}

impl Traffic {
    pub fn new(seed: u64, config: &RtlConfig, shape: Shape) -> Self {
        let room = u64::from(config.window_lines) * 64 - 8;
        Traffic {
            random: Random::new(seed),
            shape,
            window_lines: config.window_lines.into(),
            span_lines: config.span_lines.into(),
            longest: shape.longest.min(room),
            max_frame: config.max_frame_bytes.into(),
            senders: vec![Sender::default(); shape.queues.into()],
            lines_written: 0,
            coverage: Coverage::default(),
            has_started: false,
            now_ns: 0,
        }
    }

    pub fn queues(&self) -> u16 {
        self.shape.queues
    }

    pub fn breaks(&self) -> Breaks {
        self.shape.breaks
    }

    /// How exactly both devices agree about the present life of a queue.
    pub fn agreement(&self, queue: u16) -> Agreement {
        self.senders[usize::from(queue)].agreement()
    }

    pub fn has_credits(&self) -> bool {
        self.shape.credits
    }

    pub fn lines_written(&self) -> u64 {
        self.lines_written
    }

    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Whether these are the first bytes of a frame that a queue has written since the last comparison.
    pub fn has_written(&self, queue: u16, front: &[u8]) -> bool {
        let lives = &self.senders[usize::from(queue)].lives;
        lives.iter().flat_map(|life| &life.frames).any(|frame| frame.starts_with(front))
    }

    /// Checks what a device sent of a queue since the last comparison.
    pub fn check(&self, queue: u16, device: &str, sent: &[Vec<u8>]) {
        self.senders[usize::from(queue)].check(queue, device, sent);
    }

    /// Everything so far was compared.
    pub fn was_compared(&mut self) {
        for sender in &mut self.senders {
            sender.was_compared();
        }
    }

    fn start_all(&mut self, pair: &mut Pair) {
        pair.set_cut_through(self.shape.queues, self.shape.cut_through_lines);
        if self.shape.breaks == Breaks::Anywhen {
            pair.set_hole_timeout(adversary::TIMED_QUEUE, adversary::TIMEOUT_NS);
        }
        for queue in 0..self.shape.queues {
            self.start(pair, queue, queue as u8 + 1);
        }
        pair.settle();
        self.has_started = true;
    }

    /// Starts a queue; what it did in its life before was told to both devices.
    fn start(&mut self, pair: &mut Pair, queue: u16, epoch: u8) {
        let (class, weight) = (self.random.below(3) as u8, self.random.below(5) as u8);
        pair.start(queue, epoch, class, weight, self.shape.credits);
        self.senders[usize::from(queue)].begins(epoch);
    }

    /// A few thousand lines; at the end everything that was begun is whole, or its queue has failed.
    pub fn round(&mut self, pair: &mut Pair) {
        if !self.has_started {
            self.start_all(pair);
        }
        let busiest = 1 + self.random.below(self.shape.queues.into());
        let stands = self.random.below(3) * 30;
        for _ in 0..2000 + self.random.below(4000) {
            self.step(pair, busiest, stands);
            if self.shape.breaks != Breaks::Never {
                self.maybe_break(pair);
            }
        }
        pair.wire_ready(true);
        self.finish(pair);
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
        loop {
            let sender = &self.senders[usize::from(queue)];
            if sender.is_broken || sender.lines.len() as u64 >= self.span_lines + 4 {
                return;
            }
            let free = self.free_lines(pair, queue);
            let (kind, bytes, frames) = payload(&mut self.random, self.longest, self.max_frame);
            if u64::from(lines_of(bytes.len() as u32)) > free {
                return;
            }
            let is_runt = kind == Kind::Data && frames.is_empty();
            self.coverage.message(if is_runt { 3 } else { usize::from(kind.code()) - 1 });
            self.lay(queue, (kind, bytes, frames));
        }
    }

    /// Lines of the window that the sender may lay out. Without credits back-pressure keeps a sender from a line that waits,
    /// but not from the next lap of a line that is on its way; so half the window stays between its laps.
    fn free_lines(&self, pair: &Pair, queue: u16) -> u64 {
        let sender = &self.senders[usize::from(queue)];
        if self.shape.credits {
            self.window_lines - (sender.end - pair.freed(queue))
        } else {
            (self.window_lines / 2).saturating_sub(sender.end - sender.frontier)
        }
    }

    fn lay(&mut self, queue: u16, (kind, payload, frames): Payload) {
        let sender = &mut self.senders[usize::from(queue)];
        let first = sender.end;
        for line in lay_out(kind, &payload, sender.epoch) {
            let left = cut(&mut self.random, self.shape.split);
            self.coverage.line(left.len(), sender.end % self.window_lines, self.window_lines);
            sender.lay_line(line, left);
        }
        sender.messages.push_back(Message { first, end: sender.end, frames, is_malformed: false });
    }

    /// Writes a piece of any line inside the span, or two whole lines at once.
    fn write_some(&mut self, pair: &mut Pair, queue: u16) {
        let sender = &mut self.senders[usize::from(queue)];
        if sender.is_broken || sender.lines.is_empty() {
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
            pair.write(queue, place * 64, &data, Enables::All);
        } else {
            write_piece(pair, queue, place, &data, enables);
        }
        self.coverage.piece(ahead as usize, enables);
        self.lines_written += sender.note_progress();
    }

    /// Writes everything that is laid out.
    fn finish(&mut self, pair: &mut Pair) {
        for queue in 0..self.shape.queues {
            while !self.senders[usize::from(queue)].is_broken
                && !self.senders[usize::from(queue)].lines.is_empty()
            {
                self.write_some(pair, queue);
                pair.collect();
            }
        }
    }
}

/// Writes some bytes of a line, those between them as well where the write must name them, with another value.
fn write_piece(pair: &mut Pair, queue: u16, place: u64, line: &[u8], enables: u64) {
    let mut data = line.to_vec();
    for (i, byte) in data.iter_mut().enumerate().take(LINE_BYTES) {
        if enables >> i & 1 == 0 {
            *byte = 0x5a;
        }
    }
    let (first, count) = (
        enables.trailing_zeros() as usize,
        64 - (enables.leading_zeros() + enables.trailing_zeros()) as usize,
    );
    if count as u32 == enables.count_ones() {
        pair.write(queue, place * 64 + first as u64, &data[first..first + count], Enables::All);
    } else {
        pair.write(queue, place * 64, &data, Enables::Mask(enables));
    }
}
