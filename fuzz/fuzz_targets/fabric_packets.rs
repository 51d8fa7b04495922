//! This target takes packets of members of a fabric, and questions and answers of who looks at one. Another process of the owner's user has sent
//! them. What is taken has the length of its kind; segments of an answer are in order and beyond what was asked for.
#![no_main]

use arbitrary::Arbitrary;
use beeline_fabric_process::fuzzing::{packet, report};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    /// Which packet it begins as; any bytes beyond.
    begins: u8,
    length: u8,
    after: u8,
    bytes: Vec<u8>,
    /// Segments of an answer.
    segments: Vec<[u8; 32]>,
}

fuzz_target!(|input: Input| {
    let begins: &[u8] = match input.begins % 4 {
        0 => b"BEEF\x02\0",
        1 => b"BEEQ\x01\0",
        2 => b"BEEA\x01\0",
        _ => b"",
    };
    let mut bytes = [begins, &input.bytes].concat();
    match input.begins % 4 {
        2 => {
            bytes.resize(24 + 128, 0);
            input.segments.iter().take(1100).for_each(|segment| bytes.extend_from_slice(segment));
        }
        _ if input.begins < 128 => bytes.resize([16, 24, 8, 32][usize::from(input.length) % 4], 0),
        _ => {}
    }
    packet(&bytes);
    report(&bytes, input.after.into());
});
