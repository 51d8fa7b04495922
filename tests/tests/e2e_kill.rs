//! `kill -9` of the NIC, a sender or a receiver at random points: whoever is left goes on, whoever comes back is
//! served, nothing hangs and no wrong byte is ever received.
//!
//! 200 rounds; `BEELINE_KILL_ROUNDS` asks for another number. The seed is printed and taken back from `BEELINE_SEED`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod e2e_support;

use std::time::{Duration, Instant};

use beeline_nic_process::Statistics;
use beeline_tests::Random;
use e2e_support::{Role, WATCHDOG, domain_at, number, own_role, run_nic, seed, station, stop_flag};

#[test]
#[ignore = "a role of the other tests, not a test"]
fn role() {
    match own_role().as_deref() {
        Some("nic") => run_nic(),
        Some("sender") => station::run_sender(stop_flag()),
        Some("receiver") => station::run_receiver(stop_flag()),
        other => panic!("no role {other:?}"),
    }
}

/// Frames of the sender's present life arrive.
fn flows(sender: &mut Role, receiver: &mut Role, life: &mut String) {
    let begun = Instant::now();
    loop {
        let heard = receiver.expect("heard");
        // A sender that saw the NIC go begins another life by itself.
        while heard != *life {
            assert!(begun.elapsed() < WATCHDOG, "the receiver hears {heard}, the sender lives {life}");
            match sender.try_expect("life") {
                Some(next) => *life = next,
                None => break,
            }
        }
        if heard == *life {
            break;
        }
    }
    receiver.expect("frames");
}

#[test]
fn whoever_is_killed_the_others_go_on() {
    let rounds = number("BEELINE_KILL_ROUNDS").unwrap_or(200);
    let seed = seed();
    println!("{rounds} rounds with BEELINE_SEED={seed}");
    let mut random = Random::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let sender_of = |random: &mut Random| {
        let interface = ["mmio", "mmio", "descriptor"][random.below(3)];
        let kernel = ["cached", "nt8"][random.below(2)];
        Role::start("sender", root, &[("INTERFACE", interface), ("KERNEL", kernel)])
    };
    let receiver_of = || Role::start("receiver", root, &[("MAY_LOSE", "yes")]);
    let mut nic = Role::nic(root);
    let mut receiver = receiver_of();
    let mut sender = sender_of(&mut random);
    let mut life = sender.expect("life");
    let mut kills = [0u64; 3];
    for round in 0..rounds {
        // Mostly in the flow of frames, sometimes while things are still being opened.
        if random.below(4) != 0 {
            flows(&mut sender, &mut receiver, &mut life);
        }
        let victim = random.below(3);
        kills[victim] += 1;
        // Anywhere within a few milliseconds.
        let moment = Instant::now() + Duration::from_micros(random.below(5000) as u64);
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        println!("round {round}: kill {}", ["nic", "sender", "receiver"][victim]);
        match victim {
            0 => {
                nic.kill();
                nic = Role::nic(root);
                life = sender.expect("life");
            }
            1 => {
                sender.kill();
                sender = sender_of(&mut random);
                life = sender.expect("life");
            }
            _ => {
                receiver.kill();
                receiver = receiver_of();
            }
        }
    }
    flows(&mut sender, &mut receiver, &mut life);
    let statistics = Statistics::fetch(&domain_at(root), "nic").unwrap();
    println!("killed: nic {}, sender {}, receiver {}; {:?}", kills[0], kills[1], kills[2], statistics.rounds);
    assert_eq!(statistics.ports.len(), 2, "the dead have left");
    assert_eq!(statistics.rounds.ports_expelled, 0);
    sender.end();
    receiver.end();
    nic.end();
}
