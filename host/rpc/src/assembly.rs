//! A request or response that comes in parts, put together.
//!
//! Nothing of it is trusted: what the first part announces is bounded before memory is taken for it, and each part must
//! fit what was announced.

use beeline_spec::WORD_BYTES;
use beeline_spec::rpc::Part;

use crate::payload::Payload;

/// Reasons for which parts do not make a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AssemblyError {
    #[error("{announced} bytes are announced; {max} are allowed")]
    TooLong { announced: u64, max: usize },
    #[error("parts of {have} bytes where {announced} were announced")]
    Length { have: usize, announced: usize },
    #[error("a part of call {found:#x} inside call {expected:#x}")]
    Mixed { found: u32, expected: u32 },
    #[error("a part of call {found:#x} without a first one")]
    NoFirst { found: u32 },
    #[error("a first part that ends inside its header")]
    Short,
}

/// Bytes of one call that are being put together. Its buffer is used again.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    bytes: Vec<u8>,
    announced: usize,
    call: u32,
    is_open: bool,
}

impl Assembly {
    /// Whether parts are missing.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// The call whose parts these are.
    pub(crate) fn call(&self) -> u32 {
        self.call
    }

    /// The bytes put together.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes a part in; `true` when it was the last. `header_words` stand before the bytes of a part that is not the
    /// first; a first one has the announced length behind them.
    pub(crate) fn take(
        &mut self,
        call: u32,
        part: Part,
        header_words: usize,
        message: &mut impl Payload,
        max_bytes: usize,
    ) -> Result<bool, AssemblyError> {
        let mut first_word = header_words;
        if part == Part::First {
            if self.is_open {
                return Err(AssemblyError::Mixed { found: call, expected: self.call });
            }
            let announced = message.word(header_words);
            if announced > max_bytes as u64 {
                return Err(AssemblyError::TooLong { announced, max: max_bytes });
            }
            self.bytes.clear();
            (self.announced, self.call, self.is_open) = (announced as usize, call, true);
            first_word += 1;
        } else if !self.is_open {
            return Err(AssemblyError::NoFirst { found: call });
        } else if self.call != call {
            return Err(AssemblyError::Mixed { found: call, expected: self.call });
        }
        let Some(bytes) = message.len().checked_sub(first_word * WORD_BYTES) else {
            return Err(AssemblyError::Short);
        };
        let have = self.bytes.len() + bytes;
        let is_last = part == Part::Last;
        if have > self.announced || is_last && have != self.announced {
            return Err(AssemblyError::Length { have, announced: self.announced });
        }
        let start = self.bytes.len();
        self.bytes.resize(have, 0);
        message.copy_out_from(first_word, &mut self.bytes[start..]);
        self.is_open = !is_last;
        Ok(is_last)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::outgoing::Outgoing;
    use beeline_spec::rpc::RequestWord;
    use beeline_window::Sent;

    const MAX: usize = 5000;

    proptest! {
        /// Whatever the length of a message and of the whole, and wherever there is no room: what goes in comes out.
        #[test]
        fn parts_make_the_whole(
            bytes in proptest::collection::vec(any::<u8>(), 0..MAX),
            max_bytes in 32..900usize,
            deadline in proptest::option::of(any::<u64>()),
            fulls in proptest::collection::vec(any::<bool>(), 64),
        ) {
            let first = RequestWord::new(77, 3, deadline.is_some());
            let (mut outgoing, mut assembly) = (Outgoing::default(), Assembly::default());
            outgoing.begin(first.encode(), deadline).extend_from_slice(&bytes);
            let (mut fulls, mut whole) = (fulls.into_iter(), None);
            for _ in 0..1000 {
                let done = outgoing.progress(max_bytes, |head, rest| {
                    if fulls.next() == Some(true) {
                        return Ok::<_, AssemblyError>(Sent::Full);
                    }
                    assert!(head.len() + rest.len() <= max_bytes && whole.is_none());
                    let joined = [head, rest].concat();
                    let mut message = &joined[..];
                    let word = RequestWord::decode(message.word(0)).unwrap();
                    assert_eq!((word.call(), word.method()), (77, 3));
                    assert_eq!(word.has_deadline(), first.has_deadline());
                    let has_deadline =
                        word.has_deadline() && matches!(word.part(), Part::Whole | Part::First);
                    if has_deadline {
                        assert_eq!(Some(message.word(1)), deadline);
                    }
                    let header_words = 1 + usize::from(has_deadline);
                    if word.part() == Part::Whole {
                        whole = Some(joined[header_words * 8..].to_vec());
                    } else if assembly.take(word.call(), word.part(), header_words, &mut message, MAX)? {
                        whole = Some(assembly.bytes().to_vec());
                    }
                    Ok(Sent::Sent)
                }).unwrap();
                if done {
                    break;
                }
            }
            prop_assert!(!outgoing.is_active());
            prop_assert_eq!(whole, Some(bytes));
        }
    }

    /// One part: header word, announced length if it is the first, bytes.
    fn part(announced: Option<u64>, bytes: usize) -> Vec<u8> {
        let mut message = vec![0; 8];
        message.extend(announced.into_iter().flat_map(u64::to_le_bytes));
        message.resize(message.len() + bytes, 9);
        message
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let first = part(Some(100), 40);
        let open = |assembly: &mut Assembly| assembly.take(5, Part::First, 1, &mut &first[..], MAX);
        let cases: [(u32, Part, Vec<u8>, AssemblyError); 5] = [
            (6, Part::Last, part(None, 60), AssemblyError::Mixed { found: 6, expected: 5 }),
            (5, Part::First, part(Some(9), 1), AssemblyError::Mixed { found: 5, expected: 5 }),
            (5, Part::Middle, part(None, 61), AssemblyError::Length { have: 101, announced: 100 }),
            (5, Part::Last, part(None, 59), AssemblyError::Length { have: 99, announced: 100 }),
            (5, Part::Last, vec![], AssemblyError::Short),
        ];
        for (call, kind, message, error) in cases {
            let mut assembly = Assembly::default();
            assert_eq!(open(&mut assembly), Ok(false));
            assert_eq!(assembly.take(call, kind, 1, &mut &message[..], MAX), Err(error));
        }
        let mut assembly = Assembly::default();
        let long = AssemblyError::TooLong { announced: u64::MAX, max: MAX };
        assert_eq!(assembly.take(1, Part::First, 1, &mut &part(Some(u64::MAX), 1)[..], MAX), Err(long));
        let error = AssemblyError::NoFirst { found: 1 };
        assert_eq!(assembly.take(1, Part::Middle, 1, &mut &part(None, 1)[..], MAX), Err(error));
        assert_eq!(assembly.take(1, Part::First, 1, &mut &[0; 9][..], MAX), Err(AssemblyError::Short));
    }
}
