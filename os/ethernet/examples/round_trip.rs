//! What a round trip between two up-links costs when both sides poll, one thread a core, and how long a burst takes
//! until the kernel says that it is sent.
//!
//! `round_trip af-xdp:veth0,netns=a af-xdp:veth1,netns=b [frame bytes] [round trips]`, for two ends of one wire.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use beeline_ethernet::{Accept, ETHER_TYPE, Uplink, UplinkError, WireConfig};
use rustix::thread::{CpuSet, sched_setaffinity};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [near, far, rest @ ..] = &arguments[..] else {
        return Err("give two up-links, as in af-xdp:veth0,netns=a af-xdp:veth1,netns=b".into());
    };
    let bytes: usize = rest.first().map_or(Ok(60), |text| text.parse())?;
    let count: usize = rest.get(1).map_or(Ok(100_000), |text| text.parse())?;
    let (near, far) = (near.parse::<WireConfig>()?, far.parse::<WireConfig>()?);
    let (mut ours, mut theirs) = (near.open()?, far.open()?);
    println!("{} and {}", ours.name(), theirs.name());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let echo = scope.spawn(|| echo(theirs.as_mut(), &stop));
        let times = round_trips(ours.as_mut(), bytes, count);
        let delays = transmit_delays(ours.as_mut(), bytes, count / 10);
        // Relaxed: the other thread only has to see it at some time.
        stop.store(true, Ordering::Relaxed);
        let echoed = echo.join().map_err(|_| "the far side panicked")??;
        println!("{bytes} bytes, {count} round trips: {} ({echoed} echoed)", percentiles(&mut times?));
        for (frames, delays) in delays? {
            match delays {
                Some(mut delays) => {
                    println!("{frames} in a row, until they are sent: {}", percentiles(&mut delays))
                }
                None => println!("{frames} in a row, until they are sent: n/a, the kernel does not say"),
            }
        }
        Ok(())
    })
}

fn percentiles(times: &mut [u64]) -> String {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    format!("p50 {} ns, p99 {} ns, p99.9 {} ns", at(0.5), at(0.99), at(0.999))
}

fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    if let Err(error) = sched_setaffinity(None, &cores) {
        eprintln!("not pinned to core {core}: {error}");
    }
}

/// Gives every frame back until told to stop; how many.
fn echo(uplink: &mut dyn Uplink, stop: &AtomicBool) -> Result<u64, UplinkError> {
    pin(1);
    let mut echoed = 0;
    let mut frame = Vec::new();
    // Relaxed: nothing is published with the flag.
    while !stop.load(Ordering::Relaxed) {
        if uplink.poll(&mut frame)? {
            while uplink.send(&frame)? == Accept::Refused {}
            echoed += 1;
        }
    }
    Ok(echoed)
}

/// Nanoseconds of each round trip.
fn round_trips(uplink: &mut dyn Uplink, bytes: usize, count: usize) -> Result<Vec<u64>, UplinkError> {
    pin(0);
    let mut frame = vec![0xff; 12];
    frame.extend(ETHER_TYPE.to_be_bytes());
    frame.resize(bytes.max(22), 0);
    let (mut times, mut scratch) = (Vec::with_capacity(count), Vec::new());
    for round in 0..count as u64 {
        frame[14..22].copy_from_slice(&round.to_be_bytes());
        let start = Instant::now();
        while uplink.send(&frame)? == Accept::Refused {}
        let mut is_back = false;
        while !is_back {
            uplink.poll_frame(&mut scratch, &mut |found| is_back = found[14..22] == frame[14..22])?;
        }
        times.push(start.elapsed().as_nanos() as u64);
    }
    Ok(times)
}

/// Nanoseconds from handing over 1, 2 and 10 frames until the kernel says that all of them are sent; they come back, and
/// are taken, before the next time. `None` where it does not say.
type Delays = Vec<(usize, Option<Vec<u64>>)>;

fn transmit_delays(uplink: &mut dyn Uplink, bytes: usize, count: usize) -> Result<Delays, UplinkError> {
    let frame = vec![0xff; 12].into_iter().chain(ETHER_TYPE.to_be_bytes()).chain([0; 8]);
    let mut frame: Vec<u8> = frame.collect();
    frame.resize(bytes.max(22), 0);
    let (mut all, mut scratch) = (Vec::new(), Vec::new());
    for frames in [1, 2, 10] {
        let burst = vec![frame.as_slice(); frames];
        let Some(mut before) = uplink.completed()? else {
            all.push((frames, None));
            continue;
        };
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let start = Instant::now();
            let mut sent = uplink.send_burst(&burst)?.0;
            while sent < frames {
                sent += uplink.send_burst(&burst[sent..])?.0;
            }
            while uplink.completed()? != Some(before + frames as u64) {}
            times.push(start.elapsed().as_nanos() as u64);
            before += frames as u64;
            let mut back = 0;
            while back < frames {
                back += usize::from(uplink.poll_frame(&mut scratch, &mut |_| {})?);
            }
        }
        all.push((frames, Some(times)));
    }
    Ok(all)
}
