//! A capture through the RTL.

use beeline_driver::{Sent, Transmit};
use beeline_ethernet::{Accept, PcapIn, PcapOut, Uplink};
use indicatif::ProgressBar;

use super::{Bench, Job, MAX_IDLE_TURNS, QueueSettings};
use crate::failure::Failure;
use crate::send::args::SendArgs;

/// Cycles that the RTL made, and what the interface pads frames to.
pub struct Replayed {
    pub cycles: u64,
    pub frame_multiple_bytes: usize,
}

/// Sends a capture and keeps what the wire sees.
pub fn send(args: &SendArgs, input: PcapIn, bar: &ProgressBar) -> Result<Replayed, Failure> {
    let wire = PcapOut::create(&args.out).map_err(|error| Failure::new("cannot write").because(error))?;
    let mut bench = Bench::new(args.adversary.unwrap_or(0))?;
    if let Some(path) = &args.waves {
        bench.trace(path)?;
    }
    let settings = QueueSettings {
        interface: args.interface,
        fences: args.fences.policy,
        adversary: args.adversary,
        cut_through_lines: args.cut_through_lines,
    };
    bench.with_queue(settings, Replay { input, wire, bar })
}

struct Replay<'a> {
    input: PcapIn,
    wire: PcapOut,
    bar: &'a ProgressBar,
}

impl Replay<'_> {
    /// Lets the device work; what the wire saw is written.
    fn step(&mut self, bench: &mut Bench) -> Result<(), Failure> {
        bench.step()?;
        for frame in bench.take_frames() {
            match self.wire.send(&frame) {
                Ok(Accept::Taken) => self.bar.inc(1),
                Ok(Accept::Refused) => return Err(Failure::new("the capture takes no more frames")),
                Err(error) => return Err(Failure::new("cannot write what the wire saw").because(error)),
            }
        }
        Ok(())
    }
}

impl Job for Replay<'_> {
    type Output = Replayed;

    fn run<T: Transmit>(mut self, bench: &mut Bench, tx: &mut T) -> Result<Replayed, Failure> {
        let failed = |error| Failure::new("the queue does not take a frame").because(error);
        let unreadable = |error| Failure::new("cannot use the capture").because(error);
        let mut frame = Vec::new();
        while self.input.poll(&mut frame).map_err(unreadable)? {
            let mut left = MAX_IDLE_TURNS;
            while tx.try_send(&frame).map_err(failed)? == Sent::Full {
                tx.progress().map_err(failed)?;
                self.step(bench)?;
                left -= 1;
                if left == 0 {
                    return Err(Failure::new("the NIC frees no room"));
                }
            }
        }
        for _ in 0..MAX_IDLE_TURNS {
            tx.progress().map_err(failed)?;
            self.step(bench)?;
            if tx.is_idle() {
                self.wire.flush().map_err(|error| Failure::new("cannot write").because(error))?;
                let frame_multiple_bytes = tx.declared().frame_multiple_bytes();
                return Ok(Replayed { cycles: bench.cycles(), frame_multiple_bytes });
            }
        }
        Err(Failure::new("the NIC does not transmit the last frames"))
    }
}
