//! The words of a registry's file: where they lie and what they say. No file is touched here.
//!
//! ```text
//! 0        format (8 bytes), zeros up to 4096
//! 4096     holders: 8,192 numbers of 8 bytes, 0: nobody's
//! 69,632   buckets: 2,048 of 64 words of 8 bytes
//! ```
//! A word is `kind:3 | id:32 | holder:13 | slot:16` from the highest bit on; 0 is free. Every number is little-endian. An entry lies in
//! the bucket that its kind and id give, so a word that lies in another one is none.

use std::num::NonZeroU64;

/// What the file of a registry begins with.
pub(crate) const FORMAT: u64 = u64::from_le_bytes(*b"BeeReg\x00\x01");
/// Processes that can have entries at the same time.
pub(crate) const HOLDERS: usize = 1 << 13;
pub(crate) const BUCKETS: usize = 1 << 11;
pub(crate) const BUCKET_WORDS: usize = 64;
pub(crate) const WORD_BYTES: usize = 8;
pub(crate) const BUCKET_BYTES: usize = BUCKET_WORDS * WORD_BYTES;
const HOLDERS_OFFSET: u64 = 4096;
const BUCKETS_OFFSET: u64 = HOLDERS_OFFSET + (HOLDERS * WORD_BYTES) as u64;
/// Bytes of the file of a registry.
pub(crate) const FILE_BYTES: u64 = BUCKETS_OFFSET + (BUCKETS * BUCKET_BYTES) as u64;

const ID_SHIFT: u32 = 29;
const HOLDER_SHIFT: u32 = 16;
const KIND_SHIFT: u32 = 61;

/// What sort of thing an entry names; entries of different kinds have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(u8);

impl Kind {
    /// The kind of this number, 1 to 7; `None` for any other.
    pub const fn new(number: u8) -> Option<Kind> {
        match number {
            1..=7 => Some(Kind(number)),
            _ => None,
        }
    }

    /// Returns its number.
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// What a holder puts under an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    pub kind: Kind,
    pub id: u32,
    /// Where its holder says more about it; nothing to the registry.
    pub slot: u16,
}

/// An entry of a registry, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub entry: Entry,
    /// With which its holder joined.
    pub number: NonZeroU64,
}

/// An entry and the place of its holder: a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) entry: Entry,
    pub(crate) holder: u16,
}

impl Placed {
    pub(crate) fn to_word(self) -> u64 {
        let Entry { kind, id, slot } = self.entry;
        debug_assert!(usize::from(self.holder) < HOLDERS);
        u64::from(kind.0) << KIND_SHIFT
            | u64::from(id) << ID_SHIFT
            | u64::from(self.holder) << HOLDER_SHIFT
            | u64::from(slot)
    }

    /// What a word of a bucket says; `None` where it is free or nobody can have put it there.
    pub(crate) fn from_word(word: u64, bucket: usize) -> Option<Self> {
        let kind = Kind::new((word >> KIND_SHIFT) as u8)?;
        let entry = Entry { kind, id: (word >> ID_SHIFT) as u32, slot: word as u16 };
        let holder = (word >> HOLDER_SHIFT) as u16 & (HOLDERS - 1) as u16;
        (bucket_of(kind, entry.id) == bucket).then_some(Placed { entry, holder })
    }

    fn is_of(self, kind: Kind, id: u32) -> bool {
        (self.entry.kind, self.entry.id) == (kind, id)
    }
}

/// The bucket of an id: neighbours lie far apart.
pub(crate) fn bucket_of(kind: Kind, id: u32) -> usize {
    const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;
    let key = u64::from(kind.0) << 32 | u64::from(id);
    (key.wrapping_mul(GOLDEN_RATIO) >> (u64::BITS - BUCKETS.ilog2())) as usize
}

/// Where the number of a holder lies in the file.
pub(crate) fn holder_offset(holder: u16) -> u64 {
    HOLDERS_OFFSET + u64::from(holder) * WORD_BYTES as u64
}

/// Where a word of a bucket lies in the file.
pub(crate) fn word_offset(bucket: usize, place: usize) -> u64 {
    BUCKETS_OFFSET + (bucket * BUCKET_BYTES + place * WORD_BYTES) as u64
}

/// Little-endian words; bytes at the end that are no whole word are left out.
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<WORD_BYTES>().0.iter().map(|word| u64::from_le_bytes(*word))
}

/// The words of one bucket, as somebody read them.
#[derive(Clone, Debug)]
pub(crate) struct Bucket<'a> {
    number: usize,
    bytes: &'a [u8],
}

/// What is to be written so that an entry is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// The word goes there, after zeros to the places of those that have died.
    Put { place: usize, cleared: Vec<usize> },
    /// Somebody has an entry beside which the new one may not be.
    Taken,
    /// Every word is an entry of somebody who lives.
    Full,
}

impl<'a> Bucket<'a> {
    pub(crate) fn new(number: usize, bytes: &'a [u8]) -> Self {
        Bucket { number, bytes }
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Its entries with their places.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (usize, Placed)> {
        let number = self.number;
        let read = move |(place, word)| Placed::from_word(word, number).map(|placed| (place, placed));
        words(self.bytes).enumerate().filter_map(read)
    }

    pub(crate) fn entries_of(&self, kind: Kind, id: u32) -> impl Iterator<Item = (usize, Placed)> {
        self.entries().filter(move |(_, placed)| placed.is_of(kind, id))
    }

    /// Where this very word lies.
    pub(crate) fn place_of(&self, placed: Placed) -> Option<usize> {
        self.entries().find(|(_, found)| *found == placed).map(|(place, _)| place)
    }

    /// How `new` gets in, for who has the bucket's lock: entries of its id that have a living holder must be such that it `may` be
    /// beside them, and never the same word. Those of the dead go: of the same id at once, others where there is no room without.
    pub(crate) fn plan<E>(
        &self,
        new: Placed,
        mut is_alive: impl FnMut(u16) -> Result<bool, E>,
        mut may: impl FnMut(Placed) -> Result<bool, E>,
    ) -> Result<Plan, E> {
        let Entry { kind, id, .. } = new.entry;
        let mut cleared = Vec::new();
        for (place, found) in self.entries_of(kind, id) {
            if !is_alive(found.holder)? {
                cleared.push(place);
            } else if found == new || !may(found)? {
                return Ok(Plan::Taken);
            }
        }
        let is_free = |(_, word): &(usize, u64)| Placed::from_word(*word, self.number).is_none();
        let free = words(self.bytes).enumerate().find(is_free).map(|(place, _)| place);
        if let Some(place) = cleared.pop().or(free) {
            return Ok(Plan::Put { place, cleared });
        }
        for (place, found) in self.entries() {
            if !found.is_of(kind, id) && !is_alive(found.holder)? {
                cleared.push(place);
            }
        }
        Ok(cleared.pop().map_or(Plan::Full, |place| Plan::Put { place, cleared }))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    const A: Kind = Kind(1);

    fn placed(id: u32, holder: u16, slot: u16) -> Placed {
        Placed { entry: Entry { kind: A, id, slot }, holder }
    }

    /// A bucket of these words and zeros.
    fn bytes(words: impl IntoIterator<Item = u64>) -> Vec<u8> {
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        bytes.resize(BUCKET_BYTES, 0);
        bytes
    }

    /// What is planned where these holders live, and nothing may be beside anything.
    fn plan(bytes: &[u8], new: Placed, alive: &[u16]) -> Plan {
        let number = bucket_of(new.entry.kind, new.entry.id);
        let plan =
            Bucket::new(number, bytes).plan(new, |h| Ok::<_, Infallible>(alive.contains(&h)), |_| Ok(false));
        plan.unwrap()
    }

    #[test]
    fn layout_is_as_documented() {
        assert_eq!((holder_offset(0), word_offset(0, 0), FILE_BYTES), (4096, 69_632, 69_632 + (1 << 20)));
        let word = Placed { entry: Entry { kind: Kind(5), id: 0x89ab_cdef, slot: 0x1234 }, holder: 0x1fff };
        assert_eq!(word.to_word(), 5 << 61 | 0x89ab_cdef << 29 | 0x1fff << 16 | 0x1234);
        assert_eq!(word_offset(2047, 63) + 8, FILE_BYTES);
        assert_eq!((Kind::new(0), Kind::new(8), Kind::new(7).map(Kind::number)), (None, None, Some(7)));
    }

    #[test]
    fn ids_in_a_row_fill_buckets_evenly() {
        for kind in 1..=7 {
            let mut filled = vec![0; BUCKETS];
            (0..8 * BUCKETS as u32).for_each(|id| filled[bucket_of(Kind(kind), id)] += 1);
            assert!(filled.iter().all(|words| (4..=12).contains(words)), "{:?}", filled.iter().max());
        }
    }

    #[test]
    fn entry_takes_a_free_place_or_one_of_the_dead_and_no_other() {
        let (new, other) = (placed(7, 1, 0), placed(7, 2, 0));
        assert_eq!(plan(&bytes([]), new, &[1, 2]), Plan::Put { place: 0, cleared: vec![] });
        assert_eq!(plan(&bytes([other.to_word()]), new, &[1, 2]), Plan::Taken);
        assert_eq!(plan(&bytes([other.to_word()]), new, &[1]), Plan::Put { place: 0, cleared: vec![] });
        let two = bytes([other.to_word(), placed(7, 3, 0).to_word()]);
        assert_eq!(plan(&two, new, &[1]), Plan::Put { place: 1, cleared: vec![0] });
        assert_eq!(plan(&bytes([new.to_word()]), new, &[1]), Plan::Taken, "its own");
        // What nobody can have put there is no entry, and is overwritten.
        assert_eq!(plan(&bytes([0x1234, 1 << 61]), new, &[1]), Plan::Put { place: 0, cleared: vec![] });
    }

    #[test]
    fn full_bucket_has_room_where_somebody_has_died() {
        let new = placed(7, 1, 0);
        let bucket = bucket_of(A, 7);
        let ids = (8..).filter(|id| bucket_of(A, *id) == bucket).take(BUCKET_WORDS);
        let full = bytes(ids.enumerate().map(|(i, id)| placed(id, 2 + i as u16 % 2, 0).to_word()));
        assert_eq!(plan(&full, new, &[1, 2, 3]), Plan::Full);
        let Plan::Put { place: 63, cleared } = plan(&full, new, &[1, 2]) else { panic!("no room") };
        assert_eq!(cleared, (0..31).map(|i| 2 * i + 1).collect::<Vec<_>>());
    }

    #[test]
    fn what_may_be_beside_it_decides() {
        let (one, two) = (placed(7, 2, 5), placed(7, 3, 6));
        let two_words = bytes([one.to_word(), two.to_word()]);
        let bucket = Bucket::new(bucket_of(A, 7), &two_words);
        let plan = |may: &dyn Fn(Placed) -> bool| {
            bucket.plan(placed(7, 1, 0), |_| Ok::<_, Infallible>(true), |found| Ok(may(found))).unwrap()
        };
        assert_eq!(plan(&|_| true), Plan::Put { place: 2, cleared: vec![] });
        assert_eq!(plan(&|found| found == one), Plan::Taken);
        assert_eq!((bucket.place_of(two), bucket.place_of(placed(7, 3, 7))), (Some(1), None));
    }

    proptest! {
        #[test]
        fn word_says_what_was_put_in(kind in 1_u8..8, id: u32, holder in 0_u16..8192, slot: u16) {
            let kind = Kind(kind);
            let placed = Placed { entry: Entry { kind, id, slot }, holder };
            let bucket = bucket_of(kind, id);
            prop_assert_eq!(Placed::from_word(placed.to_word(), bucket), Some(placed));
            prop_assert_eq!(Placed::from_word(placed.to_word(), (bucket + 1) % BUCKETS), None);
        }
    }
}
