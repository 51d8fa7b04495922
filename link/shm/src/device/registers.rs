//! Register accesses that a host posts in a small blank window, and the answers to its reads.

use beeline_contract_memory::LoadPort;
use beeline_mmio::{LoadWindow, Word};
use beeline_spec::formats::{register_half as half, register_request as request};

use super::host_side::Access;
use crate::error::PortError;
use crate::layout::{ANSWERS, AnswerWords, REGISTER_LINES, stamp};

/// Operation codes of `register_request`.
const WRITE: u64 = 1;
const READ: u64 = 2;

/// One register access.
/// The words of a line that carries `access`.
pub(crate) fn encode(access: Access) -> [u64; 8] {
    let (offset_bytes, operation, tag, value) = match access {
        Access::Write { offset_bytes, value } => (offset_bytes, WRITE, 0, value),
        Access::Read { offset_bytes, tag } => (offset_bytes, READ, tag, 0),
    };
    let head = u64::from(offset_bytes) << request::OFFSET_LSB
        | operation << request::OPERATION_LSB
        | u64::from(tag) << request::TAG_LSB;
    [head, value & half::VALUE_MASK, value >> 32, 0, 0, 0, 0, 0]
}

fn decode(access: u64, words: &[u64; 8]) -> Result<Access, PortError> {
    let [head, low, high, ..] = *words;
    for word in [low, high] {
        if word >> half::RESERVED_LSB != 0 {
            return Err(PortError::BadValue { access, word });
        }
    }
    let offset_bytes = (head >> request::OFFSET_LSB & request::OFFSET_MASK) as u32;
    let tag = (head >> request::TAG_LSB & request::TAG_MASK) as u16;
    let reserved = head >> (request::TAG_LSB + 16);
    match head >> request::OPERATION_LSB & request::OPERATION_MASK {
        WRITE if reserved == 0 => Ok(Access::Write { offset_bytes, value: low | high << 32 }),
        READ if reserved == 0 => Ok(Access::Read { offset_bytes, tag }),
        _ => Err(PortError::BadRequest { access, word: head }),
    }
}

/// The NIC process's end of the register channel.
#[derive(Debug)]
pub(crate) struct RegisterServer {
    channel: LoadWindow,
    blank: u64,
    taken: u64,
    taken_word: Word,
    answers: Box<[AnswerWords]>,
}

impl RegisterServer {
    /// The end of a channel whose lines are all blank.
    pub(crate) fn new(
        channel: LoadWindow,
        blank: u64,
        taken_word: Word,
        answers: Box<[AnswerWords]>,
    ) -> Self {
        RegisterServer { channel, blank, taken: 0, taken_word, answers }
    }

    #[inline(always)]
    fn line(&self) -> u32 {
        (self.taken & u64::from(REGISTER_LINES - 1)) as u32
    }

    /// Whether something is there to be looked at; one load.
    #[inline]
    pub(crate) fn has_request(&mut self) -> bool {
        let line = self.line();
        self.channel.load_word(line, 0) != self.blank
    }

    /// The next access, if all of it has arrived. The same until [`RegisterServer::taken`].
    pub(crate) fn next(&mut self) -> Result<Option<Access>, PortError> {
        let line = self.line();
        let (arrived, words) = self.channel.arrived(line, self.blank);
        if arrived != u8::MAX { Ok(None) } else { decode(self.taken, &words).map(Some) }
    }

    /// The access was delivered: its line is free again.
    pub(crate) fn taken(&mut self) {
        let line = self.line();
        self.channel.blank_line(line, self.blank);
        self.taken += 1;
        // Release: the line is blank before the host stores into it again. Pairs with `free` in host/channel.rs.
        self.taken_word.store_release(self.taken);
    }

    /// Answers a read.
    pub(crate) fn answer(&self, tag: u16, value: u64) {
        let entry = &self.answers[usize::from(tag % ANSWERS)];
        entry.value.store(value);
        // Release: the value is there before the stamp. Pairs with `poll_read` in host/channel.rs.
        entry.stamp.store_release(stamp(tag));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn accesses_come_back_and_no_word_is_ever_a_blank(offset_bytes: u32, value: u64, tag: u16) {
            for access in [Access::Write { offset_bytes, value }, Access::Read { offset_bytes, tag }] {
                let words = encode(access);
                prop_assert!(words.iter().all(|word| !beeline_spec::escape::is_blank_value(*word)));
                prop_assert_eq!(decode(0, &words), Ok(access));
            }
        }

        #[test]
        fn garbage_is_an_error_or_an_access_that_is_written_the_same(words: [u64; 8]) {
            if let Ok(access) = decode(5, &words) {
                prop_assert_eq!(encode(access)[0] & 0xff_ffff_ffff, words[0] & 0xff_ffff_ffff);
            }
        }
    }

    #[test]
    fn set_bits_where_none_belong_are_refused() {
        let good = encode(Access::Write { offset_bytes: 8, value: u64::MAX });
        for (index, bit) in [(0, 63), (0, 56), (0, 34), (1, 32), (2, 63)] {
            let mut bad = good;
            bad[index] ^= 1 << bit;
            assert!(decode(9, &bad).is_err(), "word {index} bit {bit}");
        }
    }
}
