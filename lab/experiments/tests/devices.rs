//! Several devices behind one switch: each carries what its wire carries, until the way to the switch is full.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use beeline_experiments::{Arrivals, Data, Experiment, LabError, NicKind, Outcome, Traffic};
use beeline_platforms::Platform;
use beeline_spec::Interface;
use beeline_window::FencePolicy;
use proptest::prelude::*;

/// A wire that one core fills, far below what the link at the root complex carries (252 Gbit/s).
const WIRE_GBPS: f64 = 20.0;
/// A frame of these tests, and preamble, check sequence and gap around it.
const FRAME_BYTES: usize = 512;
const WIRE_BYTES: usize = FRAME_BYTES + 24;

fn platform(changes: &[(&str, &str)]) -> Platform {
    let named = Platform::named("epyc-7543-cx6dx").unwrap();
    let ours = [
        ("core.wc_release", "fifo"),
        ("device.wire_gbps", "20"),
        ("switch.latency_ns", "100"),
        ("switch.ports", "17"),
    ];
    named.with_all(ours.into_iter().chain(changes.iter().copied())).unwrap()
}

fn experiment(platform: &Platform, devices: u16, cores: u16) -> Experiment<'_> {
    Experiment {
        platform,
        nic: NicKind::Model,
        interface: Interface::Mmio,
        fences: FencePolicy::None,
        data: Data::default(),
        adversary: None,
        cores,
        devices,
        traffic: Traffic { sizes: vec![FRAME_BYTES], frames: 1000, arrivals: Arrivals::Always { burst: 16 } },
        warm_up: 100,
        seed: 1,
    }
}

fn outcome(platform: &Platform, devices: u16, cores: u16) -> Outcome {
    experiment(platform, devices, cores).measure().unwrap().outcome
}

#[test]
fn devices_carry_their_wires_where_the_way_to_them_allows() {
    let platform = platform(&[]);
    let wire = WIRE_GBPS * FRAME_BYTES as f64 / WIRE_BYTES as f64;
    for devices in [1, 2, 4] {
        let outcome = outcome(&platform, devices, devices);
        let sum = outcome.goodput_gbps() / (wire * f64::from(devices));
        assert!((0.98..1.001).contains(&sum), "{devices} devices: {sum} of their wires");
        for share in &outcome.of_devices {
            let own = share.goodput_gbps() / wire;
            assert!((0.98..1.001).contains(&own), "{own} of a wire, of {devices}");
        }
    }
}

/// The link before the switch carries what one device would take alone: two share it, evenly, and four no more of it.
#[test]
fn the_way_to_the_switch_bounds_the_sum() {
    // 4 lanes of generation 2 are 16 Gbit/s.
    let platform = platform(&[("link.generation", "2"), ("link.lanes", "4")]);
    let alone = outcome(&platform, 1, 1).goodput_gbps();
    assert!((10.0..16.0).contains(&alone), "{alone}");
    for devices in [2, 4] {
        let outcome = outcome(&platform, devices, devices);
        let sum = outcome.goodput_gbps() / alone;
        assert!((0.97..1.03).contains(&sum), "{devices} devices: {sum} of what one has alone");
        // What the link carried from the first call to the last frame cannot take longer on its wire than there was time.
        let wire_ns = outcome.cost.to_device.wire_bytes() as f64 / 2.0;
        let all_ns = outcome.elapsed.0 as f64 / 1000.0 * outcome.all_frames as f64 / outcome.frames as f64;
        assert!((0.95..1.03).contains(&(wire_ns / all_ns)), "{wire_ns} ns on the wire of {all_ns}");
        for share in &outcome.of_devices {
            let own = share.goodput_gbps() * f64::from(devices) / alone;
            assert!((0.9..1.1).contains(&own), "{own} of an even share, of {devices}");
        }
    }
}

/// What is fetched instead of stored crosses the switch both ways.
#[test]
fn interfaces_that_read_memory_do_so_from_each_device() {
    let platform = platform(&[]);
    let reads_nothing = [Interface::Mmio, Interface::Kpio, Interface::Coherent];
    for interface in Interface::ALL.into_iter().filter(|interface| !reads_nothing.contains(interface)) {
        let measured = Experiment { interface, ..experiment(&platform, 2, 2) }.measure().unwrap();
        let shares = measured.outcome.of_devices;
        assert_eq!(measured.outcome.all_frames, 2000, "{interface}");
        let [one, other] = shares[..] else { panic!("{shares:?}") };
        assert!(one.frames > 800 && other.frames > 800, "{interface}: {shares:?}");
        let share = one.goodput_gbps() / other.goodput_gbps();
        assert!((0.95..1.05).contains(&share), "{interface}: {shares:?}");
    }
}

/// A switch that a platform says is before several devices, and not before one alone.
#[test]
fn one_device_is_what_it_was_without_a_switch() {
    let plain = Platform::named("epyc-7543-cx6dx").unwrap();
    let plain = plain.with("core.wc_release", "fifo").unwrap().with("device.wire_gbps", "20").unwrap();
    let (with, without) = (outcome(&platform(&[]), 1, 2), outcome(&plain, 1, 2));
    assert_eq!(with.times, without.times);
    assert_eq!((with.cost, with.elapsed, with.bytes), (without.cost, without.elapsed, without.bytes));
    let [share] = with.of_devices[..] else { panic!("{:?}", with.of_devices) };
    assert_eq!((share.frames, share.bytes, share.elapsed), (with.frames, with.bytes, with.elapsed));
}

#[test]
fn what_several_devices_lack_is_named() {
    let plain = Platform::named("epyc-7543-cx6dx").unwrap();
    let error = experiment(&plain, 3, 3).measure().err().unwrap().to_string();
    assert!(error.contains("no [switch] section") && error.contains("switch.ports=4"), "{error}");
    let small = platform(&[("switch.ports", "3")]);
    assert_eq!(outcome(&small, 2, 2).all_frames, 2000);
    let error = experiment(&small, 3, 3).measure().err().unwrap();
    assert!(matches!(error, LabError::Ports { devices: 3, ports: 3, .. }), "{error}");
    assert!(error.to_string().contains("need 4 ports"), "{error}");
    let coherent = Platform::named("ccnic-icelake").unwrap();
    let coherent = coherent.with_all([("switch.latency_ns", "100"), ("switch.ports", "8")]).unwrap();
    let two = Experiment { interface: Interface::Coherent, ..experiment(&coherent, 2, 2) };
    let error = two.measure().err().unwrap().to_string();
    assert!(error.contains("machines with one device; ask for one device"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever shares them, no frame is lost, changed or counted twice, and a seed says everything.
    #[test]
    fn every_frame_leaves_by_the_device_of_its_core(
        devices in 2u16..6,
        more_cores in 0u16..5,
        sizes in prop::collection::vec(60usize..1500, 1..4),
        arrivals in prop::sample::select(vec![
            Arrivals::OneByOne,
            Arrivals::Always { burst: 4 },
            Arrivals::Poisson { per_second: 1e6 },
        ]),
        lanes in prop::sample::select(vec!["1", "4", "16"]),
        jitter_ns in prop::sample::select(vec!["0", "40"]),
        seed in any::<u64>(),
    ) {
        let cores = devices + more_cores;
        let platform = platform(&[("link.lanes", lanes), ("root_complex.write_jitter_ns", jitter_ns)]);
        let mut experiment = experiment(&platform, devices, cores);
        experiment.traffic = Traffic { sizes, frames: 60, arrivals };
        (experiment.warm_up, experiment.seed) = (0, seed);
        let (one, other) = (experiment.measure().unwrap(), experiment.measure().unwrap());
        let found = &one.outcome;
        prop_assert_eq!(found.all_frames, 60 * u64::from(cores));
        // The first frame of all is where time begins, and so is the first of each device.
        prop_assert_eq!(found.frames, found.all_frames - 1);
        for (device, share) in (0..devices).zip(&found.of_devices) {
            let of_it = (device..cores).step_by(usize::from(devices)).len() as u64;
            prop_assert_eq!(share.frames, 60 * of_it - 1);
            prop_assert!(share.bytes < found.all_bytes && share.elapsed <= found.elapsed);
        }
        prop_assert_eq!(&found.times, &other.outcome.times);
        prop_assert_eq!(&found.of_devices, &other.outcome.of_devices);
        prop_assert_eq!(found.cost, other.outcome.cost);
    }
}
