//! Waiting for two windows and a pipe at once: `cargo run -p beeline-ipc --example readiness`.
//!
//! A window is memory, and nothing in memory is readable for `poll`. [`Polled`] puts a descriptor beside it, which is
//! readable whenever there may be a message; it is armed before each wait. The senders still only store.

use std::os::fd::AsFd;
use std::time::Duration;

use beeline::{Domain, Flushed, Polled, Receiver, Sender};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Takes what has come; how many messages.
fn take(name: &str, receiver: &mut Receiver) -> Result<usize> {
    let mut count = 0;
    while let Some(message) = receiver.try_recv()? {
        println!("{name}: {}", message.word(0));
        count += 1;
    }
    Ok(count)
}

fn main() -> Result<()> {
    let domain = Domain::open("example-readiness")?;
    let mut red = Polled::new(domain.receiver("red")?)?;
    let mut blue = Polled::new(domain.receiver("blue")?)?;
    let (end, at_the_end) = rustix::pipe::pipe()?;

    let senders = std::thread::spawn(move || -> Result<(Sender, Sender)> {
        let mut red = domain.sender("red")?;
        let mut blue = domain.sender("blue")?;
        for number in 0..5u64 {
            red.send(&number.to_le_bytes())?;
            blue.send(&(number * number).to_le_bytes())?;
        }
        let time = Duration::from_secs(10);
        assert_eq!((red.flush(time)?, blue.flush(time)?), (Flushed::All, Flushed::All));
        rustix::io::write(&at_the_end, b"end")?;
        // The senders go after the receivers have stopped looking.
        Ok((red, blue))
    });
    let mut count = 0;
    loop {
        count += take("red", &mut red)? + take("blue", &mut blue)?;
        // Armed, then waited for; the timeout is 0 where a message came meanwhile, -1 where there is nothing.
        let timeout = match (red.arm().timeout_ms(), blue.arm().timeout_ms()) {
            (-1, -1) => None,
            _ => Some(Timespec { tv_sec: 0, tv_nsec: 0 }),
        };
        let mut set =
            [red.as_fd(), blue.as_fd(), end.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        poll(&mut set, timeout.as_ref())?;
        if set[2].revents().contains(PollFlags::IN) {
            break;
        }
    }
    senders.join().expect("the senders do not panic")?;
    assert_eq!(count, 10);
    Ok(())
}
