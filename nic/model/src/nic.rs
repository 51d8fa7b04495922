//! The NIC: decoder, registers, engines and arbiter behind the device trait.
//!
//! A call of the link goes to the engine it concerns; what engines want waits in [`Shared`] and at the arbiter until
//! the link asks for it. The order of wants: answers to register reads, DMA, watches, interrupts (so that a completion is in
//! memory before its interrupt), frames, and credits that only their time makes due. Not here: what registers do
//! ([`crate::registers`], `lifecycle.rs`), which frame leaves (`outgoing.rs`), how frames come to be (the engines), memory,
//! clocks, threads.

use std::cell::Cell;
use std::slice;

use beeline_contract_device::{
    Accept, Device, DmaError, DmaTag, Enables, QueueId, ReadTag, SimTime, Want, WatchEnd, WatchTag, Write,
};
use beeline_spec::{Interface, LINE_BYTES, WORD_BYTES};

use crate::bar::{Decoder, Target};
use crate::counters::{Counters, TLP_BYTES_BUCKETS};
use crate::deadlines::NEVER;
use crate::dma_port::{DmaOwner, DmaWant};
use crate::egress::Wire;
use crate::engine::{Engine, ReceiveEngine, Shared, WindowEngine};
use crate::interfaces::{Engines, wake};
use crate::kpio::Mux;
use crate::queue_state::{QueueState, Route};
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
    pub(crate) engines: Engines,
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
    /// Whether an engine besides `mmio` and `kpio` was ever started: no other has anything to wake for.
    pub(crate) has_others: bool,
    /// Nothing is due before, as long as nothing happens.
    rests_until: Cell<SimTime>,
    /// Where a frame's checksums are filled in: what an engine holds stays as it came.
    pub(crate) filled: Box<[u8]>,
}

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
            engines: Engines::new(&config),
            rx: RxEngine::new(&config),
            mux: Mux::default(),
            control: 0,
            mux_ports: 0,
            mac: config.mac_word(),
            wire: Wire::new(config.max_frame_bytes),
            attention: false,
            lent: None,
            has_others: false,
            rests_until: Cell::default(),
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
        self.engines = Engines::new(&self.config);
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
        self.engines.mmio.add_next_lines(&mut counters);
        counters
    }

    /// Lines of the buffer pool that hold nothing.
    pub fn free_pool_lines(&self) -> u32 {
        self.engines.mmio.free_pool_lines()
    }

    /// Reorder contexts that no queue holds.
    pub fn free_contexts(&self) -> u32 {
        self.engines.mmio.free_contexts()
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
            Route::To(interface) => {
                let (accept, has_work) = self.engines.write_arrived(queue, interface, offset, write, shared);
                self.attention |= has_work;
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
        let accept =
            self.engines.kpio.write_arrived(queue, offset, write.data, write.enables, &mut self.shared);
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

    /// Lets engines start what they can; whether anything but a frame is wanted.
    #[inline(never)]
    fn has_other_want(&mut self) -> bool {
        self.shared.dma.take_back();
        self.engines.progress(&mut self.shared);
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

    /// Marks the cached wake-up time as stale, because an input has changed the state.
    #[inline]
    pub(crate) fn invalidate_rest(&mut self) {
        *self.rests_until.get_mut() = SimTime(0);
    }

    /// When something is due, or may be.
    #[inline]
    fn earliest(&self) -> SimTime {
        let earliest = self.engines.earliest_without_memory();
        if !self.has_others {
            return earliest;
        }
        earliest.min(self.engines.earliest_with_memory()).min(self.rx.wake_at())
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
        self.invalidate_rest();
        // Whole lines skip the general path: the next line of a reordering queue, and any line of kPIO+WC.
        if let Ok(bytes) = <&[u8; LINE_BYTES]>::try_from(write.data)
            && write.enables == Enables::All
            && let Some((queue, line)) = self.decoder.whole_line(write.offset_bytes)
        {
            match self.queues[usize::from(queue.0)].route {
                Route::To(Interface::Mmio)
                    if self.engines.mmio.take_next_lines(
                        queue,
                        line,
                        slice::from_ref(bytes),
                        &mut self.shared,
                    ) == 1 =>
                {
                    self.settle_failures();
                    return Accept::Taken;
                }
                Route::To(Interface::Kpio) => {
                    return self.kpio_write(queue, u64::from(line) * LINE_BYTES as u64, write);
                }
                Route::To(_) | Route::Drop | Route::None => {}
            }
        }
        self.other_write(write)
    }

    #[inline]
    fn lines_arrived(&mut self, offset_bytes: u64, lines: &[[u8; LINE_BYTES]]) -> usize {
        self.invalidate_rest();
        let mut taken = 0;
        while taken < lines.len() {
            let offset_bytes = offset_bytes + (taken * LINE_BYTES) as u64;
            let next = &lines[taken..];
            let of_mmio = self
                .decoder
                .whole_line(offset_bytes)
                .filter(|(queue, _)| self.queues[usize::from(queue.0)].route == Route::To(Interface::Mmio));
            if let Some((queue, line)) = of_mmio {
                // As many as lie in this window.
                let next = &next[..next.len().min((self.config.window_lines - line) as usize)];
                let count = self.engines.mmio.take_next_lines(queue, line, next, &mut self.shared);
                if count > 0 {
                    self.settle_failures();
                    taken += count;
                    continue;
                }
            }
            if self.write_arrived(Write { offset_bytes, data: &next[0], enables: Enables::All })
                == Accept::Refused
            {
                break;
            }
            taken += 1;
        }
        taken
    }

    #[inline]
    fn awaited_lines(&self, offset_bytes: u64) -> u32 {
        match self.decoder.whole_line(offset_bytes) {
            Some((queue, line)) if self.queues[usize::from(queue.0)].route == Route::To(Interface::Mmio) => {
                self.engines.mmio.awaited_lines(queue, line)
            }
            _ => 0,
        }
    }

    fn read_arrived(&mut self, offset_bytes: u64, tag: ReadTag) {
        self.invalidate_rest();
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
        self.invalidate_rest();
        match self.shared.dma.answered(tag.0) {
            Some((DmaOwner::Transmit(interface), tag)) => {
                self.engines.dma_completed(interface, tag, data, &mut self.shared)
            }
            Some((DmaOwner::Receive, tag)) => self.rx.dma_completed(tag, data, &mut self.shared),
            None => {}
        }
        self.attention = true;
        self.settle_failures();
    }

    fn line_changed(&mut self, tag: WatchTag, data: Result<&[u8], WatchEnd>) {
        self.invalidate_rest();
        match self.shared.watches.answered(tag) {
            Some((queue, Direction::Transmit)) => {
                self.engines.coherent.line_changed(queue, data, &mut self.shared);
            }
            Some((queue, Direction::Receive)) => self.rx.line_changed(queue, data, &mut self.shared),
            None => {}
        }
        self.attention = true;
        self.settle_failures();
    }

    fn frame_arrived(&mut self, frame: &[u8]) -> Accept {
        self.invalidate_rest();
        let accept = self.rx.frame_arrived(frame, &mut self.shared);
        self.attention = true;
        self.settle_failures();
        accept
    }

    fn time_passed(&mut self, now: SimTime) {
        self.shared.now = self.shared.now.max(now);
        let now = self.shared.now;
        // Told with every write: mostly nothing is due.
        if now < self.rests_until.get() {
            return;
        }
        let shared = &mut self.shared;
        let mut woken = self.engines.wake(now, shared);
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
        self.invalidate_rest();
        if let Some((queue, interface)) = self.lent.take() {
            self.pop(queue, interface);
        }
        if (self.attention || !self.shared.dma.is_empty()) && self.has_other_want() {
            return self.other_want();
        }
        if let Some(on_wire) = self.put_on_wire() {
            return Some(self.leave(on_wire));
        }
        self.engines.mmio.push_due_credits(&mut self.shared);
        self.engines.kpio.push_due_credits(&mut self.shared);
        if self.shared.dma.is_empty() { None } else { self.dma_want() }
    }

    #[inline]
    fn transmit_run(&mut self, most: u32, wire: impl FnMut(QueueId, &[u8]) -> bool) -> u32 {
        self.leave_in_a_run(most, wire)
    }

    fn wake_at(&self) -> Option<SimTime> {
        let earliest = self.earliest();
        self.rests_until.set(earliest);
        (earliest != NEVER).then_some(earliest)
    }
}
