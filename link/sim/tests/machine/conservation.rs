//! Whatever cores store arrives once, behind what was ordered before it; whatever the device reads and writes is what is
//! there; and in the end nothing is left over, in any machine that can be.

use std::collections::BTreeMap;

use beeline_contract_device::DmaError;
use beeline_contract_link::{DmaMemory, Doorbell, Link, RegisterRead};
use beeline_contract_memory::StorePort;
use beeline_link_sim::cpu::{CoreSettings, FenceAck, Release};
use beeline_link_sim::des::{Picoseconds, stream};
use beeline_link_sim::device::{DeviceSettings, Rate};
use beeline_link_sim::machine::{
    CoreId, CoreLink, Further, MachineSettings, Next, Sim, SimDoorbell, SimWindow,
};
use beeline_link_sim::pcie::{Advertised, Answers, Generation, Header, Lanes, LinkSettings, UpdateRule};
use beeline_link_sim::root::RootSettings;
use proptest::prelude::*;

use crate::probe::{Probe, Reaction};
use crate::{WINDOW_BYTES, WINDOWS_AT, assert_at_rest, bare_link, pattern, patterned, run, settings};

/// Bytes of memory, the first half only read, the second half only written.
const MEMORY_BYTES: usize = 32 << 10;
const HALF: usize = MEMORY_BYTES / 2;

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Line,
    Words(u8),
    Doorbell,
    Read,
    Fence,
    Work(u64),
    Interrupt,
    EndTurn,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => Just(Step::Line),
        4 => (1u8..=254).prop_map(Step::Words),
        2 => Just(Step::Doorbell),
        1 => Just(Step::Read),
        2 => Just(Step::Fence),
        1 => (0u64..200_000).prop_map(Step::Work),
        1 => Just(Step::Interrupt),
        3 => Just(Step::EndTurn),
    ]
}

/// What the device does, with addresses as offsets into memory; those past its end are none.
fn any_reaction() -> impl Strategy<Value = Reaction> {
    let written = (HALF as u64..MEMORY_BYTES as u64 - 2048, 1usize..1500, any::<u8>());
    prop_oneof![
        4 => Just(Reaction::Nothing),
        4 => (0..HALF as u64 - 4096, 0u32..=4096).prop_map(|(address, bytes)| Reaction::Read { address, bytes }),
        1 => (1u32..4096).prop_map(|bytes| Reaction::Read { address: MEMORY_BYTES as u64 - 64, bytes: bytes + 64 }),
        3 => written.clone().prop_map(|(address, bytes, fill)| Reaction::Write { address, data: vec![fill; bytes] }),
        2 => written.prop_map(|(address, bytes, fill)| {
            Reaction::WriteAndRead { address, data: vec![fill; bytes] }
        }),
        1 => (1usize..600).prop_map(|bytes| Reaction::Write { address: 1 << 45, data: vec![1; bytes] }),
        2 => (60usize..1514).prop_map(|bytes| Reaction::Transmit { bytes }),
        1 => Just(Reaction::Interrupt),
    ]
}

fn any_core() -> impl Strategy<Value = CoreSettings> {
    let release = prop::sample::select(vec![Release::Fifo, Release::OldestRandom, Release::Random]);
    let ack =
        prop::sample::select(vec![FenceAck::None, FenceAck::Uncore, FenceAck::RootComplex, FenceAck::Device]);
    let times = (0u64..5000, 0u64..50_000, prop_oneof![Just(0u64), 1u64..300_000]);
    let split = prop::sample::select(vec![0u32, 200, 1000]);
    let interrupts = prop::sample::select(vec![(0u64, 0u64), (0, 0), (60_000, 20_000), (2_000_000, 300_000)]);
    (1usize..12, release, ack, times, split, interrupts).prop_map(
        |(buffers, release, fence_ack, (drain, busy, timeout), split_per_mille, (interval, handler))| {
            CoreSettings {
                interrupt_interval: Picoseconds(interval),
                interrupt: Picoseconds(handler),
                buffers,
                release,
                fence_ack,
                drain_interval: Picoseconds(drain),
                busy: Picoseconds(busy),
                timeout: Picoseconds(timeout),
                split_per_mille,
                ..settings(1).core
            }
        },
    )
}

fn any_link() -> impl Strategy<Value = LinkSettings> {
    let room = (1u32..6, 16u32..40).prop_map(|(headers, units)| Advertised::finite(headers, units));
    let advertised = prop_oneof![3 => room, 1 => Just(Advertised::INFINITE)];
    let advertised = prop::array::uniform2(prop::array::uniform3(advertised));
    let lanes = prop::sample::select(vec![1u8, 4, 16]);
    let generation = prop::sample::select(Generation::ALL.to_vec());
    let boundary = prop::sample::select(vec![64u32, 128]);
    (generation, lanes, advertised, 0u64..200_000, 0usize..3, boundary, 0u64..100_000).prop_map(
        |(generation, lanes, advertised, flight, look_ahead, completion_boundary_bytes, update)| {
            LinkSettings {
                generation,
                lanes: Lanes::new(lanes).expect("a width that exists"),
                advertised,
                flight: Picoseconds(flight),
                look_ahead,
                completion_boundary_bytes,
                update: UpdateRule { after: Picoseconds(update), one_in: 2 },
                ordered_sets: true,
                ..bare_link()
            }
        },
    )
}

fn any_root() -> impl Strategy<Value = RootSettings> {
    let answers = prop::sample::select(vec![Answers::Longest, Answers::EachBoundary]);
    let jitter = prop::sample::select(vec![0u64, 0, 3_000, 200_000]);
    let memory = prop::sample::select(vec![0.0, 0.5, 10.0, 1000.0]);
    (1usize..20, any::<bool>(), answers, 0u64..20_000, 0u64..500_000, jitter, memory).prop_map(
        |(write_places, merges, answers, interval, latency, jitter, memory_gbps)| RootSettings {
            memory_rate: Rate::from_gbps(memory_gbps),
            write_jitter: Picoseconds(jitter),
            write_places,
            merges,
            answers,
            write_interval: Picoseconds(interval),
            write_latency: Picoseconds(latency),
            ..settings(1).root
        },
    )
}

fn any_device() -> impl Strategy<Value = DeviceSettings> {
    (1u16..5, 0u64..100_000, 0u64..50_000, prop::sample::select(vec![0.0, 2.0, 100.0])).prop_map(
        |(read_tags, ingress, latency, gbps)| DeviceSettings {
            read_tags,
            ingress_interval: Picoseconds(ingress),
            ingress_latency: Picoseconds(latency),
            ingress_rate: Rate::from_gbps(gbps),
            data_rate: Rate::from_gbps(gbps * 3.0),
            shared_rate: Rate::from_gbps(gbps * 2.0),
            ..settings(1).device
        },
    )
}

fn any_machine() -> impl Strategy<Value = MachineSettings> {
    let hops = prop::collection::vec((0u64..200_000, any_link()), 0..3);
    let header = prop::sample::select(vec![Header::ThreeDw, Header::FourDw]);
    (1u16..4, any_core(), any_root(), any_link(), hops, any_device(), header).prop_map(
        |(cores, core, root, link, hops, device, header)| MachineSettings {
            core,
            root,
            link,
            further: hops
                .into_iter()
                .map(|(latency, link)| Further { latency: Picoseconds(latency), link })
                .collect(),
            device,
            header,
            ..settings(cores)
        },
    )
}

/// A program. A word that it stores says of which core it is, how many times what came before was ordered before it, and
/// which word it is.
struct Program {
    core: CoreId,
    sim: Sim<Probe>,
    link: CoreLink<Probe>,
    window: SimWindow<Probe>,
    doorbell: SimDoorbell<Probe>,
    steps: std::vec::IntoIter<Step>,
    line: u32,
    orders: u64,
    words: u64,
    read: Option<(RegisterRead, u64)>,
    /// Where each word was stored.
    stored: BTreeMap<u64, u64>,
    reads_answered: u64,
}

impl Program {
    fn new(sim: &Sim<Probe>, core: u16, steps: Vec<Step>) -> Program {
        let mut link = sim.link(CoreId(core));
        Program {
            core: CoreId(core),
            sim: sim.clone(),
            window: link.window(core.into()).expect("a window of its own"),
            doorbell: link.doorbell(8 * u32::from(core)).expect("any register is a doorbell"),
            link,
            steps: steps.into_iter(),
            line: 0,
            orders: 0,
            words: 0,
            read: None,
            stored: BTreeMap::new(),
            reads_answered: 0,
        }
    }

    fn word(&mut self, offset_bytes: u64) -> u64 {
        self.words += 1;
        let word = u64::from(self.core.0) << 56 | self.orders << 32 | self.words;
        self.stored.insert(word, offset_bytes);
        word
    }

    fn line_offset(&self) -> u64 {
        WINDOWS_AT + u64::from(self.core.0) * WINDOW_BYTES + u64::from(self.line) * 64
    }

    fn turn(&mut self) -> Next {
        if let Some((read, words)) = self.read.take() {
            let found = self.link.poll_read(read).expect("the device is there");
            assert_eq!(found, Some(words), "a read pushes the writes in front of it, and no others");
            self.reads_answered += 1;
        }
        while let Some(step) = self.steps.next() {
            match step {
                Step::Line => {
                    let offset = self.line_offset();
                    let words = std::array::from_fn(|word| self.word(offset + 8 * word as u64));
                    self.window.store_line(self.line, &words);
                    self.line += 1;
                }
                Step::Words(mask) => {
                    let offset = self.line_offset();
                    for word in (0..8).filter(|word| mask >> word & 1 == 1) {
                        let value = self.word(offset + 8 * word);
                        self.window.store_word(self.line, word as u32, value);
                    }
                    self.line += 1;
                }
                Step::Doorbell => {
                    self.orders += 1;
                    let word = self.word(8 * u64::from(self.core.0));
                    self.doorbell.ring(word);
                }
                Step::Read => {
                    let read = self.link.start_read(8 * u32::from(self.core.0)).expect("the device is there");
                    self.read = Some((read.expect("a core takes a read"), self.words));
                    return Next::Again;
                }
                Step::Fence => {
                    self.orders += 1;
                    self.window.fence();
                }
                Step::Work(span) => self.sim.work(self.core, Picoseconds(span)),
                Step::Interrupt => self.sim.interrupt_core(self.core),
                Step::EndTurn => return Next::Again,
            }
        }
        // What lies in buffers that are not full must leave in the end.
        self.window.fence();
        Next::Never
    }
}

/// What a run was: everything that the device saw, and when.
#[derive(Debug, PartialEq, Eq)]
pub struct Trace {
    pub taken: Vec<crate::probe::Taken>,
    pub completed: Vec<crate::probe::Completed>,
    pub frames: u64,
    pub events: u64,
    pub end: Picoseconds,
}

pub fn play(
    machine: MachineSettings,
    steps: &[Vec<Step>],
    reactions: &[Reaction],
    refuses: u32,
    seed: u64,
) -> Result<Trace, TestCaseError> {
    let cores = machine.cores;
    let mut device = Probe::with([]);
    device.refuses = (refuses > 0).then(|| (refuses, stream(seed, "refusals")));
    let sim = Sim::new(device, machine, seed).expect("a machine that can be");
    let mut memory = patterned(&sim, MEMORY_BYTES);
    let base = memory.address();
    let placed = reactions.iter().cloned().map(|reaction| match reaction {
        Reaction::Read { address, bytes } => Reaction::Read { address: base + address, bytes },
        Reaction::Write { address, data } if address < 1 << 40 => {
            Reaction::Write { address: base + address, data }
        }
        Reaction::WriteAndRead { address, data } => Reaction::WriteAndRead { address: base + address, data },
        other => other,
    });
    sim.with(|machine| machine.device().reactions = placed.collect());
    let mut programs: Vec<Program> =
        (0..cores).map(|core| Program::new(&sim, core, steps[usize::from(core)].clone())).collect();
    for program in &programs {
        sim.end_turn(program.core, Next::Again);
    }
    let frames = run(&sim, |core| programs[usize::from(core.0)].turn());
    assert_at_rest(&sim);
    let reads = |steps: &[Step]| steps.iter().filter(|step| matches!(step, Step::Read)).count() as u64;
    for (program, steps) in programs.iter().zip(steps) {
        prop_assert_eq!(program.reads_answered, reads(steps));
    }
    check_stores(&sim, &programs)?;
    let left = sim.with(|machine| machine.device().reactions.len());
    let reacted = &reactions[..reactions.len() - left];
    check_transfers(&sim, base, reacted, frames)?;
    check_memory(&mut memory, reacted);
    Ok(sim.with(|machine| {
        let (events, end) = (machine.events(), machine.now());
        let device = machine.device();
        let (taken, completed) = (std::mem::take(&mut device.taken), std::mem::take(&mut device.completed));
        Trace { taken, completed, frames, events, end }
    }))
}

/// Every word arrived once, where it belongs, and none before one that was ordered before it.
fn check_stores(sim: &Sim<Probe>, programs: &[Program]) -> Result<(), TestCaseError> {
    let mut missing: BTreeMap<u64, u64> =
        programs.iter().flat_map(|program| program.stored.clone()).collect();
    let mut orders = [0; 256];
    let (count, taken) = sim.with(|machine| (machine.totals().writes_taken, machine.device().taken.clone()));
    prop_assert_eq!(count, taken.len() as u64);
    for write in taken {
        prop_assert_eq!(write.data.len() % 8, 0);
        for (offset, bytes) in (write.offset_bytes..).step_by(8).zip(write.data.as_chunks::<8>().0) {
            let word = u64::from_le_bytes(*bytes);
            prop_assert_eq!(missing.remove(&word), Some(offset), "word {:#x} at {:#x}", word, offset);
            let latest = &mut orders[(word >> 56) as usize];
            let order = word >> 32 & 0xff_ffff;
            prop_assert!(order >= *latest, "{} behind {}", order, latest);
            *latest = order;
        }
    }
    prop_assert!(missing.is_empty(), "{:?} never arrived", missing);
    Ok(())
}

/// Reads brought what was there, or the news that nothing is.
fn check_transfers(
    sim: &Sim<Probe>,
    base: u64,
    reacted: &[Reaction],
    frames: u64,
) -> Result<(), TestCaseError> {
    let count =
        |which: fn(&Reaction) -> bool| reacted.iter().filter(|reaction| which(reaction)).count() as u64;
    prop_assert_eq!(frames, count(|reaction| matches!(reaction, Reaction::Transmit { .. })));
    let (totals, completed) = sim.with(|machine| (machine.totals(), machine.device().completed.clone()));
    prop_assert_eq!(totals.interrupts, count(|reaction| matches!(reaction, Reaction::Interrupt)));
    let reads = count(|reaction| matches!(reaction, Reaction::Read { .. } | Reaction::WriteAndRead { .. }));
    prop_assert_eq!(completed.len() as u64, reads);
    let is_bad_read = |read: &Reaction| matches!(read, Reaction::Read { address, bytes } if address + u64::from(*bytes) > MEMORY_BYTES as u64);
    let bad = completed.iter().filter(|read| read.data == Err(DmaError::BadAddress)).count() as u64;
    prop_assert_eq!(bad, reacted.iter().filter(|read| is_bad_read(read)).count() as u64);
    let is_bad_write = |write: &Reaction| matches!(write, Reaction::Write { address: 0x2000_0000_0000, .. });
    prop_assert_eq!(
        totals.faults > 0,
        reacted.iter().any(|reaction| is_bad_read(reaction) || is_bad_write(reaction))
    );
    for read in completed {
        let at = (read.address - base) as usize;
        if let Ok(data) = read.data
            && at < HALF
        {
            let expected: Vec<u8> = (at..at + data.len()).map(pattern).collect();
            prop_assert_eq!(data, expected);
        }
    }
    Ok(())
}

/// Memory is as the device's writes left it, in their order.
fn check_memory(memory: &mut impl DmaMemory, reacted: &[Reaction]) {
    let mut expected: Vec<u8> = (0..MEMORY_BYTES).map(pattern).collect();
    for reaction in reacted {
        if let Reaction::Write { address, data } | Reaction::WriteAndRead { address, data } = reaction
            && *address < 1 << 40
        {
            expected[*address as usize..][..data.len()].copy_from_slice(data);
        }
    }
    let mut found = vec![0; MEMORY_BYTES];
    memory.copy_out(0, &mut found);
    assert!(found == expected, "memory is not what was written last");
}

proptest! {
    #[test]
    fn every_byte_arrives_once_and_nothing_is_left(
        machine in any_machine(),
        steps in prop::collection::vec(prop::collection::vec(any_step(), 0..120), 3),
        reactions in prop::collection::vec(any_reaction(), 0..80),
        refuses in prop::sample::select(vec![0u32, 10, 70]),
        seed: u64,
    ) {
        let first = play(machine.clone(), &steps, &reactions, refuses, seed)?;
        let second = play(machine, &steps, &reactions, refuses, seed)?;
        prop_assert_eq!(first, second, "a seed is a run");
    }
}
