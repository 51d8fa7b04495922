//! Processes that an attacker shares memory with. Each serves an honest peer beside the attacker, and counts what that peer sent.
//!
//! A victim that panics aborts, because a server would catch the panic of what looks like its handler.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline::rpc::{Deadline, Method, Replied, Reply, Request};
use beeline::{
    ByteRead, ClientOptions, Domain, Flushed, Receiver, ReceiverOptions, Sent, ServerOptions, WaitPolicy,
};
use beeline_kv::{KvOptions, KvService};

use crate::arenas;
use crate::e2e_support::{WATCHDOG, argument, domain_config, say, stop_flag};

/// Long enough to be asleep at times, short beside a campaign.
const MOMENT: Duration = Duration::from_millis(1);

/// The domain of the test.
pub fn domain() -> Domain {
    Domain::open_in(domain_config().root.unwrap(), "e2e").unwrap()
}

/// Message `number` of an honest peer.
pub fn honest(number: u64) -> Vec<u8> {
    let bytes = 8 + (number * 37 % 400) as usize;
    (0..bytes).map(|at| (number.rotate_left(at as u32 * 7) as u8).wrapping_add(at as u8)).collect()
}

/// Ends this process at once when anything in it panics.
fn abort_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("a victim panicked: {panic}");
        std::process::abort();
    }));
}

/// Plays the victim that the test asks for until the test hangs up.
pub fn run() {
    abort_on_panic();
    let stop = stop_flag();
    match argument("VICTIM").as_deref() {
        Some("receiver") => receive(stop),
        Some("sender") => send(stop),
        Some("bytes") => read_bytes(stop),
        Some("server") => serve(stop),
        Some("client") => call(stop),
        Some("store") => store(stop),
        Some("arena owner") => arenas::own(stop),
        Some("arena sender") => arenas::send(stop),
        other => panic!("no victim {other:?}"),
    }
}

fn offer(domain: &Domain, name: &str) -> Receiver {
    domain.receiver_with(name, ReceiverOptions::new().lines(256)).unwrap()
}

/// Receives from an honest and from a hostile sender, by every call in turn.
fn receive(stop: &AtomicBool) {
    let domain = domain();
    let (mut good, mut evil) = (offer(&domain, "good"), offer(&domain, "evil"));
    say("ready");
    let (mut next, mut errors, mut turn, mut found) = (0, 0_u64, 0_u64, [0; 64]);
    while !stop.load(Ordering::Relaxed) || good.has_sender() {
        turn += 1;
        let result = match turn % 4 {
            0 => evil.recv_timeout(MOMENT).map(|message| drop(message.map(|message| message.to_vec()))),
            1 => evil.drain(8, |mut message| message.copy_to(&mut Vec::new())).map(drop),
            2 => evil.try_recv().map(|message| {
                let Some(mut message) = message else { return };
                let _ = message.copy_out_at(message.len() / 3, &mut found);
                message.for_each_word(|_| ());
            }),
            _ => {
                let mut sum = 0;
                evil.drain(1, |message| sum = message.fold_words(sum, u64::wrapping_add)).map(drop)
            }
        };
        errors += u64::from(result.is_err());
        while let Ok(Some(message)) = good.try_recv() {
            assert_eq!(message.to_vec(), honest(next), "message {next} of the honest sender");
            next += 1;
        }
    }
    say(&format!("counted {next} errors {errors}"));
}

/// Sends to an honest and to a hostile receiver.
fn send(stop: &AtomicBool) {
    let domain = domain();
    let mut good = domain.sender_timeout("good", WATCHDOG).unwrap();
    say("ready");
    let (mut next, mut errors, mut evil) = (0, 0_u64, None);
    while !stop.load(Ordering::Relaxed) {
        if evil.is_none() {
            evil = domain.sender("evil").ok();
        }
        let sent = evil.as_mut().map(|evil| evil.send_timeout(&[7; 200], MOMENT));
        if sent.is_some_and(|sent| sent.is_err()) {
            (evil, errors) = (None, errors + 1);
        }
        if good.try_send(&honest(next)).unwrap() == Sent::Sent {
            next += 1;
        }
    }
    assert_eq!(good.flush(WATCHDOG).unwrap(), Flushed::All);
    say(&format!("counted {next} errors {errors}"));
}

/// Reads byte streams of an honest and of a hostile sender.
fn read_bytes(stop: &AtomicBool) {
    let domain = domain();
    let (mut good, mut evil) = (offer(&domain, "good").into_bytes(), offer(&domain, "evil").into_bytes());
    say("ready");
    let (mut next, mut errors, mut turn) = (0, 0_u64, 0_u64);
    let (mut found, mut bytes) = (Vec::new(), [0; 1000]);
    while !stop.load(Ordering::Relaxed) || !good.is_at_end() {
        turn += 1;
        let half = evil.queued_bytes() / 2;
        let wanted = &mut bytes[..1 + (turn % 999) as usize];
        let result = match turn % 3 {
            0 => evil.read_timeout(wanted, MOMENT).map(drop),
            1 => evil.peek(half, wanted).map(drop),
            _ => evil.try_read(wanted).map(drop),
        };
        errors += u64::from(result.is_err());
        if result.is_err() || evil.is_at_end() {
            evil.next_stream();
        }
        while let Ok(ByteRead::Bytes(count)) = good.try_read(&mut bytes) {
            found.extend_from_slice(&bytes[..count]);
        }
        // Whole messages, one after the other.
        while found.len() >= honest(next).len() {
            let whole = honest(next);
            assert_eq!(found.drain(..whole.len()).collect::<Vec<u8>>(), whole, "the stream from {next} on");
            next += 1;
        }
    }
    assert_eq!(found, [0_u8; 0], "a part that was not sent");
    say(&format!("counted {next} errors {errors}"));
}

/// Answers with what was asked.
pub fn echo(request: &mut Request<'_>, reply: Reply<'_>) -> Replied {
    let mut asked = Vec::new();
    request.copy_to(&mut asked);
    reply.send(&asked)
}

/// A policy for cores that are shared by all of a test.
pub const POLITE: WaitPolicy = WaitPolicy::new().spins(100).yields(10).sleep(Some(Duration::from_millis(20)));

/// Answers with two threads.
fn serve(stop: &AtomicBool) {
    let (server, workers) = domain().server_with("calls", ServerOptions::new().workers(2)).unwrap();
    say("ready");
    std::thread::scope(|scope| {
        for mut worker in workers {
            scope.spawn(move || worker.run(&mut echo, &POLITE, stop));
        }
    });
    drop(server);
    say("counted 0 errors 0");
}

/// Calls an honest and a hostile server.
fn call(stop: &AtomicBool) {
    let domain = domain();
    let options = ClientOptions::new().wait(POLITE);
    let (mut good, mut evil) = (domain.client_with("good", options.clone()).unwrap(), None);
    say("ready");
    let (mut next, mut errors, mut answer) = (0, 0_u64, Vec::new());
    while !stop.load(Ordering::Relaxed) {
        if evil.is_none() {
            evil = domain.client_with("evil", options.clone()).ok();
        }
        let deadline = Some(Deadline::after(2 * MOMENT));
        let asked = honest(next).repeat(1 + (next % 3) as usize * 20);
        let called = evil.as_mut().map(|evil| {
            // A client that has lost its server looks for the next one when it is polled.
            if evil.loss().is_some() {
                drop(evil.poll());
            }
            evil.call(Method(1), &asked, &mut answer, deadline)
        });
        errors += u64::from(called.is_some_and(|called| called.is_err()));
        good.call(Method(1), &asked, &mut answer, Some(Deadline::after(WATCHDOG))).unwrap();
        assert_eq!(answer, asked, "answer {next} of the honest server");
        next += 1;
    }
    say(&format!("counted {next} errors {errors}"));
}

/// `beeline kv serve` with two workers.
fn store(stop: &AtomicBool) {
    let options = KvOptions { max_memory_bytes: 1 << 20, ..KvOptions::default() };
    let services = KvService::open(2, options).unwrap();
    let (server, workers) = domain().server_with("store", ServerOptions::new().workers(2)).unwrap();
    say("ready");
    std::thread::scope(|scope| {
        for (mut service, mut worker) in services.into_iter().zip(workers) {
            scope.spawn(move || worker.run(&mut service, &POLITE, stop));
        }
    });
    drop(server);
    say("counted 0 errors 0");
}
