//! One port as the NIC process's loop runs it: what arrived, and what the device wants.
//!
//! [`DevicePort::poll`] brings what the host stored to the device, [`DevicePort::drive`] carries out what the device
//! wants, and neither allocates, locks or calls the system. Frames leave through a [`Wire`] and come in through
//! [`DevicePort::frame_arrived`]. DMA reads are fetched into the cache when they are wanted and carried out when the
//! device wants nothing more, so that the misses of a burst of descriptors, and then of their payloads, overlap as
//! they do behind PCIe.
//! Windows and doorbells are in `queues.rs`, register accesses in `registers.rs`, memory in `regions.rs`.

use core::mem;
use std::os::fd::BorrowedFd;

use beeline_contract_device::{Accept, Device, DmaError, DmaTag, QueueId, ReadTag, SimTime, Want, Watches};
use beeline_domain::Disposer;
use beeline_mmio::LoadWindow;

use super::device_layout::DeviceLayout;
use super::host_side::{Access, Closing, HostSide};
use super::port_parts::PortParts;
use super::process_host::ProcessHost;
use super::queues::{self, Queues, write_register};
use super::regions::Regions;
use super::{PortConfig, PortCounters};
use crate::error::PortError;

/// Longest DMA read (`contract/device`).
const MAX_READ_BYTES: usize = 4096;
/// DMA reads that may wait for each other.
const MAX_READS: usize = 64;
/// Register accesses served in one turn.
const ACCESSES_PER_TURN: u32 = 8;
/// Wants carried out in one turn, so that no port starves the others.
const WANTS_PER_TURN: u32 = 1024;
/// Turns between writes up to which they are a stream; a host that answers every frame takes more.
const STREAM_TURNS: u32 = 3;

/// What became of a frame that was put on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wired {
    /// The switch has taken the frame.
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

#[derive(Clone, Copy)]
struct Read {
    address: u64,
    bytes: u32,
    tag: DmaTag,
}

/// One port: a device, and the memory through which its host reaches it. `H` is the host: a process, or who sees a PCI function.
pub struct DevicePort<D, H = ProcessHost> {
    device: D,
    queues: Queues,
    host: H,
    reads: Vec<Read>,
    read_buffer: Box<[u8]>,
    watches: Watches,
    counters: PortCounters,
    /// A frame on its way back to its own port.
    returned: Vec<u8>,
    is_return_pending: bool,
    is_lossless: bool,
    /// Whether the wire behind [`Wire`] takes frames.
    is_wire_open: bool,
    /// Turns since the device last wrote more than a word.
    quiet_turns: u32,
    is_loop_back: bool,
}

impl<D: Device> DevicePort<D> {
    pub(crate) fn new(device: D, parts: PortParts) -> Self {
        let PortParts { layout, config, registers, words, waker, event, updates, loop_back } = parts;
        let regions = Regions::default();
        let host = ProcessHost { registers, regions, words, waker, updates, event, disposer: None };
        DevicePort::assemble(device, host, Queues::new(layout, config), loop_back)
    }
}

impl<D: Device, H: HostSide> DevicePort<D, H> {
    /// A port whose host is of another kind than a process. `windows` has one for each queue, in order, which stay as long as
    /// the port, each with the blank that its queue takes when the host chooses none.
    pub fn with_host(
        device: D,
        host: H,
        layout: &DeviceLayout,
        config: &PortConfig,
        windows: impl IntoIterator<Item = (LoadWindow, u64)>,
    ) -> Self {
        let mut queues = Queues::new(layout.clone(), *config);
        for (queue, (window, blank)) in (0..layout.queues()).zip(windows) {
            queues.add_window(queue, window, None, blank);
        }
        DevicePort::assemble(device, host, queues, false)
    }

    fn assemble(device: D, host: H, queues: Queues, is_loop_back: bool) -> Self {
        DevicePort {
            device,
            queues,
            host,
            reads: Vec::with_capacity(MAX_READS),
            read_buffer: vec![0; MAX_READ_BYTES].into_boxed_slice(),
            watches: Watches::new(),
            counters: PortCounters::default(),
            returned: Vec::with_capacity(beeline_spec::formats::MAX_FRAME_BYTES),
            is_return_pending: false,
            is_lossless: false,
            is_wire_open: true,
            quiet_turns: u32::MAX,
            is_loop_back,
        }
    }

    /// Brings to the device what the host stored since the last call; whether it was anything.
    ///
    /// # Errors
    /// The host broke the protocol. The port is of no use any more: [`DevicePort::close`] and drop it.
    #[inline]
    pub fn poll(&mut self) -> Result<bool, PortError> {
        let mut any = self.queues.poll(&mut self.device, &mut self.counters);
        // Real coherence: the device's copy of a watched line is this core's, and the CPU's interconnect invalidates it.
        any |= self.watches.look(&mut self.device, &mut self.host);
        if self.host.has_request() {
            any |= self.serve_registers()?;
        }
        Ok(any)
    }

    /// Carries out what the device wants, until it wants nothing.
    #[inline]
    pub fn drive(&mut self, wire: &mut impl Wire) -> Work {
        let mut wants = 0;
        self.quiet_turns = self.quiet_turns.saturating_add(1);
        let writes_before = self.counters.dma_writes;
        if self.is_return_pending {
            self.give_back();
        }
        while wants < WANTS_PER_TURN {
            wants += self.transmit_run(WANTS_PER_TURN - wants, wire);
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
                    let is_stream = self.quiet_turns <= STREAM_TURNS;
                    if !self.host.dma_write(address, data, is_stream) {
                        self.counters.bad_addresses += 1;
                    }
                    // Words (headers, credits, completions) say nothing about what comes next.
                    if data.len() > mem::size_of::<u64>() {
                        self.quiet_turns = 0;
                    }
                }
                Want::Transmit { queue, frame } => {
                    let wired = put_on_wire(wire, queue, frame, &mut self.returned);
                    self.settle(wired);
                }
                // Its check sequence is spoilt, so nobody receives it.
                Want::Aborted { .. } => {}
                Want::DmaRead { address, bytes, tag } => {
                    self.host.dma_prefetch(address, bytes as usize);
                    self.reads.push(Read { address, bytes, tag });
                    if self.reads.len() == MAX_READS {
                        self.complete_reads();
                    }
                }
                Want::ReadCompletion { tag, value } => self.host.answer(tag.0, value),
                watch @ (Want::WatchLine { .. } | Want::ForgetLine { .. }) => {
                    self.watches.take(&watch);
                }
                Want::Interrupt { vector } => {
                    self.counters.interrupts += 1;
                    self.host.interrupt(vector, self.counters.interrupts);
                    self.wake_host();
                }
            }
        }
        if self.counters.dma_writes != writes_before {
            self.wake_host();
        }
        Work { wants }
    }

    /// Puts on the wire frames that leave one after the other; how many.
    #[inline]
    fn transmit_run(&mut self, most: u32, wire: &mut impl Wire) -> u32 {
        let (returned, mut last) = (&mut self.returned, Wired::Taken);
        let frames = self.device.transmit_run(most, |queue, frame| {
            last = put_on_wire(wire, queue, frame, returned);
            last == Wired::Taken
        });
        self.settle(last);
        frames
    }

    /// Does what the wire's answer to a frame asks for.
    #[inline]
    fn settle(&mut self, wired: Wired) {
        match wired {
            Wired::Taken => {}
            Wired::Full => self.set_wire_ready(false),
            Wired::Back => self.give_back(),
        }
    }

    /// Carries out the reads that wait. The device may want more in the meantime; that comes after.
    fn complete_reads(&mut self) {
        let mut reads = mem::take(&mut self.reads);
        for Read { address, bytes, tag } in reads.drain(..) {
            self.counters.dma_reads += 1;
            self.counters.dma_read_bytes += u64::from(bytes);
            let buffer = self.read_buffer.get_mut(..bytes as usize);
            let data = buffer.and_then(|buffer| self.host.dma_read(address, buffer).then_some(&*buffer));
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

    /// The device was reset: the frame that waits to come back to it is of before, and may be another host's than the one to come.
    fn forget_returned(&mut self) {
        if self.is_return_pending {
            self.is_return_pending = false;
            self.counters.returned_drops += 1;
            self.device.wire_ready(self.is_wire_open);
        }
    }

    #[inline]
    fn wake_host(&mut self) {
        self.counters.host_wakes += u64::from(self.host.wake());
    }

    fn serve_registers(&mut self) -> Result<bool, PortError> {
        let mut any = false;
        for _ in 0..ACCESSES_PER_TURN {
            // Before the access, not after: it may be about memory that was registered a moment ago.
            self.apply_updates();
            match self.host.next()? {
                None => break,
                Some(Access::Read { offset_bytes, tag }) => {
                    self.device.read_arrived(u64::from(offset_bytes), ReadTag(tag));
                }
                Some(Access::Write { offset_bytes, value }) => {
                    if !self.queues.prepare(offset_bytes, value) {
                        // The access stays where it is, and the next turn goes on with it.
                        any = true;
                        break;
                    }
                    self.queues.before_write(&mut self.device, offset_bytes, value);
                    if !write_register(&mut self.device, offset_bytes, value) {
                        self.counters.refused_writes += 1;
                        break;
                    }
                    if queues::resets(offset_bytes, value) {
                        self.forget_returned();
                    }
                }
            }
            self.host.taken();
            self.counters.register_accesses += 1;
            any = true;
        }
        Ok(any)
    }

    /// Takes over what was opened and closed since the last call. [`DevicePort::poll`] does so before every register
    /// access; a loop must also do so now and then, because until it does memory of the host stays, and after a few
    /// hundred requests the host is refused more.
    pub fn apply_updates(&mut self) {
        self.host.apply_updates(&mut self.queues);
    }

    /// Has what the host closes dropped by `disposer`; until then it is dropped by whoever calls this port.
    pub fn dispose_with(&mut self, disposer: Disposer) {
        self.host.dispose_with(disposer);
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
        self.queues.receives()
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

    /// Returns the device behind the port.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Counts what the link did since the port opened.
    pub fn counters(&self) -> &PortCounters {
        &self.counters
    }

    /// Lines taken from the window of a queue since it was started; `None` when the queue has no window.
    pub fn lines_taken(&self, queue: u32) -> Option<u64> {
        self.queues.lines_taken(queue)
    }

    /// Queues of which something arrived and the rest is still missing: torn messages, once the host is dead.
    pub fn torn_queues(&self) -> impl Iterator<Item = u32> + '_ {
        self.queues.torn()
    }

    /// Says whether this process is about to sleep, so that whoever stores next signals [`DevicePort::event`]. After
    /// saying so, issue the membarrier and poll once more (docs/design.md, decision 5).
    pub fn announce_sleep(&self, is_asleep: bool) {
        self.host.announce_sleep(is_asleep);
    }

    /// Becomes readable when the host stored something after [`DevicePort::announce_sleep`]. `None` once the host has
    /// ended its side or done with it what no sound host does: then only the bound of the sleep ends it for this port.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.host.event()
    }

    /// Makes the event unreadable again; to be called when it was readable. It never waits, whatever the host does.
    pub fn clear_event(&mut self) {
        self.host.clear_event();
    }

    /// Tells the host that the port is over, and wakes it.
    pub fn close(&mut self, because: Option<PortError>) {
        self.host.close(if because.is_some() { Closing::Protocol } else { Closing::Stopped });
    }
}

/// Puts a frame on the wire; one that comes back is kept in `returned`.
#[inline(always)]
fn put_on_wire(wire: &mut impl Wire, queue: QueueId, frame: &[u8], returned: &mut Vec<u8>) -> Wired {
    let wired = wire.transmit(queue, frame);
    if wired == Wired::Back {
        returned.clear();
        returned.extend_from_slice(frame);
    }
    wired
}
