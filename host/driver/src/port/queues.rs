//! Opens, recovers and closes the queues of a port, whatever their interface.
//!
//! The `factory.rs` of an interface makes its halves: it takes window, memory and doorbell from the link and checks the
//! settings against what the device can do; nothing of the device changes. Opening writes the queue's registers, the
//! control register last, and reads the status back: the read follows the writes, so the device has seen them all, and
//! it shows the epoch. Closing disables and reads back until the queue is stopped; from then on the device touches none
//! of its memory. Recovery of a quarantined queue (docs/design.md, decision 4) is closing, restarting empty with the
//! next epoch, opening; the sender's own write-combining buffers are emptied by a fence before the read-back.

use alloc::vec::Vec;

use beeline_contract_link::Link;
use beeline_contract_memory::StorePort;
use beeline_spec::formats::feature;
use beeline_spec::regs::{self, field, queue as r};
use beeline_spec::{Interface, LINE_BYTES, escape};

use crate::error::{Must, PortError};
use crate::port::half::{QueueHalf, Stopped, TxIdentity};
use crate::port::script::{Script, Step, Ticket};
use crate::port::status::QueueStatus;
use crate::port::steps::write;
use crate::port::{Pending, Port, PortState};
use crate::transmit::credits::DmaCredits;
use crate::transmit::settings::{CreditCoalescing, TxQueueConfig};

/// Longest ring that is asked of a device.
pub(crate) const MAX_ENTRIES: u64 = 1 << 16;

impl<L: Link> Port<L> {
    /// Starts a queue: registers, enable, read-back.
    pub fn open<H: QueueHalf>(&mut self, half: Stopped<H>) -> Pending<H> {
        let ticket = push_open(&mut self.script, &half.0);
        Pending::new(ticket, half.0)
    }

    /// Stops a queue; the half that comes back is empty and may be opened again, with the next epoch. What it had not
    /// handed over by then is lost; wait for [`crate::Transmit::is_idle`] before, to lose nothing. Dropping a half
    /// without closing it leaves the device writing to its memory.
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

    /// Reads a queue's status; the way to learn why credits stay out. Writes before it are told of unless it says that
    /// it is pending ([`QueueStatus::is_pending`]); then ask again later.
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

    pub(crate) fn window(&mut self, queue: u32) -> Result<(L::Window, DmaCredits<L::Memory>), PortError> {
        let window = self.link.window(queue)?;
        let lines = window.lines();
        // One line for the header word and the shortest frame, and another, or no store could overlap a credit.
        if !lines.is_power_of_two() || lines < 2 {
            return Err(PortError::WindowSize { queue, register: 0, window: lines });
        }
        Ok((window, DmaCredits::new(self.link.memory(LINE_BYTES)?)))
    }

    pub(crate) fn window_of(&mut self, queue: u32, least_lines: u32) -> Result<L::Window, PortError> {
        let window = self.link.window(queue)?;
        check_window(queue, window.lines(), least_lines)?;
        Ok(window)
    }

    pub(crate) fn check_buffer(&self, bytes: usize) -> Result<(), PortError> {
        let longest = self.max_frame_bytes().next_multiple_of(LINE_BYTES) as u64;
        Must::PowerOfTwo(2 * longest, 1 << 32).check("bytes of the frame buffer", bytes as u64)
    }

    pub(crate) fn blank(&self, random: u64) -> u64 {
        if self.caps.blank == Some(true) { escape::blank_from_random(random) } else { 0 }
    }
}

pub(crate) fn check_window(queue: u32, lines: u32, least_lines: u32) -> Result<(), PortError> {
    if !lines.is_power_of_two() || lines < least_lines {
        return Err(PortError::WindowSize { queue, register: 0, window: lines });
    }
    Ok(())
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
