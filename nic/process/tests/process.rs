//! A NIC process on a thread, hosts on another, a real domain between them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::time::{Duration, Instant};

use beeline_contract_link::{Link, LinkError};
use beeline_domain::{Absence, MayArrive};
use beeline_driver::{Sent, Transmit};
use beeline_ethernet::{Accept, PcapIn, PcapOut, Uplink};
use beeline_link_shm::{ShmLink, ShmOptions};
use beeline_mmio::{MemoryOptions, SharedMemory};
use beeline_nic_process::{NicProcess, NicProcessConfig, Statistics, StatisticsFeed, UplinkConfig};
use beeline_spec::formats::{port_device_memory as device_memory, port_host_memory as host};
use support::{Running, Station, WATCHDOG, config, domain, reasons};

#[test]
fn a_switch_learns_floods_and_never_sends_back() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let nic = Running::start(config(root));
    let mut stations: Vec<Station> =
        (1..=3).map(|address| Station::connect(root, address, false, 1024)).collect();
    // Unknown: everybody but the sender.
    let hello = stations[0].frame(2, 1, 60);
    stations[0].send(&hello);
    assert_eq!((stations[1].receive(), stations[2].receive()), (hello.clone(), hello));
    // Known: one.
    let answer = stations[1].frame(1, 2, 1514);
    stations[1].send(&answer);
    assert_eq!(stations[0].receive(), answer);
    let again = stations[0].frame(2, 3, 64);
    stations[0].send(&again);
    assert_eq!(stations[1].receive(), again);
    let all = stations[2].frame(0xff, 4, 9000);
    stations[2].send(&all);
    assert_eq!((stations[0].receive(), stations[1].receive()), (all.clone(), all));
    assert!(stations.iter_mut().all(|station| station.try_receive().is_none()));
    let (feed, first) = StatisticsFeed::open(&domain(root), "nic").unwrap();
    assert_eq!((first.ports.len(), first.switch.flooded, first.switch.forwarded), (3, 2, 2));
    assert!(first.ports.iter().all(|port| port.pid == std::process::id() && port.link.partial_writes == 0));
    assert_eq!(first.ports[0].device["tx_frames"], 2);
    // One leaves: it is forgotten, and the others go on.
    drop(stations.remove(1));
    let begun = Instant::now();
    while feed.next().unwrap().ports.len() != 2 {
        assert!(begun.elapsed() < WATCHDOG, "the port stays");
    }
    let lost = stations[0].frame(2, 5, 60);
    stations[0].send(&lost);
    assert_eq!(stations[1].receive(), lost, "an unknown station again: the frame floods");
    let last = nic.stop();
    assert_eq!((last.rounds.ports_opened, last.rounds.ports_departed, last.rounds.ports_expelled), (3, 1, 0));
    assert!(stations[0].port.link().is_device_gone());
    assert_eq!(stations[0].port.link().window(1).unwrap_err(), LinkError::DeviceGone);
}

#[test]
fn a_looped_back_port_has_its_frames_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    let nic = Running::start(config(folder.path()));
    let mut looped = Station::connect(folder.path(), 1, true, 1024);
    let mut other = Station::connect(folder.path(), 2, false, 1024);
    for number in 0..300u16 {
        let frame = looped.frame(2, number, 16 + 7 * usize::from(number));
        looped.send(&frame);
        assert_eq!(looped.receive(), frame);
    }
    let frame = other.frame(0xff, 1, 60);
    other.send(&frame);
    other.drain();
    assert!(looped.try_receive().is_none() && other.try_receive().is_none());
    assert_eq!(nic.stop().switch.looped_back, 300);
}

#[test]
fn a_full_receiver_holds_its_sender_back_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let nic = Running::start(config(folder.path()));
    let mut receiver = Station::connect(folder.path(), 2, false, 512);
    let mut sender = Station::connect(folder.path(), 1, false, 512);
    let (feed, _) = StatisticsFeed::open(&domain(folder.path()), "nic").unwrap();
    let (mut sent, mut received, mut answers, mut moved) = (0u16, 0u16, 0, Instant::now());
    // The receiver looks only when the sender is stuck, and for the first time when the NIC has said twice meanwhile that it holds
    // a frame back: window, pool and ring are all full then, however seldom the NIC's thread runs. Turns of this thread would not
    // tell: each of them takes as long as all other threads of the machine want to run.
    while received < 4000 {
        let frame = sender.frame(2, sent, 1000);
        if sent < 4000 && sender.tx.try_send(&frame).unwrap() == Sent::Sent {
            (sent, answers, moved) = (sent + 1, 0, Instant::now());
            continue;
        }
        sender.tx.progress().unwrap();
        std::thread::yield_now();
        assert!(moved.elapsed() < WATCHDOG, "stuck after {sent} sent and {received} received");
        if received == 0 && answers < 2 {
            answers += u32::from(feed.next().unwrap().switch.held > 0);
            continue;
        }
        while let Some(frame) = receiver.try_receive() {
            assert_eq!(frame, sender.frame(2, received, 1000), "frame {received}");
            (received, moved) = (received + 1, Instant::now());
        }
    }
    let last = nic.stop();
    assert!(last.switch.held > 0 && last.switch.dropped_full == 0, "{:?}", last.switch);
}

#[test]
fn without_losslessness_a_full_receiver_costs_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let nic = Running::start(NicProcessConfig { is_lossless: false, ..config(folder.path()) });
    let mut receiver = Station::connect(folder.path(), 2, false, 512);
    let mut sender = Station::connect(folder.path(), 1, false, 512);
    for number in 0..2000 {
        let frame = sender.frame(2, number, 1000);
        sender.send(&frame);
    }
    sender.drain();
    let mut received = 0;
    while receiver.try_receive().is_some() {
        received += 1;
    }
    let last = nic.stop();
    assert!(received > 0 && received < 2000);
    assert_eq!(last.switch.dropped_full + received, 2000, "every frame arrived or was counted");
}

#[test]
fn captures_are_played_in_and_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let (play, record) = (folder.path().join("in.pcap"), folder.path().join("out.pcap"));
    let mut capture = PcapOut::create(&play).unwrap();
    let frames: Vec<Vec<u8>> =
        (0..50u8).map(|i| [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9][..], &[i; 60]].concat()).collect();
    for frame in &frames {
        assert_eq!(capture.send(frame).unwrap(), Accept::Taken);
    }
    drop(capture);
    let uplinks = vec![UplinkConfig::PcapIn(play), UplinkConfig::PcapOut(record.clone())];
    let nic = Running::start(NicProcessConfig { uplinks, ..config(folder.path()) });
    let mut station = Station::connect(folder.path(), 1, false, 512);
    for frame in &frames {
        assert_eq!(&station.receive(), frame, "the capture waited for a receiver");
    }
    let answer = station.frame(9, 7, 99);
    station.send(&answer);
    station.drain();
    let last = nic.stop();
    assert!(last.uplinks[0].is_finished && last.uplinks[0].frames_in == 50);
    let mut recorded = PcapIn::open(&record).unwrap();
    let mut got = Vec::new();
    for expected in frames.iter().chain([&answer]) {
        assert!(recorded.poll(&mut got).unwrap());
        assert_eq!(&got, expected);
    }
    assert!(!recorded.poll(&mut got).unwrap());
}

#[test]
fn a_loop_back_up_link_answers_with_the_same_frames() {
    let folder = tempfile::tempdir().unwrap();
    let nic =
        Running::start(NicProcessConfig { uplinks: vec![UplinkConfig::Loopback], ..config(folder.path()) });
    let mut station = Station::connect(folder.path(), 1, false, 512);
    for number in 0..600 {
        let frame = station.frame(9, number, 700);
        station.send(&frame);
        assert_eq!(station.receive(), frame);
    }
    assert_eq!(nic.stop().switch.moved, 0);
}

#[test]
fn ports_have_an_end_and_their_numbers_are_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let nic = Running::start(NicProcessConfig { max_ports: 2, ..config(folder.path()) });
    let first = Station::connect(folder.path(), 1, false, 512);
    let _second = Station::connect(folder.path(), 2, false, 512);
    let refused = reasons(&ShmLink::connect(&domain(folder.path()), &ShmOptions::default()).unwrap_err());
    assert!(refused.contains("all 2 ports are open"), "{refused}");
    drop(first);
    let begun = Instant::now();
    let third = loop {
        match ShmLink::connect(&domain(folder.path()), &ShmOptions::default()) {
            Ok(link) => break link,
            Err(_) => assert!(begun.elapsed() < WATCHDOG, "the number never comes free"),
        }
    };
    assert_eq!(third.queues(), 16);
    drop(third);
    nic.stop();
}

#[test]
fn a_host_that_breaks_the_protocol_is_expelled_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let nic = Running::start(config(folder.path()));
    let mut sender = Station::connect(folder.path(), 1, false, 512);
    let mut receiver = Station::connect(folder.path(), 2, false, 512);
    let domain = domain(folder.path());
    for lie in 0..20u64 {
        let memory = SharedMemory::create("hostile", host::BYTES, MemoryOptions::default()).unwrap();
        let open = br#"{"request":"open","version":1,"loop_back":false}"#;
        let (connection, mut reply) = domain.connect("nic", open, &[memory.fd()]).unwrap();
        let bytes = (device_memory::BYTES + 16 * 64).next_multiple_of(4096);
        let region = SharedMemory::from_fd(reply.fds.remove(0), bytes).unwrap().map().unwrap();
        region.fill(device_memory::REGISTER_CHANNEL_OFFSET, 4096, 1 << 62 | lie);
        let closed = memory.map().unwrap().word(host::CLOSED_OFFSET);
        let begun = Instant::now();
        while closed.load() == 0 {
            // Whatever the liar does, frames pass between the others.
            let frame = sender.frame(2, lie as u16, 100);
            sender.send(&frame);
            assert_eq!(receiver.receive(), frame);
            assert!(begun.elapsed() < WATCHDOG, "the liar stays");
        }
        let refused = connection.call(br#"{"request":"window","queue":0,"is_cached":true}"#, &[]);
        assert!(refused.unwrap_err().to_string().contains("closed"));
    }
    let last = nic.stop();
    assert_eq!((last.rounds.ports_expelled, last.rounds.ports_departed, last.ports.len()), (20, 0, 2));
}

#[test]
fn a_name_that_is_taken_or_not_there_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let error = reasons(&ShmLink::connect(&domain(folder.path()), &ShmOptions::default()).unwrap_err());
    assert!(error.contains("NIC `nic`: nobody offers"), "{error}");
    let domain = domain(folder.path());
    assert!(Statistics::fetch(&domain, "nic").is_err());
    let absent = StatisticsFeed::open_awaiting(&domain, "nic", Duration::from_millis(20)).unwrap_err();
    assert_eq!(absent.absence(), Some(Absence::NoSocket), "{absent}");
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| StatisticsFeed::open_awaiting(&domain, "nic", WATCHDOG));
        std::thread::sleep(Duration::from_millis(20));
        let nic = Running::start(config(folder.path()));
        assert_eq!(asked.join().unwrap().unwrap().1.service, "nic");
        assert!(NicProcess::new(config(folder.path())).is_err());
        nic.stop();
    });
}
