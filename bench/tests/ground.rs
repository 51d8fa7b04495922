//! Rows about who is told of what, and who is kept waiting by whom: each gives every figure that it promises, and attackers
//! really attack. No times are looked at.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use beeline_bench::{
    BenchError, Bound, Settings, Value, frames_under_attack, kv_fill, wake_up, watch_latency,
};
use beeline_floor::rounds::Keep;
use beeline_session::Program;

/// Held by the test that runs: sides poll, and those of two tests would take the cores from each other.
static CORES: Mutex<()> = Mutex::new(());

/// Few rounds of few events, and the cores for as long as they are held; `None` where two sides cannot have a core each.
fn settings() -> Option<(Settings, MutexGuard<'static, ()>)> {
    let settings = Settings::quick().ok()?;
    let program = Program::at(env!("CARGO_BIN_EXE_beeline-bench"));
    let settings =
        Settings { rounds: 2, trip_thousands: 1, fill_thousands: 20, program, keep: Keep::All, ..settings };
    // What another test left broken is nothing that this one shares.
    Some((settings, CORES.lock().unwrap_or_else(PoisonError::into_inner)))
}

#[test]
fn notifications_and_rivals_go_round_in_every_way_of_waiting() {
    let Some((settings, _cores)) = settings() else { return };
    let report = wake_up::run(&settings).unwrap();
    // The bare line; three carriers polled and asleep, there and back and one way; one callback.
    assert_eq!(report.figures.len(), 1 + 3 * 2 * 2 + 1);
    for figure in &report.figures {
        assert_eq!(figure.rounds.len(), 2, "{}", figure.name);
        assert!(figure.samples.iter().all(|sample| *sample > 0.0), "{}", figure.name);
    }
    assert_eq!(report.checks.len(), 8);
}

#[test]
fn interrupts_and_eventfds_go_round_polled_and_asleep() {
    let Some((settings, _cores)) = settings() else { return };
    let report = wake_up::run_interrupts(&settings).unwrap();
    assert_eq!(report.figures.len(), 1 + 3 * 2);
    for figure in &report.figures {
        assert_eq!(figure.rounds.len(), 2, "{}", figure.name);
        assert!(figure.samples.iter().all(|sample| *sample > 0.0), "{}", figure.name);
    }
    assert_eq!(report.checks.len(), 6);
}

#[test]
fn gets_during_a_fill_have_their_values() {
    let Some((settings, _cores)) = settings() else { return };
    let report = kv_fill::run(&settings).unwrap();
    assert!(report.figures.iter().all(|figure| figure.samples.len() == 2 * 20_000 / 32));
    assert_eq!(report.checks[0].bound, Bound::WithinMs(1.0));
}

/// How much an attacker did, from the note about its row.
fn done(note: &str, before: &str, after: &str) -> u64 {
    let number = note.split_once(before).unwrap().1;
    number.split_once(after).map_or(number, |(number, _)| number).parse().unwrap()
}

#[test]
fn deaths_under_attack_are_seen_and_the_attackers_attack() {
    let Some((settings, _cores)) = settings() else { return };
    let report = watch_latency::run(&settings).unwrap();
    assert_eq!((report.figures.len(), report.checks.len(), report.notes.len()), (6, 6, 6));
    for (figure, note) in report.figures.iter().zip(&report.notes) {
        assert_eq!((figure.samples.len(), figure.rounds.len()), (16, 2));
        assert!(matches!(figure.value, Value::Delay { p50_ns, .. } if p50_ns > 0.0), "{:?}", figure.value);
        assert!(note.contains(" of 16 deaths after 50 ms"), "{note}");
        let is_attack = !figure.name.ends_with("nobody else at work");
        assert!(!is_attack || done(note, "the attacker did ", ";") > 0, "{note}");
    }
}

#[test]
fn frames_cross_under_every_attack() {
    let Some((settings, _cores)) = settings() else { return };
    let report = match frames_under_attack::run(&settings) {
        // A kernel that does not count for how long threads wait.
        Err(BenchError::Rival { rival, .. }) if rival == "this kernel" => return,
        report => report.unwrap(),
    };
    assert_eq!((report.figures.len(), report.checks.len(), report.notes.len()), (8, 6, 4));
    assert!(report.figures.iter().all(|figure| figure.samples.len() == 2 * 1_000));
    for note in &report.notes[1..] {
        assert!(done(note.split_once(": ").unwrap().1, ": ", " done") > 0, "{note}");
    }
}
