//! What a hostile side of an arena says, reachable for the fuzz targets alone (`crate::fuzzing`).

use std::cell::Cell;
use std::collections::BTreeSet;

use super::leases::Leases;
use super::messages::{Ask, Hello, Note, Tell, Terms};
use super::options::part_bytes;
use super::slots::Slots;
use super::tells::{Hearer, TellMemory};

/// Whether these bytes are any message of an arena.
pub(crate) fn decode(bytes: &[u8]) -> bool {
    let from_client = Hello::decode(bytes).is_ok() | Ask::decode(bytes).is_some();
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
    while let Some(name) = slots.reserve() {
        slots.lend(name, name);
    }
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

/// A ring of which every word is what a client likes.
struct Said<'a> {
    told: Cell<u64>,
    entries: &'a [u64],
}

impl TellMemory for Said<'_> {
    fn told(&self) -> u64 {
        self.told.get()
    }

    fn publish(&self, told: u64) {
        self.told.set(told);
    }

    fn load(&self, at: u64) -> u64 {
        self.entries.get(at as usize % self.entries.len().max(1)).copied().unwrap_or(at)
    }

    fn store(&self, _: u64, _: u64) {}
}

/// What an owner hears of these counts, stored one after the other, and of these entries: how many entries, until the client is
/// disconnected.
pub(crate) fn heard(counts: &[u64], entries: &[u64]) -> u64 {
    let said = Said { told: Cell::new(0), entries };
    let mut hearer = Hearer::default();
    for count in counts {
        said.publish(*count);
        loop {
            let before = hearer.heard();
            match hearer.next(&said) {
                Ok(Some(entry)) => {
                    let _ = Tell::decode(entry);
                    assert_eq!(hearer.heard(), before + 1);
                }
                Ok(None) => break,
                Err(_) => return before,
            }
        }
        assert_eq!(hearer.heard(), *count);
    }
    hearer.heard()
}
