//! Names of pool lines and contexts: whatever a queue's owner writes, in neighbouring cycles or not, no name is lost, none
//! is used by two queues, and no byte reaches a line that is another queue's by now.

use beeline_nic_rtl::RtlConfig;
use beeline_spec::Interface;

use crate::host::{Host, Start, message};

/// The queue whose owner keeps no rule, and two honest ones.
const HOSTILE: u16 = 0;
const HONEST: [u16; 2] = [1, 2];

/// A window as long as a context's ring: the line behind its last one has the first one's slot.
const SHORT: RtlConfig = RtlConfig {
    window_lines: 32,
    span_lines: 16,
    contexts: 16,
    pool_lines: 16 * 1024,
    max_frame_bytes: 1514,
    rx_lossless: true,
    mac: [2, 0, 0, 0, 0, 1],
};
/// The longest window.
const LONG: RtlConfig = RtlConfig { window_lines: 1024, ..SHORT };

/// Epochs of honest queues.
const EPOCH: u8 = 200;

/// A host, and how far its honest queues are.
struct Names {
    host: Host,
    /// Lines written by each honest queue, each a message and a name taken.
    written: [u64; 2],
    /// Names of lines when nobody has one, and how often one was taken.
    all: u64,
    taken: u64,
    epoch: u8,
}

impl Names {
    fn new(config: RtlConfig) -> Self {
        let mut host = Host::new(config);
        host.idle_for(50);
        let all = host.nic.free_lines().into();
        let mut names = Names { host, written: [0; 2], all, taken: 0, epoch: 0 };
        for queue in HONEST {
            names.host.start(queue, Start { interface: Interface::Mmio, epoch: EPOCH, credits: true });
            names.taken += 1;
        }
        names
    }

    /// The hostile queue lives again.
    fn start(&mut self, credits: bool) {
        self.epoch = self.epoch % 100 + 1;
        self.host.start(HOSTILE, Start { interface: Interface::Mmio, epoch: self.epoch, credits });
        self.taken += 1;
    }

    /// Bytes of a line of the hostile queue, all of them 0xee behind a good header.
    fn piece(&mut self, position: u64, from: usize, to: usize) {
        let line = message(self.epoch, 0xeeee_eeee_eeee_eeee, 0xee);
        self.host.piece(HOSTILE, position, &line, from, to);
    }

    /// The next message of an honest queue.
    fn honest(&mut self, which: usize) {
        let number = self.written[which];
        let fill = 1 + which as u8;
        self.host.piece(HONEST[which], number, &message(EPOCH, number, fill), 0, 64);
        self.written[which] += 1;
        self.taken += 1;
    }

    /// Every frame that an honest queue wrote has left, as it was written, and its lines were freed.
    fn honest_is_exact(&mut self) {
        for (which, queue) in HONEST.into_iter().enumerate() {
            let written = self.written[which];
            self.host.until_sent(queue, written as usize);
            let frames = self.host.frames.get(&queue).map_or(&[][..], Vec::as_slice);
            assert_eq!(frames.len() as u64, written, "frames of honest queue {queue}");
            for (number, frame) in frames.iter().enumerate() {
                let wrote = &message(EPOCH, number as u64, 1 + which as u8)[8..];
                assert!(
                    frame == wrote,
                    "frame {number} of queue {queue} was written {wrote:02x?}, left {frame:02x?}"
                );
            }
            assert!(self.host.is_active(queue), "honest queue {queue} has failed");
            assert_eq!(self.host.freed(queue), written, "freed lines of honest queue {queue}");
        }
        assert!(self.host.holds(), "an assertion of the RTL failed");
    }

    /// Fills both honest windows while the wire stands, then lets them go. Every write is taken.
    fn fill_and_drain(&mut self) {
        self.host.wire_ready(false);
        for _ in 0..self.host.config.window_lines - 2 {
            self.honest(0);
            self.honest(1);
        }
        self.host.wire_ready(true);
        self.honest_is_exact();
    }

    /// Takes every name that is free at least once, by two queues in turn: one that is given twice meets itself, and one
    /// that is written to by somebody else is not as it was written.
    fn sweep(&mut self) {
        let until = self.taken + self.all + 64;
        while self.taken < until {
            self.fill_and_drain();
        }
    }

    /// Names that nobody has, after the hostile queue stopped and what it left has come back.
    fn free(&mut self) -> (u32, u32) {
        self.host.stop(HOSTILE);
        assert!(!self.host.is_active(HOSTILE), "the queue was stopped");
        self.host.idle_for(50);
        (self.host.nic.free_lines(), self.host.nic.free_contexts())
    }

    fn assert_free(&mut self, before: (u32, u32), what: &str) {
        let after = self.free();
        assert_eq!(after, before, "{what}: free lines and contexts");
        assert!(self.host.holds(), "{what}: an assertion of the RTL failed");
    }
}

#[test]
fn a_line_written_again_behind_a_new_context_reaches_no_other_queue() {
    let mut names = Names::new(SHORT);
    // Pieces of fifteen lines behind a hole: their pool lines' names stay in the context after the stop.
    names.start(true);
    for position in 1..16 {
        names.piece(position, 0, 8);
        names.taken += 1;
    }
    names.free();
    // A later life takes each of the other contexts once, so that the next one it takes is that of the life before.
    names.start(true);
    for position in 0..15 {
        names.piece(position, 0, 8);
        names.piece(position, 8, 64);
        names.taken += 1;
        names.host.until_sent(HOSTILE, position as usize + 1);
        names.host.idle_for(20);
    }
    // The names that were never given out go first: honest messages use them up, and then take those of the first life.
    while names.taken < names.all {
        names.honest(0);
    }
    names.honest_is_exact();
    names.host.wire_ready(false);
    for _ in 0..28 {
        names.honest(0);
    }
    names.piece(15, 0, 64);
    names.piece(17, 0, 8);
    names.piece(15, 8, 64);
    names.host.idle_for(20);
    names.host.wire_ready(true);
    names.honest_is_exact();
    assert!(!names.host.is_active(HOSTILE), "a line that is not free was written again");
}

#[test]
fn a_line_written_three_times_loses_no_pool_line() {
    let mut names = Names::new(SHORT);
    let before = names.free();
    for round in 0..20 {
        names.start(true);
        names.piece(0, 0, 64);
        names.piece(0, 0, 8);
        names.piece(0, 8, 64);
        names.assert_free(before, &format!("round {round}"));
    }
    names.sweep();
}

#[test]
fn the_bar_takes_what_credits_allow_after_two_thousand_broken_lives() {
    let mut names = Names::new(LONG);
    let before = names.free();
    for round in 0..2200 {
        names.start(true);
        // Beyond the span; then, before that is judged, the frontier's line whole and the line that has its slot next.
        names.piece(32, 0, 8);
        names.piece(0, 0, 64);
        names.piece(32, 0, 8);
        let after = names.free();
        if round % 500 == 499 {
            println!("{} lives: {} lines free of {}", round + 1, after.0, before.0);
        }
    }
    // Thirteen more honest queues: with the two there are, and one window for the hostile queue, all of the pool.
    for queue in 3..16 {
        names.host.start(queue, Start { interface: Interface::Mmio, epoch: EPOCH, credits: true });
    }
    names.host.wire_ready(false);
    for number in 0..1024 {
        for queue in 1..16 {
            names.host.piece(queue, number, &message(EPOCH, number, queue as u8), 0, 64);
        }
    }
    names.host.wire_ready(true);
    for queue in 1..16 {
        names.host.until_sent(queue, 1024);
        assert_eq!(names.host.frames[&queue].len(), 1024, "frames of queue {queue}");
        for (number, frame) in names.host.frames[&queue].iter().enumerate() {
            assert!(
                frame == &message(EPOCH, number as u64, queue as u8)[8..],
                "frame {number} of queue {queue}"
            );
        }
        names.host.stop(queue);
    }
    assert_eq!(names.free(), (names.all as u32, before.1), "all names are free when nobody is started");
    assert!(names.host.holds(), "an assertion of the RTL failed");
}

#[test]
fn context_opened_behind_a_dead_queues_line_gives_back_only_its_own() {
    let mut names = Names::new(LONG);
    let before = names.free();
    for round in 0..200 {
        names.start(round % 2 == 0);
        let base = round % 29;
        for position in 0..base {
            names.piece(position, 0, 64);
        }
        names.host.idle_for(20);
        // Beyond the span, which is judged when the line at the frontier has gone the way of whole lines already.
        names.piece(base + 32, 0, 8);
        names.piece(base, 0, 64);
        names.piece(base + 1, 0, 8);
        names.free();
    }
    names.sweep();
    names.assert_free(before, "two hundred lives");
}

#[test]
fn a_line_that_is_not_free_and_a_piece_behind_it_double_no_name() {
    let mut names = Names::new(SHORT);
    let before = names.free();
    for _ in 0..200 {
        names.start(true);
        names.host.wire_ready(false);
        for position in 0..32 {
            names.piece(position, 0, 64);
        }
        names.host.idle_for(20);
        names.piece(32, 0, 64);
        names.piece(33, 0, 8);
        names.host.idle_for(20);
        names.host.wire_ready(true);
        names.free();
    }
    names.sweep();
    names.assert_free(before, "two hundred lives");
}

/// Pieces, by how far their line is from the frontier that the sender knows: line, first byte, byte behind the last.
type Piece = (u64, usize, usize);

/// Every order of three and of four of these, in neighbouring cycles, in a queue with credits or without.
fn bursts(config: RtlConfig, pieces: &[Piece], length: u32) {
    let mut names = Names::new(config);
    let before = names.free();
    let count = (pieces.len() as u32).pow(length);
    for round in 0..count {
        names.start(round % 2 == 0);
        // Where in its ring a context opens is different each time.
        let base = u64::from(round % 5);
        for position in 0..base {
            names.piece(position, 0, 64);
        }
        names.host.idle_for(u64::from(round % 3) * 8);
        let burst =
            (0..length).map(|at| pieces[(round / (pieces.len() as u32).pow(at)) as usize % pieces.len()]);
        let burst: Vec<Piece> = burst.collect();
        for &(line, from, to) in &burst {
            names.piece(base + line, from, to);
        }
        names.honest(round as usize % 2);
        names.assert_free(before, &format!("{burst:?} from line {base}"));
        if names.written[0].is_multiple_of(16) {
            names.honest_is_exact();
        }
    }
    names.sweep();
}

#[test]
fn no_burst_of_broken_pieces_loses_or_doubles_a_name() {
    let pieces =
        [(0, 0, 64), (0, 0, 8), (0, 8, 64), (1, 0, 8), (2, 0, 8), (32, 0, 8), (33, 8, 64), (1, 0, 64)];
    bursts(LONG, &pieces, 3);
}

#[test]
fn bursts_of_broken_pieces_keep_every_name_where_ring_is_window() {
    let pieces = [(0, 0, 64), (0, 0, 8), (0, 8, 64), (1, 0, 8), (2, 0, 8), (17, 0, 8), (31, 0, 64)];
    bursts(SHORT, &pieces, 3);
}
