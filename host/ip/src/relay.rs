//! The device of a node, and who carries its packets: one thread each way, and one that meets other nodes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use beeline_contract_memory::WaitPolicy;
use beeline_ethernet::{Tun, TunConfig, UplinkError};
use beeline_fabric::{AdapterNumber, InterruptNumber, NodeId, Refusal, SegmentId};
use beeline_fabric_bar::Lost;
use beeline_fabric_process::{MessageQueue, QueueConfig};
use beeline_mmio::thread;

use crate::counts::{Count, IpCounts, PeerCounts};
use crate::joined::{Joined, OwnInterrupt};
use crate::line::{HEAD_BYTES, Line, Put};
use crate::network::{Goes, Network};
use crate::packet::Packet;
use crate::peer::Peer;
use crate::unreachable::{Unreachable, answer};

/// The segments and interrupts of IP at each node, with the number of the other node, and its own, in their last bits.
const NUMBERS: u32 = 0x4950_0000;
/// Packets that go one way before something else is looked at.
const BATCH: usize = 64;
/// How long a packet waits for room before it is lost. Whoever sends to other nodes waits as long.
const PATIENCE: Duration = Duration::from_millis(2);
/// How long a thread that sleeps may not see that it is to end.
const SLEEP: Duration = Duration::from_millis(100);
/// How long one node that is not there keeps the others from being met.
const MEETING: Duration = Duration::from_millis(20);
/// Between two messages of ICMP.
const BETWEEN_ANSWERS: Duration = Duration::from_millis(1);

/// How a node has IP.
#[derive(Clone, Debug)]
pub struct IpConfig {
    /// The name of the network device.
    pub interface: String,
    pub network: Network,
    /// Whom it carries packets to and from, by numbers from 1 to 251; this node among them is left out.
    pub peers: Vec<NodeId>,
    /// Bytes of the longest packet, best the same at every node: who sends a longer one than another takes is told by ICMP.
    pub mtu: u16,
    /// Of the longest packets, how many a node that does not look has room for from each other one.
    pub queue_packets: u32,
    /// How long a thread looks for the next packet before it sleeps.
    pub spin: Duration,
    /// How long it sleeps at most where nobody wakes it. So late comes what nobody could be woken for, because a link went down in that moment, or because
    /// the node that sends knew this one sooner than the other way round.
    pub unrung: Duration,
}

/// Why a node has no IP.
#[derive(Debug, thiserror::Error)]
pub enum IpError {
    #[error(transparent)]
    Device(#[from] UplinkError),
    /// The number that wakes the node is another process's.
    #[error("another process of node {0} has IP up already")]
    Taken(u16),
    #[error("the fabric does not make the interrupt by which others wake this node: {0}")]
    Interrupt(Refusal),
    #[error(
        "no room for {packets} packets of {mtu} bytes from each node: {refusal}; take fewer or shorter ones"
    )]
    Room { packets: u32, mtu: u16, refusal: Refusal },
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Why nothing is carried any more.
#[derive(Debug, thiserror::Error)]
pub enum IpEnded {
    #[error(transparent)]
    Device(#[from] UplinkError),
    /// The memory that the members share is gone, or another member has this one's part of it.
    #[error("this node is a member of the fabric no more: {0}")]
    Fabric(Lost),
}

/// Another node, to whoever looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerReport {
    pub node: NodeId,
    pub address: Ipv4Addr,
    pub is_up: bool,
    /// Why it is not, where the fabric says more than that it is not there.
    pub refusal: Option<Refusal>,
    pub counts: PeerCounts,
}

/// The network device of this node, with its packets carried. It vanishes when this is dropped.
#[derive(Debug)]
pub struct Ip {
    shared: Arc<Shared>,
    interrupt: Arc<OwnInterrupt>,
    threads: Vec<thread::Running<()>>,
}

struct Shared {
    joined: Joined,
    config: IpConfig,
    own: NodeId,
    own_addresses: (Ipv4Addr, Option<Ipv6Addr>),
    tun: Tun,
    peers: Vec<Peer>,
    /// Where in `peers` each node is.
    places: Vec<Option<usize>>,
    is_over: AtomicBool,
    ended: OnceLock<IpEnded>,
    nowhere_packets: Count,
    told_packets: Count,
    told_at: Mutex<Option<Instant>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Shared").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Ip {
    /// Makes the device, and carries its packets from now on. Nodes are met as they come.
    ///
    /// # Errors
    /// See [`IpError`].
    pub fn up(joined: Joined, config: IpConfig) -> Result<Self, IpError> {
        let own = joined.node();
        let (ipv4, ipv6) = (config.network.ipv4_of(own), config.network.ipv6_of(own));
        let interrupt = joined.interrupt(InterruptNumber(NUMBERS | u32::from(own.0)), policy(config.spin));
        let interrupt = interrupt.map_err(|refusal| match refusal {
            Refusal::IntnoUsed => IpError::Taken(own.0),
            refusal => IpError::Interrupt(refusal),
        })?;
        let tun = Tun::open(&TunConfig {
            interface: config.interface.clone(),
            mtu: config.mtu,
            ipv4: Some(ipv4),
            ipv6,
        })?;
        let peers: Vec<Peer> =
            config.peers.iter().filter(|peer| **peer != own).map(|peer| Peer::new(*peer)).collect();
        let most = peers.iter().map(|peer| usize::from(peer.node.0)).max().unwrap_or(0);
        let mut places = vec![None; most + 1];
        for (place, peer) in peers.iter().enumerate() {
            places[usize::from(peer.node.0)] = Some(place);
        }
        let shared = Arc::new(Shared {
            joined,
            config,
            own,
            own_addresses: (ipv4.0, ipv6.map(|(address, _)| address)),
            tun,
            peers,
            places,
            is_over: AtomicBool::new(false),
            ended: OnceLock::new(),
            nowhere_packets: Count::default(),
            told_packets: Count::default(),
            told_at: Mutex::new(None),
        });
        // Whether there is room is known before anybody is met: each end's segment is made here.
        let begun: Result<Vec<_>, _> =
            shared.peers.iter().map(|peer| shared.begin_queue(peer).map(Some)).collect();
        let opening = begun.map_err(|refusal| IpError::Room {
            packets: shared.config.queue_packets,
            mtu: shared.config.mtu,
            refusal,
        })?;
        let interrupt = Arc::new(interrupt);
        let mut ip =
            Ip { shared: Arc::clone(&shared), interrupt: Arc::clone(&interrupt), threads: Vec::new() };
        let out = Arc::clone(&shared);
        ip.start("beeline-ip-out", move || out.carry_out())?;
        let inwards = Arc::clone(&shared);
        ip.start("beeline-ip-in", move || inwards.carry_in(&interrupt))?;
        ip.start("beeline-ip-meet", move || shared.meet(opening))?;
        Ok(ip)
    }

    fn start(&mut self, name: &'static str, work: impl FnOnce() + Send + 'static) -> Result<(), IpError> {
        self.threads.push(thread::start(name, work).map_err(IpError::Thread)?);
        Ok(())
    }

    /// Each other node of the configuration, as it is now.
    pub fn peers(&self) -> Vec<PeerReport> {
        let report = |peer: &Peer| PeerReport {
            node: peer.node,
            address: self.shared.config.network.ipv4_of(peer.node).0,
            is_up: peer.is_up(),
            refusal: peer.refusal(),
            counts: peer.counts(),
        };
        self.shared.peers.iter().map(report).collect()
    }

    /// What was carried to nobody.
    pub fn counts(&self) -> IpCounts {
        IpCounts {
            nowhere_packets: self.shared.nowhere_packets.get(),
            told_packets: self.shared.told_packets.get(),
        }
    }

    /// Takes the link of an adapter up or down, as `beeline fabric link` does: packets go by another one that both nodes have, or are lost.
    ///
    /// # Errors
    /// The node has no such adapter.
    pub fn set_link(&self, adapter: AdapterNumber, is_up: bool) -> Result<(), Refusal> {
        self.shared.joined.set_link(adapter, is_up)
    }

    /// Why nothing is carried any more; `None` while it is.
    pub fn ended(&self) -> Option<&IpEnded> {
        self.shared.ended.get()
    }
}

impl Drop for Ip {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Ends the wait for it, too. It may be removed already, with all that the member had.
        let _ends_the_wait = self.interrupt.remove();
        for thread in self.threads.drain(..) {
            let _ended = thread.join();
        }
    }
}

/// Looks for about so long, and sleeps then. Whoever wants the core meanwhile gets it: where there are few, the programs that wait for the packets
/// have the same ones.
fn policy(spin: Duration) -> WaitPolicy {
    /// A look with the core offered to others takes about this long.
    const YIELD_NS: u128 = 500;
    let yields = u32::try_from(spin.as_nanos() / YIELD_NS).unwrap_or(u32::MAX);
    WaitPolicy::new().spins(100.min(yields)).yields(yields)
}

impl Shared {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn end(&self, why: IpEnded) {
        let _first = self.ended.set(why);
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// What the kernel has for other nodes goes there.
    fn carry_out(&self) {
        let mut framed = vec![0; HEAD_BYTES + usize::from(self.config.mtu)];
        let mut to_ring = vec![false; self.peers.len()];
        let mut last = Instant::now();
        while !self.is_over() {
            let mut taken = 0;
            while taken < BATCH {
                let bytes = match self.tun.receive(&mut framed[HEAD_BYTES..]) {
                    Ok(0) => break,
                    Ok(bytes) => bytes,
                    Err(error) => return self.end(error.into()),
                };
                taken += 1;
                self.send(&mut framed[..HEAD_BYTES + bytes], &mut to_ring);
            }
            self.ring(&mut to_ring);
            if taken > 0 {
                last = Instant::now();
            } else if last.elapsed() >= self.config.spin {
                self.tun.wait(SLEEP);
            } else {
                std::thread::yield_now();
            }
        }
    }

    fn send(&self, framed: &mut [u8], to_ring: &mut [bool]) {
        let packet = &framed[HEAD_BYTES..];
        // With another source it is nobody's here: this device is no router, and the other end would throw it away.
        let Some(whole) = Packet::of(packet).filter(|packet| self.is_own(packet.source)) else {
            return self.nowhere_packets.add(1);
        };
        match self.config.network.way_to(whole.destination) {
            Goes::Node(node) => match self.places.get(usize::from(node.0)).copied().flatten() {
                Some(place) => {
                    if let Some(why) = self.send_to(place, framed, to_ring) {
                        self.tell(&framed[HEAD_BYTES..], why);
                    }
                }
                None => self.nowhere(packet),
            },
            Goes::All => (0..self.peers.len()).for_each(|place| _ = self.send_to(place, framed, to_ring)),
            Goes::Nowhere => self.nowhere(packet),
        }
    }

    fn is_own(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => address == self.own_addresses.0,
            IpAddr::V6(address) => Some(address) == self.own_addresses.1,
        }
    }

    fn nowhere(&self, packet: &[u8]) {
        self.nowhere_packets.add(1);
        self.tell(packet, Unreachable::Host);
    }

    /// Sends to one node; what the sender is to be told.
    fn send_to(&self, place: usize, framed: &mut [u8], to_ring: &mut [bool]) -> Option<Unreachable> {
        let peer = &self.peers[place];
        let Some(line) = peer.line() else {
            peer.absent_packets.add(1);
            return Some(Unreachable::Host);
        };
        let mut waits_until = None;
        loop {
            match line.send(framed) {
                Ok(Put::Sent) => {
                    to_ring[place] = true;
                    peer.is_slow.store(false, Ordering::Relaxed);
                    peer.sent_packets.add(1);
                    peer.sent_bytes.add((framed.len() - HEAD_BYTES) as u64);
                    return None;
                }
                Ok(Put::Full) => {}
                Ok(Put::TooLong { longest_bytes }) => {
                    peer.too_long_packets.add(1);
                    return Some(Unreachable::TooLong { longest_bytes });
                }
                Err(_) => {
                    peer.went(&line);
                    peer.absent_packets.add(1);
                    return Some(Unreachable::Host);
                }
            }
            let until = *waits_until.get_or_insert_with(|| {
                // It may sleep, since nobody has told it of what fills its window; and so may others, who would wait for this one.
                to_ring[place] = true;
                self.ring(to_ring);
                Instant::now() + PATIENCE
            });
            if peer.is_slow.load(Ordering::Relaxed) || Instant::now() >= until {
                peer.is_slow.store(true, Ordering::Relaxed);
                peer.full_packets.add(1);
                return None;
            }
            std::thread::yield_now();
        }
    }

    fn ring(&self, to_ring: &mut [bool]) {
        for (peer, is_to_ring) in self.peers.iter().zip(to_ring) {
            if std::mem::take(is_to_ring)
                && let Some(line) = peer.line()
                && line.ring().is_err()
            {
                peer.went(&line);
            }
        }
    }

    /// Tells the sender of a packet why it does not go on.
    #[cold]
    fn tell(&self, packet: &[u8], why: Unreachable) {
        let mut told_at = self.told_at.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if told_at.is_some_and(|at| now.duration_since(at) < BETWEEN_ANSWERS) {
            return;
        }
        if let Some(told) = answer(packet, why)
            && self.tun.send(&told).is_ok()
        {
            *told_at = Some(now);
            self.told_packets.add(1);
        }
    }

    /// What other nodes have for this one goes to the kernel.
    fn carry_in(&self, interrupt: &OwnInterrupt) {
        let mut packet = vec![0; usize::from(self.config.mtu)];
        while !self.is_over() {
            let mut has_come = false;
            for peer in &self.peers {
                match self.take_from(peer, &mut packet) {
                    Ok(taken) => has_come |= taken > 0,
                    Err(error) => return self.end(error.into()),
                }
            }
            if has_come {
                continue;
            }
            match interrupt.wait(self.config.unrung) {
                Ok(()) | Err(Refusal::Timeout) => {}
                // The fabric is gone from under this process; nothing comes any more.
                Err(_) => std::thread::sleep(SLEEP),
            }
        }
    }

    /// Takes packets of one node; how many.
    fn take_from(&self, peer: &Peer, packet: &mut [u8]) -> Result<usize, UplinkError> {
        let Some(line) = peer.line() else { return Ok(0) };
        for taken in 0..BATCH {
            let bytes = match line.receive(packet) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return Ok(taken),
                Err(_) => {
                    peer.went(&line);
                    return Ok(taken);
                }
            };
            let packet = &packet[..bytes];
            if !self.is_allowed(peer, packet) {
                peer.wrong_packets.add(1);
                continue;
            }
            match self.tun.send(packet)? {
                beeline_ethernet::Accept::Taken => {
                    peer.received_packets.add(1);
                    peer.received_bytes.add(bytes as u64);
                }
                beeline_ethernet::Accept::Refused => peer.refused_packets.add(1),
            }
        }
        Ok(BATCH)
    }

    /// Whether a packet is from the node that sends it, and for this one: a node speaks for nobody else, and reaches nothing behind this one.
    fn is_allowed(&self, peer: &Peer, bytes: &[u8]) -> bool {
        Packet::of(bytes).is_some_and(|packet| {
            self.config.network.node_of(packet.source) == Some(peer.node)
                && match self.config.network.way_to(packet.destination) {
                    Goes::Node(node) => node == self.own,
                    Goes::All => true,
                    Goes::Nowhere => false,
                }
        })
    }

    /// Meets other nodes, over and over.
    fn meet(&self, mut opening: Vec<Option<MessageQueue>>) {
        while !self.is_over() {
            if let Some(lost) = self.joined.lost() {
                return self.end(IpEnded::Fabric(lost));
            }
            for (peer, opening) in self.peers.iter().zip(&mut opening) {
                if self.is_over() {
                    return;
                }
                match peer.line() {
                    Some(line) if line.is_there() => continue,
                    Some(line) => peer.went(&line),
                    None => {}
                }
                match self.reach(peer, opening) {
                    Ok(line) => peer.came(line),
                    Err(Refusal::Timeout) => peer.refuse(None),
                    Err(refusal) => peer.refuse(Some(refusal)),
                }
            }
            std::thread::sleep(MEETING);
        }
    }

    /// Goes on to reach a node. What was reached so far is kept in `opening`.
    fn reach(&self, peer: &Peer, opening: &mut Option<MessageQueue>) -> Result<Line, Refusal> {
        let queue = match opening.take() {
            Some(queue) => queue,
            None => self.queue(peer)?,
        };
        match queue.open(MEETING) {
            Ok(()) => {}
            // It is not there yet, or has a peer that has gone.
            Err(Refusal::Timeout | Refusal::ConnectionRefused) => {
                *opening = Some(queue);
                return Err(Refusal::Timeout);
            }
            Err(refusal) => return Err(refusal),
        }
        let number = InterruptNumber(NUMBERS | u32::from(peer.node.0));
        match self.joined.connect(peer.node, number, MEETING) {
            Ok(trigger) => Ok(Line::new(queue, trigger)),
            Err(refusal) => {
                *opening = Some(queue);
                Err(refusal)
            }
        }
    }

    /// A queue whose segment is made; the other end need not be there.
    fn begin_queue(&self, peer: &Peer) -> Result<MessageQueue, Refusal> {
        let queue = self.queue(peer)?;
        match queue.open(Duration::from_nanos(1)) {
            Ok(()) | Err(Refusal::Timeout | Refusal::ConnectionRefused) => Ok(queue),
            Err(refusal) => Err(refusal),
        }
    }

    fn queue(&self, peer: &Peer) -> Result<MessageQueue, Refusal> {
        self.joined.message_queue(QueueConfig {
            node: peer.node,
            adapter: self.joined.adapter(),
            local: SegmentId(NUMBERS | u32::from(peer.node.0)),
            remote: SegmentId(NUMBERS | u32::from(self.own.0)),
            max_messages: self.config.queue_packets,
            max_message_bytes: u32::from(self.config.mtu) + HEAD_BYTES as u32,
        })
    }
}
