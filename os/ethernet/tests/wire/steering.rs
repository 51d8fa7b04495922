//! Other traffic goes on beside ours, and nothing is left behind.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use beeline_ethernet::AfXdp;
use beeline_ethernet::{AfXdpConfig, Uplink, XdpAttach, in_network_namespace};

use crate::rig::{Net, frame, frame_of, receive, send, until};

/// ARP, IPv4 and UDP between the two kernels while frames of ours cross the same wire, both ways.
#[test]
fn the_kernels_own_traffic_goes_on() {
    let Some(net) = Net::make() else { return };
    for attach in [XdpAttach::Native, XdpAttach::Generic] {
        let (mut near, mut far) = (net.near.xdp(attach), net.far.xdp(attach));
        assert_eq!(near.is_native(), attach == XdpAttach::Native);
        let (here, there) = (net.near.udp(), net.far.udp());
        for number in 0..200u32 {
            send(&mut near, &frame(number, 60));
            here.send_to(&number.to_be_bytes(), (net.far.address, 7)).unwrap();
            send(&mut far, &frame(number, 1000));
            let mut datagram = [0; 8];
            let (bytes, from) = there.recv_from(&mut datagram).unwrap();
            assert_eq!((&datagram[..bytes], from), (&number.to_be_bytes()[..], here.local_addr().unwrap()));
            there.send_to(&datagram[..bytes], from).unwrap();
            assert_eq!(here.recv(&mut datagram).unwrap(), 4);
            assert_eq!(receive(&mut far), frame(number, 60));
            assert_eq!(receive(&mut near), frame(number, 1000));
        }
        // Frames of other types were none of ours.
        assert!(!near.poll(&mut Vec::new()).unwrap() && !far.poll(&mut Vec::new()).unwrap());
    }
}

#[test]
fn only_the_type_that_was_asked_for_arrives() {
    let Some(net) = Net::make() else { return };
    for attach in [XdpAttach::Native, XdpAttach::Generic] {
        let config = |ether_type| AfXdpConfig { ether_type, ..net.far.config(attach) };
        let mut near = net.near.xdp(attach);
        let types = [0x88b5, 0x88b6, 0x86dd, 0xb588, 0x0800];
        for wanted in [0x88b6, 0x88b5] {
            let mut far = net.far.try_xdp(&config(Some(wanted))).unwrap();
            for (number, ether_type) in types.into_iter().enumerate() {
                send(&mut near, &frame_of(ether_type, number as u32, 60));
            }
            let number = types.iter().position(|other| *other == wanted).unwrap() as u32;
            assert_eq!(receive(&mut far), frame_of(wanted, number, 60));
            assert!(!far.poll(&mut Vec::new()).unwrap());
        }
        let mut far = net.far.try_xdp(&config(None)).unwrap();
        for (number, ether_type) in types.into_iter().enumerate() {
            let sent = frame_of(ether_type, number as u32, 60);
            send(&mut near, &sent);
            assert_eq!(receive(&mut far), sent, "every type");
        }
    }
}

#[test]
fn nothing_is_attached_any_more_when_an_up_link_is_dropped() {
    let Some(net) = Net::make() else { return };
    for attach in [XdpAttach::Native, XdpAttach::Generic] {
        let near = net.near.xdp(attach);
        assert!(net.near.has_program(), "{}", net.near.shown());
        drop(near);
        // A child of another test, between fork and exec, has the descriptor too.
        until("the program to be detached", || (!net.near.has_program()).then_some(()));
    }
}

/// What the other process of the next test is told.
const HOLD: &str = "BEELINE_TEST_HOLD";

/// The other process of the next test; on its own there is nothing for it to hold.
#[test]
#[ignore = "the other process of a_killed_process_leaves_nothing_attached"]
fn hold_an_up_link_until_killed() {
    let told = std::env::var(HOLD).unwrap();
    let (namespace, interface) = told.split_once('/').unwrap();
    let config = AfXdpConfig::new(interface);
    let held = in_network_namespace(namespace, || AfXdp::open(&config)).unwrap().unwrap();
    println!("holding {}", held.name());
    // Until standard input ends, in case the parent dies first.
    std::io::stdin().lock().lines().for_each(drop);
}

#[test]
fn a_killed_process_leaves_nothing_attached() {
    let Some(net) = Net::make() else { return };
    let program = std::env::current_exe().unwrap();
    let mut holder = Command::new(program)
        .args(["--exact", "steering::hold_an_up_link_until_killed", "--ignored", "--nocapture"])
        .env(HOLD, format!("{}/{}", net.near.namespace, net.near.interface))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(holder.stdout.take().unwrap()).lines();
    let is_open = said.any(|line| line.is_ok_and(|line| line.contains("holding af-xdp")));
    let was_attached = net.near.has_program();
    // SIGKILL.
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(is_open && was_attached, "{}", net.near.shown());
    until("the program to be detached", || (!net.near.has_program()).then_some(()));
    // And the queue is free.
    drop(net.near.xdp(XdpAttach::Auto));
}

/// Only the thread that enters a namespace is in it, and it is back afterwards, even after a panic.
#[test]
fn a_namespace_is_entered_by_one_thread_and_left() {
    let Some(net) = Net::make() else { return };
    let here = || std::fs::read_link("/proc/thread-self/ns/net").unwrap();
    let before = here();
    let other = net.near.inside(|| {
        let inside = here();
        let of_another_thread =
            std::thread::scope(|scope| scope.spawn(|| std::fs::read_link("/proc/self/ns/net")).join());
        assert_ne!(inside, before);
        assert_eq!(of_another_thread.unwrap().unwrap(), before, "the process's first thread did not move");
        inside
    });
    assert_ne!(net.far.inside(here), other, "two namespaces");
    assert_eq!(here(), before);
    let panicked = std::panic::catch_unwind(|| net.near.inside(|| panic!("on purpose")));
    assert!(panicked.is_err() && here() == before);
}
