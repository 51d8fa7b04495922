//! What the two sides of an arena say: texts when they meet, fixed little-endian words afterwards. A client tells what it does in the
//! ring of `tells.rs`; packets are what it asks for, and what the owner says.
//!
//! Nothing here is trusted by whoever reads it: names and sizes are bounded here, what belongs together is checked by the accounts.

use beeline_mmio::StoreKernel;
use beeline_spec::formats::arena_tell;
use serde::{Deserialize, Serialize};

use super::options::{BATCH, MAX_ARENA_WINDOWS, check_bytes};
use crate::MAX_NOTIFICATION_BYTES;
use crate::window::options::{WindowError, check_lines};

/// Version of these messages.
const VERSION: u32 = 2;

/// The client's first request; one descriptor comes with it, the memory of its credits and of what it tells.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    arena: u32,
    /// Lines of the windows that the client opens.
    pub lines: u32,
}

impl Hello {
    pub(super) fn encode(lines: u32) -> Vec<u8> {
        serde_json::to_vec(&Hello { arena: VERSION, lines }).expect("a struct of integers has a JSON form")
    }

    pub(super) fn decode(request: &[u8]) -> Result<Self, String> {
        let hello: Hello =
            serde_json::from_slice(request).map_err(|e| format!("not the request of an arena: {e}"))?;
        match hello.arena {
            VERSION => Ok(hello),
            other => {
                Err(format!("arenas of version {other}, this is version {VERSION}; upgrade the older side"))
            }
        }
    }
}

/// The owner's answer; one descriptor comes with it, the memory of its windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Terms {
    /// Bytes of all windows, without the control lines before them.
    pub bytes: usize,
    /// Most lines of a window.
    pub lines: u32,
}

impl Terms {
    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a struct of integers has a JSON form")
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Self, WindowError> {
        let terms: Terms = serde_json::from_slice(payload)
            .map_err(|error| WindowError::Malformed { what: error.to_string() })?;
        check_lines(terms.lines)?;
        check_bytes(terms.bytes)?;
        Ok(terms)
    }
}

/// A window that is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    /// From 1 to [`MAX_ARENA_WINDOWS`]; no two windows of an arena have one name at a time.
    pub name: u32,
    pub lines: u32,
    /// Where its lines begin in the owner's memory.
    pub offset_bytes: u64,
    /// Value of a free word.
    pub blank: u64,
    /// Epoch of the messages in it.
    pub epoch: u8,
}

const LEASE_WORDS: usize = 4;
const _: () = assert!(8 + BATCH as usize * LEASE_WORDS * 8 <= MAX_NOTIFICATION_BYTES);

impl Lease {
    fn words(&self) -> [u64; LEASE_WORDS] {
        let sizes = u64::from(self.lines) << 32 | u64::from(self.name);
        [sizes, self.offset_bytes, self.blank, u64::from(self.epoch)]
    }

    fn from_words([sizes, offset_bytes, blank, epoch]: [u64; LEASE_WORDS]) -> Option<Self> {
        let (name, lines) = (name_in(sizes as u32)?, (sizes >> 32) as u32);
        Some(Lease { name, lines, offset_bytes, blank, epoch: u8::try_from(epoch).ok()? })
    }
}

fn name_in(name: u32) -> Option<u32> {
    (1..=MAX_ARENA_WINDOWS).contains(&name).then_some(name)
}

/// What a client asks for and waits for: windows of so many lines, more than one if they are small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub lines: u32,
}

impl Ask {
    pub(super) fn encode(self) -> [u8; 8] {
        (u64::from(self.lines) << 32).to_le_bytes()
    }

    pub(super) fn decode(request: &[u8]) -> Option<Self> {
        let word = u64::from_le_bytes(request.try_into().ok()?);
        (word as u32 == 0).then_some(Ask { lines: (word >> 32) as u32 })
    }
}

/// What a client tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tell {
    /// A window that was lent is open. The kernel decides no more than how the receiver prefetches.
    Open { name: u32, kernel: Option<StoreKernel> },
    /// The sender sends nothing more, and still has its half.
    End { name: u32 },
    /// The sender has no handle of the window any more, and none of its stores is under way.
    Return { name: u32 },
}

/// The store kernels by their numbers in the ring, from 1 on. St64b stores to no memory.
const KERNELS: [StoreKernel; 7] = [
    StoreKernel::Cached,
    StoreKernel::Nt8,
    StoreKernel::NtSse2,
    StoreKernel::NtAvx2,
    StoreKernel::NtAvx512,
    StoreKernel::Movdir64b,
    StoreKernel::Stnp,
];

impl Tell {
    pub(super) fn encode(self) -> u64 {
        let (code, name, kernel) = match self {
            Tell::Open { name, kernel } => (1, name, kernel),
            Tell::End { name } => (2, name, None),
            Tell::Return { name } => (3, name, None),
        };
        let number = kernel.and_then(|kernel| KERNELS.iter().position(|known| *known == kernel));
        let number = number.map_or(0, |index| index as u64 + 1);
        u64::from(name) << arena_tell::NAME_LSB
            | number << arena_tell::KERNEL_LSB
            | code << arena_tell::CODE_LSB
    }

    pub(super) fn decode(word: u64) -> Option<Self> {
        let field = |lsb: u32, mask: u64| word >> lsb & mask;
        let name = name_in(field(arena_tell::NAME_LSB, arena_tell::NAME_MASK) as u32)?;
        let number = field(arena_tell::KERNEL_LSB, arena_tell::KERNEL_MASK) as usize;
        if field(arena_tell::RESERVED_LSB, arena_tell::RESERVED_MASK) != 0 {
            return None;
        }
        match field(arena_tell::CODE_LSB, arena_tell::CODE_MASK) {
            1 => Some(Tell::Open {
                name,
                kernel: number.checked_sub(1).and_then(|at| KERNELS.get(at).copied()),
            }),
            2 if number == 0 => Some(Tell::End { name }),
            3 if number == 0 => Some(Tell::Return { name }),
            _ => None,
        }
    }
}

/// What an owner notifies, or answers to [`Ask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// These windows are lent.
    Lent(Vec<Lease>),
    /// The receiver reads this window no more.
    Ended { name: u32 },
}

impl Note {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Note::Lent(leases) => {
                bytes.extend(1u64.to_le_bytes());
                bytes.extend(leases.iter().flat_map(Lease::words).flat_map(u64::to_le_bytes));
            }
            Note::Ended { name } => bytes.extend((u64::from(*name) << 32 | 2).to_le_bytes()),
        }
        bytes
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Self, WindowError> {
        Self::read(payload).ok_or_else(|| WindowError::Malformed {
            what: format!("{} bytes that are no message of an arena", payload.len()),
        })
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let (words, []) = payload.as_chunks::<8>() else { return None };
        let (head, words) = words.split_first()?;
        let head = u64::from_le_bytes(*head);
        match head as u32 {
            1 if head >> 32 == 0 => {
                let (leases, []) = words.as_chunks::<LEASE_WORDS>() else { return None };
                let leases = leases.iter().map(|words| Lease::from_words(words.map(u64::from_le_bytes)));
                Some(Note::Lent(leases.collect::<Option<_>>()?))
            }
            2 if words.is_empty() => Some(Note::Ended { name: name_in((head >> 32) as u32)? }),
            _ => None,
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    const LEASE: Lease =
        Lease { name: MAX_ARENA_WINDOWS, lines: 64, offset_bytes: 1 << 20, blank: 1 << 63 | 5, epoch: 255 };

    #[test]
    fn messages_come_back() {
        for kernel in StoreKernel::ALL {
            let kernel = Some(kernel).filter(|kernel| *kernel != StoreKernel::St64b);
            let open = Tell::Open { name: 7, kernel };
            assert_eq!(Tell::decode(open.encode()), Some(open));
        }
        let unknown = Tell::Open { name: 7, kernel: None };
        for number in [0, KERNELS.len() as u64 + 1, 255] {
            assert_eq!(Tell::decode(unknown.encode() | number << 8), Some(unknown));
        }
        for tell in [Tell::End { name: 1 }, Tell::Return { name: MAX_ARENA_WINDOWS }] {
            assert_eq!(Tell::decode(tell.encode()), Some(tell));
        }
        for note in [Note::Lent(vec![]), Note::Lent(vec![LEASE; BATCH as usize]), Note::Ended { name: 3 }] {
            assert_eq!(Note::decode(&note.encode()).unwrap(), note);
        }
        assert_eq!(Ask::decode(&Ask { lines: 64 }.encode()), Some(Ask { lines: 64 }));
        assert_eq!(Hello::decode(&Hello::encode(64)).unwrap().lines, 64);
        let terms = Terms { bytes: 8192, lines: 64 };
        assert_eq!(Terms::decode(&terms.encode()).unwrap(), terms);
    }

    #[test]
    fn hostile_messages_are_refused() {
        let word = |code: u32, name: u32| (u64::from(name) << 32 | u64::from(code)).to_le_bytes();
        for (code, name) in [(0, 1), (1, 0), (2, 0), (3, MAX_ARENA_WINDOWS + 1), (4, 1), (u32::MAX, u32::MAX)]
        {
            assert_eq!(Tell::decode(u64::from_le_bytes(word(code, name))), None, "{code} {name}");
        }
        let of_one = |low: u64| 1 << 32 | low;
        for word in [of_one(1 << 16 | 1), of_one(1 << 31 | 1), of_one(1 << 8 | 2), of_one(255 << 8 | 3)] {
            assert_eq!(Tell::decode(word), None, "{word:#x}");
        }
        let lease = |words: [u64; 4]| [&word(1, 0)[..], &words.map(u64::to_le_bytes).concat()].concat();
        assert!(Note::decode(&lease(LEASE.words())).is_ok());
        let [sizes, offset, blank, epoch] = LEASE.words();
        for words in
            [[0, offset, blank, epoch], [sizes | 1 << 31, offset, blank, epoch], [sizes, offset, blank, 256]]
        {
            assert!(Note::decode(&lease(words)).is_err());
        }
        let long = [word(2, 1), word(0, 0)].concat();
        for note in [&b""[..], b"\x01", &word(0, 0), &word(1, 1), &word(2, 0), &word(3, 1), &[0; 16], &long] {
            assert!(Note::decode(note).is_err());
        }
        assert!(Note::decode(&lease(LEASE.words())[..39]).is_err());
        for ask in [&b""[..], &word(1, 64), &[0; 9]] {
            assert_eq!(Ask::decode(ask), None);
        }
        for hello in [&b""[..], b"{}", br#"{"arena":1,"lines":64}"#, b"\xff"] {
            assert!(Hello::decode(hello).is_err());
        }
        for terms in [
            &b""[..],
            br#"{"bytes":8191,"lines":64}"#,
            br#"{"bytes":8192,"lines":63}"#,
            br#"{"bytes":-1,"lines":64}"#,
        ] {
            assert!(Terms::decode(terms).is_err());
        }
    }
}
