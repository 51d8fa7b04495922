//! Throughput of stores through the map of a segment of another host: programs of members, as a benchmark of SISCI's copies is.

use beeline_experiments::LabError;
use beeline_experiments::measure::Fences;
use beeline_fabric::{AdapterNumber, Part};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::Next;
use beeline_link_sim::machine::hosts::{HostId, Hosts};
use beeline_platforms::Platform;

use crate::assembly::{Shape, hosts};
use crate::between::{SEGMENT, START, connect_by, connect_to, no_hosts, provide};
use crate::member::HostMember;
use crate::programs::{Core, Program, run};
use crate::wiring::{Wiring, node_of};

/// Bytes of the segment: messages are stored at addresses that go up through it and begin anew.
const SEGMENT_BYTES: usize = 64 << 10;
/// Until nothing is stored any more.
const END: Picoseconds = Picoseconds::from_ns(60_000_000);

/// What a program of a member has stored after the first tenth.
struct Stored {
    messages: u64,
    took: Picoseconds,
}

/// ns a message of a member that stores messages back to back through its map of a segment of another host.
///
/// # Errors
/// The platform joins no hosts.
pub fn store_time_ns(platform: &Platform, bytes: usize, fences: Fences, seed: u64) -> Result<f64, LabError> {
    let Stored { messages, took } = stored(platform, bytes, fences, seed)?;
    Ok(took.0 as f64 / 1000.0 / messages as f64)
}

/// Gbit/s of payload that a member stores through its map of a segment of another host.
///
/// # Errors
/// The platform joins no hosts.
pub fn store_rate_gbps(
    platform: &Platform,
    bytes: usize,
    fences: Fences,
    seed: u64,
) -> Result<f64, LabError> {
    Ok(bytes as f64 * 8.0 / store_time_ns(platform, bytes, fences, seed)?)
}

fn stored(platform: &Platform, bytes: usize, fences: Fences, seed: u64) -> Result<Stored, LabError> {
    let mut hosts = Hosts::new(hosts(platform, &Shape::Pair)?, seed).map_err(|error| no_hosts(&error))?;
    let wiring = Wiring::new(&mut hosts, 2);
    let other = wiring.clone();
    let padded = bytes.next_multiple_of(64);
    let segment = SEGMENT_BYTES.max(padded);
    let call = match fences {
        Fences::PerMessage => Picoseconds(platform.core.copy_call_ns.value.picoseconds()),
        Fences::None | Fences::PerLine => Picoseconds::ZERO,
    };
    // Enough lines that buffers and queues are as full as they get, and a tenth of them to get there.
    let messages = (4000 / bytes.div_ceil(64) as u64).clamp(20, 4000);
    let writer = move |core: Core| {
        let mut member = HostMember::new(&core, &wiring, seed);
        let remote = connect_to(&mut member, node_of(HostId(1)), SEGMENT);
        let map = member.map(remote, Part { offset: 0, bytes: segment as u64 });
        let map = map.expect("what was just connected to can be mapped");
        member.serve(START, |_| false);
        let message = vec![0x5a; bytes.next_multiple_of(8)];
        let (mut at, mut begun) = (0, core.now());
        for nth in 0..messages {
            if nth == messages / 10 {
                begun = core.now();
            }
            core.work(call);
            match fences {
                Fences::PerLine => message.chunks(64).zip((at..).step_by(64)).for_each(|(line, at)| {
                    map.copy_in(at, line);
                    map.flush();
                }),
                Fences::None | Fences::PerMessage => map.copy_in(at, &message),
            }
            if fences == Fences::PerMessage {
                map.flush();
            }
            core.wait(Next::Again, Picoseconds::NEVER);
            at = if at + 2 * padded > segment { 0 } else { at + padded };
        }
        Stored { messages: messages - messages / 10, took: core.now().since(begun) }
    };
    let reader = move |core: Core| {
        let mut member = HostMember::new(&core, &other, seed);
        provide(&mut member, segment);
        member.serve(END, |_| false);
        Stored { messages: 0, took: Picoseconds::ZERO }
    };
    let programs: Vec<Program<'_, Stored>> =
        vec![(HostId(0), Box::new(writer)), (HostId(1), Box::new(reader))];
    let (mut results, _) = run(hosts, programs);
    Ok(results.swap_remove(0))
}

/// Gbit/s of payload that a member of a host with so many adapters stores unfenced, a stripe by each adapter in turn. It has a connection
/// and a map by each adapter, as a program of SISCI that stripes has.
///
/// # Errors
/// The platform joins no hosts.
pub fn striped_rate_gbps(
    platform: &Platform,
    adapters: u16,
    stripe_bytes: usize,
    seed: u64,
) -> Result<f64, LabError> {
    let settings = hosts(platform, &Shape::Adapters(adapters))?;
    let mut hosts = Hosts::new(settings, seed).map_err(|error| no_hosts(&error))?;
    let wiring = Wiring::new(&mut hosts, 2);
    let other = wiring.clone();
    let stripes = (SEGMENT_BYTES / stripe_bytes) as u64;
    let writer = move |core: Core| {
        let mut member = HostMember::new(&core, &wiring, seed);
        let part = Part { offset: 0, bytes: SEGMENT_BYTES as u64 };
        let maps: Vec<_> = (0..adapters)
            .map(|adapter| {
                let number = AdapterNumber::new(adapter.into()).expect("nodes have as many adapters");
                let remote = connect_by(&mut member, node_of(HostId(1)), SEGMENT, number);
                member.map(remote, part).expect("what was just connected to can be mapped").by(adapter)
            })
            .collect();
        member.serve(START, |_| false);
        let stripe = vec![0x5a; stripe_bytes];
        let rounds = (256 << 10) / stripe_bytes as u64;
        let mut begun = core.now();
        for nth in 0..rounds {
            if nth == rounds / 8 {
                begun = core.now();
            }
            let adapter = (nth % u64::from(adapters)) as u16;
            maps[usize::from(adapter)].copy_in((nth % stripes) as usize * stripe_bytes, &stripe);
            core.by(adapter).catch_up();
        }
        let bytes = (rounds - rounds / 8) * stripe_bytes as u64;
        bytes as f64 * 8000.0 / core.now().since(begun).0 as f64
    };
    let reader = move |core: Core| {
        let mut member = HostMember::new(&core, &other, seed);
        provide(&mut member, SEGMENT_BYTES);
        member.serve(END, |_| false);
        0.0
    };
    let programs: Vec<Program<'_, f64>> = vec![(HostId(0), Box::new(writer)), (HostId(1), Box::new(reader))];
    let (mut results, _) = run(hosts, programs);
    Ok(results.swap_remove(0))
}
