//! Escapes of a blank window: no payload word is lost or changed, whatever it is.
//!
//! A payload word equal to the blank would look as if it had not arrived. The sender stores a *link word* in its
//! place, which names the previous such word of the message; the header names the last. Link words have bit 63 clear
//! and every blank has it set, so a link is never a blank. The receiver walks the chain backwards and puts the blank
//! back. (kPIO+WC §III.A accepts losing a packet in 2^64 here.)

use crate::formats::{blank as b, link as f};

/// Whether a word can serve as a blank.
#[inline]
pub const fn is_blank_value(word: u64) -> bool {
    (word >> b::TAG_LSB) & b::TAG_MASK == 1
}

/// Makes a blank of 64 random bits.
#[inline]
pub const fn blank_from_random(random: u64) -> u64 {
    random | b::TAG_MASK << b::TAG_LSB
}

/// The link word that names word `previous` of the message (0: none before).
#[inline]
pub const fn link(previous: u32) -> u64 {
    debug_assert!(previous as u64 <= f::PREVIOUS_MASK);
    (previous as u64) << f::PREVIOUS_LSB
}

/// A chain that does not lead back to the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EscapeError {
    /// Index in the message of the word that is not a link to an earlier word.
    pub index: u32,
    pub word: u64,
}

impl core::fmt::Display for EscapeError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            out,
            "word {} of the message is {:#018x}, not a link to an earlier word",
            self.index, self.word
        )
    }
}

impl core::error::Error for EscapeError {}

/// The previous escaped word that the link at `index` names; 0 at the start of the chain. The result is below
/// `index`, so a walk ends whatever a peer wrote.
#[inline]
pub const fn previous(index: u32, word: u64) -> Result<u32, EscapeError> {
    let previous = (word >> f::PREVIOUS_LSB) & f::PREVIOUS_MASK;
    if word >> f::RESERVED_LSB != 0 || previous >= index as u64 {
        return Err(EscapeError { index, word });
    }
    Ok(previous as u32)
}

/// Walks the chain from `escape_last` down, calling `restore(index)` for each escaped word after `load(index)` has
/// given the link that stands there. At most as many steps as the message has words.
#[inline]
pub fn walk<L, R>(escape_last: u32, mut load: L, mut restore: R) -> Result<u32, EscapeError>
where
    L: FnMut(u32) -> u64,
    R: FnMut(u32),
{
    let mut index = escape_last;
    let mut count = 0;
    while index != 0 {
        let before = previous(index, load(index))?;
        restore(index);
        index = before;
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_never_a_blank() {
        assert!(!is_blank_value(link(f::PREVIOUS_MASK as u32)));
        assert!(is_blank_value(blank_from_random(0)));
    }

    #[test]
    fn a_chain_is_walked_to_its_start() {
        let words = [0, 9, link(0), 9, link(2), link(4)];
        let mut seen = [0u32; 3];
        let mut n = 0;
        let count = walk(
            5,
            |i| words[i as usize],
            |i| {
                seen[n] = i;
                n += 1;
            },
        );
        assert_eq!((count, seen), (Ok(3), [5, 4, 2]));
    }

    #[test]
    fn a_hostile_chain_ends_with_an_error() {
        for word in [link(3), link(4), 1 << 22, u64::MAX] {
            assert_eq!(walk(3, |_| word, |_| {}), Err(EscapeError { index: 3, word }));
        }
    }
}
