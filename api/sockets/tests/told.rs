//! What the library tells on standard error: as much as the rules say, and never into something else, nor at the program's cost.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "each test uses a part of it")]
mod ground;

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Command;

use ground::{Ground, Run};
use rustix::fs::{OFlags, fcntl_setfl};

const BACK: &str = "beeline: back to the kernel number=";

fn program(ground: &Ground) -> PathBuf {
    ground.compile("told.c", &[])
}

fn at_level(ground: &Ground, program: &PathBuf, level: &str) -> Command {
    let mut command = ground.at_once(program);
    command.env("BEELINE_SOCKETS_LOG", level);
    command
}

/// What it says natively.
fn natively(program: &PathBuf) -> Run {
    let run = Run::of(&mut Command::new(program));
    assert!(run.ended_well() && run.out.contains("rest 0\n"), "{run:?}");
    run
}

#[test]
fn events_of_the_level_are_told_a_line_each_and_others_are_not() {
    let ground = Ground::new();
    let program = program(&ground);
    let natively = natively(&program);
    let told = Run::of(&mut at_level(&ground, &program, "debug"));
    assert!(told.ended_well() && told.out == natively.out, "{told:?}");
    assert!(told.err.contains(BACK) && told.err.contains(" why=OutOfBand\n"), "{told:?}");
    assert!(told.err.lines().all(|line| line.starts_with("beeline: ")), "{told:?}");
    for level in ["info", "warn", "error", "off"] {
        assert_eq!(Run::of(&mut at_level(&ground, &program, level)), natively, "{level}");
    }
}

#[test]
fn connection_that_has_the_number_of_standard_error_is_told_nothing() {
    let ground = Ground::new();
    let program = program(&ground);
    let mut command = at_level(&ground, &program, "debug");
    let run = Run::of(command.arg("closed"));
    assert!(run.ended_well() && run.out == "connected 2\nrest 0\n", "{run:?}");
    assert!(!run.err.contains(BACK), "{run:?}");
}

/// A pipe that takes no byte more.
fn full() -> (PipeReader, PipeWriter) {
    let (reads, mut writes) = pipe().unwrap();
    fcntl_setfl(&writes, OFlags::NONBLOCK).unwrap();
    while writes.write(&[b'x'; 4096]).is_ok() {}
    fcntl_setfl(&writes, OFlags::empty()).unwrap();
    (reads, writes)
}

#[test]
fn program_goes_on_where_nobody_reads_what_it_is_told() {
    let ground = Ground::new();
    let program = program(&ground);
    let natively = natively(&program);
    let (reads, writes) = full();
    let kept = Run::of(at_level(&ground, &program, "debug").stderr(writes));
    assert_eq!(kept, natively, "nobody reads");
    drop(reads);
    let (reads, writes) = pipe().unwrap();
    drop(reads);
    assert_eq!(Run::of(at_level(&ground, &program, "debug").stderr(writes)), natively, "nobody is there");
}

/// As programs of inetd have it.
#[test]
fn connection_that_is_standard_error_from_the_start_is_told_nothing() {
    let ground = Ground::new();
    let program = program(&ground);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut ours = listener.accept().unwrap().0;
    let run = Run::of(at_level(&ground, &program, "debug").stderr(OwnedFd::from(theirs)));
    assert_eq!(run, natively(&program));
    let mut told = Vec::new();
    ours.read_to_end(&mut told).unwrap();
    assert!(told.is_empty(), "{}", String::from_utf8_lossy(&told));
}
