//! What client and server tell each other at rendezvous.

use beeline_domain::WindowTerms;
use beeline_mmio::StoreKernel;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::calls::MAX_OUTSTANDING;

/// Version of these messages and of the words in the windows.
pub(crate) const VERSION: u32 = 1;

/// A client's first request. One descriptor comes with it: the credit page of its request window.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) rpc: u32,
    /// Calls that it may have outstanding.
    pub(crate) slots: u32,
    /// Name of the kernel that it stores with; no more than speed rests on it.
    #[serde(default)]
    pub(crate) stores: String,
}

impl Hello {
    /// Reads the request of a process that is not trusted.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.rpc != VERSION {
            let found = self.rpc;
            return Err(format!(
                "calls of version {found}, this is version {VERSION}; upgrade the older side"
            ));
        }
        if !self.slots.is_power_of_two() || self.slots > MAX_OUTSTANDING {
            let slots = self.slots;
            return Err(format!(
                "{slots} outstanding calls; a power of two up to {MAX_OUTSTANDING} is needed"
            ));
        }
        Ok(())
    }

    pub(crate) fn kernel(&self) -> Option<StoreKernel> {
        self.stores.parse().ok()
    }
}

/// The server's answer. Two descriptors come with it: the request window, the table of cancelled calls.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Welcome {
    pub(crate) window: WindowTerms,
    /// Threads that answer, each through a window of its own.
    pub(crate) workers: u32,
}

/// A client's offer of a reply window to one thread of the server. One descriptor comes with it, the window; the answer
/// has one, its credit page.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OpenReply {
    pub(crate) worker: u32,
    pub(crate) window: WindowTerms,
}

/// A message as bytes.
pub(crate) fn encode(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("a struct of integers and strings has a JSON form")
}

/// A message of a process that is not trusted.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_and_hostile_ones_do_not() {
        let hello = Hello { rpc: VERSION, slots: 8, stores: StoreKernel::Cached.name().to_owned() };
        let back: Hello = decode(&encode(&hello)).unwrap();
        assert_eq!((back.slots, back.kernel(), back.check()), (8, Some(StoreKernel::Cached), Ok(())));
        for (rpc, slots) in [(2, 8), (1, 0), (1, 3), (1, MAX_OUTSTANDING * 2), (1, u32::MAX)] {
            assert!(Hello { rpc, slots, stores: String::new() }.check().is_err(), "{rpc} {slots}");
        }
        for bytes in [&b""[..], b"{}", b"\xff", b"[[[["] {
            assert!(decode::<Hello>(bytes).is_err());
            assert!(decode::<Welcome>(bytes).is_err());
            assert!(decode::<OpenReply>(bytes).is_err());
        }
    }
}
