//! `beeline compare --device rtl`: what a frame costs the NIC by each interface, in cycles of its clock.
//!
//! The host is never late (it hands over as much as the queue takes between two cycles) and its memory answers a read in
//! the next cycle, one read a cycle. So what is counted is the NIC's own limit, and nothing of the link's: PCIe's
//! latency and its headers are not in it. Frames are compared byte for byte.

use beeline_driver::{Sent, Transmit};
use beeline_window::FencePolicy;
use comfy_table::Table;
use indicatif::ProgressBar;
use serde::Serialize;

use super::{Bench, Job, MAX_IDLE_TURNS, QueueSettings};
use crate::compare::args::CompareArgs;
use crate::compare::table::empty as empty_table;
use crate::failure::Failure;
use crate::{out, progress};

/// Frame sizes in bytes unless others are asked for.
const SIZES: [u32; 5] = [64, 128, 512, 1500, 9000];
const QUICK_SIZES: [u32; 3] = [64, 512, 1500];
/// Frames of a row.
const FRAMES: u64 = 4_000;
const QUICK_FRAMES: u64 = 250;
/// Frames that are handed over at a time.
const BURSTS: [usize; 2] = [1, 32];

/// Cost of one interface at one frame size.
#[derive(Serialize)]
struct Row {
    interface: &'static str,
    frame_bytes: u32,
    burst_frames: usize,
    frames: u64,
    cycles: u64,
    cycles_per_frame: f64,
    clock_mhz: u32,
    /// Frames a second at that clock.
    frames_per_s: f64,
    gbps: f64,
}

/// Counts and prints.
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let default_sizes = if args.quick { QUICK_SIZES.to_vec() } else { SIZES.to_vec() };
    let sizes = if args.size.is_empty() { default_sizes } else { args.size.clone() };
    let frames = if args.quick { QUICK_FRAMES } else { FRAMES };
    let steps = args.interface.len() * sizes.len() * BURSTS.len();
    let bar = progress::bar(steps as u64, "measurements", args.output.json);
    let mut rows = Vec::new();
    for &interface in &args.interface {
        for frame_bytes in &sizes {
            for burst_frames in BURSTS {
                let settings = QueueSettings {
                    interface,
                    fences: FencePolicy::None,
                    adversary: None,
                    cut_through_lines: 0,
                };
                rows.push(row(settings, *frame_bytes, burst_frames, frames, args.clock_mhz, &bar)?);
            }
        }
    }
    bar.finish_and_clear();
    if args.output.json {
        return out::json(&rows);
    }
    out::line(format_args!(
        "The NIC's RTL, its host never late (simulated: cycles counted, rates at {} MHz)",
        args.clock_mhz
    ))?;
    out::line(table(&rows))
}

fn row(
    settings: QueueSettings,
    frame_bytes: u32,
    burst_frames: usize,
    frames: u64,
    clock_mhz: u32,
    bar: &ProgressBar,
) -> Result<Row, Failure> {
    let mut bench = Bench::new(0)?;
    let job = Count { frame_bytes: frame_bytes as usize, burst_frames, frames };
    let cycles = bench.with_queue(settings, job)?;
    bar.inc(1);
    let cycles_per_frame = cycles as f64 / frames as f64;
    let frames_per_s = f64::from(clock_mhz) * 1e6 / cycles_per_frame;
    Ok(Row {
        interface: settings.interface.name(),
        frame_bytes,
        burst_frames,
        frames,
        cycles,
        cycles_per_frame,
        clock_mhz,
        frames_per_s,
        gbps: frames_per_s * f64::from(frame_bytes) * 8.0 / 1e9,
    })
}

/// Sends frames of one size and counts cycles from the first store to the last beat.
struct Count {
    frame_bytes: usize,
    burst_frames: usize,
    frames: u64,
}

impl Count {
    fn frame(&self, number: u64) -> Vec<u8> {
        (0..self.frame_bytes as u64).map(|i| (i.wrapping_mul(31) ^ number.wrapping_mul(97)) as u8).collect()
    }

    /// Hands over what the queue takes; how many frames.
    fn hand_over<T: Transmit>(&self, tx: &mut T, from: u64) -> Result<u64, Failure> {
        let failed = |error| Failure::new("the queue does not take a frame").because(error);
        let mut next = from;
        while next < self.frames {
            let taken = if self.burst_frames == 1 {
                u64::from(tx.try_send(&self.frame(next)).map_err(failed)? == Sent::Sent)
            } else {
                let until = self.frames.min(next + self.burst_frames as u64);
                let frames: Vec<Vec<u8>> = (next..until).map(|number| self.frame(number)).collect();
                let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
                tx.try_send_burst(&frames).map_err(failed)?.0 as u64
            };
            if taken == 0 {
                break;
            }
            next += taken;
        }
        tx.progress().map_err(failed)?;
        Ok(next - from)
    }
}

impl Job for Count {
    type Output = u64;

    fn run<T: Transmit>(self, bench: &mut Bench, tx: &mut T) -> Result<u64, Failure> {
        bench.link.with_bus(|bus| bus.device.set_stepped(true));
        // A cycle at 250 MHz; times decide only about credits and completions that nothing else makes due.
        bench.step_ns = 4;
        let multiple = tx.declared().frame_multiple_bytes();
        let (start, mut sent, mut seen, mut idle) = (bench.cycles(), 0, 0, 0);
        while seen < self.frames {
            let handed = self.hand_over(tx, sent)?;
            sent += handed;
            bench.step()?;
            let frames = bench.take_frames();
            for frame in &frames {
                let mut expected = self.frame(seen);
                expected.resize(expected.len().next_multiple_of(multiple), 0);
                if *frame != expected {
                    return Err(Failure::new(format!("frame {seen} was altered on its way")));
                }
                seen += 1;
            }
            idle = if handed == 0 && frames.is_empty() { idle + 1 } else { 0 };
            if idle > MAX_IDLE_TURNS {
                return Err(Failure::new(format!("after {seen} frames the NIC transmits no more")));
            }
        }
        Ok(bench.cycles() - start)
    }
}

fn table(rows: &[Row]) -> Table {
    let header = ["interface", "frame bytes", "at a time", "cycles a frame", "M frames/s", "Gbit/s"];
    let mut table = empty_table(header.map(str::to_owned).to_vec());
    for row in rows {
        table.add_row([
            row.interface.to_owned(),
            row.frame_bytes.to_string(),
            row.burst_frames.to_string(),
            format!("{:.2}", row.cycles_per_frame),
            format!("{:.1}", row.frames_per_s / 1e6),
            format!("{:.1}", row.gbps),
        ]);
    }
    table
}
