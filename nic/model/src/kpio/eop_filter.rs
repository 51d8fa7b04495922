//! The EOP filter: finds the end of a packet in a line and tells how much of the line is the packet's.
//!
//! A sender of kPIO+WC stuffs the rest of a packet's last line with an 8-byte end-of-packet signature; a packet that
//! fills its last line is followed by a whole line of signatures. So a line either belongs to the packet whole, or its
//! tail is signatures up to the end of the line. Signatures are stripped here and never reach the wire.
//!
//! The filter cannot tell a payload word that equals the signature from a signature. Where one stands in front of
//! other words in its line the damage can be seen, and the packet is dropped; the paper asks only that such a packet
//! is lost. Where one stands directly before the stuffing, or last in a line, nothing shows: the packet ends early.
//! That is the limit of the method, once in 2^64 words for random payload, and `mmio` does not have it.
//!
//! From: [`super::kpio_queue`], a line in arrival order. To: the same, which ends the packet or drops it.
//! Larsen & Lee, NAS'15, §III.A and figure 3.

use beeline_spec::{LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};

/// What a line says about the packet it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All 64 bytes are the packet's, and it goes on in the next line.
    GoesOn,
    /// The packet ends: this many bytes of the line are its own (0 to 56), the rest are signatures.
    Ends(usize),
    /// A signature stands in front of a word that is none: the packet is damaged and goes on in the next line.
    DamagedGoesOn,
    /// A signature stands in front of a word that is none, and the line ends with a signature: the packet is damaged
    /// and ends here.
    DamagedEnds,
}

/// Judges a line. Constant time: eight compares, no data-dependent loop.
#[inline]
pub(crate) fn judge(line: &[u8; LINE_BYTES], eop: u64) -> Outcome {
    let eop = eop.to_le_bytes();
    let mut signatures = 0u8;
    for (i, word) in line.as_chunks::<WORD_BYTES>().0.iter().enumerate() {
        signatures |= u8::from(*word == eop) << i;
    }
    if signatures == 0 {
        return Outcome::GoesOn;
    }
    let tail_words = signatures.leading_ones();
    let is_only_tail = signatures.count_ones() == tail_words;
    match (is_only_tail, tail_words) {
        (true, _) => Outcome::Ends((WORDS_PER_LINE - tail_words as usize) * WORD_BYTES),
        (false, 0) => Outcome::DamagedGoesOn,
        (false, _) => Outcome::DamagedEnds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EOP: u64 = beeline_spec::formats::KPIO_EOP_DEFAULT;

    fn line(words: [u64; 8]) -> [u8; 64] {
        let mut bytes = [0; 64];
        for (chunk, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *chunk = word.to_le_bytes();
        }
        bytes
    }

    #[test]
    fn every_tail_of_signatures_ends_the_packet_where_it_begins() {
        for own_words in 0..8 {
            let mut words = [7; 8];
            words[own_words..].fill(EOP);
            assert_eq!(judge(&line(words), EOP), Outcome::Ends(own_words * 8));
        }
        assert_eq!(judge(&line([7; 8]), EOP), Outcome::GoesOn);
    }

    #[test]
    fn every_pattern_of_signatures_is_judged_as_its_bits_say() {
        for pattern in 0..=255u8 {
            let words = core::array::from_fn(|i| if pattern >> i & 1 == 1 { EOP } else { EOP + 1 });
            let expected = match (pattern.leading_ones(), pattern.count_ones()) {
                (_, 0) => Outcome::GoesOn,
                (tail, ones) if tail == ones => Outcome::Ends((8 - tail as usize) * 8),
                (0, _) => Outcome::DamagedGoesOn,
                _ => Outcome::DamagedEnds,
            };
            assert_eq!(judge(&line(words), EOP), expected, "pattern {pattern:#010b}");
        }
    }

    #[test]
    fn a_signature_across_two_words_is_none() {
        let mut bytes = [0; 64];
        bytes[4..12].copy_from_slice(&EOP.to_le_bytes());
        assert_eq!(judge(&bytes, EOP), Outcome::GoesOn);
    }
}
