//! Where a frame goes: a learning Ethernet switch (IEEE 802.1D, without spanning tree).
//!
//! Pure: it sees addresses and answers with a decision; who carries it out is in `endpoints.rs`. An address is learned
//! from the source of every frame of an endpoint that learns; a frame to an unknown or group address floods; a frame
//! whose destination is behind the endpoint it came from is filtered, never sent back. A frame of the same two
//! addresses as the last one from the same endpoint is decided by comparing two words.
//!
//! The address that the NIC gave to a port belongs to that port while it is open: nothing that another endpoint sends moves it,
//! and what another port sends under it goes nowhere. Otherwise whoever sends one frame under its neighbour's address gets
//! its neighbour's frames.

use serde::{Deserialize, Serialize};

use crate::MacTableConfig;
use crate::config::port_of_station;
use crate::mac_table::{Endpoint, Learned, MacTable};

/// Bytes of two addresses and a type: what makes an Ethernet frame.
const HEADER_BYTES: usize = 14;
/// First byte of the address, lowest bit: a group of stations.
const GROUP_BIT: u64 = 1;

/// Frames by decision. Absolute counts since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SwitchCounters {
    /// Frames sent to the one endpoint their destination is behind.
    pub forwarded: u64,
    /// Frames sent to every other endpoint.
    pub flooded: u64,
    /// Frames not sent on, because their destination is behind the endpoint they came from.
    pub filtered: u64,
    /// Frames of a port under the station address of another, dropped.
    pub forged: u64,
    /// Frames of looped-back ports, given back.
    pub looped_back: u64,
    /// Frames too short to have addresses, dropped.
    pub runts: u64,
    /// Copies of frames dropped because their receiver had no room.
    pub dropped_full: u64,
    /// Copies of frames dropped because their receiver left while they waited for it.
    pub dropped_receiver_left: u64,
    /// Copies of frames dropped because their sender left and a receiver had no room for too long.
    pub dropped_sender_left: u64,
    /// Times a frame had to wait because its receiver had no room.
    pub held: u64,
    /// Addresses learned.
    pub learned: u64,
    /// Addresses that moved to another endpoint.
    pub moved: u64,
    /// Addresses that gave way to others because the table was full.
    pub evicted: u64,
}

/// Where a frame is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    To(Endpoint),
    /// To every endpoint but the one it came from.
    Flood,
    /// Nowhere.
    Drop,
    /// Nowhere, because its source is another port's.
    Forged,
}

/// The decision on the last frame of an endpoint, good until something is learned or time has passed.
#[derive(Clone, Copy, Debug)]
struct CachedDecision {
    addresses: [u8; 12],
    version: u64,
    decision: Decision,
}

#[derive(Debug)]
pub(crate) struct Switch {
    table: MacTable,
    /// The NIC's own station address, from which those of the ports follow.
    mac: [u8; 6],
    /// Whether each port is open. Endpoints after the ports are up-links.
    is_open: Box<[bool]>,
    cached: Vec<Option<CachedDecision>>,
    /// Goes up whenever a decision may have changed.
    version: u64,
    now_seconds: u32,
    pub(crate) counters: SwitchCounters,
}

impl Switch {
    /// A switch whose first `ports` endpoints are ports of a NIC with this station address.
    pub(crate) fn new(config: &MacTableConfig, mac: [u8; 6], ports: u32) -> Self {
        let ageing = u32::try_from(config.ageing.as_secs()).unwrap_or(u32::MAX);
        Switch {
            table: MacTable::new(config.entries, ageing),
            mac,
            is_open: vec![false; ports as usize].into_boxed_slice(),
            cached: Vec::new(),
            version: 0,
            now_seconds: 0,
            counters: SwitchCounters::default(),
        }
    }

    /// Tells the time; cached decisions last at most a second, so that addresses stay fresh and age.
    pub(crate) fn time_passed(&mut self, now_seconds: u32) {
        if now_seconds != self.now_seconds {
            self.now_seconds = now_seconds;
            self.version += 1;
        }
    }

    /// A port is open: the address that the NIC gives it is its own from now on.
    pub(crate) fn opened(&mut self, port: Endpoint) {
        self.is_open[port as usize] = true;
        self.version += 1;
    }

    /// An endpoint is gone: so is what was learned of it, and its hold on its address.
    pub(crate) fn forget(&mut self, endpoint: Endpoint) {
        if let Some(is_open) = self.is_open.get_mut(endpoint as usize) {
            *is_open = false;
        }
        self.table.forget(endpoint);
        self.version += 1;
    }

    /// The open port that the NIC gave an address to.
    fn owner(&self, address: &[u8]) -> Option<Endpoint> {
        let address = *address.first_chunk()?;
        let port = port_of_station(self.mac, address, self.is_open.len() as u32)?;
        self.is_open[port as usize].then_some(port)
    }

    /// Addresses that are known.
    pub(crate) fn addresses(&self) -> usize {
        self.table.count(self.now_seconds)
    }

    /// Where a frame from `source` goes; learns from it if `learns`.
    #[inline]
    pub(crate) fn decide(&mut self, source: Endpoint, learns: bool, frame: &[u8]) -> Decision {
        let Some(addresses) = frame.first_chunk::<12>().filter(|_| frame.len() >= HEADER_BYTES) else {
            self.counters.runts += 1;
            return Decision::Drop;
        };
        let decision = match self.cached.get(source as usize) {
            Some(Some(last)) if last.addresses == *addresses && last.version == self.version => last.decision,
            _ => self.decide_slowly(source, learns, addresses),
        };
        match decision {
            Decision::To(_) => self.counters.forwarded += 1,
            Decision::Flood => self.counters.flooded += 1,
            Decision::Drop => self.counters.filtered += 1,
            Decision::Forged => self.counters.forged += 1,
        }
        decision
    }

    fn decide_slowly(&mut self, source: Endpoint, learns: bool, addresses: &[u8; 12]) -> Decision {
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let (to, from) = (word(&addresses[..6]), word(&addresses[6..]));
        let is_of_another = self.owner(&addresses[6..]).is_some_and(|owner| owner != source);
        if is_of_another && (source as usize) < self.is_open.len() {
            self.cache_decision(source, addresses, Decision::Forged);
            return Decision::Forged;
        }
        if learns && !is_of_another && from & GROUP_BIT == 0 {
            let learned = self.table.learn(from, source, self.now_seconds);
            let count = match learned {
                Learned::Known => None,
                Learned::New => Some(&mut self.counters.learned),
                Learned::Moved => Some(&mut self.counters.moved),
                Learned::Evicted => Some(&mut self.counters.evicted),
            };
            // An address that was only refreshed changes no decision, and two senders that take turns must not make
            // each other forget theirs.
            if let Some(count) = count {
                *count += 1;
                self.version += 1;
            }
        }
        let decision = if to & GROUP_BIT == 1 {
            Decision::Flood
        } else {
            match self.owner(addresses).or_else(|| self.table.find(to, self.now_seconds)) {
                Some(endpoint) if endpoint == source => Decision::Drop,
                Some(endpoint) => Decision::To(endpoint),
                None => Decision::Flood,
            }
        };
        self.cache_decision(source, addresses, decision);
        decision
    }

    fn cache_decision(&mut self, source: Endpoint, addresses: &[u8; 12], decision: Decision) {
        let at = source as usize;
        if self.cached.len() <= at {
            // Once for each endpoint that ever sends.
            self.cached.resize(at + 1, None);
        }
        self.cached[at] = Some(CachedDecision { addresses: *addresses, version: self.version, decision });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn frame(to: u8, from: u8) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, to]);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, from]);
        frame
    }

    /// Endpoints that are ports; those after them are up-links.
    const PORTS: u32 = 8;
    /// Port `n` is given the address that ends in 100 + n.
    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 100];

    fn switch() -> Switch {
        Switch::new(&MacTableConfig { entries: 64, ageing: Duration::from_secs(10) }, MAC, PORTS)
    }

    #[test]
    fn unknown_floods_known_is_forwarded_own_is_filtered() {
        let mut switch = switch();
        assert_eq!(switch.decide(0, true, &frame(2, 1)), Decision::Flood);
        assert_eq!(switch.decide(1, true, &frame(1, 2)), Decision::To(0));
        for _ in 0..3 {
            assert_eq!(switch.decide(0, true, &frame(2, 1)), Decision::To(1));
        }
        assert_eq!(switch.decide(0, true, &frame(1, 9)), Decision::Drop);
        let counters = switch.counters;
        assert_eq!((counters.flooded, counters.forwarded, counters.filtered, counters.learned), (1, 4, 1, 3));
    }

    #[test]
    fn groups_flood_and_are_never_learned() {
        let mut switch = switch();
        let mut broadcast = frame(0, 1);
        broadcast[..6].fill(0xff);
        assert_eq!(switch.decide(0, true, &broadcast), Decision::Flood);
        let mut from_group = frame(5, 0);
        from_group[6] = 3;
        switch.decide(1, true, &from_group);
        assert_eq!(switch.addresses(), 1);
    }

    #[test]
    fn moved_station_invalidates_cached_decisions() {
        let mut switch = switch();
        switch.decide(1, true, &frame(9, 2));
        assert_eq!(switch.decide(0, true, &frame(2, 1)), Decision::To(1));
        assert_eq!(switch.decide(0, true, &frame(2, 1)), Decision::To(1));
        switch.decide(2, true, &frame(9, 2));
        assert_eq!(switch.decide(0, true, &frame(2, 1)), Decision::To(2));
        assert_eq!(switch.counters.moved, 1);
        switch.forget(2);
        assert_eq!(switch.decide(0, true, &frame(2, 1)), Decision::Flood);
    }

    #[test]
    fn the_address_of_a_port_is_taken_by_nobody_else() {
        let mut switch = switch();
        switch.opened(1);
        switch.opened(2);
        // It is known before it was heard of.
        assert_eq!(switch.decide(1, true, &frame(102, 101)), Decision::To(2));
        // Another port that sends under it, again and again, is heard by nobody, and moves nothing.
        for _ in 0..3 {
            assert_eq!(switch.decide(3, true, &frame(101, 102)), Decision::Forged);
            assert_eq!(switch.decide(1, true, &frame(102, 101)), Decision::To(2));
        }
        // An up-link may bring frames of it back, as a capture does that is played; they move nothing either.
        assert_eq!(switch.decide(PORTS, true, &frame(101, 102)), Decision::To(1));
        assert_eq!(switch.decide(1, true, &frame(102, 101)), Decision::To(2));
        assert_eq!((switch.counters.forged, switch.counters.moved, switch.counters.filtered), (3, 0, 0));
        // Addresses that nobody was given are learned from whoever sends.
        assert_eq!(switch.decide(3, true, &frame(101, 9)), Decision::To(1));
        assert_eq!(switch.decide(1, true, &frame(9, 101)), Decision::To(3));
        // When the port is gone its address is as any other.
        switch.forget(2);
        assert_eq!(switch.decide(1, true, &frame(102, 101)), Decision::Flood);
        assert_eq!(switch.decide(3, true, &frame(101, 102)), Decision::To(1));
        assert_eq!(switch.decide(1, true, &frame(102, 101)), Decision::To(3));
    }

    #[test]
    fn an_address_that_is_not_heard_of_is_forgotten_although_it_is_sent_to() {
        let mut switch = switch();
        switch.decide(1, true, &frame(9, 2));
        for second in 0..10 {
            switch.time_passed(second);
            assert_eq!(switch.decide(0, true, &frame(2, 1)), Decision::To(1), "second {second}");
        }
        switch.time_passed(10);
        assert_eq!(switch.decide(0, true, &frame(2, 1)), Decision::Flood);
        assert_eq!(switch.addresses(), 1, "the sender is heard of all the time");
    }

    #[test]
    fn frame_that_is_not_learned_from_moves_no_station() {
        let mut switch = switch();
        switch.decide(0, true, &frame(2, 1));
        assert_eq!(switch.decide(7, false, &frame(2, 1)), Decision::Flood);
        assert_eq!((switch.counters.moved, switch.decide(3, true, &frame(1, 4))), (0, Decision::To(0)));
    }

    #[test]
    fn a_frame_without_addresses_goes_nowhere() {
        let mut switch = switch();
        for bytes in [0, 5, 13] {
            assert_eq!(switch.decide(0, true, &vec![2; bytes]), Decision::Drop);
        }
        assert_eq!((switch.counters.runts, switch.counters.filtered), (3, 0));
    }
}
