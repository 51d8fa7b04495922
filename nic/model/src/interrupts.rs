//! Interrupt causes, their mask, and the interrupts that wait for the link.

use std::collections::VecDeque;

use beeline_contract_device::QueueId;
use beeline_spec::regs::field::irq_cause as f;

/// Why the device interrupts: bits of `irq_cause`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IrqCause {
    /// A transmit completion was written.
    TxCompletion,
    /// A frame was received.
    RxFrame,
    /// A queue failed or was quarantined.
    QueueFailed,
}

impl IrqCause {
    const fn bit(self) -> u64 {
        match self {
            IrqCause::TxCompletion => f::TX_COMPLETION_MASK << f::TX_COMPLETION_LSB,
            IrqCause::RxFrame => f::RX_FRAME_MASK << f::RX_FRAME_LSB,
            IrqCause::QueueFailed => f::QUEUE_FAILED_MASK << f::QUEUE_FAILED_LSB,
        }
    }
}

/// Every bit that is a cause.
const CAUSES: u64 = IrqCause::TxCompletion.bit() | IrqCause::RxFrame.bit() | IrqCause::QueueFailed.bit();

/// The two registers and at most one waiting interrupt a vector.
#[derive(Debug)]
pub(crate) struct Interrupts {
    mask: u64,
    cause: u64,
    waiting: VecDeque<u16>,
    is_waiting: Box<[bool]>,
}

impl Interrupts {
    /// Everything masked, nothing waiting; one vector a queue.
    pub(crate) fn new(queues: u32) -> Self {
        Interrupts {
            mask: 0,
            cause: 0,
            waiting: VecDeque::with_capacity(queues as usize),
            is_waiting: vec![false; queues as usize].into_boxed_slice(),
        }
    }

    /// Notes a cause and, where the mask lets it, interrupts on the queue's vector. Interrupts of one vector that the
    /// link has not taken yet are one.
    pub(crate) fn raise(&mut self, cause: IrqCause, queue: QueueId) {
        self.cause |= cause.bit();
        if self.mask & cause.bit() == 0 {
            return;
        }
        let waiting = &mut self.is_waiting[usize::from(queue.0)];
        if !*waiting {
            *waiting = true;
            self.waiting.push_back(queue.0);
        }
    }

    /// The mask register.
    pub(crate) fn mask(&self) -> u64 {
        self.mask
    }

    /// Writes the mask register.
    pub(crate) fn set_mask(&mut self, mask: u64) {
        self.mask = mask & CAUSES;
    }

    /// The cause register.
    pub(crate) fn cause(&self) -> u64 {
        self.cause
    }

    /// Clears the causes whose bits are set.
    pub(crate) fn clear(&mut self, bits: u64) {
        self.cause &= !bits;
    }

    /// Whether no vector waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The oldest waiting vector.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u16> {
        let vector = self.waiting.pop_front()?;
        self.is_waiting[usize::from(vector)] = false;
        Some(vector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_of_a_vector_that_wait_are_one() {
        let mut interrupts = Interrupts::new(2);
        interrupts.set_mask(IrqCause::RxFrame.bit());
        for queue in [1, 0, 1] {
            interrupts.raise(IrqCause::RxFrame, QueueId(queue));
        }
        interrupts.raise(IrqCause::TxCompletion, QueueId(0));
        assert_eq!((interrupts.take(), interrupts.take(), interrupts.take()), (Some(1), Some(0), None));
        assert_eq!(interrupts.cause(), IrqCause::RxFrame.bit() | IrqCause::TxCompletion.bit());
        interrupts.raise(IrqCause::RxFrame, QueueId(1));
        assert_eq!(interrupts.take(), Some(1));
        interrupts.clear(u64::MAX);
        assert_eq!(interrupts.cause(), 0);
    }
}
