//! Two programs and a window between them: `cargo run -p beeline --example window`.
//!
//! Without an argument this is the receiver, which starts itself again as the sender.

use std::process::Command;

use beeline::{Domain, Error, Result};

const MESSAGES: u64 = 100_000;

fn main() -> Result<()> {
    let domain = Domain::open("example-window")?;
    if std::env::args().nth(1).as_deref() == Some("send") {
        let mut sender = domain.sender("numbers")?;
        return (0..MESSAGES).try_for_each(|number| sender.send(&number.to_le_bytes()));
    }
    // The name is there before the other program looks for it.
    let mut receiver = domain.receiver("numbers")?;
    let program = std::env::current_exe().expect("a running program has a path");
    let mut other = Command::new(program).arg("send").spawn().expect("it can be started again");
    let mut expected = 0;
    loop {
        match receiver.recv() {
            // Read where the sender stored it; its place is free again at the end of this arm.
            Ok(mut message) => {
                assert_eq!(message.word(0), expected);
                expected += 1;
            }
            Err(Error::SenderGone) => break,
            Err(error) => return Err(error),
        }
    }
    let status = other.wait().expect("it was started");
    println!("{expected} messages from another program, in order; it ended with {status}");
    assert!(expected == MESSAGES && status.success());
    Ok(())
}
