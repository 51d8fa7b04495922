//! What arrives, cut into what the pins take in one cycle: lines of a write, beats of a frame and of an answer.

use std::collections::VecDeque;

use beeline_contract_device::{DmaError, Enables, Write};
use beeline_spec::LINE_BYTES;

/// A line on its way in.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub address: u32,
    pub data: [u64; 8],
    pub enables: u64,
    pub first: bool,
    pub last: bool,
}

/// 64 bytes of a frame or of an answer to a DMA read.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    pub data: [u64; 8],
    /// Bytes that mean something, 1 to 64.
    pub bytes: u8,
    pub last: bool,
    /// The tag of the read that is answered.
    pub tag: u8,
    /// The read failed.
    pub error: bool,
}

/// Cuts bytes into beats, the last one marked.
fn beats_of(data: &[u8], tag: u8) -> impl Iterator<Item = Beat> + '_ {
    let count = data.len().div_ceil(LINE_BYTES);
    data.chunks(LINE_BYTES).enumerate().map(move |(at, chunk)| {
        let mut bytes = [0; LINE_BYTES];
        bytes[..chunk.len()].copy_from_slice(chunk);
        Beat { data: words_of(&bytes), bytes: chunk.len() as u8, last: at + 1 == count, tag, error: false }
    })
}

/// Cuts a frame from the wire.
pub fn frame(data: &[u8]) -> VecDeque<Beat> {
    beats_of(data, 0).collect()
}

/// Appends an answer to a DMA read; one that failed is a beat without data.
pub fn answer(beats: &mut VecDeque<Beat>, data: Result<&[u8], DmaError>, tag: u8) {
    match data {
        Ok(data) => beats.extend(beats_of(data, tag)),
        Err(DmaError::BadAddress) => {
            beats.push_back(Beat { data: [0; 8], bytes: 64, last: true, tag, error: true });
        }
    }
}

fn words_of(bytes: &[u8; LINE_BYTES]) -> [u64; 8] {
    let mut words = [0; 8];
    for (word, chunk) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*chunk);
    }
    words
}

/// The bytes of what came out in one cycle.
pub fn bytes_of(words: &[u64; 8]) -> [u8; LINE_BYTES] {
    let mut bytes = [0; LINE_BYTES];
    for (chunk, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *chunk = word.to_le_bytes();
    }
    bytes
}

/// Cuts a write into the lines that it touches, those without an enabled byte included.
pub fn lines_of(write: &Write<'_>) -> VecDeque<Line> {
    let mut lines = VecDeque::new();
    let (mut at, mut done) = (write.offset_bytes, 0);
    while done < write.data.len() {
        let place = (at % LINE_BYTES as u64) as usize;
        let count = (LINE_BYTES - place).min(write.data.len() - done);
        let mut bytes = [0; LINE_BYTES];
        bytes[place..place + count].copy_from_slice(&write.data[done..done + count]);
        let enables = match write.enables {
            Enables::All => u64::MAX >> (LINE_BYTES - count) << place,
            Enables::Mask(mask) => {
                (mask.checked_shr(done as u32).unwrap_or(0) & u64::MAX >> (LINE_BYTES - count)) << place
            }
        };
        lines.push_back(Line {
            address: (at - place as u64) as u32,
            data: words_of(&bytes),
            enables,
            first: done == 0,
            last: done + count == write.data.len(),
        });
        (at, done) = (at + count as u64, done + count);
    }
    lines
}
