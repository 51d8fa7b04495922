//! A program that tells others what has changed: `cargo run -p beeline-ipc --example notifications`.
//!
//! Without an argument this is the notifier, which starts itself again as two subscribers: one that waits, and one whose
//! callback runs on a thread of the library. What the notifier accepted before it answers a call is there when the call returns.

use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::Duration;

use beeline::{Answer, Domain, Notified, Notifier, NotifierEvent, NotifierOptions, Result};

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
    tell_all(&notifier)?;
    let statuses = subscribers.iter_mut().map(|child| child.wait().expect("it was started"));
    assert!(statuses.into_iter().all(|status| status.success()));
    println!("{CHANGES} changes told to two programs, none lost");
    Ok(())
}

/// Waits for both subscribers, tells them every change, and waits until they leave; one that is slow is waited for.
fn tell_all(notifier: &Notifier) -> Result<()> {
    while notifier.subscribers().len() < 2 {
        assert!(notifier.event_timeout(TIME).is_some(), "nobody comes");
    }
    let subscribers = notifier.subscribers();
    let mut left = 0;
    for change in 1..=CHANGES {
        for subscriber in &subscribers {
            while subscriber.notify(&change.to_le_bytes(), &[])? == Notified::WouldBlock {
                let event = notifier.event_timeout(TIME).expect("somebody takes something");
                left += u32::from(matches!(event, NotifierEvent::Left(_)));
            }
        }
    }
    // What waits for room in a socket when a notifier ends would be lost, with a word.
    while left < 2 {
        let event = notifier.event_timeout(TIME).expect("both leave when they were told all");
        left += u32::from(matches!(event, NotifierEvent::Left(_)));
    }
    Ok(())
}

/// Checks that a change is the next one.
fn next(payload: &[u8], last: &mut u64) {
    let change = u64::from_le_bytes(payload.try_into().expect("a change is a number"));
    assert_eq!(change, *last + 1, "one is missing");
    *last = change;
}

fn subscribe_and_wait(domain: &Domain) -> Result<()> {
    let counter = domain.subscribe_with("counter", b"mark", &[], TIME)?;
    assert_eq!(counter.first_answer().payload, b"told");
    assert_eq!(counter.try_next()?.expect("it came before the answer").payload, b"mark");
    let mut last = 0;
    while last < CHANGES {
        let told = counter.next_timeout(TIME)?.expect("something is told within 30 s");
        next(&told.payload, &mut last);
    }
    Ok(())
}

fn subscribe_and_be_called(domain: &Domain) -> Result<()> {
    let counter = domain.subscribe_timeout("counter", TIME)?;
    let (say, said) = mpsc::channel();
    let mut last = 0;
    // The thread of the callback may do all that others may; the last call would say why no more come.
    let _thread = counter
        .deliver_to(move |told| {
            let told = told.map(|notification| next(&notification.payload, &mut last));
            if told.is_err() || last == CHANGES {
                say.send(told).expect("the main thread waits");
            }
        })
        .expect("a process has threads enough");
    Ok(said.recv_timeout(TIME).expect("the last change is told")?)
}
