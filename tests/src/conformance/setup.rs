//! What is under test: an interface, the disorder of its stores, a way to receive.

use beeline_contract_link::Link;
use beeline_contract_memory::{Adversary, StorePort, Tolerance, forward_store_port};
use beeline_driver::{
    Batching, CoherentConfig, CreditCoalescing, Declared, DescriptorConfig, EnsoConfig, InlineConfig,
    KpioConfig, LongFrameConfig, MmioConfig, NiqConfig, Port, Receive, RxCoherent, RxCoherentConfig,
    RxDescriptor, RxDescriptorConfig, RxEnso, RxEnsoConfig, RxError, RxFrame, RxNiq, RxNiqConfig, RxRing,
    RxRingConfig, Sent, Stopped, Taken, Transmit, TxCoherent, TxDescriptor, TxEnso, TxError, TxInline,
    TxKpio, TxMmio, TxNiq, TxQueueConfig,
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

/// A window, with the adversary before it or not.
pub(crate) enum Before<P> {
    Nothing(P),
    Adversary(Box<Adversary<P>>),
}

impl<P: StorePort> StorePort for Before<P> {
    forward_store_port! {
        |this| match this { Before::Nothing(port) => port, Before::Adversary(port) => port };
        lines, stores, hints, fence, wake_receiver, progress
    }
}

impl Setup {
    /// The whole of what `interface` promises, with small rings so that everything wraps.
    pub fn new(interface: Interface, disorder: Disorder, reception: Reception) -> Self {
        Setup { interface, disorder, reception, entries: 16, ring_lines: 512, random: 0x0123_4567_89ab_cdef }
    }

    fn before<P: StorePort>(&self, window: P, bears: Tolerance) -> Before<P> {
        match self.disorder {
            Disorder::None => Before::Nothing(window),
            Disorder::Declared(seed) => Before::Adversary(Box::new(Adversary::new(window, bears, seed))),
            Disorder::Beyond(more, seed) => Before::Adversary(Box::new(Adversary::new(window, more, seed))),
        }
    }

    const CREDITS: CreditCoalescing = CreditCoalescing { lines: 0, time_ns: 100 };

    /// The `mmio` half of a queue.
    pub(crate) fn mmio<L: Link>(
        &self,
        port: &mut Port<L>,
        queue: u32,
        config: TxQueueConfig,
    ) -> Stopped<TxMmio<Before<L::Window>, L::Memory>> {
        let batching = Batching::default();
        let config = MmioConfig {
            queue: config,
            random: self.random,
            batching,
            credits: Self::CREDITS,
            ..Default::default()
        };
        let half = port.mmio_behind(queue, config, |window, bears| self.before(window, bears));
        half.expect("the device has mmio queues")
    }

    /// The `kpio` half of a queue.
    pub(crate) fn kpio<L: Link>(
        &self,
        port: &mut Port<L>,
        queue: u32,
        config: TxQueueConfig,
    ) -> Stopped<TxKpio<Before<L::Window>, L::Memory>> {
        let config =
            KpioConfig { queue: config, random: self.random, credits: Self::CREDITS, ..Default::default() };
        let half = port.kpio_behind(queue, config, |window, bears| self.before(window, bears));
        half.expect("the device has kpio queues")
    }

    /// The `descriptor` half of a queue.
    pub(crate) fn descriptor<L: Link>(
        &self,
        port: &mut Port<L>,
        queue: u32,
        config: TxQueueConfig,
    ) -> Stopped<TxDescriptor<L::Memory, L::Doorbell>> {
        let longest = port.max_frame_bytes().next_multiple_of(64);
        let config = DescriptorConfig {
            queue: config,
            entries: self.entries,
            buffer_bytes: (4 * longest).next_power_of_two(),
            completion_frames: 4,
            completion_time_ns: 100,
            ..Default::default()
        };
        port.descriptor(queue, config).expect("the device has descriptor queues")
    }

    /// The `inline` half of a queue. Every third push is not used, so that pushes and fetches mix.
    pub(crate) fn inline<L: Link>(
        &self,
        port: &mut Port<L>,
        queue: u32,
        config: TxQueueConfig,
    ) -> Stopped<TxInline<Before<L::Window>, L::Memory, L::Doorbell>> {
        let longest = port.max_frame_bytes().next_multiple_of(64);
        let config = InlineConfig {
            queue: TxQueueConfig { hole_timeout_ns: 1_000, ..config },
            random: self.random,
            ring_lines: 4 * self.entries,
            buffer_bytes: (4 * longest).next_power_of_two(),
            completion_frames: 4,
            completion_time_ns: 100,
            credits: Self::CREDITS,
            self_test: 3,
        };
        let half = port.inline_behind(queue, config, |window, bears| self.before(window, bears));
        half.expect("the device has inline queues")
    }

    /// The `enso` half of a queue.
    pub(crate) fn enso<L: Link>(
        &self,
        port: &mut Port<L>,
        queue: u32,
        config: TxQueueConfig,
    ) -> Stopped<TxEnso<L::Memory, L::Doorbell>> {
        let config = EnsoConfig {
            queue: config,
            lines: self.ring_lines,
            completion_frames: 4,
            completion_time_ns: 100,
        };
        port.enso(queue, config).expect("the device has enso queues")
    }

    /// The `niq` half of a queue.
    pub(crate) fn niq<L: Link>(
        &self,
        port: &mut Port<L>,
        queue: u32,
        config: TxQueueConfig,
    ) -> Stopped<TxNiq<Before<L::Window>, L::Memory>> {
        let longest = port.max_frame_bytes().next_multiple_of(64);
        let config = NiqConfig {
            queue: config,
            random: self.random,
            entry_lines_log2: 1,
            buffer_bytes: (4 * longest).next_power_of_two(),
            completion_frames: 4,
            completion_time_ns: 100,
        };
        let half = port.niq_behind(queue, config, |window, bears| self.before(window, bears));
        half.expect("the device has niq queues")
    }

    /// The `coherent` half of a queue, with so few entries and buffers that both run out.
    pub(crate) fn coherent<L: Link>(
        &self,
        port: &mut Port<L>,
        queue: u32,
        config: TxQueueConfig,
    ) -> Stopped<TxCoherent<L::Memory>> {
        let config = CoherentConfig {
            queue: config,
            entries: self.entries / 2,
            entry_lines_log2: 1,
            short_buffers: self.entries,
            long_buffers: self.entries / 2,
        };
        port.coherent(queue, config).expect("the device has coherent queues")
    }

    /// An open transmit queue.
    pub(crate) fn transmit<R: Rig>(&self, rig: &mut R, queue: u32, config: TxQueueConfig) -> Tx<R::Link> {
        match self.interface {
            Interface::Mmio => {
                let half = self.mmio(rig.port(), queue, config);
                Tx::Mmio(open(rig, half))
            }
            Interface::Kpio => {
                let half = self.kpio(rig.port(), queue, config);
                Tx::Kpio(open(rig, half))
            }
            Interface::Descriptor => {
                let half = self.descriptor(rig.port(), queue, config);
                Tx::Descriptor(open(rig, half))
            }
            Interface::Inline => {
                let half = self.inline(rig.port(), queue, config);
                Tx::Inline(open(rig, half))
            }
            Interface::Enso => {
                let half = self.enso(rig.port(), queue, config);
                Tx::Enso(open(rig, half))
            }
            Interface::Niq => {
                let half = self.niq(rig.port(), queue, config);
                Tx::Niq(open(rig, half))
            }
            Interface::Coherent => {
                let half = self.coherent(rig.port(), queue, config);
                Tx::Coherent(open(rig, half))
            }
        }
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

/// An open transmit queue of any interface.
pub(crate) enum Tx<L: Link> {
    Mmio(TxMmio<Before<L::Window>, L::Memory>),
    Kpio(TxKpio<Before<L::Window>, L::Memory>),
    Descriptor(TxDescriptor<L::Memory, L::Doorbell>),
    Inline(TxInline<Before<L::Window>, L::Memory, L::Doorbell>),
    Enso(TxEnso<L::Memory, L::Doorbell>),
    Niq(TxNiq<Before<L::Window>, L::Memory>),
    Coherent(TxCoherent<L::Memory>),
}

impl<L: Link> Tx<L> {
    fn half(&self) -> &dyn Transmit {
        match self {
            Tx::Mmio(half) => half,
            Tx::Kpio(half) => half,
            Tx::Descriptor(half) => half,
            Tx::Inline(half) => half,
            Tx::Enso(half) => half,
            Tx::Niq(half) => half,
            Tx::Coherent(half) => half,
        }
    }

    fn half_mut(&mut self) -> &mut dyn Transmit {
        match self {
            Tx::Mmio(half) => half,
            Tx::Kpio(half) => half,
            Tx::Descriptor(half) => half,
            Tx::Inline(half) => half,
            Tx::Enso(half) => half,
            Tx::Niq(half) => half,
            Tx::Coherent(half) => half,
        }
    }
}

impl<L: Link> Transmit for Tx<L> {
    fn try_send(&mut self, frame: &[u8]) -> Result<Sent, TxError> {
        self.half_mut().try_send(frame)
    }
    fn try_send_burst(&mut self, frames: &[&[u8]]) -> Result<Taken, TxError> {
        self.half_mut().try_send_burst(frames)
    }
    fn progress(&mut self) -> Result<(), TxError> {
        self.half_mut().progress()
    }
    fn max_frame_bytes(&self) -> usize {
        self.half().max_frame_bytes()
    }
    fn is_idle(&self) -> bool {
        self.half().is_idle()
    }
    fn declared(&self) -> Declared {
        self.half().declared()
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
