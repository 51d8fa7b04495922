//! Frames that can be recognised: where they go, which one they are, and every byte of them.

use crate::NicError;

/// EtherType for local experiments (IEEE 802, table of EtherTypes).
const ETHERTYPE: u16 = 0x88b5;
/// Bytes of an Ethernet header.
pub const HEADER_BYTES: usize = 14;

/// Frames of one size with a sequence number. The bytes after the header are a function of the number, so that a frame
/// delivered twice, late or altered is seen.
#[derive(Clone, Debug)]
pub struct Frames {
    template: Vec<u8>,
}

impl Frames {
    /// Frames of `bytes` bytes (at least [`HEADER_BYTES`]) from `source` to `destination`.
    pub fn new(bytes: usize, destination: [u8; 6], source: [u8; 6]) -> Self {
        let mut template = Vec::with_capacity(bytes.max(HEADER_BYTES));
        template.extend_from_slice(&destination);
        template.extend_from_slice(&source);
        template.extend_from_slice(&ETHERTYPE.to_be_bytes());
        template.extend((HEADER_BYTES..bytes).map(|i| (i as u8).wrapping_mul(31) ^ 0x5a));
        Frames { template }
    }

    /// A buffer holding frame 0.
    pub fn buffer(&self) -> Vec<u8> {
        let mut frame = self.template.clone();
        Self::number(&mut frame, 0);
        frame
    }

    /// Makes `frame`, a buffer of the same size, number `sequence`.
    #[inline]
    pub fn number(frame: &mut [u8], sequence: u64) {
        let number = sequence.to_le_bytes();
        let payload = &mut frame[HEADER_BYTES..];
        let count = payload.len().min(number.len());
        payload[..count].copy_from_slice(&number[..count]);
    }

    /// What is wrong with `found`, which should be `expected`; `None` when nothing is.
    pub fn difference(expected: &[u8], found: &[u8]) -> Option<String> {
        if expected == found {
            return None;
        }
        if expected.len() != found.len() {
            return Some(format!("{} bytes instead of {}", found.len(), expected.len()));
        }
        let at = expected.iter().zip(found).position(|(a, b)| a != b)?;
        Some(format!("byte {at} is {:#04x} instead of {:#04x}", found[at], expected[at]))
    }

    /// Whether frame `number` came as it was sent, padding included.
    ///
    /// # Errors
    /// [`NicError::Altered`].
    #[inline]
    pub fn check(expected: &[u8], found: &[u8], number: u64) -> Result<(), NicError> {
        match Self::difference(expected, found) {
            None => Ok(()),
            Some(difference) => Err(NicError::Altered { number, bytes: expected.len(), difference }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_differ_by_their_number_only() {
        let frames = Frames::new(64, [1; 6], [2; 6]);
        let (mut a, mut b) = (frames.buffer(), frames.buffer());
        Frames::number(&mut a, 7);
        assert!(Frames::difference(&a, &b).unwrap().starts_with("byte 14 "));
        Frames::number(&mut b, 7);
        assert_eq!(Frames::difference(&a, &b), None);
        assert_eq!(Frames::difference(&a, &b[..63]).unwrap(), "63 bytes instead of 64");
    }

    #[test]
    fn a_frame_may_be_shorter_than_its_number() {
        let mut frame = Frames::new(16, [1; 6], [2; 6]).buffer();
        Frames::number(&mut frame, 0x0102_0304);
        assert_eq!(&frame[14..], &[4, 3]);
    }
}
