//! One receive pipe: frames appended to it in host memory, and the notifications that tell how far.
//!
//! A frame goes in one write, its header in front: nothing is polled in the pipe itself. What the host looks at is a
//! ring of notifications, each the absolute count of lines written so far, so that one tells of all frames since the
//! last. The next one is due, if frames have come since, when the host has freed a line that only the last one told it
//! of, or all of them. So it has seen the last one: never is more than one under way that it has not, no notification
//! overwrites another, and a busy host is told once a batch.
//!
//! From: [`crate::rx`], a frame from the wire. To: host memory. Sadok et al., OSDI'23 (reactive notifications).

use beeline_nic_contract::QueueId;
use beeline_spec::pipe::{self, Notification};
use beeline_spec::{LINE_BYTES, WORD_BYTES};

use crate::engine::{Cause, QueueSettings, Shared};
use crate::rx::Delivery;

/// DMA writes that a frame takes at most: two for its bytes, one for a notification.
const WRITES: usize = 3;
/// Longest pipe: 256 MiB.
const MAX_LINES: u32 = 1 << 22;
/// Longest ring of notifications.
const MAX_NOTIFICATIONS: u32 = 1 << 16;

/// A started pipe. Counts of lines are absolute: `told_before <= told`, `freed <= told <= written <= freed + lines`.
#[derive(Debug)]
pub(crate) struct RxPipe {
    id: QueueId,
    address: u64,
    lines: u32,
    notification_address: u64,
    notification_entries: u32,
    written: u64,
    /// What the last notification told, and the one before it.
    told: u64,
    told_before: u64,
    freed: u64,
    /// Notifications written since the queue was enabled.
    notifications: u64,
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
        let (notification_address, entries) = (settings.rx_completion_address, settings.rx_notify_entries);
        let is_sound = |size: u32, most: u32| size.is_power_of_two() && size <= most;
        if !is_sound(lines, MAX_LINES) || !is_sound(entries, MAX_NOTIFICATIONS) {
            return Err(Cause::BadLength);
        }
        let fits = |address: u64, align: usize, count: u32| {
            let bytes = u64::from(count) * align as u64;
            address.is_multiple_of(align as u64) && address.checked_add(bytes).is_some()
        };
        if !fits(address, LINE_BYTES, lines) || !fits(notification_address, WORD_BYTES, entries) {
            return Err(Cause::DmaError);
        }
        Ok(RxPipe {
            id,
            address,
            lines,
            notification_address,
            notification_entries: entries,
            written: 0,
            told: 0,
            told_before: 0,
            freed: 0,
            notifications: 0,
            staging: vec![0; WORD_BYTES + longest_frame_bytes as usize].into_boxed_slice(),
        })
    }

    /// The host has freed `freed` lines since the queue was enabled; `false` when that cannot be.
    pub(crate) fn freed(&mut self, freed: u64) -> bool {
        let is_sound = freed >= self.freed && freed <= self.told;
        if is_sound {
            self.freed = freed;
        }
        is_sound
    }

    /// Writes a notification if one is due. `false`: it is, but the DMA port has no room.
    pub(crate) fn notify(&mut self, shared: &mut Shared) -> bool {
        let has_seen_last = self.freed > self.told_before || self.freed == self.told;
        let is_due = self.written > self.told && has_seen_last;
        if !is_due {
            return true;
        }
        let notification = Notification { tail_lines: self.written as u32, queue: self.id.0 };
        let word = notification.encode(self.notifications, self.notification_entries);
        let slot = self.notifications & u64::from(self.notification_entries - 1);
        let address = self.notification_address + slot * WORD_BYTES as u64;
        if !shared.dma.write(address, &word.to_le_bytes()) {
            return false;
        }
        shared.counters.notifications += 1;
        self.notifications += 1;
        (self.told_before, self.told) = (self.told, self.written);
        true
    }

    /// Appends a frame of at least one byte.
    #[inline]
    pub(crate) fn deliver(&mut self, frame: &[u8], shared: &mut Shared) -> Delivery {
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
        let told = self.notify(shared);
        debug_assert!(told, "room was asked for");
        Delivery::Done
    }
}
