//! What a hostile device writes while pipes join and leave, and where entries end: each test was found by fuzzing or by
//! reading, and failed before it was mended.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

#[path = "support/scripted.rs"]
mod scripted;

use beeline_driver::{
    JoinError, Port, Progress, QueueHalf, Receive, RxEnsoConfig, RxEnsoMemberConfig, Stopped,
};
use beeline_spec::pipe::Notification;
use scripted::Scripted;

fn open<H: QueueHalf>(port: &mut Port<Scripted>, half: Stopped<H>) -> H {
    let mut pending = port.open(half);
    for now in 0..1000 {
        port.poll(now).unwrap();
        pending = match port.finish(pending).unwrap() {
            Progress::Done(half) => return half,
            Progress::Pending(pending) => pending,
        };
    }
    panic!("a sound device opens a queue");
}

/// A member that joins a receiver which has failed, and of which something impossible was told, changes nothing.
#[test]
fn the_first_error_of_a_receiver_stays_whatever_joins_later() {
    let link = Scripted::sound(64);
    let mut port = link.ready();
    let owner = port.rx_enso(0, RxEnsoConfig { lines: 64, notifications: 4, ..Default::default() }).unwrap();
    let owner = open(&mut port, owner);
    let ring = link.0.borrow().regions[0].clone();
    let mut rx = port.enso_receiver(owner);
    let member = port.rx_enso_member(2, 0, RxEnsoMemberConfig { lines: 64, ..Default::default() }).unwrap();
    let member = open(&mut port, member);
    let wild = |tail_lines, queue, epoch, index| Notification { tail_lines, queue, epoch }.encode(index, 4);
    // More than its pipe holds, told before it joined; then a queue that the port does not have.
    ring.borrow_mut()[0] = wild(1000, 2, 1, 0);
    ring.borrow_mut()[1] = wild(1, 9, 0, 1);
    let first = rx.poll().map(|_| ()).unwrap_err();
    assert!(matches!(rx.join(member), Err(JoinError::Device(error)) if error == first));
    assert_eq!(rx.poll().map(|_| ()), Err(first));
    assert_eq!(rx.wants_interrupt(), Err(first));
}
