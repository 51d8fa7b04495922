//! Experiments on a platform that is built in: what is measured holds together.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use beeline_driver::Choice;
use beeline_experiments::{
    Arrivals, Cost, Data, Experiment, LabError, Measured, NicKind, NicShape, Run, Station, Traffic,
    machine_for, model_nic,
};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::Sim;
use beeline_link_sim::pcie::Kind;
use beeline_platforms::Platform;
use beeline_spec::Interface;
use beeline_window::FencePolicy;

fn platform(changes: &[(&str, &str)]) -> Platform {
    let named = Platform::named("epyc-7543-cx6dx").unwrap();
    changes.iter().fold(named, |platform, (key, value)| platform.with(key, value).unwrap())
}

fn experiment(platform: &Platform, interface: Interface, arrivals: Arrivals) -> Experiment<'_> {
    let traffic = Traffic { sizes: vec![60, 200], frames: 2000, arrivals };
    Experiment {
        data: Data::default(),
        nic: NicKind::Model,
        platform,
        interface,
        fences: FencePolicy::None,
        adversary: None,
        cores: 1,
        devices: 1,
        traffic,
        warm_up: 100,
        seed: 1,
    }
}

fn measure(platform: &Platform, interface: Interface, arrivals: Arrivals) -> Result<Measured, LabError> {
    experiment(platform, interface, arrivals).measure()
}

/// In the order in which lines were filled, without what else shakes them.
const IN_ORDER: [(&str, &str); 1] = [("core.wc_release", "fifo")];
/// In any order: lines leave one by one, so that several wait at a time.
const RANDOM: [(&str, &str); 2] = [("core.wc_release", "random"), ("core.wc_interval_ns", "5")];

#[test]
fn every_interface_pays_for_its_frames() {
    let platform = platform(&IN_ORDER);
    for interface in Interface::ALL.into_iter().filter(|interface| *interface != Interface::Coherent) {
        for arrivals in [Arrivals::OneByOne, Arrivals::Always { burst: 1 }, Arrivals::Always { burst: 16 }] {
            let outcome = measure(&platform, interface, arrivals.clone()).unwrap().outcome;
            assert_eq!((outcome.all_frames, outcome.to_wire.summary().count), (2000, 1900));
            let cost = outcome.cost;
            let frame_bytes = outcome.all_bytes;
            assert!(frame_bytes >= 1000 * 260, "{interface}: {frame_bytes}");
            assert!(cost.link_bytes() > frame_bytes, "{interface} carries more than frames: {cost:?}");
            assert!(cost.worked.0 > 0, "{interface}");
            let answers = cost.to_device.tlps[Kind::CompletionWithData as usize].useful_bytes;
            match interface {
                Interface::Mmio | Interface::Kpio => assert_eq!(answers, 0, "{interface} reads nothing"),
                Interface::Descriptor | Interface::Enso => {
                    assert!(answers >= frame_bytes, "{interface} fetches every frame: {answers}");
                }
                // Short frames are pushed, and longer ones may be.
                Interface::Inline | Interface::Niq | Interface::Coherent => {}
            }
        }
    }
}

/// Lines that change owner take no packets but those that bring the port up; a platform without them says so.
#[test]
fn coherent_is_measured_where_lines_move_and_nowhere_else() {
    let always = || Arrivals::Always { burst: 16 };
    let error = measure(&platform(&[]), Interface::Coherent, always()).err().unwrap().to_string();
    assert!(error.contains("[coherent]"), "{error}");
    let machine = Platform::named("ccnic-icelake").unwrap();
    let outcome = measure(&machine, Interface::Coherent, always()).unwrap().outcome;
    let cost = outcome.cost;
    assert!(cost.memory_bytes > outcome.all_bytes && cost.link_bytes() < outcome.all_bytes / 10, "{cost:?}");
}

#[test]
fn disorder_is_seen_where_there_is_some_and_only_there() {
    let always = Arrivals::Always { burst: 1 };
    let spans = |changes: &[(&str, &str)]| {
        measure(&platform(changes), Interface::Mmio, always.clone()).unwrap().spans.unwrap()
    };
    let ordered = spans(&IN_ORDER);
    assert!(ordered.writes() >= 2000, "{}", ordered.writes());
    assert_eq!(ordered.most(), 1);
    let random = spans(&RANDOM);
    assert!(random.beyond(1) > 0 && random.most() <= 64, "{}", random.most());
    let shaken = spans(&[("core.wc_release", "fifo"), ("root_complex.write_jitter_ns", "40")]);
    assert!(shaken.beyond(1) > 0);
    let descriptor = measure(&platform(&[]), Interface::Descriptor, always).unwrap();
    assert!(descriptor.spans.is_none(), "it has no window");
}

#[test]
fn an_interface_that_needs_order_says_so_where_there_is_none() {
    let platform = platform(&RANDOM);
    let error = measure(&platform, Interface::Kpio, Arrivals::Always { burst: 1 }).err().unwrap();

    assert!(
        matches!(error, LabError::Changed { .. } | LabError::Stuck { .. } | LabError::Send(_)),
        "{error}"
    );
    measure(&platform, Interface::Mmio, Arrivals::Always { burst: 1 }).unwrap();
}

#[test]
fn the_adversary_changes_no_frame_and_loses_none() {
    let platform = platform(&IN_ORDER);
    let poisson = Arrivals::Poisson { per_second: 5e6 };
    for interface in Interface::ALL.into_iter().filter(|interface| *interface != Interface::Coherent) {
        for arrivals in [Arrivals::OneByOne, Arrivals::Always { burst: 16 }, poisson.clone()] {
            let mut experiment = experiment(&platform, interface, arrivals);
            experiment.adversary = Some(3);
            let measured = experiment.measure().unwrap();
            assert_eq!(measured.outcome.all_frames, 2000);
            let spans = measured.spans.filter(|_| interface == Interface::Mmio);
            assert!(spans.is_none_or(|spans| spans.beyond(1) > 0), "the adversary did nothing");
        }
    }
}

/// Interrupts that come while lines are being filled, and what is left of those lines leaving before long.
const INTERRUPTED: [(&str, &str); 3] =
    [("core.interrupt_interval_ns", "300"), ("core.interrupt_ns", "50"), ("core.wc_timeout_ns", "100")];

/// An interrupt empties the buffers of its core in the middle of a line, which goes in pieces.
#[test]
fn interrupts_of_the_core_split_lines_and_lose_no_frame() {
    let always = || Arrivals::Always { burst: 16 };
    for order in [&IN_ORDER[..], &RANDOM[..]] {
        let cost = |changes: &[(&str, &str)]| {
            let platform = platform(&[order, changes].concat());
            measure(&platform, Interface::Mmio, always()).unwrap().outcome.cost
        };
        let (quiet, interrupted) = (cost(&[]), cost(&INTERRUPTED));
        let packets = |cost: &Cost| cost.to_device.tlps[Kind::MemoryWrite as usize].packets;
        assert!(packets(&interrupted) > packets(&quiet), "{interrupted:?}, without interrupts {quiet:?}");
        assert!(interrupted.worked > quiet.worked);
    }
    let interrupted = platform(&[&IN_ORDER[..], &INTERRUPTED].concat());
    for interface in Interface::ALL.into_iter().filter(|interface| *interface != Interface::Coherent) {
        // What is left of a line comes behind lines that were filled later, and `kpio` needs them in order.
        if interface != Interface::Kpio {
            let outcome = measure(&interrupted, interface, always()).unwrap().outcome;
            assert_eq!(outcome.all_frames, 2000, "{interface}");
        }
    }
}

/// Nothing evicts what is left of such a line where buffers stay free: others pass it, more than the NIC holds, and the queue
/// fails. A fence a message, or a time-out of the buffers, keeps it within bounds.
#[test]
fn a_line_that_stays_behind_fails_the_queue_and_is_named() {
    let interrupted = platform(&[&IN_ORDER[..], &INTERRUPTED[..2]].concat());
    let mut experiment = experiment(&interrupted, Interface::Mmio, Arrivals::Always { burst: 1 });
    let error = experiment.measure().err().unwrap();
    assert!(matches!(error, LabError::BeyondSpan { lines: 65.., span_lines: 64, .. }), "{error}");
    assert!(error.to_string().contains("--fences per-message"), "{error}");
    experiment.fences = FencePolicy::PerMessage;
    assert_eq!(experiment.measure().unwrap().outcome.all_frames, 2000);
}

/// With no more lines in the window than the NIC holds, the program waits for credit in place of failing, and the line leaves
/// with the next interrupt (decision 0015).
#[test]
fn a_window_of_the_span_waits_for_what_an_interrupt_left() {
    let interrupted = platform(&[("core.interrupt_interval_ns", "10000"), ("core.interrupt_ns", "500")]);
    let run = |window_lines| {
        let mut shape = NicShape::for_cores(1);
        shape.config.window_lines = window_lines;
        let settings =
            machine_for(Interface::Mmio, &interrupted, 1, shape.aperture(), Data::default()).unwrap();
        let sim = Sim::new(model_nic(&shape).unwrap(), settings, 1).unwrap();
        sim.with(|machine| machine.keep_frames());
        let traffic =
            Traffic { sizes: vec![64], frames: 20_000, arrivals: Arrivals::Poisson { per_second: 2e6 } };
        let choice = Choice::of(Interface::Mmio, 1);
        let run = Run { choice, traffic, message: Picoseconds(10_000), warm_up: 0, seed: 1 };
        run.on(&mut Station::new(sim).unwrap(), 1)
    };
    let outcome = run(NicShape::SPAN_LINES).unwrap();
    assert_eq!((outcome.all_frames, outcome.changed_frames), (20_000, 0));
    assert!(matches!(run(4096), Err(LabError::Stuck { .. })), "a window beyond the span bounds nothing");
}

#[test]
fn the_same_seed_is_the_same_run() {
    let platform = platform(&[]);
    let arrivals = Arrivals::Poisson { per_second: 2e6 };
    let run = || measure(&platform, Interface::Mmio, arrivals.clone()).unwrap();
    let (one, other) = (run(), run());
    assert_eq!(one.outcome.cost, other.outcome.cost);
    assert_eq!(one.outcome.times, other.outcome.times);
    assert_eq!(one.outcome.to_wire.summary(), other.outcome.to_wire.summary());
    for times in &one.outcome.times {
        assert!(times.begun_at < times.returned_at && times.decided_at < times.starts_at);
        assert!(times.begun_at < times.decided_at && times.starts_at < times.ends_at);
    }
}

#[test]
fn frames_come_after_the_gaps_that_were_recorded() {
    let platform = platform(&IN_ORDER);
    let gaps = [Picoseconds::from_ns(5000), Picoseconds::from_ns(9000)].into();
    let times = measure(&platform, Interface::Mmio, Arrivals::Recorded { gaps }).unwrap().outcome.times;
    for pair in times.windows(3) {
        assert_eq!(pair[2].begun_at - pair[0].begun_at, Picoseconds::from_ns(14_000));
    }
}

#[test]
fn energy_is_told_where_the_platform_tells_it() {
    let plain = platform(&[]);
    let outcome = measure(&plain, Interface::Mmio, Arrivals::OneByOne).unwrap().outcome;
    assert_eq!(experiment(&plain, Interface::Mmio, Arrivals::OneByOne).energy_nj(&outcome), None);
}

#[test]
fn energy_is_that_of_the_cores_the_link_and_the_memory() {
    let told = |watts: &str, link: &str, memory: &str| {
        let values = [
            ("energy.core_watts", watts),
            ("energy.link_pj_per_bit", link),
            ("energy.memory_pj_per_bit", memory),
        ];
        let named = Platform::named("niq-x520").unwrap();
        values.iter().fold(named, |platform, (key, value)| platform.with(key, value).unwrap())
    };
    let energy = |platform: &Platform| {
        let experiment = experiment(platform, Interface::Descriptor, Arrivals::OneByOne);
        let outcome = experiment.measure().unwrap().outcome;
        (experiment.energy_nj(&outcome).unwrap(), outcome.cost)
    };
    // 5 W, 250 pJ and 125 pJ a bit: 5 nJ a nanosecond of a core, 2 nJ a byte on the link, 1 nJ a byte of memory.
    let (cores, cost) = energy(&told("5", "0", "0"));
    assert_eq!(cores, 5.0 * cost.worked.0 as f64 / 1000.0);
    let (link, cost) = energy(&told("0", "250", "0"));
    assert_eq!(link, 2.0 * cost.link_bytes() as f64);
    let (memory, cost) = energy(&told("0", "0", "125"));
    assert_eq!(memory, cost.memory_bytes as f64);
    let (all, _) = energy(&told("5", "250", "125"));
    assert!((all - (cores + link + memory)).abs() < 1e-6 * all, "{all} of {cores}, {link}, {memory}");
    assert!(cores > 0.0 && link > 0.0 && memory > 0.0);
}
