//! Members that trigger, or are triggered, and are killed at any moment.
//!
//! `BEELINE_KILLS` asks for another number of kills than 20. The seed is printed and taken back from `BEELINE_SEED`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline_fabric::{AdapterNumber, InterruptNumber, NodeId, Refusal};
use beeline_fabric_process::{DataInterrupt, FabricMember, InterruptOptions, NotTaken};
use support::interrupts::sleeping;
use support::segments::connect;
use support::{Fabric, Process};

#[test]
fn role() {
    support::play();
}

/// Random times below 10 ms (SplitMix64).
struct Random(u64);

impl Random {
    fn new() -> Self {
        let seed = number("BEELINE_SEED").unwrap_or_else(|| u64::from(std::process::id()));
        println!("BEELINE_SEED={seed}");
        Random(seed)
    }

    fn rest(&mut self) {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        std::thread::sleep(Duration::from_micros((word ^ word >> 27) % 10_000));
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().unwrap())
}

fn kills() -> u64 {
    number("BEELINE_KILLS").unwrap_or(20)
}

/// A process that sends numbered messages of so many bytes until it is killed.
fn sender(fabric: &Fabric, number: u64, bytes: usize) -> Process {
    let mut sender = fabric.member(8);
    sender.expect("data-trigger-of d 4 6 forever", "ok");
    sender.begin(&format!("storm-data d {number} {bytes}"));
    sender
}

/// Takes messages until it is told to end, and there are no more. Says how many came of each sender.
fn take_all(messages: &DataInterrupt, is_over: &AtomicBool) -> BTreeMap<u64, u64> {
    let mut taken = BTreeMap::new();
    loop {
        let is_last = is_over.load(Ordering::Relaxed);
        let mut buffer = [0; 300];
        match messages.wait(&mut buffer, Some(Duration::from_millis(100))) {
            Ok(bytes) => {
                let [sender, number] =
                    [0, 8].map(|at| u64::from_le_bytes(*buffer[at..].first_chunk().unwrap()));
                let next = taken.entry(sender).or_insert(0);
                assert_eq!(number, *next, "of sender {sender}");
                assert_eq!(bytes, SIZES[(sender % 2) as usize]);
                assert!(buffer[16..bytes].iter().all(|byte| *byte == number as u8), "it is torn");
                *next += 1;
            }
            Err(_) if is_last => return taken,
            Err(_) => {}
        }
    }
}

const SIZES: [usize; 2] = [100, 300];

#[test]
fn messages_come_whole_and_in_order_while_their_senders_are_killed() {
    let (fabric, mut random) = (Fabric::new(), Random::new());
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let number = Some(InterruptNumber(6));
    let messages = owner
        .create_data_interrupt(InterruptOptions { number, wait: sleeping(), ..InterruptOptions::default() })
        .unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let taker = scope.spawn(|| take_all(&messages, &is_over));
        let mut senders = VecDeque::from([sender(&fabric, 0, SIZES[0]), sender(&fabric, 1, SIZES[1])]);
        for number in 2..kills() + 2 {
            random.rest();
            senders.push_back(sender(&fabric, number, SIZES[(number % 2) as usize]));
            senders.pop_front().unwrap().kill();
        }
        senders.into_iter().for_each(Process::kill);
        is_over.store(true, Ordering::Relaxed);
        let taken = taker.join().unwrap();
        assert!(taken.len() > 1, "{taken:?}");
    });
}

/// Mappings of this process that are shared with others.
fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains("/memfd:beeline")).count()
}

#[test]
fn members_that_have_triggered_and_ended_leave_no_memory() {
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let number = Some(InterruptNumber(6));
    let messages = owner.create_data_interrupt(InterruptOptions { number, ..Default::default() }).unwrap();
    // So that the registry that it asks is open.
    connect(&owner, 8, 1).unwrap_err();
    let before = mappings();
    for _ in 0..5 {
        let mut user = fabric.member(8);
        user.expect("data-trigger-of d 4 6 0", "ok");
        user.expect("trigger-data d text 100", "ok");
        messages.wait(&mut [0; 100], None).unwrap();
        user.expect("trigger-data d text 100", "ok");
        user.kill();
    }
    for _ in 0..5 {
        messages.wait(&mut [0; 100], None).unwrap();
    }
    support::wait_until(|| {
        let left = messages.wait(&mut [0; 100], Some(Duration::ZERO));
        assert_eq!(left, Err(NotTaken::Refused(Refusal::Timeout)));
        let _ = connect(&owner, 8, 1);
        mappings() == before
    });
}

#[test]
fn memory_of_a_member_that_ended_is_let_go_of_while_its_owner_only_waits() {
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let number = Some(InterruptNumber(5));
    let options = InterruptOptions { number, wait: sleeping(), ..Default::default() };
    let interrupt = owner.create_interrupt(options).unwrap();
    let before = mappings();
    std::thread::scope(|scope| {
        let wait = scope.spawn(|| interrupt.wait(None));
        let mut user = fabric.member(8);
        user.expect("trigger-of t 4 5 0", "ok");
        support::wait_until(|| mappings() > before);
        user.kill();
        support::wait_until(|| mappings() == before);
        let mut other = fabric.member(8);
        other.expect("trigger-of t 4 5 0", "ok");
        other.expect("trigger t", "ok");
        assert_eq!(wait.join().unwrap(), Ok(()));
    });
}

#[test]
fn triggers_learn_of_each_owner_that_is_killed_and_reach_the_next() {
    let (fabric, mut random) = (Fabric::new(), Random::new());
    let member = FabricMember::open(fabric.config(8)).unwrap();
    let adapter = AdapterNumber::new(0).unwrap();
    for _ in 0..kills() / 2 {
        let mut owner = fabric.member(4);
        owner.expect("interrupt i 5 counting", "ok 5");
        owner.expect("data-interrupt d 6", "ok 6");
        let trigger = member.connect_interrupt(NodeId(4), InterruptNumber(5), adapter, None).unwrap();
        let data = member.connect_data_interrupt(NodeId(4), InterruptNumber(6), adapter, None).unwrap();
        owner.begin("wait-forever i d");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while trigger.trigger().is_ok() {}
                assert_eq!(trigger.trigger(), Err(Refusal::NotConnected));
            });
            scope.spawn(|| {
                while matches!(data.trigger(b"message"), Ok(()) | Err(Refusal::Nospc)) {}
                assert_eq!(data.trigger(b"message"), Err(Refusal::NotConnected));
            });
            random.rest();
            owner.kill();
        });
    }
}
