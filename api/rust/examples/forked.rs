//! A program that forks while its threads use the library: `cargo run -p beeline-ipc --example forked`.
//!
//! The child uses the domain of its parent, and opens what it needs there itself. What the parent opened stays the parent's. A
//! program that the child executes inherits no descriptor of the library.

use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline::{Domain, OfferError, Receiver, RecvError, Result, descriptors, place_descriptors_above};
use fork::Fork;
use rustix::process::WaitOptions;

const MESSAGES: u64 = 10_000;

fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some("executed") {
        return executed();
    }
    // A program that closes its own descriptors from below (`closefrom`) never meets the library's.
    place_descriptors_above(200).expect("a process may have 1024 descriptors");
    let domain = Domain::open("example-forked")?;
    let receiver = domain.receiver("numbers")?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Under load: other threads are in the middle of calls when this one forks.
        for thread in 0..3 {
            let (domain, is_over) = (&domain, &is_over);
            scope.spawn(move || keep_busy(domain, thread, is_over));
        }
        let outcome = match fork::fork().expect("a process may fork") {
            // Only this thread is in the child, which ends here: the threads of the scope are the parent's, and a panic that
            // left the scope would wait for them.
            Fork::Child => {
                let outcome = catch_unwind(AssertUnwindSafe(|| child(&domain, &receiver)));
                std::process::exit(i32::from(!matches!(outcome, Ok(Ok(())))))
            }
            Fork::Parent(child) => catch_unwind(AssertUnwindSafe(|| parent(receiver, child))),
        };
        // Relaxed: the threads look at nothing else.
        is_over.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    })
}

fn keep_busy(domain: &Domain, thread: u32, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let name = format!("busy-{thread}");
        let mut receiver = domain.receiver(&name).expect("the name is this thread's");
        let mut sender = domain.sender(&name).expect("it was offered above");
        sender.send(&thread.to_le_bytes()).expect("the window is empty");
        assert_eq!(receiver.recv().expect("it was sent above").word(0), u64::from(thread));
    }
}

fn parent(mut receiver: Receiver, child: i32) -> Result<()> {
    for number in 0..MESSAGES {
        assert_eq!(receiver.recv()?.word(0), number);
    }
    assert!(matches!(receiver.recv(), Err(RecvError::SenderGone)));
    let status = rustix::process::waitpid(rustix::process::Pid::from_raw(child), WaitOptions::empty())
        .expect("it is the child of this process");
    let code = status.and_then(|(_, status)| status.exit_status());
    assert_eq!(code, Some(0), "the child, and what it executed, end well");
    println!("{MESSAGES} messages in the parent, as many in the child");
    Ok(())
}

/// Sends to the parent and to itself, then becomes another program.
fn child(domain: &Domain, of_parent: &Receiver) -> Result<()> {
    assert!(descriptors().is_empty(), "the child has none of its own before its first call");
    assert!(!of_parent.has_sender(), "the parent's receiver stays the parent's");
    let mut to_parent = domain.sender("numbers")?;
    let mut own = domain.receiver("of-the-child")?;
    let mut to_own = domain.sender("of-the-child")?;
    for number in 0..MESSAGES {
        to_parent.send(&number.to_le_bytes())?;
        to_own.send(&number.to_le_bytes())?;
        assert_eq!(own.recv()?.word(0), number);
    }
    // The name of the parent is taken in the child too.
    assert!(matches!(domain.receiver("numbers"), Err(OfferError::Taken { .. })));
    assert!(descriptors().iter().all(|(number, _)| *number >= 200));
    drop(to_parent);
    let program = std::env::current_exe().expect("a running program has a path");
    panic!("the program is not there: {}", Command::new(program).arg("executed").exec());
}

/// Looks for descriptors that came through exec: none of the library's did.
fn executed() -> Result<()> {
    let open = std::fs::read_dir("/proc/self/fd").expect("there is a /proc");
    for entry in open.filter_map(std::result::Result::ok) {
        let link = std::fs::read_link(entry.path()).unwrap_or_default();
        let link = link.to_string_lossy();
        let is_ours =
            ["beeline", "eventfd", "eventpoll", "pidfd", "socket:"].iter().any(|it| link.contains(it));
        assert!(!is_ours || link.contains("/proc/"), "{link} came through exec");
    }
    // And the domain is there for the new program.
    let domain = Domain::open("example-forked")?;
    let mut receiver = domain.receiver("of-the-executed")?;
    domain.sender("of-the-executed")?.send(b"it works")?;
    assert_eq!(receiver.recv_timeout(Duration::from_secs(30))?.map(|message| message.len()), Some(8));
    Ok(())
}
