//! Handshakes of peers that keep no rule, on both sides: every kind of descriptor that is not the memory it stands for, requests and
//! answers that make no sense, connections that say half of it. Each is refused, and leaves no descriptor, mapping or thread behind.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../e2e_support/mod.rs"]
mod e2e_support;

mod clients;
mod descriptors;
mod owners;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline::{Domain, PortOptions, ReceiverOptions, WaitPolicy};
use beeline_nic_process::{NicProcess, NicProcessConfig};
use e2e_support::held::Held;
use e2e_support::{Role, domain_config, own_role, say, stop_flag};

#[test]
#[ignore = "a role of the other tests, not a test"]
fn role() {
    match own_role().as_deref() {
        Some("victim") => offer_everything(stop_flag()),
        other => panic!("no role {other:?}"),
    }
}

/// Gives the core away.
pub const POLITE: WaitPolicy = WaitPolicy::new().spins(50).yields(5).sleep(Some(Duration::from_millis(20)));

/// Offers a window, calls and a NIC, and serves whoever makes sense.
fn offer_everything(stop: &'static AtomicBool) {
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("a victim panicked: {panic}");
        std::process::abort();
    }));
    let config = NicProcessConfig { domain: domain_config(), idle: POLITE, ..NicProcessConfig::default() };
    let mut nic = NicProcess::new(config).unwrap();
    let domain = Domain::open_in(domain_config().root.unwrap(), "e2e").unwrap();
    let mut receiver = domain.receiver_with("window", ReceiverOptions::new().lines(64)).unwrap();
    let (_server, mut worker) = domain.server("calls").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| nic.run(stop).unwrap());
        scope.spawn(|| worker.run(&mut clients::echo, &POLITE, stop));
        say("ready");
        while !stop.load(Ordering::Relaxed) {
            if let Ok(Some(message)) = receiver.recv_timeout(Duration::from_millis(5)) {
                assert_eq!(message.to_vec(), b"honest");
                say("received");
            }
        }
    });
}

/// Waits until a process holds no more than before.
fn settle(process: u32, before: Held) {
    let begun = std::time::Instant::now();
    while !Held::by(process).is_within(before) {
        assert!(
            begun.elapsed() < e2e_support::WATCHDOG,
            "{:?} is left, {before:?} was before",
            Held::by(process)
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A message, a call and a port by peers that keep the rules.
fn everything_works(victim: &mut Role, domain: &Domain) {
    let mut sender = domain.sender_timeout("window", e2e_support::WATCHDOG).unwrap();
    sender.send(b"honest").unwrap();
    victim.expect("received");
    let mut client = domain.client_timeout("calls", e2e_support::WATCHDOG).unwrap();
    let mut answer = Vec::new();
    client.call(beeline::rpc::Method(1), b"honest", &mut answer, None).unwrap();
    assert_eq!(answer, b"honest");
    let port = domain.port_with("nic", PortOptions::new().wait(POLITE).timeout(e2e_support::WATCHDOG));
    port.unwrap().send(&[0xff; 60]).unwrap();
}

#[test]
fn no_handshake_of_a_client_does_harm_or_leaves_anything() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Role::start("victim", folder.path(), &[]);
    victim.expect("ready");
    let domain = Domain::open_in(folder.path(), "e2e").unwrap();
    let process = victim.pid();
    // Twice: what begins with the first peer is there before anything is counted.
    everything_works(&mut victim, &domain);
    clients::attack(folder.path());
    everything_works(&mut victim, &domain);
    std::thread::sleep(Duration::from_millis(100));
    let before = Held::by(process);
    println!("{before:?}");
    clients::attack(folder.path());
    settle(process, before);
    everything_works(&mut victim, &domain);
    settle(process, before);
    victim.end();
}

#[test]
fn no_handshake_of_an_owner_does_harm_or_leaves_anything() {
    let folder = tempfile::tempdir().unwrap();
    let domain = e2e_support::domain_at(folder.path());
    owners::attack(&domain);
    let before = Held::by(std::process::id());
    println!("{before:?}");
    owners::attack(&domain);
    settle(std::process::id(), before);
}
