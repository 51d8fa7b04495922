//! Copies: every size and alignment, neighbours left alone, each byte accessed once, words never in parts.

use std::cell::RefCell;

use proptest::prelude::*;

use super::*;
use crate::Region;

/// Miri is thousands of times slower: there, strides that meet every case of the code.
fn stride(native: usize, miri: usize) -> usize {
    if cfg!(miri) { miri } else { native }
}

/// Bytes of which none equals a neighbour or [`CANARY`].
fn source(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i % 251) as u8).collect()
}

/// What stands around copies.
const CANARY: u8 = 0xfe;
/// How much of it, on each side: more than the widest access.
const MARGIN: usize = if cfg!(miri) { 64 } else { 192 };

/// Copies `count` bytes in and back out, at an offset of the region and of our own bytes, and looks at everything around.
fn check_copy(region: &Region, offset: usize, skip: usize, count: usize) {
    let bytes = source(skip + count);
    let whole = region.bytes();
    region.fill(0, whole, u64::from_le_bytes([CANARY; 8]));
    region.copy_in(offset, &bytes[skip..]);
    let mut expected = vec![CANARY; whole];
    expected[offset..offset + count].copy_from_slice(&bytes[skip..]);
    let (words, _) = expected.as_chunks::<8>();
    let is_as_expected =
        |(i, word): (usize, &[u8; 8])| region.word(i * 8).load() == u64::from_le_bytes(*word);
    assert!(words.iter().enumerate().all(is_as_expected), "{count} bytes from +{skip} in to {offset}");
    let mut out = vec![CANARY; MARGIN + skip + count + MARGIN];
    region.copy_out(offset, &mut out[MARGIN + skip..][..count]);
    let mut expected = vec![CANARY; out.len()];
    expected[MARGIN + skip..][..count].copy_from_slice(&bytes[skip..]);
    assert!(out == expected, "{count} bytes out of {offset} to +{skip}");
}

#[test]
fn copies_around_every_threshold_take_each_alignment_and_leave_neighbours_alone() {
    let region = Region::private(MARGIN + LINE_BYTES + 5 * LINE_BYTES + 8 + MARGIN);
    let thresholds = [16, 32, 64, 128, LINES_FROM, LINES_FROM + LINE_BYTES, 5 * LINE_BYTES];
    let around = thresholds.into_iter().flat_map(|size| size - 3..=size + 3);
    let counts: Vec<usize> = (0..13).chain(around).collect();
    for offset in (MARGIN..MARGIN + LINE_BYTES).step_by(stride(1, 37)) {
        for skip in [0, 1, 8, 31].into_iter().step_by(stride(1, 3)) {
            for count in counts.iter().step_by(stride(1, 15)) {
                check_copy(&region, offset, skip, *count);
            }
        }
    }
}

#[test]
fn short_copy_moves_what_is_short_and_nothing_else() {
    let region = Region::private(1024);
    let start = region.span(0, 1024, 8).start();
    let bytes: Vec<u8> = (0..300).map(|number| number as u8 | 1).collect();
    for count in (0..300).step_by(stride(1, 21)) {
        for offset in [64, 80, 72, 68, 66, 1, 15] {
            region.fill(0, 1024, 0);
            // SAFETY: `count` bytes inside the region, which this test alone uses, and as many of `bytes`.
            let is_copied = unsafe { copy_in_if_short(start.wrapping_add(offset), bytes.as_ptr(), count) };
            assert_eq!(is_copied, count < LINES_FROM, "{count} bytes at {offset}");
            let mut found = vec![0; 1024];
            region.copy_out(0, &mut found);
            let mut expected = vec![0; 1024];
            if is_copied {
                expected[offset..][..count].copy_from_slice(&bytes[..count]);
            }
            assert!(found == expected, "{count} bytes at {offset}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 300 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn copies_of_any_size_are_exact(
        offset in MARGIN..MARGIN + if cfg!(miri) { 64 } else { 4096 },
        skip in 0usize..64,
        count in prop_oneof![0usize..300, 0usize..if cfg!(miri) { 300 } else { 70_000 }],
    ) {
        let region = Region::private((offset + count + MARGIN).next_multiple_of(8));
        check_copy(&region, offset, skip, count);
    }
}

/// Stands for an instruction set: notes what is accessed, in one of the directions.
struct Noted<const LINES_ARE_OWN: bool>;

thread_local! {
    /// Address of the mapped side, distance of our own side from it, bytes.
    static ACCESSES: RefCell<Vec<(usize, usize, usize)>> = const { RefCell::new(Vec::new()) };
}

fn note(mapped: *mut u8, own: *mut u8, bytes: usize) {
    let distance = own.addr().wrapping_sub(mapped.addr());
    ACCESSES.with_borrow_mut(|accesses| accesses.push((mapped.addr(), distance, bytes)));
}

impl<const LINES_ARE_OWN: bool> Pieces for Noted<LINES_ARE_OWN> {
    const LINES_ARE_OWN: bool = LINES_ARE_OWN;

    unsafe fn one(mapped: *mut u8, own: *mut u8) {
        note(mapped, own, 1);
    }

    unsafe fn two(mapped: *mut u8, own: *mut u8) {
        note(mapped, own, 2);
    }

    unsafe fn four(mapped: *mut u8, own: *mut u8) {
        note(mapped, own, 4);
    }

    unsafe fn eight(mapped: *mut u8, own: *mut u8) {
        note(mapped, own, 8);
    }

    unsafe fn sixteen(mapped: *mut u8, own: *mut u8) {
        note(mapped, own, 16);
    }

    unsafe fn lines(mapped: *mut u8, own: *mut u8, lines: usize) {
        for line in 0..lines {
            note(mapped.wrapping_add(line * LINE_BYTES), own.wrapping_add(line * LINE_BYTES), LINE_BYTES);
        }
    }
}

/// Checks the accesses of one copy, and returns whether the lines of it began at a line of the side that was stored to.
fn check_accesses<const LINES_ARE_OWN: bool>(start: usize, own: usize, length: usize) -> bool {
    ACCESSES.with_borrow_mut(Vec::clear);
    let (mapped, own_side) = (std::ptr::without_provenance_mut(start), std::ptr::without_provenance_mut(own));
    // SAFETY: `Noted` accesses nothing.
    unsafe { copy::<Noted<LINES_ARE_OWN>>(mapped, own_side, length) };
    let (mut next, mut at_lines) = (start, true);
    ACCESSES.with_borrow(|accesses| {
        for &(place, distance, bytes) in accesses {
            assert_eq!((place, distance), (next, own - start), "{length} bytes from {start}");
            // Lines are no single access everywhere, but no register of theirs is smaller than 16 bytes.
            assert!(place.is_multiple_of(bytes.min(16)), "{bytes} bytes at {place}, {length} from {start}");
            let stored = if LINES_ARE_OWN { place + distance } else { place };
            at_lines &= bytes < LINE_BYTES || stored.is_multiple_of(LINE_BYTES);
            next += bytes;
        }
    });
    assert_eq!(next, start + length, "{length} bytes from {start}");
    at_lines
}

/// So that a device sees no store twice, and no aligned word is stored or loaded in parts.
#[test]
fn each_byte_is_accessed_once_in_pieces_aligned_to_their_size() {
    for start in (4096..4096 + LINE_BYTES).step_by(stride(1, 41)) {
        for length in (0..700).step_by(stride(1, 171)) {
            for own in [9 << 10, (9 << 10) + 3, (9 << 10) + 16] {
                assert!(check_accesses::<false>(start, own, length), "stores into mapped memory");
                let congruent = start % 16 == own % 16;
                assert!(check_accesses::<true>(start, own, length) || !congruent, "stores into our own");
            }
        }
    }
}

/// A word that one thread copies in, all its bytes alike, is found whole by a thread that copies out.
#[test]
fn words_are_never_seen_in_parts() {
    const MANY: usize = if cfg!(miri) { 8 + 192 + 8 } else { 8 + 1024 + 8 };
    let region = Region::private(2048);
    for (bytes, offset, shift, rounds) in [
        // Neither at a line nor at a piece, and our own sides at no word either.
        (MANY, 40, 3, stride(20_000, 2)),
        // Our own side is at a line where the mapped side is not, so that loads cross lines of the mapped side.
        (MANY, 48, 0, stride(20_000, 2)),
        // A word, and the two of a piece: many more copies in the same time.
        (8, 40, 3, stride(1_000_000, 8)),
        (16, 48, 3, stride(1_000_000, 8)),
    ] {
        look_for_parts(&region, bytes, rounds, (offset, shift));
    }
}

fn look_for_parts(region: &Region, bytes: usize, rounds: usize, (offset, shift): (usize, usize)) {
    #[repr(align(64))]
    struct Own([u8; 2048]);
    // What stood there before is no word of this test.
    region.fill(0, region.bytes(), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let own = [Own([0; 2048]), Own([0xff; 2048])];
            for round in 0..rounds {
                region.copy_in(offset, &own[round % 2].0[shift..][..bytes]);
            }
        });
        let mut own = Own([0; 2048]);
        for _ in 0..rounds {
            let out = &mut own.0[shift..][..bytes];
            region.copy_out(offset, out);
            let (words, _) = out.as_chunks::<8>();
            for word in words {
                assert!(matches!(u64::from_ne_bytes(*word), 0 | u64::MAX), "a word in parts: {word:x?}");
            }
        }
    });
}
