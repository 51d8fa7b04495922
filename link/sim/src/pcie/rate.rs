//! How fast a link is: generation, encoding, lanes, and the time of a byte, exactly.

use std::fmt;

use crate::des::Picoseconds;

/// A generation of PCI Express, which fixes transfer rate and encoding (Base Specification 6.0, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// 2.5 GT/s, 8b/10b.
    Gen1,
    /// 5 GT/s, 8b/10b.
    Gen2,
    /// 8 GT/s, 128b/130b.
    Gen3,
    /// 16 GT/s, 128b/130b.
    Gen4,
    /// 32 GT/s, 128b/130b.
    Gen5,
    /// 64 GT/s, flits of 256 bytes.
    Gen6,
}

/// What stands around the bytes of packets on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// 10 bits carry a byte; a packet has a start and an end symbol.
    Symbols8b10b,
    /// 130 bits carry 16 bytes; a packet starts with a token of 4 bytes that holds its sequence number.
    Blocks128b130b,
    /// 256 bytes with forward error correction carry 236 bytes of TLPs; packets have no frame of their own.
    Flits,
}

impl Generation {
    /// All generations, oldest first.
    pub const ALL: [Generation; 6] = [
        Generation::Gen1,
        Generation::Gen2,
        Generation::Gen3,
        Generation::Gen4,
        Generation::Gen5,
        Generation::Gen6,
    ];

    /// Transfers a second and lane, in millions.
    pub const fn megatransfers_per_s(self) -> u64 {
        match self {
            Generation::Gen1 => 2_500,
            Generation::Gen2 => 5_000,
            Generation::Gen3 => 8_000,
            Generation::Gen4 => 16_000,
            Generation::Gen5 => 32_000,
            Generation::Gen6 => 64_000,
        }
    }

    /// Returns the line code of the generation.
    pub const fn encoding(self) -> Encoding {
        match self {
            Generation::Gen1 | Generation::Gen2 => Encoding::Symbols8b10b,
            Generation::Gen3 | Generation::Gen4 | Generation::Gen5 => Encoding::Blocks128b130b,
            Generation::Gen6 => Encoding::Flits,
        }
    }

    /// The time of a symbol, in which the limits of the data link layer are written: ten bits with 8b/10b, else eight.
    pub const fn symbol(self) -> Picoseconds {
        let bits = match self.encoding() {
            Encoding::Symbols8b10b => 10,
            Encoding::Blocks128b130b | Encoding::Flits => 8,
        };
        Picoseconds(bits * 1_000_000 / self.megatransfers_per_s())
    }
}

/// The width of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lanes(u8);

impl Lanes {
    /// A width; `None` unless it is 1, 2, 4, 8, 12 or 16.
    pub const fn new(lanes: u8) -> Option<Lanes> {
        match lanes {
            1 | 2 | 4 | 8 | 12 | 16 => Some(Lanes(lanes)),
            _ => None,
        }
    }

    /// Returns how many lanes the link has.
    pub const fn count(self) -> u64 {
        self.0 as u64
    }
}

impl fmt::Display for Lanes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "x{}", self.0)
    }
}

/// A time on the wire, in 1536ths of a picosecond: bytes of every generation and width take whole numbers of them, so that
/// a long stream has no rounding error. 2^64 of them are more than three hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireTime(pub u64);

impl WireTime {
    /// In a picosecond: the least common multiple of the denominators, 512 for x16 and 384 for x12 of generation 5.
    pub const PER_PS: u64 = 1536;

    /// The time of `bytes` bytes on the wire, without what a block, symbol or flit adds at its ends.
    pub const fn of_bytes(generation: Generation, lanes: Lanes, bytes: u64) -> WireTime {
        // Bits for eight bytes, so that the 65/8 bits of a byte of 128b/130b are a whole number.
        let bits_of_8 = match generation.encoding() {
            Encoding::Symbols8b10b => 80,
            Encoding::Blocks128b130b => 65,
            Encoding::Flits => 64,
        };
        let byte =
            WireTime::PER_PS * bits_of_8 * 1_000_000 / 8 / generation.megatransfers_per_s() / lanes.count();
        WireTime(byte * bytes)
    }

    /// Converts a time to the finer unit.
    ///
    /// # Panics
    /// If it is more than three hours.
    #[inline]
    pub const fn from_ps(time: Picoseconds) -> WireTime {
        match time.0.checked_mul(WireTime::PER_PS) {
            Some(ticks) => WireTime(ticks),
            None => panic!("a time on the wire is less than three hours"),
        }
    }

    /// The first picosecond that is not before this time.
    #[inline]
    pub const fn to_ps(self) -> Picoseconds {
        Picoseconds(self.0.div_ceil(WireTime::PER_PS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No division in `of_bytes` may round: 8 bytes on n lanes, multiplied out again.
    #[test]
    fn a_byte_is_a_whole_number_of_ticks() {
        for generation in Generation::ALL {
            for lanes in [1, 2, 4, 8, 12, 16].map(|lanes| Lanes::new(lanes).unwrap()) {
                let bits_of_8: u128 = match generation.encoding() {
                    Encoding::Symbols8b10b => 80,
                    Encoding::Blocks128b130b => 65,
                    Encoding::Flits => 64,
                };
                let ticks = u128::from(WireTime::of_bytes(generation, lanes, 8).0);
                let rate = u128::from(generation.megatransfers_per_s() * lanes.count());
                assert_eq!(ticks * rate, bits_of_8 * 1536 * 1_000_000, "{generation:?} {lanes}");
            }
        }
    }

    #[test]
    fn symbols_and_bytes_take_the_times_of_the_specification() {
        assert_eq!(Generation::ALL.map(|g| g.symbol().0), [4000, 2000, 1000, 500, 250, 125]);
        let x16 = Lanes::new(16).unwrap();
        assert_eq!(WireTime::of_bytes(Generation::Gen6, x16, 256).to_ps(), Picoseconds(2000), "a flit");
        assert_eq!(WireTime::of_bytes(Generation::Gen1, x16, 1).to_ps(), Picoseconds(250));
        // 126.953125 ps, rounded up.
        let x8 = Lanes::new(8).unwrap();
        assert_eq!(WireTime::of_bytes(Generation::Gen3, x8, 1).to_ps(), Picoseconds(127));
        assert!(Lanes::new(3).is_none() && Lanes::new(32).is_none());
    }
}
