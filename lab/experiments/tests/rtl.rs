//! The NIC's RTL on its clock in virtual time, beside the behavioural NIC on the same platform.
#![cfg(feature = "rtl")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Instant;

use beeline_experiments::{
    Arrivals, Data, Experiment, LabError, NicKind, Outcome, Station, Traffic, Watched, machine_for, rtl_nic,
};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::Sim;
use beeline_link_sim::pcie::Carried;
use beeline_nic_rtl::ClockPeriod;
use beeline_platforms::Platform;
use beeline_spec::{Interface, LINE_BYTES};
use beeline_window::FencePolicy;

const CLOCK: ClockPeriod = ClockPeriod::USPLUS;
const SIZES: [usize; 5] = [60, 128, 256, 512, 1500];

/// An interface of the RTL and what its modules say of their latency.
struct Pipeline {
    interface: Interface,
    /// Cycles from what comes last to the first beat of the frame, all stages: the headers of `mmio/mmio.sv`,
    /// `kpio/kpio.sv`, `descriptor/descriptor_tx.sv` (18, 16 and 9), `inline/inline_tx.sv`, `enso/enso_tx.sv` (18 and
    /// 18) and `niq/niq_tx.sv`.
    cycles: u32,
    /// Reads of host memory that a frame may need, one after the other.
    reads: u32,
}

const PIPELINES: [Pipeline; 6] = [
    Pipeline { interface: Interface::Mmio, cycles: 10, reads: 0 },
    Pipeline { interface: Interface::Kpio, cycles: 14, reads: 0 },
    Pipeline { interface: Interface::Descriptor, cycles: 18 + 16 + 9, reads: 2 },
    Pipeline { interface: Interface::Inline, cycles: 28, reads: 1 },
    Pipeline { interface: Interface::Enso, cycles: 18 + 18, reads: 1 },
    Pipeline { interface: Interface::Niq, cycles: 24, reads: 1 },
];

/// Around each engine: to the next edge (1), `top/ingress.sv` (1), `egress/frame_arbiter.sv` (3, or 4 when something
/// else waits), `egress/frame_guard.sv` (1), the register at the pins (1).
const AROUND_CYCLES: u32 = 8;
/// Around each read: to the next edge (1), registers at the pins (2), `dma/read_port.sv` (2), `dma/read_join.sv` (1).
const READ_CYCLES: u32 = 6;
/// What a frame may wait inside for what came before: a doorbell (`engine/doorbell.sv`, 6), the end of a turn
/// (`descriptor/payload_fetch.sv`, 5), a push that is judged and left to the ring (`inline/push_judge.sv`, 11), or a
/// line for the frontier (`mmio/arrival.sv`, 7).
const WAIT_CYCLES: u32 = 24;
/// A line of a frame comes in, goes through a buffer that stores and forwards, and leaves: each takes a cycle, where the
/// behavioural NIC takes none.
const LINE_CYCLES: u32 = 3;

impl Pipeline {
    /// The most by which a frame may be later than by the behavioural NIC, in cycles.
    fn most_cycles(&self, bytes: usize) -> u32 {
        let lines = bytes.div_ceil(LINE_BYTES) as u32;
        self.cycles + AROUND_CYCLES + self.reads * READ_CYCLES + WAIT_CYCLES + LINE_CYCLES * lines
    }
}

/// A machine that keeps lines in order, as kPIO+WC and NIQ need it, and is as fast for each frame.
fn platform() -> Platform {
    let named = Platform::named("epyc-7543-cx6dx").unwrap();
    let in_order = [("core.wc_release", "fifo"), ("root_complex.write_jitter_ns", "0")];
    in_order.iter().fold(named, |platform, (key, value)| platform.with(key, value).unwrap())
}

fn experiment(platform: &Platform, interface: Interface, traffic: Traffic) -> Experiment<'_> {
    Experiment {
        data: Data::default(),
        platform,
        nic: NicKind::Model,
        interface,
        fences: FencePolicy::None,
        adversary: None,
        cores: 1,
        devices: 1,
        traffic,
        warm_up: 0,
        seed: 1,
    }
}

fn tlps(outcome: &Outcome) -> u64 {
    let packets = |carried: &Carried| carried.tlps.iter().map(|kind| kind.packets).sum::<u64>();
    packets(&outcome.cost.to_device) + packets(&outcome.cost.to_host)
}

/// From the call to the first bit on the wire of each frame, in picoseconds.
fn latencies(outcome: &Outcome) -> impl Iterator<Item = u64> + '_ {
    outcome.times.iter().map(|times| (times.starts_at - times.begun_at).0)
}

#[test]
fn every_interface_sends_the_same_frames_later_by_what_its_pipeline_takes() {
    let platform = platform();
    for pipeline in &PIPELINES {
        for bytes in SIZES {
            let traffic = Traffic { sizes: vec![bytes], frames: 40, arrivals: Arrivals::OneByOne };
            let model = experiment(&platform, pipeline.interface, traffic);
            let rtl = Experiment { nic: NicKind::Rtl { clock: CLOCK }, ..model.clone() };
            let model = model.measure().unwrap().outcome;
            let start = Instant::now();
            // Each frame is compared with what was sent, byte by byte, in both.
            let rtl = rtl.measure().unwrap().outcome;
            let rate = tlps(&rtl) as f64 / start.elapsed().as_secs_f64();
            assert_eq!((model.all_frames, model.all_bytes), (rtl.all_frames, rtl.all_bytes));
            let later: Vec<f64> = latencies(&model)
                .zip(latencies(&rtl))
                .map(|(model, rtl)| (rtl as f64 - model as f64) / CLOCK.time().0 as f64)
                .collect();
            assert_eq!(later.len(), 40);
            let least = later.iter().copied().fold(f64::INFINITY, f64::min);
            let most = later.iter().copied().fold(0.0, f64::max);
            let (least_said, most_said) = (pipeline.cycles, pipeline.most_cycles(bytes));
            println!(
                "{:10} {bytes:4} B: model {:7.1} ns, rtl {:7.1} ns: {least:5.1} to {most:5.1} cycles later \
                 (said: {least_said} to {most_said}); {rate:.0} TLPs/s",
                pipeline.interface.name(),
                model.to_wire.summary().p50_ns,
                rtl.to_wire.summary().p50_ns,
            );
            assert!(least >= f64::from(least_said) && most <= f64::from(most_said), "{least} to {most}");
        }
    }
}

/// More than the device can take at once, of several queues, with sizes mixed: everything waits for everything else.
#[test]
fn streams_of_several_cores_arrive_whole_and_in_order() {
    let platform = platform();
    for pipeline in &PIPELINES {
        let traffic =
            Traffic { sizes: vec![60, 1500, 300, 128], frames: 200, arrivals: Arrivals::Always { burst: 8 } };
        let mut rtl = experiment(&platform, pipeline.interface, traffic);
        (rtl.nic, rtl.cores) = (NicKind::Rtl { clock: CLOCK }, 4);
        let measured = rtl.measure().unwrap();
        assert_eq!(measured.outcome.all_frames, 800, "{}", pipeline.interface);
        let again = rtl.measure().unwrap();
        assert_eq!(measured.outcome.elapsed, again.outcome.elapsed, "the same seed gives the same times");
    }
}

/// `mmio` bears lines in any order and pieces of any bytes, in the RTL as in the model.
#[test]
fn disorder_loses_nothing_of_mmio() {
    let named = Platform::named("epyc-7543-cx6dx").unwrap();
    let platform = named.with("core.wc_release", "random").unwrap();
    let arrivals = Arrivals::Poisson { per_second: 1e6 };
    let traffic = Traffic { sizes: vec![60, 1500, 300], frames: 200, arrivals };
    let mut rtl = experiment(&platform, Interface::Mmio, traffic);
    (rtl.nic, rtl.adversary) = (NicKind::Rtl { clock: CLOCK }, Some(3));
    let measured = rtl.measure().unwrap();
    assert_eq!(measured.outcome.all_frames, 200);
    assert!(measured.spans.unwrap().most() > 1, "there was no disorder");
}

/// Sends frames 100 us apart to a device that sleeps after so many silent cycles; cycles that were made, and each
/// latency.
fn far_apart(interface: Interface, sleep_after_cycles: u64) -> (u64, Vec<u64>) {
    let platform = platform();
    let arrivals = Arrivals::Recorded { gaps: [Picoseconds::from_ns(100_000)].into() };
    let sent = experiment(&platform, interface, Traffic { sizes: vec![256, 60], frames: 6, arrivals });
    let (mut nic, aperture) = rtl_nic(CLOCK, 1).unwrap();
    nic.sleep_after_cycles(sleep_after_cycles);
    let settings = machine_for(interface, &platform, 1, aperture, Data::default()).unwrap();
    let sim = Sim::new(Watched::new(nic, aperture), settings, 1).unwrap();
    sim.with(|machine| machine.keep_frames());
    let mut station = Station::new(sim).unwrap();
    let outcome = sent.measure_on(&mut station).unwrap().outcome;
    let cycles = station.sim.with(|machine| machine.device().device().cycles());
    (cycles, latencies(&outcome).collect())
}

/// A device that sleeps is one whose clock is gated: it is as late as one that is awake, but for where its scans over
/// the queues stand when something comes (64 cycles, `nic/rtl/src/device.rs`).
#[test]
fn sleep_saves_cycles_and_changes_no_latency_by_more_than_a_scan() {
    const SCAN_CYCLES: u64 = 64;
    // Longer than what those halves wait for by themselves: a report of frees or completions, 2 us after the frame.
    const SHORT_CYCLES: u64 = 10_000;
    for pipeline in &PIPELINES {
        let (slept, with) = far_apart(pipeline.interface, SHORT_CYCLES);
        let (awake, without) = far_apart(pipeline.interface, u64::MAX);
        println!("{}: {slept} cycles made, {awake} without sleep", pipeline.interface);
        assert!(slept * 4 < awake * 3, "{slept} of {awake} cycles were made");
        assert_eq!((with.len(), without.len()), (6, 6));
        for (with, without) in with.iter().zip(&without) {
            assert!(with.abs_diff(*without) <= SCAN_CYCLES * CLOCK.time().0, "{with} and {without} ps");
        }
    }
}

#[test]
fn a_faster_clock_is_nearer_to_the_model() {
    let platform = platform();
    let traffic = Traffic { sizes: vec![256], frames: 20, arrivals: Arrivals::OneByOne };
    let model = experiment(&platform, Interface::Mmio, traffic);
    let mean = |nic| {
        let measured = Experiment { nic, ..model.clone() }.measure().unwrap();
        measured.outcome.to_wire.summary().mean_ns
    };
    let at = |mhz| mean(NicKind::Rtl { clock: ClockPeriod::from_mhz(mhz).unwrap() });
    let (slow, fast, none) = (at(125), at(500), mean(NicKind::Model));
    assert!(slow > fast && fast > none, "{slow} {fast} {none}");
}

#[test]
fn what_the_rtl_has_not_is_refused_by_name() {
    let platform = Platform::named("enzian-eci").unwrap();
    let traffic = Traffic { sizes: vec![256], frames: 1, arrivals: Arrivals::OneByOne };
    let mut rtl = experiment(&platform, Interface::Coherent, traffic);
    rtl.nic = NicKind::Rtl { clock: CLOCK };
    let error = rtl.measure().unwrap_err();
    assert!(matches!(error, LabError::Port(_)), "{error}");
    (rtl.interface, rtl.cores) = (Interface::Mmio, 17);
    assert!(rtl.measure().unwrap_err().to_string().contains("cores = 17: choose 1 to 16"));
}

/// Each of several devices is an RTL of its own, on the same clock: neither is in the way of the other one.
#[test]
fn two_of_them_stand_behind_a_switch() {
    let switch = [("switch.latency_ns", "100"), ("switch.ports", "3")];
    let platform = platform().with_all(switch).unwrap();
    let traffic = Traffic { sizes: vec![256], frames: 20, arrivals: Arrivals::OneByOne };
    let mut two = experiment(&platform, Interface::Mmio, traffic);
    (two.nic, two.cores, two.devices) = (NicKind::Rtl { clock: CLOCK }, 2, 2);
    let outcome = two.measure().unwrap().outcome;
    assert_eq!(outcome.all_frames, 40);
    assert!(outcome.of_devices.iter().all(|share| share.frames == 19), "{:?}", outcome.of_devices);
}
