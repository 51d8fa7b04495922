//! Times of DMA queues between hosts, and of stores in their place: programs of members, one of which polls for the last word.

use beeline_experiments::LabError;
use beeline_fabric::{DmaDirection, DmaEntry, DmaSides, DmaState, Part};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::hosts::{HostId, Hosts, Region};
use beeline_platforms::Platform;

use crate::assembly::{Shape, hosts};
use crate::between::{SEGMENT, START, connect_to, create, no_hosts, provide};
use crate::dma_job::DmaQueueId;
use crate::member::HostMember;
use crate::programs::{Core, Program, run};
use crate::wiring::{Wiring, node_of};

const ROUNDS: u64 = 4;
/// Bytes that are copied to know a rate.
const RATE_BYTES: usize = 1 << 20;
/// From one transfer to the next: nothing of the one before is under way then.
const PAUSE: Picoseconds = Picoseconds::from_ns(100_000);
const ENGINE: &str = "a platform whose data an engine moves has one";

/// What moves the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mover {
    /// The core, by write-combined stores and a fence.
    Stores,
    Dma,
}

/// ns from the call that moves bytes into memory of another host until the program that polls there has found the last of them.
///
/// # Errors
/// The platform joins no hosts, or has no engine.
pub fn move_latency_ns(platform: &Platform, mover: Mover, bytes: usize, seed: u64) -> Result<f64, LabError> {
    let mut hosts = engines_of(platform, seed)?;
    let wiring = Wiring::new(&mut hosts, 2);
    let other = wiring.clone();
    let call = Picoseconds(platform.core.message_ns.value.picoseconds());
    let bytes = bytes.next_multiple_of(8);
    let pause = PAUSE + Picoseconds(bytes as u64 * 2_000);
    let programs: Vec<Program<'_, Vec<Picoseconds>>> = vec![
        (HostId(0), Box::new(move |core| send(&core, &wiring, (mover, bytes), (call, pause), seed))),
        (HostId(1), Box::new(move |core| find(&core, &other, bytes, seed))),
    ];
    let (results, _) = run(hosts, programs);
    let spans = results[0].iter().zip(&results[1]).map(|(begun, found)| found.since(*begun).0);
    Ok(spans.sum::<u64>() as f64 / 1000.0 / ROUNDS as f64)
}

/// Gbit/s of a job whose entries have so many bytes each, from the call until its program has found that it is done.
///
/// # Errors
/// The platform joins no hosts, or has no engine.
pub fn dma_rate_gbps(platform: &Platform, bytes: usize, seed: u64) -> Result<f64, LabError> {
    let mut hosts = engines_of(platform, seed)?;
    let wiring = Wiring::new(&mut hosts, 2);
    let other = wiring.clone();
    let entries = (RATE_BYTES / bytes).clamp(32, 1024);
    let copies = move |core: Core| {
        let (mut member, sides, _) = with_segment(&core, &wiring, bytes, seed);
        let queue = member.create_dma_queue(0, 1).expect(ENGINE);
        let entry = DmaEntry { local_offset: 0, remote_offset: 0, bytes: bytes as u64 };
        let begun = core.now();
        copy(&mut member, queue, sides, &vec![entry; entries]);
        (entries * bytes) as f64 * 8000.0 / core.now().since(begun).0 as f64
    };
    let provides = move |core: Core| {
        let mut member = HostMember::new(&core, &other, seed);
        provide(&mut member, bytes);
        member.serve(START + START, |_| false);
        0.0
    };
    let programs: Vec<Program<'_, f64>> =
        vec![(HostId(0), Box::new(copies)), (HostId(1), Box::new(provides))];
    let (mut results, _) = run(hosts, programs);
    Ok(results.swap_remove(0))
}

fn engines_of(platform: &Platform, seed: u64) -> Result<Hosts, LabError> {
    let settings = hosts(platform, &Shape::Pair)?;
    if settings.engine.is_none() {
        let what = format!("{} has no engine that moves data", platform.name);
        return Err(LabError::Traffic { what, advice: "use a platform whose kind is \"dma\"" });
    }
    Hosts::new(settings, seed).map_err(|error| no_hosts(&error))
}

/// A member with a segment of so many bytes, connected to that of the other host; and where the last word of its own is.
fn with_segment(
    core: &Core,
    wiring: &Wiring,
    bytes: usize,
    seed: u64,
) -> (HostMember, DmaSides, (Region, usize)) {
    let mut member = HostMember::new(core, wiring, seed);
    let remote = connect_to(&mut member, node_of(HostId(1)), SEGMENT);
    let (local, (region, at)) = create(&mut member, bytes);
    member.serve(START, |_| false);
    (member, DmaSides { local, remote, direction: DmaDirection::Write }, (region, at + bytes - 8))
}

fn copy(member: &mut HostMember, queue: DmaQueueId, sides: DmaSides, entries: &[DmaEntry]) {
    member.start_dma(queue, sides, entries).expect("its segments are there");
    let ended = member.wait_for_dma(queue, Picoseconds::NEVER);
    assert_eq!(ended, Ok(DmaState::Done), "no link goes down");
}

fn send(
    core: &Core,
    wiring: &Wiring,
    (mover, bytes): (Mover, usize),
    (call, pause): (Picoseconds, Picoseconds),
    seed: u64,
) -> Vec<Picoseconds> {
    let (mut member, sides, (region, last)) = with_segment(core, wiring, bytes, seed);
    let part = Part { offset: 0, bytes: bytes as u64 };
    let map = member.map(sides.remote, part).expect("what was just connected to can be mapped");
    let queue = member.create_dma_queue(0, 1).expect(ENGINE);
    let mut message = vec![0x5a; bytes];
    let rounds = (1..=ROUNDS).map(|round| {
        core.store(region, last, round);
        message[bytes - 8..].copy_from_slice(&round.to_le_bytes());
        core.sleep_until(START + pause * round);
        let begun = core.now();
        core.work(call);
        match mover {
            Mover::Stores => {
                map.copy_in(0, &message);
                map.flush();
            }
            Mover::Dma => {
                let entry = DmaEntry { local_offset: 0, remote_offset: 0, bytes: bytes as u64 };
                copy(&mut member, queue, sides, &[entry]);
            }
        }
        begun
    });
    rounds.collect()
}

fn find(core: &Core, wiring: &Wiring, bytes: usize, seed: u64) -> Vec<Picoseconds> {
    let mut member = HostMember::new(core, wiring, seed);
    let (region, at) = provide(&mut member, bytes);
    member.serve(START, |_| false);
    let rounds = (1..=ROUNDS).map(|round| {
        core.poll(|| (core.load(region, at + bytes - 8) == round).then_some(()));
        core.now()
    });
    rounds.collect()
}
