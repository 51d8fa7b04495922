//! This target is the rendezvous. Any process that reaches the socket controls every byte of a packet and how many
//! descriptors come with it; the other side of a connection controls what it answers about a window. Nothing panics, and
//! what is taken has the size it claims.
#![no_main]

use arbitrary::Arbitrary;
use beeline_domain::{MAX_WINDOW_LINES, fuzzing};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    Packet {
        bytes: &'a [u8],
        descriptors: u8,
    },
    /// A packet whose magic number and version are right, so that the rest is looked at.
    Headed {
        kind: u16,
        said_bytes: u32,
        said_descriptors: u16,
        payload: &'a [u8],
        descriptors: u8,
    },
    WindowRequest(&'a [u8]),
    WindowAnswer(&'a [u8]),
    Answer {
        lines: u32,
        bytes: u64,
        blank: u64,
        epoch: u8,
    },
    Name(&'a str),
    /// What the other side of an arena says, whatever it is.
    Arena(&'a [u8]),
    /// Windows that an owner lends, in memory of so many pages.
    Lent {
        pages: u8,
        leases: Vec<(u16, u32, u64, u64, u8)>,
    },
    /// What a client says of windows of which so many were lent.
    Told {
        lent: u8,
        said: Vec<(u8, u8)>,
    },
    /// How far a client says its ring goes, one after the other, and what is in it.
    Heard {
        counts: Vec<u64>,
        entries: Vec<u64>,
    },
    /// What the kernel says of a socket, whose addresses others choose.
    SocketAnswer(&'a [u8]),
    SocketLine(&'a str),
    /// What the other side of a shared connection sends.
    Preamble(&'a [u8]),
}

/// The windows that are taken lie in the memory, and apart.
fn lent(pages: u8, leases: &[(u16, u32, u64, u64, u8)]) {
    let bytes = (1 << 20) + usize::from(pages) * 4096;
    let mut taken = Vec::new();
    for (name, lines, offset, blank, epoch) in leases {
        let sizes = u64::from(*lines) << 32 | u64::from(*name);
        let words = [1, sizes, *offset, *blank, u64::from(*epoch)];
        taken.push(words.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<_>>());
    }
    let mut ranges = fuzzing::arena_lent(bytes, &taken);
    ranges.sort_unstable();
    for (start, end) in &ranges {
        assert!(*start >= 1 << 20 && start < end && *end <= bytes && start.is_multiple_of(4096));
    }
    assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "two windows share bytes");
}

fn packet(bytes: &[u8], descriptors: u8) {
    if let Some(payload) = fuzzing::packet(bytes, descriptors.into()) {
        assert!(bytes.ends_with(payload) && payload.len() < bytes.len());
    }
}

fn answer(payload: &[u8]) {
    if let Some((lines, bytes)) = fuzzing::window_answer(payload) {
        assert!(lines.is_power_of_two() && lines <= MAX_WINDOW_LINES);
        assert!(bytes >= lines as usize * 64, "the lines lie inside the memory");
    }
}

fuzz_target!(|input: Input<'_>| {
    match input {
        Input::Packet { bytes, descriptors } => packet(bytes, descriptors),
        Input::Headed { kind, said_bytes, said_descriptors, payload, descriptors } => {
            let mut bytes = b"BEE\x01\x04\x00".to_vec();
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 8]);
            bytes.extend(said_bytes.to_le_bytes());
            bytes.extend(said_descriptors.to_le_bytes());
            bytes.extend([0; 10]);
            bytes.extend(payload);
            packet(&bytes, descriptors);
        }
        Input::WindowRequest(payload) => drop(fuzzing::window_request(payload)),
        Input::WindowAnswer(payload) => answer(payload),
        Input::Answer { lines, bytes, blank, epoch } => {
            let text = format!(r#"{{"lines":{lines},"bytes":{bytes},"blank":{blank},"epoch":{epoch}}}"#);
            answer(text.as_bytes());
        }
        Input::Arena(bytes) => drop(fuzzing::arena_message(bytes)),
        Input::Lent { pages, leases } => lent(pages, &leases),
        Input::Told { lent, said } => fuzzing::arena_told(lent, &said),
        Input::Heard { counts, entries } => {
            let heard = fuzzing::arena_heard(&counts, &entries);
            assert!(heard == 0 || counts.contains(&heard), "a count is heard whole");
        }
        Input::SocketAnswer(bytes) => {
            assert!(
                !beeline_tcp::fuzzing::socket_answer(bytes) || bytes.len() >= 88,
                "nothing is read out of a part"
            );
        }
        Input::Preamble(bytes) => assert!(!fuzzing::is_preamble(bytes) || bytes.len() == 56),
        Input::SocketLine(line) => drop(beeline_tcp::fuzzing::socket_line(line)),
        Input::Name(name) => {
            let sound = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
            let is_file_name = !name.starts_with('.') && name.chars().all(sound);
            assert!(!fuzzing::is_name(name) || is_file_name && !name.is_empty(), "a name can be no path");
        }
    }
});
