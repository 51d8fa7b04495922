//! This target reads the board of a process. That process, of the same user, has written every byte of its file, and other bytes between the two looks.
//! No more connections are seen than the bytes have rows.
#![no_main]

use arbitrary::Arbitrary;
use beeline_socket_rules::fuzzing::board;
use libfuzzer_sys::fuzz_target;

const HEADER_BYTES: usize = 4096;
const ROW_BYTES: usize = 256;

#[derive(Arbitrary, Debug)]
struct Input {
    /// Words of the header, behind the format.
    header: Vec<u64>,
    program: Vec<u8>,
    is_board: bool,
    before: Vec<u8>,
    /// What is other in the second look.
    changes: Vec<(u16, u8)>,
}

fuzz_target!(|input: Input| {
    let mut header = vec![0; HEADER_BYTES];
    if input.is_board {
        header[..8].copy_from_slice(b"BLSOCK01");
    }
    for (place, word) in header[8..].chunks_exact_mut(8).zip(&input.header) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let program = input.program.len().min(HEADER_BYTES / 2);
    header[HEADER_BYTES / 2..][..program].copy_from_slice(&input.program[..program]);
    let mut after = input.before.clone();
    for (at, byte) in input.changes {
        if let Some(place) = after.get_mut(usize::from(at)) {
            *place = byte;
        }
    }
    let seen = board(&header, &input.before, &after);
    assert_eq!(seen.is_some(), input.is_board);
    assert!(seen.unwrap_or(0) <= input.before.len() / ROW_BYTES);
});
