//! The wire: how much it takes now, and the frame that is on it.
//!
//! A wire that is simply ready takes whole frames at once, and nothing here is looked at. One that takes so many beats
//! and no more, and a frame that begins before its message is complete (cut-through), leave a frame open: it is then
//! alone on the wire until it ends, with all its bytes or with an abort mark. Not here: whose frame is next
//! ([`super::Scheduler`]), which bytes are there ([`crate::mmio`]).

use beeline_contract_device::QueueId;
use beeline_spec::{Interface, LINE_BYTES};

/// What the wire did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnWire {
    /// A whole frame leaves.
    Whole { queue: QueueId, interface: Interface, bytes: u32 },
    /// The frame that was open ended with an abort mark.
    Aborted { queue: QueueId },
}

#[derive(Clone, Copy, Debug)]
struct Open {
    queue: QueueId,
    interface: Interface,
    /// It began before its message was complete.
    is_early: bool,
    /// Whether the queue of the frame was stopped.
    is_doomed: bool,
}

#[derive(Debug)]
pub(crate) struct Wire {
    /// Beats that it takes; 0: it is not ready.
    pub beats: u64,
    open: Option<Open>,
    /// What it has taken of the frame that is open, or was the last one.
    taken: Vec<u8>,
}

impl Wire {
    /// Beats of a wire that is ready until it says something else.
    pub(crate) const UNBOUNDED: u64 = u64::MAX;

    /// A wire that is ready.
    pub(crate) fn new(max_frame_bytes: u32) -> Self {
        let room = max_frame_bytes as usize + LINE_BYTES;
        Wire { beats: Self::UNBOUNDED, open: None, taken: Vec::with_capacity(room) }
    }

    /// Whether a frame is on it.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// A frame begins.
    pub(crate) fn open(&mut self, queue: QueueId, interface: Interface, is_early: bool) {
        self.open = Some(Open { queue, interface, is_early, is_doomed: false });
        self.taken.clear();
    }

    /// Whose frame is on it, and whether it began early.
    pub(crate) fn whose(&self) -> (QueueId, Interface, bool) {
        let open = self.open.expect("a frame is open");
        (open.queue, open.interface, open.is_early)
    }

    /// Whether the frame's queue was stopped.
    pub(crate) fn is_doomed(&self) -> bool {
        self.open.is_some_and(|open| open.is_doomed)
    }

    /// The queue was stopped: what is on the wire of it ends with an abort mark.
    pub(crate) fn forget_frame_of(&mut self, queue: QueueId) {
        if let Some(open) = self.open.as_mut().filter(|open| open.queue == queue) {
            open.is_doomed = true;
        }
    }

    /// All queues were.
    pub(crate) fn forget_open(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_doomed = true;
        }
    }

    /// Takes beats of a frame of which `there` is there; `true` when it has taken all of that.
    pub(crate) fn take(&mut self, there: &[u8]) -> bool {
        let rest = there.get(self.taken.len()..).unwrap_or_default();
        let beats = (rest.len().div_ceil(LINE_BYTES) as u64).min(self.beats);
        let bytes = rest.len().min(beats as usize * LINE_BYTES);
        self.taken.extend_from_slice(&rest[..bytes]);
        if self.beats != Self::UNBOUNDED {
            self.beats -= beats;
        }
        bytes == rest.len()
    }

    /// The frame has ended.
    pub(crate) fn close(&mut self) {
        self.open = None;
    }

    /// What was taken of the last frame.
    pub(crate) fn taken(&self) -> &[u8] {
        &self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_are_taken_as_they_come_and_no_more_than_the_wire_takes() {
        let frame: Vec<u8> = (0..200).map(|i| i as u8).collect();
        let mut wire = Wire::new(200);
        wire.open(QueueId(3), Interface::Mmio, true);
        wire.beats = 1;
        assert!(!wire.take(&frame[..128]));
        assert_eq!((wire.taken(), wire.beats), (&frame[..64], 0));
        wire.beats = 9;
        assert!(wire.take(&frame));
        assert_eq!((wire.taken(), wire.beats), (&frame[..], 6));
        assert!(wire.is_open() && !wire.is_doomed());
        wire.forget_frame_of(QueueId(2));
        assert!(!wire.is_doomed());
        wire.forget_frame_of(QueueId(3));
        assert!(wire.is_doomed());
    }
}
