//! Hosts: their cores, root complexes and memories, and all that is between them.

use std::collections::BTreeSet;

use super::engine::Engine;
use super::ntb::Ntb;
use super::topology::{End, Topology, group_begins_at};
use super::{HostId, HostsError, HostsEvent, HostsSettings, Place, Region};
use crate::cpu::{Core, FenceAck};
use crate::des::{Calendar, Picoseconds, stream};
use crate::machine::Next;
use crate::machine::memory::Memory;
use crate::machine::payloads::{Blocks, Lines};
use crate::machine::root_path::{Lane, RootPath, RootPaths};
use crate::pcie::{Hop, Link, LinkEnd, Switch};
use crate::root::{Bandwidth, Inbound, Outbound};

/// A core with its turn and its load.
pub(super) struct HostCore {
    pub core: Core,
    pub next: Next,
    /// When its turn comes although nothing has changed that it polls.
    pub until: Picoseconds,
    pub turn: u32,
    /// Whether it polls, and waits for a change.
    pub polls: bool,
    /// What its load across shows.
    pub loaded: u64,
    /// When an event will come to tend its buffers.
    pub tended_at: Option<Picoseconds>,
}

pub(super) struct Host {
    pub id: HostId,
    pub cores: Vec<HostCore>,
    pub paths: RootPaths,
    pub lanes: Vec<Lane>,
    pub engine: Option<Engine>,
    /// Payloads of its engine in flight.
    pub blocks: Blocks,
    pub inbound: Inbound,
    pub bandwidth: Bandwidth,
    pub memory: Memory,
    /// Where its root complex is.
    pub root: LinkEnd,
    pub is_up: bool,
    /// How often its link has gone down.
    pub downs: u64,
    /// Accesses of others that were no memory of it, or of whom it takes none.
    pub faults: u64,
    /// How often a bridge has interrupted it.
    pub interrupts: u64,
    /// Whose requests its bridge does not let in.
    pub refused: BTreeSet<HostId>,
    /// The core that gets the next place that is free in the root complex.
    pub served_next: usize,
}

/// Hosts in virtual time. For one seed, programs that do the same see the same.
pub struct Hosts {
    pub(super) settings: HostsSettings,
    pub(super) calendar: Calendar<HostsEvent>,
    pub(super) hosts: Vec<Host>,
    pub(super) links: Vec<Link>,
    pub(super) hops: Vec<Hop>,
    pub(super) uppers: Vec<usize>,
    /// A bridge that is a device, and its hop.
    pub(super) ntb: Option<(usize, Ntb)>,
    pub(super) switch: Option<Switch>,
    pub(super) ends: Vec<[End; 2]>,
    /// Memory of each host, by group.
    pub(super) reflected: Vec<Vec<Region>>,
    pub(super) due: Option<Place>,
    /// Bytes of a packet of two lines, while they are looked at.
    pub(super) joined: Vec<u8>,
}

impl Hosts {
    /// Hosts at time zero, whose programs have no turn yet.
    ///
    /// # Errors
    /// There are no such hosts.
    pub fn new(settings: HostsSettings, seed: u64) -> Result<Hosts, HostsError> {
        settings.check()?;
        let mut memories = Vec::new();
        let mut reflected = Vec::new();
        for host in (0..settings.hosts() as u16).map(HostId) {
            let mut memory = Memory::new(host.begins_at(&settings), false);
            let bytes = super::GROUP_BYTES as usize;
            let regions = settings.groups().iter().map(|_| {
                let (index, address) = memory.add(bytes);
                Region { host, index, address, bytes }
            });
            reflected.push(regions.collect::<Vec<_>>());
            memories.push(memory);
        }
        let overlays: Vec<Vec<u64>> =
            reflected.iter().map(|regions| regions.iter().map(|region| region.address).collect()).collect();
        let topology = Topology::new(&settings, &overlays)?;
        let hosts = memories.into_iter().zip(&topology.roots).zip(0..);
        let hosts = hosts.map(|((memory, root), id)| Host::new(HostId(id), &settings, memory, *root, seed));
        Ok(Hosts {
            hosts: hosts.collect(),
            settings,
            calendar: Calendar::new(),
            links: topology.links,
            hops: topology.hops,
            uppers: topology.uppers,
            ntb: None,
            switch: topology.switch,
            ends: topology.ends,
            reflected,
            due: None,
            joined: Vec::new(),
        })
    }

    /// Where the window of a group begins, if there is such a group.
    pub fn group_address(&self, group: usize) -> Option<u64> {
        (group < self.settings.groups().len()).then(|| group_begins_at(&self.settings, group))
    }

    /// Memory of a host that a group is copied to, if there is such a group. Hosts that are not in it have it, and get nothing.
    pub fn group_memory(&self, host: HostId, group: usize) -> Option<Region> {
        self.reflected[usize::from(host.0)].get(group).copied()
    }

    /// Says whether a host gets copies of what comes to a group from here on: a register of the central switch, at no cost. At first all
    /// hosts of a group do. `false` if the host is none of them.
    pub fn set_receives(&mut self, host: HostId, group: usize, receives: bool) -> bool {
        let number = u16::try_from(group).ok();
        // A host is at the port of its number.
        let set =
            |switch: &mut Switch| number.is_some_and(|group| switch.set_receives(group, host.0, receives));
        self.switch.as_mut().is_some_and(set)
    }

    /// Says whether a host takes requests of another: the table of requesters in its bridge, at no cost. At first it does of all.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn set_requester(&mut self, host: HostId, requester: HostId, is_taken: bool) {
        let refused = &mut self.host_mut(host).refused;
        if is_taken {
            refused.remove(&requester);
        } else {
            refused.insert(requester);
        }
    }

    /// The count of groups of the settings; their numbers are below it.
    pub fn groups(&self) -> usize {
        self.settings.groups().len()
    }

    /// The time it is.
    pub fn now(&self) -> Picoseconds {
        self.calendar.now()
    }

    /// Events that have happened.
    pub fn events(&self) -> u64 {
        self.calendar.happened()
    }

    /// Until when a core is busy with what it was asked to do.
    ///
    /// # Panics
    /// If there is no such core.
    pub fn clock(&self, place: Place) -> Picoseconds {
        self.host(place.host).cores[usize::from(place.core)].core.clock()
    }

    /// What a poll that finds nothing takes.
    pub fn poll_time(&self) -> Picoseconds {
        self.settings.core.poll
    }

    /// Accesses of others that were no memory of a host, or that it does not take.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn faults(&self, host: HostId) -> u64 {
        self.host(host).faults
    }

    /// How often the link of a host has gone down: what its adapter counts.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn downs(&self, host: HostId) -> u64 {
        self.host(host).downs
    }

    /// Ports of each host; 1 but where hosts are at the ends of several rows.
    pub fn adapters(&self) -> u16 {
        self.settings.adapters()
    }

    /// The port of a host behind which an adapter of it is.
    ///
    /// # Panics
    /// If there is no such adapter.
    pub fn port(&self, host: HostId, adapter: u16) -> HostId {
        assert!(adapter < self.adapters(), "hosts have no adapter {adapter}");
        HostId(host.0 + 2 * adapter)
    }

    /// Whether the link of a host is up.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn is_up(&self, host: HostId) -> bool {
        self.host(host).is_up
    }

    /// Whether nothing is on its way: no packet in a root complex, on a link or in the switch, and no transfer of an engine.
    pub fn is_at_rest(&self) -> bool {
        let has_packets =
            |host: &Host| host.paths.outbound.taken() + host.paths.lines.held() + host.blocks.held() > 0;
        let is_idle = |host: &Host| !has_packets(host) && host.engine.as_ref().is_none_or(Engine::is_idle);
        self.hosts.iter().all(is_idle) && self.switch.as_ref().is_none_or(|switch| switch.held() == 0)
    }

    pub(super) fn host(&self, host: HostId) -> &Host {
        &self.hosts[usize::from(host.0)]
    }

    pub(super) fn host_mut(&mut self, host: HostId) -> &mut Host {
        &mut self.hosts[usize::from(host.0)]
    }

    /// A core and its path into the root complex.
    pub(super) fn core(&mut self, place: Place) -> (&mut HostCore, RootPath<'_>) {
        self.host_mut(place.host).core(place.core)
    }
}

impl Host {
    fn new(id: HostId, settings: &HostsSettings, memory: Memory, root: LinkEnd, seed: u64) -> Host {
        let name = |what: &str| format!("{what} of host {}", id.0);
        let core = |core: u16| HostCore {
            core: Core::new(
                settings.core.clone(),
                stream(seed, &name(&format!("core {core}"))),
                stream(seed, &name(&format!("interrupts of core {core}"))),
            ),
            next: Next::Never,
            until: Picoseconds::NEVER,
            turn: 0,
            polls: false,
            loaded: 0,
            tended_at: None,
        };
        Host {
            id,
            cores: (0..settings.cores).map(core).collect(),
            paths: RootPaths {
                outbound: Outbound::new(&settings.root),
                lines: Lines::new(),
                // What a core stores to is an address of the fabric.
                base: 0,
                latency: settings.root.write_latency,
                jitter: settings.root.write_jitter,
                random: stream(seed, &name("root complex")),
                acknowledges: settings.core.fence_ack == FenceAck::RootComplex,
            },
            lanes: (0..settings.cores).map(|_| Lane::default()).collect(),
            engine: settings.engine.as_ref().map(Engine::new),
            blocks: Blocks::default(),
            inbound: Inbound::default(),
            bandwidth: Bandwidth::default(),
            memory,
            root,
            is_up: true,
            downs: 0,
            faults: 0,
            interrupts: 0,
            refused: BTreeSet::new(),
            served_next: 0,
        }
    }

    pub(super) fn core(&mut self, core: u16) -> (&mut HostCore, RootPath<'_>) {
        let requester = Place { host: self.id, core }.requester();
        let lane = &mut self.lanes[usize::from(core)];
        let path = RootPath { shared: &mut self.paths, lane, core: requester };
        (&mut self.cores[usize::from(core)], path)
    }
}
