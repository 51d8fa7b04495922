//! One queue of entries: its ring, the two halves of its window, its frames, and its completions.
//!
//! Every entry is taken once, in ring order, from a push or from the ring. A push is used only when its entry is the
//! next and nothing posted waits to be fetched; otherwise it is the doorbell it also is. An entry of the ring that is
//! not what its place demands (epoch, position, kind, length) fails the queue, because where the next one begins is
//! then unknown; a frame that makes no sense is only counted.
//!
//! From: [`super`]. To: the wire, and the head count in host memory. HotOS'25 §2.4.

use beeline_contract_device::{Accept, DmaError, Enables, QueueId, SimTime};
use beeline_spec::Interface;
use beeline_spec::LINE_BYTES;
use beeline_spec::entry::{EntryHeader, EntryKind, PUSH_HALF_LINES, RING_MAX_FRAME_BYTES, position_of};
use beeline_spec::formats::{ENTRY_HEAD_BYTES, PUSH_HALF_BYTES, RING_ENTRY_MAX_BYTES, entry_header};

use super::push_half::{Arrived, PushHalf};
use crate::engine::{Cause, DmaOwner, QueueSettings, Shared};
use crate::fetch::{
    Ahead, Described, FetchQueue, FrameQueue, HeadReport, LineRing, Purpose, PushQueue, Read, Reads, Turn,
};
use crate::pieces::skip;

/// 512 bytes a read, 16 KiB ahead: as many short frames as descriptors are fetched ahead.
const AHEAD: Ahead = Ahead { lines: 256, burst: 8, fetches: 32 };
/// Lines of a window that has two halves.
const LEAST_WINDOW_LINES: u32 = 2 * PUSH_HALF_LINES;

/// A started queue.
#[derive(Debug)]
pub(crate) struct InlineQueue {
    id: QueueId,
    epoch: u8,
    ring: LineRing,
    halves: [PushHalf; 2],
    /// The window is blank: a push fills its half, and a half that was dealt with is credited.
    fills: bool,
    /// How long a push may be incomplete; zero: for ever.
    hole_timeout: SimTime,
    /// Every so many whole pushes one is not used; 0: none.
    self_test: u32,
    /// Whole pushes since the last one that was not used for the self-test.
    since_test: u32,
    frames: FrameQueue,
    /// Of a blank window: lines dealt with, and the credits that tell so.
    seen_lines: u64,
    credits: HeadReport,
    has_failed: bool,
}

impl InlineQueue {
    /// Announces an entry that is not taken from its push, and everything before it. One before the next was taken.
    fn announce(&mut self, header: &EntryHeader, shared: &mut Shared) {
        let Some(end) = self.end_of(header) else { return };
        if end > self.ring.posted() && !self.ring.post(end, self.frames.done_units()) {
            shared.counters.bad_accesses += 1;
        }
    }

    /// The absolute end of an entry; `None` for one that lies before the next.
    fn end_of(&self, header: &EntryHeader) -> Option<u64> {
        let ahead = header.position.wrapping_sub(position_of(self.ring.taken()));
        let ahead = u64::from(ahead) & entry_header::POSITION_MASK;
        // Positions are 31 bits: the half of them that lies behind is the past.
        let is_past = ahead > entry_header::POSITION_MASK / 2;
        (!is_past).then(|| self.ring.taken() + ahead + u64::from(header.lines()))
    }

    /// A push is whole.
    fn use_push(&mut self, half: usize, header: EntryHeader, shared: &mut Shared) {
        let is_next = header.position == position_of(self.ring.taken())
            && self.ring.is_used_up()
            && !self.frames.is_issuing();
        self.announce(&header, shared);
        // What was announced in vain lies past the ring, and is nothing to take.
        if !is_next || self.ring.is_used_up() {
            shared.counters.push_unused += 1;
        } else if self.is_test_due() {
            shared.counters.push_tested += 1;
        } else if self.take_push(half, &header, shared) {
            shared.counters.push_taken += 1;
            self.ring.skip(header.lines());
        } else {
            shared.counters.push_unused += 1;
        }
        self.halves[half].done();
    }

    fn is_test_due(&mut self) -> bool {
        self.since_test += 1;
        let is_due = self.self_test != 0 && self.since_test >= self.self_test;
        if is_due || self.self_test == 0 {
            self.since_test = 0;
        }
        is_due
    }

    fn take_push(&mut self, half: usize, header: &EntryHeader, shared: &mut Shared) -> bool {
        let described = described(header);
        let half = &self.halves[half];
        match header.kind {
            EntryKind::Whole => {
                let end = ENTRY_HEAD_BYTES + usize::from(header.length_bytes);
                let frame = &half.bytes()[ENTRY_HEAD_BYTES..end];
                self.frames.put(frame, described, shared)
            }
            EntryKind::Address => self.frames.begin(half.word(1), described, shared),
            EntryKind::Nothing => self.frames.put_nothing(described, shared),
        }
    }

    /// Gives up the pushes whose time is up.
    fn give_up_late(&mut self, shared: &mut Shared) {
        for half in 0..self.halves.len() {
            let is_late = self.waits_until(half).is_some_and(|at| at <= shared.now);
            if is_late && let Some(header) = self.halves[half].give_up() {
                shared.counters.push_torn += 1;
                self.announce(&header, shared);
            }
        }
    }

    fn waits_until(&self, half: usize) -> Option<SimTime> {
        let since = self.halves[half].waiting_since().filter(|_| self.hole_timeout.0 > 0)?;
        Some(SimTime(since.0.saturating_add(self.hole_timeout.0)))
    }

    fn fetch_lines(&mut self, reads: &mut Reads, shared: &mut Shared) -> bool {
        while let Some(fetch) = self.ring.next_fetch() {
            let bytes = fetch.count * LINE_BYTES as u32;
            let purpose = Purpose::Lines { first: fetch.first };
            let read = Read { queue: self.id, life: self.frames.life(), purpose, bytes };
            if !reads.ask(DmaOwner::Transmit(Interface::Inline), fetch.address, read, shared) {
                return false;
            }
            shared.counters.descriptor_fetches += 1;
            self.ring.fetch_started(fetch);
        }
        true
    }

    fn take_entries(&mut self, reads: &mut Reads, shared: &mut Shared) -> Turn {
        let mut asked = 0;
        loop {
            if self.frames.is_issuing() {
                let turn = self.frames.issue(&mut asked, reads, shared);
                if turn != Turn::Done {
                    return turn;
                }
            }
            if self.has_failed || self.ring.arrived() == 0 || !self.take_entry(shared) {
                return Turn::Done;
            }
        }
    }

    /// Takes the next entry from the ring; `false` when it is not all here, finds no room, or fails the queue.
    fn take_entry(&mut self, shared: &mut Shared) -> bool {
        let header = match EntryHeader::decode(self.ring.word(0), self.epoch) {
            Ok(header) if header.position == position_of(self.ring.taken()) => header,
            _ => {
                shared.counters.bad_headers += 1;
                self.fail(Cause::BadHeader, shared);
                return false;
            }
        };
        let described = described(&header);
        let is_put = match header.kind {
            EntryKind::Whole if usize::from(header.length_bytes) > RING_MAX_FRAME_BYTES => {
                shared.counters.bad_lengths += 1;
                self.fail(Cause::BadLength, shared);
                return false;
            }
            EntryKind::Whole if self.ring.arrived() < header.lines() => return false,
            EntryKind::Whole => {
                let mut scratch = [0; RING_ENTRY_MAX_BYTES];
                let frame = self.ring.bytes(ENTRY_HEAD_BYTES, usize::from(header.length_bytes), &mut scratch);
                self.frames.put(frame, described, shared)
            }
            EntryKind::Address => self.frames.begin(self.ring.word(1), described, shared),
            EntryKind::Nothing => self.frames.put_nothing(described, shared),
        };
        if is_put {
            self.ring.take(header.lines());
        }
        is_put
    }

    fn fail(&mut self, cause: Cause, shared: &mut Shared) {
        self.has_failed = true;
        shared.fail(self.id, cause);
    }

    /// `false`: a report is due, but the DMA port has no room.
    #[inline]
    fn report(&mut self, shared: &mut Shared) -> bool {
        self.frames.report(self.ring.posted(), shared) && self.credits.report(self.seen_lines, true, shared)
    }
}

/// What an entry says of its frame.
fn described(header: &EntryHeader) -> Described {
    Described { bytes: header.length_bytes.into(), units: header.lines(), wants_interrupt: header.wants_irq }
}

impl FetchQueue for InlineQueue {
    fn start(
        id: QueueId,
        life: u32,
        settings: &QueueSettings,
        longest_frame_bytes: u32,
    ) -> Result<Self, Cause> {
        let ring = LineRing::new(settings.tx_ring_address, settings.tx_ring_entries, AHEAD);
        let ring = ring
            .filter(|ring| ring.lines() as usize * LINE_BYTES >= RING_ENTRY_MAX_BYTES)
            .filter(|_| settings.window_lines >= LEAST_WINDOW_LINES)
            .ok_or(Cause::BadLength)?;
        let fills = settings.blank != 0;
        let report = HeadReport::new(id, settings)?;
        Ok(InlineQueue {
            id,
            epoch: settings.epoch,
            ring,
            fills,
            halves: [PushHalf::new(fills), PushHalf::new(fills)],
            hole_timeout: SimTime::from_ns(settings.hole_timeout_ns),
            self_test: settings.tx_self_test,
            since_test: 0,
            frames: FrameQueue::new(
                id,
                life,
                DmaOwner::Transmit(Interface::Inline),
                longest_frame_bytes,
                report,
            ),
            seen_lines: 0,
            credits: HeadReport::credits(id, settings)?,
            has_failed: false,
        })
    }

    fn life(&self) -> u32 {
        self.frames.life()
    }

    fn deadline(&self) -> Option<SimTime> {
        let times =
            [self.frames.deadline(), self.credits.deadline(), self.waits_until(0), self.waits_until(1)];
        times.into_iter().flatten().min()
    }

    /// Pushes announce too, so a tail that is behind says nothing new: where doorbells and windows are not in one order
    /// it may come late.
    fn post(&mut self, posted: u64) -> bool {
        posted <= self.ring.posted() || self.ring.post(posted, self.frames.done_units())
    }

    fn turn(&mut self, reads: &mut Reads, shared: &mut Shared) -> Turn {
        if self.has_failed {
            return Turn::Done;
        }
        if !self.report(shared) || !self.fetch_lines(reads, shared) {
            return Turn::Blocked;
        }
        let turn = self.take_entries(reads, shared);
        // Taking entries made room for more, and one without a frame may have been done at once.
        let had_room = turn != Turn::Done || self.fetch_lines(reads, shared) && self.report(shared);
        if had_room { turn } else { Turn::Blocked }
    }

    fn answered(&mut self, read: Read, data: Result<&[u8], DmaError>, shared: &mut Shared) -> bool {
        let data = read.checked(data, shared);
        match (read.purpose, data) {
            (Purpose::Payload { index, offset }, data) => {
                self.frames.answered((index, offset), read.bytes, data, shared)
            }
            (Purpose::Lines { first }, Ok(data)) => {
                self.ring.fetched(first, data);
                true
            }
            _ => {
                // Without its entries the ring cannot go on: what the host wanted is not known.
                self.fail(Cause::DmaError, shared);
                false
            }
        }
    }

    fn time_passed(&mut self, shared: &mut Shared) -> bool {
        self.give_up_late(shared);
        true
    }

    #[inline]
    fn head(&mut self) -> Option<&[u8]> {
        self.frames.head()
    }

    #[inline]
    fn head_bytes(&self) -> Option<u32> {
        self.frames.head_bytes()
    }

    /// A turn follows: what waited for the room that the frame leaves may go on.
    #[inline]
    fn pop(&mut self, shared: &mut Shared) -> bool {
        self.frames.pop(shared)
    }
}

impl PushQueue for InlineQueue {
    /// Always taken: what is wrong with a push only costs a fetch.
    fn write_arrived(
        &mut self,
        offset_bytes: u64,
        data: &[u8],
        enables: Enables,
        shared: &mut Shared,
    ) -> (Accept, bool) {
        let (mut done, mut wants_turn) = (0, false);
        while done < data.len() {
            let place = offset_bytes as usize + done;
            let (half, at) = (place / PUSH_HALF_BYTES % 2, place % PUSH_HALF_BYTES);
            let bytes = (PUSH_HALF_BYTES - at).min(data.len() - done);
            wants_turn |= self.store(half, at, &data[done..done + bytes], skip(enables, done), shared);
            done += bytes;
        }
        (Accept::Taken, wants_turn)
    }
}

impl InlineQueue {
    /// Bytes of one half have arrived. Gives whether anything came of it.
    fn store(&mut self, half: usize, at: usize, data: &[u8], enables: Enables, shared: &mut Shared) -> bool {
        let torn = match self.halves[half].overlaps(at, data, enables) {
            true => self.halves[half].tear(),
            false => None,
        };
        if let Some(torn) = torn {
            shared.counters.push_torn += 1;
            self.announce(&torn, shared);
        }
        let arrived = self.halves[half].store(at, data, enables, self.epoch, shared.now);
        match arrived {
            Arrived::Waits => {}
            Arrived::Malformed => shared.counters.bad_headers += 1,
            Arrived::TooLong(header) => {
                shared.counters.push_unused += 1;
                self.announce(&header, shared);
            }
            Arrived::Whole(header) => self.use_push(half, header, shared),
        }
        let is_full = self.fills && self.halves[half].take_full();
        if is_full {
            self.seen_lines += u64::from(PUSH_HALF_LINES);
            self.credits.note_lines(PUSH_HALF_LINES, shared.now);
        }
        torn.is_some() || is_full || matches!(arrived, Arrived::TooLong(_) | Arrived::Whole(_))
    }
}
