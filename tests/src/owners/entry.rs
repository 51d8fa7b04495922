//! Entries that are pushed or written into a window, good and bad.

use crate::Random;
use beeline_spec::entry::{EntryHeader, EntryKind, position_of};
use beeline_spec::formats::ENTRY_HEAD_BYTES;

/// An entry of whole lines with the frame behind its head, or with the address of one.
pub fn entry(frame: &[u8], address: Option<u64>, epoch: u8, position: u64, least_lines: usize) -> Vec<u8> {
    let kind = if address.is_some() { EntryKind::Address } else { EntryKind::Whole };
    let header = EntryHeader {
        length_bytes: frame.len() as u16,
        kind,
        wants_irq: false,
        epoch,
        position: position_of(position),
    };
    let mut entry = header.encode().to_le_bytes().to_vec();
    entry.extend_from_slice(&address.unwrap_or(0).to_le_bytes());
    if address.is_none() {
        entry.extend_from_slice(frame);
    }
    entry.resize(entry.len().next_multiple_of(64).max(64 * least_lines), 0);
    entry
}

/// Longest frame in an entry of so many lines.
pub fn room(lines: usize) -> usize {
    64 * lines - ENTRY_HEAD_BYTES
}

/// An entry that is right but for what chance makes wrong.
pub fn bad_entry(random: &mut Random, epoch: u8, position: u64, memory: u64, least_lines: usize) -> Vec<u8> {
    let frame = vec![0xee; [14, 60, 100, 3][random.below(4)]];
    let address = (random.below(3) == 0).then(|| [memory, random.word(), 1][random.below(3)]);
    let epoch = if random.below(4) == 0 { random.word() as u8 } else { epoch };
    let position = if random.below(4) == 0 { random.word() } else { position };
    let mut entry = entry(&frame, address, epoch, position, least_lines);
    if random.below(4) == 0 {
        let word = random.word().to_le_bytes();
        entry[..8].copy_from_slice(&word);
    }
    entry
}
