//! What an attacker does to the memory that it shares with others: it stores anything anywhere, copies lines, stores old ones again,
//! and takes pages away.
//!
//! It was passed whole files, so it maps each of them whole, wherever its own library has mapped a part. Root finds them by
//! `/proc/self/map_files`; another user only those whose descriptors are still open.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use beeline_mmio::{MappedSegment, Region, SegmentOptions};
use beeline_tests::Random;
use rustix::fs::{FallocateFlags, fallocate};

use crate::e2e_support::seed;

const LINE_BYTES: usize = 64;
const WORD_BYTES: usize = 8;
const PAGE_BYTES: usize = 4096;

/// One of 16 kinds of values, some of which follow from what is there now.
fn value_after(random: &mut Random, now: u64) -> u64 {
    let word = random.word();
    match random.below(16) {
        0 => 0,
        1 => u64::MAX,
        2 => 1,
        3 => 1 << 63,
        4 => now ^ 1 << (word % 64),
        5 => now.wrapping_add(1),
        6 => now.wrapping_sub(1),
        7 => !now,
        8 => now << 1,
        9 => now.rotate_left(32),
        10 => word,
        11 => word % 4096,
        12 => 0xaaaa_aaaa_5555_5555,
        13 => u64::from(u32::MAX),
        // As a header of a message looks: kind, length and epoch in their places.
        14 => now & 0xff << 56 | 1 << 46 | word & 0x3fff,
        _ => (word & 0xffff) << 32 | 1 << 32,
    }
}

/// A file that this process shares, mapped whole.
struct Shared {
    file: File,
    region: Region,
}

impl Shared {
    fn map(file: File) -> Option<Self> {
        let segment = MappedSegment::memory(file.as_fd(), &SegmentOptions::default()).ok()?;
        let region = segment.region()?;
        Some(Shared { file, region })
    }

    fn line(&self, line: usize) -> [u64; 8] {
        core::array::from_fn(|word| self.region.word(line * LINE_BYTES + word * WORD_BYTES).load())
    }

    fn store(&self, line: usize, words: &[u64]) {
        for (word, value) in words.iter().enumerate() {
            self.region.word(line * LINE_BYTES + word * WORD_BYTES).store(*value);
        }
    }

    /// Makes a page read as zeros, as `MADV_REMOVE` would; whether it was taken.
    fn take_page(&self, page: usize) -> bool {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.file, hole, (page * PAGE_BYTES) as u64, PAGE_BYTES as u64).is_ok()
    }
}

/// A line as it was once, and where.
#[derive(Clone, Copy, Default)]
struct Remembered {
    inode: u64,
    line: usize,
    words: [u64; 8],
}

pub struct Scribbler {
    random: Random,
    shared: BTreeMap<u64, Shared>,
    remembered: [Remembered; 16],
    stores: u64,
    holes: u64,
}

impl Scribbler {
    pub fn new() -> Self {
        let remembered = [Remembered::default(); 16];
        let seed = seed();
        // On standard error: the test takes standard output for itself.
        eprintln!("run again with BEELINE_SEED={seed}");
        Scribbler { random: Random::new(seed), shared: BTreeMap::new(), remembered, stores: 0, holes: 0 }
    }

    /// Looks again at what this process shares with others.
    pub fn look(&mut self) {
        self.shared.clear();
        for folder in ["/proc/self/map_files", "/proc/self/fd"] {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                let is_shared = std::fs::read_link(entry.path())
                    .is_ok_and(|file| file.to_string_lossy().starts_with("/memfd:"));
                let Some(file) = is_shared
                    .then(|| OpenOptions::new().read(true).write(true).open(entry.path()).ok())
                    .flatten()
                else {
                    continue;
                };
                let inode = file.metadata().map_or(0, |file| file.ino());
                if !self.shared.contains_key(&inode)
                    && let Some(shared) = Shared::map(file)
                {
                    self.shared.insert(inode, shared);
                }
            }
        }
    }

    /// Lets go of all that it found.
    pub fn forget(&mut self) {
        self.shared.clear();
    }

    pub fn stores(&self) -> u64 {
        self.stores
    }

    pub fn holes(&self) -> u64 {
        self.holes
    }

    /// Does so many of its deeds, one after the other; whether there is anything to do them to.
    pub fn scribble(&mut self, deeds: u64) -> bool {
        let Scribbler { random, shared, remembered, stores, holes } = self;
        for _ in 0..deeds {
            let which = random.below(shared.len().max(1));
            let Some((&inode, found)) = shared.iter().nth(which) else { return false };
            let lines = found.region.bytes() / LINE_BYTES;
            let any = |random: &mut Random| random.below(lines);
            // The first lines of a window, and the words of a page of credits, are where most is decided.
            let line = if random.below(3) == 0 { random.below(lines.min(4)) } else { any(random) };
            let word = random.below(8);
            let mut words = found.line(line);
            let slot = random.below(16);
            *stores += 1;
            match random.below(64) {
                0 => *holes += u64::from(found.take_page(line * LINE_BYTES / PAGE_BYTES)),
                1 => {
                    let value = value_after(random, words[word]);
                    let start = line * LINE_BYTES / PAGE_BYTES * PAGE_BYTES;
                    let bytes = PAGE_BYTES.min(found.region.bytes() - start);
                    found.region.fill(start, bytes, value);
                }
                2..12 => found.store(line, &[value_after(random, words[word]); 8]),
                // Another line's words, or the first half of them.
                12..20 => {
                    words = found.line(any(random));
                    let count = if random.below(2) == 0 { 8 } else { 4 };
                    found.store(line, &words[..count]);
                }
                20..28 => remembered[slot] = Remembered { inode, line, words },
                28..36 => {
                    let Remembered { inode, line, words } = remembered[slot];
                    if let Some(found) = shared.get(&inode) {
                        found.store(line, &words);
                    }
                }
                _ => {
                    let value = value_after(random, words[word]);
                    found.region.word(line * LINE_BYTES + word * WORD_BYTES).store(value);
                }
            }
        }
        true
    }
}
