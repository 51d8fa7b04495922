//! This target is what the two sides of an offer say to each other before they share memory: calls, and the statistics of a NIC. The
//! other process controls every byte. What is taken is in bounds. (Requests to a NIC are in `link_shm`, windows in `rendezvous`.)
#![no_main]

use arbitrary::Arbitrary;
use beeline_nic_process::Statistics;
use beeline_rpc::fuzzing;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    Hello(&'a [u8]),
    Welcome(&'a [u8]),
    OpenReply(&'a [u8]),
    Statistics(&'a [u8]),
    /// A hello that has its form, so that its values are looked at.
    Slots {
        rpc: u32,
        slots: u64,
        stores: &'a str,
    },
    /// The terms of a window in a welcome and in an offer of a reply window.
    Terms {
        lines: u32,
        bytes: u64,
        blank: u64,
        epoch: u16,
        number: u64,
    },
}

fn hello(bytes: &[u8]) {
    if let Some(slots) = fuzzing::hello(bytes) {
        assert!(slots.is_power_of_two() && slots <= beeline_rpc::MAX_OUTSTANDING, "{slots} calls");
    }
}

fn terms(found: Option<(u32, usize)>) {
    if let Some((lines, bytes)) = found {
        assert!(lines.is_power_of_two() && bytes >= lines as usize * 64, "{lines} lines in {bytes} bytes");
    }
}

fuzz_target!(|input: Input<'_>| {
    match input {
        Input::Hello(bytes) => hello(bytes),
        Input::Welcome(bytes) => terms(fuzzing::welcome(bytes)),
        Input::OpenReply(bytes) => terms(fuzzing::open_reply(bytes)),
        Input::Statistics(bytes) => {
            if let Ok(statistics) = serde_json::from_slice::<Statistics>(bytes) {
                let again = serde_json::to_vec(&statistics).expect("what was read can be written");
                assert_eq!(serde_json::from_slice::<Statistics>(&again).ok(), Some(statistics));
            }
        }
        Input::Slots { rpc, slots, stores } => {
            let text = serde_json::json!({ "rpc": rpc, "slots": slots, "stores": stores });
            hello(text.to_string().as_bytes());
        }
        Input::Terms { lines, bytes, blank, epoch, number } => {
            let window =
                serde_json::json!({ "lines": lines, "bytes": bytes, "blank": blank, "epoch": epoch });
            let welcome = serde_json::json!({ "window": window, "workers": number });
            terms(fuzzing::welcome(welcome.to_string().as_bytes()));
            let open = serde_json::json!({ "window": window, "worker": number });
            terms(fuzzing::open_reply(open.to_string().as_bytes()));
        }
    }
});
