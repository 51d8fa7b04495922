//! No allocation for a message, on the host's side and in the NIC's loop: a hundred times as many messages allocate
//! as often, but for the ports' departures.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod e2e_support;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use beeline_contract_memory::WaitPolicy;
use beeline_domain::DomainConfig;
use beeline_driver::{DescriptorConfig, KpioConfig, MmioConfig, Receive, Sent, Transmit};
use beeline_link_shm::ShmOptions;
use beeline_nic_process::{NicProcess, NicProcessConfig};
use e2e_support::station::{Ring, Station};

const FEW: u64 = 500;
const MANY: u64 = 50_000;

fn exchange(tx: &mut impl Transmit, rx: &mut Ring, count: u64) {
    let mut frame = [0x5a; 200];
    // From a station to another, so that a switch lets it pass.
    (frame[0], frame[6]) = (2, 4);
    let (mut sent, mut received) = (0, 0);
    while received < count {
        if sent < count && tx.try_send(&frame).unwrap() == Sent::Sent {
            sent += 1;
        } else {
            tx.progress().unwrap();
            std::thread::yield_now();
        }
        while let Some(frame) = rx.poll().unwrap() {
            assert_eq!(frame.len(), 200);
            received += 1;
        }
    }
}

/// Sends and receives `count` frames by every interface; how often the host's thread allocated meanwhile.
fn host(root: &Path, loop_back: bool, count: u64) -> u64 {
    let never = AtomicBool::new(false);
    let config = DomainConfig { root: Some(root.to_owned()), name: "e2e".into() };
    let options = ShmOptions { loop_back, ..ShmOptions::default() };
    let mut station = Station::open_in(&config, &options, &never).unwrap();
    let mut peer = (!loop_back).then(|| Station::open_in(&config, &ShmOptions::default(), &never).unwrap());
    let mut rx = peer.as_mut().unwrap_or(&mut station).ring().unwrap();
    let half = station.port.mmio(1, MmioConfig { random: 3, ..MmioConfig::default() });
    let mut mmio = station.open_queue(half).unwrap();
    let half = station.port.kpio(2, KpioConfig { random: 3, ..KpioConfig::default() });
    let mut kpio = station.open_queue(half).unwrap();
    let half = station.port.descriptor(3, DescriptorConfig::default());
    let mut descriptor = station.open_queue(half).unwrap();
    let allocated = allocation_counter::measure(|| {
        exchange(&mut mmio, &mut rx, count);
        exchange(&mut kpio, &mut rx, count);
        exchange(&mut descriptor, &mut rx, count);
    });
    allocated.count_total
}

/// How often a NIC's loop allocates in a life in which `count` frames pass by every interface, the coming and going of
/// ports included.
fn nic(loop_back: bool, count: u64) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    let config = NicProcessConfig {
        domain: DomainConfig { root: Some(root.clone()), name: "e2e".into() },
        idle: WaitPolicy::new().spins(100).yields(0).sleep(None),
        ..NicProcessConfig::default()
    };
    let mut process = NicProcess::new(config).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A port that comes after the others have gone is attached when their departures have been served, which cost
        // the loop some sixty allocations each; its own comes after the end.
        let last = scope.spawn(|| {
            assert_eq!(host(&root, loop_back, count), 0, "allocations by the host");
            let config = DomainConfig { root: Some(root.clone()), name: "e2e".into() };
            let last = Station::open_in(&config, &ShmOptions::default(), &AtomicBool::new(false)).unwrap();
            stop.store(true, Ordering::Relaxed);
            last
        });
        let allocated = allocation_counter::measure(|| {
            process.run(&stop).unwrap();
        });
        drop(last.join().unwrap());
        allocated.count_total
    })
}

#[test]
fn a_message_allocates_nothing_on_either_side() {
    for loop_back in [true, false] {
        let (few, many) = (nic(loop_back, FEW), nic(loop_back, MANY));
        println!("loop back {loop_back}: {few} allocations with {FEW} frames, {many} with {MANY}");
        // How commands are grouped is up to timing.
        assert!(many < few + 50, "{few} allocations with {FEW} frames, {many} with {MANY}");
        assert!(few > 0, "the counter counts");
    }
}
