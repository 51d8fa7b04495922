//! Eight processes with a thousand segments each, all connected to and written, while one after another is killed and comes back.
//!
//! `BEELINE_SOAK_ROUNDS` says how many are killed; one if nothing is said.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use support::{Fabric, Process, wait_until};

const PROCESSES: usize = 8;
const SEGMENTS: usize = 1000;
/// Lines that fit into the pipe to a process, and their answers into the one back.
const BATCH: usize = 500;

#[test]
fn role() {
    support::play();
}

fn node(process: usize) -> u16 {
    [4, 8, 12][process % 3]
}

fn id(process: usize, segment: usize) -> usize {
    process * SEGMENTS + segment
}

/// Has processes make a call for each segment, all at the same time.
fn each(processes: &mut [&mut Process], line: impl Fn(usize) -> String, outcome: impl Fn(usize) -> String) {
    for first in (0..SEGMENTS).step_by(BATCH) {
        for process in processes.iter_mut() {
            (first..first + BATCH).for_each(|segment| process.begin(&line(segment)));
        }
        for process in processes.iter_mut() {
            for segment in first..first + BATCH {
                assert_eq!(process.hear(), outcome(segment), "`{}` of {}", line(segment), process.pid());
            }
        }
    }
}

fn make(process: &mut Process, number: usize) {
    let id = |segment| id(number, segment);
    each(
        &mut [process],
        |segment| format!("create s{segment} {} 4096", id(segment)),
        |segment| format!("ok {}", id(segment)),
    );
    for call in ["prepare", "available"] {
        each(&mut [process], |segment| format!("{call} s{segment}"), |_| "ok".to_owned());
    }
}

/// Connects to every segment of another process, and writes which it is into its last word.
fn write(process: &mut Process, of: usize) {
    let ok = |text: &'static str| move |_| text.to_owned();
    let id = |segment| id(of, segment);
    each(
        &mut [process],
        |segment| format!("connect r{segment} {} {} 0", node(of), id(segment)),
        ok("ok 4096"),
    );
    each(&mut [process], |segment| format!("map-remote r{segment} 4088 8"), ok("ok 8"));
    each(&mut [process], |segment| format!("store r{segment} 0 {:08}", id(segment)), ok("ok"));
    each(&mut [process], |segment| format!("unmap r{segment}"), ok("ok"));
}

fn read(process: &mut Process, number: usize) {
    let ok = |text: &'static str| move |_| text.to_owned();
    each(&mut [process], |segment| format!("map-local s{segment} 4088 8"), ok("ok 8"));
    let bytes = |segment| format!("{:08}", id(number, segment));
    each(&mut [process], |segment| format!("load s{segment} 0 8"), bytes);
    each(&mut [process], |segment| format!("unmap s{segment}"), ok("ok"));
}

fn open_fds(process: &Process) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", process.pid())).unwrap().count()
}

#[test]
fn thousands_of_segments_of_processes_that_die_and_come_back() {
    let rounds = std::env::var("BEELINE_SOAK_ROUNDS").map_or(1, |rounds| rounds.parse().unwrap());
    let fabric = Fabric::new();
    let mut processes: Vec<Process> = (0..PROCESSES).map(|number| fabric.member(node(number))).collect();
    for (number, process) in processes.iter_mut().enumerate() {
        make(process, number);
    }
    for (number, process) in processes.iter_mut().enumerate() {
        write(process, (number + 1) % PROCESSES);
    }
    for (number, process) in processes.iter_mut().enumerate() {
        read(process, number);
    }
    let before: Vec<_> = processes.iter().map(open_fds).collect();
    for round in 0..rounds {
        let dead = round * 3 % PROCESSES;
        let user = (dead + PROCESSES - 1) % PROCESSES;
        processes.remove(dead).kill();
        processes.insert(dead, fabric.member(node(dead)));
        // Its numbers are free, its users have lost it, and what it used is used by nobody.
        make(&mut processes[dead], dead);
        processes[user].until("wait-remote r0 0", "Lost");
        each(&mut [&mut processes[user]], |segment| format!("disconnect r{segment}"), |_| "ok".to_owned());
        write(&mut processes[user], dead);
        read(&mut processes[dead], dead);
        write(&mut processes[dead], (dead + 1) % PROCESSES);
    }
    // What the dead had is closed by a thread that drops things.
    for (process, before) in processes.iter().zip(before) {
        wait_until(|| open_fds(process) <= before);
    }
    let mut all: Vec<&mut Process> = processes.iter_mut().collect();
    each(&mut all, |segment| format!("disconnect r{segment}"), |_| "ok".to_owned());
    each(&mut all, |segment| format!("remove s{segment}"), |_| "ok".to_owned());
    processes.into_iter().for_each(Process::finish);
}
