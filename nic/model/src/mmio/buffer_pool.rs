//! The buffer pool: lines of on-NIC memory that all queues share.
//!
//! Contiguous data of a queue moves here from the window (HotOS'25 §3.3: "dynamically manages on-NIC memory, similar
//! to many switches") and leaves when it has been transmitted. The lines of a queue are one linked list, oldest first, whose
//! length the queue knows; the pool knows nothing of messages. Free lines are used last in, first out, so that a device
//! that keeps up stays in a few lines of its cache. A list is given back as it is, so the lines of the next message
//! mostly lie next to each other in memory, and its frames can be sent from where they are. For a message that comes in
//! parts such lines are set aside when its first line arrives, and whenever no line is in use the list is put in order.
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

/// Lines that were taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List {
    pub first: u32,
    pub last: u32,
}

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
    /// Lines that hold nothing, those that are set aside among them.
    free_lines: u32,
    /// Lines that are set aside and hold nothing.
    aside_lines: u32,
    /// Free lines that no queue has reserved.
    shared_lines: u32,
    /// Links of lines from this one on are as they were made.
    untouched: u32,
}

impl BufferPool {
    /// A pool of `lines` free lines.
    pub(crate) fn new(lines: u32) -> Self {
        BufferPool {
            lines: vec![Aligned([0; LINE_BYTES]); lines as usize].into_boxed_slice(),
            next: (1..lines).chain([NONE]).collect(),
            free: if lines == 0 { NONE } else { 0 },
            free_lines: lines,
            aside_lines: 0,
            shared_lines: lines,
            untouched: 0,
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

    /// Takes a free line for each of `lines`, one at least, and fills them; `None`, with nothing taken, when the account has
    /// not as many. They are linked in order. The successor of the last is whatever it was; who makes lists counts them.
    #[inline]
    pub(crate) fn take(&mut self, account: Account, lines: &[PoolLine]) -> Option<List> {
        let count = lines.len() as u32;
        if count == 0 || self.free_lines < count {
            return None;
        }
        if account == Account::Shared {
            self.shared_lines = self.shared_lines.checked_sub(count)?;
        }
        let first = self.free;
        let last = if self.is_run(first, count) {
            self.fill_run(first, lines);
            self.untouched = self.untouched.max(first + count);
            first + count - 1
        } else {
            self.fill_list(first, lines)
        };
        self.free = self.next[last as usize];
        self.free_lines -= count;
        Some(List { first, last })
    }

    /// Fills lines that lie one after the other.
    #[inline]
    fn fill_run(&mut self, first: u32, lines: &[PoolLine]) {
        let start = first as usize;
        bytemuck::cast_slice_mut(&mut self.lines[start..start + lines.len()]).copy_from_slice(lines);
    }

    /// Fills the lines of a list; gives the last one.
    fn fill_list(&mut self, first: u32, lines: &[PoolLine]) -> u32 {
        let (mut last, mut line) = (first, first);
        for bytes in lines {
            self.lines[line as usize].0 = *bytes;
            self.untouched = self.untouched.max(line + 1);
            (last, line) = (line, self.next[line as usize]);
        }
        last
    }

    /// Sets `count` lines aside, one at least, if those that are next in the list of free ones lie one after the other in
    /// memory. They are filled by [`BufferPool::fill_aside`]; until then they count as free. Only for an account that has
    /// reserved them, so that nobody lacks them meanwhile.
    #[inline]
    pub(crate) fn set_aside(&mut self, count: u32) -> Option<u32> {
        let first = self.free;
        if count == 0 || first == NONE || !self.is_run(first, count) {
            return None;
        }
        self.free = self.next[(first + count - 1) as usize];
        self.untouched = self.untouched.max(first + count);
        self.aside_lines += count;
        Some(first)
    }

    /// Fills the first of the lines that were set aside, from `first` on; one at least.
    #[inline]
    pub(crate) fn fill_aside(&mut self, first: u32, lines: &[PoolLine]) -> List {
        let count = lines.len() as u32;
        self.fill_run(first, lines);
        self.free_lines -= count;
        self.aside_lines -= count;
        List { first, last: first + count - 1 }
    }

    /// Gives back lines that were set aside and not filled.
    pub(crate) fn put_back(&mut self, first: u32, count: u32) {
        if let Some(hops) = count.checked_sub(1) {
            self.next[(first + hops) as usize] = self.free;
            self.free = first;
            self.aside_lines -= count;
        }
    }

    /// Puts the list of free lines in order: every line is in it.
    fn put_in_order(&mut self) {
        let lines = self.next.len() as u32;
        for (line, next) in (0..self.untouched).zip(&mut self.next) {
            *next = if line + 1 == lines { NONE } else { line + 1 };
        }
        (self.free, self.untouched) = (0, 0);
    }

    /// Whether the list's first `count` lines, one at least, lie one after the other in memory. Compared many at a time: a walk
    /// along the list would wait for each link.
    #[inline]
    pub(crate) fn is_run(&self, first: u32, count: u32) -> bool {
        let links = self.next.get(first as usize..first as usize + count as usize - 1);
        links.is_some_and(|links| {
            links.iter().zip(first + 1..).fold(0, |differs, (next, following)| differs | (next ^ following))
                == 0
        })
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
        let last = if self.is_run(first, lines) {
            first + hops
        } else {
            (0..hops).fold(first, |line, _| self.next[line as usize])
        };
        let successor = self.next[last as usize];
        self.next[last as usize] = self.free;
        self.free = first;
        self.free_lines += lines;
        if account == Account::Shared {
            self.shared_lines += lines;
        }
        if self.free_lines as usize == self.next.len() && self.aside_lines == 0 {
            self.put_in_order();
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
        if !self.is_run(first, (offset + bytes).div_ceil(LINE_BYTES) as u32) {
            return None;
        }
        let start = first as usize * LINE_BYTES + offset;
        bytemuck::cast_slice::<Aligned, u8>(&self.lines).get(start..start + bytes)
    }

    /// `bytes` bytes, rounded up to whole lines, from the start of a line in use on; the list's lines, where they lie one after
    /// the other in memory.
    #[inline]
    pub(crate) fn bytes_from(&self, first: u32, bytes: usize) -> &[u8] {
        let start = first as usize;
        bytemuck::cast_slice(&self.lines[start..start + bytes.div_ceil(LINE_BYTES)])
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

    /// Takes one line, all of whose bytes are `byte`.
    fn take_one(pool: &mut BufferPool, account: Account, byte: u8) -> Option<u32> {
        let list = pool.take(account, &[[byte; LINE_BYTES]])?;
        assert_eq!(list.first, list.last);
        Some(list.first)
    }

    #[test]
    fn lines_come_back_and_lists_keep_their_order() {
        let mut pool = BufferPool::new(3);
        let lines: Vec<u32> = (0..3).map(|i| take_one(&mut pool, Account::Shared, i).unwrap()).collect();
        assert_eq!(take_one(&mut pool, Account::Shared, 9), None);
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
            let take = |pool: &mut BufferPool, i: u8| take_one(pool, Account::Shared, i).unwrap();
            let lines: Vec<u32> = (0..3).map(|i| take(&mut pool, lap + i)).collect();
            // Whatever the order in which they were given back.
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
            assert_eq!((pool.free_lines(), pool.shared_lines()), (4, 4));
        }
    }

    #[test]
    fn lines_taken_together_are_a_list_whether_free_ones_lie_in_order_or_not() {
        let lines: Vec<PoolLine> = (0..5).map(|i| [i; LINE_BYTES]).collect();
        let free_in_order: [u32; 6] = [0, 1, 2, 3, 4, 5];
        for free in
            [free_in_order, [3, 4, 5, 0, 1, 2], [5, 4, 3, 2, 1, 0], [0, 1, 2, 3, 5, 4], [1, 0, 2, 3, 4, 5]]
        {
            // One more stays in use, so that the list is not put in order.
            let mut pool = BufferPool::new(7);
            assert!(pool.take(Account::Shared, &[[0; LINE_BYTES]; 7]).is_some());
            // The one that is given back last is taken first.
            for line in free.iter().rev() {
                pool.give_back(Account::Shared, *line, 1);
            }
            let list = pool.take(Account::Shared, &lines).expect("six are free");
            assert_eq!((list.first, list.last), (free[0], free[4]));
            let mut at = list.first;
            for (expected, line) in free.iter().zip(&lines) {
                assert_eq!((at, pool.line(at)), (*expected, line), "{free:?}");
                at = pool.successor(at);
            }
            assert_eq!(pool.run(list.first, 0, 5 * LINE_BYTES).is_some(), free == free_in_order, "{free:?}");
            assert_eq!((pool.free_lines(), pool.take(Account::Shared, &lines[..2])), (1, None));
            assert_eq!((pool.free_lines(), pool.shared_lines()), (1, 1), "what cannot be had takes nothing");
            assert_eq!(pool.give_back(Account::Shared, list.first, 5), free[5]);
            assert_eq!(pool.take(Account::Shared, &lines), Some(list), "in the order in which it was");
        }
    }

    #[test]
    fn lines_set_aside_are_one_run_whoever_takes_lines_meanwhile() {
        let lines: Vec<PoolLine> = (1..6).map(|i| [i; LINE_BYTES]).collect();
        let mut pool = BufferPool::new(8);
        assert!(pool.reserve(5));
        assert_eq!((pool.set_aside(0), pool.set_aside(9)), (None, None));
        let first = pool.set_aside(5).expect("all are free, in order");
        assert_eq!((first, pool.free_lines(), pool.shared_lines()), (0, 8, 3), "they hold nothing yet");
        let part = pool.fill_aside(first, &lines[..2]);
        let others: Vec<u32> = (0..3).map(|_| take_one(&mut pool, Account::Shared, 9).unwrap()).collect();
        assert_eq!((others, take_one(&mut pool, Account::Shared, 9)), (vec![5, 6, 7], None));
        let rest = pool.fill_aside(part.last + 1, &lines[2..]);
        assert_eq!((part.first, rest.last, pool.free_lines()), (0, 4, 0));
        assert_eq!(pool.run(0, 0, 5 * LINE_BYTES), Some(lines.as_flattened()));
        pool.give_back(Account::Shared, 6, 1);
        pool.give_back(Account::Reserved, 0, 5);
        assert_eq!(pool.set_aside(6).map(|first| pool.put_back(first, 6)), None, "0 to 4, then 6");
        assert_eq!(pool.set_aside(5).map(|first| pool.put_back(first, 5)), Some(()));
        assert_eq!(take_one(&mut pool, Account::Reserved, 1), Some(0), "what was put back is next");
    }

    #[test]
    fn a_reservation_is_never_taken_by_others() {
        let mut pool = BufferPool::new(4);
        assert!(pool.reserve(3));
        assert!(!pool.reserve(2));
        assert_eq!(pool.take(Account::Shared, &[[0; LINE_BYTES]; 2]), None);
        assert!(take_one(&mut pool, Account::Shared, 0).is_some());
        assert_eq!(take_one(&mut pool, Account::Shared, 0), None);
        let own: Vec<u32> =
            (0..3).map(|_| take_one(&mut pool, Account::Reserved, 1).expect("it was reserved")).collect();
        for line in own {
            pool.give_back(Account::Reserved, line, 1);
        }
        pool.unreserve(3);
        assert_eq!(pool.shared_lines(), 3);
    }

    #[test]
    fn words_are_little_endian() {
        let mut pool = BufferPool::new(1);
        let line = take_one(&mut pool, Account::Shared, 0).unwrap();
        pool.set_word(line, 7, 0x0102_0304_0506_0708);
        assert_eq!(pool.line(line)[56..], [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(pool.word(line, 7), 0x0102_0304_0506_0708);
    }
}
