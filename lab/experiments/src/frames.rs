//! The bytes of frames that are sent: each is known again where it leaves.

/// Frames that differ; then they come round.
const DISTINCT: usize = 64;

/// The frames of a run, by their number.
#[derive(Clone, Debug)]
pub struct Frames {
    /// A pattern each, as long as the longest frame.
    patterns: Vec<Vec<u8>>,
    sizes: Vec<usize>,
}

impl Frames {
    /// Frames of these sizes, taken in turn.
    pub fn new(sizes: &[usize]) -> Frames {
        let longest = sizes.iter().copied().max().unwrap_or(0);
        // No byte is zero, so that padding is told from a frame; neighbours differ in every byte.
        let pattern = |number: usize| (0..longest).map(|i| ((i + number * 37) % 251 + 1) as u8).collect();
        Frames { patterns: (0..DISTINCT).map(pattern).collect(), sizes: sizes.to_vec() }
    }

    /// Returns the bytes of the frame that is sent as the `number`th.
    pub fn frame(&self, number: u64) -> &[u8] {
        let size = self.sizes[(number % self.sizes.len() as u64) as usize];
        &self.patterns[(number % DISTINCT as u64) as usize][..size]
    }

    /// Whether these bytes are that frame; some interfaces pad it with zeros.
    pub fn is(&self, number: u64, bytes: &[u8]) -> bool {
        let frame = self.frame(number);
        bytes.strip_prefix(frame).is_some_and(|padding| padding.iter().all(|byte| *byte == 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_no_other_one() {
        let frames = Frames::new(&[60, 61, 60]);
        assert_eq!([0, 1, 2, 3].map(|number| frames.frame(number).len()), [60, 61, 60, 60]);
        for number in 0..DISTINCT as u64 {
            for other in 0..DISTINCT as u64 {
                assert_eq!(frames.is(number, frames.frame(other)), number == other);
            }
        }
        let mut padded = frames.frame(1).to_vec();
        padded.extend([0, 0, 0]);
        assert!(frames.is(1, &padded));
        padded[63] = 1;
        assert!(!frames.is(1, &padded) && !frames.is(1, &padded[..60]));
    }
}
