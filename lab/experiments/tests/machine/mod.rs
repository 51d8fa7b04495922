//! A machine with round numbers, for tests of what does not depend on them.

use beeline_experiments::NicShape;
use beeline_link_sim::cpu::{CoreSettings, FenceAck, Release};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::device::{DeviceSettings, Rate};
use beeline_link_sim::machine::{Interconnect, MachineSettings};
use beeline_link_sim::pcie::{Answers, Generation, Header, Lanes, LinkSettings};
use beeline_link_sim::root::RootSettings;
use beeline_spec::Interface;

pub const fn ns(ns: u64) -> Picoseconds {
    Picoseconds::from_ns(ns)
}

pub fn settings(shape: &NicShape, cores: u16) -> MachineSettings {
    MachineSettings {
        core: CoreSettings {
            store_bytes: 32,
            store: Picoseconds(1280),
            buffers: 10,
            release: Release::Fifo,
            drain_interval: Picoseconds(4270),
            busy: ns(40),
            timeout: ns(0),
            split_per_mille: 0,
            uncached_store: ns(10),
            uncached_load_bytes: 8,
            uncached_load: ns(50),
            cached_line: ns(2),
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
            write_interval: ns(2),
            write_places: 64,
            merges: false,
            read_latency: ns(250),
            read_interval: ns(2),
            answers: Answers::Longest,
            write_visible: ns(100),
            write_ingest: ns(2),
            memory_rate: Rate::UNLIMITED,
        },
        link: LinkSettings {
            flight: ns(100),
            ..LinkSettings::new(Generation::Gen4, Lanes::new(16).expect("a width that exists"))
        },
        further: vec![],
        switch: None,
        device: DeviceSettings {
            ingress_interval: ns(2),
            ingress_rate: Rate::UNLIMITED,
            ingress_latency: ns(20),
            read_start: ns(50),
            read_finish: ns(20),
            read_tags: 64,
            read_interval: ns(2),
            write_start: ns(20),
            write_interval: ns(2),
            data_rate: Rate::UNLIMITED,
            shared_rate: Rate::UNLIMITED,
            read_transfer: ns(0),
            register_read: ns(50),
            transmit_latency: ns(0),
            receive_latency: ns(0),
            wire_rate: Rate::from_gbps(400.0),
        },
        interconnect: None,
        header: Header::FourDw,
        aperture: shape.aperture(),
    }
}

/// The same machine, as an interface needs it: with lines that change owner for the one that is made of them.
#[allow(dead_code, reason = "each test file uses its own part of this module")]
pub fn settings_for(interface: Interface, shape: &NicShape, cores: u16) -> MachineSettings {
    let interconnect = Interconnect { line: ns(90), interval: ns(3) };
    let interconnect = (interface == Interface::Coherent).then_some(interconnect);
    MachineSettings { interconnect, ..settings(shape, cores) }
}
