//! Waiting with sleep: `cargo run -p beeline-ipc --example sleep`.
//!
//! A receiver that is idle looks for a while, then sleeps in the kernel and costs nothing. The sender still only
//! stores: whoever sleeps pays for being woken.

use std::time::{Duration, Instant};

use beeline::{Domain, ReceiverOptions, Result, WaitPolicy};

fn main() -> Result<()> {
    let domain = Domain::open("example-sleep")?;
    let wait = WaitPolicy::new().spins(1000).yields(0).sleep(Some(Duration::from_millis(500)));
    let mut receiver = domain.receiver_with("bell", ReceiverOptions::new().wait(wait))?;
    assert!(receiver.recv_timeout(Duration::from_millis(20))?.is_none(), "nobody has rung");

    let caller = std::thread::spawn(move || -> Result<()> {
        let mut sender = domain.sender("bell")?;
        for ring in 0..10u64 {
            std::thread::sleep(Duration::from_millis(20));
            sender.send(&ring.to_le_bytes())?;
        }
        Ok(())
    });
    let started = Instant::now();
    for ring in 0..10 {
        assert_eq!(receiver.recv()?.word(0), ring);
        println!("ring {ring} after {:>3} ms, asleep in between", started.elapsed().as_millis());
    }
    caller.join().expect("the caller does not panic")
}
