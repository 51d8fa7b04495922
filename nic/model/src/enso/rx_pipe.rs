//! One receive pipe: frames appended to it in host memory, and the notifications that tell how far.
//!
//! A frame goes in one write, its header in front: nothing is polled in the pipe itself. What the host looks at is a
//! ring of notifications, each the absolute count of lines written so far, so that one tells of all frames since the
//! last. The next one is due, if frames have come since, when the host has freed a line that only the last one told it
//! of, or all of them. So it has seen the last one: never is more than one under way that it has not, and a busy host is
//! told once a batch. Where they are written is the ring's affair ([`super::notify_ring`]), which pipes may share.
//!
//! From: [`crate::rx`], a frame from the wire. To: host memory. Sadok et al., OSDI'23 (reactive notifications).

use beeline_contract_device::QueueId;
use beeline_spec::pipe::{self, Notification};
use beeline_spec::{LINE_BYTES, WORD_BYTES};

use crate::engine::{Cause, QueueSettings, Shared};
use crate::rx::Delivery;

use super::NotifyRing;

/// DMA writes that a frame takes at most: two for its bytes, one for a notification.
const WRITES: usize = 3;
/// Longest pipe: 256 MiB.
const MAX_LINES: u32 = 1 << 22;

/// A started pipe. Counts of lines are absolute: `told_before <= told`, `freed <= told <= written <= freed + lines`.
#[derive(Debug)]
pub(crate) struct RxPipe {
    id: QueueId,
    address: u64,
    lines: u32,
    /// The queue whose ring tells of the pipe.
    owner: QueueId,
    /// What notifications say of the queue's epoch.
    epoch: u8,
    written: u64,
    /// What the last notification told, and the one before it.
    told: u64,
    told_before: u64,
    freed: u64,
    /// Where the last notification is in the ring.
    last: Option<u64>,
    /// Header and frame, as they are written.
    staging: Box<[u8]>,
}

impl RxPipe {
    /// An empty pipe for frames of up to `longest_frame_bytes`.
    pub(crate) fn new(
        id: QueueId,
        settings: &QueueSettings,
        longest_frame_bytes: u32,
    ) -> Result<Self, Cause> {
        let (address, lines) = (settings.rx_ring_address, settings.rx_ring_entries);
        if !lines.is_power_of_two() || lines > MAX_LINES {
            return Err(Cause::BadLength);
        }
        let bytes = u64::from(lines) * LINE_BYTES as u64;
        if !address.is_multiple_of(LINE_BYTES as u64) || address.checked_add(bytes).is_none() {
            return Err(Cause::DmaError);
        }
        Ok(RxPipe {
            id,
            address,
            lines,
            owner: settings.rx_notify_owner.unwrap_or(id),
            epoch: settings.rx_notify_owner.map_or(0, |_| settings.epoch),
            written: 0,
            told: 0,
            told_before: 0,
            freed: 0,
            last: None,
            staging: vec![0; WORD_BYTES + longest_frame_bytes as usize].into_boxed_slice(),
        })
    }

    /// The queue whose ring tells of the pipe.
    pub(crate) fn owner(&self) -> QueueId {
        self.owner
    }

    fn has_seen_last(&self) -> bool {
        self.freed > self.told_before || self.freed == self.told
    }

    /// The pipe's queue stops, and leaves the ring.
    pub(crate) fn leave(&self, ring: &mut NotifyRing) {
        ring.leave(self.last.filter(|_| !self.has_seen_last()));
    }

    /// The host has freed `freed` lines since the queue was enabled; `false` when that cannot be.
    pub(crate) fn freed(&mut self, freed: u64, ring: &mut NotifyRing) -> bool {
        let is_sound = freed >= self.freed && freed <= self.told;
        if is_sound {
            self.freed = freed;
            if let Some(last) = self.last.filter(|_| self.has_seen_last()) {
                ring.saw(last);
            }
        }
        is_sound
    }

    /// Writes a notification if one is due. `false`: it is, but the DMA port has no room.
    pub(crate) fn notify(&mut self, ring: &mut NotifyRing, shared: &mut Shared) -> bool {
        let is_due = self.written > self.told && self.has_seen_last();
        if !is_due {
            return true;
        }
        let tail_lines = self.written as u32;
        let notification = Notification { tail_lines, queue: self.id.0, epoch: self.epoch };
        let Some(index) = ring.write(notification, shared) else { return false };
        self.last = Some(index);
        (self.told_before, self.told) = (self.told, self.written);
        true
    }

    /// Appends a frame of at least one byte.
    #[inline]
    pub(crate) fn deliver(&mut self, frame: &[u8], ring: &mut NotifyRing, shared: &mut Shared) -> Delivery {
        let lines = u64::from(pipe::lines_of(frame.len() as u32));
        let bytes = WORD_BYTES + frame.len();
        if lines > u64::from(self.lines) || bytes > self.staging.len() {
            return Delivery::TooLong;
        }
        if self.written + lines > self.freed + u64::from(self.lines) {
            return Delivery::NoSpace;
        }
        if !shared.dma.has_room(WRITES, bytes + WORD_BYTES) {
            return Delivery::Later;
        }
        let staged = &mut self.staging[..bytes];
        staged[..WORD_BYTES].copy_from_slice(&pipe::header(frame.len() as u16).to_le_bytes());
        staged[WORD_BYTES..].copy_from_slice(frame);
        let start = (self.written & u64::from(self.lines - 1)) as usize * LINE_BYTES;
        let before_end = self.lines as usize * LINE_BYTES - start;
        let (first, rest) = staged.split_at(bytes.min(before_end));
        let done = shared.dma.write(self.address + start as u64, first)
            && (rest.is_empty() || shared.dma.write(self.address, rest));
        debug_assert!(done, "room was asked for");
        self.written += lines;
        let told = self.notify(ring, shared);
        debug_assert!(told, "room was asked for");
        Delivery::Done
    }
}
