//! Members that trigger, or are triggered, and are killed at any moment.
//!
//! `BEELINE_KILLS` asks for another number of kills than 20. The seed is printed and taken back from `BEELINE_SEED`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline_fabric::{AdapterNumber, InterruptNumber, NodeId, Refusal};
use beeline_fabric_process::{DataInterrupt, FabricMember, InterruptOptions};
use support::interrupts::sleeping;
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

/// A process that sends messages of so many bytes and triggers until it is killed.
fn sender(fabric: &Fabric, bytes: usize) -> Process {
    let mut sender = fabric.member(8);
    sender.expect("data-trigger-of d 4 6 forever", "ok");
    sender.begin(&format!("storm-data d {bytes}"));
    sender
}

/// Takes messages until it is told to end. Those of one sender follow each other, and a new sender begins anew.
fn take_all(messages: &DataInterrupt, is_over: &AtomicBool) -> u64 {
    let (mut next, mut taken) = ([0_u64; 2], 0);
    while !is_over.load(Ordering::Relaxed) {
        let mut buffer = [0; 300];
        let Ok(bytes) = messages.wait(&mut buffer, Some(Duration::from_millis(100))) else { continue };
        let number = u64::from_le_bytes(*buffer.first_chunk().unwrap());
        let of = usize::from(bytes == 300);
        assert!(number == next[of] || number == 0, "{number} comes after {:?}", next[of]);
        assert_eq!(bytes, [100, 300][of]);
        assert!(buffer[8..bytes].iter().all(|byte| *byte == number as u8), "message {number} is torn");
        next[of] = number + 1;
        taken += 1;
    }
    taken
}

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
        let mut senders = [100, 300].map(|bytes| sender(&fabric, bytes));
        for kill in 0..kills() {
            random.rest();
            let which = (kill % 2) as usize;
            let (killed, bytes) = (&mut senders[which], [100, 300][which]);
            let old = std::mem::replace(killed, fabric.member(12));
            old.kill();
            *killed = sender(&fabric, bytes);
        }
        senders.into_iter().for_each(Process::kill);
        is_over.store(true, Ordering::Relaxed);
        assert!(taker.join().unwrap() > 0);
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
