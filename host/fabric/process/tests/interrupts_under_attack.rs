//! A member that triggers, and stores what it likes into all that it can: it spoils its own triggers, and costs others a bounded time.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use beeline_contract_memory::WaitPolicy;
use beeline_domain::{Connection, Domain};
use beeline_fabric::{AdapterNumber, InterruptNumber, NodeId, Refusal, USE_WORDS};
use beeline_fabric_process::{FabricMember, Interrupt, InterruptOptions, NotTaken};
use beeline_mmio::{Flag, MemoryOptions, ReadOnlyMemory, Region, SharedMemory};
use rustix::process::Pid;
use support::interrupts::sleeping;
use support::messages::message;
use support::{Fabric, Process};

const CLAIMS: usize = USE_WORDS.next_power_of_two() as usize * 8;
const FIRST_COUNT: usize = 1 << 16;
const STRIDE: usize = (128 + 1) * 64;
const YARD: usize = STRIDE << 16;
const BELLS: usize = 64 << 16;

#[test]
fn role() {
    support::play();
}

/// A member that has come as any other does, and has its memories in hand. Interrupts are entries 0 and 1 of the owner's board, both of
/// incarnation 1.
struct Attacker {
    uses: Region,
    yard: Region,
    bells: Region,
    _connection: Connection,
    _domain: Domain,
}

impl Attacker {
    fn new(fabric: &Fabric, owner: &FabricMember) -> Self {
        let domain = fabric.domain();
        let (uses, uses_memory) = ReadOnlyMemory::create_sparse("beeline-test", CLAIMS).unwrap();
        let yard_memory = SharedMemory::create("beeline-test", YARD, MemoryOptions::default()).unwrap();
        let hello = [b"BEEF\x02\0\x08\0".as_slice(), &[7; 8], &(YARD as u64).to_le_bytes()].concat();
        let name = format!("fabric.4.{:016x}", owner.number().0);
        let fds = [uses_memory.fd(), yard_memory.fd()];
        let (connection, reply) = domain.connect(&name, &hello, &fds).unwrap();
        let [_board, _bank, bells] = <[OwnedFd; 3]>::try_from(reply.fds).unwrap();
        let yard = yard_memory.map_sparse().unwrap();
        let bells = SharedMemory::from_fd(bells, BELLS).unwrap().map_sparse().unwrap();
        Attacker { uses, yard, bells, _connection: connection, _domain: domain }
    }

    fn claim(&self, slot: usize) {
        self.uses.word(slot * 8).store_release(1 << 32 | 1);
    }

    fn set_count(&self, slot: usize, count: u64) {
        self.uses.word((FIRST_COUNT + slot * 8) * 8).store_release(count);
    }

    fn flag(&self, slot: usize) -> Flag {
        self.bells.flag(slot * 64)
    }
}

fn plain(owner: &FabricMember, wait: WaitPolicy) -> Interrupt {
    let number = Some(InterruptNumber(5));
    owner
        .create_interrupt(InterruptOptions { number, is_counting: true, wait, ..Default::default() })
        .unwrap()
}

fn user(fabric: &Fabric) -> Process {
    let mut user = fabric.member(8);
    user.expect("trigger-of t 4 5 0", "ok");
    user
}

#[test]
fn counts_that_nobody_can_have_made_are_no_triggers() {
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let (interrupt, attacker) = (plain(&owner, sleeping()), Attacker::new(&fabric, &owner));
    let mut user = user(&fabric);
    attacker.set_count(0, 9);
    assert_eq!(interrupt.wait(Some(Duration::ZERO)), Err(Refusal::Timeout));
    attacker.claim(0);
    let taken = || (0..).take_while(|_| interrupt.wait(Some(Duration::ZERO)).is_ok()).count();
    assert_eq!(taken(), 9);
    attacker.set_count(0, 8);
    user.expect("trigger t 2", "ok");
    assert_eq!(taken(), 2);
    attacker.set_count(0, 10);
    assert_eq!(taken(), 0);
}

/// Whether a thread of this process sleeps in the kernel.
fn is_asleep(thread: Pid) -> bool {
    let path = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
    let stat = std::fs::read_to_string(path).unwrap();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
}

#[test]
fn sleeper_whose_flag_is_taken_down_wakes_all_the_same() {
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let (interrupt, attacker) = (plain(&owner, sleeping()), Attacker::new(&fabric, &owner));
    let mut user = user(&fabric);
    let (say, said) = channel();
    std::thread::scope(|scope| {
        let wait = scope.spawn(|| {
            say.send(rustix::thread::gettid()).unwrap();
            interrupt.wait(None)
        });
        let (flag, sleeper) = (attacker.flag(0), said.recv().unwrap());
        support::wait_until(|| flag.load() != 0 && is_asleep(sleeper));
        flag.store(0);
        user.expect("trigger t", "ok");
        // Its sleep has a bound, after which it looks again.
        assert_eq!(wait.join().unwrap(), Ok(()));
    });
}

#[test]
fn who_polls_raises_no_flag_and_who_sleeps_does() {
    for policy in [WaitPolicy::SPIN, sleeping()] {
        let fabric = Fabric::new();
        let owner = FabricMember::open(fabric.config(4)).unwrap();
        let (interrupt, attacker) = (plain(&owner, policy), Attacker::new(&fabric, &owner));
        let mut user = user(&fabric);
        std::thread::scope(|scope| {
            let wait = scope.spawn(|| interrupt.wait(None));
            let flag = attacker.flag(0);
            if policy == WaitPolicy::SPIN {
                let started = Instant::now();
                while started.elapsed() < Duration::from_millis(50) {
                    assert_eq!(flag.load(), 0);
                }
            } else {
                support::wait_until(|| flag.load() != 0);
            }
            user.expect("trigger t", "ok");
            assert_eq!(wait.join().unwrap(), Ok(()));
        });
    }
}

#[test]
fn scribbler_spoils_nobodys_messages_and_nobody_hangs() {
    const MESSAGES: usize = 300;
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let counts = plain(&owner, sleeping());
    let options =
        InterruptOptions { number: Some(InterruptNumber(6)), wait: sleeping(), ..Default::default() };
    let messages = owner.create_data_interrupt(options).unwrap();
    let attacker = Attacker::new(&fabric, &owner);
    attacker.claim(0);
    attacker.claim(1);
    attacker.set_count(1, 1);
    let user = FabricMember::open(fabric.config(8)).unwrap();
    let (node, adapter) = (NodeId(4), AdapterNumber::new(0).unwrap());
    let trigger = user.connect_interrupt(node, InterruptNumber(5), adapter, None).unwrap();
    let data = user.connect_data_interrupt(node, InterruptNumber(6), adapter, None).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = 0x1234_5678_9abc_def1_u64;
            while !is_over.load(Ordering::Relaxed) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let at = (random >> 32) as usize;
                attacker.yard.word(at % (2 * STRIDE / 8) * 8).store(random);
                attacker.set_count(0, random);
                attacker.flag(at % 2).store(if at.is_multiple_of(3) { 0 } else { random as u32 });
            }
        });
        scope.spawn(|| {
            for bytes in 0..MESSAGES {
                while data.trigger(&message("honest", bytes)) == Err(Refusal::Nospc) {
                    std::thread::yield_now();
                }
                trigger.trigger().unwrap();
            }
        });
        for bytes in 0..MESSAGES {
            let mut buffer = [0; MESSAGES];
            assert_eq!(messages.wait(&mut buffer, None), Ok(bytes));
            assert_eq!(buffer[..bytes], message("honest", bytes));
        }
        for _ in 0..MESSAGES {
            counts.wait(None).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let left = messages.wait(&mut [], Some(Duration::ZERO));
    assert_eq!(left, Err(NotTaken::Refused(Refusal::Timeout)));
}
