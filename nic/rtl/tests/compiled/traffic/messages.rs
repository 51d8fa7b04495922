//! What messages are made of: payloads of every kind, and lines cut into pieces.

use beeline_spec::formats::MIN_FRAME_BYTES;
use beeline_spec::{Header, Kind, LINE_BYTES};

use super::random::Random;

/// A message that is not laid out: its kind, payload, and the frames that come of it.
pub type Payload = (Kind, Vec<u8>, Vec<Vec<u8>>);

/// Any kind, of at most `longest` bytes, and frames of at most `max_frame`.
pub fn payload(random: &mut Random, longest: u64, max_frame: u64) -> Payload {
    let length = match random.below(8) {
        0 => random.below(MIN_FRAME_BYTES as u64 + 3),
        1..5 => MIN_FRAME_BYTES as u64 + random.below(50),
        5 | 6 => random.below(longest.min(400)),
        _ => random.below(longest),
    };
    match random.below(12) {
        0 => (Kind::Void, vec![0xee; length as usize], Vec::new()),
        1 | 2 => batch(random, length, max_frame),
        _ => {
            let payload = random.bytes(length.min(max_frame));
            let frames = if payload.len() < MIN_FRAME_BYTES { Vec::new() } else { vec![payload.clone()] };
            (Kind::Data, payload, frames)
        }
    }
}

/// A batch of about `length` bytes.
fn batch(random: &mut Random, length: u64, max_frame: u64) -> Payload {
    let (mut payload, mut frames) = (Vec::new(), Vec::new());
    loop {
        let count = match random.below(5) {
            0 => random.below(MIN_FRAME_BYTES as u64),
            1 => random.below(300).min(max_frame),
            _ => MIN_FRAME_BYTES as u64 + random.below(60),
        };
        let record = random.bytes(count.min(max_frame));
        if payload.len() + record.len() + 10 > length as usize && !payload.is_empty() {
            return (Kind::Batch, payload, frames);
        }
        payload.extend_from_slice(&(record.len() as u16).to_le_bytes());
        payload.extend_from_slice(&record);
        payload.resize(payload.len().next_multiple_of(8), 0);
        if record.len() >= MIN_FRAME_BYTES {
            frames.push(record);
        }
        if payload.len() >= length as usize {
            return (Kind::Batch, payload, frames);
        }
    }
}

/// Header and payload in whole lines.
pub fn lay_out(kind: Kind, payload: &[u8], epoch: u8) -> Vec<[u8; LINE_BYTES]> {
    let mut raw = Header::new(kind, payload.len() as u32, epoch).encode().to_le_bytes().to_vec();
    raw.extend_from_slice(payload);
    raw.resize(raw.len().next_multiple_of(LINE_BYTES), 0);
    raw.as_chunks::<LINE_BYTES>().0.to_vec()
}

/// A line that no reader takes for a good message: of another epoch, longer than a window, or a batch whose second record
/// claims more than there is.
pub fn malformed(random: &mut Random, epoch: u8, window_lines: u64) -> [u8; LINE_BYTES] {
    let mut line = [0x33; LINE_BYTES];
    let word = match random.below(3) {
        0 => Header::new(Kind::Data, 40, epoch).encode() ^ 1 << (58 + random.below(5)),
        1 => Header::new(Kind::Data, (window_lines * 64) as u32, epoch).encode(),
        _ => {
            line[8..10].copy_from_slice(&14u16.to_le_bytes());
            line[24..26].copy_from_slice(&60u16.to_le_bytes());
            Header::new(Kind::Batch, 56, epoch).encode()
        }
    };
    line[..8].copy_from_slice(&word.to_le_bytes());
    line
}

/// Cuts a line into at most `most` pieces: runs of bytes, or bytes picked one by one.
pub fn cut(random: &mut Random, most: u64) -> Vec<u64> {
    let pieces = if random.once_in(2) { 1 } else { 1 + random.below(most) };
    let mut left = u64::MAX;
    let mut cuts = Vec::new();
    for _ in 1..pieces {
        let mask = if random.once_in(3) { random.word() } else { u64::MAX << (random.below(63) + 1) };
        let piece = left & mask;
        if piece != 0 && piece != left {
            cuts.push(piece);
            left &= !piece;
        }
    }
    cuts.push(left);
    for i in (1..cuts.len()).rev() {
        cuts.swap(i, random.below(i as u64 + 1) as usize);
    }
    cuts
}
