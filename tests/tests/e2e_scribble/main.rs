//! Peers that scribble over all the memory that they share, at several intensities, while they go on as honest peers do: the other
//! side neither panics nor hangs nor grows, an honest peer beside them gets every byte right, and the next one is served.
//!
//! A second for each campaign; `BEELINE_SCRIBBLE_MS` asks for another time. Seeds are printed and taken back from `BEELINE_SEED`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../e2e_support/mod.rs"]
mod e2e_support;

mod arenas;
mod attackers;
mod scribbler;
mod victims;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use beeline::rpc::{Client, Deadline, Method};
use beeline::{ClientOptions, Domain, NicPort, PortOptions, ReceiverOptions, SenderOptions};
use beeline_kv::{Key, KvClient};
use beeline_spec::Interface;
use e2e_support::held::Held;
use e2e_support::{Role, WATCHDOG, domain_at, number, own_role, run_nic};
use victims::{POLITE, honest};

/// What a process may need beyond what it had when the attack began.
const MOST_MORE_KIB: u64 = 64 << 10;
/// Far fewer than there are connections in an attack.
const MOST_MORE_FDS: usize = 4;

#[test]
#[ignore = "a role of the other tests, not a test"]
fn role() {
    match own_role().as_deref() {
        Some("nic") => run_nic(),
        Some("victim") => victims::run(),
        Some("attacker") => attackers::run(),
        other => panic!("no role {other:?}"),
    }
}

fn lasts() -> Duration {
    Duration::from_millis(number("BEELINE_SCRIBBLE_MS").unwrap_or(1000))
}

/// Does honest steps while an attacker scribbles, and ends the attacker: the victim is no larger than before.
fn attacked(victim: &Role, root: &Path, attacker: &[(&str, &str)], mut honest: impl FnMut()) {
    honest();
    let before = Held::by(victim.pid());
    let mut attack = Role::start("attacker", root, attacker);
    let begun = Instant::now();
    // The victim may wait for its honest peer, and the attacker for the victim.
    while attack.try_expect("scribbles").is_none() {
        assert!(begun.elapsed() < WATCHDOG, "the attacker does not begin");
        honest();
    }
    let begun = Instant::now();
    while begun.elapsed() < lasts() {
        honest();
    }
    attack.hang_up();
    println!("{attacker:?}: stores, connections, holes: {}", attack.expect("done"));
    attack.end();
    let begun = Instant::now();
    loop {
        honest();
        let now = Held::by(victim.pid());
        if now.resident_kib < before.resident_kib + MOST_MORE_KIB && now.fds <= before.fds + MOST_MORE_FDS {
            return;
        }
        assert!(begun.elapsed() < WATCHDOG, "{now:?} after the attack, {before:?} before");
    }
}

/// Ends a victim: it has counted as much from its honest peer as that one has sent.
fn end(mut victim: Role, sent: Option<u64>) {
    victim.hang_up();
    let said = victim.expect("counted");
    println!("the victim counted {said}");
    let counted: u64 = said.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(counted, sent.unwrap_or(counted));
    victim.end();
}

struct Campaign {
    folder: tempfile::TempDir,
    domain: Domain,
}

impl Campaign {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let domain = Domain::open_in(folder.path(), "e2e").unwrap();
        Campaign { folder, domain }
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn victim(&self, kind: &str) -> Role {
        Role::start("victim", self.root(), &[("VICTIM", kind)])
    }
}

#[test]
fn sender_that_scribbles_leaves_its_receiver_and_another_sender_whole() {
    let campaign = Campaign::new();
    let mut victim = campaign.victim("receiver");
    victim.expect("ready");
    let mut good = campaign.domain.sender_with("good", SenderOptions::new().wait(POLITE)).unwrap();
    let mut sent = 0;
    attacked(&victim, campaign.root(), &[("ATTACKER", "sender")], || {
        good.send(&honest(sent)).unwrap();
        sent += 1;
    });
    // The next sender of the window that was scribbled over is served.
    let mut next = campaign.domain.sender_timeout("evil", WATCHDOG).unwrap();
    next.send(b"from somebody else").unwrap();
    assert_eq!(next.flush(WATCHDOG).unwrap(), beeline::Flushed::All);
    drop((good, next));
    end(victim, Some(sent));
}

#[test]
fn receiver_that_scribbles_leaves_its_sender_and_another_receiver_whole() {
    let campaign = Campaign::new();
    let mut good = campaign.domain.receiver_with("good", ReceiverOptions::new().wait(POLITE)).unwrap();
    let mut victim = campaign.victim("sender");
    victim.expect("ready");
    let mut received = 0;
    attacked(&victim, campaign.root(), &[("ATTACKER", "receiver")], || {
        while let Some(message) = good.recv_timeout(Duration::from_millis(1)).unwrap() {
            assert_eq!(message.to_vec(), honest(received), "message {received}");
            received += 1;
        }
    });
    let mut next = campaign.domain.receiver("evil").unwrap();
    assert_eq!(next.recv().unwrap().to_vec(), [7; 200], "the victim sends to the next receiver");
    victim.hang_up();
    while let Ok(message) = good.recv() {
        assert_eq!(message.to_vec(), honest(received), "message {received}");
        received += 1;
    }
    end(victim, Some(received));
}

#[test]
fn sender_that_scribbles_over_a_byte_stream_leaves_its_reader_and_another_stream_whole() {
    let campaign = Campaign::new();
    let mut victim = campaign.victim("bytes");
    victim.expect("ready");
    let good = campaign.domain.sender_with("good", SenderOptions::new().wait(POLITE)).unwrap();
    let (mut good, mut sent) = (good.into_bytes(), 0);
    attacked(&victim, campaign.root(), &[("ATTACKER", "bytes")], || {
        good.write_all(&honest(sent)).unwrap();
        sent += 1;
    });
    good.shut_down().unwrap();
    assert_eq!(good.wait_acknowledged(WATCHDOG).unwrap(), beeline::Flushed::All);
    drop(good);
    end(victim, Some(sent));
}

fn client(campaign: &Campaign, name: &str) -> Client {
    let options = ClientOptions::new().wait(POLITE).timeout(WATCHDOG);
    campaign.domain.client_with(name, options).unwrap()
}

#[test]
fn client_that_scribbles_leaves_its_server_and_another_client_whole() {
    let campaign = Campaign::new();
    let mut victim = campaign.victim("server");
    victim.expect("ready");
    let (mut good, mut calls, mut answer) = (client(&campaign, "calls"), 0, Vec::new());
    attacked(&victim, campaign.root(), &[("ATTACKER", "client")], || {
        let asked = honest(calls).repeat(1 + (calls % 3) as usize * 20);
        good.call(Method(1), &asked, &mut answer, Some(Deadline::after(WATCHDOG))).unwrap();
        assert_eq!(answer, asked, "call {calls}");
        calls += 1;
    });
    drop((client(&campaign, "calls"), good));
    end(victim, None);
}

/// Ends a thread, also when the test fails.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn server_that_scribbles_leaves_its_client_and_another_server_whole() {
    let campaign = Campaign::new();
    let stop = AtomicBool::new(false);
    let (_server, mut worker) = campaign.domain.server("good").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| worker.run(&mut victims::echo, &POLITE, &stop));
        let _stop = Stops(&stop);
        let mut victim = campaign.victim("client");
        victim.expect("ready");
        let mut calls = client(&campaign, "good");
        attacked(&victim, campaign.root(), &[("ATTACKER", "server")], || {
            calls.call(Method(1), b"beside", &mut Vec::new(), Some(Deadline::after(WATCHDOG))).unwrap();
        });
        // The victim finds the next server by itself.
        let (_next, mut next) = campaign.domain.server("evil").unwrap();
        let begun = Instant::now();
        while next.poll(&mut victims::echo) == 0 {
            assert!(begun.elapsed() < WATCHDOG, "the victim does not come back");
            std::thread::yield_now();
        }
        end(victim, None);
    });
}

/// A value under one of a few keys that its writer alone knows.
fn set_and_get(client: &mut KvClient, turn: u64) {
    let deadline = || Some(Deadline::after(WATCHDOG));
    let key = Key::from_text(&format!("good {}", turn % 16)).unwrap();
    let (value, mut found) = (honest(turn), Vec::new());
    match client.set(key, &value, deadline()) {
        // The attacker may have filled the memory.
        Err(error) if error.to_string().contains("full") => return,
        set => set.unwrap(),
    }
    assert!(client.get(key, &mut found, deadline()).unwrap());
    assert_eq!(found, value, "turn {turn}");
}

#[test]
fn client_that_scribbles_leaves_the_store_and_the_keys_of_others_whole() {
    let campaign = Campaign::new();
    let mut victim = campaign.victim("store");
    victim.expect("ready");
    let below = domain_at(campaign.root());
    let mut good = KvClient::connect(&below, "store", Default::default()).unwrap();
    let mut turn = 0;
    attacked(&victim, campaign.root(), &[("ATTACKER", "store")], || {
        set_and_get(&mut good, turn);
        turn += 1;
    });
    set_and_get(&mut KvClient::connect(&below, "store", Default::default()).unwrap(), turn);
    end(victim, None);
}

/// Frames from each port to the other.
fn cross(ports: &mut [NicPort; 2], number: u64) {
    let macs = [ports[0].mac(), ports[1].mac()];
    for (from, to) in [(0, 1), (1, 0)] {
        let mut frame = [&macs[to][..], &macs[from], &[0x88, 0xb5]].concat();
        frame.extend(honest(number).repeat(8));
        frame.truncate(1500);
        ports[from].send(&frame).unwrap();
        loop {
            let mut found = Vec::new();
            ports[to].recv_timeout(WATCHDOG).unwrap().expect("no frame comes").copy_to(&mut found);
            // Others may send to everybody, and do not say that they are this one.
            if found[6..12] == macs[from] {
                break assert_eq!(found, frame, "frame {number}");
            }
        }
    }
}

#[test]
fn port_that_scribbles_leaves_the_nic_and_other_ports_whole() {
    let campaign = Campaign::new();
    let victim = Role::nic(campaign.root());
    let open = |_| campaign.domain.port_with("nic", PortOptions::new().wait(POLITE)).unwrap();
    let mut ports = [0, 1].map(open);
    let mut number = 0;
    for interface in Interface::ALL {
        let attacker = [("ATTACKER", "port"), ("INTERFACE", interface.name())];
        attacked(&victim, campaign.root(), &attacker, || {
            cross(&mut ports, number);
            number += 1;
        });
    }
    drop(ports);
    let mut next = [0, 1].map(open);
    cross(&mut next, number);
    drop(next);
    victim.end();
}
