//! A program that tells others what has changed: `cargo run -p beeline-ipc --example notifications`.
//!
//! Without an argument this is the notifier, which starts itself again as two subscribers: one that waits, and one whose
//! callback runs on a thread of the library. What the notifier accepted before it answers a call is there when the call returns.

use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::Duration;

use beeline::{
    Answer, Domain, Notified, Notifier, NotifierEvent, NotifierOptions, Result, SubscriptionEnded,
};

const CHANGES: u64 = 2000;
const TIME: Duration = Duration::from_secs(30);

fn main() -> Result<()> {
    let domain = Domain::open("example-notifications")?;
    match std::env::args().nth(1).as_deref() {
        Some("waits") => return subscribe_and_wait(&domain),
        Some("is-called") => return subscribe_and_be_called(&domain),
        _ => {}
    }
    let notifier = domain.notifier_with("counter", NotifierOptions::new(), |subscriber, request, _| {
        if request == b"mark" {
            // Before the answer: so it is in front of it for the subscriber too.
            let told = subscriber.notify(b"mark", &[]).map_err(|error| error.to_string())?;
            return Ok(Answer::new(if told == Notified::Accepted { "told" } else { "no room" }));
        }
        Ok(Answer::default())
    })?;
    let program = std::env::current_exe().expect("a running program has a path");
    let mut subscribers: Vec<Child> = ["waits", "is-called"]
        .map(|how| Command::new(&program).arg(how).spawn().expect("it can be started again"))
        .into();
    let outcome = tell_all(&notifier);
    // Both end when the notifier does, having taken all that they were told.
    drop(notifier);
    let statuses = subscribers.iter_mut().map(|child| child.wait().expect("it was started"));
    assert!(statuses.into_iter().all(|status| status.success()));
    outcome.map(|()| println!("{CHANGES} changes told to two programs, none lost"))
}

/// Waits for both subscribers, then tells them every change; one that is slow is waited for.
fn tell_all(notifier: &Notifier) -> Result<()> {
    while notifier.subscribers().len() < 2 {
        assert!(notifier.event_timeout(TIME).is_some(), "nobody comes");
    }
    for change in 1..=CHANGES {
        for subscriber in notifier.subscribers() {
            while subscriber.notify(&change.to_le_bytes(), &[])? == Notified::WouldBlock {
                match notifier.event_timeout(TIME) {
                    Some(NotifierEvent::Left(who)) => panic!("process {:?} left early", who.pid()),
                    Some(_) => {}
                    None => panic!("nobody takes anything"),
                }
            }
        }
    }
    Ok(())
}

/// Checks that a change is the next one; a mark is none.
fn next(payload: &[u8], last: &mut u64) {
    if payload != b"mark" {
        let change = u64::from_le_bytes(payload.try_into().expect("a change is a number"));
        assert_eq!(change, *last + 1, "one is missing");
        *last = change;
    }
}

fn subscribe_and_wait(domain: &Domain) -> Result<()> {
    let counter = domain.subscribe_timeout("counter", TIME)?;
    assert_eq!(counter.call(b"mark", &[])?.payload, b"told");
    let (mut last, mut marks) = (0, 0);
    loop {
        match counter.next_timeout(TIME) {
            Ok(Some(told)) => {
                marks += u64::from(told.payload == b"mark");
                next(&told.payload, &mut last);
            }
            Ok(None) => panic!("nothing is told for 30 s"),
            Err(SubscriptionEnded::Closed) => break,
            Err(error) => return Err(error.into()),
        }
    }
    assert_eq!((last, marks), (CHANGES, 1));
    Ok(())
}

fn subscribe_and_be_called(domain: &Domain) -> Result<()> {
    let counter = domain.subscribe_timeout("counter", TIME)?;
    let (told_end, end) = mpsc::channel();
    let mut last = 0;
    let _thread = counter
        .deliver_to(move |told| match told {
            Ok(notification) => next(&notification.payload, &mut last),
            // The last call says why no more come. This thread may do all that others may.
            Err(ended) => told_end.send((last, ended)).expect("the main thread waits"),
        })
        .expect("a process has threads enough");
    let (last, ended) = end.recv_timeout(TIME).expect("the end is told");
    assert!(last == CHANGES && matches!(ended, SubscriptionEnded::Closed), "{last}, {ended}");
    Ok(())
}
