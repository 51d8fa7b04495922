//! Many senders, one receiver: `cargo run -p beeline-ipc --example fan_in`.
//!
//! Each sender has a window of its own, so none waits for another; one thread receives from all of them with one wait, and
//! sleeps while none sends.

use std::time::Duration;

use beeline::{Domain, MemberError, ReceiverOptions, ReceiverSet, RecvError, Result};

const SENDERS: u64 = 200;
const MESSAGES: u64 = 50;

fn send(domain: &Domain, number: u64) -> Result<()> {
    let mut sender = domain.sender(&format!("source-{number}"))?;
    for message in 0..MESSAGES {
        sender.send(&message.to_le_bytes())?;
        if message % 10 == number % 10 {
            std::thread::yield_now();
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let domain = Domain::open("example-fan-in")?;
    let mut set = ReceiverSet::new();
    let mut members = Vec::new();
    for number in 0..SENDERS {
        let options = ReceiverOptions::new().lines(64);
        members.push(set.insert(domain.receiver_with(&format!("source-{number}"), options)?));
    }
    let senders = std::thread::spawn(move || -> Result<()> {
        for first in (0..SENDERS).step_by(8) {
            let domain = &domain;
            std::thread::scope(|scope| {
                let threads: Vec<_> =
                    (first..first + 8).map(|number| scope.spawn(move || send(domain, number))).collect();
                threads.into_iter().try_for_each(|thread| thread.join().expect("it sends only"))
            })?;
        }
        Ok(())
    });
    let (mut next, mut ended) = (vec![0; members.len()], 0);
    while ended < SENDERS {
        let outcome = set.drain_timeout(1024, Duration::from_secs(30), |member, message| {
            let index = members.iter().position(|it| *it == member).expect("a member of the set");
            assert_eq!(message.word(0), next[index], "in order within a member");
            next[index] += 1;
        });
        match outcome {
            Ok(0) => panic!("nothing came for 30 s"),
            Ok(_) => {}
            // The member stays, for its next sender; this program knows that none comes.
            Err(MemberError { member, error: RecvError::SenderGone, .. }) => {
                set.remove(member);
                ended += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
    senders.join().expect("it sends only")?;
    assert!(next.iter().all(|count| *count == MESSAGES) && set.is_empty());
    println!("{} messages of {SENDERS} senders, received by one thread", SENDERS * MESSAGES);
    Ok(())
}
