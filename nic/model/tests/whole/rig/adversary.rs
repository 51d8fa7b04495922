//! The adversary: cuts lines into writes as write-combining buffers might, so that a test can deliver them in any order
//! that the receiver declares it bears.

use beeline_contract_device::Enables;

use super::{PlacedLine, Random};

/// How lines are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// One write for each line.
    Whole,
    /// At aligned words: a blank window never sees less.
    Words,
    /// Anywhere, also with byte enables.
    Bytes,
}

/// A write: absolute byte position, bytes, byte enables.
#[derive(Clone, Debug)]
pub struct Chunk {
    pub at: u64,
    pub bytes: Vec<u8>,
    pub enables: Enables,
}

impl Chunk {
    /// Line of its first byte, counted from the queue's enabling.
    pub fn line(&self) -> u64 {
        self.at / 64
    }
}

/// Cuts a line into writes that cover each of its bytes once, in no particular order.
pub fn cut(line: &PlacedLine, how: Cut, random: &mut Random) -> Vec<Chunk> {
    let at = line.position * 64;
    let whole = Chunk { at, bytes: line.bytes.to_vec(), enables: Enables::All };
    let unit = match how {
        Cut::Whole => return vec![whole],
        Cut::Words => 8,
        Cut::Bytes => 1,
    };
    match random.below(4) {
        0 | 1 => vec![whole],
        2 => cut_in_runs(line, unit, random),
        _ => cut_by_enables(line, unit, random),
    }
}

/// Runs of bytes without enables.
fn cut_in_runs(line: &PlacedLine, unit: u64, random: &mut Random) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut start = 0;
    while start < 64 {
        let bytes = (random.within(1, 64 / unit) * unit).min(64 - start);
        let end = start + bytes;
        chunks.push(Chunk {
            at: line.position * 64 + start,
            bytes: line.bytes[start as usize..end as usize].to_vec(),
            enables: Enables::All,
        });
        start = end;
    }
    chunks
}

/// Two to four writes of the whole line, each with its own bytes enabled and rubbish in the others.
fn cut_by_enables(line: &PlacedLine, unit: u64, random: &mut Random) -> Vec<Chunk> {
    let parts = random.within(2, 4);
    let mut masks = vec![0u64; parts as usize];
    for place in (0..64).step_by(unit as usize) {
        let bits = if unit == 1 { 1 } else { 0xff };
        masks[random.below(parts) as usize] |= bits << place;
    }
    let chunk = |mask: u64, random: &mut Random| {
        let keep = |(i, byte): (usize, &u8)| if mask >> i & 1 == 1 { *byte } else { random.word() as u8 };
        let bytes = line.bytes.iter().enumerate().map(keep).collect();
        Chunk { at: line.position * 64, bytes, enables: Enables::Mask(mask) }
    };
    masks.into_iter().filter(|mask| *mask != 0).map(|mask| chunk(mask, random)).collect()
}
