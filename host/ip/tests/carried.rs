//! What programs send to another node's address comes there, whole and once, whatever the fabric is, and goes on when a node has gone and come, or an adapter is down.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "each test uses a part of it")]
mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use beeline_fabric::AdapterNumber;
use beeline_ip::{IpConfig, IpEnded, IpError};
use nix::sys::socket::{setsockopt, sockopt::Ipv4RecvErr};
use support::{By, Ground, MTU, WATCHDOG, address, has_peer, until};

/// A byte of a stream, by its place.
fn byte(seed: u64, at: usize) -> u8 {
    ((at as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn send(mut stream: &TcpStream, seed: u64, bytes: usize) {
    let all: Vec<u8> = (0..bytes).map(|at| byte(seed, at)).collect();
    stream.write_all(&all).unwrap();
}

fn expect(mut stream: &TcpStream, seed: u64, bytes: usize) {
    let mut all = vec![0; bytes];
    stream.read_exact(&mut all).unwrap();
    let wrong = all.iter().enumerate().find(|(at, found)| **found != byte(seed, *at));
    assert_eq!(wrong, None);
}

/// A connection from node 4 to node 8.
fn connected(ground: &Ground) -> [TcpStream; 2] {
    let listener = ground.inside(8, || TcpListener::bind((address(8), 0)).unwrap());
    let to = listener.local_addr().unwrap();
    let near = ground.inside(4, || TcpStream::connect_timeout(&to, WATCHDOG).unwrap());
    let (far, from) = listener.accept().unwrap();
    assert_eq!(from.ip(), address(4));
    [near, far].map(|stream| {
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        stream.set_write_timeout(Some(WATCHDOG)).unwrap();
        stream
    })
}

/// Both directions at once.
fn exchange([near, far]: &[TcpStream; 2], bytes: usize) {
    std::thread::scope(|scope| {
        scope.spawn(|| send(near, 1, bytes));
        scope.spawn(|| send(far, 2, bytes));
        scope.spawn(|| expect(near, 2, bytes));
        expect(far, 1, bytes);
    });
}

fn udp(ground: &Ground, node: u16, at: impl Into<std::net::IpAddr>) -> UdpSocket {
    let socket = ground.inside(node, || UdpSocket::bind((at.into(), 0)).unwrap());
    socket.set_read_timeout(Some(WATCHDOG)).unwrap();
    socket
}

#[test]
fn streams_come_whole_both_ways_by_either_fabric() {
    for by in [By::Memory, By::Domain] {
        let Some(ground) = Ground::make(by) else { return };
        let both = ground.both();
        exchange(&connected(&ground), 8 << 20);
        let carried: Vec<_> = both.iter().map(|ip| ip.peers()[0].counts).collect();
        for (here, there) in [(&carried[0], &carried[1]), (&carried[1], &carried[0])] {
            assert!(here.sent_bytes > 8 << 20 && here.sent_packets >= there.received_packets, "{carried:?}");
            assert_eq!((there.wrong_packets, there.refused_packets), (0, 0), "{by:?}");
        }
    }
}

#[test]
fn datagrams_of_each_length_come_as_they_are_by_either_version() {
    let Some(ground) = Ground::make(By::Memory) else { return };
    let _both = ground.both();
    let ipv6 = |node: u16| Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, node);
    let pairs = [
        (udp(&ground, 4, address(4)), udp(&ground, 8, address(8)), usize::from(MTU) - 28),
        (udp(&ground, 4, ipv6(4)), udp(&ground, 8, ipv6(8)), usize::from(MTU) - 48),
    ];
    for (near, far, longest) in pairs {
        let to: SocketAddr = far.local_addr().unwrap();
        // The last has two fragments.
        for bytes in
            [0, 1, 3, 55, 56, 57, 63, 64, 65, 127, 1472, 4096, longest - 1, longest, longest + 1, 2 * longest]
        {
            let sent: Vec<u8> = (0..bytes).map(|at| byte(bytes as u64, at)).collect();
            assert_eq!(near.send_to(&sent, to).unwrap(), bytes);
            let mut found = vec![0; 1 << 16];
            let (came, from) = far.recv_from(&mut found).unwrap();
            assert_eq!((&found[..came], from), (&sent[..], near.local_addr().unwrap()));
        }
    }
}

#[test]
fn sender_to_a_node_that_is_not_there_is_told_so_and_finds_it_when_it_comes() {
    let Some(ground) = Ground::make(By::Memory) else { return };
    let here = ground.up(4);
    let socket = udp(&ground, 4, address(4));
    // Without it UDP forgets what may pass, as a host that is not there.
    setsockopt(&socket, Ipv4RecvErr, &true).unwrap();
    // Not each packet is answered, so that those that are for nobody cost no more.
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    // Node 8 is not there, 12 never is, and 9 is no node of this one.
    for node in [8, 12, 9] {
        socket.connect((address(node), 7)).unwrap();
        until("its sender is told", || {
            let told = socket.send(b"?").and_then(|_| socket.recv(&mut [0; 9]));
            told.is_err_and(|error| error.kind() == ErrorKind::HostUnreachable)
        });
    }
    let absent = || here.peers().iter().find(|peer| peer.node.0 == 8).unwrap().counts.absent_packets;
    // Each is counted behind what its sender is told.
    until("each is counted", || absent() > 0 && here.counts().told_packets >= 3);
    let there = ground.up(8);
    has_peer(&here, 8);
    has_peer(&there, 4);
    exchange(&connected(&ground), 1 << 20);
}

#[test]
fn node_that_goes_and_comes_again_is_met_again_and_others_are_told_meanwhile() {
    for by in [By::Memory, By::Domain] {
        let Some(ground) = Ground::make(by) else { return };
        let [here, there] = ground.both();
        let mut there = Some(there);
        for _ in 0..3 {
            exchange(&connected(&ground), 1 << 16);
            drop(there.take());
            until("it is gone", || !here.peers().iter().any(|peer| peer.is_up));
            there = Some(ground.up(8));
            has_peer(&here, 8);
            has_peer(there.as_ref().unwrap(), 4);
        }
        exchange(&connected(&ground), 1 << 16);
    }
}

#[test]
fn stream_goes_on_when_adapters_fail_one_after_the_other_and_both_for_a_while() {
    let Some(ground) = Ground::make(By::Domain) else { return };
    let both = ground.both();
    let streams = connected(&ground);
    let set = |adapter, is_up| both[0].set_link(AdapterNumber::new(adapter).unwrap(), is_up).unwrap();
    std::thread::scope(|scope| {
        let exchanged = scope.spawn(|| exchange(&streams, 64 << 20));
        until("bytes are under way", || both[0].peers().iter().any(|peer| peer.counts.sent_bytes > 1 << 20));
        let mut is_both = false;
        while !exchanged.is_finished() {
            set(0, false);
            std::thread::sleep(Duration::from_millis(20));
            if !is_both {
                // Longer than a packet waits: some are lost, and TCP sends them again.
                set(1, false);
                std::thread::sleep(Duration::from_millis(50));
                set(1, true);
                is_both = true;
            }
            set(0, true);
            set(1, false);
            std::thread::sleep(Duration::from_millis(20));
            set(1, true);
        }
        assert!(is_both);
    });
    assert!(both[0].peers().iter().any(|peer| peer.counts.full_packets > 0));
    assert!(set_wrong(&both[0]));
}

/// An adapter that the node does not have is refused.
fn set_wrong(ip: &beeline_ip::Ip) -> bool {
    ip.set_link(AdapterNumber::new(7).unwrap(), false).is_err()
}

#[test]
fn packets_of_other_senders_do_not_leave_and_a_second_device_of_a_node_is_refused() {
    let Some(ground) = Ground::make(By::Memory) else { return };
    let [here, there] = ground.both();
    assert!(matches!(ground.try_up(4), Err(IpError::Taken(4))));
    // An address of another node, which this one takes for itself.
    ground.inside(4, || {
        let mut added = std::process::Command::new("ip");
        added.args(["addr", "add", "10.77.0.12/32", "dev", "beeline0"]);
        assert!(added.status().unwrap().success());
    });
    let (liar, far) = (udp(&ground, 4, address(12)), udp(&ground, 8, address(8)));
    far.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let before = here.counts().nowhere_packets;
    liar.send_to(b"from node 12", far.local_addr().unwrap()).unwrap();
    until("it is counted", || here.counts().nowhere_packets > before);
    assert_eq!(far.recv(&mut [0; 99]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(there.peers().iter().all(|peer| peer.counts.wrong_packets == 0));
}

#[test]
fn node_that_sleeps_is_woken_by_who_sends() {
    for by in [By::Memory, By::Domain] {
        let Some(ground) = Ground::make(by) else { return };
        // It would sleep for longer than anybody waits here.
        let config = IpConfig { spin: Duration::ZERO, unrung: 10 * WATCHDOG, ..Ground::config() };
        let both = [4, 8].map(|node| ground.try_up_with(node, config.clone()).unwrap());
        has_peer(&both[0], 8);
        has_peer(&both[1], 4);
        let (near, far) = (udp(&ground, 4, address(4)), udp(&ground, 8, address(8)));
        for round in 0..20_u8 {
            // Long enough that both sleep.
            std::thread::sleep(Duration::from_millis(5));
            near.send_to(&[round], far.local_addr().unwrap()).unwrap();
            let mut found = [0];
            let (_, from) = far.recv_from(&mut found).unwrap();
            far.send_to(&found, from).unwrap();
            near.recv_from(&mut found).unwrap();
            assert_eq!(found, [round]);
        }
    }
}

#[test]
fn sender_of_what_is_too_long_for_a_node_is_told_and_sends_shorter() {
    let Some(ground) = Ground::make(By::Memory) else { return };
    let here = ground.up(4);
    let there = ground.try_up_with(8, IpConfig { mtu: 1500, ..Ground::config() }).unwrap();
    has_peer(&here, 8);
    has_peer(&there, 4);
    let (near, far) = (udp(&ground, 4, address(4)), udp(&ground, 8, address(8)));
    far.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let sent: Vec<u8> = (0..4000).map(|at| byte(3, at)).collect();
    let mut found = vec![0; 5000];
    // The first is lost; the kernel knows then what goes, and cuts the next.
    until("it comes in pieces", || {
        let _too_long_the_first_time = near.send_to(&sent, far.local_addr().unwrap());
        far.recv(&mut found).is_ok_and(|bytes| found[..bytes] == sent)
    });
    let counts = here.peers().iter().find(|peer| peer.node.0 == 8).unwrap().counts;
    assert!(counts.too_long_packets > 0 && counts.full_packets == 0, "{counts:?}");
}

#[test]
fn queues_that_the_memory_has_no_room_for_are_refused_with_what_helps() {
    let Some(ground) = Ground::make(By::Memory) else { return };
    let config = IpConfig { mtu: 65_520, queue_packets: 4096, ..Ground::config() };
    let error = ground.try_up_with(4, config).unwrap_err();
    assert!(matches!(error, IpError::Room { packets: 4096, mtu: 65_520, .. }), "{error}");
    assert!(error.to_string().contains("take fewer or shorter ones"), "{error}");
}

#[test]
fn node_whose_memory_is_gone_says_so_and_carries_nothing() {
    let Some(ground) = Ground::make(By::Memory) else { return };
    let both = ground.both();
    exchange(&connected(&ground), 1 << 16);
    std::fs::OpenOptions::new().write(true).open(ground.memory()).unwrap().set_len(0).unwrap();
    for ip in &both {
        until("it says so", || matches!(ip.ended(), Some(IpEnded::Fabric(_))));
    }
}
