//! The state of a queue as its status register tells it.

use beeline_spec::regs::field::queue_status as f;

/// A queue's status register, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStatus {
    /// The queue takes writes.
    pub active: bool,
    /// Later writes are dropped and counted until the queue is recovered with a new epoch.
    pub quarantined: bool,
    /// Cause of a quarantine or failure.
    pub cause: FailureCause,
    /// Epoch in force.
    pub epoch: u8,
    /// Writes that came before the read wait in the device, behind one for which there is no room, and are not judged
    /// yet: what is said here may be older than they are. To be asked again once the wire has taken frames.
    pub is_pending: bool,
}

/// Cause of a queue's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// The queue has not failed.
    None,
    /// A hole stood longer than its time-out: the sender died or was stopped in the middle of a message.
    HoleTimeout,
    /// A store came further ahead of the frontier than the reorder span.
    SpanExceeded,
    /// A header of another epoch or of no known kind.
    BadHeader,
    /// A byte was written twice before it was freed.
    Clobber,
    /// A store beyond what was credited.
    Overrun,
    /// No reorder context was free.
    NoContext,
    /// No pool space was free for incomplete data.
    NoPool,
    /// The device could not read or write host memory.
    DmaError,
    /// A length that no frame has.
    BadLength,
    /// The notification ring that the queue names is not there, or has no entry for its pipe: its owner does not run, or
    /// has stopped.
    NoRing,
    /// A cause that this driver does not know: its number.
    Unknown(u8),
}

impl QueueStatus {
    /// Decodes the register.
    pub const fn from_register(value: u64) -> Self {
        let cause = match (value >> f::CAUSE_LSB & f::CAUSE_MASK) as u8 {
            0 => FailureCause::None,
            1 => FailureCause::HoleTimeout,
            2 => FailureCause::SpanExceeded,
            3 => FailureCause::BadHeader,
            4 => FailureCause::Clobber,
            5 => FailureCause::Overrun,
            6 => FailureCause::NoContext,
            7 => FailureCause::NoPool,
            8 => FailureCause::DmaError,
            9 => FailureCause::BadLength,
            10 => FailureCause::NoRing,
            other => FailureCause::Unknown(other),
        };
        QueueStatus {
            active: value >> f::ACTIVE_LSB & f::ACTIVE_MASK == 1,
            quarantined: value >> f::QUARANTINED_LSB & f::QUARANTINED_MASK == 1,
            cause,
            epoch: (value >> f::EPOCH_LSB & f::EPOCH_MASK) as u8,
            is_pending: value >> f::PENDING_LSB & f::PENDING_MASK == 1,
        }
    }
}

impl core::fmt::Display for QueueStatus {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let state = match (self.quarantined, self.active) {
            (true, _) => "quarantined",
            (false, true) => "active",
            (false, false) => "stopped",
        };
        write!(out, "{state}, epoch {}", self.epoch)?;
        if self.cause != FailureCause::None {
            write!(out, ", because of {}", self.cause)?;
        }
        if self.is_pending { out.write_str(", with writes that are not judged yet") } else { Ok(()) }
    }
}

impl core::fmt::Display for FailureCause {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            FailureCause::None => "nothing",
            FailureCause::HoleTimeout => "a hole past its time-out",
            FailureCause::SpanExceeded => "disorder past the reorder span",
            FailureCause::BadHeader => "a bad header",
            FailureCause::Clobber => "a byte written twice",
            FailureCause::Overrun => "a store past the credits",
            FailureCause::NoContext => "no free reorder context",
            FailureCause::NoPool => "no free pool space",
            FailureCause::DmaError => "a DMA error",
            FailureCause::BadLength => "a bad length",
            FailureCause::NoRing => "a notification ring that is not there or is full",
            FailureCause::Unknown(number) => return write!(out, "unknown cause {number}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_is_read_whole() {
        let value = 1 << f::QUARANTINED_LSB | 2 << f::CAUSE_LSB | 7 << f::EPOCH_LSB;
        let status = QueueStatus::from_register(value);
        let expected = QueueStatus {
            active: false,
            quarantined: true,
            cause: FailureCause::SpanExceeded,
            epoch: 7,
            is_pending: false,
        };
        assert_eq!(status, expected);
        assert_eq!(status.to_string(), "quarantined, epoch 7, because of disorder past the reorder span");
        let pending =
            QueueStatus::from_register(1 << f::ACTIVE_LSB | 1 << f::PENDING_LSB | 7 << f::EPOCH_LSB);
        assert_eq!((pending.is_pending, pending.cause), (true, FailureCause::None));
        assert_eq!(pending.to_string(), "active, epoch 7, with writes that are not judged yet");
    }

    #[test]
    fn an_unknown_cause_is_told_by_number() {
        let status = QueueStatus::from_register(15 << f::CAUSE_LSB | 1);
        assert_eq!(status.cause, FailureCause::Unknown(15));
        assert_eq!(QueueStatus::from_register(u64::MAX).cause, FailureCause::Unknown(15));
    }
}
