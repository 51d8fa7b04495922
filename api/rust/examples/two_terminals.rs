//! A receiver and a sender in two terminals, started in either order:
//! `cargo run -p beeline-ipc --example two_terminals receive`, and the same with `send`.

use std::time::Duration;

use beeline::{Domain, RecvError, Result};

fn main() -> Result<()> {
    let domain = Domain::open("example-terminals")?;
    match std::env::args().nth(1).as_deref() {
        Some("receive") => receive(&domain),
        Some("send") => send(&domain),
        _ => {
            eprintln!("say `receive` in one terminal and `send` in another");
            Ok(())
        }
    }
}

fn receive(domain: &Domain) -> Result<()> {
    let mut receiver = domain.receiver("numbers")?;
    loop {
        match receiver.recv() {
            Ok(message) => println!("{}", message.word(0)),
            Err(RecvError::SenderGone) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn send(domain: &Domain) -> Result<()> {
    let mut sender = domain.sender_timeout("numbers", Duration::from_secs(60))?;
    for number in 40..43u64 {
        sender.send(&number.to_le_bytes())?;
    }
    Ok(())
}
