//! What the port needs of a queue's host half to start, stop and restart it: its registers, in its own words.
//!
//! A half knows its rings, window and credit word; the port knows how to write registers without blocking. So a half
//! lists the registers of its queue and the port turns the list into a script. A queue has one enable bit for both
//! directions, so a transmit and a receive half of one queue are opened together, as a pair; and one epoch, which every
//! half states, so that a queue in one direction alone can leave a quarantine as well as a pair can.

use beeline_spec::regs::field::{self, credit_coalesce, queue_control as f};
use beeline_spec::{Interface, regs::queue as r};

use crate::error::PortError;
use crate::receive::settings::InterruptModeration;
use crate::transmit::settings::{CreditCoalescing, TxQueueConfig};

/// The epoch that a half states for its queue. A quarantine is lifted by another one than it began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epoch {
    /// What the device reads or writes for this half carries it, so the other half of the queue must not have another.
    Carried(u8),
    /// Nothing carries it: it only tells lives of the queue apart, and gives way to one that is carried.
    Counted(u8),
}

impl Epoch {
    /// Returns the queue's number in its direction, from 0.
    pub const fn number(self) -> u8 {
        match self {
            Epoch::Carried(epoch) | Epoch::Counted(epoch) => epoch,
        }
    }

    /// The number, if something carries it.
    pub const fn carried(self) -> Option<u8> {
        match self {
            Epoch::Carried(epoch) => Some(epoch),
            Epoch::Counted(_) => None,
        }
    }

    /// Returns the epoch of the queue's next start.
    pub(crate) const fn next(self) -> Self {
        match self {
            Epoch::Carried(epoch) => Epoch::Carried(epoch.wrapping_add(1)),
            Epoch::Counted(epoch) => Epoch::Counted(epoch.wrapping_add(1)),
        }
    }
}

/// The host half of a queue, transmit or receive, or the pair of both.
pub trait QueueHalf: Sized {
    /// The queue it belongs to.
    fn queue(&self) -> u32;

    /// Lines of the transmit window, to be compared with the device's register; `None` for a half without one.
    fn window_lines(&self) -> Option<u32> {
        None
    }

    /// Calls `set` with each register that must stand before the queue is enabled: offset in the queue's block, value.
    fn registers(&self, set: &mut dyn FnMut(u32, u64));

    /// The fields this half needs in the queue's control register, `enable` and the epoch aside.
    fn control(&self) -> u64;

    /// The epoch that it states; the next life's is one more.
    fn epoch(&self) -> Epoch;

    /// The register of entries in the BAR, of a half that has them. Halves of one queue share it.
    fn entry_register(&self) -> Option<u64> {
        None
    }

    /// The same half with every store of it made visible, so that none comes after the device's read-back.
    #[must_use]
    fn flushed(self) -> Self {
        self
    }

    /// The same half, empty and with the next epoch. Called only while the device has the queue stopped.
    #[must_use]
    fn restarted(self) -> Self;
}

/// Transmit and receive halves of one queue.
impl<A: QueueHalf, B: QueueHalf> QueueHalf for (A, B) {
    fn queue(&self) -> u32 {
        self.0.queue()
    }
    fn window_lines(&self) -> Option<u32> {
        self.0.window_lines().or(self.1.window_lines())
    }
    fn registers(&self, set: &mut dyn FnMut(u32, u64)) {
        self.0.registers(set);
        self.1.registers(set);
    }
    fn control(&self) -> u64 {
        self.0.control() | self.1.control()
    }
    fn epoch(&self) -> Epoch {
        match (self.0.epoch(), self.1.epoch()) {
            (Epoch::Counted(_), other @ Epoch::Carried(_)) => other,
            (first, _) => first,
        }
    }
    fn entry_register(&self) -> Option<u64> {
        match (self.0.entry_register(), self.1.entry_register()) {
            (Some(first), Some(second)) => Some(first | second),
            (first, second) => first.or(second),
        }
    }
    fn flushed(self) -> Self {
        (self.0.flushed(), self.1.flushed())
    }
    fn restarted(self) -> Self {
        (self.0.restarted(), self.1.restarted())
    }
}

/// A half that the device does not serve: not opened yet, or closed. [`crate::Port::open`] opens it.
#[must_use = "a stopped queue does nothing until `Port::open`"]
#[derive(Debug)]
pub struct Stopped<H>(pub(crate) H);

impl<H: QueueHalf> Stopped<H> {
    /// The queue it belongs to.
    pub fn queue(&self) -> u32 {
        self.0.queue()
    }

    /// This and the other direction of the same queue, to be opened together.
    ///
    /// # Errors
    /// They belong to different queues, which are opened one by one, or differ in what a queue has once.
    pub fn with<R: QueueHalf>(self, other: Stopped<R>) -> Result<Stopped<(H, R)>, PortError> {
        if self.queue() != other.queue() {
            return Err(PortError::DifferentQueues { first: self.queue(), second: other.queue() });
        }
        let lines_log2 =
            |register: u64| register >> field::entry::LINES_LOG2_LSB & field::entry::LINES_LOG2_MASK;
        let (entry, other_entry) = (self.0.entry_register(), other.0.entry_register());
        let carried = |epoch: Epoch| epoch.carried().map(u64::from);
        self.check_same("epoch", carried(self.0.epoch()), carried(other.0.epoch()))?;
        self.check_same("lines of an entry (log2)", entry.map(lines_log2), other_entry.map(lines_log2))?;
        Ok(Stopped((self.0, other.0)))
    }

    fn check_same(
        &self,
        what: &'static str,
        first: Option<u64>,
        second: Option<u64>,
    ) -> Result<(), PortError> {
        match (first, second) {
            (Some(first), Some(second)) if first != second => {
                Err(PortError::HalvesDiffer { queue: self.queue(), what, first, second })
            }
            _ => Ok(()),
        }
    }
}

/// Which queue, and what its control register says; kept by every transmit half.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TxIdentity {
    pub queue: u32,
    pub interface: Interface,
    pub config: TxQueueConfig,
}

impl TxIdentity {
    pub(crate) fn control(&self) -> u64 {
        let c = &self.config;
        u64::from(self.interface.code()) << f::IFACE_LSB
            | u64::from(c.class) << f::CLASS_LSB
            | u64::from(c.weight) << f::WEIGHT_LSB
            | u64::from(c.backpressure) << f::BACKPRESSURE_LSB
            | u64::from(c.checksums) << f::CHECKSUMS_LSB
    }

    /// Headers, entries and messages carry it; of rings and pipes nothing does, but all transmit halves say the same.
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch::Carried(self.config.epoch)
    }

    pub(crate) fn next_epoch(self) -> Self {
        let config = TxQueueConfig { epoch: self.config.epoch.wrapping_add(1), ..self.config };
        TxIdentity { config, ..self }
    }
}

/// A moderation register's value.
pub(crate) fn moderation(when: InterruptModeration) -> u64 {
    use field::moderation as m;
    u64::from(when.frames) << m::FRAMES_LSB | u64::from(when.time_ns) << m::TIME_NS_LSB
}

/// The registers of a queue that is fed through a window.
pub(crate) fn window_registers(
    set: &mut dyn FnMut(u32, u64),
    blank: u64,
    credit_address: u64,
    credits: CreditCoalescing,
    hole_timeout_ns: u64,
) {
    use credit_coalesce as c;
    set(r::BLANK, blank);
    set(r::CREDIT_ADDRESS, credit_address);
    set(
        r::CREDIT_COALESCE,
        u64::from(credits.lines) << c::LINES_LSB | u64::from(credits.time_ns) << c::TIME_NS_LSB,
    );
    if hole_timeout_ns != 0 {
        set(r::HOLE_TIMEOUT_NS, hole_timeout_ns);
    }
}
