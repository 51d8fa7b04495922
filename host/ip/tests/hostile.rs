//! A member that sends what it likes through the queue of a node: the kernel of the other one gets none of it but packets of that node for itself.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "each test uses a part of it")]
mod support;

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use beeline_fabric::{AdapterNumber, InterruptNumber, NodeId, SegmentId};
use beeline_fabric_bar::{
    BarConfig, BarInterrupt, BarInterruptOptions, BarMember, BarMemory, MessageQueue, QueueConfig, Sent,
};
use beeline_ip::{Ip, PeerCounts};
use beeline_mmio::{FaultGuard, OnLoss};
use etherparse::PacketBuilder;
use support::{By, Ground, MTU, WATCHDOG, address, has_peer, until};

/// What IP's segments and interrupts have in common.
const NUMBERS: u32 = 0x4950_0000;

/// Node 4, by hand.
struct Liar {
    member: BarMember,
    _interrupt: BarInterrupt,
}

impl Liar {
    fn new(ground: &Ground) -> Self {
        let configuration = ground.configuration(4);
        let member = BarMember::open(BarConfig {
            memory: BarMemory::of_path(&ground.memory()),
            members: 4,
            slot: None,
            node: NodeId(4),
            adapter: AdapterNumber::new(0).unwrap(),
            nodes: configuration.fabric.nodes,
            on_loss: OnLoss::Guarded(FaultGuard::install().unwrap()),
        });
        let member = member.unwrap();
        let options =
            BarInterruptOptions { number: Some(InterruptNumber(NUMBERS | 4)), ..Default::default() };
        let _interrupt = member.create_interrupt(options).unwrap();
        Liar { member, _interrupt }
    }

    fn queue(&self) -> MessageQueue {
        let queue = self.member.message_queue(QueueConfig {
            node: NodeId(8),
            adapter: AdapterNumber::new(0).unwrap(),
            local: SegmentId(NUMBERS | 8),
            remote: SegmentId(NUMBERS | 4),
            max_messages: 64,
            max_message_bytes: u32::from(MTU) + 4,
        });
        let queue = queue.unwrap();
        queue.open(WATCHDOG).unwrap();
        queue
    }
}

fn framed(length: usize, packet: &[u8]) -> Vec<u8> {
    [&(length as u32).to_le_bytes(), packet].concat()
}

fn packet(from: Ipv4Addr, to: Ipv4Addr, port: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    PacketBuilder::ipv4(from.octets(), to.octets(), 9).udp(7, port).write(&mut bytes, b"hello").unwrap();
    bytes
}

fn counts(ip: &Ip) -> PeerCounts {
    ip.peers().iter().find(|peer| peer.node.0 == 4).unwrap().counts
}

/// A packet of node 4 comes to a program of node 8.
fn is_carried(queue: &MessageQueue, socket: &UdpSocket) {
    let sound = packet(address(4), address(8), socket.local_addr().unwrap().port());
    assert_eq!(queue.send(&framed(sound.len(), &sound)), Ok(Sent::Sent));
    let mut found = [0; 99];
    assert_eq!(socket.recv(&mut found).unwrap(), 5);
    assert_eq!(&found[..5], b"hello");
}

#[test]
fn only_packets_of_the_node_for_this_one_come_to_its_kernel_and_what_is_none_ends_the_line() {
    let Some(ground) = Ground::make(By::Memory) else { return };
    let ip = ground.up(8);
    let socket = ground.inside(8, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap());
    socket.set_read_timeout(Some(WATCHDOG)).unwrap();
    let port = socket.local_addr().unwrap().port();
    let liar = Liar::new(&ground);
    let mut queue = liar.queue();
    has_peer(&ip, 4);
    is_carried(&queue, &socket);
    let thrown_away = [
        packet(address(12), address(8), port),
        packet(address(8), address(8), port),
        packet(Ipv4Addr::LOCALHOST, address(8), port),
        packet(address(4), address(12), port),
        packet(address(4), Ipv4Addr::LOCALHOST, port),
        vec![0xff; 60],
        packet(address(4), address(8), port)[..20].to_vec(),
        Vec::new(),
    ];
    for (already, wrong) in thrown_away.iter().enumerate() {
        assert_eq!(queue.send(&framed(wrong.len(), wrong)), Ok(Sent::Sent));
        until("it is counted", || counts(&ip).wrong_packets == already as u64 + 1);
    }
    is_carried(&queue, &socket);
    // Longer than the longest, and longer than what came with it: where the next packet begins is not known any more.
    let sound = packet(address(4), address(8), port);
    for length in [usize::from(MTU) + 1, u32::MAX as usize, sound.len() + 1] {
        assert_eq!(queue.send(&framed(length, &sound)), Ok(Sent::Sent));
        until("the line is ended", || queue.send(&framed(sound.len(), &sound)).is_err());
        drop(queue);
        queue = liar.queue();
        has_peer(&ip, 4);
        is_carried(&queue, &socket);
    }
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(socket.recv(&mut [0; 99]).is_err(), "nothing else came");
}
