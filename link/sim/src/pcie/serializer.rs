//! One direction of the wire: when a packet that is sent now is at the other end, to the picosecond.

use super::dllp::DLLP_BYTES;
use super::{Encoding, Generation, Kind, Lanes, Tlp, WireTime};
use crate::des::Picoseconds;

/// Bytes of a flit, and those of them that carry TLPs. The others are 6 for the data link layer, 8 of CRC and 6 of forward
/// error correction (Base Specification 6.0, section 4.2.3.4).
pub const FLIT_BYTES: u64 = 256;
/// See [`FLIT_BYTES`].
pub const FLIT_TLP_BYTES: u64 = 236;

/// What a direction has carried so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    pub tlps: [CarriedKind; Kind::COUNT],
    /// Packets of the data link layer.
    pub dllps: u64,
    /// Their bytes; none in flits, where they have a place of their own, which is there whether they are or not.
    pub dllp_bytes: u64,
    /// Ordered sets for clock compensation that delayed something.
    pub ordered_sets: u64,
}

/// What a direction has carried of one kind of TLP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarriedKind {
    pub packets: u64,
    /// Bytes that somebody wanted to move: without what rounding to double words adds.
    pub useful_bytes: u64,
    /// Bytes on the wire: frame, header, payload and digest.
    pub wire_bytes: u64,
}

impl Carried {
    /// Bytes on the wire, of TLPs and DLLPs; those of flits, symbols and blocks are not in it.
    pub fn wire_bytes(&self) -> u64 {
        self.tlps.iter().map(|kind| kind.wire_bytes).sum::<u64>() + self.dllp_bytes
    }
}

/// A direction of a link. Packets leave one after the other, in the order of the calls.
#[derive(Clone, Debug)]
pub struct Serializer {
    encoding: Encoding,
    byte: WireTime,
    pace: Pace,
    carried: Carried,
}

#[derive(Clone, Debug)]
enum Pace {
    Packets {
        free_at: WireTime,
        skips: Option<Skips>,
    },
    /// Flits follow each other from time zero on; slot n is the nth byte for TLPs in them.
    Flits {
        free_slot: u64,
        free_control: u64,
    },
}

/// SKP ordered sets: every lane sends one now and then, between packets, and on an idle wire at no cost.
#[derive(Clone, Debug)]
struct Skips {
    due_at: WireTime,
    interval: WireTime,
    length: WireTime,
}

impl Serializer {
    /// An idle direction. With `ordered_sets`, SKP ordered sets take their time: 4 symbols in 1538 with 8b/10b, one block
    /// in 375 with 128b/130b (Base Specification, section 4.2.7); those of flits are left out.
    pub fn new(generation: Generation, lanes: Lanes, ordered_sets: bool) -> Serializer {
        let symbols = |symbols: u64| WireTime::of_bytes(generation, lanes, symbols * lanes.count());
        let skips = |interval, length| {
            let (interval, length) = (symbols(interval), symbols(length));
            ordered_sets.then_some(Skips { due_at: interval, interval, length })
        };
        let packets = |skips| Pace::Packets { free_at: WireTime(0), skips };
        let encoding = generation.encoding();
        let pace = match encoding {
            Encoding::Symbols8b10b => packets(skips(1538, 4)),
            Encoding::Blocks128b130b => packets(skips(375 * 16, 16)),
            Encoding::Flits => Pace::Flits { free_slot: 0, free_control: 0 },
        };
        Serializer {
            encoding,
            byte: WireTime::of_bytes(generation, lanes, 1),
            pace,
            carried: Carried::default(),
        }
    }

    /// Returns when the next TLP may start.
    #[inline]
    pub fn free_at(&self) -> Picoseconds {
        match &self.pace {
            Pace::Packets { free_at, .. } => free_at.to_ps(),
            Pace::Flits { free_slot, .. } => self.slot_time(*free_slot).to_ps(),
        }
    }

    /// Sends a TLP at `now`, or as soon as the wire is free; returns when its last byte is at the other end of a wire
    /// without length. In a flit that is the end of the flit, whose CRC covers it.
    #[inline]
    pub fn send_tlp(&mut self, tlp: &Tlp, now: Picoseconds) -> Picoseconds {
        let bytes = tlp.wire_bytes(self.encoding);
        let kind = &mut self.carried.tlps[tlp.kind as usize];
        kind.packets += 1;
        kind.wire_bytes += u64::from(bytes);
        if tlp.kind.has_data() {
            kind.useful_bytes += u64::from(tlp.length_bytes);
        }
        match &mut self.pace {
            Pace::Packets { .. } => self.send_packet(bytes, now),
            Pace::Flits { .. } => self.send_in_flits(bytes, now),
        }
    }

    /// Sends a packet of the data link layer, as [`Serializer::send_tlp`]. A flit holds one, and no TLP waits for it.
    pub fn send_dllp(&mut self, now: Picoseconds) -> Picoseconds {
        self.carried.dllps += 1;
        match &mut self.pace {
            Pace::Packets { .. } => {
                self.carried.dllp_bytes += u64::from(DLLP_BYTES);
                self.send_packet(DLLP_BYTES, now)
            }
            Pace::Flits { free_control, .. } => {
                let (flit, offset) = position(self.byte, now);
                let flit = if offset <= FLIT_TLP_BYTES { flit } else { flit + 1 };
                let flit = flit.max(*free_control);
                *free_control = flit + 1;
                self.flit_end(flit)
            }
        }
    }

    /// Returns what was carried so far.
    pub fn carried(&self) -> &Carried {
        &self.carried
    }

    /// Whether packets of the data link layer have room of their own, so that they never wait for TLPs.
    pub fn has_control_room(&self) -> bool {
        self.encoding == Encoding::Flits
    }

    #[inline]
    fn send_packet(&mut self, bytes: u32, now: Picoseconds) -> Picoseconds {
        let Pace::Packets { free_at, skips } = &mut self.pace else { return now };
        let offered = WireTime::from_ps(now);
        // Times of events are whole picoseconds: a packet offered in that in which the wire became free follows at once,
        // or a stream would lose a part of a picosecond with each packet.
        let mut start = if free_at.0 + WireTime::PER_PS > offered.0 { *free_at } else { offered };
        if let Some(skips) = skips {
            let (later, sets) = skips.pass(*free_at, start);
            start = later;
            self.carried.ordered_sets += sets;
        }
        *free_at = WireTime(start.0 + self.byte.0 * u64::from(bytes));
        free_at.to_ps()
    }

    fn send_in_flits(&mut self, bytes: u32, now: Picoseconds) -> Picoseconds {
        let Pace::Flits { free_slot, .. } = &mut self.pace else { return now };
        let (flit, offset) = position(self.byte, now);
        // TLPs start at double words. A transmitter adds a packet to the flit that it is sending, since the CRC comes last;
        // what comes too late for a flit's TLP bytes waits for the next one.
        let soonest = flit * FLIT_TLP_BYTES + offset.next_multiple_of(4).min(FLIT_TLP_BYTES);
        let last = soonest.max(*free_slot) + u64::from(bytes) - 1;
        *free_slot = last + 1;
        self.flit_end(last / FLIT_TLP_BYTES)
    }

    fn slot_time(&self, slot: u64) -> WireTime {
        let byte = slot / FLIT_TLP_BYTES * FLIT_BYTES + slot % FLIT_TLP_BYTES;
        WireTime(byte * self.byte.0)
    }

    fn flit_end(&self, flit: u64) -> Picoseconds {
        WireTime((flit + 1) * FLIT_BYTES * self.byte.0).to_ps()
    }
}

/// Flit and byte in it that start at `now`, or as the first thereafter. A byte that started in the picosecond of `now`
/// counts as starting then, as packets do without flits.
fn position(byte: WireTime, now: Picoseconds) -> (u64, u64) {
    let ticks = WireTime::from_ps(now).0;
    let at = (ticks.saturating_sub(WireTime::PER_PS - 1)).div_ceil(byte.0);
    (at / FLIT_BYTES, at % FLIT_BYTES)
}

impl Skips {
    /// A packet wants to start at `start`, on a wire that was free since `free_at`. Returns when it starts, behind the
    /// ordered sets that are due, and how many of them it waited for.
    fn pass(&mut self, free_at: WireTime, start: WireTime) -> (WireTime, u64) {
        if start < self.due_at {
            return (start, 0);
        }
        let due = (start.0 - self.due_at.0) / self.interval.0 + 1;
        // Those that were due while the wire was busy leave when it is free; those after that on the idle wire.
        let busy = if free_at < self.due_at { 0 } else { (free_at.0 - self.due_at.0) / self.interval.0 + 1 };
        let mut end = if busy > 0 { free_at.0 + busy * self.length.0 } else { 0 };
        if due > busy {
            end = end.max(self.due_at.0 + (due - 1) * self.interval.0 + self.length.0);
        }
        self.due_at = WireTime(self.due_at.0 + due * self.interval.0);
        if end > start.0 { (WireTime(end), busy.max(1)) } else { (start, 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serializer(generation: Generation, lanes: u8, ordered_sets: bool) -> Serializer {
        Serializer::new(generation, Lanes::new(lanes).unwrap(), ordered_sets)
    }

    const LINE: Tlp = Tlp::new(Kind::MemoryWrite, 1 << 32, 64);

    #[test]
    fn a_packet_takes_its_bytes() {
        // 88 bytes of 4 ns on one lane of generation 1.
        let mut wire = serializer(Generation::Gen1, 1, false);
        assert_eq!(wire.send_tlp(&LINE, Picoseconds::from_ns(10)), Picoseconds::from_ns(362));
        assert_eq!(wire.free_at(), Picoseconds::from_ns(362));
        assert_eq!(wire.send_dllp(Picoseconds::from_ns(20)), Picoseconds::from_ns(394), "behind it");
        let writes = wire.carried().tlps[Kind::MemoryWrite as usize];
        assert_eq!(writes, CarriedKind { packets: 1, useful_bytes: 64, wire_bytes: 88 });
        assert_eq!(wire.carried().wire_bytes(), 96);
    }

    /// A million lines that follow each other end where a single packet of all their bytes would.
    #[test]
    fn a_stream_has_no_rounding_error() {
        for generation in &Generation::ALL[..5] {
            let mut wire = serializer(*generation, 16, false);
            let mut end = Picoseconds::ZERO;
            for _ in 0..1_000_000 {
                end = wire.send_tlp(&LINE, end);
            }
            let lanes = Lanes::new(16).unwrap();
            assert_eq!(end, WireTime::of_bytes(*generation, lanes, 88_000_000).to_ps(), "{generation:?}");
        }
    }

    #[test]
    fn packets_arrive_at_the_end_of_their_flit() {
        // A flit of x16 takes 2000 ps, a byte 7.8125.
        let mut wire = serializer(Generation::Gen6, 16, false);
        assert_eq!(wire.send_tlp(&LINE, Picoseconds(1)), Picoseconds(2000));
        assert_eq!(wire.free_at(), Picoseconds(657), "bytes 0 to 3 had passed; 84 of 7.8125 ps");
        assert_eq!(wire.send_tlp(&LINE, Picoseconds(1)), Picoseconds(2000));
        assert_eq!(wire.send_tlp(&LINE, Picoseconds(1)), Picoseconds(4000), "bytes 164 to 244 of 236");
        assert_eq!(wire.send_tlp(&LINE, Picoseconds(7900)), Picoseconds(10_000), "no room behind byte 236");
        assert_eq!(wire.send_dllp(Picoseconds(0)), Picoseconds(2000));
        assert_eq!(wire.send_dllp(Picoseconds(0)), Picoseconds(4000), "one in a flit");
        assert_eq!(wire.send_dllp(Picoseconds(7900)), Picoseconds(10_000));
        // Byte 236, the first behind the TLPs, starts at 1843.75 ps: a DLLP may still be there, and not a byte later.
        assert_eq!(serializer(Generation::Gen6, 16, false).send_dllp(Picoseconds(1844)), Picoseconds(2000));
        assert_eq!(serializer(Generation::Gen6, 16, false).send_dllp(Picoseconds(1845)), Picoseconds(4000));
    }

    /// 59 lines of 80 bytes are 20 flits.
    #[test]
    fn flits_are_filled() {
        let mut wire = serializer(Generation::Gen6, 16, false);
        let mut end = Picoseconds::ZERO;
        for _ in 0..59_000 {
            end = wire.send_tlp(&LINE, wire.free_at());
        }
        assert_eq!(end, Picoseconds(2000 * 20_000));
    }

    #[test]
    fn ordered_sets_take_their_share_of_a_full_wire_and_none_of_an_idle_one() {
        for (generation, interval, length) in [(Generation::Gen1, 1538, 4), (Generation::Gen3, 6000, 16)] {
            let mut wire = serializer(generation, 1, true);
            let mut end = Picoseconds::ZERO;
            for _ in 0..100_000 {
                end = wire.send_tlp(&LINE, end);
            }
            let plain = WireTime::of_bytes(generation, Lanes::new(1).unwrap(), 8_800_000).to_ps();
            let expected = plain.0 as f64 * interval as f64 / (interval - length) as f64;
            assert!((end.0 as f64 / expected - 1.0).abs() < 1e-5, "{end} of {expected} ps");
            let sets = wire.carried().ordered_sets;
            let idle = wire.send_tlp(&LINE, Picoseconds(end.0 * 3));
            let alone = WireTime::of_bytes(generation, Lanes::new(1).unwrap(), 88 + length).to_ps();
            assert!(idle.since(Picoseconds(end.0 * 3)) <= alone);
            assert!(wire.carried().ordered_sets <= sets + 1);
        }
    }
}
