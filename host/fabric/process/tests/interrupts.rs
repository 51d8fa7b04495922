//! Interrupts between processes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline_contract_memory::WaitPolicy;
use beeline_fabric::{AdapterNumber, Call, InterruptKind, InterruptNumber, NodeId, Refusal};
use beeline_fabric_process::{FabricMember, InterruptOptions, NotTaken};
use support::interrupts::sleeping;
use support::messages::message;
use support::{Fabric, Process};

const NODE: NodeId = NodeId(4);

#[test]
fn role() {
    support::play();
}

fn adapter() -> AdapterNumber {
    AdapterNumber::new(0).unwrap()
}

/// A process of node 4 with interrupt `i`, which one of node 8 is connected to as `t`.
fn pair(fabric: &Fabric, options: &str) -> (Process, Process) {
    let (mut owner, mut user) = (fabric.member(4), fabric.member(8));
    owner.expect(&format!("interrupt i {options}"), "ok 5");
    user.expect("trigger-of t 4 5 0", "ok");
    (owner, user)
}

#[test]
fn triggers_between_two_waits_are_one() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = pair(&fabric, "5");
    owner.expect("wait i 0", "Timeout");
    user.expect("trigger t 3", "ok");
    owner.expect("wait-all i", "1");
    owner.expect("wait i 1000", "Timeout");
    user.expect("trigger t", "ok");
    owner.expect("wait i forever", "ok");
}

#[test]
fn triggers_that_count_are_each_taken_and_some_are_forgotten_on_request() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = pair(&fabric, "5 counting");
    let mut other = fabric.member(12);
    other.expect("trigger-of t 4 5 0", "ok");
    user.expect("trigger t 1000", "ok");
    other.expect("trigger t 7", "ok");
    owner.expect("wait-all i", "1007");
    owner.expect("interrupt f auto counting forgets", "ok 65536");
    user.expect("trigger-of f 4 65536 0", "ok");
    user.expect("trigger f 3", "ok");
    owner.expect("wait f 0", "Timeout");
    owner.begin("wait f forever");
    // Until it waits: what comes before is forgotten.
    loop {
        user.expect("trigger f", "ok");
        std::thread::sleep(Duration::from_millis(1));
        if owner.has_said() {
            break;
        }
    }
    assert_eq!(owner.hear(), "ok");
}

#[test]
fn numbers_are_one_interrupts_of_a_node_and_each_kind_has_its_own() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = pair(&fabric, "5");
    let mut other = fabric.member(4);
    other.expect("interrupt i 5", "IntnoUsed");
    other.expect("data-interrupt d 5", "ok 5");
    other.expect("interrupt a auto", "ok 65536");
    owner.expect("interrupt a auto", "ok 65537");
    user.expect("interrupt i 5", "ok 5");
    user.expect("trigger-of n 4 6 0", "NoSuchIntno");
    user.expect("data-trigger-of n 4 65536 0", "NoSuchIntno");
    user.expect("trigger-of n 4 6 2000", "TimeoutNoInterrupt");
    user.expect("trigger-of n 12 5 0", "NodeNotResponding");
    user.expect("trigger-of n 16 5 0", "NoSuchNodeid");
    user.begin("trigger-of n 4 6 forever");
    owner.expect("interrupt late 6", "ok 6");
    assert_eq!(user.hear(), "ok");
    other.kill();
    owner.until("data-interrupt d 5", "ok 5");
}

#[test]
fn trigger_reaches_each_of_several_interrupts_of_a_number_also_later_ones() {
    let fabric = Fabric::new();
    let (mut one, mut other, mut user) = (fabric.member(4), fabric.member(4), fabric.member(8));
    one.expect("interrupt i 5 shared", "ok 5");
    one.expect("interrupt k 5 shared counting", "ok 5");
    user.expect("trigger-of t 4 5 0", "ok");
    user.expect("trigger t 2", "ok");
    other.expect("interrupt i 5 shared", "ok 5");
    other.begin("wait i forever");
    user.expect("trigger t", "ok");
    assert_eq!(other.hear(), "ok");
    one.expect("wait-all i", "1");
    one.expect("wait-all k", "3");
    one.expect("remove-interrupt i", "ok");
    one.expect("interrupt i 5 shared", "ok 5");
    user.expect("trigger t", "ok");
    one.expect("wait-all i", "1");
    other.expect("wait-all i", "1");
    other.kill();
    one.expect("remove-interrupt i", "ok");
    user.expect("trigger t", "ok");
    one.expect("wait-all k", "2");
    one.expect("remove-interrupt k", "ok");
    user.until("trigger t", "NotConnected");
}

#[test]
fn one_of_several_interrupts_whose_process_is_stopped_delays_no_other() {
    let fabric = Fabric::new();
    let (mut one, mut other, mut user) = (fabric.member(4), fabric.member(4), fabric.member(8));
    one.expect("interrupt i 5 shared", "ok 5");
    user.expect("trigger-of t 4 5 0", "ok");
    other.expect("interrupt i 5 shared", "ok 5");
    other.stop();
    user.begin("trigger t");
    // Less than the five seconds after which a member is given up.
    one.expect("wait i 4000000", "ok");
    assert_eq!(user.hear(), "ok");
    other.signal(rustix::process::Signal::CONT);
    other.begin("wait i forever");
    while !other.has_said() {
        user.expect("trigger t", "ok");
    }
    assert_eq!(other.hear(), "ok");
}

#[test]
fn trigger_of_several_interrupts_tells_of_a_link_also_if_none_is_connected() {
    let fabric = Fabric::new();
    let (mut one, mut user) = (fabric.member(4), fabric.member(8));
    one.expect("interrupt i 5 shared", "ok 5");
    user.expect("trigger-of t 4 5 0", "ok");
    one.expect("remove-interrupt i", "ok");
    user.expect("trigger t", "NotConnected");
    user.expect("link down", "ok");
    one.expect("interrupt i 5 shared", "ok 5");
    user.expect("trigger t", "NoLinkAccess");
    user.expect("link up", "ok");
    user.expect("trigger t", "ok");
    one.expect("wait i 0", "ok");
}

#[test]
fn number_is_of_one_interrupt_alone_or_of_several_that_share_it() {
    let fabric = Fabric::new();
    let (mut one, mut other) = (fabric.member(4), fabric.member(4));
    one.expect("interrupt i 5 shared", "ok 5");
    other.expect("interrupt i 5", "IntnoUsed");
    one.expect("interrupt k 6", "ok 6");
    other.expect("interrupt i 6 shared", "IntnoUsed");
    other.expect("interrupt i 6", "IntnoUsed");
    other.expect("data-interrupt d 5", "ok 5");
    // A number that was found is nobody else's, also where it may be shared afterwards.
    one.expect("interrupt a auto shared", "ok 65536");
    other.expect("interrupt a auto shared", "ok 65537");
    other.expect("interrupt b auto", "ok 65538");
    other.expect("interrupt c 65536 shared", "ok 65536");
    one.expect("remove-interrupt i", "ok");
    one.expect("remove-interrupt k", "ok");
    other.expect("interrupt i 5", "ok 5");
    other.expect("interrupt k 6 shared", "ok 6");
    one.expect("interrupt k 6 shared", "ok 6");
    other.kill();
    one.until("interrupt i 5 shared", "ok 5");
}

#[test]
fn triggers_see_removals_links_and_deaths() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = pair(&fabric, "5");
    owner.expect("interrupt stays 6", "ok 6");
    user.expect("trigger-of s 4 6 0", "ok");
    owner.expect("link down", "ok");
    user.expect("trigger t", "NoRemoteLinkAccess");
    user.expect("link down", "ok");
    user.expect("trigger t", "NoLinkAccess");
    owner.expect("link up", "ok");
    user.expect("link up", "ok");
    user.expect("trigger t", "ok");
    owner.expect("remove-interrupt i", "ok");
    owner.expect("remove-interrupt i", "IllegalParameter");
    owner.expect("wait i 0", "IllegalParameter");
    user.expect("trigger t", "NotConnected");
    // The number is free, the old connection is not one to the new interrupt.
    owner.expect("interrupt i 5", "ok 5");
    user.expect("trigger t", "NotConnected");
    user.expect("untrigger t", "ok");
    user.expect("trigger-of t 4 5 0", "ok");
    owner.expect("wait i 0", "Timeout");
    user.expect("trigger t", "ok");
    owner.expect("wait i 0", "ok");
    owner.kill();
    user.until("trigger s", "NotConnected");
}

#[test]
fn waits_end_when_the_interrupt_is_removed() {
    let fabric = Fabric::new();
    for options in ["5", "5 spin"] {
        let (mut owner, _user) = pair(&fabric, options);
        owner.expect("wait-twice-and-remove i", "ok Cancelled Cancelled IllegalParameter");
        owner.finish();
    }
}

#[test]
fn messages_come_whole_and_in_order_until_there_is_no_room() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.member(4), fabric.member(8));
    owner.expect("data-interrupt d 5", "ok 5");
    user.expect("data-trigger-of d 4 5 0", "ok");
    owner.expect("wait-data d 100 0", "Timeout");
    user.expect("trigger-data d x 0", "ok");
    user.expect("trigger-data d abc 3", "ok");
    user.expect("trigger-data d 0123456789 2048", "ok");
    user.expect("trigger-data d x 2049", "IllegalParameter");
    owner.expect("wait-data d 0 0", "0");
    owner.expect("wait-data d 2 0", "Overflow 3");
    owner.expect("wait-data d 2 forever", "Overflow 3");
    owner.expect("wait-data d 3 0", "3 abc");
    owner.expect("wait-data d 2048 0", "2048 01234567");
    user.expect("trigger-until-full d abcdefgh 2048", "3 Nospc");
    owner.expect("wait-data d 2048 0", "2048 abcdefgh");
    user.expect("trigger-until-full d ijk 2048", "1 Nospc");
    owner.begin("wait-data d 8 forever");
    assert_eq!(owner.hear(), "Overflow 2048");
    // A connection that is made anew goes on where the last one was.
    user.expect("untrigger d", "ok");
    user.expect("data-trigger-of d 4 5 0", "ok");
    user.expect("trigger-data d again 5", "ok");
    for _ in 0..3 {
        assert!(owner.call("wait-data d 2048 0").starts_with("2048"));
    }
    owner.expect("wait-data d 5 forever", "5 again");
    owner.expect("remove-interrupt d", "ok");
    user.expect("trigger-data d x 1", "NotConnected");
}

#[test]
fn triggers_of_processes_that_have_ended_are_not_lost() {
    let fabric = Fabric::new();
    let mut owner = fabric.member(4);
    owner.expect("interrupt i 5 counting", "ok 5");
    owner.expect("data-interrupt d 5", "ok 5");
    for is_killed in [false, true] {
        let mut user = fabric.member(8);
        user.expect("trigger-of t 4 5 0", "ok");
        user.expect("data-trigger-of d 4 5 0", "ok");
        user.expect("trigger t 3", "ok");
        user.expect("trigger-data d last 4", "ok");
        if is_killed {
            user.kill()
        } else {
            user.finish()
        }
        // Its end is learned before anything is taken.
        owner.until("connect s 8 1 0", "NodeNotResponding");
        owner.expect("wait-all i", "3");
        owner.expect("wait-data d 10 0", "4 last");
        owner.expect("wait-data d 10 0", "Timeout");
    }
}

/// One that is not woken costs a second each time, and the watchdog ends the test.
#[test]
fn sleepers_of_two_processes_wake_each_other() {
    const ROUNDS: usize = 300;
    let fabric = Fabric::new();
    let (mut ping, mut pong) = (fabric.member(4), fabric.member(8));
    for process in [&mut ping, &mut pong] {
        process.expect("interrupt i 5", "ok 5");
        process.expect("data-interrupt d 5", "ok 5");
    }
    ping.expect("trigger-of t 8 5 0", "ok");
    pong.expect("trigger-of t 4 5 0", "ok");
    ping.expect("data-trigger-of t 8 5 0", "ok");
    pong.expect("data-trigger-of t 4 5 0", "ok");
    for (first, then) in [("ping t i", "pong t i"), ("ping-data t d", "pong-data t d")] {
        pong.begin(&format!("{then} {ROUNDS}"));
        ping.expect(&format!("{first} {ROUNDS}"), "ok");
        assert_eq!(pong.hear(), "ok");
    }
}

#[test]
fn each_of_many_triggers_by_threads_of_one_connection_counts_and_ends_one_wait() {
    const EACH: usize = 200_000;
    let fabric = Fabric::new();
    let member = FabricMember::open(fabric.config(4)).unwrap();
    let options = InterruptOptions { is_counting: true, wait: sleeping(), ..InterruptOptions::default() };
    let interrupt = member.create_interrupt(options).unwrap();
    let trigger =
        member.connect_interrupt(NODE, interrupt.number(), adapter(), Some(Duration::ZERO)).unwrap();
    let all = std::sync::Barrier::new(3);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                all.wait();
                (0..EACH).for_each(|_| trigger.trigger().unwrap());
            });
            scope.spawn(|| (0..EACH).for_each(|_| interrupt.wait(None).unwrap()));
        }
    });
    assert_eq!(interrupt.wait(Some(Duration::ZERO)), Err(Refusal::Timeout));
}

#[test]
fn messages_by_threads_of_one_connection_come_whole() {
    const EACH: usize = 2_000;
    // The first byte says whose message it is, and none is empty.
    const TEXTS: [&str; 2] = ["one", "two"];
    let fabric = Fabric::new();
    let member = FabricMember::open(fabric.config(4)).unwrap();
    let options = InterruptOptions { wait: sleeping(), ..InterruptOptions::default() };
    let interrupt = member.create_data_interrupt(options).unwrap();
    let connect =
        || member.connect_data_interrupt(NODE, interrupt.number(), adapter(), Some(Duration::ZERO)).unwrap();
    // Two connections of one process share a window.
    let triggers = [connect(), connect()];
    std::thread::scope(|scope| {
        for (trigger, text) in triggers.iter().zip(TEXTS) {
            scope.spawn(move || {
                for bytes in 0..EACH {
                    let message = message(text, 1 + bytes % 299);
                    while trigger.trigger(&message) == Err(Refusal::Nospc) {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let mut next = [0, 0];
        for _ in 0..2 * EACH {
            let mut buffer = [0; 300];
            let bytes = interrupt.wait(&mut buffer, None).unwrap();
            let of = TEXTS
                .iter()
                .zip(next)
                .position(|(text, next)| 1 + next % 299 == bytes && message(text, bytes) == buffer[..bytes])
                .unwrap_or_else(|| panic!("{bytes} bytes come after {next:?}"));
            next[of] += 1;
        }
    });
    let left = interrupt.wait(&mut [], Some(Duration::ZERO));
    assert_eq!(left, Err(NotTaken::Refused(Refusal::Timeout)));
}

#[test]
fn member_that_leaves_ends_its_waits() {
    let fabric = Fabric::new();
    let member = FabricMember::open(fabric.config(4)).unwrap();
    let options = InterruptOptions { wait: sleeping(), ..InterruptOptions::default() };
    let interrupt = member.create_interrupt(options).unwrap();
    let is_begun = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let wait = scope.spawn(|| {
            is_begun.store(true, Ordering::Relaxed);
            interrupt.wait(None)
        });
        support::wait_until(|| is_begun.load(Ordering::Relaxed));
        std::thread::sleep(Duration::from_millis(20));
        drop(member);
        assert_eq!(wait.join().unwrap(), Err(Refusal::Cancelled));
    });
    assert_eq!(interrupt.remove(), Err(Refusal::IllegalParameter));
}

#[test]
fn interrupts_are_not_a_childs() {
    let fabric = Fabric::new();
    let member = FabricMember::open(fabric.config(4)).unwrap();
    let number = Some(InterruptNumber(5));
    let options = InterruptOptions { number, wait: WaitPolicy::SPIN, ..InterruptOptions::default() };
    let interrupt = member.create_interrupt(options).unwrap();
    let trigger = member.connect_interrupt(NODE, InterruptNumber(5), adapter(), None).unwrap();
    match fork::fork().unwrap() {
        fork::Fork::Child => {
            let refused = [trigger.trigger(), interrupt.wait(None), interrupt.remove()];
            drop((trigger, interrupt));
            std::process::exit(i32::from(refused != [Err(Refusal::System); 3]));
        }
        fork::Fork::Parent(child) => assert_eq!(fork::waitpid(child).unwrap(), 0),
    }
    trigger.trigger().unwrap();
    interrupt.wait(Some(Duration::ZERO)).unwrap();
}

#[test]
fn raw_calls_on_interrupts_are_refused_and_change_nothing() {
    let fabric = Fabric::new();
    let member = FabricMember::open(fabric.config(4)).unwrap();
    let (number, kind) = (InterruptNumber(5), InterruptKind::Plain);
    let create = Call::CreateInterrupt { number: Some(number), kind };
    assert_eq!(member.call(create), Err(Refusal::IllegalOperation));
    let options = InterruptOptions { number: Some(number), ..InterruptOptions::default() };
    let interrupt = member.create_interrupt(options).unwrap();
    let connect = Call::ConnectInterrupt {
        node: NODE,
        number,
        has_data: false,
        adapter: adapter(),
        timeout_nanos: Some(0),
    };
    assert_eq!(member.call(connect), Err(Refusal::IllegalOperation));
    interrupt.remove().unwrap();
}
