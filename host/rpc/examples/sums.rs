//! A server that adds numbers and a client that has it do so, in processes of their own.
//!
//! ```text
//! cargo run --release -p beeline-rpc --example sums -- serve            # until Ctrl-C
//! cargo run --release -p beeline-rpc --example sums -- add 40 2         # one call that waits
//! cargo run --release -p beeline-rpc --example sums -- many 1000000     # many calls at a time
//! ```
//!
//! The handler reads the numbers where they lie in the client's request window and stores the sum straight into the
//! client's reply window. The client of `many` starts calls as long as there is room, and takes ends in the order in which
//! they come about.

use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use beeline_domain::{Domain, DomainConfig};
use beeline_rpc::shm::{Client, ClientOptions, Server, ServerOptions};
use beeline_rpc::{CallError, CallFailure, Deadline, Method, Replied, Reply, Request, Started, WaitPolicy};

/// What client and server agree on: method 1 adds all words of the request.
const ADD: Method = Method(1);
/// The sum does not fit 64 bits.
const OVERFLOW: u16 = 1;
/// The name that the server is known by.
const NAME: &str = "sums";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let domain = Domain::open(&DomainConfig::default())?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => serve(&domain),
        ["add", ref numbers @ ..] => add(&domain, numbers),
        ["many", calls] => many(&domain, calls.parse()?),
        _ => Err("say serve, add NUMBER…, or many CALLS".into()),
    }
}

/// Answers until the process ends.
fn serve(domain: &Domain) -> Result<(), Box<dyn Error>> {
    let (server, mut workers) = Server::offer(domain, NAME, ServerOptions::default())?;
    println!("{} is served; end it with Ctrl-C", server.name());
    // Spins for some tens of microseconds, then sleeps until a request wakes it.
    workers[0].run(&mut handle, &WaitPolicy::default(), &AtomicBool::new(false));
    Ok(())
}

/// One request: every way to use up the reply gives the `Replied` that is asked for.
fn handle(request: &mut Request<'_>, reply: Reply<'_>) -> Replied {
    if request.method() != ADD {
        return reply.unknown_method();
    }
    let words = request.len() / 8;
    let sum = (0..words).try_fold(0u64, |sum, index| sum.checked_add(request.word(index)));
    match sum {
        Some(sum) => reply.send(&sum.to_le_bytes()),
        None => reply.fail(OVERFLOW, b"the sum does not fit 64 bits"),
    }
}

fn connect(domain: &Domain) -> Result<Client, Box<dyn Error>> {
    Client::connect(domain, NAME, ClientOptions::default())
        .map_err(|error| format!("{error}; start the server with `serve`").into())
}

/// One call that waits, for a second at most.
fn add(domain: &Domain, numbers: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut request = Vec::new();
    for number in numbers {
        request.extend(number.parse::<u64>()?.to_le_bytes());
    }
    let deadline = Deadline::after(Duration::from_secs(1));
    let mut answer = Vec::new();
    match connect(domain)?.call(ADD, &request, &mut answer, Some(deadline)) {
        Ok(()) => {
            let sum = answer.first_chunk().ok_or("an answer of fewer than eight bytes")?;
            println!("{}", u64::from_le_bytes(*sum));
            Ok(())
        }
        // What a handler fails with is its own affair; everything else says itself what it means.
        Err(CallFailure::Call(CallError::Failed { code: OVERFLOW, detail })) => {
            Err(String::from_utf8_lossy(&detail).into())
        }
        Err(failure) => Err(failure.into()),
    }
}

/// As many calls as there is room for, over and over.
fn many(domain: &Domain, calls: u64) -> Result<(), Box<dyn Error>> {
    let mut client = connect(domain)?;
    let (mut started, mut ended, mut sum) = (0, 0, 0u64);
    let begun = Instant::now();
    while ended < calls {
        while started < calls {
            let request = [started.to_le_bytes(), 1u64.to_le_bytes()];
            match client.start(ADD, request.as_flattened(), None)? {
                Started::Call(_) => started += 1,
                // Back-pressure is an answer: take what has ended, and there is room again.
                Started::Full => break,
            }
        }
        match client.poll() {
            // The answer is read where it lies in the window; dropping it gives the lines back.
            Some(completion) => {
                sum += completion.result?.word(0);
                ended += 1;
            }
            None => std::hint::spin_loop(),
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    assert_eq!(sum, calls * (calls + 1) / 2, "the sum of 1 to {calls}");
    println!("{calls} calls in {seconds:.3} s: {:.1} million a second", calls as f64 / seconds / 1e6);
    Ok(())
}
