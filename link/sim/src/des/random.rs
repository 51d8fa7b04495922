//! Randomness that a seed determines, one stream for each part of a model.

use std::hash::Hasher;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use siphasher::sip::SipHasher24;

/// A stream of random numbers; use it through the traits of `rand`.
///
/// The algorithm is named and fixed, unlike that of `rand::rngs::SmallRng`, which may change with a version and differs
/// between 32 and 64 bits: a snapshot of a run must outlive an update.
pub type Stream = Xoshiro256PlusPlus;

/// The stream of the part called `part` in the run of `seed`.
///
/// Two parts share nothing, so that a part that is added, or draws more, changes no other. The name is hashed with
/// SipHash-2-4, whose key is the seed; it is part of the result of a run, as the seed is.
pub fn stream(seed: u64, part: &str) -> Stream {
    let mut hasher = SipHasher24::new_with_keys(seed, 0);
    hasher.write(part.as_bytes());
    Stream::seed_from_u64(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    fn first(seed: u64, part: &str) -> u64 {
        stream(seed, part).random()
    }

    #[test]
    fn seed_and_part_determine_a_stream() {
        assert_eq!(first(1, "core 0"), first(1, "core 0"));
        assert_ne!(first(1, "core 0"), first(1, "core 1"));
        assert_ne!(first(1, "core 0"), first(2, "core 0"));
    }

    /// Snapshots of figures depend on these numbers: a change is a change of every seeded run.
    #[test]
    fn the_numbers_are_those_of_every_version() {
        let mut drawn = stream(42, "write-combining buffers");
        let numbers: [u64; 2] = [drawn.random(), drawn.random()];
        assert_eq!(numbers, SNAPSHOT);
    }

    const SNAPSHOT: [u64; 2] = [12_960_467_979_577_705_111, 1_946_609_591_300_131_858];
}
