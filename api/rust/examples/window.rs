//! Two programs and a window between them: `cargo run -p beeline-ipc --example window`.
//!
//! Without an argument this is the receiver, which starts itself again as the sender.

use std::process::Command;

use beeline::{Domain, Receiver, RecvError, Result};

fn main() -> Result<()> {
    let domain = Domain::open("example-window")?;
    if std::env::args().nth(1).as_deref() == Some("send") {
        let mut sender = domain.sender("numbers")?;
        return Ok((0..100_000u64).try_for_each(|number| sender.send(&number.to_le_bytes()))?);
    }
    // The name is there before the other program looks for it.
    let receiver = domain.receiver("numbers")?;
    let program = std::env::current_exe().expect("a running program has a path");
    let mut other = Command::new(program).arg("send").spawn().expect("it can be started again");
    let count = receive_all(receiver);
    let status = other.wait().expect("it was started");
    println!("{} messages from another program, in order; it ended with {status}", count?);
    Ok(())
}

fn receive_all(mut receiver: Receiver) -> Result<u64> {
    let mut count = 0;
    loop {
        match receiver.recv() {
            // Read where the sender stored it; its place is free again at the end of this arm.
            Ok(message) => {
                assert_eq!(message.word(0), count);
                count += 1;
            }
            Err(RecvError::SenderGone) => return Ok(count),
            Err(error) => return Err(error.into()),
        }
    }
}
