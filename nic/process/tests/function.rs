//! Ports that are PCI functions: guests (their emulators' connections) beside processes on one switch.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use beeline_link_vfio_user::{ClientError, FunctionLink};
use beeline_mmio::{MemoryOptions, StoreKernel};
use beeline_nic_process::{NicProcess, NicProcessConfig, Statistics};
use support::{Running, Station, config, domain, reasons};

fn functions(root: &Path) -> Vec<PathBuf> {
    vec![root.join("chi0"), root.join("chi1")]
}

fn start(root: &Path) -> Running {
    Running::start(NicProcessConfig { functions: functions(root), ..config(root) })
}

fn link(path: &Path) -> FunctionLink {
    FunctionLink::connect(path, StoreKernel::Cached, MemoryOptions::default()).unwrap()
}

/// Frames of every length there and back.
fn exchange<A, B>(one: &mut Station<A>, other: &mut Station<B>, addresses: (u8, u8))
where
    A: beeline_contract_link::Link + 'static,
    B: beeline_contract_link::Link + 'static,
{
    for (number, bytes) in [60, 64, 65, 127, 128, 1000, 1514].into_iter().cycle().take(300).enumerate() {
        let frame = one.frame(addresses.1, number as u16, bytes);
        one.send(&frame);
        assert_eq!(other.receive(), frame, "frame {number} there");
        let answer = other.frame(addresses.0, number as u16, bytes);
        other.send(&answer);
        assert_eq!(one.receive(), answer, "frame {number} back");
    }
}

#[test]
fn guests_and_processes_are_on_one_switch() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let running = start(root);
    let paths = functions(root);
    let [mut zero, mut one] =
        [0, 1].map(|index: usize| Station::on(link(&paths[index]), index as u8 + 1, 1024));
    exchange(&mut zero, &mut one, (1, 2));
    let mut process = Station::connect(root, 3, false, 1024);
    exchange(&mut process, &mut zero, (3, 1));
    let now = Statistics::fetch(&domain(root), "nic").unwrap();
    let shown: Vec<_> = now.ports.iter().map(|port| (port.port, port.function.clone(), port.pid)).collect();
    let pid = std::process::id();
    assert_eq!(shown, [(0, Some(paths[0].clone()), 0), (1, Some(paths[1].clone()), 0), (2, None, pid)]);
    drop((zero, one));
    let last = running.stop();
    assert_eq!(last.ports[0].link.bad_addresses, 0, "{:?}", last.ports[0].link);
}

#[test]
fn guest_that_ends_leaves_a_function_that_the_next_one_finds_as_new() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(folder.path());
    let paths = functions(folder.path());
    let mut stays = Station::on(link(&paths[1]), 2, 1024);
    for _ in 0..5 {
        let mut comes = Station::on(link(&paths[0]), 1, 1024);
        // What the one before it had sent last is there, or was lost with it.
        while let Some(late) = stays.try_receive() {
            assert_eq!(late.len(), 1500);
        }
        exchange(&mut comes, &mut stays, (1, 2));
        let frame = comes.frame(2, 999, 1500);
        comes.send(&frame);
    }
    drop(stays);
    running.stop();
}

#[test]
fn socket_is_its_owner_s_and_one_that_was_left_behind_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chi0");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let with = |path: &Path| NicProcessConfig { functions: vec![path.to_owned()], ..config(folder.path()) };
    let running = Running::start(with(&path));
    assert_eq!(path.symlink_metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let refused = |path: &Path, said: &str| {
        let other = NicProcessConfig { service: "other".into(), ..with(path) };
        let error = NicProcess::new(other).map(|_| ()).unwrap_err();
        assert!(reasons(&error).contains(said), "{}", reasons(&error));
    };
    refused(&path, "stop who listens there");
    let file = folder.path().join("file");
    std::fs::write(&file, "somebody's").unwrap();
    refused(&file, "choose another path");
    assert_eq!(std::fs::read(&file).unwrap(), b"somebody's");
    refused(&folder.path().join("none/there"), "make its folder first");
    refused(&folder.path().join("x".repeat(200)), "at most 107 bytes");
    running.stop();
    assert!(!path.exists(), "the socket goes with the NIC");
    let gone = FunctionLink::connect(&path, StoreKernel::Cached, MemoryOptions::default()).unwrap_err();
    assert!(matches!(gone, ClientError::Connect { .. }), "{gone}");
}
