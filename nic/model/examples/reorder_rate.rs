//! How many lines a second one core takes through the reorder unit, from `write_arrived` to `Want::Transmit`.
//!
//! ```text
//! cargo run --release -p beeline-nic-model --example reorder_rate [-- SECONDS_PER_ROW [KIND OF WRITES]]
//! ```
//! Every row hands the NIC whole messages as a link would, and asks it what it wants until it wants nothing, after every
//! write or after a burst of 16. `in order`: one write a line. `shuffled`: the lines of 8 lines' worth of messages in a
//! random order. `split`: every line in two writes, the second half of it first. The best of several runs is printed:
//! other work on the machine only adds time.

use std::time::{Duration, Instant};

use beeline_contract_device::{Accept, Device, Enables, Want, Write};
use beeline_nic_model::{Nic, NicConfig};
use beeline_spec::regs::{self, field::queue_control, queue};
use beeline_spec::{Header, Kind, formats};

const LINES: usize = 1024;
/// Lines of a message, and writes between two looks at what the NIC wants.
const ROWS: [(usize, usize); 6] = [(1, 1), (1, 16), (2, 1), (2, 16), (4, 16), (16, 16)];

/// One write: where in the window, and which bytes of the lap.
type Step = (usize, usize);

fn set(nic: &mut Nic, offset: u32, value: u64) {
    let write = Write { offset_bytes: offset.into(), data: &value.to_le_bytes(), enables: Enables::All };
    assert_eq!(nic.write_arrived(write), Accept::Taken);
}

fn nic(backpressure: bool) -> Nic {
    let config =
        NicConfig { queues: 1, window_lines: LINES as u32, pool_lines: 2048, ..NicConfig::default() };
    let mut nic = Nic::new(config).expect("these sizes make sense");
    set(&mut nic, regs::CONTROL, 1);
    set(&mut nic, regs::QUEUE + queue::CREDIT_ADDRESS, 4096);
    set(&mut nic, regs::QUEUE + queue::CREDIT_COALESCE, 128 | 2000 << 32);
    let control = 1
        | u64::from(formats::interface::MMIO) << queue_control::IFACE_LSB
        | u64::from(backpressure) << queue_control::BACKPRESSURE_LSB;
    set(&mut nic, regs::QUEUE + queue::CONTROL, control);
    nic
}

/// One lap of the window filled with messages of `lines` lines, as bytes.
fn lap(lines: usize) -> Vec<u8> {
    let mut bytes = vec![0x5a; LINES * 64];
    for message in bytes.chunks_exact_mut(lines * 64) {
        let header = Header::new(Kind::Data, (lines * 64 - 8) as u32, 0);
        message[..8].copy_from_slice(&header.encode().to_le_bytes());
    }
    bytes
}

fn shuffle(order: &mut [Step], random: &mut u64) {
    for i in (1..order.len()).rev() {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        order.swap(i, (*random >> 33) as usize % (i + 1));
    }
}

fn steps(kind: &str) -> Vec<Step> {
    let whole: Vec<Step> = (0..LINES).map(|line| (line * 64, 64)).collect();
    match kind {
        "in order" => whole,
        "shuffled" => {
            let (mut order, mut random) = (whole, 1);
            order.chunks_mut(8).for_each(|lines| shuffle(lines, &mut random));
            order
        }
        _ => (0..LINES).flat_map(|line| [(line * 64 + 32, 32), (line * 64, 32)]).collect(),
    }
}

/// Sends laps for a while; the best lines a second of many short runs.
fn measure(nic: &mut Nic, bytes: &[u8], steps: &[Step], burst: usize, time: Duration) -> f64 {
    let aperture = nic.config().aperture_bytes();
    let (mut best, start) = (0.0, Instant::now());
    let mut frames = 0u64;
    while start.elapsed() < time {
        let laps = 20;
        let begun = Instant::now();
        for _ in 0..laps {
            for steps in steps.chunks(burst) {
                for &(at, count) in steps {
                    let data = &bytes[at..at + count];
                    let write = Write { offset_bytes: aperture + at as u64, data, enables: Enables::All };
                    assert_eq!(nic.write_arrived(write), Accept::Taken);
                }
                while let Some(want) = nic.next() {
                    if let Want::Transmit { frame, .. } = want {
                        frames += u64::from(frame[0] == 0x5a);
                    }
                }
            }
        }
        let rate = (laps * LINES) as f64 / begun.elapsed().as_secs_f64();
        best = f64::max(best, rate);
    }
    assert!(frames > 0);
    best
}

/// The best time of `write_arrived` alone, for whole lines in order: from a line to a message that is released. A lap is
/// written while the wire is busy, and let out outside the measurement.
fn measure_writes(nic: &mut Nic, bytes: &[u8], time: Duration) -> f64 {
    let aperture = nic.config().aperture_bytes();
    let (mut best, start) = (0.0, Instant::now());
    while start.elapsed() < time {
        nic.wire_ready(false);
        let begun = Instant::now();
        for (line, data) in bytes.chunks_exact(64).enumerate() {
            let write = Write { offset_bytes: aperture + line as u64 * 64, data, enables: Enables::All };
            assert_eq!(nic.write_arrived(write), Accept::Taken);
        }
        best = f64::max(best, LINES as f64 / begun.elapsed().as_secs_f64());
        nic.wire_ready(true);
        while nic.next().is_some() {}
    }
    best
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0.3);
    let only = std::env::args().nth(2);
    let head = ["mode", "writes", "lines/message", "writes/burst", "M lines/s", "ns/line"];
    println!(
        "{:<14} {:<10} {:>13} {:>13} {:>10} {:>9}",
        head[0], head[1], head[2], head[3], head[4], head[5]
    );
    for (mode, backpressure) in [("credits", false), ("back-pressure", true)] {
        let kinds = ["in order", "shuffled", "split"].into_iter();
        for kind in kinds.filter(|kind| only.as_deref().is_none_or(|only| only == *kind)) {
            for (lines, burst) in ROWS {
                let (bytes, steps) = (lap(lines), steps(kind));
                let mut nic = nic(backpressure);
                let rate = measure(&mut nic, &bytes, &steps, burst, Duration::from_secs_f64(seconds));
                let (millions, ns) = (rate / 1e6, 1e9 / rate);
                println!("{mode:<14} {kind:<10} {lines:>13} {burst:>13} {millions:>10.1} {ns:>9.2}");
            }
        }
    }
    println!("\n{:<25} {:>13} {:>24} {:>9}", "write_arrived alone", "lines/message", "M lines/s", "ns/line");
    for lines in [1, 2, 16] {
        let rate = measure_writes(&mut nic(false), &lap(lines), Duration::from_secs_f64(seconds));
        println!("{:<25} {lines:>13} {:>24.1} {:>9.2}", "credits, in order", rate / 1e6, 1e9 / rate);
    }
}
