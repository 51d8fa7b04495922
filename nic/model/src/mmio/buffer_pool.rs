//! The buffer pool: lines of on-NIC memory that all queues share.
//!
//! Contiguous data of a queue moves here from the window (HotOS'25 §3.3: "dynamically manages on-NIC memory, similar
//! to many switches") and leaves when it has been transmitted. The lines of a queue are one linked list, oldest first, whose
//! length the queue knows; the pool knows nothing of messages. Free lines are used last in, first out, so that a device
//! that keeps up stays in a few lines of its cache. A list is given back as it is, so the lines of the next message
//! mostly lie next to each other in memory, and its frames can be sent from where they are.
//!
//! A queue that counts on credits alone *reserves* its whole window when it starts, so that a line it was granted can
//! always be taken; the other queues share what nobody reserved, and may find it empty. Not here: who may ask
//! ([`super::reorder_unit`]) and what an empty pool means ([`super`]).

use beeline_spec::LINE_BYTES;

/// No line: the end of the list of free ones.
pub(crate) const NONE: u32 = u32::MAX;

pub(crate) type PoolLine = [u8; LINE_BYTES];

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Aligned(PoolLine);

/// Which account a line is taken from and given back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    /// The queue's own reservation; never empty while its credits are respected.
    Reserved,
    /// Lines that no queue has reserved.
    Shared,
}

pub(crate) struct BufferPool {
    lines: Box<[Aligned]>,
    next: Box<[u32]>,
    free: u32,
    free_lines: u32,
    /// Free lines that no queue has reserved.
    shared_lines: u32,
}

impl BufferPool {
    /// A pool of `lines` free lines.
    pub(crate) fn new(lines: u32) -> Self {
        BufferPool {
            lines: vec![Aligned([0; LINE_BYTES]); lines as usize].into_boxed_slice(),
            next: (1..lines).chain([NONE]).collect(),
            free: if lines == 0 { NONE } else { 0 },
            free_lines: lines,
            shared_lines: lines,
        }
    }

    /// Lines that are free, reserved or not.
    pub(crate) fn free_lines(&self) -> u32 {
        self.free_lines
    }

    /// Free lines that no queue has reserved.
    #[inline]
    pub(crate) fn shared_lines(&self) -> u32 {
        self.shared_lines
    }

    /// Reserves lines for one queue; `false` when there are not as many.
    #[must_use]
    pub(crate) fn reserve(&mut self, lines: u32) -> bool {
        if self.shared_lines < lines {
            return false;
        }
        self.shared_lines -= lines;
        true
    }

    /// Gives up a reservation of which nothing is in use.
    pub(crate) fn unreserve(&mut self, lines: u32) {
        self.shared_lines += lines;
        debug_assert!(self.shared_lines <= self.free_lines);
    }

    /// Takes a free line and fills it; `None` when the account is empty. Its successor is whatever it was; who makes
    /// lists counts them.
    #[inline]
    pub(crate) fn take(&mut self, account: Account, bytes: &PoolLine) -> Option<u32> {
        if account == Account::Shared {
            self.shared_lines = self.shared_lines.checked_sub(1)?;
        }
        let line = self.free;
        let next = *self.next.get(line as usize)?;
        self.lines[line as usize].0 = *bytes;
        self.free = next;
        self.free_lines -= 1;
        Some(line)
    }

    /// Hangs `line` behind `last`.
    #[inline]
    pub(crate) fn link(&mut self, last: u32, line: u32) {
        self.next[last as usize] = line;
    }

    /// Gives back `lines` lines of a list from `first` on; what comes after them in the list is returned.
    #[inline]
    pub(crate) fn give_back(&mut self, account: Account, first: u32, lines: u32) -> u32 {
        let Some(hops) = lines.checked_sub(1) else { return first };
        let last = (0..hops).fold(first, |line, _| self.next[line as usize]);
        let successor = self.next[last as usize];
        self.next[last as usize] = self.free;
        self.free = first;
        self.free_lines += lines;
        if account == Account::Shared {
            self.shared_lines += lines;
        }
        successor
    }

    /// The line after `line` in its list.
    #[inline]
    pub(crate) fn successor(&self, line: u32) -> u32 {
        self.next[line as usize]
    }

    /// The bytes of a line in use.
    #[inline]
    pub(crate) fn line(&self, line: u32) -> &PoolLine {
        &self.lines[line as usize].0
    }

    /// `bytes` bytes from byte `offset` of a line on, if the lines of the list that they reach into lie one after the other
    /// in memory.
    #[inline]
    pub(crate) fn run(&self, first: u32, offset: usize, bytes: usize) -> Option<&[u8]> {
        let mut line = first;
        for _ in 1..(offset + bytes).div_ceil(LINE_BYTES) {
            let next = self.next[line as usize];
            if next != line + 1 {
                return None;
            }
            line = next;
        }
        let start = first as usize * LINE_BYTES + offset;
        bytemuck::cast_slice::<Aligned, u8>(&self.lines).get(start..start + bytes)
    }

    /// Word `index` of a line in use.
    #[inline]
    pub(crate) fn word(&self, line: u32, index: usize) -> u64 {
        u64::from_le_bytes(self.lines[line as usize].0.as_chunks::<8>().0[index])
    }

    /// Overwrites word `index` of a line in use.
    #[inline]
    pub(crate) fn set_word(&mut self, line: u32, index: usize, value: u64) {
        self.lines[line as usize].0.as_chunks_mut::<8>().0[index] = value.to_le_bytes();
    }
}

impl core::fmt::Debug for BufferPool {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("BufferPool")
            .field("lines", &self.lines.len())
            .field("free_lines", &self.free_lines)
            .field("shared_lines", &self.shared_lines)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_and_lists_keep_their_order() {
        let mut pool = BufferPool::new(3);
        let lines: Vec<u32> = (0..3).map(|i| pool.take(Account::Shared, &[i; LINE_BYTES]).unwrap()).collect();
        assert_eq!(pool.take(Account::Shared, &[9; LINE_BYTES]), None);
        pool.link(lines[0], lines[1]);
        pool.link(lines[1], lines[2]);
        let mut at = lines[0];
        for expected in 0..3 {
            assert_eq!(pool.line(at)[63], expected);
            at = pool.give_back(Account::Shared, at, 1);
        }
        assert_eq!((pool.free_lines(), pool.shared_lines()), (3, 3));
    }

    #[test]
    fn a_list_given_back_is_taken_again_in_its_order_and_lies_in_one_run() {
        let mut pool = BufferPool::new(4);
        for lap in 0..3 {
            let take = |pool: &mut BufferPool, i: u8| pool.take(Account::Shared, &[i; LINE_BYTES]).unwrap();
            let lines: Vec<u32> = (0..3).map(|i| take(&mut pool, lap + i)).collect();
            assert_eq!(lines, [0, 1, 2], "lap {lap}");
            pool.link(lines[0], lines[1]);
            let run = pool.run(0, 60, 8).expect("both lines are linked").to_vec();
            assert_eq!(run, [lap, lap, lap, lap, lap + 1, lap + 1, lap + 1, lap + 1]);
            // Linked backwards, it is no run.
            pool.link(lines[1], lines[0]);
            assert_eq!(pool.run(1, 60, 8), None);
            assert_eq!(pool.run(1, 60, 4), Some(&[lap + 1; 4][..]));
            pool.link(lines[1], lines[2]);
            assert_eq!(pool.give_back(Account::Shared, lines[0], 0), lines[0]);
            assert_eq!(pool.give_back(Account::Shared, lines[0], 2), lines[2]);
            pool.give_back(Account::Shared, lines[2], 1);
            // The one that was given back last is taken first; the next lap begins in order again.
            let mut order = [take(&mut pool, 0), take(&mut pool, 0), take(&mut pool, 0)];
            assert_eq!(order, [2, 0, 1]);
            order.sort_unstable();
            for line in order.into_iter().rev() {
                pool.give_back(Account::Shared, line, 1);
            }
            assert_eq!((pool.free_lines(), pool.shared_lines()), (4, 4));
        }
    }

    #[test]
    fn a_reservation_is_never_taken_by_others() {
        let mut pool = BufferPool::new(4);
        assert!(pool.reserve(3));
        assert!(!pool.reserve(2));
        assert!(pool.take(Account::Shared, &[0; LINE_BYTES]).is_some());
        assert_eq!(pool.take(Account::Shared, &[0; LINE_BYTES]), None);
        let own: Vec<u32> = (0..3)
            .map(|_| pool.take(Account::Reserved, &[1; LINE_BYTES]).expect("it was reserved"))
            .collect();
        for line in own {
            pool.give_back(Account::Reserved, line, 1);
        }
        pool.unreserve(3);
        assert_eq!(pool.shared_lines(), 3);
    }

    #[test]
    fn words_are_little_endian() {
        let mut pool = BufferPool::new(1);
        let line = pool.take(Account::Shared, &[0; LINE_BYTES]).unwrap();
        pool.set_word(line, 7, 0x0102_0304_0506_0708);
        assert_eq!(pool.line(line)[56..], [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(pool.word(line, 7), 0x0102_0304_0506_0708);
    }
}
