//! A machine under way allocates nothing, so that memory is flat however long it runs.

use beeline_contract_device::{Accept, Device, DmaError, DmaTag, QueueId, ReadTag, SimTime, Want, Write};
use beeline_contract_link::{DmaMemory, Link};
use beeline_contract_memory::StorePort;
use beeline_link_sim::cpu::Release;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::{CoreId, DeviceId, Next, Pause, Sim};
use beeline_link_sim::pcie::Advertised;

use crate::{WINDOW_LINES, settings};

/// A device that keeps nothing: every 16th write it takes makes it read, write, transmit or interrupt in turn.
#[derive(Default)]
struct Busy {
    address: u64,
    taken: u64,
    /// What it wants and has not said.
    wants: Option<u64>,
    answer: Option<ReadTag>,
    read: u64,
}

impl Device for Busy {
    fn write_arrived(&mut self, _: Write<'_>) -> Accept {
        self.taken += 1;
        if self.taken.is_multiple_of(16) {
            self.wants = Some(self.taken / 16);
        }
        Accept::Taken
    }

    fn read_arrived(&mut self, _: u64, tag: ReadTag) {
        self.answer = Some(tag);
    }

    fn dma_completed(&mut self, _: DmaTag, data: Result<&[u8], DmaError>) {
        self.read += data.expect("it is memory").len() as u64;
    }

    fn frame_arrived(&mut self, _: &[u8]) -> Accept {
        Accept::Refused
    }

    fn time_passed(&mut self, _: SimTime) {}

    fn wire_ready(&mut self, _: bool) {}

    fn next(&mut self) -> Option<Want<'_>> {
        if let Some(tag) = self.answer.take() {
            return Some(Want::ReadCompletion { tag, value: 1 });
        }
        let number = self.wants.take()?;
        let address = self.address;
        Some(match number % 4 {
            0 => Want::DmaRead { address, bytes: 1500, tag: DmaTag(number as u16) },
            1 => Want::DmaWrite { address, data: &[3; 300] },
            2 => Want::Transmit { queue: QueueId(0), frame: &[7; 60] },
            _ => Want::Interrupt { vector: 0 },
        })
    }

    fn wake_at(&self) -> Option<SimTime> {
        None
    }
}

/// Two cores that store lines, one of them with a load now and then.
struct Traffic {
    sim: Sim<Busy>,
    turn: Box<dyn FnMut(CoreId) -> Next>,
}

impl Traffic {
    fn new() -> Traffic {
        let mut machine = settings(2);
        machine.core.release = Release::OldestRandom;
        machine.core.split_per_mille = 100;
        machine.link.advertised = [[Advertised::finite(16, 64); 3]; 2];
        machine.device.wire_rate = beeline_link_sim::device::Rate::UNLIMITED;
        let sim = Sim::new(Busy::default(), machine, 1).expect("a machine that can be");
        let memory = sim.link(CoreId(0)).memory(4096).expect("memory of a machine is not limited");
        sim.with(|machine| machine.device().address = memory.address());
        let mut link = sim.link(CoreId(0));
        let mut windows = [0, 1].map(|core| sim.link(CoreId(core)).window(core.into()).expect("a window"));
        let (mut turns, mut read) = (0u32, None);
        let turn = move |core: CoreId| {
            turns += 1;
            for line in 0..8 {
                windows[usize::from(core.0)].store_line((turns * 8 + line) % WINDOW_LINES, &[9; 8]);
            }
            if core == CoreId(0) {
                if let Some(asked) = read.take() {
                    assert_eq!(link.poll_read(asked), Ok(Some(1)));
                }
                if turns.is_multiple_of(50) {
                    read = link.start_read(0).expect("the device is there");
                }
            }
            Next::Again
        };
        for core in 0..2 {
            sim.end_turn(CoreId(core), Next::Again);
        }
        Traffic { sim, turn: Box::new(turn) }
    }

    /// Until the device has taken so many writes in all.
    fn run_to(&mut self, taken: u64) {
        while self.sim.with(|machine| machine.totals().writes_taken) < taken {
            match self.sim.advance(Picoseconds::NEVER) {
                Some(Pause::Turn(core)) => {
                    let next = (self.turn)(core);
                    self.sim.end_turn(core, next);
                }
                Some(Pause::Frame) => self.sim.with(|machine| while machine.drop_transmitted(DeviceId(0)) {}),
                None => panic!("it goes on for ever"),
            }
        }
    }
}

fn assert_flat_over(writes: u64) {
    let mut traffic = Traffic::new();
    traffic.run_to(100_000);
    let made = allocation_counter::measure(|| traffic.run_to(100_000 + writes));
    assert_eq!((made.count_total, made.bytes_current), (0, 0));
    let (totals, read) = traffic.sim.with(|machine| (machine.totals(), machine.device().read));
    // Of 64 writes one asks for an interrupt, one for 300 bytes written, one for 1500 bytes read.
    assert!(totals.interrupts > writes / 65);
    assert!(totals.memory_written_bytes > writes / 65 * 300 && read > writes / 65 * 1500);
    assert_eq!(totals.faults, 0);
}

#[test]
fn a_machine_allocates_nothing_once_it_is_under_way() {
    assert_flat_over(1_000_000);
}

/// Minutes: for the long lane. `BEELINE_SIM_WRITES` asks for another number, such as 1000000000.
#[test]
#[ignore = "takes minutes"]
fn memory_is_flat_over_many_writes() {
    let writes = std::env::var("BEELINE_SIM_WRITES").ok().and_then(|text| text.parse().ok());
    assert_flat_over(writes.unwrap_or(100_000_000));
}
