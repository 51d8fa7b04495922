//! A byte stream: `cargo run -p beeline-ipc --example bytes`.
//!
//! What `std::io` can read and write goes through a window: here lines of text, however they were cut when they were written.

use std::io::{BufRead, BufReader, Write};

use beeline::{ByteSender, Domain, Shared};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let domain = Domain::open("example-bytes")?;
    let receiver = domain.receiver("text")?.into_bytes();
    let sender = domain.sender("text")?.into_bytes();

    let writers = std::thread::spawn(move || -> std::io::Result<()> {
        // Two threads take turns; what one writes in a turn stands together.
        let shared: Shared<ByteSender> = Shared::new(sender);
        std::thread::scope(|scope| {
            let writer = |name: &'static str| {
                let shared = shared.clone();
                scope.spawn(move || -> std::io::Result<()> {
                    for number in 0..3 {
                        let mut turn = shared.turn();
                        write!(turn, "{name} ")?;
                        writeln!(turn, "says {number}")?;
                    }
                    Ok(())
                })
            };
            let both = [writer("one"), writer("two")];
            both.into_iter().try_for_each(|thread| thread.join().expect("it writes only"))
        })
        // The last clone is dropped: the stream ends.
    });
    let mut lines = 0;
    for line in BufReader::new(receiver).lines() {
        println!("{}", line?);
        lines += 1;
    }
    writers.join().expect("it writes only")?;
    assert_eq!(lines, 6);
    println!("{lines} lines");
    Ok(())
}
