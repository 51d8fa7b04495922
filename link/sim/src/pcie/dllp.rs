//! Packets of the data link layer: acknowledgements and credits that go back, against the direction of what they answer.
//!
//! Base Specification, sections 3.6.3 (acknowledgements) and 2.6.1.2 (credit updates). Both are put together: one packet
//! answers for all that came since the one before. How long that may take is a rule of the receiver; the specification
//! gives a limit, [`latency_limit`]. Not here: replays, since nothing is ever lost on this wire, so the kind NAK does
//! not occur.

use super::{Advertised, Amount, Class, Generation, Lanes, Limit};
use crate::des::Picoseconds;

/// Bytes of such a packet on the wire: its six with their CRC, and two of a frame.
pub const DLLP_BYTES: u32 = 8;

/// A packet of the data link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dllp {
    /// All TLPs up to here arrived.
    Acknowledge,
    /// Room for so much is free again. On the wire these are running totals; here it is the difference.
    UpdateCredits { class: Class, given: Amount },
}

/// The limit of the specification for acknowledgements, which is also its guideline for credit updates, in symbols.
///
/// Tables "maximum Ack latency limits" of section 3.6.3.1 and "UpdateFC transmission latency guidelines" of section
/// 2.6.1.2, by their common formula: ((payload + 28) x factor) / lanes + delay, rounded down. The factor says after how
/// many packets of full length an answer goes. One table holds for 8 GT/s and all above; widths of 12 stand in
/// revisions up to
/// 5. Flits acknowledge each other, so that generation 6 uses the limit for credits alone.
pub fn latency_limit_symbols(generation: Generation, lanes: Lanes, max_payload_bytes: u32) -> u64 {
    /// Header, frame, sequence number, LCRC and digest.
    const OVERHEAD_BYTES: u64 = 28;
    let tenths = match (lanes.count(), max_payload_bytes) {
        (..=4, ..=256) => 14,
        (..=8, ..=256) => 25,
        (_, ..=256) => 30,
        (..=8, _) => 10,
        _ => 20,
    };
    let delay = match generation {
        Generation::Gen1 => 19,
        Generation::Gen2 => 70,
        _ => 115,
    };
    (u64::from(max_payload_bytes) + OVERHEAD_BYTES) * tenths / (10 * lanes.count()) + delay
}

/// Returns [`latency_limit_symbols`] as a time.
pub fn latency_limit(generation: Generation, lanes: Lanes, max_payload_bytes: u32) -> Picoseconds {
    generation.symbol() * latency_limit_symbols(generation, lanes, max_payload_bytes)
}

/// When a receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRule {
    /// So long after the first packet that is not acknowledged ...
    pub after: Picoseconds,
    /// ... or at once after so many packets, whichever is first.
    pub packets: u32,
}

/// When a receiver gives credits back that are free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateRule {
    /// So long after the first credit that is free and not given back ...
    pub after: Picoseconds,
    /// ... or at once when one in so many of those advertised is free, headers or data. 1 means when all are.
    pub one_in: u32,
}

/// Counts packets that arrived and says when to acknowledge.
#[derive(Clone, Debug)]
pub(super) struct Acknowledger {
    rule: AckRule,
    waiting: u32,
    since: Picoseconds,
}

impl Acknowledger {
    pub(super) fn new(rule: AckRule) -> Acknowledger {
        Acknowledger { rule, waiting: 0, since: Picoseconds::ZERO }
    }

    /// A packet arrived. Returns a time at which to ask again if it is the first that waits.
    pub(super) fn arrived(&mut self, now: Picoseconds) -> Option<Picoseconds> {
        self.waiting += 1;
        if self.waiting > 1 {
            return None;
        }
        self.since = now;
        Some(now + self.rule.after)
    }

    /// The acknowledgement, if it is time.
    pub(super) fn take(&mut self, now: Picoseconds) -> Option<Dllp> {
        let due = self.waiting >= self.rule.packets || now.since(self.since) >= self.rule.after;
        (self.waiting > 0 && due).then(|| {
            self.waiting = 0;
            Dllp::Acknowledge
        })
    }
}

/// Collects credits of one class that are free and says when to give them back.
#[derive(Clone, Debug)]
pub(super) struct CreditReturn {
    rule: UpdateRule,
    class: Class,
    /// As many free ones go back at once; of what is infinite, 2^32 - 1, and none is ever counted.
    many: Amount,
    free: Amount,
    since: Picoseconds,
}

impl CreditReturn {
    pub(super) fn new(rule: UpdateRule, class: Class, advertised: Advertised) -> CreditReturn {
        let many = |limit| match limit {
            Limit::Finite(all) => all.div_ceil(rule.one_in.max(1)).min(u32::MAX - 1),
            Limit::Infinite => u32::MAX,
        };
        let many = Amount { headers: many(advertised.headers), data_units: many(advertised.data_units) };
        CreditReturn { rule, class, many, free: Amount::default(), since: Picoseconds::ZERO }
    }

    /// A packet left the buffer. Returns a time at which to ask again if it is the first that waits.
    pub(super) fn freed(&mut self, amount: Amount, now: Picoseconds) -> Option<Picoseconds> {
        let none_waited = self.free == Amount::default();
        // What is infinite is never given back.
        if self.many.headers != u32::MAX {
            self.free.headers += amount.headers;
        }
        if self.many.data_units != u32::MAX {
            self.free.data_units += amount.data_units;
        }
        if !none_waited || self.free == Amount::default() {
            return None;
        }
        self.since = now;
        Some(now + self.rule.after)
    }

    /// The update, if it is time.
    pub(super) fn take(&mut self, now: Picoseconds) -> Option<Dllp> {
        if self.free == Amount::default() {
            return None;
        }
        let many = self.free.headers >= self.many.headers || self.free.data_units >= self.many.data_units;
        (many || now.since(self.since) >= self.rule.after)
            .then(|| Dllp::UpdateCredits { class: self.class, given: std::mem::take(&mut self.free) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the tables of section 3.6.3.1, for payloads of 128, 256, 512, 1024, 2048 and 4096 bytes.
    #[test]
    fn the_limits_are_those_of_the_specification() {
        let tables: [(Generation, u8, [u64; 6]); 12] = [
            (Generation::Gen1, 1, [237, 416, 559, 1071, 2095, 4143]),
            (Generation::Gen1, 2, [128, 217, 289, 545, 1057, 2081]),
            (Generation::Gen1, 4, [73, 118, 154, 282, 538, 1050]),
            (Generation::Gen1, 8, [67, 107, 86, 150, 278, 534]),
            (Generation::Gen1, 12, [58, 90, 109, 194, 365, 706]),
            (Generation::Gen1, 16, [48, 72, 86, 150, 278, 534]),
            (Generation::Gen2, 1, [288, 467, 610, 1122, 2146, 4194]),
            (Generation::Gen2, 8, [118, 158, 137, 201, 329, 585]),
            (Generation::Gen3, 1, [333, 512, 655, 1167, 2191, 4239]),
            (Generation::Gen3, 8, [163, 203, 182, 246, 374, 630]),
            (Generation::Gen4, 16, [144, 168, 182, 246, 374, 630]),
            (Generation::Gen5, 4, [169, 214, 250, 378, 634, 1146]),
        ];
        for (generation, lanes, limits) in tables {
            let lanes = Lanes::new(lanes).unwrap();
            let ours = [128, 256, 512, 1024, 2048, 4096]
                .map(|payload| latency_limit_symbols(generation, lanes, payload));
            assert_eq!(ours, limits, "{generation:?} {lanes}");
        }
        let x8 = Lanes::new(8).unwrap();
        assert_eq!(latency_limit(Generation::Gen3, x8, 256), Picoseconds(203_000));
    }

    #[test]
    fn one_acknowledgement_answers_for_many() {
        let mut acks = Acknowledger::new(AckRule { after: Picoseconds(100), packets: 3 });
        assert_eq!(acks.take(Picoseconds(500)), None, "nothing to acknowledge");
        assert_eq!(acks.arrived(Picoseconds(1000)), Some(Picoseconds(1100)));
        assert_eq!(acks.arrived(Picoseconds(1010)), None);
        assert_eq!(acks.take(Picoseconds(1099)), None);
        assert_eq!(acks.take(Picoseconds(1100)), Some(Dllp::Acknowledge));
        for _ in 0..3 {
            assert_eq!(acks.take(Picoseconds(1200)), None);
            acks.arrived(Picoseconds(1200));
        }
        assert_eq!(acks.take(Picoseconds(1200)), Some(Dllp::Acknowledge), "three packets do not wait");
    }

    #[test]
    fn credits_go_back_after_a_time_or_when_many_are_free() {
        let rule = UpdateRule { after: Picoseconds(100), one_in: 2 };
        let mut credits = CreditReturn::new(rule, Class::Posted, Advertised::finite(8, 1000));
        let line = Amount { headers: 1, data_units: 4 };
        assert_eq!(credits.freed(line, Picoseconds(0)), Some(Picoseconds(100)));
        assert_eq!(credits.take(Picoseconds(99)), None);
        let update = |headers, data_units| {
            Some(Dllp::UpdateCredits { class: Class::Posted, given: Amount { headers, data_units } })
        };
        assert_eq!(credits.take(Picoseconds(100)), update(1, 4));
        for _ in 0..4 {
            credits.freed(line, Picoseconds(200));
        }
        assert_eq!(credits.take(Picoseconds(200)), update(4, 16), "half of the headers");
        let mut infinite = CreditReturn::new(rule, Class::Completion, Advertised::INFINITE);
        assert_eq!(infinite.freed(line, Picoseconds(0)), None);
        assert_eq!(infinite.take(Picoseconds(1000)), None);
    }
}
