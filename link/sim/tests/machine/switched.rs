//! Several devices behind a switch: each gets what is its own, peers reach each other, and copies reach all.

use beeline_contract_link::{DmaMemory, Link};
use beeline_contract_memory::StorePort;
use beeline_link_sim::cpu::FenceAck;
use beeline_link_sim::des::{Picoseconds, stream};
use beeline_link_sim::machine::{
    Branch, CoreId, DeviceId, MachineError, MachineSettings, Sim, SwitchSettings,
};
use beeline_link_sim::pcie::{Advertised, Generation, Lanes, LinkSettings};
use proptest::prelude::*;
use rand::RngExt;

use crate::probe::{Probe, Reaction};
use crate::{WINDOWS_AT, assert_at_rest, bare_link, ns, once, settings};

/// What the switch takes, and a line on a wire.
const SWITCH_NS: u64 = 110;
const LINE_NS: u64 = 88;
const FLIGHT_NS: u64 = 100;

fn switched(devices: usize, groups: Vec<Vec<u16>>) -> MachineSettings {
    let branch = Branch { link: bare_link(), further: vec![] };
    let switch = SwitchSettings { latency: ns(SWITCH_NS), branches: vec![branch; devices], groups };
    MachineSettings { switch: Some(switch), ..settings(1) }
}

fn machine(settings: MachineSettings) -> Sim<Probe> {
    let devices = settings.switch.as_ref().map_or(1, |switch| switch.branches.len());
    Sim::with_devices((0..devices).map(|_| Probe::with([])).collect(), settings, 1).expect("a machine")
}

/// Each device gets its own lines, and answers its own loads.
#[test]
fn devices_are_told_apart() {
    let sim = machine(switched(3, vec![]));
    let mut windows: Vec<_> =
        (0..3).map(|device| sim.link_to(CoreId(0), DeviceId(device)).window(0).unwrap()).collect();
    let mut link = sim.link_to(CoreId(0), DeviceId(2));
    sim.with(|machine| machine.devices()[2].words[1] = 77);
    let mut read = None;
    once(&sim, || {
        for (device, window) in (1u64..).zip(&mut windows) {
            window.store_line(device as u32, &[device; 8]);
        }
        read = link.start_read(8).unwrap();
    });
    assert_eq!(link.poll_read(read.unwrap()).unwrap(), Some(77));
    sim.with(|machine| {
        for (device, probe) in (1u64..).zip(machine.devices()) {
            let [taken] = &probe.taken[..] else { panic!("{:?}", probe.taken) };
            assert_eq!(taken.offset_bytes, WINDOWS_AT + device * 64);
            assert_eq!(taken.data[..8], device.to_le_bytes());
        }
    });
    assert_at_rest(&sim);
}

/// What one device writes to a peer is there, takes both links and the switch, and is read back by another.
#[test]
fn peers_write_and_read_each_other() {
    let sim = machine(switched(3, vec![]));
    let base = sim.with(|machine| machine.device_address(DeviceId(1)));
    sim.with(|machine| {
        machine.devices()[0]
            .reactions
            .push_back(Reaction::Write { address: base + 128, data: vec![250; 64] });
        machine.devices()[2].reactions.push_back(Reaction::Read { address: base + 8 * 5 + 3, bytes: 200 });
        machine.devices()[1].words = (0..256).collect();
    });
    // One after the other, so that nothing is in the way of the write.
    for device in [0, 2] {
        let mut link = sim.link_to(CoreId(0), DeviceId(device));
        once(&sim, || assert!(link.write_register(0, 1).unwrap()));
    }
    sim.with(|machine| {
        let devices = machine.devices();
        // From the doorbell that the first saw: its engine, two wires and ways, the switch, and the second's intake.
        let way = 35 + 2 * (LINE_NS + FLIGHT_NS) + SWITCH_NS + 30;
        assert_eq!(devices[1].taken[0].data, [250; 64]);
        assert_eq!(devices[1].taken[0].offset_bytes, 128);
        assert_eq!(devices[1].taken[0].at_ps - devices[0].taken[0].at_ps, way * 1000);
        let expected: Vec<u8> = (5u64..).flat_map(|word| word.to_le_bytes()).skip(3).take(200).collect();
        assert_eq!(devices[2].completed[0].data.as_ref().unwrap(), &expected);
        assert_eq!(machine.totals().memory_read_bytes + machine.totals().memory_written_bytes, 0);
    });
    assert_at_rest(&sim);
}

/// A line for a group is at each device of it, once, at the same offset; a device's own copy does not come back to it, and
/// a read of the group is answered as an error.
#[test]
fn a_group_gets_copies() {
    let sim = machine(switched(4, vec![vec![0, 2, 3]]));
    let mut window = sim.link(CoreId(0)).multicast_window(0, 0).unwrap();
    let group = sim.with(|machine| machine.group_address(0)).unwrap();
    sim.with(|machine| {
        let write = Reaction::Write { address: group + 640, data: vec![3; 100] };
        machine.devices()[2].reactions.extend([write, Reaction::Read { address: group, bytes: 64 }]);
    });
    let mut register = sim.link_to(CoreId(0), DeviceId(2));
    once(&sim, || {
        window.store_line(7, &[5; 8]);
        register.write_register(0, 1).unwrap();
    });
    sim.with(|machine| {
        let offsets: Vec<Vec<u64>> = machine
            .devices()
            .iter()
            .map(|probe| probe.taken.iter().map(|taken| taken.offset_bytes).collect())
            .collect();
        let line = WINDOWS_AT + 7 * 64;
        assert_eq!(offsets, [vec![line, 640], vec![], vec![line, 0], vec![line, 640]]);
        assert!(machine.devices()[2].completed.iter().all(|completed| completed.data.is_err()));
        assert_eq!(machine.totals().faults, machine.devices()[2].completed.len() as u64);
        assert_eq!(machine.devices()[2].completed.len(), 1);
    });
    assert_at_rest(&sim);
}

#[test]
fn what_makes_no_machine_is_named() {
    let refused = |settings: MachineSettings, devices: usize| {
        let devices = (0..devices).map(|_| Probe::with([])).collect();
        Sim::<Probe>::with_devices(devices, settings, 1)
            .err()
            .map_or(String::new(), |e: MachineError| e.to_string())
    };
    assert_eq!(refused(switched(2, vec![vec![0, 1]]), 2), "");
    assert!(refused(switched(2, vec![]), 3).starts_with("3 devices for a machine with places for 2"));
    assert!(refused(switched(2, vec![vec![2]]), 2).contains("receiver 3 of multicast group 0"));
    assert!(refused(switched(0, vec![]), 0).contains("0 branches of a switch"));
    let mut waits = switched(2, vec![vec![0]]);
    waits.core.fence_ack = FenceAck::Device;
    assert!(refused(waits, 2).contains("let fences wait for the root complex"));
    let mut low = switched(64, vec![]);
    low.header = beeline_link_sim::pcie::Header::ThreeDw;
    low.aperture.stride_bytes = 1 << 24;
    assert!(refused(low, 64).contains("do not fit below 4 GiB"));
}

fn any_link() -> impl Strategy<Value = LinkSettings> {
    (prop::sample::select(Generation::ALL.to_vec()), prop::sample::select(vec![1u8, 4, 16]), 16u32..40)
        .prop_map(|(generation, lanes, credits)| LinkSettings {
            max_payload_bytes: 256,
            advertised: [[Advertised::finite(credits, credits * 16); 3]; 2],
            ..LinkSettings::new(generation, Lanes::new(lanes).expect("a width that exists"))
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Devices of any machine write and read each other, memory, and everybody: all of it arrives once, whoever refuses now
    /// and then, and nothing is left.
    #[test]
    fn nothing_is_lost_between_devices(
        trunk in any_link(),
        links in prop::collection::vec(any_link(), 2..6),
        traffic in prop::collection::vec((0usize..6, 0usize..7, 1u32..2000, any::<bool>()), 1..60),
        seed in any::<u64>(),
    ) {
        let devices = links.len();
        let branches = links.into_iter().map(|link| Branch { link, further: vec![] }).collect();
        let everybody = (0..devices as u16).collect();
        let switch = SwitchSettings { latency: Picoseconds(9000), branches, groups: vec![everybody] };
        let machine = MachineSettings { switch: Some(switch), link: trunk, ..settings(1) };
        let probes = (0..devices).map(|n| {
            let random = stream(seed, &format!("refusals {n}"));
            let mut probe = Probe::with([]);
            probe.refuses = Some((20, random));
            probe
        });
        let sim = Sim::with_devices(probes.collect(), machine, seed).expect("a machine");
        let memory = crate::patterned(&sim, 1 << 14);
        let mut at = stream(seed, "addresses");
        let mut wanted_bytes = vec![0u64; devices];
        let mut rung = vec![0u64; devices];
        for (from, to, bytes, is_read) in &traffic {
            let (from, to, offset) = (from % devices, to % (devices + 2), at.random_range(0..64u64) * 64);
            let address = sim.with(|machine| match to {
                to if to == devices => memory.address() + offset,
                to if to > devices => machine.group_address(0).unwrap_or_default() + offset,
                to => machine.device_address(DeviceId(to as u16)) + offset,
            });
            // A device does not write to itself by the link, and nobody reads a group.
            let to_self = to == from;
            let is_read = *is_read && to <= devices;
            let reaction = if to_self {
                Reaction::Nothing
            } else if is_read {
                Reaction::Read { address, bytes: *bytes }
            } else {
                Reaction::Write { address, data: vec![0; *bytes as usize] }
            };
            if !to_self && !is_read {
                for (device, wanted) in wanted_bytes.iter_mut().enumerate() {
                    let is_copied = to > devices && device != from;
                    *wanted += if device == to || is_copied { u64::from(*bytes) } else { 0 };
                }
            }
            // One doorbell brings one reaction, as long as nothing else does.
            rung[from] += 1;
            sim.with(|machine| machine.devices()[from].reactions.push_back(reaction));
        }
        let mut links: Vec<_> = (0..devices as u16).map(|n| sim.link_to(CoreId(0), DeviceId(n))).collect();
        once(&sim, || {
            for (link, rung) in links.iter_mut().zip(&rung) {
                (0..*rung).for_each(|_| assert!(link.write_register(0, 1).unwrap()));
            }
        });
        sim.with(|machine| {
            for (device, probe) in machine.devices().iter().enumerate() {
                let taken: u64 = probe.taken.iter().map(|taken| taken.data.len() as u64).sum();
                assert_eq!(taken, wanted_bytes[device] + 8 * rung[device], "device {device}");
                assert!(probe.reactions.is_empty() && probe.completed.iter().all(|one| one.data.is_ok()));
            }
        });
        assert_at_rest(&sim);
    }
}
