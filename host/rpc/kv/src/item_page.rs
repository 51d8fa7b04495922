//! A page of items: a line that says what is where, and a line for each item.
//!
//! The head has a byte for each of the others: 0 where there is none, else seven bits of the hash of its key. An item lies in one
//! of the two lines that its hash says, its homes, if one was free when it came: most are found without a look at the head. Heads lie at
//! another line in each page, because caches have few places for lines that lie alike in their pages.

use crate::arena::{Arena, NONE, PAGE_BYTES};
use crate::blocks::{Pieces, set_line, start_of};
use crate::key::{KEY_BYTES, Key};

/// Longest value that lies beside its key.
pub(crate) const INLINE_BYTES: usize = 40;
pub(crate) const PAGE_ITEMS: u32 = 63;

const LINE_BYTES: usize = 64;
const LINES: u32 = (PAGE_BYTES / LINE_BYTES) as u32;
/// Of an item's line: the bytes of its value and whether a long one lies in one piece, the first block of a long one, a short one
/// itself.
const LENGTH: usize = KEY_BYTES;
const FIRST: usize = KEY_BYTES + 4;
const VALUE: usize = KEY_BYTES + 8;
const _: () = assert!(VALUE + INLINE_BYTES == LINE_BYTES);
/// Beside the bytes of a value: it lies in one piece.
const WHOLE: u32 = 1 << 31;
/// In place of the bytes of a value: the line has no item.
const NO_ITEM: u32 = u32::MAX;

/// The first byte of a head is not an item's: how many bits of a hash lead to the page.
const DEPTH: usize = 0;
/// Set in the byte of each item.
const THERE: u8 = 0x80;
const LOWS: u64 = u64::from_le_bytes([1; 8]);
const HIGHS: u64 = u64::from_le_bytes([THERE; 8]);
const HEAD_WORDS: usize = LINE_BYTES / 8;

/// Where an item is: the number of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

impl Place {
    pub(crate) fn line(self) -> u32 {
        self.0
    }

    #[inline(always)]
    fn start(self) -> usize {
        self.0 as usize * LINE_BYTES
    }

    pub(crate) fn page(self) -> u32 {
        self.0 / LINES
    }

    /// The item of a page whose byte in the head is this one.
    #[inline(always)]
    fn of(page: u32, tag: u32) -> Self {
        Place(page * LINES + (page + tag) % LINES)
    }

    /// The homes of an item with this hash, of bits that lead to no page: a line and its neighbour, which the cache fetches with
    /// it.
    #[inline(always)]
    fn homes(page: u32, hash: u64) -> [Self; 2] {
        let tag = 1 + (hash >> HOME_LSB) as u32 % LINES * PAGE_ITEMS / LINES;
        // The first line is the head's, and the second has no neighbour but itself.
        let neighbour = if tag == 1 { 1 } else { tag ^ 1 };
        [Place::of(page, tag), Place::of(page, neighbour)]
    }

    /// Where its byte in the head of its page is.
    #[inline(always)]
    fn tag(self) -> usize {
        head_of(self.page()) + (self.0.wrapping_sub(self.page()) % LINES) as usize
    }
}

#[inline(always)]
fn head_of(page: u32) -> usize {
    Place(page * LINES + page % LINES).start()
}

const HOME_LSB: u32 = 10;

/// The byte of an item with this hash, from bits that lead to no page.
#[inline(always)]
fn tag_of(hash: u64) -> u8 {
    THERE | (hash >> 57) as u8
}

/// The value of a key.
#[derive(Clone, Debug)]
pub(crate) enum Found<'a> {
    Whole(&'a [u8]),
    InPieces(Pieces<'a>),
}

impl Arena {
    /// Makes a page one of items, of which it has none.
    pub(crate) fn begin_items(&mut self, page: u32, depth: u32) {
        let start = head_of(page);
        self.bytes_mut()[start..start + LINE_BYTES].fill(0);
        self.set_depth(page, depth);
        for tag in 1..LINES {
            self.set_word(Place::of(page, tag).start() + LENGTH, NO_ITEM);
        }
    }

    /// How many bits of a hash lead to the page.
    pub(crate) fn depth(&self, page: u32) -> u32 {
        u32::from(self.bytes()[head_of(page) + DEPTH])
    }

    pub(crate) fn set_depth(&mut self, page: u32, depth: u32) {
        debug_assert!(depth < u32::from(THERE));
        self.bytes_mut()[head_of(page) + DEPTH] = depth as u8;
    }

    #[inline(always)]
    fn head_word(&self, page: u32, index: usize) -> u64 {
        u64::from_le_bytes(self.bytes_at(head_of(page) + index * 8))
    }

    pub(crate) fn items(&self, page: u32) -> u32 {
        // By bytes, none of which can overflow: not every machine that runs this counts bits in an instruction.
        let in_bytes = (0..HEAD_WORDS).map(|index| (self.head_word(page, index) & HIGHS) >> 7).sum::<u64>();
        (in_bytes.wrapping_mul(LOWS) >> 56) as u32
    }

    /// The item of this key.
    #[inline(always)]
    pub(crate) fn find(&self, page: u32, hash: u64, key: Key) -> Option<Place> {
        for home in Place::homes(page, hash) {
            if self.is_of(home, key) && self.has_item(home) {
                return Some(home);
            }
        }
        self.find_elsewhere(page, hash, key)
    }

    #[inline(always)]
    fn is_of(&self, place: Place, key: Key) -> bool {
        self.bytes_at(place.start()) == *key.as_bytes()
    }

    #[inline(always)]
    fn has_item(&self, place: Place) -> bool {
        self.word(place.start() + LENGTH) != NO_ITEM
    }

    #[inline(never)]
    fn find_elsewhere(&self, page: u32, hash: u64, key: Key) -> Option<Place> {
        let wanted = u64::from_le_bytes([tag_of(hash); 8]);
        for index in 0..HEAD_WORDS {
            let differing = self.head_word(page, index) ^ wanted;
            // A zero byte is found for certain; another one above it may be taken for one, which its key shows.
            let mut hits = differing.wrapping_sub(LOWS) & !differing & HIGHS;
            while hits != 0 {
                let tag = index as u32 * 8 + hits.trailing_zeros() / 8;
                if tag > 0 && self.is_of(Place::of(page, tag), key) {
                    return Some(Place::of(page, tag));
                }
                hits &= hits - 1;
            }
        }
        None
    }

    /// Places of a page that have an item now.
    fn places(&self, page: u32) -> impl Iterator<Item = Place> + use<> {
        let mut there = (0..HEAD_WORDS).fold(0, |there, index| {
            let bits = (self.head_word(page, index) & HIGHS) >> 7;
            // The lowest bit of each byte goes to the highest byte, each to a bit of its own.
            there | (bits.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (index * 8)
        });
        std::iter::from_fn(move || {
            let tag = there.trailing_zeros();
            there &= there.wrapping_sub(1);
            (tag < LINES).then(|| Place::of(page, tag))
        })
    }

    /// Puts an item without a value into a page, unless it is full.
    pub(crate) fn insert(&mut self, page: u32, hash: u64, key: Key) -> Option<Place> {
        let home = Place::homes(page, hash).into_iter().find(|home| !self.has_item(*home));
        let free = home.or_else(|| self.free_place(page))?;
        self.bytes_mut()[free.tag()] = tag_of(hash);
        let start = free.start();
        self.bytes_mut()[start..start + KEY_BYTES].copy_from_slice(key.as_bytes());
        self.set_value(free, 0, NONE, false);
        Some(free)
    }

    fn free_place(&self, page: u32) -> Option<Place> {
        (0..HEAD_WORDS).find_map(|index| {
            let first_is_depth = if index == 0 { u64::from(THERE) } else { 0 };
            let free = !(self.head_word(page, index) | first_is_depth) & HIGHS;
            (free != 0).then(|| Place::of(page, index as u32 * 8 + free.trailing_zeros() / 8))
        })
    }

    /// Takes an item out of its page; its value stays where it is.
    pub(crate) fn take_out(&mut self, place: Place) {
        self.bytes_mut()[place.tag()] = 0;
        self.set_word(place.start() + LENGTH, NO_ITEM);
    }

    pub(crate) fn key(&self, place: Place) -> Key {
        Key::new(self.bytes_at(place.start()))
    }

    /// Bytes of an item's value.
    #[inline(always)]
    pub(crate) fn length(&self, place: Place) -> usize {
        (self.word(place.start() + LENGTH) & !WHOLE) as usize
    }

    /// The first block of an item's value, if it lies in blocks.
    pub(crate) fn first_block(&self, place: Place) -> Option<u32> {
        (self.length(place) > INLINE_BYTES).then(|| self.word(place.start() + FIRST))
    }

    /// Says how long an item's value is, where it begins if it is a long one, and whether that lies in one piece.
    #[inline(always)]
    pub(crate) fn set_value(&mut self, place: Place, bytes: usize, first: u32, is_whole: bool) {
        let whole = if is_whole { WHOLE } else { 0 };
        self.set_word(place.start() + LENGTH, bytes as u32 | whole);
        self.set_word(place.start() + FIRST, first);
    }

    /// Where a short value lies.
    pub(crate) fn inline_mut(&mut self, place: Place) -> &mut [u8] {
        let start = place.start();
        let bytes = self.length(place).min(INLINE_BYTES);
        &mut self.bytes_mut()[start + VALUE..start + VALUE + bytes]
    }

    /// An item's value.
    #[inline(always)]
    pub(crate) fn value(&self, place: Place) -> Found<'_> {
        let (start, length) = (place.start(), self.word(place.start() + LENGTH));
        let bytes = (length & !WHOLE) as usize;
        if bytes <= INLINE_BYTES {
            return Found::Whole(&self.bytes()[start + VALUE..start + VALUE + bytes]);
        }
        let first = self.word(start + FIRST);
        if length & WHOLE == 0 {
            return Found::InPieces(Pieces::new(self, first, bytes));
        }
        let start = start_of(first);
        Found::Whole(&self.bytes()[start..start + bytes])
    }

    /// A long value does not lie in one piece any more.
    pub(crate) fn is_divided(&mut self, line: u32) {
        let at = Place(line).start() + LENGTH;
        self.set_word(at, self.word(at) & !WHOLE);
    }

    /// Moves those items of a page whose hashes `is_moved` says it of to another page, which has room for them. Of those that
    /// stay, some may go home: their homes were taken when they came and are not any more.
    pub(crate) fn move_items(
        &mut self,
        from: u32,
        to: u32,
        hash_of: impl Fn(Key) -> u64,
        is_moved: impl Fn(u64) -> bool,
    ) {
        let mut away = [(Place(0), Place(0), 0); PAGE_ITEMS as usize];
        let mut away_count = 0;
        for place in self.places(from) {
            let key = self.key(place);
            let hash = hash_of(key);
            let [home, _] = Place::homes(from, hash);
            if is_moved(hash) {
                let there = self.insert(to, hash, key).expect("room for these items");
                self.move_item(place, there);
            } else if place != home {
                away[away_count] = (place, home, tag_of(hash));
                away_count += 1;
            }
        }
        for &(place, home, tag) in &away[..away_count] {
            if !self.has_item(home) {
                self.bytes_mut()[home.tag()] = tag;
                self.move_item(place, home);
            }
        }
    }

    fn move_item(&mut self, from: Place, to: Place) {
        self.bytes_mut().copy_within(from.start()..from.start() + LINE_BYTES, to.start());
        if let Some(first) = self.first_block(to) {
            set_line(self, first, to.line());
        }
        self.take_out(from);
    }
}
