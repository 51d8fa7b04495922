//! The compiled bench: the RTL and the behavioural NIC under the same adversary, write by write.
//!
//! Messages of every kind are cut into pieces of any bytes, put in any order inside the reorder span and mixed over the
//! queues; the wire stands and goes; writers die and break every rule. After each round both devices must have sent the
//! same frames, which are those that were written, and tell the same states, next starts, credits and counts.
//! `BEELINE_RTL_LINES` sets the lines of a run (10^6 in CI, 10^8 in the long lane), `BEELINE_SEED` the seed.
#![cfg(feature = "rtl")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail the test")]

mod coverage;
mod pair;
mod traffic;

use beeline_nic_rtl::RtlConfig;
use pair::Pair;
use traffic::{Breaks, Shape, Traffic};

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().expect("a number"))
}

/// Plays `share` thousandths of the lines of a run. Frames that began early, and those of them that ended by an underrun.
fn play(config: &RtlConfig, shape: Shape, share: u64) -> (u64, u64) {
    let seed = number("BEELINE_SEED", 20_251_122);
    let lines = number("BEELINE_RTL_LINES", 1_000_000) * share / 1000;
    println!("seed {seed}, {lines} lines, {shape:?}");
    let mut pair = Pair::new(config, shape.queues);
    let mut traffic = Traffic::new(seed, config, shape);
    while traffic.lines_written() < lines {
        traffic.round(&mut pair);
        pair.compare(&mut traffic);
    }
    if shape.breaks != Breaks::Anywhen {
        pair.compare_counters(&shape);
    }
    pair.everything_is_free(&traffic);
    println!("{} lines in {} cycles\n{}", traffic.lines_written(), pair.rtl.cycles(), traffic.coverage());
    let missing = traffic.coverage().missing(traffic.lines_written(), config.span_lines as usize);
    assert!(missing.is_empty(), "never met: {}", missing.join(", "));
    let (frames, underruns) = pair.cut_through();
    println!("  {frames} frames began early, {underruns} of them ended by an underrun");
    (frames, underruns)
}

#[test]
fn whole_lines_of_sixteen_queues_in_any_order_inside_the_span() {
    play(&RtlConfig { span_lines: 16, ..RtlConfig::default() }, Shape { split: 1, ..Shape::DEFAULT }, 400);
}

#[test]
fn pieces_of_any_bytes() {
    play(&RtlConfig { span_lines: 16, window_lines: 64, ..RtlConfig::default() }, Shape::DEFAULT, 250);
}

#[test]
fn the_widest_span_and_the_longest_frames() {
    play(&RtlConfig::default(), Shape { split: 2, longest: 9216, ..Shape::DEFAULT }, 100);
}

#[test]
fn the_narrowest_span_and_window() {
    let config = RtlConfig { span_lines: 2, window_lines: 32, max_frame_bytes: 1514, ..RtlConfig::default() };
    play(&config, Shape { longest: 1514, ..Shape::DEFAULT }, 100);
}

#[test]
fn without_credits_on_a_small_pool() {
    let config = RtlConfig { span_lines: 8, window_lines: 256, pool_lines: 400, ..RtlConfig::default() };
    play(&config, Shape { credits: false, longest: 600, ..Shape::DEFAULT }, 100);
}

#[test]
fn frames_that_begin_before_their_message_is_whole() {
    let config = RtlConfig { span_lines: 16, window_lines: 64, ..RtlConfig::default() };
    let shape = Shape { queues: 3, split: 2, cut_through_lines: 4, ..Shape::DEFAULT };
    let (frames, underruns) = play(&config, shape, 40);
    assert!(frames > underruns && underruns > 0, "both ends were met");
    play(&config, Shape { queues: 2, cut_through_lines: 8, credits: false, ..shape }, 20);
    play(&config, Shape { breaks: Breaks::Anywhen, ..shape }, 20);
}

#[test]
fn writers_that_die_and_break_rules() {
    let anywhen = Shape { breaks: Breaks::Anywhen, ..Shape::DEFAULT };
    let config = RtlConfig { span_lines: 8, window_lines: 64, ..RtlConfig::default() };
    play(&config, Shape { queues: 5, ..anywhen }, 6);
    play(&config, Shape { queues: 3, split: 2, longest: 100, credits: false, ..anywhen }, 4);
    // A window as long as a context's ring, and the longest of both.
    let narrow = RtlConfig { span_lines: 16, window_lines: 32, max_frame_bytes: 1514, ..config };
    play(&narrow, Shape { longest: 1514, ..anywhen }, 6);
    play(&RtlConfig::default(), anywhen, 6);
}

#[test]
fn rules_judged_in_order_of_arrival_match_to_the_last_count() {
    let in_order = Shape { breaks: Breaks::InOrder, ..Shape::DEFAULT };
    let config = RtlConfig { span_lines: 8, window_lines: 64, ..RtlConfig::default() };
    play(&config, Shape { queues: 5, ..in_order }, 6);
    play(&config, Shape { queues: 5, credits: false, ..in_order }, 6);
}

#[test]
fn reset_in_the_middle_of_traffic() {
    let config = RtlConfig { span_lines: 8, window_lines: 64, ..RtlConfig::default() };
    let shape = Shape::DEFAULT;
    let mut pair = Pair::new(&config, shape.queues);
    for life in 0..20 {
        let mut traffic = Traffic::new(number("BEELINE_SEED", 7) + life, &config, shape);
        for _ in 0..3 {
            traffic.round(&mut pair);
            pair.compare(&mut traffic);
        }
        // What is under way now is lost, whatever it is; nothing of it may come out in the next life.
        traffic.unfinished(&mut pair, 200);
        pair.reset(&config, shape.queues);
    }
}
