//! A NIC that sleeps whenever it may, and a host that sleeps for every frame: no store is ever missed.
//!
//! Both sleep a second at most, and a second is never short of a message here: whoever wakes by that limit and then
//! finds something has lost a wake-up, and counts it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod e2e_support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline_driver::{
    CoherentConfig, CreditCoalescing, MmioConfig, Receive, RxCoherentConfig, Sent, Transmit,
};
use beeline_link_shm::ShmOptions;
use beeline_mmio::StoreKernel;
use beeline_nic_process::Statistics;
use beeline_spec::Interface;
use e2e_support::station::Station;
use e2e_support::{Role, argument, domain_at, frames, own_role, run_nic, say, stop_flag};

const ROUNDS: u64 = 3000;

#[test]
#[ignore = "a role of the other tests, not a test"]
fn role() {
    match own_role().as_deref() {
        Some("nic") => run_nic(),
        Some("pinger") => ping(),
        other => panic!("no role {other:?}"),
    }
}

/// Sends a frame, sleeps until it is back, checks it; again and again.
fn ping() {
    let stop = stop_flag();
    let kernel: StoreKernel = argument("KERNEL").map_or(StoreKernel::Cached, |name| name.parse().unwrap());
    let options = ShmOptions { loop_back: true, kernel, ..ShmOptions::default() };
    let mut station = Station::open(&options, stop).unwrap();
    if argument("INTERFACE").as_deref() == Some(Interface::Coherent.name()) {
        // Nothing but lines of memory passes: their stores must wake the NIC as windows and doorbells do.
        let rx = station.port.rx_coherent(0, RxCoherentConfig::default());
        let rx = station.open_queue(rx).unwrap();
        let tx = station.port.coherent(1, CoherentConfig::default());
        let tx = station.open_queue(tx).unwrap();
        return ping_with(station, tx, rx, stop);
    }
    let rx = station.ring().unwrap();
    // Credits as seldom as possible, so that no timer of the device wakes the NIC.
    let credits = CreditCoalescing { lines: 0, time_ns: u32::MAX };
    let half = station.port.mmio(1, MmioConfig { random: 77, credits, ..MmioConfig::default() });
    let tx = station.open_queue(half).unwrap();
    ping_with(station, tx, rx, stop);
}

fn ping_with(mut station: Station, mut tx: impl Transmit, mut rx: impl Receive, stop: &AtomicBool) {
    let mut sleeper = station.port.link().sleeper().unwrap();
    let (mut frame, mut expected, mut got) = (Vec::new(), Vec::new(), Vec::new());
    let mut lost = 0u64;
    for number in 0..ROUNDS {
        frames::write(&mut frame, 1, 1, frames::Label { life: 1, number }, 1);
        while tx.try_send(&frame).unwrap() == Sent::Full {
            tx.progress().unwrap();
        }
        loop {
            let limit = Duration::from_secs(1);
            let slept = sleeper
                .sleep(limit, || rx.poll().unwrap().map(|mut frame| frame.copy_to(&mut got)).is_some());
            if slept == beeline_domain::Slept::Ready {
                break;
            }
            let Some(mut frame) = rx.poll().unwrap() else { continue };
            frame.copy_to(&mut got);
            lost += u64::from(slept == beeline_domain::Slept::TimedOut);
            break;
        }
        let label = frames::check(&got, &mut expected, 1);
        assert_eq!(label.number, number);
    }
    say(&format!("lost {lost}"));
    while !stop.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
}

#[test]
fn no_wake_up_is_lost_between_two_sleepers() {
    let pairs = [
        (Interface::Mmio, StoreKernel::Cached),
        (Interface::Mmio, StoreKernel::Nt8),
        (Interface::Coherent, StoreKernel::Cached),
    ];
    for (interface, kernel) in pairs {
        if kernel != StoreKernel::Cached && !StoreKernel::available().contains(&kernel) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let nic = Role::nic_with(folder.path(), &[("IDLE", "sleep")]);
        let mut pinger = Role::start(
            "pinger",
            folder.path(),
            &[("KERNEL", &kernel.to_string()), ("INTERFACE", interface.name())],
        );
        let lost: u64 = pinger.expect("lost").parse().unwrap();
        assert_eq!(lost, 0, "{interface}, {kernel}: the host slept while its frame was there");
        let statistics = Statistics::fetch(&domain_at(folder.path()), "nic").unwrap();
        let wakes: u64 = statistics.ports.iter().map(|port| port.link.host_wakes).sum();
        println!(
            "{interface}, {kernel}: {ROUNDS} rounds, the NIC slept {} times, hosts were woken {wakes} times",
            statistics.rounds.sleeps
        );
        assert_eq!(
            statistics.rounds.slept_through, 0,
            "{interface}, {kernel}: the NIC slept while stores were there"
        );
        assert!(statistics.rounds.sleeps > 0 && wakes > 0, "both sides slept: {:?}", statistics.rounds);
        pinger.end();
        nic.end();
    }
}
