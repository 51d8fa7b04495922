//! The items of a store with one thread: pages that nobody else sees.
//!
//! One thread answers every client, so no request may take long, and memory that is bounded must stay usable whatever comes and
//! goes. Everything lies in pages of one size ([`Arena`]): items, a line each; values that do not fit their item's line, in
//! blocks ([`Blocks`]); and what leads to pages of items. The items are spread over parts by their hash, and each part has a
//! page of up to 1024 places that the hash chooses from, several of which may lead to one page of items. When that is full, half
//! of it goes to another page, and when two that were one are nearly empty, they are one again: a SET or DELETE moves 63 items,
//! the places of a part and the blocks of a page, at most.

use beeline_rpc::Request;

use crate::arena::{Arena, MAX_BYTES, NONE, PAGE_BYTES};
use crate::blocks::{Blocks, PAGE_BLOCKS, blocks_of, fill, is_one_piece};
use crate::error::OpenError;
use crate::hash::KeyHash;
use crate::item_page::{Found, INLINE_BYTES, PAGE_ITEMS, Place};
use crate::key::{KEY_BYTES, Key};
use crate::table::{Refused, Table};

/// Bits of a hash that choose from a part's places.
const MAX_DEPTH: u32 = 10;
const PLACES: u64 = 1 << MAX_DEPTH;
const PLACE_BYTES: usize = 4;
const LINE_BYTES: usize = 64;
const _: () = assert!(PLACES as usize * PLACE_BYTES == PAGE_BYTES);
/// Pages that a part has when all memory is pages of items: far less than its places can lead to, because some fill first. With
/// fewer of them nearly each item of a store that has few would lie in a page of its own: more pages than a TLB has places for.
const PART_PAGES: u32 = 256;
/// The part of an item is told by these bits of its hash: above those that choose in the part and in a page, below those of the
/// item's byte.
const PART_LSB: u32 = 20;
/// Bytes that a block counts for: its share of a page, rounded up.
const BLOCK_SHARE_BYTES: u64 = (PAGE_BYTES as u64).div_ceil(PAGE_BLOCKS as u64);
/// Items of a page as long as there is memory.
const ROOMY_ITEMS: u32 = 40;
/// What two pages that become one have together at most: so few that they are not two again soon.
const MERGED_ITEMS: u32 = PAGE_ITEMS / 2;

/// Items, and all memory that they have.
#[derive(Debug)]
pub(crate) struct SingleThreadTable {
    arena: Arena,
    blocks: Blocks,
    parts: Box<[Part]>,
    hash: KeyHash,
    items: u64,
    max_bytes: u64,
}

/// Items whose hashes agree in some bits.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// The page of its places; with a depth of 0 its one page of items, or none.
    page: u32,
    /// Bits of a hash that choose a place: as many as the deepest page of items has.
    depth: u32,
}

impl Part {
    const EMPTY: Part = Part { page: NONE, depth: 0 };

    /// Where the place is that a hash chooses. The first one is at another line in each page, as heads are.
    #[inline(always)]
    fn place(self, hash: u64) -> usize {
        let number = hash as usize & ((1 << self.depth) - 1);
        let page = self.page as usize;
        page * PAGE_BYTES + (page * LINE_BYTES + number * PLACE_BYTES) % PAGE_BYTES
    }
}

/// Where an item with some hash is, or would be.
#[derive(Clone, Copy, Debug)]
struct Way {
    part: usize,
    page: u32,
}

impl SingleThreadTable {
    /// # Errors
    /// The system does not give so much address space, or memory where it is to be taken at once.
    pub(crate) fn new(hash: KeyHash, max_bytes: u64, is_preallocated: bool) -> Result<Self, OpenError> {
        let max_bytes = max_bytes.min(MAX_BYTES);
        let memory = |error: beeline_mmio::MapError| OpenError::Memory { max_bytes, why: error.to_string() };
        let mut arena = Arena::new(max_bytes).map_err(memory)?;
        if is_preallocated {
            arena.populate().map_err(memory)?;
        } else {
            arena.bring_in_ahead();
        }
        let parts = (arena.pages() / PART_PAGES).next_power_of_two() as usize;
        let parts = vec![Part::EMPTY; parts].into_boxed_slice();
        Ok(SingleThreadTable { arena, blocks: Blocks::new(), parts, hash, items: 0, max_bytes })
    }

    /// Which part has the items of this hash.
    #[inline(always)]
    fn part_of(&self, hash: u64) -> usize {
        // A power of two of parts, so that this is a mask, and in bounds.
        (hash >> PART_LSB) as usize & (self.parts.len() - 1)
    }

    /// The page that has the items of this hash, if there is one.
    #[inline(always)]
    fn way(&self, hash: u64) -> Option<Way> {
        let part = self.part_of(hash);
        let found = self.parts[part];
        if found.depth > 0 {
            return Some(Way { part, page: self.arena.word(found.place(hash)) });
        }
        (found.page != NONE).then_some(Way { part, page: found.page })
    }

    #[inline(always)]
    fn find(&self, hash: u64, key: Key) -> Option<Place> {
        self.arena.find(self.way(hash)?.page, hash, key)
    }

    /// Blocks that can be had. A page that is used in part can be vacated, so free blocks are as good as free pages.
    fn free_blocks(&self) -> u64 {
        u64::from(self.arena.free_pages()) * u64::from(PAGE_BLOCKS) + self.blocks.free()
    }

    fn room_for(&self, blocks: u32, pages: u32) -> Result<(), Refused> {
        let needed = u64::from(blocks) + u64::from(pages * PAGE_BLOCKS);
        if needed <= self.free_blocks() {
            return Ok(());
        }
        let needed_bytes = u64::from(blocks) * BLOCK_SHARE_BYTES + u64::from(pages) * PAGE_BYTES as u64;
        Err(Refused { used_bytes: self.used_bytes(), max_bytes: self.max_bytes, needed_bytes })
    }

    /// A page, for which there is room.
    fn take_page(&mut self) -> u32 {
        if self.arena.free_pages() == 0 {
            self.blocks.vacate_page(&mut self.arena);
        }
        self.arena.take_page().expect("there is room for a page")
    }

    /// Makes sure that an item of this hash, to which this way leads, has a place, and that `blocks` blocks are there besides.
    fn make_room(&mut self, way: Option<Way>, hash: u64, blocks: u32) -> Result<Way, Refused> {
        let mut way = match way {
            Some(way) => way,
            None => {
                self.room_for(blocks, 1)?;
                let (part, page) = (self.part_of(hash), self.take_page());
                self.arena.begin_items(page, 0);
                self.parts[part] = Part { page, depth: 0 };
                Way { part, page }
            }
        };
        while self.is_full(way.page) {
            // Deeper than this no two hashes of a part differ; so many are alike by no chance.
            let pages = match self.arena.depth(way.page) {
                MAX_DEPTH => self.arena.pages(),
                // Its places need one, too.
                0 => 2,
                _ => 1,
            };
            self.room_for(blocks, pages)?;
            way.page = self.split(way, hash);
        }
        self.room_for(blocks, 0)?;
        Ok(way)
    }

    /// Whether a page of items takes no more. As long as there is memory it is not filled: items are found sooner in their homes.
    fn is_full(&self, page: u32) -> bool {
        let is_plenty =
            self.arena.free_pages() > self.arena.pages() / 4 && self.arena.depth(page) < MAX_DEPTH;
        self.arena.items(page) >= if is_plenty { ROOMY_ITEMS } else { PAGE_ITEMS }
    }

    /// Has all places of a part whose number ends in these bits lead to a page.
    fn lead(&mut self, part: usize, bits: u64, depth: u32, page: u32) {
        let part = self.parts[part];
        for number in (bits..1 << part.depth).step_by(1 << depth) {
            self.arena.set_word(part.place(number), page);
        }
    }

    /// Gives a part twice as many places, each two of which lead to where one has led.
    fn double_places(&mut self, part: usize) {
        let old = self.parts[part];
        if old.depth == 0 {
            self.parts[part] = Part { page: self.take_page(), depth: 1 };
            return self.lead(part, 0, 0, old.page);
        }
        let new = Part { depth: old.depth + 1, ..old };
        for number in 0..1 << old.depth {
            let page = self.arena.word(old.place(number));
            self.arena.set_word(new.place(number | 1 << old.depth), page);
        }
        self.parts[part] = new;
    }

    /// Divides a full page by the next bit of the hashes; the page that an item of `hash` belongs to now.
    fn split(&mut self, way: Way, hash: u64) -> u32 {
        let (depth, other) = (self.arena.depth(way.page), self.take_page());
        if depth == self.parts[way.part].depth {
            self.double_places(way.part);
        }
        self.arena.begin_items(other, depth + 1);
        self.arena.set_depth(way.page, depth + 1);
        let own_hash = &self.hash;
        self.arena.move_items(way.page, other, |key| own_hash.of(key), |hash| hash >> depth & 1 == 1);
        let bits = hash & ((1 << depth) - 1) | 1 << depth;
        self.lead(way.part, bits, depth + 1, other);
        if hash >> depth & 1 == 1 { other } else { way.page }
    }

    /// Makes one page of two that were divided, as long as both have few items, and lets go of a part that has none.
    fn merge(&mut self, way: Way, hash: u64) {
        let page = way.page;
        loop {
            let depth = self.arena.depth(page);
            if depth == 0 {
                break;
            }
            let bits = hash & ((1 << depth) - 1);
            let other_bits = bits ^ 1 << (depth - 1);
            let other = self.arena.word(self.parts[way.part].place(other_bits));
            let items = self.arena.items(page) + self.arena.items(other);
            if self.arena.depth(other) != depth || items > MERGED_ITEMS {
                return;
            }
            let own_hash = &self.hash;
            self.arena.move_items(other, page, |key| own_hash.of(key), |_| true);
            self.arena.give_page(other);
            self.arena.set_depth(page, depth - 1);
            if depth == 1 {
                // Nothing needs to stand before the only page.
                self.arena.give_page(self.parts[way.part].page);
                self.parts[way.part] = Part { page, depth: 0 };
                break;
            }
            self.lead(way.part, bits & ((1 << (depth - 1)) - 1), depth - 1, page);
        }
        if self.arena.items(page) == 0 {
            self.arena.give_page(page);
            self.parts[way.part] = Part::EMPTY;
        }
    }

    /// Stores a value of so many bytes, which `write` copies piece by piece to where it lies. If it is refused, the last one
    /// stays.
    pub(crate) fn store(
        &mut self,
        key: Key,
        bytes: usize,
        write: impl FnMut(usize, &mut [u8]),
    ) -> Result<(), Refused> {
        let hash = self.hash.of(key);
        let way = self.way(hash);
        let (place, first) = match way.and_then(|way| self.arena.find(way.page, hash, key)) {
            Some(place) => (place, self.replace(place, bytes)?),
            None => {
                let blocks = long_blocks(bytes);
                let way = self.make_room(way, hash, blocks)?;
                let place = self.arena.insert(way.page, hash, key).expect("room was made for it");
                self.items += 1;
                (place, self.take_blocks(place, blocks))
            }
        };
        let is_whole = first != NONE && is_one_piece(&self.arena, first, bytes);
        self.arena.set_value(place, bytes, first, is_whole);
        self.write_value(place, bytes, first, write);
        Ok(())
    }

    /// Memory for a value of so many bytes in place of the one that an item has: its first block.
    fn replace(&mut self, place: Place, bytes: usize) -> Result<u32, Refused> {
        let (last, last_blocks) = (self.arena.first_block(place), long_blocks(self.arena.length(place)));
        let blocks = long_blocks(bytes);
        if blocks == last_blocks {
            return Ok(last.unwrap_or(NONE));
        }
        self.room_for(blocks, 0)?;
        let first = self.take_blocks(place, blocks);
        if let Some(last) = last {
            self.blocks.give(&mut self.arena, last);
        }
        Ok(first)
    }

    fn take_blocks(&mut self, place: Place, blocks: u32) -> u32 {
        if blocks == 0 { NONE } else { self.blocks.take(&mut self.arena, place.line(), blocks) }
    }

    fn write_value(
        &mut self,
        place: Place,
        bytes: usize,
        first: u32,
        mut write: impl FnMut(usize, &mut [u8]),
    ) {
        match first {
            NONE => write(0, self.arena.inline_mut(place)),
            first => fill(&mut self.arena, first, bytes, write),
        }
    }
}

/// Blocks that a value of so many bytes takes; none if it lies beside its key.
fn long_blocks(bytes: usize) -> u32 {
    if bytes <= INLINE_BYTES { 0 } else { blocks_of(bytes) }
}

impl Table for SingleThreadTable {
    #[inline(always)]
    fn get<R>(&self, key: Key, found: impl FnOnce(Option<Found<'_>>) -> R) -> R {
        let place = self.find(self.hash.of(key), key);
        found(place.map(|place| self.arena.value(place)))
    }

    fn set(&mut self, key: Key, request: &mut Request<'_>, bytes: usize) -> Result<(), Refused> {
        self.store(key, bytes, |offset, piece| {
            // Pieces begin at whole words.
            request.copy_out_from((KEY_BYTES + offset) / 8, piece);
        })
    }

    fn delete(&mut self, key: Key) -> bool {
        let hash = self.hash.of(key);
        let Some(way) = self.way(hash) else { return false };
        let Some(place) = self.arena.find(way.page, hash, key) else { return false };
        if let Some(first) = self.arena.first_block(place) {
            self.blocks.give(&mut self.arena, first);
        }
        self.arena.take_out(place);
        self.items -= 1;
        self.merge(way, hash);
        true
    }

    fn items(&self) -> u64 {
        self.items
    }

    fn used_bytes(&self) -> u64 {
        let free_pages = u64::from(self.arena.free_pages()) * PAGE_BYTES as u64;
        // Rounded down, where a value that needs them has them rounded up: what is refused does not fit by these numbers.
        let free_blocks = self.blocks.free() * (PAGE_BYTES as u64 / u64::from(PAGE_BLOCKS));
        self.max_bytes.saturating_sub(free_pages + free_blocks)
    }
}

#[cfg(test)]
mod tests;
