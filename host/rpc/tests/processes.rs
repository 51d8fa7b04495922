//! Servers and clients that are killed under load: whatever was outstanding ends, nothing is executed twice, and nobody
//! else notices. Processes are this program, started again with a role.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use beeline_domain::{Domain, DomainConfig};
use beeline_rpc::shm::{ClientOptions, ServerOptions};
use beeline_rpc::{CallError, CallId, Replied, Reply, Request, Started, WaitPolicy};
use support::*;

const ROLE: &str = "BEELINE_RPC_TEST_ROLE";
const FOLDER: &str = "BEELINE_RPC_TEST_FOLDER";

/// Kills in each test; the long lane asks for more.
fn rounds() -> u64 {
    std::env::var("BEELINE_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(8)
}

struct Killed(Child);

impl Killed {
    fn start(role: &str, folder: &TestFolder) -> Self {
        let program = std::env::current_exe().unwrap();
        let child = Command::new(program)
            .args(["--exact", "a_role_of_another_process", "--nocapture"])
            .env(ROLE, role)
            .env(FOLDER, folder.folder.path())
            .spawn()
            .unwrap();
        Killed(child)
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have failed by itself; then the test has noticed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a test of its own: what the other processes run.
#[test]
fn a_role_of_another_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let folder = std::path::PathBuf::from(std::env::var(FOLDER).unwrap());
    let domain = Domain::open(&DomainConfig { root: Some(folder.clone()), name: "calls".into() }).unwrap();
    match role.as_str() {
        "server" => serve_and_log(&domain, &folder),
        "client" => call_for_ever(&domain),
        other => panic!("no role {other}"),
    }
}

/// Echoes, and writes down each request's number before it answers.
fn serve_and_log(domain: &Domain, folder: &std::path::Path) {
    let mut log =
        std::fs::OpenOptions::new().create(true).append(true).open(folder.join("executed")).unwrap();
    let mut echo = |request: &mut Request<'_>, reply: Reply<'_>| -> Replied {
        log.write_all(&request.word(0).to_le_bytes()).unwrap();
        handle(request, reply)
    };
    let options = ServerOptions { request_lines: 64, ..ServerOptions::default() };
    let (_server, mut workers) = loop {
        // The name of a server that was just killed is given up when the kernel has seen to it.
        match beeline_rpc::shm::Server::offer(domain, "echo", options.clone()) {
            Ok(server) => break server,
            Err(_) => std::thread::yield_now(),
        }
    };
    workers[0].run(&mut echo, &WaitPolicy::default(), &AtomicBool::new(false));
}

/// Calls of all lengths without end.
fn call_for_ever(domain: &Domain) {
    let mut client = client(domain, ClientOptions { reply_lines: 64, ..ClientOptions::default() });
    let payload: Vec<u8> = (0..30_000).map(filling).collect();
    for bytes in [8, 56, 200, 3000, 30_000].into_iter().cycle() {
        let _ = client.start(ECHO, &payload[..bytes], None).unwrap();
        drop(client.poll());
    }
}

#[test]
fn server_killed_under_load_ends_every_call_once_and_repeats_none() {
    if std::env::var(ROLE).is_ok() {
        return;
    }
    let folder = TestFolder::new();
    let domain = folder.domain();
    let mut process = Killed::start("server", &folder);
    let begun = Instant::now();
    let options = || ClientOptions { max_outstanding: 64, reply_lines: 64, ..ClientOptions::default() };
    let mut client = loop {
        match beeline_rpc::shm::Client::connect(&domain, "echo", options()) {
            Ok(client) => break client,
            Err(error) => assert!(begun.elapsed() < WATCHDOG, "{error}"),
        }
    };
    let mut outstanding: HashMap<CallId, (u64, Vec<u8>)> = HashMap::new();
    let (mut answered, mut unsent, mut lost, mut next) = (HashSet::new(), HashSet::new(), 0u64, 1u64);
    let mut kills = 0;
    let (mut kill_at, begun) = (300, Instant::now());
    while kills < rounds() || !outstanding.is_empty() {
        assert!(begun.elapsed() < WATCHDOG * 4, "{} calls do not end", outstanding.len());
        if kills < rounds() {
            let mut asked = next.to_le_bytes().to_vec();
            asked.resize([8, 60, 1000, 5000][(next % 4) as usize], next as u8);
            if let Ok(Started::Call(id)) = client.start(ECHO, &asked, None) {
                assert!(outstanding.insert(id, (next, asked)).is_none());
                next += 1;
            }
        }
        match client.poll() {
            None => std::thread::yield_now(),
            Some(completion) => {
                let (number, asked) = outstanding.remove(&completion.id).expect("a call ends once");
                match completion.result {
                    Ok(mut body) => {
                        assert_eq!(body.to_vec(), asked);
                        answered.insert(number);
                    }
                    Err(CallError::ServerGone { was_sent, .. }) => {
                        lost += 1;
                        if !was_sent {
                            unsent.insert(number);
                        }
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        }
        if kills < rounds() && answered.len() >= kill_at {
            kill_at = answered.len() + 250 + 37 * kills as usize;
            kills += 1;
            drop(process);
            process = Killed::start("server", &folder);
        }
    }
    let log = std::fs::read(folder.folder.path().join("executed")).unwrap();
    let executed: Vec<u64> = log.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    let once: HashSet<u64> = executed.iter().copied().collect();
    assert_eq!(once.len(), executed.len(), "a request was executed twice");
    assert!(answered.is_subset(&once), "an answer without an execution");
    assert!(unsent.is_disjoint(&once), "a request that was not sent whole was executed");
    assert_eq!(answered.len() as u64 + lost, next - 1, "every call ended once");
    println!("{} answered, {lost} lost in {kills} kills, {} of them not sent", answered.len(), unsent.len());
}

#[test]
fn clients_killed_under_load_cost_the_others_nothing() {
    if std::env::var(ROLE).is_ok() {
        return;
    }
    let folder = TestFolder::new();
    let domain = folder.domain();
    let options = ServerOptions { workers: 2, request_lines: 64, ..ServerOptions::default() };
    let (_server, workers) = server(&domain, options);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads: Vec<_> = workers
            .into_iter()
            .map(|mut worker| {
                let stop = &stop;
                scope.spawn(move || {
                    let policy =
                        WaitPolicy::new().spins(10).yields(100).sleep(Some(Duration::from_millis(5)));
                    worker.run(&mut handle, &policy, stop);
                    worker
                })
            })
            .collect();
        let mut survivor = client(&domain, ClientOptions::default());
        let mut answer = Vec::new();
        for round in 0..rounds() {
            let killed = [Killed::start("client", &folder), Killed::start("client", &folder)];
            // Until the two are at it: a process that was just started needs longer than a few calls take.
            let begun = Instant::now();
            let mut number = 0u64;
            while begun.elapsed() < Duration::from_millis(60 + 7 * round) {
                number += 1;
                let asked = [number.to_le_bytes(), round.to_le_bytes()].concat();
                survivor.call(ECHO, &asked, &mut answer, None).unwrap();
                assert_eq!(answer, asked);
            }
            drop(killed);
        }
        stop.store(true, Ordering::Relaxed);
        let mut workers: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let begun = Instant::now();
        while workers.iter().any(|worker| worker.clients() != 1) {
            for worker in &mut workers {
                worker.poll(&mut handle);
            }
            assert!(begun.elapsed() < WATCHDOG, "the dead are still served");
        }
        assert_eq!(ask(&mut survivor, &mut workers, ECHO, b"alive"), Ok(b"alive".to_vec()));
    });
}
