//! The table of station addresses: which endpoint of the switch an address was last heard from.
//!
//! Open addressing in a table whose size is fixed when it is made: an address is looked for in at most eight places,
//! and where all eight are taken the one heard of longest ago gives way. So a flood of made-up addresses costs time
//! and memory that are bounded, and at worst makes the switch flood frames.

/// An endpoint of the switch.
pub(crate) type Endpoint = u32;

/// Places in which an address may stand.
const PROBES: usize = 8;
/// Endpoint of a place that is free.
const NOBODY: Endpoint = Endpoint::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    address: u64,
    endpoint: Endpoint,
    /// When the address was last heard of, in seconds.
    heard: u32,
}

const FREE: Entry = Entry { address: 0, endpoint: NOBODY, heard: 0 };

/// What became of an address that was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    Known,
    New,
    /// The address was at another endpoint.
    Moved,
    /// It is new and took the place of another.
    Evicted,
}

/// Bounded, with ageing.
#[derive(Debug)]
pub(crate) struct MacTable {
    entries: Box<[Entry]>,
    ageing_seconds: u32,
}

impl MacTable {
    /// A table for `entries` addresses, each kept `ageing_seconds` after it was last heard of.
    pub(crate) fn new(entries: u32, ageing_seconds: u32) -> Self {
        let places = (entries.next_power_of_two() as usize).max(PROBES);
        MacTable { entries: vec![FREE; places].into_boxed_slice(), ageing_seconds }
    }

    #[inline]
    fn places(&self, address: u64) -> impl Iterator<Item = usize> + use<> {
        let mask = self.entries.len() - 1;
        let first = (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        (0..PROBES).map(move |step| (first + step) & mask)
    }

    #[inline]
    fn is_live(&self, entry: &Entry, now: u32) -> bool {
        entry.endpoint != NOBODY && now.saturating_sub(entry.heard) < self.ageing_seconds
    }

    /// The endpoint behind an address.
    #[inline]
    pub(crate) fn find(&self, address: u64, now: u32) -> Option<Endpoint> {
        let entry = self.places(address).map(|at| &self.entries[at]).find(|e| e.address == address)?;
        self.is_live(entry, now).then_some(entry.endpoint)
    }

    /// Notes that a frame from `address` came from `endpoint`.
    pub(crate) fn learn(&mut self, address: u64, endpoint: Endpoint, now: u32) -> Learned {
        debug_assert!(endpoint != NOBODY);
        let fresh = Entry { address, endpoint, heard: now };
        if let Some(at) = self.places(address).find(|at| self.entries[*at].address == address) {
            let was = std::mem::replace(&mut self.entries[at], fresh);
            return match self.is_live(&was, now) {
                true if was.endpoint == endpoint => Learned::Known,
                true => Learned::Moved,
                false => Learned::New,
            };
        }
        let oldest = self.places(address).min_by_key(|at| {
            let entry = &self.entries[*at];
            (self.is_live(entry, now), entry.heard)
        });
        let oldest = oldest.expect("an address has eight places");
        let was = std::mem::replace(&mut self.entries[oldest], fresh);
        if self.is_live(&was, now) { Learned::Evicted } else { Learned::New }
    }

    /// Forgets every address behind an endpoint that is gone.
    pub(crate) fn forget(&mut self, endpoint: Endpoint) {
        for entry in &mut self.entries {
            if entry.endpoint == endpoint {
                *entry = FREE;
            }
        }
    }

    /// Addresses that are known.
    pub(crate) fn count(&self, now: u32) -> usize {
        self.entries.iter().filter(|entry| self.is_live(entry, now)).count()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_is_found_moves_ages_and_is_forgotten() {
        let mut table = MacTable::new(16, 300);
        assert_eq!(table.find(7, 0), None);
        assert_eq!(table.learn(7, 1, 0), Learned::New);
        assert_eq!(table.learn(7, 1, 10), Learned::Known);
        assert_eq!((table.find(7, 309), table.find(7, 310)), (Some(1), None));
        assert_eq!(table.learn(7, 2, 20), Learned::Moved);
        assert_eq!(table.learn(7, 1, 400), Learned::New);
        assert_eq!(table.count(400), 1);
        table.forget(1);
        assert_eq!((table.find(7, 400), table.count(400)), (None, 0));
    }

    #[test]
    fn a_free_place_is_never_taken_for_the_address_zero() {
        let mut table = MacTable::new(16, 300);
        assert_eq!(table.find(0, 0), None);
        assert_eq!(table.learn(0, 3, 0), Learned::New);
        assert_eq!(table.find(0, 0), Some(3));
    }

    #[test]
    fn a_flood_of_addresses_evicts_the_oldest_and_never_grows() {
        let mut table = MacTable::new(64, 300);
        let evicted =
            (0..10_000u64).filter(|i| table.learn(*i, 1, *i as u32 / 100) == Learned::Evicted).count();
        assert!(evicted > 9000 && table.count(100) <= 64, "{evicted}");
        let recent = (9_990..10_000u64).filter(|i| table.find(*i, 100) == Some(1)).count();
        assert!(recent >= 8, "the latest addresses survive: {recent} of 10");
    }

    proptest! {
        #[test]
        fn what_is_found_was_learned_there_last(
            steps in prop::collection::vec((0u64..40, 0u32..4, 0u32..20), 1..300)
        ) {
            let mut table = MacTable::new(16, 50);
            let mut truth = HashMap::new();
            let mut now = 0;
            for (address, endpoint, later) in steps {
                now += later;
                table.learn(address, endpoint, now);
                truth.insert(address, (endpoint, now));
                prop_assert_eq!(table.find(address, now), Some(endpoint));
                for (address, (endpoint, heard)) in &truth {
                    // It may be forgotten early, because places are few, but it is never wrong and never late.
                    if let Some(found) = table.find(*address, now) {
                        prop_assert_eq!(found, *endpoint);
                        prop_assert!(now - heard < 50);
                    }
                }
            }
        }
    }
}
