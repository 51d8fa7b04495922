//! `select` and `pselect` by a poll of the same descriptors, where a window may have bytes for one of them.

use std::os::fd::RawFd;
use std::time::Duration;

use beeline_socket_rules::Spin;
use rustix::io::Errno;
use smallvec::SmallVec;

use super::call::Call;
use super::entry::PollEntry;
use super::kernel::SelectKernel;
use super::poll::{Listed, poll};
use super::watched::{Connections, Watched};

/// What each of the three sets asks a poll for, and what it takes for an answer, as the kernel's own select has it. No two ask for the same.
const ASKED: [i16; 3] = [0x00c1, 0x0304, 0x0002];
const ANSWERS: [i16; 3] = [0x00d9, 0x030c, 0x0002];
/// `POLLNVAL`.
const INVALID: i16 = 0x20;

/// The three sets of a select: readable, writable, exceptional. Each is as long as the number of descriptors needs, whatever `FD_SETSIZE` is.
#[derive(Debug)]
pub struct Selection<'a> {
    pub sets: [Option<&'a mut [usize]>; 3],
    /// One more than the last number.
    pub numbers: usize,
}

impl Selection<'_> {
    /// The numbers that stand in any of the sets, upwards.
    pub fn numbers(&self) -> impl Iterator<Item = RawFd> {
        self.entries().into_iter().map(|entry| entry.number)
    }

    fn entries(&self) -> SmallVec<[PollEntry; 32]> {
        const BITS: usize = usize::BITS as usize;
        let mut entries = SmallVec::new();
        for at in 0..self.numbers.div_ceil(BITS) {
            let word =
                |set: usize| self.sets[set].as_ref().and_then(|words| words.get(at)).copied().unwrap_or(0);
            let words: [usize; 3] = std::array::from_fn(word);
            let mut any = words[0] | words[1] | words[2];
            if self.numbers - at * BITS < BITS {
                any &= (1 << (self.numbers - at * BITS)) - 1;
            }
            while any != 0 {
                let bit = any.trailing_zeros() as usize;
                any &= any - 1;
                let asked =
                    (0..3).filter(|set| words[*set] >> bit & 1 == 1).fold(0, |all, set| all | ASKED[set]);
                entries.push(PollEntry { number: (at * BITS + bit) as RawFd, asked, told: 0 });
            }
        }
        entries
    }

    /// Writes what was told into the sets, and returns how many bits that is.
    fn answer(&mut self, entries: &[PollEntry]) -> usize {
        const BITS: usize = usize::BITS as usize;
        self.sets.iter_mut().flatten().for_each(|words| words.fill(0));
        let mut count = 0;
        for entry in entries.iter().filter(|entry| entry.told != 0) {
            // One that is no more asked for was told of nothing.
            let Ok(number) = usize::try_from(entry.number) else { continue };
            for (set, words) in self.sets.iter_mut().enumerate() {
                let is_told = entry.asked & ASKED[set] != 0 && entry.told & ANSWERS[set] != 0;
                let word = words.as_mut().and_then(|words| words.get_mut(number / BITS));
                if let Some(word) = word.filter(|_| is_told) {
                    *word |= 1 << (number % BITS);
                    count += 1;
                }
            }
        }
        count
    }
}

/// Selects as `pselect` does; `None` is no limit. The sets are as they were when it fails.
///
/// # Errors
/// What the kernel says; `BADF` for a number that is closed.
pub fn select<C: Connections>(
    connections: &C,
    selection: &mut Selection<'_>,
    kernel: &mut impl SelectKernel,
    limit: Option<Duration>,
    spin: Spin,
    sleeper: impl Fn() -> Option<<C::Watched as Watched>::Sleeper>,
) -> Result<usize, Errno> {
    if !connections.are_any() {
        return kernel.select();
    }
    let mut entries = selection.entries();
    let listed = Listed::new(connections, &entries);
    if !listed.has_asked(&entries) {
        return kernel.select();
    }
    let start = kernel.now();
    let mut told = listed.poll(&mut entries, kernel, Call::beginning(start, limit), spin, &sleeper)?;
    drop(listed);
    loop {
        if entries.iter().any(|entry| entry.told & INVALID != 0) {
            return Err(Errno::BADF);
        }
        let is_answer = |entry: &PollEntry| {
            (0..3).any(|set| entry.asked & ASKED[set] != 0 && entry.told & ANSWERS[set] != 0)
        };
        if told == 0 || entries.iter().any(is_answer) {
            return Ok(selection.answer(&entries));
        }
        // An end or an error that a poll tells unasked, and a select does not: it is no more asked.
        for entry in entries.iter_mut().filter(|entry| entry.told != 0) {
            (entry.number, entry.told) = (-1 - entry.number, 0);
        }
        let left = limit.map(|limit| limit.saturating_sub(kernel.now().saturating_sub(start)));
        told = poll(connections, &mut entries, kernel, left, spin, &sleeper)?;
    }
}
