//! The messages that streams carry, and the sum that shows that they came out whole and in order.

use crate::FloorError;

/// Messages of an application, one after the other in its memory.
#[derive(Debug)]
pub struct Source {
    messages: Box<[[u8; 64]; Source::MESSAGES]>,
}

impl Source {
    /// Messages that are sent over and over. 16 KiB: they stay in the sender's first-level cache, as what an application
    /// has just written would.
    pub const MESSAGES: usize = 256;

    /// Messages that differ in every word.
    pub fn new() -> Self {
        let word = |seed: u64| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1;
        let message = |number: usize| {
            let mut bytes = [0; 64];
            for (index, chunk) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                *chunk = word((number * 8 + index + 1) as u64).to_le_bytes();
            }
            bytes
        };
        Source { messages: Box::new(std::array::from_fn(message)) }
    }

    /// Returns the line that is sent as the `number`th.
    #[inline(always)]
    pub fn message(&self, number: u64) -> &[u8; 64] {
        &self.messages[number as usize % Self::MESSAGES]
    }

    /// Returns the bytes of `lines` lines, the first of which is sent as the `number`th; none is the last of the source but
    /// the last one.
    #[inline(always)]
    pub fn run(&self, number: u64, lines: u64) -> &[u8] {
        let first = number as usize % Self::MESSAGES;
        self.messages[first..first + lines as usize].as_flattened()
    }

    /// Compares a sum with that of the first `words` words of the first `messages` messages.
    ///
    /// # Errors
    /// [`FloorError::Corrupt`].
    pub fn check(&self, path: &str, found: Sum, messages: u64, words: usize) -> Result<(), FloorError> {
        let mut expected = Sum::default();
        for number in 0..messages {
            let chunks = self.message(number).as_chunks::<8>().0;
            expected.add(chunks.iter().take(words).fold(0, |all, chunk| all ^ u64::from_le_bytes(*chunk)));
        }
        if found == expected {
            return Ok(());
        }
        Err(FloorError::Corrupt { path: path.to_owned(), found: found.0, expected: expected.0 })
    }
}

impl Default for Source {
    fn default() -> Self {
        Self::new()
    }
}

/// A sum over messages that depends on their order; three operations a message besides reading its words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl From<u64> for Sum {
    /// A sum that a program in another language made in the same way.
    fn from(sum: u64) -> Self {
        Sum(sum)
    }
}

impl Sum {
    /// Adds a message, given the exclusive or of its words.
    #[inline(always)]
    pub fn add(&mut self, words: u64) {
        self.0 = self.0.rotate_left(5).wrapping_add(words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(source: &Source, order: impl IntoIterator<Item = u64>) -> Sum {
        let mut sum = Sum::default();
        for number in order {
            let chunks = source.message(number).as_chunks::<8>().0;
            sum.add(chunks.iter().take(7).fold(0, |all, chunk| all ^ u64::from_le_bytes(*chunk)));
        }
        sum
    }

    #[test]
    fn a_lost_or_swapped_message_changes_the_sum() {
        let source = Source::new();
        assert!(source.check("path", sum(&source, 0..1000), 1000, 7).is_ok());
        assert!(source.check("path", sum(&source, 0..999), 1000, 7).is_err());
        assert!(source.check("path", sum(&source, (0..998).chain([999, 998])), 1000, 7).is_err());
    }
}
