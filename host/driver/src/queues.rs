//! Making, opening, recovering and closing the queues of a port.
//!
//! Making a half takes its window, memory and doorbell from the link and checks the configuration against what the
//! device can do; nothing of the device changes. Opening writes the queue's registers, the control register last, and
//! reads the status back: the read follows the writes, so the device has seen them all, and it shows the epoch.
//! Closing disables and reads back until the queue is stopped; from then on the device touches none of its memory.
//! Recovery of a quarantined queue (docs/design.md, decision 4) is closing, restarting empty with the next epoch,
//! opening; the sender's own write-combining buffers are emptied by a fence before the read-back.

use beeline_contract_link::Link;
use beeline_contract_memory::{StorePort, Tolerance};
use beeline_spec::formats::{MIN_FRAME_BYTES, feature};
use beeline_spec::header::lines_of;
use beeline_spec::regs::{self, field, queue as r};
use beeline_spec::{Interface, LINE_BYTES, escape};
use beeline_window::WindowConfig;

use crate::config::{
    CreditCoalescing, DescriptorConfig, KpioConfig, MmioConfig, RxDescriptorConfig, RxRingConfig,
    TxQueueConfig,
};
use crate::credits::DmaCredits;
use crate::error::{Must, PortError};
use crate::half::{QueueHalf, Stopped, TxIdentity};
use crate::port::{Pending, Port, PortState, write};
use crate::rx_descriptor::{self, RxDescriptor};
use crate::rx_ring::RxRing;
use crate::script::{Script, Step, Ticket};
use crate::status::QueueStatus;
use crate::tx_descriptor::{self, TxDescriptor};
use crate::tx_kpio::{self, TxKpio};
use crate::tx_mmio::TxMmio;

/// Longest ring that is asked of a device.
pub(crate) const MAX_ENTRIES: u64 = 1 << 16;

impl<L: Link> Port<L> {
    /// The host half of an `mmio` queue.
    ///
    /// # Errors
    /// The port is not ready, there is no such queue or interface, its window is taken, or a setting is out of range.
    pub fn mmio(
        &mut self,
        queue: u32,
        config: MmioConfig,
    ) -> Result<Stopped<TxMmio<L::Window, L::Memory>>, PortError> {
        self.mmio_behind(queue, config, |window, _| window)
    }

    /// As [`Port::mmio`], with `wrap` between the writer and the window: the ordering adversary, told what the
    /// interface bears.
    ///
    /// # Errors
    /// As [`Port::mmio`].
    pub fn mmio_behind<P: StorePort>(
        &mut self,
        queue: u32,
        config: MmioConfig,
        wrap: impl FnOnce(L::Window, Tolerance) -> P,
    ) -> Result<Stopped<TxMmio<P, L::Memory>>, PortError> {
        let identity = self.transmit(queue, Interface::Mmio, config.queue)?;
        if config.cut_through_lines != 0 && !self.has_feature(feature::CUT_THROUGH) {
            return Err(PortError::NoFeature { feature: "begin a frame before its message is there" });
        }
        let (window, credits) = self.window(queue)?;
        let lines = window.lines();
        let span_lines = self.caps.reorder_span_lines.unwrap_or(1).clamp(1, lines);
        let port = wrap(window, Tolerance { span_lines, split_lines: true });
        let window_config = WindowConfig {
            blank: self.blank(config.random),
            epoch: identity.config.epoch,
            fence_policy: config.fence_policy,
        };
        let config = MmioConfig { credits: resolve(config.credits, lines), ..config };
        let max_frame_bytes = self.max_frame_bytes();
        Ok(Stopped(TxMmio::new(port, credits, identity, window_config, config, span_lines, max_frame_bytes)))
    }

    /// The host half of a `kpio` queue.
    ///
    /// # Errors
    /// As [`Port::mmio`].
    pub fn kpio(
        &mut self,
        queue: u32,
        config: KpioConfig,
    ) -> Result<Stopped<TxKpio<L::Window, L::Memory>>, PortError> {
        self.kpio_behind(queue, config, |window, _| window)
    }

    /// As [`Port::kpio`], with `wrap` between the interface and the window.
    ///
    /// # Errors
    /// As [`Port::mmio`].
    pub fn kpio_behind<P: StorePort>(
        &mut self,
        queue: u32,
        config: KpioConfig,
        wrap: impl FnOnce(L::Window, Tolerance) -> P,
    ) -> Result<Stopped<TxKpio<P, L::Memory>>, PortError> {
        let identity = self.transmit(queue, Interface::Kpio, config.queue)?;
        let (window, credits) = self.window(queue)?;
        let config = KpioConfig { credits: resolve(config.credits, window.lines()), ..config };
        let port = wrap(window, tx_kpio::TOLERANCE);
        let (blank, max_frame_bytes) = (self.blank(config.random), self.max_frame_bytes());
        Ok(Stopped(TxKpio::new(port, credits, identity, blank, config, max_frame_bytes)))
    }

    /// The host half of a `descriptor` queue.
    ///
    /// # Errors
    /// As [`Port::mmio`].
    pub fn descriptor(
        &mut self,
        queue: u32,
        config: DescriptorConfig,
    ) -> Result<Stopped<TxDescriptor<L::Memory, L::Doorbell>>, PortError> {
        let identity = self.transmit(queue, Interface::Descriptor, config.queue)?;
        let longest = self.max_frame_bytes().next_multiple_of(LINE_BYTES) as u64;
        let entries = u64::from(config.entries);
        Must::PowerOfTwo(2, MAX_ENTRIES).check("entries of the descriptor ring", entries)?;
        Must::PowerOfTwo(2 * longest, 1 << 32)
            .check("bytes of the frame buffer", config.buffer_bytes as u64)?;
        let completion_frames = u64::from(config.completion_frames);
        Must::Between(1, entries / 2).check("frames between completions", completion_frames)?;
        let layout = tx_descriptor::Layout::new(config.entries, config.buffer_bytes);
        let memory = self.link.memory(layout.bytes)?;
        let doorbell = self.link.doorbell(doorbell_offset(queue) + regs::doorbell::TX_TAIL)?;
        Ok(Stopped(TxDescriptor::new(memory, doorbell, identity, layout, config, self.max_frame_bytes())))
    }

    /// The host half of a contiguous receive ring.
    ///
    /// # Errors
    /// The port is not ready, there is no such queue, memory is short, or a setting is out of range.
    pub fn rx_ring(
        &mut self,
        queue: u32,
        config: RxRingConfig,
    ) -> Result<Stopped<RxRing<L::Memory, L::Doorbell>>, PortError> {
        self.check_queue(queue)?;
        let longest = u64::from(lines_of(self.max_frame_bytes() as u32));
        Must::PowerOfTwo(2 * longest, 1 << 24).check("lines of the receive ring", u64::from(config.lines))?;
        let coalesce = u64::from(config.freed_coalesce);
        Must::Between(0, u64::from(config.lines) / 2).check("lines between receive credits", coalesce)?;
        let memory = self.link.memory(config.lines as usize * LINE_BYTES)?;
        let freed = self.link.doorbell(doorbell_offset(queue) + regs::doorbell::RX_FREED)?;
        Ok(Stopped(RxRing::new(memory, freed, queue, config, self.max_frame_bytes() as u32)))
    }

    /// The host half of receive descriptors.
    ///
    /// # Errors
    /// As [`Port::rx_ring`].
    pub fn rx_descriptor(
        &mut self,
        queue: u32,
        config: RxDescriptorConfig,
    ) -> Result<Stopped<RxDescriptor<L::Memory, L::Doorbell>>, PortError> {
        self.check_queue(queue)?;
        let longest = self.max_frame_bytes().next_multiple_of(LINE_BYTES);
        let buffer_bytes = if config.buffer_bytes == 0 { longest } else { config.buffer_bytes };
        let entries = u64::from(config.entries);
        Must::PowerOfTwo(2, MAX_ENTRIES).check("receive buffers", entries)?;
        let shortest = MIN_FRAME_BYTES.next_multiple_of(LINE_BYTES) as u64;
        Must::MultipleOf(LINE_BYTES as u64, shortest, longest as u64)
            .check("bytes of a receive buffer", buffer_bytes as u64)?;
        Must::Between(0, entries / 2)
            .check("buffers between receive credits", u64::from(config.freed_coalesce))?;
        let layout = rx_descriptor::Layout::new(config.entries, buffer_bytes);
        let memory = self.link.memory(layout.bytes)?;
        let freed = self.link.doorbell(doorbell_offset(queue) + regs::doorbell::RX_FREED)?;
        Ok(Stopped(RxDescriptor::new(memory, freed, queue, layout, config)))
    }

    /// Starts a queue: registers, enable, read-back.
    pub fn open<H: QueueHalf>(&mut self, half: Stopped<H>) -> Pending<H> {
        let ticket = push_open(&mut self.script, &half.0);
        Pending::new(ticket, half.0)
    }

    /// Stops a queue; the half that comes back is empty and may be opened again, with the next epoch. What it had not handed over by then is lost; wait for [`crate::Transmit::is_idle`] before, to
    /// lose nothing. Dropping a half without closing it leaves the device writing to its memory.
    pub fn close<H: QueueHalf>(&mut self, half: H) -> Pending<Stopped<H>> {
        let half = half.flushed();
        let ticket = push_close(&mut self.script, &half);
        Pending::of_value(ticket, Stopped(half), |stopped, _| Stopped(stopped.0.restarted()))
    }

    /// Lifts a quarantine: stop, read back, start empty with the next epoch. Frames that had not left are lost.
    pub fn recover<H: QueueHalf>(&mut self, half: H) -> Pending<H> {
        let half = half.flushed();
        let ticket = push_close(&mut self.script, &half);
        Pending::new(ticket, half).then(|half, script| {
            let half = half.restarted();
            let ticket = push_open(script, &half);
            Pending::new(ticket, half)
        })
    }

    /// Reads a queue's status; the way to learn why credits stay out. Writes before it are told of unless it says that it
    /// is pending ([`QueueStatus::is_pending`]); then ask again later.
    pub fn queue_status(&mut self, queue: u32) -> Pending<QueueStatus> {
        let offset = queue_offset(queue) + r::STATUS;
        let ticket = self.script.push([Step::Read { offset, what: "tell a queue's status" }]);
        Pending::of_value(ticket, QueueStatus::from_register(0), |_, value| QueueStatus::from_register(value))
    }

    pub(crate) fn check_queue(&self, queue: u32) -> Result<(), PortError> {
        if self.state() != PortState::Ready {
            return Err(PortError::NotReady);
        }
        let queues = self.queues();
        if queue < queues { Ok(()) } else { Err(PortError::NoSuchQueue { queue, queues }) }
    }

    pub(crate) fn check_interface(&self, queue: u32, interface: Interface) -> Result<(), PortError> {
        self.check_queue(queue)?;
        if !self.has_interface(interface) {
            return Err(PortError::NoInterface { interface, mask: self.caps.interfaces.unwrap_or(0) });
        }
        Ok(())
    }

    pub(crate) fn transmit(
        &self,
        queue: u32,
        interface: Interface,
        config: TxQueueConfig,
    ) -> Result<TxIdentity, PortError> {
        self.check_interface(queue, interface)?;
        if config.checksums && !self.has_feature(feature::CHECKSUMS) {
            return Err(PortError::NoFeature { feature: "fill in checksums" });
        }
        Must::Between(0, field::queue_control::CLASS_MASK)
            .check("priority class", u64::from(config.class))?;
        Ok(TxIdentity { queue, interface, config })
    }

    fn window(&mut self, queue: u32) -> Result<(L::Window, DmaCredits<L::Memory>), PortError> {
        let window = self.link.window(queue)?;
        let lines = window.lines();
        // One line for the header word and the shortest frame, and another, or no store could overlap a credit.
        if !lines.is_power_of_two() || lines < 2 {
            return Err(PortError::WindowSize { queue, register: 0, window: lines });
        }
        Ok((window, DmaCredits::new(self.link.memory(LINE_BYTES)?)))
    }

    pub(crate) fn blank(&self, random: u64) -> u64 {
        if self.caps.blank == Some(true) { escape::blank_from_random(random) } else { 0 }
    }
}

pub(crate) fn resolve(credits: CreditCoalescing, window_lines: u32) -> CreditCoalescing {
    let lines = if credits.lines == 0 { window_lines / 8 } else { credits.lines.min(window_lines / 2) };
    CreditCoalescing { lines: lines.max(1), ..credits }
}

const fn queue_offset(queue: u32) -> u32 {
    regs::QUEUE + queue * regs::QUEUE_STRIDE
}

pub(crate) const fn doorbell_offset(queue: u32) -> u32 {
    regs::DOORBELL + queue * regs::DOORBELL_STRIDE
}

fn push_open(script: &mut Script, half: &impl QueueHalf) -> Ticket {
    use field::queue_control as c;
    use field::queue_status as s;
    let base = queue_offset(half.queue());
    let mut steps = Vec::new();
    if let Some(lines) = half.window_lines() {
        steps.push(Step::WindowLines { queue: half.queue(), offset: base + r::WINDOW_LINES, lines });
    }
    // A half that does not receive must not inherit a ring from the queue's former life.
    steps.push(write(base + r::RX_MODE, 0));
    half.registers(&mut |offset, value| steps.push(write(base + offset, value)));
    if let Some(entry) = half.entry_register() {
        steps.push(write(base + r::ENTRY, entry));
    }
    let epoch = u64::from(half.epoch().number());
    let control = half.control() | epoch << c::EPOCH_LSB | c::ENABLE_MASK << c::ENABLE_LSB;
    steps.push(write(base + r::CONTROL, control));
    steps.push(Step::Until {
        offset: base + r::STATUS,
        mask: s::ACTIVE_MASK << s::ACTIVE_LSB | s::EPOCH_MASK << s::EPOCH_LSB,
        value: 1 << s::ACTIVE_LSB | epoch << s::EPOCH_LSB,
        fatal: s::QUARANTINED_MASK << s::QUARANTINED_LSB,
        what: "start the queue",
    });
    script.push(steps)
}

fn push_close(script: &mut Script, half: &impl QueueHalf) -> Ticket {
    use field::queue_status as s;
    let base = queue_offset(half.queue());
    let stopped = Step::Until {
        offset: base + r::STATUS,
        mask: s::ACTIVE_MASK << s::ACTIVE_LSB,
        value: 0,
        fatal: 0,
        what: "stop the queue",
    };
    script.push([write(base + r::CONTROL, 0), stopped])
}
