//! The words of the table of connections: where the two ends of a connection lie, what a word says, and the order in which an end
//! publishes its own and looks for the other. No file is touched here.
//!
//! ```text
//! 0     format (8 bytes), key of the hash (16 bytes), zeros up to 4096
//! 4096  262,144 words of 8 bytes: two neighbours for each pair of ends
//! ```
//! A word is `tag:32 | generation:19 | place:13` from the highest bit on; 0 is free, and a generation is never 0. Every number is
//! little-endian. Place and tag come from a hash (SipHash-1-3) of the network namespace and both addresses, so that nobody without
//! the key can choose addresses whose words fall together.

use std::hash::Hasher;
use std::net::IpAddr;
use std::num::NonZeroU64;

use beeline_tcp::Tuple;
use siphasher::sip::SipHasher13;

use crate::registry::words::{HOLDERS, WORD_BYTES};

/// What the file of a table begins with.
pub(crate) const FORMAT: u64 = u64::from_le_bytes(*b"BeeCon\x00\x01");
pub(crate) const KEY_BYTES: usize = 16;
pub(crate) const KEY_OFFSET: u64 = WORD_BYTES as u64;
const PAIRS: u64 = 1 << 17;
const WORDS_OFFSET: u64 = 4096;
/// Bytes of the file of a table.
pub(crate) const FILE_BYTES: u64 = WORDS_OFFSET + 2 * PAIRS * WORD_BYTES as u64;

const TAG_SHIFT: u32 = 32;
const PLACE_BITS: u32 = HOLDERS.ilog2();
const GENERATION_MASK: u64 = (1 << (TAG_SHIFT - PLACE_BITS)) - 1;

/// With what the addresses are hashed; one for each table.
#[derive(Clone, Copy)]
pub(crate) struct Key(pub(crate) [u8; KEY_BYTES]);

/// Where the ends of a connection have their words, as one of them sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) own_slot: usize,
    pub(crate) other_slot: usize,
    tag: u32,
}

/// Who is at an end: a place in the list of members, and which of those who have had the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resident {
    pub(crate) place: u16,
    generation: u32,
}

/// The words of a table, for one look.
pub(crate) trait Words {
    type Error;
    fn write(&self, slot: usize, word: u64) -> Result<(), Self::Error>;
    /// What was written before is visible to everybody before anything after it is read.
    fn barrier(&self);
    fn read(&self, slot: usize) -> Result<u64, Self::Error>;
}

impl Resident {
    /// Who joined under `number` and has `place`; `None` for a number that has no generation.
    pub(crate) fn new(place: u16, number: NonZeroU64) -> Option<Self> {
        let generation = (number.get() & GENERATION_MASK) as u32;
        (generation != 0 && usize::from(place) < HOLDERS).then_some(Resident { place, generation })
    }

    fn to_word(self, tag: u32) -> u64 {
        u64::from(tag) << TAG_SHIFT | u64::from(self.generation) << PLACE_BITS | u64::from(self.place)
    }

    /// Who a word says is at the end with this tag.
    fn from_word(word: u64, tag: u32) -> Option<Self> {
        let place = (word & (HOLDERS as u64 - 1)) as u16;
        let generation = (word >> PLACE_BITS & GENERATION_MASK) as u32;
        ((word >> TAG_SHIFT) as u32 == tag && generation != 0).then_some(Resident { place, generation })
    }
}

impl Key {
    /// Where the ends have their words; `None` where both ends are one socket. The other end computes the same with the roles exchanged.
    pub(crate) fn spot(&self, namespace_cookie: u64, own: Tuple) -> Option<Spot> {
        let (local, remote) = (own.local.ip(), own.remote.ip());
        let (own_end, other_end) = (end_bytes(local, own.local.port()), end_bytes(remote, own.remote.port()));
        if own_end == other_end {
            return None;
        }
        let is_first = own_end < other_end;
        let mut hasher = SipHasher13::new_with_key(&self.0);
        hasher.write(&namespace_cookie.to_le_bytes());
        hasher.write(if is_first { &own_end } else { &other_end });
        hasher.write(if is_first { &other_end } else { &own_end });
        let hash = hasher.finish();
        let slot = 2 * (hash >> (u64::BITS - PAIRS.ilog2())) as usize;
        let (own_slot, other_slot) = if is_first { (slot, slot + 1) } else { (slot + 1, slot) };
        Some(Spot { own_slot, other_slot, tag: hash as u32 })
    }
}

/// An address and a port; one of IPv4 as IPv6 writes it.
pub(crate) fn end_bytes(address: IpAddr, port: u16) -> [u8; 18] {
    let address = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let mut bytes = [0; 18];
    bytes[..16].copy_from_slice(&address.octets());
    bytes[16..].copy_from_slice(&port.to_be_bytes());
    bytes
}

/// Publishes that `resident` is at one end, and then looks who is at the other. Of two ends that do so at once at least one finds
/// the other, unless somebody else's word was written over it.
pub(crate) fn publish_and_look<W: Words>(
    words: &W,
    spot: Spot,
    resident: Resident,
) -> Result<Option<Resident>, W::Error> {
    words.write(spot.own_slot, resident.to_word(spot.tag))?;
    // Pairs with itself at the other end: whoever passes it later sees what the other has written.
    words.barrier();
    look(words, spot)
}

/// Who is at the other end.
pub(crate) fn look<W: Words>(words: &W, spot: Spot) -> Result<Option<Resident>, W::Error> {
    Ok(Resident::from_word(words.read(spot.other_slot)?, spot.tag))
}

/// Where a word lies in the file.
pub(crate) fn word_offset(slot: usize) -> u64 {
    WORDS_OFFSET + slot as u64 * WORD_BYTES as u64
}

#[cfg(loom)]
#[cfg(test)]
#[path = "words_loom.rs"]
mod loom_models;

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::cell::RefCell;
    use std::collections::{HashMap, HashSet};
    use std::convert::Infallible;
    use std::net::SocketAddr;

    use proptest::prelude::*;

    use super::*;

    const KEY: Key = Key([7; KEY_BYTES]);

    /// Words of one thread; whatever was not written is 0.
    #[derive(Default)]
    struct Plain(RefCell<HashMap<usize, u64>>);

    impl Words for Plain {
        type Error = Infallible;

        fn write(&self, slot: usize, word: u64) -> Result<(), Infallible> {
            self.0.borrow_mut().insert(slot, word);
            Ok(())
        }

        fn barrier(&self) {}

        fn read(&self, slot: usize) -> Result<u64, Infallible> {
            Ok(self.0.borrow().get(&slot).copied().unwrap_or(0))
        }
    }

    fn resident(place: u16) -> Resident {
        Resident::new(place, NonZeroU64::new(u64::from(place) + 1).unwrap()).unwrap()
    }

    fn tuple(local: &str, remote: &str) -> Tuple {
        Tuple::new(local.parse().unwrap(), remote.parse().unwrap())
    }

    #[test]
    fn layout_is_as_documented() {
        let generation_1 = NonZeroU64::new(0x1234_5678_0000_0001).unwrap();
        let word = Resident::new(0x1fff, generation_1).unwrap().to_word(0xabcd_ef01);
        assert_eq!(word, 0xabcd_ef01 << 32 | 1 << 13 | 0x1fff);
        assert_eq!((word_offset(0), word_offset(262_143) + 8, FILE_BYTES), (4096, 2_101_248, 2_101_248));
        let no_generation = NonZeroU64::new(1 << 19).unwrap();
        assert_eq!((Resident::new(0, no_generation), Resident::new(0x2000, generation_1)), (None, None));
    }

    #[test]
    fn hash_is_the_same_in_every_build() {
        let spot = KEY.spot(5, tuple("127.0.0.1:80", "127.0.0.1:40000")).unwrap();
        // As another implementation of SipHash-1-3 has it.
        assert_eq!((spot.own_slot, spot.other_slot, spot.tag), (163_964, 163_965, 4_214_068_988));
    }

    #[test]
    fn ends_share_neighbouring_words_whatever_the_guise_of_their_addresses() {
        let (a, b) = ("[::ffff:127.0.0.1]:80", "127.0.0.1:40000");
        let own = KEY.spot(5, tuple(a, b)).unwrap();
        let other = KEY.spot(5, tuple(b, "127.0.0.1:80")).unwrap();
        assert_eq!((own.own_slot, own.other_slot), (other.other_slot, other.own_slot));
        assert_eq!((own.own_slot ^ own.other_slot, own.tag), (1, other.tag));
        assert_ne!(KEY.spot(6, tuple(a, b)), Some(own), "another namespace");
        assert_ne!(Key([8; KEY_BYTES]).spot(5, tuple(a, b)), Some(own), "another key");
        assert_eq!(KEY.spot(5, tuple(a, "127.0.0.1:80")), None, "one socket");
    }

    #[test]
    fn ports_in_a_row_are_spread() {
        let server: SocketAddr = "10.0.0.1:80".parse().unwrap();
        let ports = 10_000..30_000_u16;
        let slots = ports.map(|port| {
            KEY.spot(1, Tuple::new(server, SocketAddr::new(server.ip(), port))).unwrap().own_slot / 2
        });
        // 20,000 balls into 131,072 urns leave 121,600 +- 90 of them empty.
        let used = slots.collect::<HashSet<_>>().len();
        assert!((18_100..18_900).contains(&used), "{used}");
    }

    proptest! {
        #[test]
        fn whoever_comes_second_finds_the_first(
            namespace: u64, a: SocketAddr, b: SocketAddr, first in 0_u16..8192, second in 0_u16..8192,
        ) {
            let tuple = Tuple::new(a, b);
            prop_assume!(tuple.local != tuple.remote);
            let words = Plain::default();
            let spots = [tuple, tuple.mirrored()].map(|tuple| KEY.spot(namespace, tuple));
            let [Some(own), Some(other)] = spots else {
                // Addresses of one link that differ in the link alone.
                return Ok(());
            };
            let Ok(found) = publish_and_look(&words, own, resident(first));
            prop_assert_eq!(found, None);
            let Ok(found) = publish_and_look(&words, other, resident(second));
            prop_assert_eq!(found, Some(resident(first)));
            let Ok(found) = look(&words, own);
            prop_assert_eq!(found, Some(resident(second)));
        }

        #[test]
        fn any_word_names_a_place_that_there_is_or_nobody(word: u64, tag: u32) {
            for tag in [tag, (word >> 32) as u32] {
                let found = Resident::from_word(word, tag);
                prop_assert!(found.is_none_or(|found| usize::from(found.place) < HOLDERS));
                prop_assert!(found.is_none_or(|found| found.to_word(tag) == word));
            }
        }

        #[test]
        fn any_addresses_have_words_of_the_file(key: [u8; KEY_BYTES], namespace: u64, a: SocketAddr, b: SocketAddr) {
            let Some(spot) = Key(key).spot(namespace, Tuple::new(a, b)) else { return Ok(()) };
            let last = spot.own_slot.max(spot.other_slot);
            prop_assert!(word_offset(last) + WORD_BYTES as u64 <= FILE_BYTES);
            prop_assert_eq!(spot.own_slot ^ spot.other_slot, 1);
        }
    }
}
