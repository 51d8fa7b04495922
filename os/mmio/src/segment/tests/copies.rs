//! Copies from segment to segment.

use super::*;

const SIZES: [usize; 14] = [0, 1, 7, 15, 16, 17, 63, 64, 191, 192, 193, 4095, 4097, 3 * PAGE_BYTES + 5];

/// A segment whose bytes are told apart by where they are.
fn numbered(bytes: usize) -> MappedSegment {
    let segment = memory(&memfd(bytes, SIZE_SEALS), &options());
    let numbers: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    segment.copy_in(0, &numbers).unwrap();
    segment
}

fn all(segment: &MappedSegment) -> Vec<u8> {
    let mut bytes = vec![0; segment.bytes()];
    segment.copy_out(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn every_byte_of_a_copy_arrives_and_none_beside_it_changes() {
    let from = numbered(5 * PAGE_BYTES);
    let source = all(&from);
    for bytes in SIZES {
        for (to_offset, from_offset) in [(0, 0), (1, 0), (0, 1), (8, 24), (65, 3), (4091, 4093)] {
            let to = memory(&memfd(5 * PAGE_BYTES, SIZE_SEALS), &options());
            to.copy_in(0, &[0xfe; 5 * PAGE_BYTES]).unwrap();
            to.copy_from(to_offset, &from, from_offset, bytes).unwrap();
            let mut wanted = vec![0xfe; 5 * PAGE_BYTES];
            wanted[to_offset..][..bytes].copy_from_slice(&source[from_offset..][..bytes]);
            assert!(all(&to) == wanted, "{bytes} bytes from {from_offset} to {to_offset}");
        }
    }
    assert_eq!(all(&from), source);
}

#[test]
fn copy_outside_either_segment_or_into_one_for_reading_copies_nothing() {
    let (small, large) = (numbered(PAGE_BYTES), numbered(2 * PAGE_BYTES));
    let before = (all(&small), all(&large));
    for (to, to_offset, from, from_offset, bytes) in [
        (&small, 1, &large, 0, PAGE_BYTES),
        (&large, 0, &small, 1, PAGE_BYTES),
        (&large, 0, &small, 0, PAGE_BYTES + 1),
        (&small, usize::MAX, &large, 0, 2),
        (&small, 0, &large, usize::MAX, 2),
        (&small, 0, &large, 0, usize::MAX),
    ] {
        let copied = to.copy_from(to_offset, from, from_offset, bytes);
        assert!(matches!(copied, Err(CopyError::Outside { .. })), "{to_offset}, {from_offset}, {bytes}");
    }
    assert_eq!((all(&small), all(&large)), before);
    let fd = memfd(PAGE_BYTES, SIZE_SEALS);
    let read_only = memory(&fd, &SegmentOptions { access: Access::ReadOnly, ..options() });
    assert_eq!(read_only.copy_from(0, &small, 0, 1), Err(CopyError::ReadOnly));
    large.copy_from(5, &read_only, 0, 8).unwrap();
    assert_eq!(byte(&large, 5), first_of_page(0));
}

/// Bytes that lie before and behind themselves are copied somehow, and nothing around them changes.
#[test]
fn copy_within_a_segment_changes_nothing_around_it() {
    let segment = numbered(2 * PAGE_BYTES);
    let before = all(&segment);
    for (to, from) in [(1000, 1003), (1003, 1000), (1000, 1000)] {
        segment.copy_from(to, &segment, from, 2000).unwrap();
        let after = all(&segment);
        assert_eq!((&after[..to], &after[to + 2000..]), (&before[..to], &before[to + 2000..]));
        segment.copy_in(0, &before).unwrap();
    }
}
