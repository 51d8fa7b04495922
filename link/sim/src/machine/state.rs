//! What a machine is made of, and what it has counted.

use beeline_nic_contract::{Device, DmaTag, Watches};

use super::bodies::{Blocks, Lines};
use super::memory::Memory;
use super::ways::Way;
use super::{Event, MachineError, MachineSettings};
use crate::cpu::{Core, FenceAck};
use crate::des::{Calendar, Picoseconds, Stream, stream};
use crate::device::{Line, Ports, Server, Transmitted, Wire};
use crate::pcie::{Header, Hop, Link, LinkId, Side};
use crate::root::{Bandwidth, Inbound, Outbound};

/// A core of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreId(pub u16);

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
    /// It is done.
    Never,
}

/// What a machine has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes of memory that the device has read.
    pub memory_read_bytes: u64,
    /// Bytes of memory that the device has written.
    pub memory_written_bytes: u64,
    /// Interrupts that it has raised.
    pub interrupts: u64,
    /// Accesses of it that were no memory of its port.
    pub faults: u64,
    /// Frames that ended with an abort mark.
    pub aborted: u64,
    /// Writes that it has taken.
    pub writes_taken: u64,
}

/// What has not come to its end. When nothing happens any more, nothing is left of any of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnItsWay {
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
}

/// A core and whose turn it is.
#[derive(Debug)]
pub(super) struct Seat {
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

/// A read of the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub tag: DmaTag,
    pub block: u32,
    pub address: u64,
    pub bytes: u32,
    pub missing_bytes: u32,
    /// An answer said that it is no memory.
    pub is_bad: bool,
}

/// Everything but the logic of the device.
pub(super) struct Around {
    pub settings: MachineSettings,
    pub calendar: Calendar<Event>,
    pub seats: Vec<Seat>,
    pub outbound: Outbound,
    pub inbound: Inbound,
    /// What all who use memory share of it.
    pub bandwidth: Bandwidth,
    /// When everything that left each core is ready to leave.
    pub last_ready: Vec<Picoseconds>,
    /// Before when nothing more of each core is ready.
    pub floors: Vec<Picoseconds>,
    pub random: Stream,
    pub links: Vec<Link>,
    pub hops: Vec<Hop>,
    pub ports: Ports,
    pub wire: Wire,
    /// Frames that come by the wire; the device may refuse the first for a while.
    pub coming: Line<Vec<u8>>,
    pub memory: Memory,
    pub lines: Lines,
    pub blocks: Blocks,
    pub reads: Vec<Read>,
    pub free_reads: Vec<u32>,
    /// Bytes that the request of each tag still waits for.
    pub tag_bytes: Vec<u32>,
    /// Lines that the device has a copy of.
    pub watches: Watches,
    /// What programs have stored, as region, offset and bytes, until the device can see it.
    pub host_stores: Line<(usize, usize, u32)>,
    /// Transfers of lines.
    pub transfers: Server,
    /// Lines that the device has stored to, until the host can load them.
    pub stored_lines: Line<(u64, u32)>,
    pub windows_taken: Vec<bool>,
    pub readers_taken: Vec<bool>,
    /// Where the device lies in the address space of the host.
    pub base: u64,
    /// The way back of an acknowledgement.
    pub way_back: Picoseconds,
    pub fence_ack: FenceAck,
    pub totals: Totals,
    /// The core that gets the next place that is free in the root complex.
    pub served_next: usize,
    /// The turn that is due.
    pub due: Option<CoreId>,
    /// When an event will come to wake the device.
    pub wakes_at: Picoseconds,
}

/// A machine; [`Sim`](super::Sim) shares it among the programs on its cores.
pub struct Machine<D> {
    pub(super) device: D,
    pub(super) around: Around,
    /// The logic refused a write, which waits with everything behind it.
    pub(super) is_stalled: bool,
    /// The logic refused a frame, which waits with those behind it.
    pub(super) frame_is_refused: bool,
    /// Bytes of a packet of two lines, while the logic looks at them.
    pub(super) joined: Vec<u8>,
}

impl<D: Device> Machine<D> {
    pub(super) fn new(device: D, settings: MachineSettings, seed: u64) -> Result<Self, MachineError> {
        Ok(Machine {
            device,
            around: Around::new(settings, seed)?,
            is_stalled: false,
            frame_is_refused: false,
            joined: Vec::new(),
        })
    }

    /// The logic of the device.
    pub fn device(&mut self) -> &mut D {
        &mut self.device
    }

    /// The time it is.
    pub fn now(&self) -> Picoseconds {
        self.around.calendar.now()
    }

    /// Until when a core is busy with what it was asked to do.
    pub fn core_clock(&self, core: CoreId) -> Picoseconds {
        self.around.seats[usize::from(core.0)].core.clock()
    }

    /// Time in which a core did something, polls that found nothing excluded.
    pub fn core_worked(&self, core: CoreId) -> Picoseconds {
        self.around.seats[usize::from(core.0)].core.worked()
    }

    /// What a poll of a core that finds nothing takes.
    pub fn poll_time(&self, core: CoreId) -> Picoseconds {
        self.around.seats[usize::from(core.0)].core.settings().poll
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
    pub fn on_its_way(&self) -> OnItsWay {
        let around = &self.around;
        OnItsWay {
            places: around.outbound.taken(),
            lines: around.lines.held(),
            reads: around.reads.len() - around.free_reads.len(),
            tags: usize::from(around.settings.device.read_tags) - around.ports.tags_left(),
            blocks: around.blocks.held(),
            at_ports: around.ports.waiting(),
        }
    }

    /// What was counted.
    pub fn totals(&self) -> Totals {
        let memory = &self.around.memory;
        Totals {
            memory_read_bytes: memory.read_bytes,
            memory_written_bytes: memory.written_bytes,
            ..self.around.totals
        }
    }

    /// Frames are kept with their bytes from now on.
    pub fn keep_frames(&mut self) {
        self.around.wire.keep_frames();
    }

    /// The oldest frame that was let go to the wire and not taken yet.
    pub fn next_transmitted(&mut self) -> Option<Transmitted> {
        self.around.wire.take()
    }

    /// A frame comes by the wire: its last bit at `at`, or behind the one before it.
    pub fn frame_will_come(&mut self, at: Picoseconds, frame: Vec<u8>) {
        let at = at.max(self.around.calendar.now()) + self.around.settings.device.receive_latency;
        if let Some(at) = self.around.coming.push(at, frame) {
            self.around.calendar.schedule(at, Event::FrameComes);
        }
    }

    /// A frame that was looked at; its buffer is used again.
    pub fn give_back(&mut self, transmitted: Transmitted) {
        self.around.wire.give_back(transmitted);
    }
}

impl Seat {
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
        let mut links = vec![Link::new(LinkId(0), settings.link.clone())?];
        let mut hops = Vec::new();
        let mut way_back = settings.root.write_latency + settings.link.flight;
        for (index, further) in (1u16..).zip(&settings.further) {
            let mut lower = Link::new(LinkId(index), further.link.clone())?;
            let upper = links.last_mut().expect("there is a first link");
            hops.push(Hop::new(index - 1, further.latency, upper, &mut lower));
            links.push(lower);
            way_back += further.latency + further.link.flight;
        }
        links[0].watch(Side::Upstream);
        let is_high = settings.header == Header::FourDw;
        let (base, memory_base) = if is_high { (1 << 40, 1 << 33) } else { (0xc000_0000, 1 << 20) };
        let seat = |core: u16| Seat {
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
            seats: (0..settings.cores).map(seat).collect(),
            outbound: Outbound::new(&settings.root),
            inbound: Inbound::default(),
            bandwidth: Bandwidth::default(),
            last_ready: vec![Picoseconds::ZERO; usize::from(settings.cores)],
            floors: vec![Picoseconds::ZERO; usize::from(settings.cores)],
            random: stream(seed, "root complex"),
            links,
            hops,
            ports: Ports::new(&settings.device),
            wire: Wire::default(),
            coming: Line::default(),
            memory: Memory::new(memory_base, settings.interconnect.is_some()),
            lines: Lines::new(),
            blocks: Blocks::default(),
            reads: Vec::new(),
            free_reads: Vec::new(),
            tag_bytes: vec![0; usize::from(settings.device.read_tags)],
            watches: Watches::new(),
            host_stores: Line::default(),
            transfers: Server::default(),
            stored_lines: Line::default(),
            windows_taken: vec![false; settings.aperture.queues as usize],
            readers_taken: vec![false; settings.aperture.queues as usize],
            base,
            way_back,
            fence_ack: settings.core.fence_ack,
            totals: Totals::default(),
            served_next: 0,
            due: None,
            wakes_at: Picoseconds::NEVER,
            settings,
        })
    }

    /// A core, and its way out.
    #[inline]
    pub(super) fn seat(&mut self, core: usize) -> (&mut Seat, Way<'_>) {
        let way = Way {
            outbound: &mut self.outbound,
            lines: &mut self.lines,
            base: self.base,
            latency: self.settings.root.write_latency,
            jitter: self.settings.root.write_jitter,
            last_ready: &mut self.last_ready[core],
            floor: &mut self.floors[core],
            random: &mut self.random,
            core: core as u16,
            acknowledges: matches!(self.fence_ack, FenceAck::RootComplex | FenceAck::Device),
            left: 0,
        };
        (&mut self.seats[core], way)
    }
}
