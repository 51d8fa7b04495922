//! The reorder unit's contexts: data buffer and valid vector, for the queues that have incomplete lines right now.
//!
//! Each context holds the lines from the frontier's line on, as many as the reorder span, with a valid bit for each
//! byte (HotOS'25 §3.1, "Data Buffer", "Valid Vector"). A queue whose lines arrive whole and in order never needs one;
//! it gets one with its first hole or split line and gives it back when nothing incomplete is left, so that thousands
//! of queues share a few (§3.3). Comes from: [`super::bar_ingress`]. Goes to: [`super::buffer_pool`], line by line.
//! Not here: what a line means, and whether its position is allowed ([`super::tx_queue`]).

use beeline_contract_device::QueueId;

use super::bar_ingress::Piece;
use super::buffer_pool::{Account, PoolLine};

/// Valid bits of a line that has arrived. Messages are padded to whole lines, so the paper's Test Vector selects every
/// byte of every line from the message's start to its end: the parallel AND is this comparison, line by line.
pub(crate) const TEST_VECTOR: u64 = u64::MAX;

/// A context of the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContextId(u32);

/// Result of placing a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// The line still lacks bytes.
    Incomplete,
    /// The piece brought the whole line.
    Whole,
    /// The piece brought the last bytes of a line that came in several.
    Completed,
    /// A byte had already arrived; nothing was changed.
    Clobber,
}

/// All contexts.
#[derive(Debug)]
pub(crate) struct ReorderUnit {
    span_lines: u32,
    data_buffer: Box<[PoolLine]>,
    valid_vector: Box<[u64]>,
    /// Lines of each context with at least one byte.
    lines_held: Box<[u32]>,
    owner: Box<[QueueId]>,
    free: Vec<ContextId>,
    /// Free contexts that no queue has reserved.
    shared: u32,
}

impl ReorderUnit {
    /// `contexts` free contexts of `span_lines` lines, a power of two.
    pub(crate) fn new(contexts: u32, span_lines: u32) -> Self {
        let lines = contexts as usize * span_lines as usize;
        ReorderUnit {
            span_lines,
            data_buffer: vec![[0; 64]; lines].into_boxed_slice(),
            valid_vector: vec![0; lines].into_boxed_slice(),
            lines_held: vec![0; contexts as usize].into_boxed_slice(),
            owner: vec![QueueId(0); contexts as usize].into_boxed_slice(),
            free: (0..contexts).rev().map(ContextId).collect(),
            shared: contexts,
        }
    }

    /// Lines from the frontier's line on that may be held.
    #[inline]
    pub(crate) fn span_lines(&self) -> u32 {
        self.span_lines
    }

    /// Contexts that no queue holds.
    pub(crate) fn free_contexts(&self) -> u32 {
        self.free.len() as u32
    }

    /// Sets one context aside for a queue; `false` when there is none.
    #[must_use]
    pub(crate) fn reserve(&mut self) -> bool {
        match self.shared.checked_sub(1) {
            Some(left) => {
                self.shared = left;
                true
            }
            None => false,
        }
    }

    /// Gives up a reservation that is not in use.
    pub(crate) fn unreserve(&mut self) {
        self.shared += 1;
    }

    /// A context for `queue`, empty; `None` when there is none for that account.
    pub(crate) fn allocate(&mut self, queue: QueueId, account: Account) -> Option<ContextId> {
        if account == Account::Shared {
            self.shared = self.shared.checked_sub(1)?;
        }
        let context = self.free.pop()?;
        self.owner[context.0 as usize] = queue;
        Some(context)
    }

    /// Gives a context back, whatever it holds.
    pub(crate) fn release(&mut self, context: ContextId, account: Account) {
        if self.lines_held[context.0 as usize] != 0 {
            let start = context.0 as usize * self.span_lines as usize;
            self.valid_vector[start..start + self.span_lines as usize].fill(0);
            self.lines_held[context.0 as usize] = 0;
        }
        self.shared += u32::from(account == Account::Shared);
        self.free.push(context);
    }

    /// Whose the context with an [`index`](ContextId::index) is.
    pub(crate) fn owner(&self, index: usize) -> QueueId {
        self.owner[index]
    }

    /// Lines of the context with at least one byte.
    #[inline]
    pub(crate) fn lines_held(&self, context: ContextId) -> u32 {
        self.lines_held[context.0 as usize]
    }

    #[inline]
    fn slot(&self, context: ContextId, position: u64) -> usize {
        let place = position as u32 & (self.span_lines - 1);
        context.0 as usize * self.span_lines as usize + place as usize
    }

    /// The valid bits of the line at a position inside the span.
    #[inline]
    pub(crate) fn valid(&self, context: ContextId, position: u64) -> u64 {
        self.valid_vector[self.slot(context, position)]
    }

    /// Puts a piece at a position inside the span.
    #[inline]
    pub(crate) fn place(&mut self, context: ContextId, position: u64, piece: &Piece) -> Placed {
        let slot = self.slot(context, position);
        let before = self.valid_vector[slot];
        if before & piece.valid != 0 {
            return Placed::Clobber;
        }
        if before == 0 {
            self.data_buffer[slot] = piece.bytes;
            self.lines_held[context.0 as usize] += 1;
        } else {
            // Bytes that are not valid are zero on both sides, so OR merges without looking at the masks.
            for (held, new) in
                self.data_buffer[slot].as_chunks_mut::<8>().0.iter_mut().zip(piece.bytes.as_chunks::<8>().0)
            {
                *held = (u64::from_ne_bytes(*held) | u64::from_ne_bytes(*new)).to_ne_bytes();
            }
        }
        let after = before | piece.valid;
        self.valid_vector[slot] = after;
        match (after == TEST_VECTOR, before == 0) {
            (false, _) => Placed::Incomplete,
            (true, true) => Placed::Whole,
            (true, false) => Placed::Completed,
        }
    }

    /// Takes the line at a position out, if all of it has arrived; its valid bits are cleared for the next lap.
    #[inline]
    pub(crate) fn take(&mut self, context: ContextId, position: u64) -> Option<&PoolLine> {
        let slot = self.slot(context, position);
        if self.valid_vector[slot] != TEST_VECTOR {
            return None;
        }
        self.valid_vector[slot] = 0;
        self.lines_held[context.0 as usize] -= 1;
        Some(&self.data_buffer[slot])
    }
}

impl ContextId {
    /// A number below the number of contexts.
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(valid: u64, byte: u8) -> Piece {
        let mut bytes = [0; 64];
        for (i, slot) in bytes.iter_mut().enumerate() {
            *slot = if valid >> i & 1 == 1 { byte } else { 0 };
        }
        Piece { line: 0, valid, bytes }
    }

    fn unit() -> (ReorderUnit, ContextId) {
        let mut unit = ReorderUnit::new(2, 4);
        let context = unit.allocate(QueueId(7), Account::Shared).expect("it is free");
        (unit, context)
    }

    #[test]
    fn a_line_is_given_out_when_its_last_byte_has_come_and_not_before() {
        let (mut unit, context) = unit();
        for byte in (0..64).rev() {
            assert_eq!(unit.take(context, 9), None, "{byte} bytes still lack");
            let placed = unit.place(context, 9, &piece(1 << byte, byte as u8 + 1));
            assert_eq!(placed, if byte == 0 { Placed::Completed } else { Placed::Incomplete });
        }
        let line = *unit.take(context, 9).expect("all bytes came");
        assert!(line.iter().enumerate().all(|(i, byte)| usize::from(*byte) == i + 1), "{line:?}");
        assert_eq!(unit.take(context, 9), None);
        assert_eq!(unit.lines_held(context), 0);
    }

    #[test]
    fn a_byte_that_comes_twice_changes_nothing() {
        let (mut unit, context) = unit();
        assert_eq!(unit.place(context, 0, &piece(0xff, 1)), Placed::Incomplete);
        assert_eq!(unit.place(context, 0, &piece(u64::MAX << 7, 2)), Placed::Clobber);
        assert_eq!(unit.place(context, 0, &piece(u64::MAX << 8, 2)), Placed::Completed);
        assert_eq!(unit.take(context, 0).map(|line| (line[7], line[8])), Some((1, 2)));
    }

    #[test]
    fn a_context_comes_back_empty_whatever_it_held() {
        let (mut unit, context) = unit();
        assert_eq!(unit.place(context, 3, &piece(u64::MAX, 1)), Placed::Whole);
        unit.release(context, Account::Shared);
        let again = unit.allocate(QueueId(1), Account::Shared).expect("one was released");
        assert_eq!((again, unit.owner(again.index())), (context, QueueId(1)));
        assert_eq!((unit.valid(again, 3), unit.lines_held(again)), (0, 0));
    }

    #[test]
    fn reserved_context_is_refused_to_other_queues() {
        let mut unit = ReorderUnit::new(2, 4);
        assert!(unit.reserve());
        assert!(unit.allocate(QueueId(1), Account::Shared).is_some());
        assert!(!unit.reserve());
        assert_eq!(unit.allocate(QueueId(2), Account::Shared), None);
        let own = unit.allocate(QueueId(0), Account::Reserved).expect("it was reserved");
        unit.release(own, Account::Reserved);
        unit.unreserve();
        assert_eq!(unit.free_contexts(), 1);
        assert!(unit.reserve());
    }
}
