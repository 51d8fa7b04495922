//! One port as the NIC process's loop runs it: what arrived, and what the device wants.
//!
//! [`DevicePort::poll`] brings what the host stored to the device, [`DevicePort::drive`] carries out what the device
//! wants, and neither allocates, locks or calls the system. Frames leave through a [`Wire`] and come in through
//! [`DevicePort::frame_arrived`]. DMA reads are fetched into the cache when they are wanted and carried out when the
//! device wants nothing more, so that the misses of a burst of descriptors, and then of their payloads, overlap as
//! they do behind PCIe.
//!
//! What a queue is used for stays unknown here. Only three things are looked at on their way to the device's
//! registers: when a queue starts and stops, because its window must be blank when it starts, and with which blank.

use core::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::Receiver;

use beeline_domain::Waker;
use beeline_mmio::{LoadWindow, Word};
use beeline_nic_contract::{
    Accept, Device, DmaError, DmaTag, Enables, QueueId, ReadTag, SimTime, Want, Write,
};
use beeline_spec::formats::port_closed;
use beeline_spec::regs::{self, field};

use super::control::{DeviceLayout, HostWords, PortConfig, PortParts, Update};
use super::regions::Regions;
use super::registers::{Access, RegisterServer};
use super::scanner::Scanner;
use super::{PortCounters, counters};
use crate::error::PortError;

/// Longest DMA read (`nic/contract`).
const MAX_READ_BYTES: usize = 4096;
/// DMA reads that may wait for each other.
const MAX_READS: usize = 64;
/// Register accesses served in one turn.
const ACCESSES_PER_TURN: u32 = 8;
/// Wants carried out in one turn, so that no port starves the others.
const WANTS_PER_TURN: u32 = 1024;

/// What became of a frame that was put on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wired {
    /// It is on its way.
    Taken,
    /// It is on its way, and the wire takes no more until [`DevicePort::set_wire_ready`].
    Full,
    /// It goes back to the port it came from (hairpin).
    Back,
}

/// Where a port's frames go.
pub trait Wire {
    /// Takes a frame, Ethernet without FCS.
    fn transmit(&mut self, queue: QueueId, frame: &[u8]) -> Wired;
}

/// What [`DevicePort::drive`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Things the device wanted.
    pub wants: u32,
}

/// A transmit window, and whether its queue is on.
struct Window {
    scanner: Scanner<LoadWindow>,
    /// Used when the host leaves the choice to us.
    own_blank: u64,
    is_started: bool,
}

/// What the link keeps of a queue's registers.
#[derive(Clone, Copy, Debug, Default)]
struct QueueSettings {
    is_enabled: bool,
    /// Blank that the host chose; 0: none.
    blank: u64,
    receives: bool,
}

struct Doorbell {
    offset_bytes: u32,
    word: Word,
    /// Value last delivered.
    seen: u64,
}

#[derive(Clone, Copy)]
struct Read {
    address: u64,
    bytes: u32,
    tag: DmaTag,
}

/// One port: a device, and the memory through which its host reaches it.
pub struct DevicePort<D> {
    device: D,
    windows: Vec<Option<Window>>,
    /// Queues that are on.
    active: Vec<u32>,
    doorbells: Vec<Doorbell>,
    registers: RegisterServer,
    regions: Regions,
    reads: Vec<Read>,
    read_buffer: Box<[u8]>,
    counters: PortCounters,
    words: HostWords,
    waker: Option<Waker>,
    /// A frame on its way back to its own port.
    returned: Vec<u8>,
    is_return_pending: bool,
    is_lossless: bool,
    /// Whether the wire behind [`Wire`] takes frames.
    is_wire_open: bool,
    is_loop_back: bool,
    is_device_enabled: bool,
    /// What the host wrote to the queues' registers.
    settings: Vec<QueueSettings>,
    layout: DeviceLayout,
    config: PortConfig,
    updates: Receiver<Update>,
    event: OwnedFd,
}

impl<D: Device> DevicePort<D> {
    pub(crate) fn new(device: D, parts: PortParts) -> Self {
        let PortParts { layout, config, registers, words, waker, event, updates, loop_back } = parts;
        let queues = layout.queues as usize;
        DevicePort {
            device,
            windows: (0..queues).map(|_| None).collect(),
            active: Vec::with_capacity(queues),
            doorbells: Vec::with_capacity(2 * queues),
            registers,
            regions: Regions::default(),
            reads: Vec::with_capacity(MAX_READS),
            read_buffer: vec![0; MAX_READ_BYTES].into_boxed_slice(),
            counters: counters::PortCounters::default(),
            words,
            waker,
            returned: Vec::with_capacity(beeline_spec::formats::MAX_FRAME_BYTES),
            is_return_pending: false,
            is_lossless: false,
            is_wire_open: true,
            is_loop_back: loop_back,
            is_device_enabled: false,
            settings: vec![QueueSettings::default(); queues],
            layout,
            config,
            updates,
            event,
        }
    }

    /// Brings to the device what the host stored since the last call; whether it was anything.
    ///
    /// # Errors
    /// The host broke the protocol. The port is of no use any more: [`DevicePort::close`] and drop it.
    #[inline]
    pub fn poll(&mut self) -> Result<bool, PortError> {
        let mut any = false;
        for queue in &self.active {
            if let Some(window) = &mut self.windows[*queue as usize]
                && window.is_started
            {
                any |= window.scanner.scan(&mut self.device, &mut self.counters);
            }
        }
        for doorbell in &mut self.doorbells {
            // Acquire: what the host stored before it rang is seen. Pairs with `ring` in host/doorbell.rs.
            let value = doorbell.word.load_acquire();
            if value != doorbell.seen && write_register(&mut self.device, doorbell.offset_bytes, value) {
                doorbell.seen = value;
                self.counters.doorbells += 1;
                any = true;
            }
        }
        if self.registers.has_request() {
            any |= self.serve_registers()?;
        }
        Ok(any)
    }

    /// Carries out what the device wants, until it wants nothing.
    #[inline]
    pub fn drive(&mut self, wire: &mut impl Wire) -> Work {
        let mut wants = 0;
        let mut has_written = false;
        let writes_before = self.counters.dma_writes;
        if self.is_return_pending {
            self.give_back();
        }
        while wants < WANTS_PER_TURN {
            let Some(want) = self.device.next() else {
                if self.reads.is_empty() {
                    break;
                }
                self.complete_reads();
                continue;
            };
            wants += 1;
            match want {
                Want::DmaWrite { address, data } => {
                    self.counters.dma_writes += 1;
                    self.counters.dma_write_bytes += data.len() as u64;
                    if !self.regions.write(address, data, has_written) {
                        self.counters.bad_addresses += 1;
                    }
                    // Words (headers, credits, completions) say nothing about what comes next.
                    has_written |= data.len() > 8;
                }
                Want::Transmit { queue, frame } => match wire.transmit(queue, frame) {
                    Wired::Taken => {}
                    Wired::Full => self.set_wire_ready(false),
                    Wired::Back => {
                        self.returned.clear();
                        self.returned.extend_from_slice(frame);
                        self.give_back();
                    }
                },
                Want::DmaRead { address, bytes, tag } => {
                    self.regions.prefetch(address, bytes as usize);
                    self.reads.push(Read { address, bytes, tag });
                    if self.reads.len() == MAX_READS {
                        self.complete_reads();
                    }
                }
                Want::ReadCompletion { tag, value } => self.registers.answer(tag.0, value),
                Want::Interrupt { .. } => {
                    self.counters.interrupts += 1;
                    self.words.interrupts.store_release(self.counters.interrupts);
                    self.wake_host();
                }
            }
        }
        if self.counters.dma_writes != writes_before {
            self.wake_host();
        }
        Work { wants }
    }

    /// Carries out the reads that wait. The device may want more in the meantime; that comes after.
    fn complete_reads(&mut self) {
        let mut reads = mem::take(&mut self.reads);
        for Read { address, bytes, tag } in reads.drain(..) {
            self.counters.dma_reads += 1;
            self.counters.dma_read_bytes += u64::from(bytes);
            let buffer = self.read_buffer.get_mut(..bytes as usize);
            let data = buffer.and_then(|buffer| self.regions.read(address, buffer).then_some(&*buffer));
            self.counters.bad_addresses += u64::from(data.is_none());
            self.device.dma_completed(tag, data.ok_or(DmaError::BadAddress));
        }
        self.reads = reads;
    }

    /// Offers the device the frame that goes back to it.
    fn give_back(&mut self) {
        let is_taken = self.device.frame_arrived(&self.returned) == Accept::Taken;
        self.counters.returned_frames += u64::from(is_taken);
        let is_pending = !is_taken && self.is_lossless;
        self.counters.returned_drops += u64::from(!is_taken && !is_pending);
        if is_pending != self.is_return_pending {
            self.is_return_pending = is_pending;
            self.device.wire_ready(self.is_wire_open && !is_pending);
        }
    }

    #[inline]
    fn wake_host(&mut self) {
        if let Some(waker) = &self.waker {
            self.counters.host_wakes += u64::from(waker.wake_if_asleep());
        }
    }

    fn serve_registers(&mut self) -> Result<bool, PortError> {
        let mut any = false;
        for _ in 0..ACCESSES_PER_TURN {
            // Before the access, not after: it may be about memory that was registered a moment ago.
            self.apply_updates();
            match self.registers.next()? {
                None => break,
                Some(Access::Read { offset_bytes, tag }) => {
                    self.device.read_arrived(u64::from(offset_bytes), ReadTag(tag));
                }
                Some(Access::Write { offset_bytes, value }) => {
                    self.before_write(offset_bytes, value);
                    if !write_register(&mut self.device, offset_bytes, value) {
                        self.counters.refused_writes += 1;
                        break;
                    }
                }
            }
            self.registers.taken();
            self.counters.register_accesses += 1;
            any = true;
        }
        Ok(any)
    }

    /// Takes over what was opened and closed since the last call.
    pub fn apply_updates(&mut self) {
        while let Ok(update) = self.updates.try_recv() {
            match update {
                Update::Window { queue, port, blank } => {
                    // It is looked at from the next enabling of the queue on: only then do positions agree.
                    let base = self.layout.window_offset(queue);
                    let scanner = Scanner::new(port, base, self.layout.scan_config(&self.config));
                    self.windows[queue as usize] =
                        Some(Window { scanner, own_blank: blank, is_started: false });
                }
                Update::Doorbell { offset_bytes, word } => {
                    self.doorbells.retain(|doorbell| doorbell.offset_bytes != offset_bytes);
                    self.doorbells.push(Doorbell { offset_bytes, word, seen: 0 });
                }
                Update::Region { number, memory } => self.regions.insert(number, memory),
                Update::Release { number } => self.regions.remove(number),
            }
        }
    }

    /// Looks at a register write before the device gets it.
    fn before_write(&mut self, offset_bytes: u32, value: u64) {
        let has = |lsb: u32, mask: u64| value >> lsb & mask != 0;
        if offset_bytes == regs::CONTROL {
            if has(field::control::RESET_LSB, field::control::RESET_MASK) {
                self.is_device_enabled = false;
                self.settings.fill(QueueSettings::default());
            } else {
                self.is_device_enabled = has(field::control::ENABLE_LSB, field::control::ENABLE_MASK);
            }
            for queue in 0..self.layout.queues {
                self.settle(queue);
            }
            return;
        }
        let Some(inside) = offset_bytes.checked_sub(regs::QUEUE) else { return };
        let (queue, register) = (inside / regs::QUEUE_STRIDE, inside % regs::QUEUE_STRIDE);
        let Some(settings) = self.settings.get_mut(queue as usize) else { return };
        match register {
            regs::queue::BLANK => settings.blank = value,
            regs::queue::RX_MODE => {
                settings.receives = has(field::rx_mode::MODE_LSB, field::rx_mode::MODE_MASK)
            }
            regs::queue::CONTROL => {
                settings.is_enabled =
                    has(field::queue_control::ENABLE_LSB, field::queue_control::ENABLE_MASK);
                self.settle(queue);
            }
            _ => {}
        }
    }

    /// Starts or stops looking at a queue as its registers say.
    fn settle(&mut self, queue: u32) {
        let runs = self.is_device_enabled && self.settings[queue as usize].is_enabled;
        match (runs, self.active.contains(&queue)) {
            (true, false) => self.start(queue),
            (false, true) => self.stop(queue),
            _ => {}
        }
    }

    /// The queue is about to be enabled: its window is blank and its doorbells are zero from here on.
    fn start(&mut self, queue: u32) {
        let first = regs::DOORBELL + queue * regs::DOORBELL_STRIDE;
        for doorbell in &mut self.doorbells {
            if (first..first + regs::DOORBELL_STRIDE).contains(&doorbell.offset_bytes) {
                doorbell.word.store(0);
                doorbell.seen = 0;
            }
        }
        self.active.push(queue);
        let Some(window) = &mut self.windows[queue as usize] else { return };
        let chosen = self.settings[queue as usize].blank;
        let blank = if chosen == 0 { window.own_blank } else { chosen };
        if chosen == 0 {
            let offset = regs::QUEUE + queue * regs::QUEUE_STRIDE + regs::queue::BLANK;
            // Devices do not refuse register writes; one that did would fail the queue at its first message.
            let _ = write_register(&mut self.device, offset, blank);
        }
        window.scanner.start(blank);
        window.is_started = true;
    }

    fn stop(&mut self, queue: u32) {
        self.active.retain(|other| *other != queue);
    }

    /// A frame came from the wire; what the device says.
    #[inline]
    pub fn frame_arrived(&mut self, frame: &[u8]) -> Accept {
        self.device.frame_arrived(frame)
    }

    /// Tells the device whether the wire takes frames; it does at the start.
    pub fn set_wire_ready(&mut self, is_ready: bool) {
        self.is_wire_open = is_ready;
        self.device.wire_ready(is_ready && !self.is_return_pending);
    }

    /// Whether the host asked for every frame that it sends to come back to it.
    pub fn is_loop_back(&self) -> bool {
        self.is_loop_back
    }

    /// Whether a queue is on that takes frames from the wire.
    pub fn receives(&self) -> bool {
        self.active.iter().any(|queue| self.settings[*queue as usize].receives)
    }

    /// Whether a frame that goes back to its own port waits for room (`true`) or is dropped and counted.
    pub fn set_lossless(&mut self, is_lossless: bool) {
        self.is_lossless = is_lossless;
    }

    /// Tells the device the time.
    pub fn time_passed(&mut self, now: SimTime) {
        self.device.time_passed(now);
    }

    /// When the device wants to be told the time next.
    pub fn wake_at(&self) -> Option<SimTime> {
        self.device.wake_at()
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// What the link did so far.
    pub fn counters(&self) -> &PortCounters {
        &self.counters
    }

    /// Lines taken from the window of a queue since it was started; `None` when the queue has no window.
    pub fn lines_taken(&self, queue: u32) -> Option<u64> {
        Some(self.windows.get(queue as usize)?.as_ref()?.scanner.frontier())
    }

    /// Queues of which something arrived and the rest is still missing: torn messages, once the host is dead.
    pub fn torn_queues(&self) -> impl Iterator<Item = u32> + '_ {
        let is_torn = |queue: &u32| {
            let window = self.windows[*queue as usize].as_ref();
            window.is_some_and(|window| window.is_started && window.scanner.is_torn())
        };
        self.active.iter().copied().filter(is_torn)
    }

    /// Says whether this process is about to sleep, so that whoever stores next signals [`DevicePort::event`]. After
    /// saying so, issue the membarrier and poll once more (DESIGN decision 5).
    pub fn announce_sleep(&self, is_asleep: bool) {
        self.words.nic_waiting.store(u32::from(is_asleep));
    }

    /// Becomes readable when the host stored something after [`DevicePort::announce_sleep`].
    pub fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Makes the event unreadable again.
    pub fn clear_event(&self) {
        let mut count = [0; 8];
        // It is non-blocking, and that nothing was there is fine.
        let _ = rustix::io::read(&self.event, &mut count);
    }

    /// Tells the host that the port is over, and wakes it.
    pub fn close(&mut self, because: Option<PortError>) {
        let reason = if because.is_some() { port_closed::PROTOCOL } else { port_closed::STOPPED };
        // Release: what the device wrote before is seen by a host that sees this. Pairs with `is_device_gone`.
        self.words.closed.store_release(u64::from(reason));
        self.wake_host();
    }
}

/// Delivers a register write; `false` when the device refused it.
fn write_register<D: Device>(device: &mut D, offset_bytes: u32, value: u64) -> bool {
    let data = value.to_le_bytes();
    let write = Write { offset_bytes: u64::from(offset_bytes), data: &data, enables: Enables::All };
    device.write_arrived(write) == Accept::Taken
}
