//! One transmit ring of coherent lines: the entry that is waited for, and the frames of the last one.
//!
//! The device watches the header of the next entry alone: looking at one further on would take a line from a host that
//! is filling it. When the header changes, the whole entry comes with it; it is read once, checked and worked on in this
//! side's own copy. A short frame is taken from there; frames that the entry names are fetched, many at once. An entry is
//! given back when its last frame has left, by its own header without the owner bit, and that is also what the place
//! must still hold when the next lap's entry is waited for. A header that is not of this epoch and entry, or that does
//! not fit, fails the queue, because nothing else tells what is meant; a frame that makes no sense is counted and done in
//! its turn.
//!
//! From: [`super::CoherentEngine`], watched lines and answers to reads. To: the wire, and the entries' headers.
//! Schuh et al., ASPLOS'24 (inlined signals, grouped descriptors).

use beeline_contract_device::{DmaError, QueueId, SimTime, WatchEnd};
use beeline_spec::Interface;
use beeline_spec::WORD_BYTES;
use beeline_spec::coherent::{LineBuffer, LineError, LineHeader, LineKind, given_back};
use beeline_spec::formats::LINE_ENTRY_MAX_BYTES;

use super::entries::Entries;
use crate::engine::{Cause, DmaOwner, QueueSettings, Shared};
use crate::fetch::{Described, FetchQueue, FrameQueue, HeadReport, Purpose, Read, Reads, Turn, WatchQueue};
use crate::watch_port::{Direction, Watch};

/// The entry that came last, while frames of it have no place among the frames yet.
#[derive(Clone, Copy, Debug)]
struct Entry {
    kind: LineKind,
    /// Buffers that have their place.
    placed: u8,
}

/// A started ring. Counts of entries are absolute: `back <= done <= taken <= back + entries`.
#[derive(Debug)]
pub(crate) struct TxLines {
    id: QueueId,
    epoch: u8,
    ring: Entries,
    /// Header of the entry at each place, as the host passed it; 0 before the first lap.
    headers: Box<[u64]>,
    /// The entry that came last.
    bytes: [u8; LINE_ENTRY_MAX_BYTES],
    entry: Option<Entry>,
    taken: u64,
    back: u64,
    frames: FrameQueue,
    is_watching: bool,
    has_failed: bool,
}

impl TxLines {
    fn fail(&mut self, cause: Cause, shared: &mut Shared) {
        let counters = &mut shared.counters;
        match cause {
            Cause::BadHeader => counters.bad_headers += 1,
            Cause::BadLength => counters.bad_lengths += 1,
            Cause::DmaError => counters.dma_errors += 1,
            _ => {}
        }
        self.has_failed = true;
        shared.fail(self.id, cause);
    }

    #[inline]
    fn word(&self, index: usize) -> u64 {
        u64::from_le_bytes(self.bytes.as_chunks::<WORD_BYTES>().0[index])
    }

    /// Gives entries back whose frames have all left. `false`: the DMA port has no room.
    fn give_back(&mut self, shared: &mut Shared) -> bool {
        while self.back < self.frames.done_units() {
            let header = given_back(self.headers[self.ring.slot(self.back)]);
            if !shared.dma.write(self.ring.address_of(self.back), &header.to_le_bytes()) {
                return false;
            }
            shared.counters.completions += 1;
            self.back += 1;
        }
        true
    }

    /// Gives the frames of the last entry their place, as far as there is room.
    fn place_frames(&mut self, reads: &mut Reads, shared: &mut Shared) -> Turn {
        let mut asked = 0;
        loop {
            if self.frames.is_issuing() {
                let turn = self.frames.issue(&mut asked, reads, shared);
                if turn != Turn::Done {
                    return turn;
                }
            }
            let Some(Entry { kind, placed }) = self.entry else { return Turn::Done };
            let (is_placed, is_last) = match kind {
                LineKind::Whole(bytes) => {
                    let frame = &self.bytes[WORD_BYTES..WORD_BYTES + usize::from(bytes)];
                    let described = Described { units: 1, ..Described::default() };
                    (self.frames.put(frame, described, shared), true)
                }
                LineKind::Buffers(count) => {
                    let buffer = LineBuffer::decode(self.word(1 + usize::from(placed)));
                    let is_last = placed + 1 == count;
                    let (bytes, units) = (buffer.length_bytes.into(), u32::from(is_last));
                    let described = Described { bytes, units, wants_interrupt: false };
                    (self.frames.begin(buffer.address, described, shared), is_last)
                }
            };
            if !is_placed {
                return Turn::Done;
            }
            self.entry = (!is_last).then_some(Entry { kind, placed: placed + 1 });
        }
    }

    /// Waits for the next entry, once the last one is worked off and its place is the host's.
    fn watch(&mut self, shared: &mut Shared) {
        let has_place = self.taken < self.back + self.ring.count();
        if self.is_watching || self.entry.is_some() || !has_place {
            return;
        }
        self.is_watching = true;
        let known = given_back(self.headers[self.ring.slot(self.taken)]);
        let (address, bytes) = (self.ring.address_of(self.taken), self.ring.entry_bytes as u32);
        shared.watches.watch(self.id, Direction::Transmit, Watch { address, known, bytes });
    }

    /// Takes over the entry that was waited for.
    fn take(&mut self, data: &[u8]) -> Result<(), Cause> {
        if data.len() != self.ring.entry_bytes {
            return Err(Cause::DmaError);
        }
        self.bytes[..data.len()].copy_from_slice(data);
        let word = self.word(0);
        let header = match LineHeader::decode(word, self.epoch, self.taken, self.ring.entry_bytes) {
            Ok(header) => header,
            Err(LineError::TooLong(_)) => return Err(Cause::BadLength),
            Err(LineError::Malformed(_) | LineError::Stale(_)) => return Err(Cause::BadHeader),
        };
        self.headers[self.ring.slot(self.taken)] = word;
        self.entry = Some(Entry { kind: header.kind, placed: 0 });
        self.taken += 1;
        Ok(())
    }
}

impl FetchQueue for TxLines {
    fn start(
        id: QueueId,
        life: u32,
        settings: &QueueSettings,
        longest_frame_bytes: u32,
    ) -> Result<Self, Cause> {
        let ring = Entries::new(settings.tx_ring_address, settings.tx_ring_entries, settings.entry_lines)?;
        // Entries tell by themselves that they are done.
        let report = HeadReport::none(id);
        Ok(TxLines {
            id,
            epoch: settings.epoch,
            ring,
            headers: vec![0; ring.entries as usize].into_boxed_slice(),
            bytes: [0; LINE_ENTRY_MAX_BYTES],
            entry: None,
            taken: 0,
            back: 0,
            frames: FrameQueue::new(
                id,
                life,
                DmaOwner::Transmit(Interface::Coherent),
                longest_frame_bytes,
                report,
            ),
            is_watching: false,
            has_failed: false,
        })
    }

    fn life(&self) -> u32 {
        self.frames.life()
    }

    /// Nothing waits for its time: an entry is given back as soon as it is done.
    fn deadline(&self) -> Option<SimTime> {
        None
    }

    /// Entries announce themselves: there is no doorbell.
    fn post(&mut self, _posted: u64) -> bool {
        false
    }

    fn turn(&mut self, reads: &mut Reads, shared: &mut Shared) -> Turn {
        if self.has_failed {
            return Turn::Done;
        }
        let turn = self.place_frames(reads, shared);
        if !self.give_back(shared) {
            return Turn::Blocked;
        }
        self.watch(shared);
        turn
    }

    fn answered(&mut self, read: Read, data: Result<&[u8], DmaError>, shared: &mut Shared) -> bool {
        let data = read.checked(data, shared);
        let Purpose::Payload { index, offset } = read.purpose else { return false };
        self.frames.answered((index, offset), read.bytes, data, shared)
    }

    fn time_passed(&mut self, _shared: &mut Shared) -> bool {
        false
    }

    #[inline]
    fn head(&mut self) -> Option<&[u8]> {
        self.frames.head()
    }

    #[inline]
    fn head_bytes(&self) -> Option<u32> {
        self.frames.head_bytes()
    }

    /// A turn follows: there is room, and perhaps an entry to give back.
    #[inline]
    fn pop(&mut self, shared: &mut Shared) -> bool {
        self.frames.pop(shared)
    }
}

impl WatchQueue for TxLines {
    fn line_changed(&mut self, data: Result<&[u8], WatchEnd>, shared: &mut Shared) -> bool {
        self.is_watching = false;
        let taken = data.map_err(|_| Cause::DmaError).and_then(|data| self.take(data));
        match taken {
            Ok(()) => shared.counters.entries += 1,
            Err(cause) => self.fail(cause, shared),
        }
        taken.is_ok()
    }
}
