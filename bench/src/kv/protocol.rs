//! A client of any protocol in which the answers to a group of keys have a known length: every value is found by its
//! place, and of what surrounds it only the beginning is looked at. That is as little parsing as there can be.

use super::{Connection, Key, KvClient, VALUE_BYTES, Value};
use crate::BenchError;

/// How a group of keys is asked for, and what its answers look like when every key is there.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// Writes what asks for these keys.
    pub ask: fn(&[Key], &mut Vec<u8>),
    /// Bytes before the first answer, for a group of so many keys.
    pub first: fn(usize) -> usize,
    /// Bytes of an answer before its value.
    pub before: usize,
    /// What an answer begins with; at most `before` bytes.
    pub mark: &'static [u8],
    /// Bytes of an answer after its value.
    pub after: usize,
    /// Bytes after the last answer.
    pub last: usize,
}

impl Protocol {
    /// Hands over the values in `answers`; the first answer that does not look like one is an error.
    #[inline]
    fn values<'a>(
        &self,
        answers: &'a [u8],
        keys: usize,
        values: &mut dyn FnMut(&Value),
    ) -> Result<(), &'a [u8]> {
        let answer_bytes = self.before + VALUE_BYTES + self.after;
        let body = &answers[(self.first)(keys)..answers.len() - self.last];
        for answer in body.chunks_exact(answer_bytes) {
            match answer[self.before..].first_chunk() {
                Some(value) if answer.starts_with(self.mark) => values(value),
                _ => return Err(answer),
            }
        }
        Ok(())
    }
}

/// A client that asks by a [`Protocol`].
#[derive(Debug)]
pub struct Asker {
    connection: Connection,
    protocol: Protocol,
}

impl Asker {
    /// Asks over this connection.
    pub fn new(connection: Connection, protocol: Protocol) -> Self {
        Asker { connection, protocol }
    }
}

impl KvClient for Asker {
    fn ask(&mut self, keys: &[Key]) -> Result<(), BenchError> {
        let write = self.protocol.ask;
        self.connection.send(|out| write(keys, out))
    }

    fn take(&mut self, keys: usize, values: &mut dyn FnMut(&Value)) -> Result<(), BenchError> {
        let protocol = self.protocol;
        let answer_bytes = protocol.before + VALUE_BYTES + protocol.after;
        let bytes = (protocol.first)(keys) + keys * answer_bytes + protocol.last;
        let odd = match protocol.values(self.connection.receive(bytes)?, keys, values) {
            Ok(()) => return Ok(()),
            Err(odd) => String::from_utf8_lossy(odd).into_owned(),
        };
        Err(self.connection.failed(&format!("gave no value: {odd:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTOCOL: Protocol = Protocol {
        ask: |_, _| (),
        first: |keys| keys.to_string().len(),
        before: 3,
        mark: b"V",
        after: 1,
        last: 2,
    };

    fn answers(marks: &str) -> Vec<u8> {
        let mut bytes = marks.len().to_string().into_bytes();
        for mark in marks.bytes() {
            bytes.extend([mark, b'.', b'.']);
            bytes.extend([mark; VALUE_BYTES]);
            bytes.push(b';');
        }
        bytes.extend(b"\r\n");
        bytes
    }

    #[test]
    fn values_are_where_they_should_be() {
        let mut found = Vec::new();
        for count in [1, 9, 10] {
            found.clear();
            let bytes = answers(&"V".repeat(count));
            assert_eq!(PROTOCOL.values(&bytes, count, &mut |value| found.push(*value)), Ok(()));
            assert_eq!(found, vec![[b'V'; VALUE_BYTES]; count]);
        }
    }

    #[test]
    fn what_is_no_answer_is_given_back() {
        let mut count = 0;
        let bytes = answers("VVEV");
        let odd = PROTOCOL.values(&bytes, 4, &mut |_| count += 1);
        assert!(odd.is_err_and(|answer| answer.starts_with(b"E..EEE")));
        assert_eq!(count, 2);
    }
}
