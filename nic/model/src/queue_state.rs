//! A queue as the device sees it, whatever engine it belongs to.

use beeline_spec::Interface;
use beeline_spec::regs::field::queue_status as s;

use crate::engine::Cause;
use crate::registers::QueueRegisters;

/// A queue as the device sees it.
#[derive(Debug)]
pub(crate) struct QueueState {
    /// Where writes to its window go; looked at for every write.
    pub route: Route,
    /// Interface of the transmit half, if it is started.
    pub transmits: Option<Interface>,
    /// Whether its frames leave with checksums filled in.
    pub fills_in_checksums: bool,
    pub receives: bool,
    pub active: bool,
    /// Why it is quarantined.
    pub failed: Option<Cause>,
    /// The epoch in force, or the last one that was.
    pub epoch: u8,
    pub registers: QueueRegisters,
}

impl QueueState {
    /// After reset.
    pub(crate) fn new() -> Self {
        QueueState {
            route: Route::None,
            transmits: None,
            fills_in_checksums: false,
            receives: false,
            active: false,
            failed: None,
            epoch: 0,
            registers: QueueRegisters::new(),
        }
    }

    /// Never pending: a write is judged as it is taken, and one without room is not taken.
    pub(crate) fn status(&self) -> u64 {
        u64::from(self.active) << s::ACTIVE_LSB
            | u64::from(self.failed.is_some()) << s::QUARANTINED_LSB
            | self.failed.map_or(0, |cause| cause as u64) << s::CAUSE_LSB
            | u64::from(self.epoch) << s::EPOCH_LSB
    }
}

/// Where writes to a queue's window go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The queue takes no stores, and never did since its last reset or with its present interface.
    None,
    /// It did, and now its writes are dropped and counted.
    Drop,
    /// To the engine of an interface with a window.
    To(Interface),
}
