//! Several threads of a server share several clients' requests; clients that break the rules or sleep.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use beeline_rpc::shm::{ClientOptions, ServerOptions};
use beeline_rpc::{Replied, Reply, Request, Started, WaitPolicy};
use support::*;

/// How long the processors that a test has may be busy for one of its calls.
fn calls() -> u64 {
    std::env::var("BEELINE_RPC_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(4000)
}

fn shared(workers: usize) -> ServerOptions {
    ServerOptions { workers, request_lines: 64, ..ServerOptions::default() }
}

/// Every client sends calls of all lengths, as many at a time as it may, and checks each end.
fn load(domain: &beeline_domain::Domain, seed: u64, executed: &AtomicU64) {
    let options = ClientOptions { max_outstanding: 32, reply_lines: 64, ..ClientOptions::default() };
    let mut client = client(domain, options);
    let (mut begun, mut ended, mut next) = (HashMap::new(), 0, 0u64);
    while ended < calls() {
        if next < calls() {
            let bytes = [8, 40, 56, 100, 900, 9000][((next * 7 + seed) % 6) as usize];
            let mut asked: Vec<u8> = (0..bytes).map(|index| filling(index + next as usize)).collect();
            asked[..8].copy_from_slice(&(seed << 32 | next).to_le_bytes());
            if let Started::Call(id) = client.start(ECHO, &asked, None).unwrap() {
                assert!(begun.insert(id, asked).is_none(), "seed {seed}: an outstanding call's number again");
                next += 1;
                continue;
            }
        }
        match client.poll() {
            Some(completion) => {
                assert_eq!(
                    Some(completion.result.unwrap().to_vec()),
                    begun.remove(&completion.id),
                    "seed {seed}"
                );
                ended += 1;
            }
            // More threads than cores: whoever has nothing to do lets the others.
            None => std::thread::yield_now(),
        }
    }
    assert!(begun.is_empty());
    executed.fetch_add(ended, Ordering::Relaxed);
}

#[test]
fn each_call_of_each_client_is_answered_once_whoever_takes_it() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    for workers in [1, 3] {
        let (_server, workers) = server(&domain, shared(workers));
        let (stop, handled, ended) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for mut worker in workers {
                let (stop, handled) = (&stop, &handled);
                scope.spawn(move || {
                    let mut count = |request: &mut Request<'_>, reply: Reply<'_>| -> Replied {
                        handled.fetch_add(1, Ordering::Relaxed);
                        handle(request, reply)
                    };
                    let policy =
                        WaitPolicy::new().spins(10).yields(1000).sleep(Some(Duration::from_millis(5)));
                    worker.run(&mut count, &policy, stop);
                });
            }
            let clients: Vec<_> = (1..=3)
                .map(|seed| {
                    scope.spawn({
                        let (domain, ended) = (&domain, &ended);
                        move || load(domain, seed, ended)
                    })
                })
                .collect();
            let results: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
            stop.store(true, Ordering::Relaxed);
            results.into_iter().for_each(|result| result.unwrap());
        });
        assert_eq!(handled.into_inner(), 3 * calls(), "as many requests as calls were executed");
        assert_eq!(ended.into_inner(), 3 * calls());
    }
}

#[test]
fn a_thread_opens_its_reply_window_on_first_use() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (_server, mut workers) = server(&domain, shared(2));
    let mut client = client(&domain, ClientOptions::default());
    // Only the second thread is polled: it finds work, has no window to answer into, asks for one and gets it.
    let id = start(&mut client, ECHO, b"for the second");
    let begun = Instant::now();
    let answer = loop {
        workers[1].poll(&mut handle);
        if let Some(completion) = client.poll() {
            assert_eq!(completion.id, id);
            break completion.result.unwrap().to_vec();
        }
        assert!(begun.elapsed() < WATCHDOG);
    };
    assert_eq!(answer, b"for the second");
    assert_eq!(ask(&mut client, &mut workers, ECHO, b"for either"), Ok(b"for either".to_vec()));
}

#[test]
fn request_in_parts_is_served_by_one_thread_beside_other_clients() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (_server, mut workers) = server(&domain, ServerOptions { request_lines: 16, ..shared(2) });
    let mut long = client(&domain, ClientOptions::default());
    let mut short = client(&domain, ClientOptions::default());
    // Both threads have answered both clients, so nobody waits for a window.
    for client in [&mut long, &mut short] {
        for worker in &mut workers {
            let id = start(client, ECHO, b"x");
            let begun = Instant::now();
            loop {
                worker.poll(&mut handle);
                if client.poll().is_some_and(|completion| completion.id == id) {
                    break;
                }
                assert!(begun.elapsed() < WATCHDOG);
            }
        }
    }
    let asked: Vec<u8> = (0..5000).map(filling).collect();
    let id = start(&mut long, ECHO, &asked);
    assert!(workers[0].poll(&mut handle) > 0, "the first thread takes the first part");
    let other = start(&mut short, ECHO, b"meanwhile");
    let only_second = &mut workers[1..];
    assert_eq!(next_end(&mut short, only_second), (other, Ok(b"meanwhile".to_vec())));
    assert!(long.poll().is_none());
    assert_eq!(next_end(&mut long, &mut workers), (id, Ok(asked)));
}

#[test]
fn both_sides_sleep_and_wake_each_other() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (_server, workers) = server(&domain, shared(2));
    // They sleep at once, for longer than the test may take.
    let policy = WaitPolicy::new().spins(0).yields(0).sleep(Some(WATCHDOG));
    let mut client = client(&domain, ClientOptions { policy, ..ClientOptions::default() });
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for mut worker in workers {
            let stop = &stop;
            scope.spawn(move || worker.run(&mut handle, &policy, stop));
        }
        let mut answer = Vec::new();
        for number in 0..200u64 {
            client.call(ECHO, &number.to_le_bytes(), &mut answer, None).unwrap();
            assert_eq!(answer, number.to_le_bytes());
        }
        stop.store(true, Ordering::Relaxed);
        // A client that goes wakes everybody.
        drop(client);
    });
}

/// The kernel takes 128 words for one sleep.
#[test]
fn thread_sleeps_and_is_woken_however_many_clients_it_has() {
    const SLEEP: Duration = Duration::from_millis(100);
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (_server, mut workers) = server(&domain, shared(1));
    let options = ClientOptions { reply_lines: 64, ..ClientOptions::default() };
    let mut clients: Vec<_> = (0..140).map(|_| client(&domain, options.clone())).collect();
    while workers[0].clients() < clients.len() {
        assert_eq!(workers[0].poll(&mut handle), 0);
    }
    // What signals from the connecting are left end a sleep or two.
    let sleeps = (0..10).map(|_| {
        let begun = Instant::now();
        workers[0].sleep(SLEEP);
        begun.elapsed()
    });
    assert!(sleeps.max() >= Some(SLEEP), "nobody has anything for it");
    let policy = WaitPolicy::new().spins(0).yields(0).sleep(Some(WATCHDOG));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = &stop;
        workers.into_iter().for_each(|mut worker| {
            scope.spawn(move || worker.run(&mut handle, &policy, stop));
        });
        let mut answer = Vec::new();
        for (number, client) in (0u64..).zip(&mut clients) {
            client.call(ECHO, &number.to_le_bytes(), &mut answer, None).unwrap();
            assert_eq!(answer, number.to_le_bytes());
        }
        stop.store(true, Ordering::Relaxed);
        drop(clients);
    });
}

#[test]
fn a_client_that_sends_garbage_is_disconnected_and_the_others_are_not() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (_server, mut workers) = server(&domain, shared(1));
    let mut good = client(&domain, ClientOptions::default());
    for garbage in support::hostile::GARBAGE {
        let mut hostile = support::hostile::Hostile::connect(&domain, "echo");
        hostile.send(garbage);
        let begun = Instant::now();
        while hostile.is_connected() {
            workers[0].poll(&mut handle);
            assert!(begun.elapsed() < WATCHDOG, "{garbage:?} is taken for a request");
        }
        assert_eq!(ask(&mut good, &mut workers, ECHO, b"still here"), Ok(b"still here".to_vec()));
    }
    assert_eq!(workers[0].clients(), 1);
}
