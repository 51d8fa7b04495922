//! What a hostile device writes while pipes join and leave, and where entries end: each test was found by fuzzing or by
//! reading, and failed before it was mended.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

#[path = "support/scripted.rs"]
mod scripted;

use beeline_driver::{
    JoinError, Port, Progress, QueueHalf, Receive, RxEnsoConfig, RxEnsoMemberConfig, RxError, Stopped,
};
use beeline_spec::pipe::{Notification, header};
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

/// Lines that were not freed cannot be filled again, and a notification tells of something: by every way to a pipe.
#[test]
fn a_pipe_that_is_filled_past_what_was_freed_or_not_at_all_is_an_error() {
    for shares in [false, true] {
        assert_eq!(frames_of(&[64], shares), (64, None));
        // The host tells what it took after a quarter of the pipe, so all of it may be filled again.
        assert_eq!(frames_of(&[16, 80, 144], shares), (144, None));
        for (tails, frames) in [(&[65][..], 0), (&[0], 0), (&[10, 10], 10), (&[10, 9], 10), (&[10, 75], 10)] {
            let (found, error) = frames_of(tails, shares);
            assert!(matches!(error, Some(RxError::BadCompletion { .. })), "{tails:?}: {error:?}");
            assert_eq!(found, frames, "{tails:?}");
        }
    }
}

/// Frames of a line each that come when so many lines are told of, and the error that ends them.
fn frames_of(tails: &[u32], shares: bool) -> (u32, Option<RxError>) {
    let link = Scripted::sound(64);
    let mut port = link.ready();
    let config = RxEnsoConfig { lines: 64, notifications: 4, ..Default::default() };
    let owner = port.rx_enso(0, config).unwrap();
    let owner = open(&mut port, owner);
    let memory = link.0.borrow().regions[0].clone();
    for (index, tail_lines) in tails.iter().enumerate() {
        let told = Notification { tail_lines: *tail_lines, queue: 0, epoch: 0 };
        memory.borrow_mut()[index] = told.encode(index as u64, 4);
    }
    // The pipe lies behind the line with the notifications.
    (0..64).for_each(|line| memory.borrow_mut()[8 + line * 8] = header(56));
    let mut rx: Box<dyn Receive> = if shares { Box::new(port.enso_receiver(owner)) } else { Box::new(owner) };
    let mut frames = 0;
    loop {
        match rx.poll() {
            Ok(Some(_)) => frames += 1,
            Ok(None) => return (frames, None),
            Err(error) => return (frames, Some(error)),
        }
    }
}
