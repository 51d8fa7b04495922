//! The machine that is simulated: round numbers, nothing that is no part of every machine. Its times matter little to how
//! fast the simulation is.

use beeline_lab::NicShape;
use beeline_link_sim::cpu::{CoreSettings, FenceAck, Release};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::device::{DeviceSettings, Rate};
use beeline_link_sim::machine::MachineSettings;
use beeline_link_sim::pcie::{Answers, Generation, Header, Lanes, LinkSettings};
use beeline_link_sim::root::RootSettings;

const fn ns(ns: u64) -> Picoseconds {
    Picoseconds::from_ns(ns)
}

/// Gen4 x16.
pub fn link() -> LinkSettings {
    let lanes = Lanes::new(16).expect("a width that exists");
    LinkSettings { flight: ns(100), ..LinkSettings::new(Generation::Gen4, lanes) }
}

/// One core, and a NIC of this shape.
pub fn settings(shape: &NicShape) -> MachineSettings {
    MachineSettings {
        core: CoreSettings {
            store_bytes: 32,
            store: ns(1),
            buffers: 10,
            release: Release::Fifo,
            drain_interval: ns(4),
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
        },
        cores: 1,
        root: RootSettings {
            write_latency: ns(120),
            write_interval: ns(2),
            write_places: 64,
            merges: false,
            read_latency: ns(250),
            read_interval: ns(2),
            answers: Answers::Longest,
            write_visible: ns(100),
            write_ingest: ns(2),
        },
        link: link(),
        further: vec![],
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
            register_read: ns(50),
            transmit_latency: ns(0),
            wire_rate: Rate::from_gbps(400.0),
        },
        header: Header::FourDw,
        aperture: shape.aperture(),
    }
}
