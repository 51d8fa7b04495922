//! Calls between two programs, here two threads: one adds, the other asks.
//!
//! `cargo run -p beeline-ipc --example calls`

use std::sync::atomic::{AtomicBool, Ordering};

use beeline::rpc::{Method, Replied, Reply, Request};
use beeline::{Domain, WaitPolicy};

const ADD: Method = Method(1);

fn add(request: &mut Request<'_>, reply: Reply<'_>) -> Replied {
    match request.method() {
        // The words are read where the client stored them, the sum is stored where the client reads it.
        ADD => reply.send(&request.word(0).wrapping_add(request.word(1)).to_le_bytes()),
        _ => reply.unknown_method(),
    }
}

fn main() -> beeline::Result<()> {
    let domain = Domain::open("example")?;
    let (_server, mut worker) = domain.server("sums")?;
    let mut client = domain.client("sums")?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| worker.run(&mut add, &WaitPolicy::default(), &stop));
        let mut answer = Vec::new();
        let asked = client.call(ADD, &[40u64.to_le_bytes(), 2u64.to_le_bytes()].concat(), &mut answer, None);
        // Relaxed: the worker only has to see it some time.
        stop.store(true, Ordering::Relaxed);
        asked?;
        println!("40 + 2 = {}", u64::from_le_bytes(answer.try_into().unwrap_or_default()));
        Ok(())
    })
}
