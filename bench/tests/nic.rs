//! What goes through other processes, and the program that they are: real NICs, real victims, few of each.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::{Command, Output};

use beeline_bench::{BenchError, Bound, Report, Settings, Value, nic_one_way, nic_rate, peer_death};
use beeline_driver::Transmit;
use beeline_floor::rounds::Keep;
use beeline_mmio::StoreKernel;
use beeline_mmio::clock::Calibration;
use beeline_session::{
    Job, Latency, NicError, NicOptions, PrivateNic, Program, Queue, Rx, Session, ThereAndBack, TransmitRate,
    send_one,
};
use beeline_spec::Interface;
use beeline_spec::regs::counter;
use beeline_window::FencePolicy;

fn program() -> Program {
    Program::at(env!("CARGO_BIN_EXE_beeline-bench"))
}

/// A NIC and a port of it; both give the core away while they wait, so that one core will do.
fn open(loopback: bool) -> (PrivateNic, Session) {
    let options = NicOptions { loopback, lossless: true, ..NicOptions::default() };
    let nic = PrivateNic::start(&program(), &options).unwrap();
    let session = Session::open(&nic.session_options(StoreKernel::Cached)).unwrap();
    (nic, session)
}

/// Few rounds of few frames; `None` where two sides cannot have a core each.
fn settings() -> Option<Settings> {
    let settings = Settings::quick().ok()?;
    Some(Settings {
        rounds: 2,
        stream_thousands: 20,
        trip_thousands: 1,
        program: program(),
        keep: Keep::All,
        ..settings
    })
}

#[test]
fn the_wire_sees_exactly_what_was_handed_over() {
    let (nic, mut session) = open(false);
    let calibration = Calibration::measure();
    let mut counted = session.frames_on_the_wire().unwrap();
    for interface in Interface::ALL {
        // No multiple of a burst, and more than the window and the ring hold.
        let job = TransmitRate { frame_bytes: 64, frames: 10_007, burst: 32, calibration };
        let rated = session.with_queue(Queue::of(interface), job).unwrap();
        assert_eq!(rated.frames, 10_007);
        assert!(rated.frames_per_second() > 0.0 && rated.host_ns_per_frame > 0.0, "{interface}: {rated:?}");
        counted += 10_007;
        assert_eq!(session.frames_on_the_wire().unwrap(), counted, "{interface}");
    }
    drop(session);
    nic.stop().unwrap();
}

/// Writes that arrived ahead of a line that was still incomplete.
fn displaced(session: &mut Session) -> u64 {
    let buckets = 1..counter::DISPLACEMENT_HISTOGRAM_COUNT;
    let offsets =
        buckets.map(|i| counter::DISPLACEMENT_HISTOGRAM + i * counter::DISPLACEMENT_HISTOGRAM_STRIDE);
    offsets.map(|offset| session.counter(offset).unwrap()).sum()
}

#[test]
fn the_fences_of_a_queue_reach_its_window() {
    let (nic, mut session) = open(false);
    let calibration = Calibration::measure();
    // An adversary cannot hold a line back across a fence.
    for (fences, is_disordered) in
        [(FencePolicy::PerLine, false), (FencePolicy::None, true), (FencePolicy::PerLine, false)]
    {
        let before = displaced(&mut session);
        let queue = Queue { adversary: Some(7), fences, ..Queue::of(Interface::Mmio) };
        let job = TransmitRate { frame_bytes: 300, frames: 5_000, burst: 8, calibration };
        session.with_queue(queue, job).unwrap();
        let displaced = displaced(&mut session) - before;
        assert_eq!(displaced > 0, is_disordered, "fences {fences}: {displaced} writes ahead");
    }
    drop(session);
    nic.stop().unwrap();
}

/// Has frames on their way that a [`TransmitRate`] did not send.
struct Disturbed(TransmitRate);

impl Job for Disturbed {
    type Output = ();
    type Error = NicError;

    fn run<T: Transmit>(self, session: &mut Session, tx: &mut T, rx: &mut Rx) -> Result<(), NicError> {
        let mut disturbing = Disturbing { tx, extra: Some([0xff; 64]) };
        self.0.run(session, &mut disturbing, rx).map(drop)
    }
}

/// A queue that slips one frame of its own in.
struct Disturbing<'a, T> {
    tx: &'a mut T,
    extra: Option<[u8; 64]>,
}

impl<T: Transmit> Transmit for Disturbing<'_, T> {
    fn try_send(&mut self, frame: &[u8]) -> Result<beeline_driver::Sent, beeline_driver::TxError> {
        self.tx.try_send(frame)
    }

    fn try_send_burst(&mut self, frames: &[&[u8]]) -> Result<beeline_driver::Taken, beeline_driver::TxError> {
        if let Some(extra) = self.extra.take() {
            assert_eq!(self.tx.try_send(&extra)?, beeline_driver::Sent::Sent);
        }
        self.tx.try_send_burst(frames)
    }

    fn progress(&mut self) -> Result<(), beeline_driver::TxError> {
        self.tx.progress()
    }

    fn max_frame_bytes(&self) -> usize {
        self.tx.max_frame_bytes()
    }

    fn is_idle(&self) -> bool {
        self.tx.is_idle()
    }

    fn declared(&self) -> beeline_driver::Declared {
        self.tx.declared()
    }
}

#[test]
fn a_frame_too_many_on_the_wire_is_no_rate() {
    let (_nic, mut session) = open(false);
    let rate = TransmitRate { frame_bytes: 64, frames: 100, burst: 32, calibration: Calibration::measure() };
    let outcome = session.with_queue(Queue::of(Interface::Mmio), Disturbed(rate));
    assert!(matches!(outcome, Err(NicError::Miscounted { sent: 100, counted: 101 })), "{outcome:?}");
}

#[test]
fn frames_come_back_through_every_interface() {
    let (nic, mut session) = open(true);
    let calibration = Calibration::measure();
    for interface in Interface::ALL {
        let mut times = Vec::new();
        let record = |ns| times.push(ns);
        let job = Latency { frame_bytes: 61, passes: 2, samples: 50, warm_up: 5, calibration, record };
        session.with_queue(Queue::of(interface), job).unwrap();
        assert_eq!(times.len(), 50, "{interface}");
        let job = ThereAndBack { frame_bytes: 61, frames: 1_003, burst: 32, in_flight: 256, calibration };
        let rated = session.with_queue(Queue::of(interface), job).unwrap();
        assert_eq!(rated.frames, 1_003, "{interface}");
    }
    drop(session);
    nic.stop().unwrap();
}

/// Sends one frame that is not the one a [`ThereAndBack`] waits for.
struct Strange(ThereAndBack);

impl Job for Strange {
    type Output = ();
    type Error = NicError;

    fn run<T: Transmit>(self, session: &mut Session, tx: &mut T, rx: &mut Rx) -> Result<(), NicError> {
        send_one(session, tx, &[0x11; 64])?;
        self.0.run(session, tx, rx).map(drop)
    }
}

#[test]
fn unexpected_frame_is_an_error_and_no_rate() {
    let (_nic, mut session) = open(true);
    let calibration = Calibration::measure();
    let rate = ThereAndBack { frame_bytes: 64, frames: 100, burst: 32, in_flight: 256, calibration };
    let outcome = session.with_queue(Queue::of(Interface::Mmio), Strange(rate));
    assert!(matches!(outcome, Err(NicError::Altered { number: 0, bytes: 64, .. })), "{outcome:?}");
}

#[test]
fn a_nic_that_cannot_start_says_why() {
    let options = NicOptions { pcap_out: Some("/nowhere/out.pcap".into()), ..NicOptions::default() };
    let error = PrivateNic::start(&program(), &options).unwrap_err();
    assert!(
        matches!(&error, NicError::Ended { words, .. } if words.contains("/nowhere/out.pcap")),
        "{error}"
    );
    let error = PrivateNic::start(&Program::at("/nowhere/program"), &NicOptions::default()).unwrap_err();
    assert!(matches!(error, NicError::Start { .. }), "{error}");
}

#[test]
fn the_rows_through_a_nic_have_a_figure_for_every_interface() {
    let Some(settings) = settings() else { return };
    let report = nic_one_way::run(&settings).unwrap();
    assert_eq!(report.figures.len(), Interface::ALL.len());
    assert!(report.figures.iter().all(|figure| figure.samples.len() == 2_000 && figure.rounds.len() == 2));
    assert_eq!(report.checks[0].bound, Bound::AtMost(0.85));
    assert!(report.checks[0].target.starts_with("mmio"), "{:?}", report.checks);
    let report = nic_rate::run(&settings).unwrap();
    assert_eq!(report.figures.len(), 2 * Interface::ALL.len());
    assert!(report.figures.iter().all(|figure| figure.rounds.len() == 2 && figure.rounds[0] > 0.0));
    let bounds: Vec<_> = report.checks.iter().map(|check| check.bound).collect();
    assert_eq!(bounds, [Bound::AtLeast(2.0), Bound::Shown, Bound::Shown, Bound::Shown]);
}

#[test]
fn every_death_is_seen() {
    let Some(settings) = settings() else { return };
    let report = peer_death::run(&settings).unwrap();
    assert_eq!((report.figures.len(), report.checks.len()), (2, 2));
    for figure in &report.figures {
        assert_eq!((figure.samples.len(), figure.rounds.len()), (16, 2));
        let Value::Delay { p50_ns, p99_ns, worst_ns } = figure.value else { panic!("{:?}", figure.value) };
        assert!(0.0 < p50_ns && p50_ns <= p99_ns && p99_ns <= worst_ns, "{:?}", figure.value);
    }
}

#[test]
fn a_victim_that_never_connects_is_an_error() {
    let Some(settings) = settings() else { return };
    // It answers to no role, and says something else.
    let outcome =
        peer_death::run(&Settings { program: Program::at("/bin/echo"), keep: Keep::All, ..settings });
    assert!(matches!(&outcome, Err(BenchError::Meet(said)) if said.contains("victim")), "{outcome:?}");
}

fn run(args: &[&str]) -> Output {
    Command::new(program().path()).args(args).output().unwrap()
}

#[test]
fn the_program_runs_a_row_and_hides_its_roles() {
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    assert!(help.contains("list") && !help.contains("victim") && !help.contains("private-nic"), "{help}");
    if settings().is_none() {
        return;
    }
    let output = run(&["run", "peer-death", "--rounds", "1", "--json", "-"]);
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    // 2 tells a target that was missed: a loaded machine may well miss one.
    assert!(matches!(output.status.code(), Some(0 | 2)), "{output:?}");
    assert_eq!(report.figures[0].bench, "peer-death");
    assert_eq!(report.checks[0].bound, Bound::WithinMs(50.0));
}
