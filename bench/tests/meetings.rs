//! Processes that connect, send and close, few times each.

use beeline_bench::{BenchError, Bound, Settings, Value, connect, segment};
use beeline_floor::rounds::Keep;
use beeline_session::Program;

fn settings(program: &str) -> Option<Settings> {
    let settings = Settings::quick().ok()?;
    let program = Program::at(program);
    Some(Settings { rounds: 2, trip_thousands: 1, program, keep: Keep::All, ..settings })
}

#[test]
fn every_message_and_every_end_is_seen() {
    let Some(settings) = settings(env!("CARGO_BIN_EXE_beeline-bench")) else { return };
    let report = connect::run(&settings).unwrap();
    let names: Vec<_> = report.figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(names, ["window", "window in an arena", "Unix stream socket", "TCP over loopback"]);
    for figure in &report.figures {
        assert_eq!((figure.samples.len(), figure.rounds.len()), (80, 2));
        let Value::Latency { p50_ns, p99_ns, .. } = figure.value else { panic!("{:?}", figure.value) };
        assert!(0.0 < p50_ns && p50_ns <= p99_ns, "{:?}", figure.value);
    }
    let bounds: Vec<_> = report.checks.iter().map(|check| check.bound).collect();
    assert_eq!(bounds, [Bound::WithinMs(0.15), Bound::WithinMs(0.04), Bound::Shown, Bound::Shown]);
}

#[test]
fn segments_are_made_used_and_removed_and_checks_of_a_sequence_find_nothing() {
    let Some(settings) = settings(env!("CARGO_BIN_EXE_beeline-bench")) else { return };
    let report = segment::run(&settings).unwrap();
    assert_eq!(report.figures.len(), 4);
    for figure in &report.figures {
        assert_eq!((figure.samples.len(), figure.rounds.len()), (80, 2));
    }
    let bounds: Vec<_> = report.checks.iter().map(|check| check.bound).collect();
    assert_eq!(bounds, [Bound::WithinMs(0.1), Bound::Shown, Bound::Shown]);
    let unheard = Settings { program: Program::at("/bin/echo"), ..settings };
    let outcome = segment::run(&unheard);
    assert!(matches!(&outcome, Err(BenchError::Fabric(said)) if said.contains("not ready")), "{outcome:?}");
}

#[test]
fn process_that_offers_nothing_is_an_error() {
    let Some(settings) = settings("/bin/echo") else { return };
    let outcome = connect::run(&settings);
    assert!(matches!(&outcome, Err(BenchError::Connect(said)) if said.contains("not ready")), "{outcome:?}");
}
