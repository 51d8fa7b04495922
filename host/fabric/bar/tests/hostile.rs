//! A process that stores anything anywhere in the memory, while two members work: each call ends, and no process does.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use beeline_mmio::{MappedSegment, OnLoss, Region, SegmentOptions};
use rustix::process::Signal;
use support::Memory;

#[test]
fn role() {
    support::play();
}

fn map(memory: &Memory) -> Region {
    let file = File::options().read(true).write(true).open(memory.path()).unwrap();
    let options = SegmentOptions { on_loss: OnLoss::Fatal, ..SegmentOptions::default() };
    MappedSegment::file(file.as_fd(), &options).unwrap().region().unwrap()
}

/// Words that mean something somewhere, and some that mean nothing.
fn word(random: u64) -> u64 {
    match random % 8 {
        0 => 0,
        1 => u64::MAX,
        2 => random >> 60,
        3 => 1 << 32 | 1 << 16 | 1,
        4 => random >> 40,
        5 => 1 << 32 | random >> 62,
        _ => random.wrapping_mul(0x9e37_79b9_7f4a_7c15),
    }
}

/// Two members work while words are overwritten, in no order. Some may be spared.
fn under_attack(spared: impl Fn(&Region) -> Vec<usize>) {
    let memory = Memory::new();
    let (mut one, mut other) = (memory.member_in(4, 0), memory.member_in(8, 1));
    let region = map(&memory);
    let spared = spared(&region);
    // Words of control: the areas of segments are data.
    let words = (region.bytes() / 4 / 8) as u64;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random: u64 = 0x0bee_f055;
            while !is_over.load(Ordering::Relaxed) {
                for _ in 0..64 {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    let at = ((random >> 20) % words * 8) as usize;
                    if !spared.contains(&at) {
                        region.word(at).store(word(random));
                    }
                }
                std::thread::yield_now();
            }
        });
        one.begin("work 150");
        other.begin("work 150");
        let said = [one.hear(), other.hear()];
        is_over.store(true, Ordering::Relaxed);
        assert!(said.iter().all(|said| said.starts_with("worked ")), "{said:?}");
    });
    one.finish();
    other.finish();
}

#[test]
fn every_word_is_overwritten_and_each_call_ends() {
    under_attack(|_| Vec::new());
}

/// Nobody is taken for displaced or dead, so that all else is believed for longer: the heartbeats lie in the second page, and the numbers of
/// members begin with their nodes.
#[test]
fn every_word_but_those_of_life_is_overwritten_and_each_call_ends() {
    under_attack(|region| {
        let is_number = |at: &usize| [4, 8].contains(&(region.word(*at).load() >> 48));
        let numbers = (0..region.bytes() / 4).step_by(8).filter(is_number);
        numbers.chain((4096..8192).step_by(8)).collect()
    });
}

#[test]
fn members_whose_heartbeats_were_overwritten_find_each_other_again() {
    let memory = Memory::new();
    let (mut one, mut other) = (memory.member_in(4, 0), memory.member_in(8, 1));
    let region = map(&memory);
    one.expect("probe 8", "ok");
    // Each line of theirs, more often than they beat, until both have lost the other.
    for (member, of) in [(&mut one, 8), (&mut other, 4)] {
        while member.call(&format!("probe {of}")) == "ok" {
            (4096..4352).step_by(8).for_each(|at| region.word(at).store(u64::MAX / 3));
        }
    }
    one.until("probe 8", "ok");
    other.until("probe 4", "ok");
    one.finish();
    other.finish();
}

#[test]
fn connection_to_a_member_whose_slot_another_one_has_is_over_at_once() {
    let memory = Memory::new();
    let (mut owner, mut user) = (memory.member_in(4, 0), memory.member_in(8, 1));
    for line in ["create s 7 1000", "prepare s", "available s", "interrupt i plain 7", "interrupt d data 7"] {
        assert!(owner.call(line).starts_with("ok"), "{line}");
    }
    user.expect("connect s 4 7 forever", "ok 1000");
    user.expect("hook t plain 4 7 forever", "ok");
    user.expect("hook t data 4 7 forever", "ok");
    user.expect("start s", "Ok");
    let region = map(&memory);
    let is_number = |at: &usize| region.word(*at).load() >> 48 == 4;
    let number = (8192..region.bytes() / 4).step_by(8).find(is_number).unwrap();
    owner.signal(Signal::STOP);
    // Long before the heartbeat tells of it.
    region.word(number).store(4 << 48 | 1 << 16);
    user.expect("check s", "NotRetriable");
    user.expect("trigger t", "NotConnected");
    user.expect("send t message", "NotConnected");
    owner.signal(Signal::CONT);
    owner.finish();
    user.finish();
}
