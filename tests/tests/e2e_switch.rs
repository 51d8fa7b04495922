//! NIC, sender and receiver as three processes: every frame arrives, byte for byte, in order, by every interface and
//! with every way of storing that this CPU has.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod e2e_support;

use beeline_mmio::StoreKernel;
use beeline_nic_process::Statistics;
use e2e_support::{Role, domain_at, own_role, run_nic, station, stop_flag};

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

fn run(interface: &str, kernel: StoreKernel, count: u64) -> Statistics {
    let folder = tempfile::tempdir().unwrap();
    let nic = Role::nic(folder.path());
    let multiple = if interface == "kpio" { "8" } else { "1" };
    let mut receiver = Role::start("receiver", folder.path(), &[("MULTIPLE", multiple)]);
    receiver.expect("listening");
    let (kernel, total) = (kernel.to_string(), count.to_string());
    let arguments = [("INTERFACE", interface), ("KERNEL", &kernel), ("COUNT", &total)];
    let mut sender = Role::start("sender", folder.path(), &arguments);
    sender.expect("done");
    while receiver.expect("frames").parse::<u64>().unwrap() < count {}
    let statistics = Statistics::fetch(&domain_at(folder.path()), "nic").unwrap();
    sender.end();
    receiver.end();
    nic.end();
    statistics
}

#[test]
fn frames_cross_three_processes_by_every_interface() {
    for interface in ["mmio", "kpio", "descriptor"] {
        let statistics = run(interface, StoreKernel::Cached, 5000);
        let sent: u64 = statistics.ports.iter().map(|port| port.device["tx_frames"]).sum();
        let received: u64 = statistics.ports.iter().map(|port| port.device["rx_frames"]).sum();
        assert!(sent == 5000 && received == 5000, "{interface}: {sent} sent, {received} received");
    }
}

#[test]
fn every_store_kernel_of_this_cpu_delivers() {
    for kernel in StoreKernel::available() {
        let statistics = run("mmio", kernel, 2000);
        let device = |name: &str| -> u64 { statistics.ports.iter().map(|port| port.device[name]).sum() };
        let writes: u64 = statistics.ports.iter().map(|port| port.link.window_writes()).sum();
        assert!(writes > 2000, "{kernel}: the frames came as stores");
        assert_eq!(writes, device("tx_writes"), "{kernel}: the reorder unit saw every store");
        assert_eq!(
            (device("clobbers"), device("bad_headers"), device("quarantined_writes")),
            (0, 0, 0),
            "{kernel}"
        );
    }
}
