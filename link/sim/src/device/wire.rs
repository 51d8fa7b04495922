//! The wire of a device: frames leave it one after the other.

use std::collections::VecDeque;

use beeline_nic_contract::QueueId;

use super::{DeviceSettings, Rate, ports::Server};
use crate::des::Picoseconds;

/// Preamble, start delimiter, check sequence and gap of an Ethernet frame, in bytes.
const FRAME_OVERHEAD_BYTES: u64 = 8 + 4 + 12;
/// Frames that the wire takes ahead of time: one leaves while the next is made.
const FRAMES_AHEAD: usize = 2;

/// A frame that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmitted {
    /// Its queue.
    pub queue: QueueId,
    /// Its bytes, FCS excluded.
    pub length_bytes: u32,
    /// When the logic of the device wanted it to leave.
    pub decided_at: Picoseconds,
    /// When its first bit left.
    pub starts_at: Picoseconds,
    /// When its last bit left.
    pub ends_at: Picoseconds,
    /// The frame, if frames are kept.
    pub frame: Vec<u8>,
}

/// The wire.
#[derive(Debug, Default)]
pub struct Wire {
    server: Server,
    /// Frames that have not left; an event comes for the first.
    leaving: VecDeque<Transmitted>,
    /// Frames that have left, oldest first.
    left: VecDeque<Transmitted>,
    /// Buffers of frames to use again.
    spare: Vec<Vec<u8>>,
    keeps_frames: bool,
}

impl Wire {
    /// From now on frames are kept with their bytes.
    pub fn keep_frames(&mut self) {
        self.keeps_frames = true;
    }

    /// Whether one more frame can be taken.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.leaving.len() < FRAMES_AHEAD
    }

    /// A frame leaves. Returns when its last bit has, if an event is to be scheduled for it.
    pub fn transmit(
        &mut self,
        now: Picoseconds,
        queue: QueueId,
        frame: &[u8],
        settings: &DeviceSettings,
    ) -> Option<Picoseconds> {
        let span = settings.wire_rate.time(frame.len() as u64 + FRAME_OVERHEAD_BYTES);
        let starts_at = self.server.begin(now + settings.transmit_latency, span);
        let mut kept = Vec::new();
        if self.keeps_frames {
            kept = self.spare.pop().unwrap_or_default();
            kept.extend_from_slice(frame);
        }
        let ends_at = starts_at + span;
        let length_bytes = frame.len() as u32;
        let transmitted =
            Transmitted { queue, length_bytes, decided_at: now, starts_at, ends_at, frame: kept };
        if settings.wire_rate == Rate::UNLIMITED {
            self.left.push_back(transmitted);
            return None;
        }
        self.leaving.push_back(transmitted);
        (self.leaving.len() == 1).then_some(ends_at)
    }

    /// The first frame has left; when the next one has.
    pub fn ended(&mut self) -> Option<Picoseconds> {
        self.left.extend(self.leaving.pop_front());
        self.leaving.front().map(|frame| frame.ends_at)
    }

    /// Whether frames have left that were not taken.
    #[inline]
    pub fn has_left(&self) -> bool {
        !self.left.is_empty()
    }

    /// The oldest frame that has left and was not taken yet.
    #[inline]
    pub fn take(&mut self) -> Option<Transmitted> {
        self.left.pop_front()
    }

    /// The buffer of a frame that is done with, to use again.
    pub fn give_back(&mut self, mut transmitted: Transmitted) {
        if self.keeps_frames {
            transmitted.frame.clear();
            self.spare.push(transmitted.frame);
        }
    }
}
