//! What the two sides of a window tell each other at rendezvous.

use beeline_mmio::StoreKernel;
use serde::{Deserialize, Serialize};

use super::halves::WindowTerms;
use super::options::WindowError;

/// Version of these messages.
const VERSION: u32 = 1;

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

/// The receiver's answer as bytes; one descriptor comes with it, the window.
pub(super) fn encode_answer(terms: &WindowTerms) -> Vec<u8> {
    serde_json::to_vec(terms).expect("a struct of integers has a JSON form")
}

/// Reads an answer from a process that is not trusted; [`WindowTerms::check`] is still to come.
pub(super) fn decode_answer(payload: &[u8]) -> Result<WindowTerms, WindowError> {
    serde_json::from_slice(payload).map_err(|error| WindowError::Malformed { what: error.to_string() })
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    const GOOD: WindowTerms = WindowTerms { lines: 64, bytes: 8192, blank: 1 << 63 | 5, epoch: 3 };

    #[test]
    fn both_messages_come_back() {
        for kernel in StoreKernel::ALL {
            assert_eq!(Request::decode(&Request::encode(kernel)), Ok(Some(kernel)));
        }
        assert_eq!(Request::decode(br#"{"window":1,"stores":"by-pigeon"}"#), Ok(None));
        assert_eq!(decode_answer(&encode_answer(&GOOD)).unwrap(), GOOD);
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
        let deep = "[".repeat(60_000);
        for answer in [&b""[..], b"{\"lines\":64}", b"\xff", deep.as_bytes()] {
            assert!(decode_answer(answer).is_err());
        }
    }
}
