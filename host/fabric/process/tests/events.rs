//! Waiting for one of several things, and waiting without sleeping.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use beeline_fabric::{AdapterNumber, Call, InterruptNumber, LocalEvent, NodeId, Refusal, RemoteEvent};
use beeline_fabric::{SegmentId, Value};
use beeline_fabric_process::{FabricMember, Happened, Interrupt, InterruptOptions, Source, Trigger};
use support::Fabric;
use support::interrupts::sleeping;
use support::segments::available_telling;
use support::threads::Thread;

#[test]
fn role() {
    support::play();
}

fn interrupt(member: &FabricMember, number: u32) -> Interrupt {
    let number = Some(InterruptNumber(number));
    member.create_interrupt(InterruptOptions { number, wait: sleeping(), ..Default::default() }).unwrap()
}

fn trigger(member: &FabricMember, node: u16, number: u32) -> Trigger {
    let adapter = AdapterNumber::new(0).unwrap();
    member.connect_interrupt(NodeId(node), InterruptNumber(number), adapter, None).unwrap()
}

#[test]
fn wait_says_which_of_several_has_happened_and_what() {
    let fabric = Fabric::new();
    let member = FabricMember::open(fabric.config(4)).unwrap();
    let (first, second) = (interrupt(&member, 5), interrupt(&member, 6));
    let number = Some(InterruptNumber(7));
    let options = InterruptOptions { number, wait: sleeping(), ..Default::default() };
    let data = member.create_data_interrupt(options).unwrap();
    let segment = available_telling(&member, 7, 64, true);
    let sources = [
        Source::Interrupt(&first),
        Source::Interrupt(&second),
        Source::DataInterrupt(&data),
        Source::Segment(segment),
    ];
    let wait = || member.wait_any(&sources, None);
    assert_eq!(member.wait_any(&sources, Some(Duration::ZERO)), Err(Refusal::Timeout));
    assert_eq!(member.wait_any(&sources, Some(Duration::from_millis(1))), Err(Refusal::Timeout));
    let mut user = fabric.member(8);
    user.expect("trigger-of t 4 6 0", "ok");
    user.expect("data-trigger-of d 4 7 0", "ok");
    let steps = [
        ("trigger t", (1, Happened::Triggered)),
        ("trigger-data d text 4", (2, Happened::Message)),
        ("connect s 4 7 0", (3, Happened::ToSegment(LocalEvent::Connect(NodeId(8))))),
        ("disconnect s", (3, Happened::ToSegment(LocalEvent::Disconnect(NodeId(8))))),
    ];
    for (call, happened) in steps {
        std::thread::scope(|scope| {
            let waits = scope.spawn(wait);
            user.begin(call);
            assert_eq!(waits.join().unwrap(), Ok(happened), "{call}");
        });
        user.hear();
        if happened.1 == Happened::Message {
            assert_eq!(wait(), Ok(happened), "a message is told until it is taken");
            assert_eq!(data.wait(&mut [0; 4], None), Ok(4));
        }
    }
    std::thread::scope(|scope| {
        let waits = scope.spawn(wait);
        second.remove().unwrap();
        assert_eq!(waits.join().unwrap(), Err(Refusal::Cancelled));
    });
}

#[test]
fn connection_that_is_lost_ends_the_wait_of_who_waits_for_several() {
    let fabric = Fabric::new();
    let member = FabricMember::open(fabric.config(8)).unwrap();
    let mut owner = fabric.member(4);
    owner.expect("create s 7 64", "ok 7");
    owner.expect("prepare s", "ok");
    owner.expect("available s", "ok");
    let (node, id, adapter) = (NodeId(4), SegmentId(7), AdapterNumber::new(0).unwrap());
    let (timeout_nanos, is_asynchronous, has_callback) = (Some(0), false, true);
    let connect = Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, has_callback };
    let Value::Remote(remote, _) = member.call(connect).unwrap() else { panic!("no connection") };
    let own = interrupt(&member, 5);
    let sources = [Source::Interrupt(&own), Source::Connection(remote)];
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| member.wait_any(&sources, None));
        owner.kill();
        assert_eq!(waits.join().unwrap(), Ok((1, Happened::ToConnection(RemoteEvent::Lost))));
    });
}

#[test]
fn event_that_the_program_raises_is_taken_once() {
    let fabric = Fabric::new();
    let member = FabricMember::open(fabric.config(4)).unwrap();
    let (event, other) = (interrupt(&member, 5), interrupt(&member, 6));
    event.raise().unwrap();
    event.raise().unwrap();
    assert_eq!(event.wait(Some(Duration::ZERO)), Ok(()));
    assert_eq!(event.wait(Some(Duration::ZERO)), Err(Refusal::Timeout));
    let sources = [Source::Interrupt(&other), Source::Interrupt(&event)];
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| member.wait_any(&sources, None));
        let alone = scope.spawn(|| other.wait(None));
        event.raise().unwrap();
        assert_eq!(waits.join().unwrap(), Ok((1, Happened::Triggered)));
        other.raise().unwrap();
        assert_eq!(alone.join().unwrap(), Ok(()));
    });
    event.remove().unwrap();
    assert_eq!(event.raise(), Err(Refusal::IllegalParameter));
}

/// One that is not woken costs a second each time, and the watchdog ends the test.
#[test]
fn who_waits_for_several_is_woken_by_each_trigger() {
    const ROUNDS: u32 = 500;
    let fabric = Fabric::new();
    let members = [4, 8].map(|node| FabricMember::open(fabric.config(node)).unwrap());
    let own: Vec<_> =
        members.iter().map(|it| [interrupt(it, 5), interrupt(it, 6), interrupt(it, 7)]).collect();
    std::thread::scope(|scope| {
        for (member, (own, (node, is_first))) in members.iter().zip(own.iter().zip([(8, true), (4, false)])) {
            let triggers = [5, 6, 7].map(|number| trigger(member, node, number));
            scope.spawn(move || {
                let sources = own.each_ref().map(Source::Interrupt);
                let wait = |round: u32| {
                    let expected = (round as usize % 3, Happened::Triggered);
                    assert_eq!(member.wait_any(&sources, None), Ok(expected));
                };
                for round in 0..ROUNDS {
                    if !is_first {
                        wait(round);
                    }
                    triggers[round as usize % 3].trigger().unwrap();
                    if is_first {
                        wait(round);
                    }
                }
            });
        }
    });
}

/// Removes an interrupt, which ends the wait for it, also where the test fails meanwhile.
struct Removes<'a>(&'a Interrupt);

impl Drop for Removes<'_> {
    fn drop(&mut self) {
        let _removed = self.0.remove();
    }
}

#[test]
fn trigger_of_a_member_that_polls_makes_no_system_call_and_who_waits_does_not_sleep() {
    let fabric = Fabric::new();
    let member = FabricMember::open(fabric.config(4)).unwrap();
    member.set_polling(true);
    let number = Some(InterruptNumber(5));
    let options = InterruptOptions { number, is_counting: true, wait: sleeping(), ..Default::default() };
    let own = member.create_interrupt(options).unwrap();
    let mut user = fabric.member(8);
    user.expect("trigger-of t 4 5 0", "ok");
    let (say, said) = channel();
    let taken = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let _ends = Removes(&own);
        scope.spawn(|| {
            say.send(Thread::this()).unwrap();
            let sources = [Source::Interrupt(&own)];
            let wait = |is_alone| match is_alone {
                true => own.wait(None).is_ok(),
                false => member.wait_any(&sources, None).is_ok(),
            };
            while wait(taken.load(Ordering::Relaxed).is_multiple_of(2)) {
                taken.fetch_add(1, Ordering::Relaxed);
            }
        });
        let waiter = said.recv().unwrap();
        assert!(waiter.polls(), "who waits for an interrupt sleeps");
        user.expect("trigger t", "ok");
        assert!(waiter.polls(), "who waits for one of several sleeps");
        // A process that makes a system call where it may make none is killed.
        user.expect("trigger-without-calls t 1000", "ok");
        support::wait_until(|| taken.load(Ordering::Relaxed) == 1001);
    });
}

#[test]
fn member_that_polls_is_told_of_connections_and_does_not_sleep() {
    let fabric = Fabric::new();
    let member = FabricMember::open(fabric.config(4)).unwrap();
    member.set_polling(true);
    let told = available_telling(&member, 7, 64, true);
    let waited = available_telling(&member, 8, 64, false);
    let mut user = fabric.member(8);
    let connected = LocalEvent::Connect(NodeId(8));
    let (say, said) = channel();
    std::thread::scope(|scope| {
        let any = scope.spawn(|| {
            say.send(Thread::this()).unwrap();
            member.wait_any(&[Source::Segment(told)], None)
        });
        let polls = said.recv().unwrap().polls();
        user.expect("connect s 4 7 0", "ok 64");
        assert_eq!(any.join().unwrap(), Ok((0, Happened::ToSegment(connected))));
        assert!(polls, "who waits for one of several sleeps");
        let call = scope.spawn(|| {
            say.send(Thread::this()).unwrap();
            member.call(Call::WaitLocal { local: waited, timeout_nanos: None })
        });
        let polls = said.recv().unwrap().polls();
        user.expect("connect s2 4 8 0", "ok 64");
        assert_eq!(call.join().unwrap(), Ok(Value::LocalEvent(connected)));
        assert!(polls, "who waits for the outcome of a call sleeps");
    });
}
