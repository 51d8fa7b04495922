//! The queue of DMA accesses that wait for the link.
//!
//! Bounded, so that a host that never answers cannot make the device grow: when there is no room, an engine keeps its
//! state and tries again in `progress`. Order is kept, because writes of one device become visible in the order in
//! which they were wanted, and a read does not pass an earlier write (PCIe).

use std::collections::VecDeque;

use beeline_spec::Interface;

/// Longest read that may be asked for, in bytes.
pub(crate) const MAX_READ_BYTES: u32 = 4096;
/// Accesses that may wait.
const MAX_WAITING: usize = 1024;
/// Bytes of write data that may wait; at least twice the longest frame.
const ARENA_BYTES: usize = 64 * 1024;

/// Which engine asked for a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DmaOwner {
    Receive,
    Transmit(Interface),
}

impl DmaOwner {
    const COUNT: usize = 1 + Interface::ALL.len();

    /// The number that stands for it in a tag.
    const fn number(self) -> u16 {
        match self {
            DmaOwner::Receive => 0,
            DmaOwner::Transmit(interface) => 1 + interface as u16,
        }
    }

    fn from_number(number: usize) -> Option<Self> {
        match number.checked_sub(1) {
            None => Some(DmaOwner::Receive),
            Some(at) => Interface::ALL.get(at).copied().map(DmaOwner::Transmit),
        }
    }
}

/// Tags an engine may use are below this.
pub(crate) const TAGS: u16 = 1 << OWNER_LSB;
/// Lowest bit of the three that tell the owners apart.
const OWNER_LSB: u32 = 10;
/// Lowest bit of the two that tell apart what was asked before and after a reset.
const GENERATION_LSB: u32 = 13;
const _: () = assert!(DmaOwner::COUNT <= 1 << (GENERATION_LSB - OWNER_LSB));
/// Lives of the device, from reset to reset, whose reads can be told apart.
const GENERATIONS: usize = 4;

/// One access that waits for the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DmaWant {
    /// Read `bytes` at `address`; the answer carries `tag`.
    Read { address: u64, bytes: u32, tag: u16 },
    /// Write the bytes of the arena from `start` on.
    Write { address: u64, start: u32, bytes: u32 },
}

/// The queue. Write data lies in a ring of bytes, each write in one piece.
#[derive(Debug)]
pub(crate) struct DmaPort {
    wants: VecDeque<DmaWant>,
    arena: Box<[u8]>,
    /// First byte in use, when any is.
    head: usize,
    /// First byte not in use after the youngest write.
    tail: usize,
    /// Writes in the queue or lent to the link.
    writes: usize,
    /// Accesses asked for since the device was made.
    asked: u64,
    /// A write was lent to the link by `take`; its bytes are let go in the next call.
    lent: Option<u32>,
    /// Use of the tag. A number is used again when every read of its last use was answered. A number is used again
    /// when every read of its last use was answered.
    generation: u16,
    /// All numbers are owed answers, so nothing can be read until one is not.
    is_waiting: bool,
    /// Reads that the link took and has not answered, by life.
    owed: [u32; GENERATIONS],
}

/// The life in which a read with this tag was asked.
const fn generation_of(tag: u16) -> usize {
    (tag >> GENERATION_LSB) as usize % GENERATIONS
}

impl DmaPort {
    /// An empty queue.
    pub(crate) fn new() -> Self {
        DmaPort {
            wants: VecDeque::with_capacity(MAX_WAITING),
            arena: vec![0; ARENA_BYTES].into_boxed_slice(),
            head: 0,
            tail: 0,
            writes: 0,
            asked: 0,
            lent: None,
            generation: 0,
            is_waiting: false,
            owed: [0; GENERATIONS],
        }
    }

    /// Whether `accesses` more accesses with `write_bytes` of data between them surely fit. Ask before a sequence of
    /// writes that must not be torn apart.
    pub(crate) fn has_room(&self, accesses: usize, write_bytes: usize) -> bool {
        if self.wants.len() + accesses > MAX_WAITING {
            return false;
        }
        if write_bytes == 0 || self.writes == 0 {
            return write_bytes <= ARENA_BYTES;
        }
        // A write that does not fit before the arena's end skips to its start, so the worst case wastes the end.
        if self.tail > self.head {
            write_bytes <= ARENA_BYTES - self.tail || write_bytes < self.head
        } else {
            write_bytes < self.head - self.tail
        }
    }

    /// Asks for a read of 1 to 4096 bytes. `tag` is the engine's own, below [`TAGS`]. `false`: no room, nothing asked.
    #[must_use]
    pub(crate) fn read(&mut self, owner: DmaOwner, address: u64, bytes: u32, tag: u16) -> bool {
        debug_assert!((1..=MAX_READ_BYTES).contains(&bytes) && tag < TAGS);
        if self.wants.len() == MAX_WAITING || self.is_waiting {
            return false;
        }
        let tag = tag | self.generation << GENERATION_LSB | owner.number() << OWNER_LSB;
        self.wants.push_back(DmaWant::Read { address, bytes, tag });
        self.asked += 1;
        true
    }

    /// Asks for a write; the bytes are copied. `false`: no room, nothing was asked.
    #[must_use]
    pub(crate) fn write(&mut self, address: u64, data: &[u8]) -> bool {
        if !self.has_room(1, data.len()) {
            return false;
        }
        if self.writes == 0 {
            (self.head, self.tail) = (0, 0);
        }
        if ARENA_BYTES - self.tail < data.len() {
            self.tail = 0;
        }
        let start = self.tail;
        self.arena[start..start + data.len()].copy_from_slice(data);
        self.tail += data.len();
        self.writes += 1;
        self.wants.push_back(DmaWant::Write { address, start: start as u32, bytes: data.len() as u32 });
        self.asked += 1;
        true
    }

    /// Accesses asked for so far: what is pushed by a read that is answered after them.
    #[inline]
    pub(crate) fn asked(&self) -> u64 {
        self.asked
    }

    /// Whether the link has taken the first `asked` accesses.
    #[inline]
    pub(crate) fn has_given(&self, asked: u64) -> bool {
        self.asked - self.wants.len() as u64 >= asked
    }

    /// Whether anything waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.wants.is_empty()
    }

    /// The bytes of the write that `take` gave last are not needed any more.
    #[inline]
    pub(crate) fn take_back(&mut self) {
        if let Some(end) = self.lent.take() {
            self.head = end as usize;
            self.writes -= 1;
        }
    }

    /// The oldest access. The data of a write (see [`DmaPort::data`]) lasts until the next `take` or `take_back`.
    pub(crate) fn take(&mut self) -> Option<DmaWant> {
        self.take_back();
        let want = self.wants.pop_front()?;
        match want {
            DmaWant::Write { start, bytes, .. } => {
                self.head = start as usize;
                self.lent = Some(start + bytes);
            }
            DmaWant::Read { tag, .. } => self.owed[generation_of(tag)] += 1,
        }
        Some(want)
    }

    /// The data of a write that `take` gave.
    pub(crate) fn data(&self, start: u32, bytes: u32) -> &[u8] {
        &self.arena[start as usize..(start + bytes) as usize]
    }

    /// The link answers the read with this tag: whose it is, and the engine's own tag; `None` for one asked before the
    /// last reset.
    pub(crate) fn answered(&mut self, tag: u16) -> Option<(DmaOwner, u16)> {
        let (own, generation) = (tag & (TAGS - 1), generation_of(tag));
        let is_current = generation == usize::from(self.generation) && !self.is_waiting;
        // A link that answers twice makes no count run backwards.
        self.owed[generation] = self.owed[generation].saturating_sub(1);
        if self.is_waiting && self.owed[generation] == 0 {
            (self.generation, self.is_waiting) = (generation as u16, false);
        }
        if !is_current {
            return None;
        }
        let owner = usize::from(tag >> OWNER_LSB) % (1 << (GENERATION_LSB - OWNER_LSB));
        Some((DmaOwner::from_number(owner)?, own))
    }

    /// Forgets everything that waits; answers to what was asked before will not be known.
    pub(crate) fn reset(&mut self) {
        self.wants.clear();
        (self.head, self.tail, self.writes, self.lent) = (0, 0, 0, None);
        let free = (0..GENERATIONS).find(|generation| self.owed[*generation] == 0);
        self.is_waiting = free.is_none();
        self.generation = free.map_or(self.generation, |generation| generation as u16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(port: &mut DmaPort) -> Option<Vec<u8>> {
        let DmaWant::Write { start, bytes, .. } = port.take()? else { panic!("only writes were asked") };
        Some(port.data(start, bytes).to_vec())
    }

    #[test]
    fn accesses_keep_their_order_and_their_bytes() {
        let mut port = DmaPort::new();
        assert!(port.write(8, &[1, 2, 3]) && port.read(DmaOwner::Receive, 64, 16, 5) && port.write(16, &[4]));
        assert_eq!(port.take(), Some(DmaWant::Write { address: 8, start: 0, bytes: 3 }));
        assert_eq!(port.data(0, 3), [1, 2, 3]);
        let Some(DmaWant::Read { address: 64, bytes: 16, tag }) = port.take() else {
            panic!("a read comes next")
        };
        assert_eq!(port.answered(tag), Some((DmaOwner::Receive, 5)));
        assert_eq!(taken(&mut port), Some(vec![4]));
        assert_eq!(port.take(), None);
    }

    #[test]
    fn what_does_not_fit_is_refused_and_nothing_waiting_is_overwritten() {
        let mut port = DmaPort::new();
        let mut next = 0u8;
        let mut expected = 0u8;
        let sizes = [9000, 1, 64, 5000, 12_000, 31];
        for round in 0..2000 {
            let size = sizes[round % sizes.len()];
            while port.write(0, &vec![next; size]) {
                next = next.wrapping_add(1);
            }
            assert!(!port.has_room(1, size));
            // Everything that waits comes out as it went in, some of it before more goes in.
            for _ in 0..=round % 5 {
                let data = taken(&mut port).expect("several wait");
                assert!(data.iter().all(|byte| *byte == expected), "write {expected}");
                expected = expected.wrapping_add(1);
            }
        }
    }

    #[test]
    fn room_once_promised_is_there() {
        let mut port = DmaPort::new();
        for round in 0..3000usize {
            let sizes = [round % 700 + 1, 8192, round % 64 + 1];
            while !port.has_room(3, sizes.iter().sum()) {
                assert!(port.take().is_some(), "an empty port has room");
            }
            for size in sizes {
                assert!(port.write(0, &vec![0; size]), "round {round}");
            }
        }
    }

    #[test]
    fn answers_from_before_a_reset_are_ignored() {
        let mut port = DmaPort::new();
        assert!(port.read(DmaOwner::Transmit(Interface::Descriptor), 0, 1, 7) && port.write(0, &[1]));
        let Some(DmaWant::Read { tag, .. }) = port.take() else { panic!("a read was asked") };
        port.reset();
        assert_eq!((port.answered(tag), port.take()), (None, None));
    }

    #[test]
    fn a_tag_is_not_used_again_while_the_link_owes_its_answer() {
        let mut port = DmaPort::new();
        let ask = |port: &mut DmaPort| port.read(DmaOwner::Receive, 0, 1, 7);
        let mut owed = Vec::new();
        for _ in 0..GENERATIONS {
            assert!(ask(&mut port));
            let Some(DmaWant::Read { tag, .. }) = port.take() else { panic!("a read was asked") };
            assert!(!owed.contains(&tag), "{tag:#x} twice");
            owed.push(tag);
            port.reset();
        }
        // Every life owes an answer: nothing is asked before one has come, and what comes is nobody's.
        assert!(!ask(&mut port));
        assert_eq!(port.answered(owed[2]), None);
        assert!(ask(&mut port));
        let Some(DmaWant::Read { tag, .. }) = port.take() else { panic!("a read was asked") };
        assert_eq!(tag, owed[2]);
        assert_eq!(port.answered(tag), Some((DmaOwner::Receive, 7)));
        // A life whose reads are all answered is gone on with after a reset.
        port.reset();
        assert!(ask(&mut port));
    }
}
