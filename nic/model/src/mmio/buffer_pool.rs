//! The buffer pool: lines of on-NIC memory that all queues share.
//!
//! Contiguous data of a queue moves here from the window (HotOS'25 §3.3: "dynamically manages on-NIC memory, similar
//! to many switches") and leaves when it has been transmitted. The lines of a queue are one linked list, oldest first, whose
//! length the queue knows; the pool knows nothing of messages. Lines that are taken together, or set aside for a message that
//! comes in parts, lie one after the other in memory wherever so many are free, so that frames can be sent from where they
//! are; the lowest ones are taken, so that a device that keeps up stays in a few lines of its cache.
//!
//! A queue that counts on credits alone *reserves* its whole window when it starts, so that a line it was granted can
//! always be taken; the other queues share what nobody reserved, and may find it empty. Not here: who may ask
//! ([`super::reorder_unit`]) and what an empty pool means ([`super`]).

use beeline_spec::LINE_BYTES;

/// No line.
pub(crate) const NONE: u32 = u32::MAX;

pub(crate) type PoolLine = [u8; LINE_BYTES];

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Aligned(PoolLine);

/// Lines of a word of the map of lines in use.
const MAP_LINES: u32 = u64::BITS;
/// Pieces of free memory that are looked at for lines that lie one after the other: whoever cut the pool into pieces must not
/// make every message of others a search.
const MOST_PIECES: u32 = 16;

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
    /// The line behind each line of a list.
    next: Box<[u32]>,
    /// Bit i of word j: line 64 j + i is in use, or set aside.
    used: Box<[u64]>,
    /// The words before this one have no line that is not in use.
    lowest: usize,
    /// Lines that hold nothing, those that are set aside among them.
    free_lines: u32,
    /// Free lines that no queue has reserved.
    shared_lines: u32,
}

impl BufferPool {
    /// A pool of `lines` free lines.
    pub(crate) fn new(lines: u32) -> Self {
        let mut used = vec![0; lines.div_ceil(MAP_LINES) as usize].into_boxed_slice();
        if let Some(last) = used.last_mut().filter(|_| !lines.is_multiple_of(MAP_LINES)) {
            *last = u64::MAX << (lines % MAP_LINES);
        }
        BufferPool {
            lines: vec![Aligned([0; LINE_BYTES]); lines as usize].into_boxed_slice(),
            next: vec![NONE; lines as usize].into_boxed_slice(),
            used,
            lowest: 0,
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
        self.free_lines -= count;
        if let Some(first) = self.use_run(count) {
            self.fill_run(first, lines);
            return Some(List { first, last: first + count - 1 });
        }
        Some(self.fill_list(lines))
    }

    /// Fills lines that lie one after the other.
    #[inline]
    fn fill_run(&mut self, first: u32, lines: &[PoolLine]) {
        let start = first as usize;
        bytemuck::cast_slice_mut(&mut self.lines[start..start + lines.len()]).copy_from_slice(lines);
    }

    /// Uses and fills the lowest free lines, wherever they are; there are as many.
    #[cold]
    fn fill_list(&mut self, lines: &[PoolLine]) -> List {
        let mut list = List { first: NONE, last: NONE };
        for bytes in lines {
            let line = self.use_run(1).expect("the account has a line");
            self.lines[line as usize].0 = *bytes;
            if list.first == NONE {
                list.first = line;
            } else {
                self.link(list.last, line);
            }
            list.last = line;
        }
        list
    }

    /// Sets `count` lines aside, one at least, if so many that lie one after the other are found. They are filled by
    /// [`BufferPool::fill_aside`]; until then they count as free. Only for an account that has reserved them, so that nobody
    /// lacks them meanwhile.
    #[inline]
    pub(crate) fn set_aside(&mut self, count: u32) -> Option<u32> {
        if count == 0 { None } else { self.use_run(count) }
    }

    /// Fills the first of the lines that were set aside, from `first` on; one at least.
    #[inline]
    pub(crate) fn fill_aside(&mut self, first: u32, lines: &[PoolLine]) -> List {
        let count = lines.len() as u32;
        self.fill_run(first, lines);
        self.free_lines -= count;
        List { first, last: first + count - 1 }
    }

    /// Gives back lines that were set aside and not filled.
    pub(crate) fn put_back(&mut self, first: u32, count: u32) {
        self.unuse_run(first, count);
    }

    /// Uses `count` lines, one at least, that lie one after the other, and links them; `None` when none were found.
    #[inline]
    fn use_run(&mut self, count: u32) -> Option<u32> {
        let first = self.find_run(count)?;
        for_each_mask(first, count, |word, mask| self.used[word] |= mask);
        while self.used.get(self.lowest) == Some(&u64::MAX) {
            self.lowest += 1;
        }
        let links = &mut self.next[first as usize..(first + count - 1) as usize];
        links.iter_mut().zip(first + 1..).for_each(|(next, line)| *next = line);
        Some(first)
    }

    /// The lowest of `count` lines that are not in use and lie one after the other.
    #[inline]
    fn find_run(&self, count: u32) -> Option<u32> {
        // The piece of free memory that ends where the search is.
        let (mut first, mut length) = (0, 0);
        let mut pieces = 0;
        for (word, used) in self.used.iter().enumerate().skip(self.lowest) {
            let mut bit = 0;
            while bit < MAP_LINES {
                let rest = used >> bit;
                let gap = rest.trailing_zeros().min(MAP_LINES - bit);
                if gap != 0 {
                    if length == 0 {
                        first = word as u32 * MAP_LINES + bit;
                    }
                    length += gap;
                    if length >= count {
                        return Some(first);
                    }
                    bit += gap;
                } else {
                    pieces += u32::from(length != 0);
                    if pieces > MOST_PIECES {
                        return None;
                    }
                    length = 0;
                    bit += rest.trailing_ones();
                }
            }
        }
        None
    }

    /// Lines that lie one after the other are in use no more.
    #[inline]
    fn unuse_run(&mut self, first: u32, count: u32) {
        if count != 0 {
            for_each_mask(first, count, |word, mask| self.used[word] &= !mask);
            self.lowest = self.lowest.min((first / MAP_LINES) as usize);
        }
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
            self.unuse_run(first, lines);
            first + hops
        } else {
            let mut line = first;
            self.unuse_run(line, 1);
            for _ in 0..hops {
                line = self.next[line as usize];
                self.unuse_run(line, 1);
            }
            line
        };
        self.free_lines += lines;
        if account == Account::Shared {
            self.shared_lines += lines;
        }
        self.next[last as usize]
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

/// Gives `each` the words of the map that have the bits of `count` lines from `first` on, and those bits.
#[inline(always)]
fn for_each_mask(first: u32, count: u32, mut each: impl FnMut(usize, u64)) {
    let (mut line, end) = (first, first + count);
    while line < end {
        let bit = line % MAP_LINES;
        let here = (end - line).min(MAP_LINES - bit);
        each((line / MAP_LINES) as usize, u64::MAX >> (MAP_LINES - here) << bit);
        line += here;
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
    fn a_frame_lies_in_one_piece_if_its_lines_are_linked_in_order() {
        let mut pool = BufferPool::new(4);
        let lines: Vec<u32> = (0..3).map(|i| take_one(&mut pool, Account::Shared, i).unwrap()).collect();
        assert_eq!(lines, [0, 1, 2], "the lowest first");
        pool.link(0, 1);
        assert_eq!(pool.run(0, 60, 8), Some(&[0, 0, 0, 0, 1, 1, 1, 1][..]));
        // Linked backwards, it is no run.
        pool.link(1, 0);
        assert_eq!(pool.run(1, 60, 8), None);
        assert_eq!(pool.run(1, 60, 4), Some(&[1; 4][..]));
        pool.link(1, 2);
        assert_eq!(pool.give_back(Account::Shared, 0, 0), 0);
        assert_eq!(pool.give_back(Account::Shared, 0, 2), 2);
        assert_eq!(take_one(&mut pool, Account::Shared, 7), Some(0), "the lowest again");
    }

    /// Takes every line, then gives back those for which `is_free`.
    fn pool_with_free(lines: u32, is_free: impl Fn(u32) -> bool) -> BufferPool {
        let mut pool = BufferPool::new(lines);
        assert!(pool.take(Account::Shared, &vec![[0; LINE_BYTES]; lines as usize]).is_some());
        for line in (0..lines).filter(|line| is_free(*line)) {
            pool.give_back(Account::Shared, line, 1);
        }
        pool
    }

    #[test]
    fn lines_taken_together_are_a_list_in_one_piece_where_there_is_one() {
        let lines: Vec<PoolLine> = (0..70).map(|i| [i; LINE_BYTES]).collect();
        // Free lines, and the first line of 70 that lie one after the other among them.
        let cases: [(fn(u32) -> bool, Option<u32>); 6] = [
            (|_| true, Some(0)),
            (|line| line >= 63, Some(63)),
            (|line| (100..170).contains(&line) || line < 69, Some(100)),
            (|line| line >= 230, Some(230)),
            (|line| line % 100 != 99 || line < 64, Some(0)),
            (|line| line % 3 != 0, None),
        ];
        for (number, (is_free, run)) in cases.into_iter().enumerate() {
            let mut pool = pool_with_free(300, is_free);
            let before = (pool.free_lines(), pool.shared_lines());
            let list = pool.take(Account::Shared, &lines).expect("there are 70 free lines");
            let expected: Vec<u32> = match run {
                Some(first) => (first..first + 70).collect(),
                None => (0..300).filter(|line| is_free(*line)).take(70).collect(),
            };
            assert_eq!((list.first, list.last), (expected[0], expected[69]), "case {number}");
            let mut at = list.first;
            for (expected, line) in expected.iter().zip(&lines) {
                assert_eq!((at, pool.line(at)), (*expected, line), "case {number}");
                at = pool.successor(at);
            }
            assert_eq!(pool.run(list.first, 0, 70 * LINE_BYTES).is_some(), run.is_some(), "case {number}");
            assert_eq!((pool.free_lines(), pool.shared_lines()), (before.0 - 70, before.1 - 70));
            let left = vec![[0; LINE_BYTES]; pool.free_lines() as usize + 1];
            assert_eq!(pool.take(Account::Shared, &left), None, "one more than there are");
            pool.give_back(Account::Shared, list.first, 70);
            assert_eq!((pool.free_lines(), pool.shared_lines()), before, "case {number}");
            assert_eq!(pool.take(Account::Shared, &lines), Some(list), "the same lines are free again");
        }
    }

    #[test]
    fn every_line_can_be_had_one_by_one() {
        for lines in [1, 63, 64, 65, 128, 200] {
            let mut pool = BufferPool::new(lines);
            for line in 0..lines {
                assert_eq!(take_one(&mut pool, Account::Shared, 0), Some(line));
            }
            assert_eq!((take_one(&mut pool, Account::Shared, 0), pool.free_lines()), (None, 0));
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
        assert_eq!(pool.set_aside(6), None, "0 to 4 are free, and 6");
        assert_eq!(pool.set_aside(5), Some(0));
        assert_eq!(take_one(&mut pool, Account::Reserved, 1), Some(6));
        pool.put_back(2, 3);
        assert_eq!(take_one(&mut pool, Account::Reserved, 1), Some(2), "the lowest that was put back");
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
