//! What the two halves say to each other when something is opened. Not on any path of a frame.

use serde::{Deserialize, Serialize};

/// Version of the memory layout and of these messages; both sides must have the same.
pub const VERSION: u32 = 1;

/// A request of a host. The first message of a connection is `Open`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// A port; comes with the descriptor of the host's memory (`port_host_memory`).
    Open {
        /// [`VERSION`] of the host.
        version: u32,
        /// Whether every frame that the port sends shall come back to it.
        loop_back: bool,
    },
    /// The transmit window of a queue, fresh and blank.
    Window {
        queue: u32,
        /// Whether its sender stores through its cache; only how lines are fetched depends on it.
        is_cached: bool,
    },
    /// Have a doorbell looked at.
    Doorbell {
        /// Offset of the window in the BAR.
        offset_bytes: u32,
    },
    /// Make memory visible to the device; comes with its descriptor.
    Memory {
        /// A multiple of 4096.
        bytes: u64,
    },
    /// Make memory invisible to the device again.
    Release {
        /// The region's number.
        region: u32,
    },
}

/// What a NIC process answers; refusals are texts of the rendezvous.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Answer {
    /// A port; comes with the descriptors of its memory (`port_device_memory`) and of its event.
    Opened {
        /// Queues of the port.
        queues: u32,
    },
    /// A window; comes with its descriptor.
    Window {
        lines: u32,
    },
    Done,
    /// The memory has this number; its bus addresses have it in their upper half.
    Region {
        /// The region's number.
        region: u32,
    },
}

pub(crate) fn to_bytes(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("messages have only string keys and finite numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_and_others_are_refused() {
        let open = Request::Open { version: VERSION, loop_back: true };
        assert_eq!(serde_json::from_slice::<Request>(&to_bytes(&open)).unwrap(), open);
        for garbage in
            [&b""[..], b"{}", b"null", b"{\"request\":\"open\"}", b"\xff\xff", b"{\"request\":\"fly\"}"]
        {
            assert!(serde_json::from_slice::<Request>(garbage).is_err());
        }
        let big = br#"{"request":"window","queue":4294967296,"is_cached":true}"#;
        assert!(serde_json::from_slice::<Request>(big).is_err());
    }
}
