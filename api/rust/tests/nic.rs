//! A NIC port through the public API, against a NIC on another thread of this process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::time::{Duration, Instant};

use beeline::{
    Domain, Flushed, Interface, NicPort, PortError, PortOptions, PortRecvError, PortSendError, WaitPolicy,
};
use support::{DOMAIN, Nic};

/// Longer than any machine needs; only a hang takes it.
const WATCHDOG: Duration = Duration::from_secs(60);

/// A domain of its own with a NIC in it.
struct Lan {
    nic: Nic,
    domain: Domain,
    _folder: tempfile::TempDir,
}

impl Lan {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let domain = Domain::open_in(folder.path(), DOMAIN).unwrap();
        Lan { nic: Nic::start(folder.path()), domain, _folder: folder }
    }

    fn port(&self, interface: Interface, loop_back: bool) -> NicPort {
        let wait = WaitPolicy::new().spins(100).yields(10).sleep(Some(Duration::from_millis(100)));
        self.domain
            .port_with("nic", PortOptions::new().interface(interface).loop_back(loop_back).wait(wait))
            .unwrap()
    }
}

/// A broadcast frame of `bytes` bytes, a multiple of 8 so that every interface carries it unchanged.
fn frame(port: &NicPort, number: usize, bytes: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..bytes).map(|i| (i * 3 + number) as u8).collect();
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&port.mac());
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

fn recv(port: &mut NicPort) -> Vec<u8> {
    let mut frame = port.recv_timeout(WATCHDOG).unwrap().expect("a frame");
    let mut bytes = Vec::new();
    frame.copy_to(&mut bytes);
    bytes
}

#[test]
fn opening_takes_no_longer_than_its_timeout_says() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), DOMAIN).unwrap();
    let _silent = Nic::silent(folder.path());
    let limit = Duration::from_millis(200);
    let error = domain.port_timeout("nic", limit).unwrap_err();
    assert!(matches!(error, PortError::TimedOut { waited } if waited == limit), "{error:?}");
}

#[test]
fn nic_that_is_slow_to_come_up_has_the_whole_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), DOMAIN).unwrap();
    let silent = Nic::silent(folder.path());
    std::thread::scope(|scope| {
        let opened = scope.spawn(|| domain.port_timeout("nic", WATCHDOG).map(|port| port.mac()));
        // More than a driver gives one answer unless it is told otherwise.
        std::thread::sleep(Duration::from_millis(2500));
        let _nic = Nic::run(silent);
        opened.join().unwrap().unwrap();
    });
}

#[test]
fn frames_of_many_sizes_come_back_by_every_interface() {
    let lan = Lan::start();
    for interface in Interface::ALL {
        let mut port = lan.port(interface, true);
        assert!(port.try_recv().unwrap().is_none());
        assert!(port.recv_timeout(Duration::from_millis(1)).unwrap().is_none());
        for (number, bytes) in (16..=port.max_frame_bytes()).step_by(520).enumerate() {
            let sent = frame(&port, number, bytes / 8 * 8);
            port.send(&sent).unwrap();
            assert_eq!(recv(&mut port), sent, "{interface}, {bytes} bytes");
        }
        let error = port.send(&[0; 3]).unwrap_err();
        assert!(
            matches!(error, PortSendError::Length { bytes: 3, .. }) && !error.remedy().is_empty(),
            "{error}"
        );
        assert_eq!(port.flush(WATCHDOG).unwrap(), Flushed::All);
    }
}

#[test]
fn bursts_arrive_whole_and_in_order_at_another_port() {
    let lan = Lan::start();
    for interface in Interface::ALL {
        let mut from = lan.port(interface, false);
        let mut to = lan.port(interface, false);
        let frames: Vec<Vec<u8>> = (0..500).map(|n| frame(&from, n, 64 + n % 5 * 8)).collect();
        let views: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        let (mut sent, mut received) = (0, 0);
        let started = Instant::now();
        while received < frames.len() {
            sent += from.send_burst(&views[sent..(sent + 32).min(views.len())]).unwrap().0;
            while let Some(mut found) = to.try_recv().unwrap() {
                let mut bytes = Vec::new();
                found.copy_to(&mut bytes);
                assert_eq!(bytes, frames[received], "{interface}, frame {received}");
                received += 1;
            }
            assert!(started.elapsed() < WATCHDOG, "{interface}: {sent} sent, {received} received");
            std::thread::yield_now();
        }
        assert_eq!(from.flush(WATCHDOG).unwrap(), Flushed::All);
    }
}

#[test]
fn a_program_that_waits_learns_that_the_nic_has_ended() {
    let mut lan = Lan::start();
    let mut port = lan.port(Interface::Mmio, true);
    let waiting = std::thread::spawn(move || port.recv().map(|frame| frame.len()));
    lan.nic.end();
    let end = waiting.join().unwrap();
    assert!(matches!(end, Err(PortRecvError::NicGone)), "{end:?}");
}

#[test]
fn no_frame_allocates() {
    let lan = Lan::start();
    for interface in Interface::ALL {
        let mut port = lan.port(interface, true);
        let frames: Vec<Vec<u8>> = (0..8).map(|n| frame(&port, n, 64 + n * 8)).collect();
        let views: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        let mut bytes = [0; 256];
        let counted = allocation_counter::measure(|| {
            for _ in 0..50 {
                port.send(views[0]).unwrap();
                let sent = 1 + port.send_burst(&views).unwrap().0;
                for _ in 0..sent {
                    port.recv_timeout(WATCHDOG).unwrap().expect("a frame").copy_out(&mut bytes);
                }
            }
        });
        assert_eq!(counted.count_total, 0, "{interface}");
    }
}
