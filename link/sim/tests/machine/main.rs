//! A whole machine around a device that keeps what came.

mod bandwidth;
mod closed_forms;
mod conservation;
mod cores;
mod frames;
mod interrupts;
mod probe;
mod reads;
mod snapshot;
mod steady;
mod switched;

use beeline_contract_device::Device;
use beeline_link_sim::cpu::{CoreSettings, FenceAck, Release};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::device::{DeviceSettings, Rate};
use beeline_link_sim::machine::{
    Aperture, CoreId, DeviceId, InFlight, MachineSettings, Next, Pause, Sim, SimMemory,
};
use beeline_link_sim::pcie::{AckRule, Answers, Class, Generation, Header, Lanes, Limit, LinkSettings, Side};
use beeline_link_sim::root::RootSettings;

const fn ns(ns: u64) -> Picoseconds {
    Picoseconds::from_ns(ns)
}

/// Where windows begin, and bytes of each.
const WINDOWS_AT: u64 = 1 << 20;
const WINDOW_LINES: u32 = 1024;
const WINDOW_BYTES: u64 = WINDOW_LINES as u64 * 64;

/// A link whose wire carries nothing but what the machine sends: 88 ns for a line.
fn bare_link() -> LinkSettings {
    LinkSettings {
        flight: ns(100),
        ordered_sets: false,
        acknowledge: AckRule { after: ns(1_000_000_000), packets: u32::MAX },
        ..LinkSettings::new(Generation::Gen1, Lanes::new(4).expect("a width that exists"))
    }
}

/// A machine in which nothing is slower than the wire, and no two latencies are alike.
fn settings(cores: u16) -> MachineSettings {
    MachineSettings {
        core: CoreSettings {
            store_bytes: 64,
            store: ns(1),
            buffers: 10,
            release: Release::Fifo,
            drain_interval: ns(2),
            busy: ns(40),
            timeout: ns(0),
            split_per_mille: 0,
            uncached_store: ns(10),
            uncached_load_bytes: 8,
            uncached_load: ns(51),
            cached_line: ns(3),
            poll: ns(2),
            line_wake: ns(60),
            fence: ns(20),
            fence_ack: FenceAck::Uncore,
            interrupt_interval: Picoseconds::ZERO,
            interrupt: Picoseconds::ZERO,
        },
        cores,
        root: RootSettings {
            write_latency: ns(120),
            write_jitter: ns(0),
            write_interval: ns(3),
            write_places: 64,
            merges: false,
            read_latency: ns(250),
            read_interval: ns(4),
            answers: Answers::Longest,
            write_visible: ns(90),
            write_ingest: ns(2),
            memory_rate: Rate::UNLIMITED,
        },
        link: bare_link(),
        further: vec![],
        switch: None,
        device: DeviceSettings {
            ingress_interval: ns(5),
            ingress_rate: Rate::UNLIMITED,
            ingress_latency: ns(30),
            read_start: ns(50),
            read_finish: ns(25),
            read_tags: 64,
            read_interval: ns(6),
            write_start: ns(35),
            write_interval: ns(7),
            data_rate: Rate::UNLIMITED,
            shared_rate: Rate::UNLIMITED,
            read_transfer: ns(0),
            register_read: ns(55),
            transmit_latency: ns(15),
            receive_latency: ns(11),
            wire_rate: Rate::from_gbps(100.0),
        },
        interconnect: None,
        header: Header::FourDw,
        aperture: Aperture {
            offset_bytes: WINDOWS_AT,
            stride_bytes: WINDOW_BYTES,
            window_lines: WINDOW_LINES,
            queues: cores.into(),
        },
    }
}

/// Gives each core the turns that it wants until nothing happens any more. Returns how many frames left.
fn run<D: Device>(sim: &Sim<D>, mut turn: impl FnMut(CoreId) -> Next) -> u64 {
    let mut frames = 0;
    loop {
        match sim.advance(Picoseconds::NEVER) {
            None => return frames,
            Some(Pause::Turn(core)) => sim.end_turn(core, turn(core)),
            Some(Pause::Frame) => sim.with(|machine| {
                for device in (0..machine.devices().len() as u16).map(DeviceId) {
                    while machine.drop_transmitted(device) {
                        frames += 1;
                    }
                }
            }),
        }
    }
}

/// One turn of core 0, and what comes of it.
fn once<D: Device>(sim: &Sim<D>, mut program: impl FnMut()) -> u64 {
    sim.end_turn(CoreId(0), Next::Again);
    run(sim, |_| {
        program();
        Next::Never
    })
}

/// Nothing is left anywhere, and every credit is back.
fn assert_at_rest<D: Device>(sim: &Sim<D>) {
    sim.with(|machine| {
        assert_eq!(machine.in_flight(), InFlight::default());
        for (number, link) in machine.links().iter().enumerate() {
            for side in [Side::Upstream, Side::Downstream] {
                for class in Class::ALL {
                    let advertised = link.settings().advertised[side.other() as usize][class as usize];
                    let left = link.credits_left(side, class);
                    let is_back = |limit, left| limit == Limit::Infinite || limit == Limit::Finite(left);
                    assert!(
                        is_back(advertised.headers, left.headers)
                            && is_back(advertised.data_units, left.data_units),
                        "link {number}, {side:?}, {class:?}: {left:?} of {advertised:?}"
                    );
                    assert_eq!(link.waiting(side, class), 0);
                }
            }
        }
    });
}

/// Memory of the device, filled with a pattern; costs core 0 a copy.
fn patterned(sim: &Sim<probe::Probe>, bytes: usize) -> SimMemory<probe::Probe> {
    use beeline_contract_link::{DmaMemory, Link};
    let mut memory = sim.link(CoreId(0)).memory(bytes).expect("memory of a machine is not limited");
    let pattern: Vec<u8> = (0..bytes).map(pattern).collect();
    memory.copy_in(0, &pattern);
    memory
}

/// A byte that differs from its neighbours near and far.
fn pattern(at: usize) -> u8 {
    (at % 251 + at / 251) as u8
}
