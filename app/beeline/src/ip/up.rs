//! `beeline ip up`: the device is there until a signal ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline_fabric::NodeId;
use beeline_fabric_process::{Configuration, OneMemory};
use beeline_ip::{Ip, IpConfig, Joined, Network};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::args::UpArgs;
use super::told::Told;
use crate::failure::Failure;

/// Between two looks at which nodes are there.
const LOOK: Duration = Duration::from_millis(50);
/// How late comes what nobody could be woken for.
const UNRUNG: Duration = Duration::from_millis(100);
/// Members of a memory that this makes.
const MEMBERS: usize = 4;

/// Runs `beeline ip up`.
pub fn run(args: &UpArgs) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| Failure::new("cannot catch the signals that end it").because(error))?;
    }
    let configuration = configuration(args)?;
    let own = configuration.fabric.node;
    let peers = peers(args, &configuration)?;
    let network =
        Network::new(args.net, args.net6).map_err(|error| Failure::new("wrong network").because(error))?;
    let failed = || Failure::new(format!("cannot have IP at node {}", own.0));
    let joined = Joined::open(configuration).map_err(|error| failed().because(error))?;
    let config = IpConfig {
        interface: args.interface.clone(),
        network,
        peers: peers.clone(),
        mtu: args.mtu,
        queue_packets: args.queue,
        spin: Duration::from_micros(args.spin_us),
        unrung: UNRUNG,
    };
    let ip = Ip::up(joined, config).map_err(|error| failed().because(error))?;
    Told::Up {
        interface: args.interface.clone(),
        node: own.0,
        address: network.ipv4_of(own).0,
        peers: peers.iter().map(|peer| peer.0).collect(),
    }
    .print(args.json)?;
    watch(&ip, args.json, &stop)?;
    Told::in_the_end(&ip).iter().try_for_each(|told| told.print(args.json))?;
    ip.ended().map_or(Ok(()), |why| Err(Failure::new(format!("node {} has IP no more", own.0)).because(why)))
}

/// Says which nodes come and go, until it is to stop or the device fails.
fn watch(ip: &Ip, is_json: bool, stop: &AtomicBool) -> Result<(), Failure> {
    let mut before: Vec<Option<Told>> = ip.peers().iter().map(|_| None).collect();
    while !stop.load(Ordering::Relaxed) && ip.ended().is_none() {
        for (peer, before) in ip.peers().iter().zip(&mut before) {
            let now = Told::of(peer);
            // Nodes that were never there are no news.
            let is_news = match before {
                None => peer.is_up || peer.refusal.is_some(),
                Some(before) => *before != now,
            };
            if is_news {
                now.print(is_json)?;
                *before = Some(now);
            }
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// That of SISCI programs, with the memory of the command line.
fn configuration(args: &UpArgs) -> Result<Configuration, Failure> {
    let read = Configuration::read();
    let mut configuration =
        read.map_err(|error| Failure::new("cannot tell which node this is").because(error))?;
    if let Some(path) = &args.memory {
        let bytes = args.memory_bytes.map(|bytes| bytes.as_u64());
        configuration.one_memory = Some(match configuration.one_memory.take() {
            Some(memory) if memory.path == *path => OneMemory { bytes: bytes.or(memory.bytes), ..memory },
            _ => OneMemory { path: path.clone(), members: MEMBERS, bytes, slot: None },
        });
    }
    Ok(configuration)
}

/// The other nodes: those that are named, else those of the file.
fn peers(args: &UpArgs, configuration: &Configuration) -> Result<Vec<NodeId>, Failure> {
    let own = configuration.fabric.node;
    let named: Vec<NodeId> = match args.peers.is_empty() {
        true => configuration.named.iter().map(|named| named.node).collect(),
        false => args.peers.iter().copied().map(NodeId).collect(),
    };
    let mut others: Vec<NodeId> = named.into_iter().filter(|node| *node != own).collect();
    others.sort_unstable();
    others.dedup();
    if others.is_empty() {
        let what = format!("node {} would have IP with nobody", own.0);
        return Err(Failure::new(what)
            .remedy("--peers with the numbers of the other nodes; BEELINE_NODE says which this one is"));
    }
    if let Some(unknown) = others.iter().find(|node| !configuration.fabric.nodes.contains(node)) {
        return Err(Failure::new(format!("node {} is none of this fabric", unknown.0))
            .remedy("the tables [[nodes]] of beeline.toml name those that there are"));
    }
    Ok(others)
}
