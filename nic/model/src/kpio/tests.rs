//! The kPIO+WC engine, alone: the packets of the paper's figure 3, its limits, and hosts that misbehave.

use beeline_spec::formats::KPIO_EOP_DEFAULT as EOP;

use super::*;
use crate::deadlines::NEVER;
use crate::fetch::test_host::{BASE, Random, TestHost};

const MAX_FRAME: u32 = 1518;
const WINDOW_LINES: u32 = 64;

fn settings() -> QueueSettings {
    QueueSettings {
        window_lines: WINDOW_LINES,
        kpio_eop: EOP,
        credit_address: BASE,
        credit_lines: 1,
        hole_timeout_ns: 1000,
        ..QueueSettings::default()
    }
}

struct Bench {
    engine: KpioEngine,
    shared: Shared,
    host: TestHost,
    /// Lines written to each queue.
    written: Vec<u64>,
}

impl Bench {
    fn new(queues: u16, settings: &QueueSettings) -> Self {
        let config =
            NicConfig { queues: u32::from(queues), max_frame_bytes: MAX_FRAME, ..NicConfig::default() };
        let mut bench = Bench {
            engine: KpioEngine::new(&config),
            shared: Shared::new(u32::from(queues)),
            host: TestHost::new(4096),
            written: vec![0; usize::from(queues)],
        };
        for queue in 0..queues {
            let settings = QueueSettings {
                credit_address: settings.credit_address + u64::from(queue) * 64,
                ..settings.clone()
            };
            bench.engine.start(QueueId(queue), &settings, &mut bench.shared).unwrap();
        }
        bench
    }

    fn write(&mut self, queue: u16, offset: u64, data: &[u8], enables: Enables) -> Accept {
        let accept = self.engine.write_arrived(QueueId(queue), offset, data, enables, &mut self.shared);
        self.engine.push_due_credits(&mut self.shared);
        self.host.take_wants(&mut self.shared);
        for (queue, _) in self.shared.failed.clone() {
            self.engine.quarantine(queue, &mut self.shared);
        }
        accept
    }

    /// Writes a line where the next one of the queue goes.
    fn line(&mut self, queue: u16, line: &[u8; 64]) -> Accept {
        let at = self.written[usize::from(queue)] % u64::from(WINDOW_LINES) * 64;
        self.written[usize::from(queue)] += 1;
        self.write(queue, at, line, Enables::All)
    }

    fn lines(&mut self, queue: u16, lines: &[[u8; 64]]) {
        for line in lines {
            assert_eq!(self.line(queue, line), Accept::Taken);
        }
    }

    fn take(&mut self, queue: u16) -> Option<Vec<u8>> {
        let frame = self.engine.head(QueueId(queue))?.to_vec();
        assert_eq!(self.engine.head_bytes(QueueId(queue)), Some(frame.len() as u32));
        self.engine.pop(QueueId(queue), &mut self.shared);
        self.engine.push_due_credits(&mut self.shared);
        self.host.take_wants(&mut self.shared);
        Some(frame)
    }

    fn frames(&mut self, queue: u16) -> Vec<Vec<u8>> {
        core::iter::from_fn(|| self.take(queue)).collect()
    }

    fn credits(&self, queue: u16) -> u64 {
        self.host.word(BASE + u64::from(queue) * 64)
    }
}

/// The lines of a frame whose length is a multiple of 8, as a driver stuffs them.
fn stuffed(frame: &[u8]) -> Vec<[u8; 64]> {
    assert_eq!(frame.len() % 8, 0);
    let mut bytes = frame.to_vec();
    bytes.extend(EOP.to_le_bytes());
    while !bytes.len().is_multiple_of(64) {
        bytes.extend(EOP.to_le_bytes());
    }
    bytes.as_chunks::<64>().0.to_vec()
}

/// A frame without a signature in it.
fn frame(bytes: usize, first: u8) -> Vec<u8> {
    (0..bytes).map(|i| first.wrapping_add(i as u8) & 0x7f).collect()
}

#[test]
fn packets_a_b_and_c_of_figure_3_are_stuffed_and_filtered() {
    let (a, b, c) = (frame(120, 1), frame(64, 2), frame(240, 3));
    let signatures = |lines: &[[u8; 64]]| {
        let words = lines.iter().flat_map(|line| line.as_chunks::<8>().0.to_vec());
        (lines.len(), words.filter(|word| *word == EOP.to_le_bytes()).count())
    };
    assert_eq!(signatures(&stuffed(&a)), (2, 1), "A: one 8-byte EOP signature");
    assert_eq!(signatures(&stuffed(&b)), (2, 8), "B: an additional 64 bytes of EOP stuffing");
    assert_eq!(signatures(&stuffed(&c)), (4, 2), "C: two EOP signatures");
    let mut bench = Bench::new(1, &settings());
    for packet in [&a, &b, &c] {
        bench.lines(0, &stuffed(packet));
    }
    assert_eq!(bench.frames(0), [a, b, c]);
    let counters = &bench.shared.counters;
    assert_eq!((counters.kpio_lines, counters.kpio_frames, counters.kpio_malformed), (8, 3, 0));
    assert_eq!(bench.credits(0), 8, "every line, the signatures' too, is free again");
}

#[test]
fn frame_of_any_multiple_of_8_bytes_passes_across_window_laps() {
    let mut bench = Bench::new(1, &settings());
    for bytes in (16..=MAX_FRAME as usize).step_by(8) {
        let sent = frame(bytes, bytes as u8);
        bench.lines(0, &stuffed(&sent));
        assert_eq!(bench.take(0), Some(sent), "{bytes} bytes");
        assert_eq!(bench.credits(0), bench.written[0]);
    }
}

/// The paper's own limit: the queue is a FIFO and relies on the driver's "full control of the order".
#[test]
fn lines_out_of_order_corrupt_the_frame_and_nothing_notices() {
    let sent = frame(184, 9);
    let mut lines = stuffed(&sent);
    lines.swap(0, 1);
    let mut bench = Bench::new(1, &settings());
    bench.lines(0, &lines);
    let got = bench.take(0).unwrap();
    assert_eq!(got.len(), sent.len());
    assert_ne!(got, sent);
    assert_eq!(bench.shared.counters.kpio_malformed, 0);
    let mut early_end = stuffed(&sent);
    early_end.swap(1, 2);
    bench.lines(0, &early_end);
    bench.lines(0, &stuffed(&sent));
    let got = bench.frames(0);
    assert_eq!(got.len(), 2, "the end came before the middle, which became the start of the next frame");
    assert!(got.iter().all(|frame| *frame != sent));
}

#[test]
fn a_payload_word_equal_to_the_signature_loses_its_packet_and_no_other() {
    for word in 0..22 {
        let mut sent = frame(184, 5);
        sent[word * 8..word * 8 + 8].copy_from_slice(&EOP.to_le_bytes());
        let mut bench = Bench::new(1, &settings());
        bench.lines(0, &stuffed(&frame(64, 1)));
        bench.lines(0, &stuffed(&sent));
        bench.lines(0, &stuffed(&frame(64, 2)));
        let got = bench.frames(0);
        assert!(!got.contains(&sent), "word {word}");
        assert_eq!((got.first(), got.last()), (Some(&frame(64, 1)), Some(&frame(64, 2))), "word {word}");
        // In the last word of a line a signature cannot be told from an end: the packet ends there.
        let ends_early = word % 8 == 7;
        assert_eq!(got.len(), if ends_early { 4 } else { 2 }, "word {word}");
        assert_eq!(bench.shared.counters.kpio_malformed, u64::from(!ends_early), "word {word}");
        assert_eq!(bench.credits(0), bench.written[0]);
    }
    let mut sent = frame(184, 5);
    sent[176..].copy_from_slice(&EOP.to_le_bytes());
    let mut bench = Bench::new(1, &settings());
    bench.lines(0, &stuffed(&sent));
    assert_eq!(bench.frames(0), [&sent[..176]], "directly before the stuffing it is taken for stuffing");
}

#[test]
fn what_is_no_frame_is_counted_and_dropped() {
    let mut bench = Bench::new(1, &settings());
    bench.lines(0, &[[0; 64]; 30]);
    bench.lines(0, &stuffed(&frame(64, 0)));
    assert_eq!((bench.shared.counters.bad_lengths, bench.take(0)), (1, None), "too long; its end ends it");
    bench.lines(0, &stuffed(&frame(1520, 0)));
    assert_eq!((bench.shared.counters.bad_lengths, bench.take(0)), (2, None), "a word too long");
    bench.lines(0, &stuffed(&frame(8, 0)));
    assert_eq!((bench.shared.counters.runts, bench.take(0)), (1, None));
    bench.lines(0, &stuffed(&[]));
    assert_eq!((bench.shared.counters.kpio_malformed, bench.take(0)), (1, None), "signatures alone");
    bench.lines(0, &stuffed(&frame(64, 7)));
    assert_eq!(bench.frames(0), [frame(64, 7)]);
    assert_eq!(bench.credits(0), bench.written[0], "no credit is lost with a packet");
}

#[test]
fn several_queues_keep_their_packets_apart() {
    let mut bench = Bench::new(3, &settings());
    let packets: Vec<Vec<u8>> = (0..3).map(|queue| frame(64 * (queue + 2), queue as u8)).collect();
    for line in 0..5 {
        for queue in 0..3 {
            if let Some(line) = stuffed(&packets[usize::from(queue)]).get(line) {
                bench.lines(queue, &[*line]);
            }
        }
    }
    for queue in 0..3 {
        assert_eq!(bench.frames(queue), [packets[usize::from(queue)].clone()]);
        assert_eq!(bench.credits(queue), u64::from(queue) + 3);
    }
}

/// Lines in pieces, in order as far as whole lines go, give the same frames as whole lines.
fn random_pieces(seed: u64) {
    let mut random = Random::new(seed);
    let mut bench = Bench::new(1, &settings());
    let mut sent = Vec::new();
    let mut got = Vec::new();
    while sent.len() < 100 {
        let packet = frame(16 + random.below(180) * 8, random.below(256) as u8);
        let lines = stuffed(&packet);
        while u64::from(WINDOW_LINES) < bench.written[0] + lines.len() as u64 - bench.credits(0) {
            got.push(bench.take(0).unwrap());
        }
        for line in lines {
            let at = bench.written[0] % u64::from(WINDOW_LINES) * 64;
            bench.written[0] += 1;
            let mut left: Vec<usize> = (0..8).collect();
            while !left.is_empty() {
                match random.below(3) {
                    0 => {
                        let word = left.swap_remove(random.below(left.len()));
                        let piece = &line[word * 8..word * 8 + 8];
                        assert_eq!(bench.write(0, at + word as u64 * 8, piece, Enables::All), Accept::Taken);
                    }
                    1 => {
                        let take = 1 + random.below(left.len());
                        let mask = left.drain(..take).fold(0, |mask, word| mask | 0xff << (word * 8));
                        assert_eq!(bench.write(0, at, &line, Enables::Mask(mask)), Accept::Taken);
                    }
                    _ if left.len() == 8 => {
                        left.clear();
                        assert_eq!(bench.write(0, at, &line, Enables::All), Accept::Taken);
                    }
                    _ => {}
                }
            }
        }
        sent.push(packet);
    }
    got.extend(bench.frames(0));
    assert!(got == sent, "seed {seed}");
    let counters = &bench.shared.counters;
    assert!(counters.split_lines > 0 && counters.holes == 0, "seed {seed}");
    assert_eq!(bench.credits(0), bench.written[0], "seed {seed}");
}

#[test]
fn lines_in_pieces_arrive_when_they_are_whole() {
    for seed in 0..20 {
        random_pieces(seed);
    }
}

#[test]
fn one_write_may_carry_many_lines() {
    let sent = frame(1000, 4);
    let bytes: Vec<u8> = stuffed(&sent).concat();
    let mut bench = Bench::new(1, &settings());
    assert_eq!(bench.write(0, 0, &bytes[..8], Enables::All), Accept::Taken);
    assert_eq!(bench.write(0, 8, &bytes[8..], Enables::All), Accept::Taken);
    assert_eq!(bench.frames(0), [sent]);
}

#[test]
fn host_beyond_its_credits_fails_its_own_queue_alone() {
    let mut bench = Bench::new(2, &settings());
    for n in 0..WINDOW_LINES as u8 / 2 {
        bench.lines(0, &stuffed(&frame(64, n)));
    }
    assert_eq!(bench.line(0, &[0; 64]), Accept::Taken);
    assert_eq!(bench.shared.failed, [(QueueId(0), Cause::Overrun)]);
    assert_eq!(bench.shared.counters.overruns, 1);
    assert_eq!(bench.frames(0).len(), WINDOW_LINES as usize / 2, "what was complete goes out");
    bench.lines(1, &stuffed(&frame(64, 1)));
    assert_eq!(bench.frames(1).len(), 1);
}

#[test]
fn back_pressure_holds_lines_while_frames_wait_and_only_then() {
    let mut bench = Bench::new(1, &QueueSettings { backpressure: true, ..settings() });
    for n in 0..WINDOW_LINES as u8 / 2 {
        bench.lines(0, &stuffed(&frame(64, n)));
    }
    let more = stuffed(&frame(64, 99));
    assert_eq!(bench.line(0, &more[0]), Accept::Refused);
    assert_eq!(bench.shared.counters.refused_writes, 1);
    assert!(bench.take(0).is_some());
    bench.written[0] -= 1;
    bench.lines(0, &more);
    assert_eq!(bench.frames(0).last(), Some(&frame(64, 99)));
    assert!(bench.shared.failed.is_empty());
}

#[test]
fn nothing_is_refused_for_the_sake_of_an_incomplete_packet() {
    let mut bench = Bench::new(1, &QueueSettings { backpressure: true, window_lines: 4, ..settings() });
    assert_eq!(bench.write(0, 0, &[0; 192], Enables::All), Accept::Taken);
    assert_eq!(
        bench.write(0, 192, &[0; 128], Enables::All),
        Accept::Taken,
        "refused, it would wait for ever"
    );
    assert_eq!(bench.shared.failed, [(QueueId(0), Cause::Overrun)]);
}

#[test]
fn a_line_that_stays_incomplete_behind_others_is_a_hole() {
    let mut bench = Bench::new(1, &settings());
    assert_eq!(bench.write(0, 0, &[0; 32], Enables::All), Accept::Taken);
    assert_eq!((bench.shared.counters.holes, bench.engine.wake_at()), (0, NEVER), "it may still come");
    assert_eq!(bench.write(0, 64, &[0; 64], Enables::All), Accept::Taken);
    assert_eq!(bench.shared.counters.holes, 1);
    bench.shared.now = SimTime::from_ns(999);
    bench.engine.time_passed(&mut bench.shared);
    assert!(bench.shared.failed.is_empty());
    bench.shared.now = bench.engine.wake_at();
    bench.engine.time_passed(&mut bench.shared);
    assert_eq!(bench.shared.failed, [(QueueId(0), Cause::HoleTimeout)]);
    assert_eq!(bench.shared.counters.hole_timeouts, 1);
}

#[test]
fn a_stopped_queue_has_no_hole_and_a_write_of_nothing_makes_none() {
    let mut bench = Bench::new(1, &settings());
    for line in 0..20 {
        assert_eq!(bench.write(0, line * 64, &[0; 64], Enables::Mask(0)), Accept::Taken);
    }
    assert_eq!(bench.shared.counters.holes, 0);
    assert_eq!(bench.write(0, 0, &[0; 32], Enables::All), Accept::Taken);
    assert_eq!(bench.write(0, 64, &[0; 32], Enables::All), Accept::Taken);
    assert_eq!(bench.shared.counters.holes, 1);
    bench.engine.stop(QueueId(0), &mut bench.shared);
    bench.shared.now = SimTime::from_ns(5000);
    bench.engine.time_passed(&mut bench.shared);
    assert!(bench.shared.failed.is_empty());
}

#[test]
fn bytes_twice_and_too_many_lines_in_pieces_fail_the_queue() {
    let mut bench = Bench::new(2, &settings());
    for _ in 0..2 {
        assert_eq!(bench.write(0, 0, &[0; 8], Enables::All), Accept::Taken);
    }
    for line in 0..11 {
        assert_eq!(bench.write(1, line * 64, &[0; 8], Enables::All), Accept::Taken);
    }
    let counters = &bench.shared.counters;
    assert_eq!((counters.clobbers, counters.span_exceeded), (1, 1));
    assert_eq!(bench.shared.failed, [(QueueId(0), Cause::Clobber), (QueueId(1), Cause::SpanExceeded)]);
}

#[test]
fn a_window_smaller_than_the_longest_frame_still_lets_go() {
    let mut bench = Bench::new(1, &QueueSettings { window_lines: 4, ..settings() });
    for n in 0..7 {
        assert_eq!(bench.write(0, n % 4 * 64, &[0; 64], Enables::All), Accept::Taken);
    }
    assert_eq!((bench.credits(0), bench.shared.counters.bad_lengths), (7, 1));
    assert!(bench.shared.failed.is_empty());
}

#[test]
fn a_stopped_queue_forgets_everything() {
    let mut bench = Bench::new(1, &settings());
    bench.lines(0, &stuffed(&frame(64, 1)));
    assert_eq!(bench.write(0, 128, &[0; 8], Enables::All), Accept::Taken);
    bench.engine.stop(QueueId(0), &mut bench.shared);
    assert_eq!(bench.engine.head(QueueId(0)), None);
    bench.engine.start(QueueId(0), &settings(), &mut bench.shared).unwrap();
    bench.written[0] = 0;
    bench.lines(0, &stuffed(&frame(64, 2)));
    assert_eq!(bench.frames(0), [frame(64, 2)]);
}
