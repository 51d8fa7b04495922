//! `select` and `pselect` by a poll of the same descriptors, where a window may have bytes for one of them.

use std::os::fd::RawFd;
use std::time::Duration;

use beeline_socket_rules::Spin;
use rustix::io::Errno;
use smallvec::SmallVec;

use super::entry::PollEntry;
use super::kernel::SelectKernel;
use super::poll::poll;
use super::watched::{Connections, Found, Watched};

/// What each of the three sets asks a poll for, and what it takes for an answer, as the kernel's own select has it.
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
    fn has(&self, set: usize, number: usize) -> bool {
        let bits = usize::BITS as usize;
        let word = self.sets[set].as_ref().and_then(|words| words.get(number / bits));
        word.is_some_and(|word| word >> (number % bits) & 1 == 1)
    }

    fn put(&mut self, set: usize, number: usize) {
        let bits = usize::BITS as usize;
        if let Some(word) = self.sets[set].as_mut().and_then(|words| words.get_mut(number / bits)) {
            *word |= 1 << (number % bits);
        }
    }

    /// The numbers that stand in any of the sets, upwards.
    pub fn numbers(&self) -> impl Iterator<Item = RawFd> {
        let bits = usize::BITS as usize;
        let words = 0..self.numbers.div_ceil(bits);
        let any =
            move |word| self.sets.iter().flatten().fold(0, |any, words| any | words.get(word).unwrap_or(&0));
        let numbers = words.flat_map(move |word| {
            let any = any(word);
            (0..bits).filter(move |bit| any >> bit & 1 == 1).map(move |bit| word * bits + bit)
        });
        numbers.filter(|number| *number < self.numbers).map(|number| number as RawFd)
    }

    fn entries(&self) -> SmallVec<[PollEntry; 32]> {
        let asked = |number| {
            let asked = (0..3).filter(|set| self.has(*set, number as usize));
            asked.fold(0, |all, set| all | ASKED[set])
        };
        self.numbers().map(|number| PollEntry { number, asked: asked(number), told: 0 }).collect()
    }

    /// Writes what was told into the sets, and returns how many bits that is.
    fn answer(&mut self, entries: &[PollEntry]) -> usize {
        let asked: SmallVec<[[bool; 3]; 32]> = entries
            .iter()
            .map(|entry| std::array::from_fn(|set| self.has(set, entry.number as usize)))
            .collect();
        self.sets.iter_mut().flatten().for_each(|words| words.fill(0));
        let mut count = 0;
        for (entry, asked) in entries.iter().zip(asked) {
            for set in (0..3).filter(|set| asked[*set] && entry.told & ANSWERS[*set] != 0) {
                self.put(set, entry.number as usize);
                count += 1;
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
    let mut passes = SmallVec::<[C::Pass; 16]>::new();
    let mut is_watched = false;
    for entry in &entries {
        is_watched |= entry.asked & ASKED[1] != 0 && connections.is_writable(entry.number);
        if entry.asked & ASKED[0] == 0 {
            continue;
        }
        match connections.find(entry.number) {
            Found::Watched(_) => is_watched = true,
            Found::Kernel(pass) => passes.push(pass),
            Found::Unknown | Found::Listener => {}
        }
    }
    if !is_watched {
        return kernel.select();
    }
    let start = kernel.now();
    loop {
        let left = limit.map(|limit| limit.saturating_sub(kernel.now().saturating_sub(start)));
        let told = poll(connections, &mut entries, kernel, left, spin, &sleeper)?;
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
    }
}
