//! The wire of a device: frames leave it one after the other.

use std::collections::VecDeque;

use beeline_contract_device::QueueId;

use super::{DeviceSettings, ports::Server};
use crate::des::Picoseconds;

/// Preamble, start delimiter, check sequence and gap of an Ethernet frame, in bytes.
const FRAME_OVERHEAD_BYTES: u64 = 8 + 4 + 12;
/// A frame that the logic has let go: it is on its way to the wire, and when it will be there is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmitted {
    pub queue: QueueId,
    /// Bytes of the frame, FCS excluded.
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
///
/// It takes a frame while the one before is on its way, so that no gap need be between them, and not more: what waits,
/// waits where the device chooses among its queues.
#[derive(Debug, Default)]
pub struct Wire {
    server: Server,
    /// When the wire takes the next frame.
    ready_at: Picoseconds,
    /// Frames that nobody has looked at, oldest first.
    let_go: VecDeque<Transmitted>,
    /// Buffers of frames to use again.
    spare: Vec<Vec<u8>>,
    keeps_frames: bool,
}

impl Wire {
    /// From now on frames are kept with their bytes.
    pub fn keep_frames(&mut self) {
        self.keeps_frames = true;
    }

    /// Returns whether the wire takes a frame at `now`.
    #[inline]
    pub fn is_ready(&self, now: Picoseconds) -> bool {
        now >= self.ready_at
    }

    /// A frame is let go. Returns when the wire takes the next one, if that is not now.
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
        let length_bytes = frame.len() as u32;
        let ends_at = starts_at + span;
        self.let_go.push_back(Transmitted {
            queue,
            length_bytes,
            decided_at: now,
            starts_at,
            ends_at,
            frame: kept,
        });
        if settings.wire_rate.is_unlimited() {
            return None;
        }
        // The next frame may be decided while this one leaves: its latency is over when this one has left.
        self.ready_at = starts_at.since(settings.transmit_latency);
        (self.ready_at > now).then_some(self.ready_at)
    }

    /// The oldest frame that nobody has looked at.
    #[inline]
    pub fn take(&mut self) -> Option<Transmitted> {
        self.let_go.pop_front()
    }

    /// Returns the oldest frame that has left, and keeps it.
    #[inline]
    pub fn front(&self) -> Option<&Transmitted> {
        self.let_go.front()
    }

    /// The oldest frame was looked at; its buffer is used again. Returns whether there was one.
    #[inline]
    pub fn drop_front(&mut self) -> bool {
        let Some(Transmitted { mut frame, .. }) = self.let_go.pop_front() else { return false };
        if self.keeps_frames {
            frame.clear();
            self.spare.push(frame);
        }
        true
    }
}
