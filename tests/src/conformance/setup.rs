//! What is under test: an interface, the disorder of its stores, a way to receive.

use beeline_contract_link::Link;
use beeline_contract_memory::Tolerance;
use beeline_driver::{
    Choice, CoherentConfig, CreditCoalescing, Declared, DescriptorConfig, EnsoConfig, InlineConfig,
    KpioConfig, LongFrameConfig, MmioConfig, NiqConfig, OnHalf, QueueHalf, Receive, RxCoherent,
    RxCoherentConfig, RxDescriptor, RxDescriptorConfig, RxEnso, RxEnsoConfig, RxError, RxFrame, RxNiq,
    RxNiqConfig, RxRing, RxRingConfig, Sent, Stopped, Taken, Transmit, TxError, TxQueueConfig,
};
use beeline_spec::Interface;

use crate::{Rig, open};

/// What happens to stores on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disorder {
    /// Nothing beyond what the link does by itself.
    None,
    /// As much as the interface declares that it bears, with this seed.
    Declared(u64),
    /// This much, with this seed, whatever the interface declares.
    Beyond(Tolerance, u64),
}

/// How frames are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// A contiguous ring.
    Ring,
    /// Receive descriptors.
    Descriptors,
    /// A pipe with notifications.
    Pipe,
    /// Coherent lines.
    Lines,
    /// Entries read in the BAR, which are held for a while; frames that do not fit one go into memory.
    Reads(LongFrames),
}

/// Where frames go that do not fit an entry in the BAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongFrames {
    /// Into a contiguous ring.
    Ring,
    /// Into lent buffers.
    Descriptors,
    /// Into a pipe.
    Pipe,
}

/// What is under test.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub interface: Interface,
    /// Disorder of its stores; without meaning for `descriptor`, `enso` and `coherent`.
    pub disorder: Disorder,
    /// How frames are received.
    pub reception: Reception,
    /// Entries of the transmit and receive descriptor rings, a power of two.
    pub entries: u32,
    /// Lines of the receive ring, and of rings and pipes of lines, a power of two and enough for the longest frame
    /// twice.
    pub ring_lines: u32,
    /// The 64 bits that the blank of a blank window is made of.
    pub random: u64,
}

impl Setup {
    /// The whole of what `interface` promises, with small rings so that everything wraps.
    pub fn new(interface: Interface, disorder: Disorder, reception: Reception) -> Self {
        Setup { interface, disorder, reception, entries: 16, ring_lines: 512, random: 0x0123_4567_89ab_cdef }
    }

    /// The settings of every interface, such that rings wrap and everything runs out. An interface that is not named has
    /// its defaults.
    fn choice(&self, longest_bytes: usize, queue: TxQueueConfig) -> Choice {
        let choice = Choice::of(self.interface, self.random);
        let (adversary, tolerance) = match self.disorder {
            Disorder::None => (None, None),
            Disorder::Declared(seed) => (Some(seed), None),
            Disorder::Beyond(more, seed) => (Some(seed), Some(more)),
        };
        let buffer_bytes = (4 * longest_bytes.next_multiple_of(64)).next_power_of_two();
        let credits = CreditCoalescing { lines: 0, time_ns: 100 };
        let (entries, completion_frames, completion_time_ns) = (self.entries, 4, 100);
        Choice {
            adversary,
            tolerance,
            mmio: MmioConfig { queue, credits, ..choice.mmio },
            kpio: KpioConfig { queue, credits, ..choice.kpio },
            descriptor: DescriptorConfig {
                queue,
                entries,
                buffer_bytes,
                completion_frames,
                completion_time_ns,
                ..choice.descriptor
            },
            // Every third push is not used, so that pushes and fetches mix.
            inline: InlineConfig {
                queue: TxQueueConfig { hole_timeout_ns: 1_000, ..queue },
                ring_lines: 4 * entries,
                buffer_bytes,
                completion_frames,
                completion_time_ns,
                credits,
                self_test: 3,
                ..choice.inline
            },
            enso: EnsoConfig { queue, lines: self.ring_lines, completion_frames, completion_time_ns },
            niq: NiqConfig {
                queue,
                entry_lines_log2: 1,
                buffer_bytes,
                completion_frames,
                completion_time_ns,
                ..choice.niq
            },
            // So few entries and buffers that both run out.
            coherent: CoherentConfig {
                queue,
                entries: entries / 2,
                entry_lines_log2: 1,
                short_buffers: entries,
                long_buffers: entries / 2,
            },
            ..choice
        }
    }

    /// Does something with a transmit queue that is not started.
    pub(crate) fn with_half<'r, R: Rig, J: OnHalf<&'r mut R>>(
        &self,
        rig: &'r mut R,
        queue: u32,
        config: TxQueueConfig,
        job: J,
    ) -> J::Output {
        let choice = self.choice(rig.port().max_frame_bytes(), config);
        let ended = choice.half(rig, |rig| rig.port(), queue, job);
        ended.unwrap_or_else(|error| panic!("the device has {} queues: {error}", self.interface))
    }

    /// An open transmit queue.
    pub(crate) fn transmit<R: Rig>(&self, rig: &mut R, queue: u32, config: TxQueueConfig) -> Tx {
        self.with_half(rig, queue, config, Open)
    }

    /// An open receive queue.
    pub(crate) fn receive<R: Rig>(&self, rig: &mut R, queue: u32) -> Rx<R::Link> {
        let ring = RxRingConfig { lines: self.ring_lines, ..Default::default() };
        let lent = RxDescriptorConfig { entries: self.entries, ..Default::default() };
        let pipe = RxEnsoConfig { lines: self.ring_lines, notifications: 2, ..Default::default() };
        match self.reception {
            Reception::Ring => {
                let half = rig.port().rx_ring(queue, ring).expect("the device receives into a ring");
                Rx::Ring(open(rig, half))
            }
            Reception::Descriptors => {
                let half = rig.port().rx_descriptor(queue, lent).expect("the device has receive descriptors");
                Rx::Descriptors(open(rig, half))
            }
            Reception::Pipe => {
                let half = rig.port().rx_enso(queue, pipe).expect("the device receives into a pipe");
                Rx::Pipe(open(rig, half))
            }
            Reception::Reads(long) => {
                let long = match long {
                    LongFrames::Ring => LongFrameConfig::Ring(ring),
                    LongFrames::Descriptors => LongFrameConfig::Descriptors(lent),
                    LongFrames::Pipe => LongFrameConfig::Pipe(pipe),
                };
                // Shorter than two steps, so that reads are given up now and then.
                let config = RxNiqConfig { hold_ns: 1_500, long, ..Default::default() };
                let half =
                    rig.port().rx_niq(queue, config).expect("the device and the link have reads of entries");
                Rx::Reads(Box::new(open(rig, half)))
            }
            Reception::Lines => {
                let (entries, buffers) = (self.entries, self.entries / 2);
                let config = RxCoherentConfig { entries, buffers, ..Default::default() };
                let half = rig.port().rx_coherent(queue, config).expect("the device receives into lines");
                Rx::Lines(open(rig, half))
            }
        }
    }
}

/// Starts the queue.
struct Open;

impl<R: Rig> OnHalf<&mut R> for Open {
    type Output = Tx;

    fn run<T: Transmit + QueueHalf + 'static>(self, rig: &mut R, half: Stopped<T>) -> Tx {
        Tx(Box::new(open(rig, half)))
    }
}

/// An open transmit queue of any interface.
pub(crate) struct Tx(Box<dyn Transmit>);

impl Transmit for Tx {
    fn try_send(&mut self, frame: &[u8]) -> Result<Sent, TxError> {
        self.0.try_send(frame)
    }
    fn try_send_burst(&mut self, frames: &[&[u8]]) -> Result<Taken, TxError> {
        self.0.try_send_burst(frames)
    }
    fn progress(&mut self) -> Result<(), TxError> {
        self.0.progress()
    }
    fn max_frame_bytes(&self) -> usize {
        self.0.max_frame_bytes()
    }
    fn is_idle(&self) -> bool {
        self.0.is_idle()
    }
    fn declared(&self) -> Declared {
        self.0.declared()
    }
}

/// An open receive queue of any kind.
pub(crate) enum Rx<L: Link> {
    Ring(RxRing<L::Memory, L::Doorbell>),
    Descriptors(RxDescriptor<L::Memory, L::Doorbell>),
    Pipe(RxEnso<L::Memory, L::Doorbell>),
    Reads(Box<RxNiq<L::Reads, L::Memory, L::Doorbell>>),
    Lines(RxCoherent<L::Memory>),
}

impl<L: Link> Receive for Rx<L> {
    fn poll(&mut self) -> Result<Option<RxFrame<'_>>, RxError> {
        match self {
            Rx::Ring(half) => half.poll(),
            Rx::Descriptors(half) => half.poll(),
            Rx::Pipe(half) => half.poll(),
            Rx::Reads(half) => half.poll(),
            Rx::Lines(half) => half.poll(),
        }
    }
    fn wants_interrupt(&mut self) -> Result<bool, RxError> {
        match self {
            Rx::Ring(half) => half.wants_interrupt(),
            Rx::Descriptors(half) => half.wants_interrupt(),
            Rx::Pipe(half) => half.wants_interrupt(),
            Rx::Reads(half) => half.wants_interrupt(),
            Rx::Lines(half) => half.wants_interrupt(),
        }
    }
}
