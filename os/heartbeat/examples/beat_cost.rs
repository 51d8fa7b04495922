//! What a beat and a look cost, and what the thread that beats takes of a core while nothing else happens:
//! `cargo run --release -p beeline-heartbeat --example beat_cost [links]`, on a quiet machine.
//!
//! Of the links of this process both sides are here, in memory of its own, so a look at a peer finds its line in the cache of this
//! core. Times are the median of rounds, and per call.

use std::hint::black_box;
use std::time::{Duration, Instant};

use beeline_contract_link::{Heartbeat, StatePort};
use beeline_heartbeat::{Acceptance, HeartbeatLink, LinkState, MappedFile, MappedState, Side};
use beeline_mmio::Region;

const ROUNDS: usize = 101;
const CALLS: u32 = 10_000;

fn main() {
    let links: usize = std::env::args().nth(1).and_then(|links| links.parse().ok()).unwrap_or(1);
    one_link();
    idle(links);
}

fn one_link() {
    let region = Region::private(MappedState::BYTES);
    let mut ports = [Side::First, Side::Second].map(|side| MappedState::new(&region, 0, side));
    let mut states = [1, 2].map(|random| LinkState::new::<MappedFile>(Acceptance::AtOnce, random, None));
    let half = Heartbeat::of::<MappedFile>().period() / 2;
    let mut now = Duration::ZERO;
    let mut turn = |at: usize| {
        now += half / 2;
        let (heard, pushed) = (ports[at].look(), ports[at].pushed());
        if let Some(line) = states[at].look(now, &heard, pushed.as_ref()) {
            ports[at].push(&line);
        }
        states[at].status().is_up()
    };
    for _ in 0..20 {
        black_box(turn(0) | turn(1));
    }
    assert!(turn(0) && turn(1), "the link is up");
    let ns = median_ns(|| {
        black_box(turn(0));
        black_box(turn(1));
    });
    println!("a look at the peer and a beat: {:.0} ns", ns / 2.0);
    let line = ports[0].look();
    let look_ns = median_ns(|| {
        black_box(ports[0].look());
    });
    println!("  of it the look at the line:  {look_ns:.0} ns");
    println!("  of it the push of a line:    {:.0} ns", median_ns(|| ports[1].push(black_box(&line))));
}

fn median_ns(mut call: impl FnMut()) -> f64 {
    let mut rounds = [0.0; ROUNDS];
    for round in &mut rounds {
        let begun = Instant::now();
        for _ in 0..CALLS {
            call();
        }
        *round = begun.elapsed().as_nanos() as f64 / f64::from(CALLS);
    }
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

/// What the process takes while it does nothing but beat.
fn idle(links: usize) {
    let region = Region::private(links * MappedState::BYTES);
    let open = |at: usize, side: Side| {
        let state = MappedState::new(&region, at * MappedState::BYTES, side);
        HeartbeatLink::open::<MappedFile>(state, Acceptance::AtOnce).expect("threads and descriptors")
    };
    let open: Vec<_> =
        (0..links).flat_map(|at| [Side::First, Side::Second].map(|side| open(at, side))).collect();
    while !open.iter().all(HeartbeatLink::is_up) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let all = open.len();
    let is_up_ns = median_ns(|| {
        black_box(open[0].is_up());
    });
    println!("is_up: {is_up_ns:.1} ns");
    let (begun, before) = (Instant::now(), cpu_time());
    std::thread::sleep(Duration::from_secs(5));
    let share = (cpu_time() - before).as_secs_f64() / begun.elapsed().as_secs_f64();
    let period = Heartbeat::of::<MappedFile>().period();
    println!("{all} sides of links, a beat in each half of {period:?}: {:.4} % of a core", share * 100.0);
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
