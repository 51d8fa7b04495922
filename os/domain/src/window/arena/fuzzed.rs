//! What a hostile side of an arena says, reachable for the fuzz targets alone (`crate::fuzzing`).

use std::collections::BTreeSet;

use super::leases::Leases;
use super::messages::{Ask, Hello, Note, Tell, Terms};
use super::options::part_bytes;
use super::slots::Slots;

/// Whether these bytes are any message of an arena.
pub(crate) fn decode(bytes: &[u8]) -> bool {
    let from_client =
        Hello::decode(bytes).is_ok() | Tell::decode(bytes).is_some() | Ask::decode(bytes).is_some();
    from_client | Terms::decode(bytes).is_ok() | Note::decode(bytes).is_ok()
}

/// Where the windows lie that a client takes of what an owner lends.
pub(crate) fn lent(bytes: usize, notes: &[Vec<u8>]) -> Vec<(usize, usize)> {
    let (mut leases, mut taken) = (Leases::new(bytes, 64), Vec::new());
    for note in notes {
        let Ok(Note::Lent(lent)) = Note::decode(note) else { continue };
        for lease in lent {
            if leases.take_in(lease).is_ok() {
                let start = lease.offset_bytes as usize;
                taken.push((start, start + part_bytes(lease.lines)));
            }
        }
    }
    taken
}

/// What a client says of windows, of which so many were lent.
pub(crate) fn told(lent: u8, said: &[(u8, u8)]) {
    let (mut slots, mut receivers) = (Slots::new(lent.into()), BTreeSet::new());
    while slots.lend(|name| name).is_some() {}
    for (name, code) in said {
        let name = u32::from(*name);
        match code % 4 {
            0 => {
                if slots.open(name).is_ok() {
                    assert!(receivers.insert(name), "it is opened once");
                }
            }
            1 => drop(slots.sender_ended(name)),
            2 => {
                if let Ok(Some(name)) = slots.returned(name) {
                    assert!(!receivers.contains(&name), "its receiver has it");
                }
            }
            _ => {
                if receivers.remove(&name) {
                    slots.receiver_gone(name);
                }
            }
        }
    }
}
