//! What the two sides of a window tell each other at rendezvous.

use beeline_mmio::StoreKernel;
use beeline_spec::escape::is_blank_value;
use serde::{Deserialize, Serialize};

use super::{WindowError, check_lines, window_bytes};

/// Version of these messages.
const VERSION: u32 = 1;
/// Largest huge page that a window may be rounded up to.
const MAX_PAGE_BYTES: usize = 1 << 30;

/// The sender's request; one descriptor comes with it, its credit page.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    window: u32,
    /// Name of the kernel that the sender stores with. It decides no more than how the receiver prefetches.
    #[serde(default)]
    stores: String,
}

impl Request {
    pub(super) fn encode(kernel: StoreKernel) -> Vec<u8> {
        let request = Request { window: VERSION, stores: kernel.name().to_owned() };
        serde_json::to_vec(&request).expect("a struct of a number and a string has a JSON form")
    }

    /// Reads a request from a process that is not trusted: the sender's kernel, if this version knows it.
    pub(super) fn decode(request: &[u8]) -> Result<Option<StoreKernel>, String> {
        let request: Request =
            serde_json::from_slice(request).map_err(|e| format!("not a sender's request: {e}"))?;
        match request.window {
            VERSION => Ok(request.stores.parse().ok()),
            other => {
                Err(format!("windows of version {other}, this is version {VERSION}; upgrade the older side"))
            }
        }
    }
}

/// The receiver's answer; one descriptor comes with it, the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answer {
    /// Lines of the window.
    pub lines: u32,
    /// Bytes of its memory, control page and rounding included.
    pub bytes: usize,
    /// Value of a free word.
    pub blank: u64,
    /// Epoch of the messages in it.
    pub epoch: u8,
}

impl Answer {
    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a struct of integers has a JSON form")
    }

    /// Reads an answer from a process that is not trusted. Mapping brings every page in, so its bytes are what the window
    /// needs; only a sender that accepts huge pages, from a receiver that it trusts, takes as many as fill those.
    pub(super) fn decode(payload: &[u8], has_huge_pages: bool) -> Result<Self, WindowError> {
        let malformed = |what: String| WindowError::Malformed { what };
        let answer: Answer = serde_json::from_slice(payload).map_err(|e| malformed(e.to_string()))?;
        check_lines(answer.lines)?;
        let least = window_bytes(answer.lines);
        let most = if has_huge_pages { least.next_multiple_of(MAX_PAGE_BYTES) } else { least };
        if !(least..=most).contains(&answer.bytes) {
            let Answer { lines, bytes, .. } = answer;
            return Err(malformed(format!(
                "{bytes} bytes for a window of {lines} lines, which needs {least}; if they are huge pages and the \
                 receiver is trusted, allow them in the options"
            )));
        }
        if !is_blank_value(answer.blank) {
            return Err(malformed(format!("blank {:#018x} has bit 63 clear", answer.blank)));
        }
        Ok(answer)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    const GOOD: Answer = Answer { lines: 64, bytes: 8192, blank: 1 << 63 | 5, epoch: 3 };

    #[test]
    fn both_messages_come_back() {
        for kernel in StoreKernel::ALL {
            assert_eq!(Request::decode(&Request::encode(kernel)), Ok(Some(kernel)));
        }
        assert_eq!(Request::decode(br#"{"window":1,"stores":"by-pigeon"}"#), Ok(None));
        for has_huge_pages in [false, true] {
            assert_eq!(Answer::decode(&GOOD.encode(), has_huge_pages).unwrap(), GOOD);
        }
    }

    #[test]
    fn a_hostile_request_is_refused() {
        let deep = "[".repeat(60_000);
        for request in [&b""[..], b"{}", b"{\"window\":2}", b"\xff\xff", b"{\"window\":-1}", deep.as_bytes()]
        {
            assert!(Request::decode(request).is_err());
        }
    }

    #[test]
    fn a_hostile_answer_is_refused() {
        for answer in [
            Answer { lines: 63, ..GOOD },
            Answer { lines: 0, ..GOOD },
            Answer { bytes: 8191, ..GOOD },
            Answer { bytes: usize::MAX, ..GOOD },
            Answer { blank: 5, ..GOOD },
        ] {
            for has_huge_pages in [false, true] {
                assert!(Answer::decode(&answer.encode(), has_huge_pages).is_err(), "{answer:?}");
            }
        }
        assert!(Answer::decode(b"{\"lines\":64}", true).is_err());
    }

    #[test]
    fn only_who_accepts_huge_pages_lets_a_small_window_have_large_memory() {
        for bytes in [8193, 12288, 2 << 20, 1 << 30] {
            let answer = Answer { bytes, ..GOOD }.encode();
            assert!(matches!(Answer::decode(&answer, false), Err(WindowError::Malformed { .. })), "{bytes}");
            assert_eq!(Answer::decode(&answer, true).unwrap().bytes, bytes);
        }
        assert!(Answer::decode(&Answer { bytes: (1 << 30) + 1, ..GOOD }.encode(), true).is_err());
    }
}
