//! Small messages in few lines: `cargo run -p beeline-ipc --example batch`.
//!
//! A message of its own takes a line of 64 bytes at least; in a batch one of 6 bytes takes 8.

use beeline::{Domain, Result, Sent};

fn main() -> Result<()> {
    let domain = Domain::open("example-batch")?;
    let mut receiver = domain.receiver("trades")?;
    let mut sender = domain.sender("trades")?;
    let trades: Vec<[u8; 6]> = (0..1000u32).map(|n| [b'#', b'T', n as u8, (n >> 8) as u8, 0, 1]).collect();

    let (mut batches, mut sent) = (0, 0);
    while sent < trades.len() {
        let mut batch = sender.batch(1024)?;
        while sent < trades.len() && batch.push(&trades[sent])? == Sent::Sent {
            sent += 1;
        }
        // Until here the receiver sees nothing of it.
        batch.send();
        batches += 1;
    }

    let mut bytes = [0; 6];
    for trade in &trades {
        let mut message = receiver.recv()?;
        message.copy_out(&mut bytes);
        assert_eq!(&bytes, trade);
    }
    println!("{sent} messages in {batches} batches, received one by one");
    Ok(())
}
