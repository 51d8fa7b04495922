//! Frames that tell where they belong: every byte depends on the frame's number and its own place.

use beeline_spec::formats::MIN_FRAME_BYTES;

use crate::Random;

/// Frame `number` with `bytes` bytes. Its Ethernet addresses are unicast and the same in every frame, so that a switch
/// or a flow hash treats all frames alike.
pub(super) fn frame(number: usize, bytes: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..bytes).map(|i| (i * 31 + number * 7 + 1) as u8).collect();
    for (byte, fixed) in frame.iter_mut().zip([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]) {
        *byte = fixed;
    }
    let number = (number as u32).to_le_bytes();
    for (byte, digit) in frame.iter_mut().skip(MIN_FRAME_BYTES).zip(number) {
        *byte = digit;
    }
    frame
}

/// `count` frames from number `first` on, mostly short, of up to `longest` bytes.
pub(super) fn random_frames(random: &mut Random, first: usize, count: usize, longest: usize) -> Vec<Vec<u8>> {
    (first..first + count)
        .map(|number| {
            let longest = if random.below(4) == 0 { longest } else { longest.min(200) };
            frame(number, MIN_FRAME_BYTES + random.below(longest - MIN_FRAME_BYTES + 1))
        })
        .collect()
}

/// What arrives for a frame: padded with zeros to the interface's multiple.
pub(super) fn padded(frame: &[u8], multiple_bytes: usize) -> Vec<u8> {
    let mut padded = frame.to_vec();
    padded.resize(frame.len().next_multiple_of(multiple_bytes), 0);
    padded
}
