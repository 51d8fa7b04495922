//! Owners that break rules in the middle of traffic, of their own queue and of the others'.
//!
//! Nothing settles before, between or behind: bad pieces follow each other and good ones in neighbouring cycles, late ones
//! come after the queue has failed, and it is stopped and started again, or a hole of it is over its time, while the wire
//! stands. What the devices make of it is known as far as `Agreement` says.

use super::messages::malformed;
use super::sender::{Agreement, Message};
use super::{Breaks, Traffic, write_piece};
use crate::pair::Pair;

/// The queue whose holes have a time-out, where owners do anything.
pub const TIMED_QUEUE: u16 = 0;

/// Its time-out, and how far time goes on at once: nothing else depends on the time.
pub const TIMEOUT_NS: u64 = 5_000;

/// A rule, and what is known when it is broken.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// A byte comes twice.
    Twice,
    /// A line beyond the span: the next one behind it, or one of the ring after.
    Beyond,
    /// A line that was just written, and is not free or not in the span.
    Again,
    /// A message that the reader cannot take.
    Malformed,
}

impl Traffic {
    /// Now and then an owner breaks a rule, and one who has goes on or begins anew.
    pub(super) fn maybe_break(&mut self, pair: &mut Pair) {
        if !self.random.once_in(40) {
            return;
        }
        let queue = self.random.below(self.shape.queues.into()) as u16;
        if self.shape.breaks == Breaks::InOrder {
            return self.break_in_order(pair, queue);
        }
        if self.senders[usize::from(queue)].is_broken {
            match self.random.below(3) {
                0 => self.late_pieces(pair, queue),
                _ => self.begin_anew(pair, queue),
            }
            return;
        }
        match self.random.below(16) {
            0 => self.time_passes(pair),
            // Without a reason, or because its owner died with holes.
            1 => self.begin_anew(pair, queue),
            2 => {
                self.begin_anew_at_once(pair, queue);
                self.late_pieces(pair, queue);
            }
            _ => self.burst(pair, queue),
        }
    }

    /// What both devices judge alike to the last count; the queue begins anew when both have done what there was to do.
    fn break_in_order(&mut self, pair: &mut Pair, queue: u16) {
        if !self.senders[usize::from(queue)].is_broken {
            let rule = match self.random.below(3) {
                0 if !self.shape.credits => Rule::Beyond,
                1 if !self.shape.credits => Rule::Again,
                _ => Rule::Twice,
            };
            for _ in 0..1 + self.random.below(3) {
                self.break_rule(pair, queue, rule);
            }
        } else if self.random.once_in(4) {
            pair.settle();
            self.stop_and_start(pair, queue);
        } else {
            self.late_pieces(pair, queue);
        }
    }

    /// Several rules one after the other, with good pieces and those of other queues between them.
    fn burst(&mut self, pair: &mut Pair, queue: u16) {
        for _ in 0..1 + self.random.below(5) {
            let rule = match self.random.below(8) {
                0 | 1 => Rule::Twice,
                2 | 3 => Rule::Beyond,
                4..7 => Rule::Again,
                _ => Rule::Malformed,
            };
            self.break_rule(pair, queue, rule);
            for _ in 0..self.random.below(3) {
                let other = self.random.below(self.shape.queues.into()) as u16;
                let writer = if self.random.once_in(2) { queue } else { other };
                self.write_some(pair, writer);
            }
        }
        match self.random.below(4) {
            0 => self.begin_anew(pair, queue),
            // What was to break a rule may have found nothing to break it with.
            1 if self.senders[usize::from(queue)].is_broken => self.late_pieces(pair, queue),
            _ => {}
        }
    }

    fn break_rule(&mut self, pair: &mut Pair, queue: u16, rule: Rule) {
        // Whether a line is not free, or beyond the span, shows in the cause alone: without credits none is not free.
        let place_agreement = if self.shape.credits { Agreement::AllButCause } else { Agreement::All };
        match rule {
            Rule::Twice => self.write_twice(pair, queue),
            Rule::Beyond => {
                let ring = (2 * self.span_lines).min(self.window_lines);
                let from = if self.random.once_in(2) { self.span_lines } else { ring };
                let ahead = from + self.random.below(3);
                self.write_at(pair, queue, ahead.min(self.window_lines - 1), place_agreement);
            }
            Rule::Again => {
                let behind = 1 + self.random.below(4).min(self.window_lines - self.span_lines - 1);
                self.write_at(pair, queue, self.window_lines - behind, place_agreement);
            }
            Rule::Malformed => self.lay_malformed(pair, queue),
        }
    }

    /// Bytes of the line so many lines from the frontier on, where none may be written.
    fn write_at(&mut self, pair: &mut Pair, queue: u16, ahead: u64, agreement: Agreement) {
        let sender = &mut self.senders[usize::from(queue)];
        let place = (sender.frontier + ahead) % self.window_lines;
        let (enables, fill) = (enables(&mut self.random), self.random.word() as u8);
        sender.breaks(agreement);
        self.coverage.rule_broken(if ahead + 5 > self.window_lines { 1 } else { 0 });
        write_piece(pair, queue, place, &[fill; 64], enables);
    }

    /// Bytes of a line in the span that has some of them.
    fn write_twice(&mut self, pair: &mut Pair, queue: u16) {
        let sender = &mut self.senders[usize::from(queue)];
        let span = self.span_lines.min(sender.lines.len() as u64) as usize;
        let mut begun = (0..span).filter(|at| sender.lines[*at].written() != 0);
        let Some(at) = begun.next_back() else { return };
        let written = sender.lines[at].written();
        let enables = enables(&mut self.random) | written & written.wrapping_neg();
        let place = (sender.frontier + at as u64) % self.window_lines;
        sender.breaks(Agreement::All);
        self.coverage.rule_broken(2);
        write_piece(pair, queue, place, &[0x99; 64], enables);
    }

    /// A message that its reader refuses, in the order of the others: it breaks the rule when all before it is there.
    fn lay_malformed(&mut self, pair: &Pair, queue: u16) {
        if self.senders[usize::from(queue)].is_broken || self.free_lines(pair, queue) == 0 {
            return;
        }
        let sender = &mut self.senders[usize::from(queue)];
        let line = malformed(&mut self.random, sender.epoch, self.window_lines);
        let first = sender.end;
        sender.lay_line(line, vec![u64::MAX]);
        sender.messages.push_back(Message { first, end: first + 1, frames: Vec::new(), is_malformed: true });
        self.coverage.rule_broken(3);
    }

    /// Stores of an owner that keeps no rule any more: anywhere, good lines among them.
    fn late_pieces(&mut self, pair: &mut Pair, queue: u16) {
        for _ in 0..1 + self.random.below(6) {
            let sender = &self.senders[usize::from(queue)];
            let ahead = match self.random.below(4) {
                0 => 0,
                1 => self.random.below(self.span_lines),
                _ => self.random.below(self.window_lines),
            };
            let place = (sender.frontier + ahead) % self.window_lines;
            let enables = enables(&mut self.random);
            write_piece(pair, queue, place, &[0x77; 64], enables);
        }
    }

    /// Stops a queue in the middle of whatever it does and starts it anew, as an owner does who keeps the rules: credits of
    /// its last life have come when a read behind the stop is answered.
    fn begin_anew(&mut self, pair: &mut Pair, queue: u16) {
        self.senders[usize::from(queue)].is_cut_short();
        self.stop_and_start(pair, queue);
    }

    fn stop_and_start(&mut self, pair: &mut Pair, queue: u16) {
        self.coverage.restart();
        pair.stop(queue);
        pair.read_back(queue);
        pair.count_credits(queue, true);
        let epoch = self.senders[usize::from(queue)].epoch;
        self.start(pair, queue, epoch.wrapping_add(1));
    }

    /// The same without the read: the start follows the stop in the next cycle. What credits then say means nothing, so
    /// the life that begins is one that keeps no rule.
    fn begin_anew_at_once(&mut self, pair: &mut Pair, queue: u16) {
        self.coverage.restart();
        self.senders[usize::from(queue)].is_cut_short();
        pair.count_credits(queue, false);
        pair.stop(queue);
        let epoch = self.senders[usize::from(queue)].epoch;
        self.start(pair, queue, epoch.wrapping_add(1));
        self.senders[usize::from(queue)].is_cut_short();
    }

    /// Time goes on by more than a time-out: a queue that has one fails if it had a hole, and which pieces had come by then
    /// is another matter in each device.
    fn time_passes(&mut self, pair: &mut Pair) {
        self.now_ns += 2 * TIMEOUT_NS;
        self.senders[usize::from(TIMED_QUEUE)].is_cut_short();
        self.coverage.rule_broken(4);
        pair.time_passed(self.now_ns);
    }
}

/// Some bytes of a line.
fn enables(random: &mut super::random::Random) -> u64 {
    match random.below(5) {
        0 | 1 => u64::MAX,
        2 => 0xff,
        3 => !0xff,
        _ => random.word() | 1 << random.below(64),
    }
}
