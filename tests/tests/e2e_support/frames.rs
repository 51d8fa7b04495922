//! Frames whose every byte follows from who sent them, in which life, and as which.

/// Ethernet type for experiments.
const KIND: [u8; 2] = [0x88, 0xb5];
/// Bytes before the pattern: two addresses, type, life, number.
const HEAD: usize = 14 + 8 + 8;

/// Identity of a test frame, in its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Life of the sender.
    pub life: u64,
    /// Number of the frame in that life.
    pub number: u64,
}

fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// Bytes of the frame with this label, when frames are to be a multiple of `multiple`.
pub fn bytes_of(label: Label, multiple: usize) -> usize {
    let random = mix(label.life ^ label.number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // Mostly short ones, some up to the longest.
    let bytes = match random % 16 {
        0 => 30 + (random >> 8) % 8970,
        1..4 => 30 + (random >> 8) % 1484,
        _ => 30 + (random >> 8) % 200,
    };
    (bytes as usize).next_multiple_of(multiple)
}

fn fill(frame: &mut [u8], label: Label) {
    let mut word = mix(label.life.rotate_left(32) ^ label.number);
    for chunk in frame[HEAD..].chunks_mut(8) {
        word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(label.number | 1);
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
}

/// Writes the frame with this label, from station `from` to station `to`, into `frame`.
pub fn write(frame: &mut Vec<u8>, from: u8, to: u8, label: Label, multiple: usize) {
    frame.clear();
    frame.resize(bytes_of(label, multiple), 0);
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, to]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, from]);
    frame[12..14].copy_from_slice(&KIND);
    frame[14..22].copy_from_slice(&label.life.to_le_bytes());
    frame[22..30].copy_from_slice(&label.number.to_le_bytes());
    fill(frame, label);
}

/// The label of a frame, every byte of which is as [`write`] made it.
///
/// # Panics
/// If a byte is wrong.
pub fn check(frame: &[u8], expected: &mut Vec<u8>, multiple: usize) -> Label {
    assert!(frame.len() >= HEAD, "a frame of {} bytes that nobody sent", frame.len());
    assert_eq!(frame[12..14], KIND, "a frame of a kind that nobody sent");
    let word = |at: usize| u64::from_le_bytes(frame[at..at + 8].try_into().unwrap());
    let label = Label { life: word(14), number: word(22) };
    write(expected, frame[11], frame[5], label, multiple);
    assert_eq!(frame.len(), expected.len(), "length of {label:?}");
    if let Some(at) = frame.iter().zip(expected.iter()).position(|(found, expected)| found != expected) {
        panic!(
            "byte {at} of {label:?} ({} bytes) is {:#04x}, not {:#04x}",
            frame.len(),
            frame[at],
            expected[at]
        );
    }
    label
}
