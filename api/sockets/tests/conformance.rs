//! The same program natively and with the library preloaded: what both sides of a connection see is the same, line by line.
//!
//! Cases are in C (`conformance/`), and each is run twice natively first: one whose lines differ by themselves proves nothing. The matrix of
//! `docs/sockets.md` is generated from what was seen; `BEELINE_WRITE_MATRIX=1` writes it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

#[path = "conformance/matrix.rs"]
mod matrix;
#[path = "conformance/runs.rs"]
mod runs;

use std::process::Command;

use matrix::{Outcome, Row};
use runs::{Case, Mode, Programs, Run, preloaded, preloaded_with_groups};

/// Cases that run at the same time: they wait more than they compute.
const AT_ONCE: usize = 4;
/// How often a case is run with the library that sees the same, and whose connections the kernel carries.
const TRIES: usize = 3;

/// Runs each case in each of its modes, some at the same time, and returns what `judge` says of them, in order.
fn each<T: Send>(cases: &[Case], judge: impl Fn(&Case, Mode) -> T + Sync) -> Vec<(Case, Mode, T)> {
    let all: Vec<(Case, Mode)> =
        cases.iter().flat_map(|case| case.modes().map(|mode| (case.clone(), mode))).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let judge = &judge;
    let (next, all) = (&next, &all);
    let mut judged: Vec<(usize, T)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                scope.spawn(move || {
                    let mut judged = Vec::new();
                    loop {
                        let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some((case, mode)) = all.get(at) else { return judged };
                        judged.push((at, judge(case, *mode)));
                    }
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    judged.sort_by_key(|(at, _)| *at);
    let cases = all.iter().cloned();
    cases.zip(judged).map(|((case, mode), (_, judgement))| (case, mode, judgement)).collect()
}

/// Runs a case natively, twice.
fn natively(programs: &Programs, case: &Case, mode: Mode) -> Run {
    let run = || Run::of(programs, case, mode, |_| {});
    let (first, second) = (run(), run());
    assert_eq!(first.lines, second.lines, "{} {mode:?} natively, twice", case.name);
    assert!(first.ended_well(), "{} {mode:?} natively: {first:?}", case.name);
    first
}

fn judge(programs: &Programs, case: &Case, mode: Mode) -> Outcome {
    judge_with(programs, case, mode, preloaded)
}

fn judge_with(programs: &Programs, case: &Case, mode: Mode, prepare: fn(&mut Command)) -> Outcome {
    let native = natively(programs, case, mode);
    // Most of these hang, for as long as is waited.
    if let Some(known) = matrix::known(&case.name) {
        return Outcome::Differs(known.to_owned());
    }
    let ours = || Outcome::of(&native, &Run::of(programs, case, mode, prepare));
    let is_by_kernel = |outcome: &Outcome| *outcome == Outcome::Same { is_accelerated: false };
    // Where processes come late to their turn, the case has begun before windows carry its connection.
    (1..TRIES).fold(ours(), |outcome, _| if is_by_kernel(&outcome) { ours() } else { outcome })
}

#[test]
fn each_case_sees_natively_and_preloaded_the_same() {
    let programs = Programs::build(&["-O2"]);
    let judged = each(&programs.cases(), |case, mode| judge(&programs, case, mode));
    let wrong: Vec<String> = judged
        .iter()
        .filter(|(case, _, outcome)| !outcome.is_same() && matrix::known(&case.name).is_none())
        .map(|(case, mode, outcome)| format!("{} {mode:?}: {outcome}", case.name))
        .collect();
    assert!(wrong.is_empty(), "{} of {} runs differ:\n{}", wrong.len(), judged.len(), wrong.join("\n"));
    matrix::check(&Row::all(&judged));
}

/// What is sent to groups goes by windows then, and all else of UDP is as it was.
#[test]
fn cases_of_udp_are_the_same_where_groups_are_of_these_programs_alone() {
    let programs = Programs::build(&["-O2"]);
    let is_meant = |case: &Case| case.protocol == "UDP" && matrix::known(&case.name).is_none();
    let cases: Vec<Case> = programs.cases().into_iter().filter(is_meant).collect();
    let judged = each(&cases, |case, mode| judge_with(&programs, case, mode, preloaded_with_groups));
    let is_right = |case: &Case, outcome: &Outcome| match case.name.starts_with("udp_group_") {
        true => *outcome == Outcome::Same { is_accelerated: true },
        false => outcome.is_same(),
    };
    let wrong: Vec<String> = judged
        .iter()
        .filter(|(case, _, outcome)| !is_right(case, outcome))
        .map(|(case, mode, outcome)| format!("{} {mode:?}: {outcome}", case.name))
        .collect();
    assert!(wrong.is_empty(), "{} of {} runs differ:\n{}", wrong.len(), judged.len(), wrong.join("\n"));
    assert!(judged.len() > 40);
}

/// Cases that are the same by now belong to the others.
#[test]
#[ignore = "most of these cases hang, for a minute each"]
fn case_that_is_known_to_differ_does_so_still() {
    let programs = Programs::build(&["-O2"]);
    let known: Vec<Case> =
        programs.cases().into_iter().filter(|case| matrix::known(&case.name).is_some()).collect();
    let judged = each(&known, |case, mode| {
        let native = natively(&programs, case, mode);
        Outcome::of(&native, &Run::of(&programs, case, mode, preloaded))
    });
    let same = |name: &str| {
        judged.iter().filter(|(case, ..)| case.name == name).all(|(_, _, outcome)| outcome.is_same())
    };
    let mended: Vec<&str> = known.iter().map(|case| &*case.name).filter(|name| same(name)).collect();
    assert!(mended.is_empty(), "these are the same: {mended:?}");
}

#[test]
fn fortified_program_with_large_offsets_sees_the_same() {
    let flags = ["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-D_FILE_OFFSET_BITS=64"];
    let programs = Programs::build(&flags);
    let cases: Vec<Case> =
        programs.cases().into_iter().filter(|case| FORTIFIED.contains(&&*case.name)).collect();
    assert_eq!(cases.len(), FORTIFIED.len());
    let judged = each(&cases, |case, mode| judge(&programs, case, mode));
    for (case, mode, outcome) in judged {
        assert!(
            outcome.is_same() || matrix::known(&case.name).is_some(),
            "{} {mode:?}: {outcome}",
            case.name
        );
    }
}

/// Cases with the calls that have a checked or a large twin.
const FORTIFIED: [&str; 7] = ["peek", "dontwait", "mixed", "from", "flags", "stream", "large"];

#[test]
fn static_program_is_not_accelerated_and_sees_the_same() {
    let programs = Programs::build(&["-O2", "-static"]);
    for case in programs.cases().iter().filter(|case| STATIC.contains(&&*case.name)) {
        let native = natively(&programs, case, Mode::TwoProcesses);
        let ours = Run::of(&programs, case, Mode::TwoProcesses, preloaded);
        assert_eq!(Outcome::of(&native, &ours), Outcome::Same { is_accelerated: false }, "{}", case.name);
    }
}

const STATIC: [&str; 4] = ["peek", "half_close", "fork_serves", "epoll_level"];

/// A program with other rights than its user's is not given the library by the dynamic linker.
#[test]
fn setuid_program_is_not_accelerated_and_sees_the_same() {
    let programs = Programs::build(&["-O2"]);
    if !programs.give_other_rights() {
        eprintln!("skipped: only root can give a program another user's rights");
        return;
    }
    for case in programs.cases().iter().filter(|case| STATIC.contains(&&*case.name)) {
        let native = natively(&programs, case, Mode::TwoProcesses);
        let ours = Run::of(&programs, case, Mode::TwoProcesses, preloaded);
        assert_eq!(Outcome::of(&native, &ours), Outcome::Same { is_accelerated: false }, "{}", case.name);
    }
}

/// Python's own tests of sockets: as many run, and as many are skipped, as without the library.
#[test]
#[ignore = "some minutes; needs a python3 that has its tests (libpython3-testsuite)"]
fn pythons_own_tests_have_the_same_results() {
    const MODULES: [&str; 5] =
        ["test_socket", "test_selectors", "test_socketserver", "test_asyncio", "test_ssl"];
    for module in MODULES {
        let counts = |is_preloaded: bool| {
            let mut command = Command::new("python3");
            command.args(["-m", "test", "-v", module]);
            let ground = tempfile::tempdir().unwrap();
            if is_preloaded {
                preloaded(&mut command);
            }
            let output = command.current_dir(&ground).env("BEELINE_ROOT", ground.path()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
            python_results(&said)
        };
        let (native, ours) = (counts(false), counts(true));
        assert!(native.len() > 10, "{module}: {native:?}");
        let differing: Vec<_> =
            native.iter().filter(|(test, result)| ours.get(*test) != Some(result)).collect();
        assert_eq!((differing.len(), native.len()), (0, ours.len()), "{module}: natively {differing:?}");
    }
}

/// What `unittest` said of each test: `ok`, `skipped …`, `FAIL`, `ERROR`.
fn python_results(said: &str) -> std::collections::BTreeMap<String, String> {
    let lines = said.lines().filter_map(|line| line.rsplit_once(" ... "));
    let kinds = ["ok", "skipped", "FAIL", "ERROR", "expected failure"];
    lines
        .filter_map(|(test, result)| {
            let kind = kinds.iter().find(|kind| result.starts_with(**kind))?;
            Some((test.to_owned(), (*kind).to_owned()))
        })
        .collect()
}
