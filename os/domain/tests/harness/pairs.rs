//! Connections that are none of the kernel's, and processes that agree on them.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU64;

use beeline_domain::{Agreed, ConnectionEnds, Domain, Met, PairCounts, Pairs};

use super::wait_until;

/// Connections of a server on this port, which each have the cookie of their client's port, and at the server's end one more than that.
pub const SERVER: u16 = 80;
/// More than any test writes.
pub const MEMORY_BYTES: usize = 1 << 30;

pub fn ends(is_server: bool, port: u16) -> ConnectionEnds {
    let end = |port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    let client = ConnectionEnds::new(1, end(port), end(SERVER));
    if is_server { client.mirrored() } else { client }
}

pub fn cookie(ends: &ConnectionEnds) -> u64 {
    match (ends.local().port(), ends.remote().port()) {
        (SERVER, client) => 2 * u64::from(client) + 1,
        (client, _) => 2 * u64::from(client),
    }
}

/// What a process says when it connects.
pub fn hello_of(memory_bytes: usize, number: NonZeroU64, place: u16) -> Vec<u8> {
    let numbers = [(memory_bytes as u64).to_le_bytes(), number.get().to_le_bytes()].concat();
    [&b"BeePair\x04"[..], &numbers, &place.to_le_bytes()].concat()
}

/// What the kernel would say: every socket is there.
pub fn pairs(domain: &Domain) -> Pairs {
    domain.pairs(Box::new(|ends| Some(cookie(ends))), MEMORY_BYTES).unwrap()
}

pub fn meet(pairs: &Pairs, is_server: bool, port: u16) -> Met {
    let ends = ends(is_server, port);
    pairs.meet(cookie(&ends), &ends).unwrap()
}

pub fn agreed(pairs: &Pairs, is_server: bool, port: u16) -> Option<Agreed> {
    match meet(pairs, is_server, port) {
        Met::NotYet => None,
        Met::Agreed(agreed) => {
            assert_eq!(agreed.other_cookie, cookie(&ends(!is_server, port)));
            Some(agreed)
        }
        other => panic!("{other:?}"),
    }
}

/// The counts of one who has done nothing wrong, and to whom nobody has.
pub fn counts(open: usize, opening: usize) -> PairCounts {
    PairCounts { open, opening, wrong: 0, without_memory: 0 }
}

/// Meets all ports until they are agreed on.
pub fn agree_on_all(pairs: &Pairs, is_server: bool, ports: std::ops::Range<u16>) -> Vec<Agreed> {
    let mut all = Vec::new();
    wait_until(|| {
        pairs.turn();
        all = ports.clone().filter_map(|port| agreed(pairs, is_server, port)).collect();
        all.len() == ports.len()
    });
    all
}
