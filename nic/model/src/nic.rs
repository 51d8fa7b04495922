//! The NIC: decoder, registers, engines and arbiter behind the device trait.
//!
//! A call of the link goes to the engine it concerns; what engines want waits in [`Shared`] and at the arbiter until
//! the link asks for it. The order of wants: answers to register reads, DMA, watches, interrupts (so that a completion is in
//! memory before its interrupt), frames, and credits that only their time makes due. Not here: what registers do
//! ([`crate::registers`], `lifecycle.rs`), how frames come to be (the engines), memory, clocks, threads.

use beeline_nic_contract::{
    Accept, Device, DmaError, DmaTag, Enables, QueueId, ReadTag, SimTime, Want, WatchEnd, WatchTag, Write,
};
use beeline_spec::{Interface, LINE_BYTES, WORD_BYTES};

use crate::bar::{Decoder, Target};
use crate::coherent::CoherentEngine;
use crate::counters::{Counters, TLP_BYTES_BUCKETS};
use crate::dma::DmaEngine;
use crate::dma_port::{DmaOwner, DmaWant};
use crate::egress::{OnWire, Wire, fill_in};
use crate::engine::{Engine, FrameSource, ReceiveEngine, Shared, WindowEngine};
use crate::enso::EnsoEngine;
use crate::inline::InlineEngine;
use crate::kpio::{KpioEngine, Mux, Path};
use crate::lifecycle::{QueueState, Route};
use crate::mmio::MmioEngine;
use crate::niq::NiqEngine;
use crate::rx::RxEngine;
use crate::watch_port::{Direction, Watch, WatchWant};
use crate::{ConfigError, NicConfig};

/// The behavioural NIC: one port with its queues.
///
/// A pure state machine behind [`Device`]: deterministic, no I/O, no clock, no thread. It takes memory when it is made or
/// reset and when a queue starts, never for a frame. Whatever a host writes, it neither panics nor puts a frame on the
/// wire that was not completely written.
#[derive(Debug)]
pub struct Nic {
    pub(crate) config: NicConfig,
    pub(crate) decoder: Decoder,
    pub(crate) caps: Box<[u64]>,
    pub(crate) queues: Box<[QueueState]>,
    pub(crate) shared: Shared,
    pub(crate) mmio: MmioEngine,
    pub(crate) kpio: KpioEngine,
    pub(crate) dma: DmaEngine,
    pub(crate) inline: InlineEngine,
    pub(crate) enso: EnsoEngine,
    pub(crate) niq: NiqEngine,
    pub(crate) coherent: CoherentEngine,
    pub(crate) rx: RxEngine,
    pub(crate) mux: Mux,
    /// CONTROL, MUX_PORTS and MAC as written.
    pub(crate) control: u64,
    pub(crate) mux_ports: u64,
    pub(crate) mac: u64,
    pub(crate) wire: Wire,
    /// Something but a frame or a credit may be wanted, or an engine other than `mmio` may have something to start.
    pub(crate) attention: bool,
    /// Whose frame the link was given last: it leaves its engine in the next call of `next`.
    pub(crate) lent: Option<(QueueId, Interface)>,
    /// Where a frame's checksums are filled in: what an engine holds stays as it came.
    filled: Box<[u8]>,
}

/// Why a queue has a frame.
const CHOSEN: &str = "the arbiter chose a queue with a frame";

impl Nic {
    /// A NIC in its reset state.
    ///
    /// # Errors
    /// A size of `config` makes no sense.
    pub fn new(config: NicConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        let mut caps = Vec::new();
        config.capabilities().write(|word| caps.push(word));
        Ok(Nic {
            decoder: Decoder::new(&config),
            caps: caps.into_boxed_slice(),
            queues: (0..config.queues).map(|_| QueueState::new()).collect(),
            shared: Shared::new(config.queues),
            mmio: MmioEngine::new(&config),
            kpio: KpioEngine::new(&config),
            dma: DmaEngine::new(&config),
            inline: InlineEngine::new(&config),
            enso: EnsoEngine::new(&config),
            niq: NiqEngine::new(&config),
            coherent: CoherentEngine::new(&config),
            rx: RxEngine::new(&config),
            mux: Mux::default(),
            control: 0,
            mux_ports: 0,
            mac: config.mac_word(),
            wire: Wire::new(config.max_frame_bytes),
            attention: false,
            lent: None,
            filled: vec![0; config.max_frame_bytes as usize].into_boxed_slice(),
            config,
        })
    }

    /// Everything back to reset values; time, the wire and reads that the link still owes an answer go on.
    pub(crate) fn reset(&mut self) {
        // Reads that are held get their answer.
        for queue in 0..self.config.queues as u16 {
            self.rx.stop(QueueId(queue), &mut self.shared);
        }
        let mut shared = Shared::new(self.config.queues);
        std::mem::swap(&mut shared.dma, &mut self.shared.dma);
        std::mem::swap(&mut shared.watches, &mut self.shared.watches);
        std::mem::swap(&mut shared.answers, &mut self.shared.answers);
        shared.dma.reset();
        shared.watches.reset();
        shared.now = self.shared.now;
        self.shared = shared;
        for queue in &mut self.queues {
            *queue = QueueState::new();
        }
        self.mmio = MmioEngine::new(&self.config);
        self.kpio = KpioEngine::new(&self.config);
        self.dma = DmaEngine::new(&self.config);
        self.inline = InlineEngine::new(&self.config);
        self.enso = EnsoEngine::new(&self.config);
        self.niq = NiqEngine::new(&self.config);
        self.coherent = CoherentEngine::new(&self.config);
        self.rx = RxEngine::new(&self.config);
        self.mux = Mux::default();
        (self.control, self.mux_ports, self.mac) = (0, 0, self.config.mac_word());
        self.lent = None;
        self.wire.forget_open();
    }

    /// The sizes it was made with.
    pub fn config(&self) -> &NicConfig {
        &self.config
    }

    /// Every counter, now.
    pub fn counters(&self) -> Counters {
        let mut counters = self.shared.counters.clone();
        self.mmio.add_next_lines(&mut counters);
        counters
    }

    /// Lines of the buffer pool that hold nothing.
    pub fn free_pool_lines(&self) -> u32 {
        self.mmio.free_pool_lines()
    }

    /// Reorder contexts that no queue holds.
    pub fn free_contexts(&self) -> u32 {
        self.mmio.free_contexts()
    }

    /// A write that the fast path did not take.
    #[inline(never)]
    fn other_write(&mut self, write: Write<'_>) -> Accept {
        if self.decoder.is_in_aperture(write.offset_bytes) {
            return self.window_write(write);
        }
        self.attention = true;
        // A register is written whole, as one aligned word.
        let Ok(bytes) = <[u8; 8]>::try_from(write.data) else { return self.bad_access() };
        let is_whole = match write.enables {
            Enables::All => true,
            Enables::Mask(mask) => mask & 0xff == 0xff,
        };
        let target = if is_whole { self.decoder.register(write.offset_bytes) } else { Target::Nothing };
        self.write_register(target, u64::from_le_bytes(bytes));
        self.settle_failures();
        Accept::Taken
    }

    #[inline]
    fn window_write(&mut self, write: Write<'_>) -> Accept {
        let Some((queue, offset)) = self.decoder.window(write.offset_bytes, write.data.len()) else {
            return self.bad_access();
        };
        let has_mask = matches!(write.enables, Enables::Mask(_));
        if write.data.is_empty() || has_mask && write.data.len() > 64 {
            return self.bad_access();
        }
        let shared = &mut self.shared;
        let accept = match self.queues[usize::from(queue.0)].route {
            Route::Mmio => self.mmio.write_arrived(queue, offset, write.data, write.enables, shared),
            Route::Kpio => return self.kpio_write(queue, offset, write),
            Route::Inline => {
                let accept = self.inline.write_arrived(queue, offset, write.data, write.enables, shared);
                self.attention |= self.inline.has_work();
                accept
            }
            Route::Niq => {
                let accept = self.niq.write_arrived(queue, offset, write.data, write.enables, shared);
                self.attention |= self.niq.has_work();
                accept
            }
            Route::Drop => {
                shared.counters.quarantined_writes += 1;
                return Accept::Taken;
            }
            Route::None => return self.bad_access(),
        };
        self.arrived(accept, write)
    }

    #[inline]
    fn kpio_write(&mut self, queue: QueueId, offset: u64, write: Write<'_>) -> Accept {
        let accept = self.kpio.write_arrived(queue, offset, write.data, write.enables, &mut self.shared);
        self.arrived(accept, write)
    }

    /// Counts a write that an engine took, and settles what came of it.
    #[inline]
    fn arrived(&mut self, accept: Accept, write: Write<'_>) -> Accept {
        if accept == Accept::Taken {
            let bytes = match write.enables {
                Enables::All => write.data.len(),
                Enables::Mask(mask) => (mask & u64::MAX >> (64 - write.data.len())).count_ones() as usize,
            };
            let counters = &mut self.shared.counters;
            counters.tx_writes += 1;
            counters.tx_write_bytes += bytes as u64;
            counters.tlp_bytes_histogram[(bytes.saturating_sub(1) / 8).min(TLP_BYTES_BUCKETS - 1)] += 1;
        }
        self.settle_failures();
        accept
    }

    #[cold]
    pub(crate) fn bad_access(&mut self) -> Accept {
        self.shared.counters.bad_accesses += 1;
        Accept::Taken
    }

    /// Lets the frame at the head of a queue go.
    #[inline]
    fn pop(&mut self, queue: QueueId, interface: Interface) {
        match interface {
            Interface::Mmio => self.mmio.pop(queue, &mut self.shared),
            Interface::Kpio => self.kpio.pop(queue, &mut self.shared),
            Interface::Descriptor => self.dma.pop(queue, &mut self.shared),
            Interface::Inline => self.inline.pop(queue, &mut self.shared),
            Interface::Enso => self.enso.pop(queue, &mut self.shared),
            Interface::Niq => self.niq.pop(queue, &mut self.shared),
            Interface::Coherent => self.coherent.pop(queue, &mut self.shared),
        }
        // Those that fetch have something to report, or room to go on.
        self.attention |= !matches!(interface, Interface::Mmio | Interface::Kpio);
    }

    #[inline]
    fn head(&mut self, queue: QueueId, interface: Interface) -> Option<&[u8]> {
        match interface {
            Interface::Mmio => self.mmio.head(queue),
            Interface::Kpio => self.kpio.head(queue),
            Interface::Descriptor => self.dma.head(queue),
            Interface::Inline => self.inline.head(queue),
            Interface::Enso => self.enso.head(queue),
            Interface::Niq => self.niq.head(queue),
            Interface::Coherent => self.coherent.head(queue),
        }
    }

    #[inline]
    fn head_bytes(&self, queue: QueueId, interface: Interface) -> Option<u32> {
        match interface {
            Interface::Mmio => self.mmio.head_bytes(queue),
            Interface::Kpio => self.kpio.head_bytes(queue),
            Interface::Descriptor => self.dma.head_bytes(queue),
            Interface::Inline => self.inline.head_bytes(queue),
            Interface::Enso => self.enso.head_bytes(queue),
            Interface::Niq => self.niq.head_bytes(queue),
            Interface::Coherent => self.coherent.head_bytes(queue),
        }
    }

    /// The queue whose frame goes out next.
    #[inline]
    fn choose(&mut self) -> Option<(QueueId, Interface, u32)> {
        // Mostly one queue is busy, and then there is nothing to arbitrate.
        if let Some(queue) = self.shared.ready.only_one()
            && let Some(interface) = self.queues[usize::from(queue.0)].transmits
        {
            match self.head_bytes(queue, interface) {
                Some(bytes) if self.is_forwarded(queue, interface) => return Some((queue, interface, bytes)),
                Some(_) => {}
                None => {
                    self.shared.ready.found_nothing();
                    return None;
                }
            }
        }
        self.choose_by_turn()
    }

    /// The same for any number of queues. Frames that the multiplexer does not forward are dropped on the way.
    fn choose_by_turn(&mut self) -> Option<(QueueId, Interface, u32)> {
        loop {
            let Nic { shared, mmio, kpio, dma, inline, enso, niq, coherent, queues, .. } = self;
            let (queue, bytes) = shared.ready.next(|queue| match queues[usize::from(queue.0)].transmits {
                Some(Interface::Mmio) => mmio.head_bytes(queue),
                Some(Interface::Kpio) => kpio.head_bytes(queue),
                Some(Interface::Descriptor) => dma.head_bytes(queue),
                Some(Interface::Inline) => inline.head_bytes(queue),
                Some(Interface::Enso) => enso.head_bytes(queue),
                Some(Interface::Niq) => niq.head_bytes(queue),
                Some(Interface::Coherent) => coherent.head_bytes(queue),
                None => None,
            })?;
            let interface = queues[usize::from(queue.0)].transmits?;
            if self.is_forwarded(queue, interface) {
                return Some((queue, interface, bytes));
            }
            self.shared.counters.mux_mismatches += 1;
            self.pop(queue, interface);
        }
    }

    /// Puts on the wire what it takes now. Nearly always that is a whole frame.
    #[inline]
    fn put_on_wire(&mut self) -> Option<OnWire> {
        if self.wire.beats == 0 {
            return None;
        }
        if !self.wire.is_open() {
            let (queue, interface, bytes) = self.choose()?;
            let is_early = interface == Interface::Mmio && self.mmio.begins_early(queue);
            if !is_early && self.wire.beats == Wire::UNBOUNDED {
                return Some(OnWire::Whole { queue, interface, bytes });
            }
            if is_early {
                self.shared.counters.cut_through_frames += 1;
                self.mmio.begin(queue);
            }
            self.wire.open(queue, interface, is_early);
        }
        self.go_on()
    }

    /// Goes on with the frame that is on the wire, beat by beat. A beat that is taken while nothing is behind it is an
    /// underrun: the wire cannot wait.
    #[cold]
    fn go_on(&mut self) -> Option<OnWire> {
        let (queue, interface, is_early) = self.wire.whose();
        let there = match interface {
            _ if self.wire.is_doomed() => None,
            Interface::Mmio if is_early => self.mmio.open_frame(queue),
            Interface::Mmio => self.mmio.head(queue).map(|frame| (frame, true)),
            Interface::Kpio => self.kpio.head(queue).map(|frame| (frame, true)),
            Interface::Descriptor => self.dma.head(queue).map(|frame| (frame, true)),
            Interface::Inline => self.inline.head(queue).map(|frame| (frame, true)),
            Interface::Enso => self.enso.head(queue).map(|frame| (frame, true)),
            Interface::Niq => self.niq.head(queue).map(|frame| (frame, true)),
            Interface::Coherent => self.coherent.head(queue).map(|frame| (frame, true)),
        };
        // The queue failed or was stopped, and the message went with it.
        let Some((there, is_all)) = there else {
            self.wire.close();
            return Some(OnWire::Aborted { queue });
        };
        if !self.wire.take(there) {
            return None;
        }
        self.wire.close();
        if is_all {
            return Some(OnWire::Whole { queue, interface, bytes: there.len() as u32 });
        }
        self.shared.counters.cut_through_underruns += 1;
        self.mmio.abort(queue);
        Some(OnWire::Aborted { queue })
    }

    /// Whether the multiplexer of kPIO+WC lets the frame at the head of a queue out.
    #[inline]
    fn is_forwarded(&mut self, queue: QueueId, interface: Interface) -> bool {
        let path = match interface {
            Interface::Kpio => Path::Kpio,
            Interface::Descriptor => Path::Descriptor,
            Interface::Mmio | Interface::Inline | Interface::Enso | Interface::Niq | Interface::Coherent => {
                return true;
            }
        };
        let mux = self.mux;
        mux == Mux::Both || self.head(queue, interface).is_none_or(|frame| mux.forwards(path, frame))
    }

    /// The frame at the head of a queue, with its checksums.
    fn with_checksums(&mut self, queue: QueueId, interface: Interface) -> Want<'_> {
        let mut filled = std::mem::take(&mut self.filled);
        let frame = self.head(queue, interface).expect(CHOSEN);
        let bytes = frame.len();
        filled[..bytes].copy_from_slice(frame);
        fill_in(&mut filled[..bytes]);
        self.filled = filled;
        Want::Transmit { queue, frame: &self.filled[..bytes] }
    }

    /// Lets engines start what they can; whether anything but a frame is wanted.
    #[inline(never)]
    fn has_other_want(&mut self) -> bool {
        self.shared.dma.take_back();
        self.kpio.progress(&mut self.shared);
        self.dma.progress(&mut self.shared);
        self.inline.progress(&mut self.shared);
        self.enso.progress(&mut self.shared);
        self.niq.progress(&mut self.shared);
        self.coherent.progress(&mut self.shared);
        self.rx.progress(&mut self.shared);
        self.settle_failures();
        self.attention = !self.shared.answers.is_empty()
            || !self.shared.dma.is_empty()
            || self.shared.watches.has_want()
            || !self.shared.interrupts.is_empty();
        self.attention
    }

    /// What `has_other_want` found.
    fn other_want(&mut self) -> Option<Want<'_>> {
        if let Some((tag, value)) = self.shared.answers.take(&self.shared.dma) {
            return Some(Want::ReadCompletion { tag, value });
        }
        if !self.shared.dma.is_empty() {
            return self.dma_want();
        }
        // After the writes: a watch sees what was wanted before it.
        if let Some(want) = self.shared.watches.take() {
            return Some(match want {
                WatchWant::Watch(tag, Watch { address, known, bytes }) => {
                    Want::WatchLine { tag, address, known, bytes }
                }
                WatchWant::Forget(tag) => Want::ForgetLine { tag },
            });
        }
        let vector = self.shared.interrupts.take()?;
        self.shared.counters.interrupts += 1;
        Some(Want::Interrupt { vector })
    }

    fn dma_want(&mut self) -> Option<Want<'_>> {
        Some(match self.shared.dma.take()? {
            DmaWant::Read { address, bytes, tag } => Want::DmaRead { address, bytes, tag: DmaTag(tag) },
            DmaWant::Write { address, start, bytes } => {
                Want::DmaWrite { address, data: self.shared.dma.data(start, bytes) }
            }
        })
    }
}

impl Device for Nic {
    #[inline]
    fn write_arrived(&mut self, write: Write<'_>) -> Accept {
        // Whole lines skip the general path: the next line of a reordering queue, and any line of kPIO+WC.
        if let Ok(bytes) = <&[u8; LINE_BYTES]>::try_from(write.data)
            && write.enables == Enables::All
            && let Some((queue, line)) = self.decoder.whole_line(write.offset_bytes)
        {
            match self.queues[usize::from(queue.0)].route {
                Route::Mmio if self.mmio.take_next_line(queue, line, bytes, &mut self.shared) => {
                    self.settle_failures();
                    return Accept::Taken;
                }
                Route::Kpio => return self.kpio_write(queue, u64::from(line) * LINE_BYTES as u64, write),
                Route::Mmio | Route::Inline | Route::Niq | Route::Drop | Route::None => {}
            }
        }
        self.other_write(write)
    }

    fn read_arrived(&mut self, offset_bytes: u64, tag: ReadTag) {
        self.attention = true;
        if let Some((queue, within)) = self.decoder.window(offset_bytes, WORD_BYTES)
            && self.rx.read_arrived(queue, within, tag, &mut self.shared)
        {
            return;
        }
        let target = self.decoder.register(offset_bytes);
        let value = self.read_register(target).unwrap_or_else(|| {
            self.shared.counters.bad_accesses += 1;
            u64::MAX
        });
        self.shared.answer(tag, value);
    }

    fn dma_completed(&mut self, tag: DmaTag, data: Result<&[u8], DmaError>) {
        match self.shared.dma.answered(tag.0) {
            Some((DmaOwner::Transmit, tag)) => self.dma.dma_completed(tag, data, &mut self.shared),
            Some((DmaOwner::Receive, tag)) => self.rx.dma_completed(tag, data, &mut self.shared),
            Some((DmaOwner::Inline, tag)) => self.inline.dma_completed(tag, data, &mut self.shared),
            Some((DmaOwner::Enso, tag)) => self.enso.dma_completed(tag, data, &mut self.shared),
            Some((DmaOwner::Niq, tag)) => self.niq.dma_completed(tag, data, &mut self.shared),
            Some((DmaOwner::Coherent, tag)) => self.coherent.dma_completed(tag, data, &mut self.shared),
            None => {}
        }
        self.attention = true;
        self.settle_failures();
    }

    fn line_changed(&mut self, tag: WatchTag, data: Result<&[u8], WatchEnd>) {
        match self.shared.watches.answered(tag) {
            Some((queue, Direction::Transmit)) => {
                self.coherent.line_changed(queue, data, &mut self.shared);
            }
            Some((queue, Direction::Receive)) => self.rx.line_changed(queue, data, &mut self.shared),
            None => {}
        }
        self.attention = true;
        self.settle_failures();
    }

    fn frame_arrived(&mut self, frame: &[u8]) -> Accept {
        let accept = self.rx.frame_arrived(frame, &mut self.shared);
        self.attention = true;
        self.settle_failures();
        accept
    }

    fn time_passed(&mut self, now: SimTime) {
        self.shared.now = self.shared.now.max(now);
        let (now, shared) = (self.shared.now, &mut self.shared);
        let mut woken = wake(&mut self.mmio, now, shared);
        woken |= wake(&mut self.kpio, now, shared);
        woken |= wake(&mut self.dma, now, shared);
        woken |= wake(&mut self.inline, now, shared);
        woken |= wake(&mut self.enso, now, shared);
        woken |= wake(&mut self.niq, now, shared);
        woken |= wake(&mut self.coherent, now, shared);
        woken |= wake(&mut self.rx, now, shared);
        self.attention |= woken;
        self.settle_failures();
    }

    fn wire_ready(&mut self, ready: bool) {
        self.wire.beats = if ready { Wire::UNBOUNDED } else { 0 };
    }

    fn wire_takes(&mut self, beats: u32) {
        self.wire.beats = beats.into();
    }

    #[inline]
    fn next(&mut self) -> Option<Want<'_>> {
        if let Some((queue, interface)) = self.lent.take() {
            self.pop(queue, interface);
        }
        if (self.attention || !self.shared.dma.is_empty()) && self.has_other_want() {
            return self.other_want();
        }
        match self.put_on_wire() {
            Some(OnWire::Whole { queue, interface, bytes }) => {
                self.lent = Some((queue, interface));
                self.shared.counters.tx_frames += 1;
                self.shared.counters.tx_frame_bytes += u64::from(bytes);
                if self.queues[usize::from(queue.0)].fills_in_checksums {
                    return Some(self.with_checksums(queue, interface));
                }
                let frame = self.head(queue, interface).expect(CHOSEN);
                return Some(Want::Transmit { queue, frame });
            }
            Some(OnWire::Aborted { queue }) => {
                return Some(Want::Aborted { queue, frame: self.wire.taken() });
            }
            None => {}
        }
        self.mmio.push_due_credits(&mut self.shared);
        self.kpio.push_due_credits(&mut self.shared);
        if self.shared.dma.is_empty() { None } else { self.dma_want() }
    }

    fn wake_at(&self) -> Option<SimTime> {
        // Asked after every write: a register is compared with eight times, not an array of options made and looked at.
        let mut earliest = SimTime(u64::MAX);
        let mut note = |at: Option<SimTime>| earliest = earliest.min(at.unwrap_or(SimTime(u64::MAX)));
        note(self.mmio.wake_at());
        note(self.kpio.wake_at());
        note(self.dma.wake_at());
        note(self.inline.wake_at());
        note(self.enso.wake_at());
        note(self.niq.wake_at());
        note(self.coherent.wake_at());
        note(self.rx.wake_at());
        (earliest != SimTime(u64::MAX)).then_some(earliest)
    }
}

/// Tells an engine the time if it asked for that; whether it did.
#[inline]
fn wake(engine: &mut impl Engine, now: SimTime, shared: &mut Shared) -> bool {
    let is_due = engine.wake_at().is_some_and(|at| at <= now);
    if is_due {
        engine.time_passed(shared);
    }
    is_due
}
