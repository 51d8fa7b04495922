//! Ten thousand windows between two programs: `cargo run -p beeline-ipc --example arena`.
//!
//! Each session of the other program has a window of its own. All of them lie in memory that either side has mapped once, so that
//! they take no descriptors, and one thread receives from all with one wait.

use std::collections::HashMap;
use std::process::Command;
use std::time::Duration;

use beeline::{ArenaOptions, Domain, MemberError, ReceiverSet, RecvError, Result, SenderOptions};

const SESSIONS: u64 = 10_000;
const MESSAGES: u64 = 3;
const TIME: Duration = Duration::from_secs(30);

fn sessions(domain: &Domain) -> Result<()> {
    let arena = domain.sender_arena_with("sessions", 64, SenderOptions::new().timeout(TIME))?;
    let mut senders = (0..SESSIONS).map(|_| arena.open()).collect::<Result<Vec<_>, _>>()?;
    for message in 0..MESSAGES {
        for (session, sender) in (0u64..).zip(&mut senders) {
            sender.send(&(session * MESSAGES + message).to_le_bytes())?;
        }
    }
    println!("{SESSIONS} windows opened with {} descriptors", beeline::descriptors().len());
    Ok(())
}

fn main() -> Result<()> {
    let domain = Domain::open("example-arena")?;
    if std::env::args().nth(1).as_deref() == Some("sessions") {
        return sessions(&domain);
    }
    let mut set = ReceiverSet::new();
    let options = ArenaOptions::new().lines(64).windows(10_100).bytes(64 << 20);
    set.set_arena(Some(domain.receiver_arena_with("sessions", options)?));
    let program = std::env::current_exe().expect("this program has a path");
    let mut other = Command::new(program).arg("sessions").spawn().expect("this program runs once more");
    // By member: what its next message says.
    let (mut next, mut ended) = (HashMap::new(), 0);
    while ended < SESSIONS {
        let outcome = set.drain_timeout(1024, TIME, |session, message| {
            let number = message.word(0);
            let expected = next.insert(session, number + 1).unwrap_or(number / MESSAGES * MESSAGES);
            assert_eq!(number, expected, "in order within a session");
        });
        match outcome {
            Ok(0) => panic!("nothing came for 30 s"),
            Ok(_) => {}
            // The member is in the set no more.
            Err(MemberError { error: RecvError::SenderGone, .. }) => ended += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(other.wait().expect("it is this program's child").success());
    assert!(next.len() as u64 == SESSIONS && set.is_empty());
    println!("{} messages of {SESSIONS} windows received by one thread", SESSIONS * MESSAGES);
    Ok(())
}
