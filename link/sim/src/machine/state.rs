//! What a machine is made of, and what it has counted.

use beeline_contract_device::{Device, Watches};

use super::device_end::DeviceEnd;
use super::memory::Memory;
use super::payloads::{Blocks, Lines};
use super::root_path::{Lane, RootPath, RootPaths};
use super::topology::{LinkEnds, Topology};
use super::{CoreId, DeviceId, Event, MachineError, MachineSettings, Totals};
use crate::cpu::{Core, FenceAck};
use crate::des::{Calendar, Picoseconds, stream};
use crate::device::{Line, Server, Transmitted};
use crate::pcie::{Hop, Link, Switch};
use crate::root::{Bandwidth, Inbound, Outbound};

/// What the caller of [`Sim::advance`](super::Sim::advance) has to do before time goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// It is the turn of the program on this core: run it, and end the turn.
    Turn(CoreId),
    /// Frames were let go to the wire: take all of them. Their times may lie ahead.
    Frame,
}

/// When a program wants its next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// As soon as its core has done what it was asked to do.
    Again,
    /// It found nothing to do and polls: when something that it can see has changed.
    Poll,
    /// Then, or when its core has done what it was asked to do if that is later.
    At(Picoseconds),
    /// The program has ended.
    Never,
}

/// What is in flight: a machine at rest has none of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// Places in the root complex that are taken.
    pub places: usize,
    /// Lines of cores that the device has not taken.
    pub lines: usize,
    /// Reads of the device that it has no data of.
    pub reads: usize,
    /// Tags of its read requests that are taken.
    pub tags: usize,
    /// Bodies of its reads and writes.
    pub blocks: usize,
    /// Packets that wait at its ports.
    pub at_ports: usize,
    /// Packets in the switch.
    pub in_switch: usize,
}

/// A core with its turn and its loads.
#[derive(Debug)]
pub(super) struct CoreState {
    pub core: Core,
    pub next: Next,
    pub turn: u32,
    /// Whether it polls, and waits for a change.
    pub polls: bool,
    /// Answers to loads that nobody has taken, by the number of the load.
    pub answers: Vec<(u16, [u64; 8])>,
    /// Loads whose answers nobody wants any more.
    pub abandoned: Vec<u16>,
    /// The load under way.
    pub load_number: u16,
    /// Words of the load that the device has not answered.
    pub missing_words: u32,
    pub load_words: [u64; 8],
    pub load_bytes: u32,
    pub next_load: u16,
    /// When an event will come to tend its buffers.
    pub tended_at: Option<Picoseconds>,
}

/// Everything but the logic of the devices.
pub(super) struct Around {
    pub settings: MachineSettings,
    pub calendar: Calendar<Event>,
    pub core_states: Vec<CoreState>,
    pub root_paths: RootPaths,
    pub lanes: Vec<Lane>,
    pub inbound: Inbound,
    /// What all who use memory share of it.
    pub bandwidth: Bandwidth,
    pub links: Vec<Link>,
    pub hops: Vec<Hop>,
    /// Of each hop, the link above it; the one below is the next.
    pub uppers: Vec<usize>,
    pub switch: Option<Switch>,
    /// What is at both ends of each link.
    pub link_ends: Vec<LinkEnds>,
    pub ends: Vec<DeviceEnd>,
    pub memory: Memory,
    pub blocks: Blocks,
    /// Lines that the device has a copy of.
    pub watches: Watches,
    /// What programs have stored, as region, offset and bytes, until the device can see it.
    pub host_stores: Line<(usize, usize, u32)>,
    /// Transfers of lines.
    pub transfers: Server,
    /// Lines that the device has stored to, until the host can load them.
    pub stored_lines: Line<(u64, u32)>,
    /// Where the first device lies in the address space of the host.
    pub base: u64,
    /// From a device to the next, and from a multicast group to the next; groups are behind the devices.
    pub span_bytes: u64,
    pub fence_ack: FenceAck,
    /// The core that gets the next place that is free in the root complex.
    pub served_next: usize,
    /// Frames of all devices that were let go to the wire and not taken.
    pub let_go: u64,
    /// The turn that is due.
    pub due: Option<CoreId>,
}

/// A machine; [`Sim`](super::Sim) shares it among the programs on its cores.
pub struct Machine<D> {
    pub(super) devices: Vec<D>,
    pub(super) around: Around,
    /// Bytes of a packet of two lines, while the logic looks at them.
    pub(super) joined: Vec<u8>,
}

impl<D: Device> Machine<D> {
    pub(super) fn new(devices: Vec<D>, settings: MachineSettings, seed: u64) -> Result<Self, MachineError> {
        let around = Around::new(settings, seed)?;
        let (found, places) = (devices.len(), around.ends.len());
        if found != places {
            return Err(MachineError::Devices { found, places });
        }
        Ok(Machine { devices, around, joined: Vec::new() })
    }

    /// The logic of the device; of several, of the first.
    pub fn device(&mut self) -> &mut D {
        &mut self.devices[0]
    }

    /// The logic of each device.
    pub fn devices(&mut self) -> &mut [D] {
        &mut self.devices
    }

    /// Where a device begins in the address space of the host: what another one writes to a peer.
    ///
    /// # Panics
    /// If there is no such device.
    pub fn device_address(&self, device: DeviceId) -> u64 {
        self.around.ends[usize::from(device.0)].base
    }

    /// Where the window of a multicast group begins in the address space of the host, if there is such a group.
    pub fn group_address(&self, group: u16) -> Option<u64> {
        self.around.group_begins_at(group).map(|offset| self.around.base + offset)
    }

    /// The time it is.
    pub fn now(&self) -> Picoseconds {
        self.around.calendar.now()
    }

    /// Until when a core is busy with what it was asked to do.
    pub fn core_clock(&self, core: CoreId) -> Picoseconds {
        self.around.core_states[usize::from(core.0)].core.clock()
    }

    /// Time in which a core did something, polls that found nothing excluded.
    pub fn core_worked(&self, core: CoreId) -> Picoseconds {
        self.around.core_states[usize::from(core.0)].core.worked()
    }

    /// What a poll of a core that finds nothing takes.
    pub fn poll_time(&self, core: CoreId) -> Picoseconds {
        self.around.core_states[usize::from(core.0)].core.settings().poll
    }

    /// Links, from the root complex on.
    pub fn links(&self) -> &[Link] {
        &self.around.links
    }

    /// Links, to have them tell what they carry.
    pub fn links_mut(&mut self) -> &mut [Link] {
        &mut self.around.links
    }

    /// Events that have happened.
    pub fn events(&self) -> u64 {
        self.around.calendar.happened()
    }

    /// What has not come to its end yet.
    pub fn in_flight(&self) -> InFlight {
        let around = &self.around;
        let of_ends = |count: fn(&DeviceEnd) -> usize| around.ends.iter().map(count).sum::<usize>();
        let tags = usize::from(around.settings.device.read_tags) * around.ends.len();
        InFlight {
            places: around.root_paths.outbound.taken(),
            lines: around.root_paths.lines.held(),
            reads: of_ends(|end| end.reads.len() - end.free_reads.len()),
            tags: tags - of_ends(|end| end.ports.tags_left()),
            blocks: around.blocks.held(),
            at_ports: of_ends(|end| end.ports.waiting() + end.peer_loads.held()),
            in_switch: around.switch.as_ref().map_or(0, Switch::held),
        }
    }

    /// What was counted, of all devices together.
    pub fn totals(&self) -> Totals {
        let memory = &self.around.memory;
        let none = Totals {
            memory_read_bytes: memory.read_bytes,
            memory_written_bytes: memory.written_bytes,
            ..Totals::default()
        };
        self.around.ends.iter().fold(none, |sum, end| Totals {
            interrupts: sum.interrupts + end.totals.interrupts,
            faults: sum.faults + end.totals.faults,
            aborted: sum.aborted + end.totals.aborted,
            writes_taken: sum.writes_taken + end.totals.writes_taken,
            ..sum
        })
    }

    /// Frames are kept with their bytes from now on.
    pub fn keep_frames(&mut self) {
        self.around.ends.iter_mut().for_each(|end| end.wire.keep_frames());
    }

    /// The oldest frame that was let go to the wire and not taken yet; of several devices, of the first that has one.
    pub fn next_transmitted(&mut self) -> Option<Transmitted> {
        let taken = self.around.ends.iter_mut().find_map(|end| end.wire.take());
        self.around.let_go -= u64::from(taken.is_some());
        taken
    }

    /// As [`Machine::next_transmitted`], of one device; it stays until [`Machine::drop_transmitted`].
    ///
    /// # Panics
    /// If there is no such device.
    #[inline]
    pub fn transmitted_by(&self, device: DeviceId) -> Option<&Transmitted> {
        self.around.ends[usize::from(device.0)].wire.front()
    }

    /// The oldest frame of a device was looked at; its buffer is used again. Returns whether there was one.
    ///
    /// # Panics
    /// If there is no such device.
    #[inline]
    pub fn drop_transmitted(&mut self, device: DeviceId) -> bool {
        let was_there = self.around.ends[usize::from(device.0)].wire.drop_front();
        self.around.let_go -= u64::from(was_there);
        was_there
    }

    /// The program of a core has done what it wanted to; also before its first turn.
    #[inline]
    pub fn end_turn(&mut self, core: CoreId, next: Next) {
        self.around.core_states[usize::from(core.0)].next = next;
        self.around.settle_core(usize::from(core.0));
    }

    /// A frame comes by the wire of a device: its last bit at `at`, or behind the one before it.
    ///
    /// # Panics
    /// If there is no such device.
    pub fn frame_will_come(&mut self, device: DeviceId, at: Picoseconds, frame: Vec<u8>) {
        let at = at.max(self.around.calendar.now()) + self.around.settings.device.receive_latency;
        if let Some(at) = self.around.ends[usize::from(device.0)].coming.push(at, frame) {
            self.around.calendar.schedule(at, Event::FrameComes(device));
        }
    }
}

impl CoreState {
    /// The answer to its load is there.
    pub(super) fn keep_answer(&mut self, number: u16) {
        match self.abandoned.iter().position(|abandoned| *abandoned == number) {
            Some(at) => {
                self.abandoned.swap_remove(at);
            }
            None => self.answers.push((number, self.load_words)),
        }
    }

    /// Nobody wants the answers to these loads any more.
    pub(super) fn abandon(&mut self, numbers: &[u16]) {
        for number in numbers {
            match self.answers.iter().position(|(answered, _)| answered == number) {
                Some(at) => {
                    self.answers.swap_remove(at);
                }
                None => self.abandoned.push(*number),
            }
        }
    }
}

impl Around {
    fn new(settings: MachineSettings, seed: u64) -> Result<Self, MachineError> {
        settings.core.check()?;
        let count = |what, found, least, most| {
            let fits = (least..=most).contains(&found);
            if fits { Ok(()) } else { Err(MachineError::Count { what, found, least, most }) }
        };
        count("cores", usize::from(settings.cores), 1, 1024)?;
        count("places in the root complex", settings.root.write_places, 1, 1 << 16)?;
        count("tags of reads", usize::from(settings.device.read_tags), 1, 1 << 14)?;
        let Topology { links, hops, uppers, switch, link_ends, ends, base, span_bytes, memory_base } =
            Topology::new(&settings)?;
        let state = |core: u16| CoreState {
            core: Core::new(
                settings.core.clone(),
                stream(seed, &format!("core {core}")),
                stream(seed, &format!("interrupts of core {core}")),
            ),
            next: Next::Never,
            turn: 0,
            polls: false,
            answers: Vec::new(),
            abandoned: Vec::new(),
            load_number: 0,
            missing_words: 0,
            load_words: [0; 8],
            load_bytes: 0,
            next_load: 0,
            tended_at: None,
        };
        Ok(Around {
            calendar: Calendar::new(),
            core_states: (0..settings.cores).map(state).collect(),
            root_paths: RootPaths {
                outbound: Outbound::new(&settings.root),
                lines: Lines::new(),
                base,
                latency: settings.root.write_latency,
                jitter: settings.root.write_jitter,
                random: stream(seed, "root complex"),
                acknowledges: matches!(settings.core.fence_ack, FenceAck::RootComplex | FenceAck::Device),
            },
            lanes: (0..settings.cores).map(|_| Lane::default()).collect(),
            inbound: Inbound::default(),
            bandwidth: Bandwidth::default(),
            links,
            hops,
            uppers,
            switch,
            link_ends,
            ends,
            memory: Memory::new(memory_base, settings.interconnect.is_some()),
            blocks: Blocks::default(),
            watches: Watches::new(),
            host_stores: Line::default(),
            transfers: Server::default(),
            stored_lines: Line::default(),
            base,
            span_bytes,
            fence_ack: settings.core.fence_ack,
            served_next: 0,
            let_go: 0,
            due: None,
            settings,
        })
    }

    /// Where a device begins, from the first one on.
    pub(super) fn begins_at(&self, device: DeviceId) -> u64 {
        u64::from(device.0) * self.span_bytes
    }

    /// Where the window of a group begins, from the first device on.
    pub(super) fn group_begins_at(&self, group: u16) -> Option<u64> {
        let groups = self.settings.switch.as_ref().map_or(0, |switch| switch.groups.len());
        let place = self.ends.len() as u64 + u64::from(group);
        (usize::from(group) < groups).then_some(place * self.span_bytes)
    }

    /// A core and its path into the root complex.
    #[inline]
    pub(super) fn state(&mut self, core: usize) -> (&mut CoreState, RootPath<'_>) {
        let path = RootPath { shared: &mut self.root_paths, lane: &mut self.lanes[core], core: core as u16 };
        (&mut self.core_states[core], path)
    }
}
