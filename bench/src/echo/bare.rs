//! The bare copy between two processes: [`crate::floor`]'s two ends, one in each.
//!
//! A request of 56 bytes or less takes a line, a longer one as many as it needs. What the lines hold is the number of
//! the trip and not the bytes of a request: a floor does nothing but copy. So the loop is one of its own and its
//! figure is that of the same stores and loads as every round trip's, without a word of protocol.

use std::fs::OpenOptions;
use std::hint::spin_loop;
use std::io::{BufRead, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use beeline_bench_echo::{Failure, Job};
use beeline_mmio::{MemoryOptions, SharedMemory, StoreKernel, clock};

use beeline_floor::BareEnd;

/// Lines of each ring, a power of two.
const LINES: u32 = 1024;
const RING_BYTES: usize = LINES as usize * beeline_mmio::LINE_BYTES;
/// Payload bytes of a line, as of every line of a message.
const PAYLOAD_BYTES: usize = crate::LINE_PAYLOAD_BYTES;

/// Makes both rings and answers.
pub(super) fn serve(input: impl BufRead, mut output: impl Write) -> Result<(), Failure> {
    let ring = |name| SharedMemory::create(name, RING_BYTES, MemoryOptions::default());
    let (there, back) = (ring("bare-there")?, ring("bare-back")?);
    let mut end = end(&back, &there)?;
    // A process of the same user may open another's descriptors by name.
    let [there, back] = [there.fd().as_raw_fd(), back.fd().as_raw_fd()];
    writeln!(output, "ready {}:{there}:{back}", std::process::id())?;
    output.flush()?;
    let mut stamp = 0;
    for line in input.lines() {
        let job: Job = line?.parse()?;
        writeln!(output, "serving")?;
        output.flush()?;
        for _ in 0..job.all_trips() {
            stamp += 1;
            while !end.arrived(stamp, lines(job)) {
                spin_loop();
            }
            end.copy(stamp, lines(job));
            end.step(lines(job));
        }
        writeln!(output, "served")?;
        output.flush()?;
    }
    Ok(())
}

/// Opens the server's rings and asks.
pub(super) fn ask(address: &str, input: impl BufRead, mut output: impl Write) -> Result<(), Failure> {
    let (process, descriptors) = address.split_once(':').ok_or("not an address")?;
    let (there, back) = descriptors.split_once(':').ok_or("not an address")?;
    let ring = |descriptor: &str| -> Result<_, Failure> {
        let path = format!("/proc/{process}/fd/{descriptor}");
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(SharedMemory::from_fd(OwnedFd::from(file), RING_BYTES)?)
    };
    let mut end = end(&ring(there)?, &ring(back)?)?;
    writeln!(output, "ready")?;
    output.flush()?;
    let mut stamp = 0;
    for line in input.lines() {
        let job: Job = line?.parse()?;
        let mut ticks = Vec::with_capacity(job.trips as usize * 8);
        for trip in 0..job.all_trips() {
            stamp += 1;
            let sent = clock::now_ticks();
            end.copy(stamp, lines(job));
            while !end.arrived(stamp, lines(job)) {
                spin_loop();
            }
            let taken = clock::now_ticks() - sent;
            end.step(lines(job));
            if trip >= job.warm_up {
                ticks.extend_from_slice(&taken.to_le_bytes());
            }
        }
        writeln!(output, "ticks {}", job.trips)?;
        output.write_all(&ticks)?;
        output.flush()?;
    }
    Ok(())
}

/// The end that copies into `out` and polls `into`.
fn end(out: &SharedMemory, into: &SharedMemory) -> Result<BareEnd, Failure> {
    let out = out.map()?.store_window(0, LINES, StoreKernel::Cached);
    Ok(BareEnd::new(out, into.map()?.load_window(0, LINES)))
}

/// Lines that a request of this job takes.
fn lines(job: Job) -> u32 {
    if job.bytes <= PAYLOAD_BYTES { 1 } else { (job.bytes + 8).div_ceil(beeline_mmio::LINE_BYTES) as u32 }
}
