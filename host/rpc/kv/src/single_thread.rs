//! The items of a store with one thread: tables that nobody else sees.
//!
//! One thread answers every client, so no request may take long. The items are spread over parts by their hash, as many as
//! the memory of the store asks for, and each part is a table of its own: when one is full, at most some thousands of items
//! are moved, and what was allocated for them is let go in a piece as small. One table for all of them would stop every
//! client for a second when it doubles.

use beeline_rpc::Request;
use hashbrown::HashTable;

use crate::hash::KeyHash;
use crate::key::Key;
use crate::table::{Refused, Table};
use crate::value::{OutOfMemory, Value};

/// One cache line: what is compared and what is answered come together.
#[derive(Debug)]
#[repr(align(64))]
struct Item {
    key: Key,
    value: Value,
}

const _: () = assert!(size_of::<Item>() == 64, "an item is one cache line");

/// Bytes of a part for each place: the item and its control byte.
const PLACE_BYTES: u64 = size_of::<Item>() as u64 + 1;
/// Places of the smallest part that has any.
const MIN_PLACES: u64 = 4;
/// Places that a part has when all memory is places: what is moved at once is half as much.
const PART_PLACES: u64 = 8192;
/// Most parts of a store.
const MAX_PARTS: u64 = 1 << PART_BITS;
const PART_BITS: u32 = 16;
/// The part of an item is told by these bits of its hash: above those that tell its place in the part, and below the seven
/// that `hashbrown` compares.
const PART_LSB: u32 = 40;
const _: () = assert!(PART_LSB + PART_BITS <= 57);

/// Items that a part of so many places takes: the rule of `hashbrown`, which a test holds against it.
fn bucket_capacity(places: usize) -> usize {
    if places < 8 { places.saturating_sub(1) } else { places / 8 * 7 }
}

/// Items whose hashes agree in some bits.
#[derive(Debug, Default)]
struct Part(HashTable<Item>);

impl Part {
    /// Places that memory was allocated for: a table that has never had an item says that it has one.
    fn places(&self) -> usize {
        let buckets = self.0.num_buckets();
        if buckets < MIN_PLACES as usize { 0 } else { buckets }
    }

    fn bytes(&self) -> u64 {
        self.places() as u64 * PLACE_BYTES
    }

    /// Items that this part takes, if it does not grow. A thirty-second part stays free, so that tidying it always
    /// frees so many places that it is seldom done.
    fn max_items(&self) -> usize {
        let filled = bucket_capacity(self.places());
        filled - filled / 32
    }

    /// Memory that one more item takes here.
    fn growth_bytes(&self) -> u64 {
        let places = self.places() as u64;
        let grown = if self.0.len() < self.max_items() { places } else { (places * 2).max(MIN_PLACES) };
        (grown - places) * PLACE_BYTES
    }

    /// Makes sure that one more item has a place. A part whose places were used up by items that are gone is written
    /// anew in the same size, one that is really full in twice the size.
    fn make_room(&mut self, hash: &KeyHash) -> Result<(), OutOfMemory> {
        if self.0.len() < self.0.capacity() && self.0.len() < self.max_items() {
            return Ok(());
        }
        let wanted = if self.0.len() < self.max_items() {
            bucket_capacity(self.places())
        } else {
            bucket_capacity((self.places() * 2).max(MIN_PLACES as usize))
        };
        let mut table = HashTable::new();
        table.try_reserve(wanted, |item: &Item| hash.of(item.key)).map_err(|_| OutOfMemory)?;
        for item in self.0.drain() {
            table.insert_unique(hash.of(item.key), item, |item| hash.of(item.key));
        }
        self.0 = table;
        Ok(())
    }
}

/// Items, and the memory that their values have besides.
#[derive(Debug)]
pub(crate) struct SingleThreadTable {
    parts: Box<[Part]>,
    hash: KeyHash,
    items: u64,
    /// Memory of all parts.
    table_bytes: u64,
    heap_bytes: u64,
    max_bytes: u64,
}

impl SingleThreadTable {
    pub(crate) fn new(hash: KeyHash, max_bytes: u64) -> Self {
        let parts = (max_bytes / (PART_PLACES * PLACE_BYTES)).next_power_of_two().min(MAX_PARTS);
        let parts = (0..parts).map(|_| Part::default()).collect();
        SingleThreadTable { parts, hash, items: 0, table_bytes: 0, heap_bytes: 0, max_bytes }
    }

    /// Which part has the items of this hash.
    #[inline(always)]
    fn part_of(&self, hash: u64) -> usize {
        // A power of two of parts, so that this is a mask, and in bounds.
        (hash >> PART_LSB) as usize & (self.parts.len() - 1)
    }

    fn room_for(&self, needed_bytes: u64) -> Result<(), Refused> {
        let used_bytes = self.used_bytes();
        if used_bytes.saturating_add(needed_bytes) <= self.max_bytes {
            return Ok(());
        }
        Err(Refused { used_bytes, max_bytes: self.max_bytes, needed_bytes })
    }

    /// Makes sure that one more item has a place in this part.
    fn make_room(&mut self, part: usize) -> Result<(), OutOfMemory> {
        let part = &mut self.parts[part];
        let before_bytes = part.bytes();
        let made = part.make_room(&self.hash);
        self.table_bytes = self.table_bytes - before_bytes + part.bytes();
        made
    }

    fn out_of_memory(&self, needed_bytes: u64) -> Refused {
        Refused { used_bytes: self.used_bytes(), max_bytes: self.max_bytes, needed_bytes }
    }
}

impl Table for SingleThreadTable {
    #[inline(always)]
    fn get<R>(&self, key: Key, found: impl FnOnce(Option<&[u8]>) -> R) -> R {
        let hash = self.hash.of(key);
        let item = self.parts[self.part_of(hash)].0.find(hash, |item| item.key == key);
        found(item.map(|item| item.value.as_slice()))
    }

    fn set(&mut self, key: Key, request: &mut Request<'_>, bytes: usize) -> Result<(), Refused> {
        let hash = self.hash.of(key);
        let part = self.part_of(hash);
        let mut needed_bytes = Value::heap_bytes(bytes);
        let last = self.parts[part].0.find_mut(hash, |item| item.key == key);
        let is_new = last.is_none();
        if last.is_some_and(|item| item.value.replace(request)) {
            return Ok(());
        }
        if is_new {
            needed_bytes += self.parts[part].growth_bytes();
        }
        self.room_for(needed_bytes)?;
        let value = Value::of_request(request).map_err(|OutOfMemory| self.out_of_memory(needed_bytes))?;
        if is_new {
            self.make_room(part).map_err(|OutOfMemory| self.out_of_memory(needed_bytes))?;
        }
        self.heap_bytes += value.own_heap_bytes();
        // Not by `entry`, which makes a place before it looks whether one is needed.
        let items = &mut self.parts[part].0;
        if let Some(item) = items.find_mut(hash, |item| item.key == key) {
            let last = core::mem::replace(&mut item.value, value);
            self.heap_bytes -= last.own_heap_bytes();
        } else {
            let own_hash = &self.hash;
            items.insert_unique(hash, Item { key, value }, |item| own_hash.of(item.key));
            self.items += 1;
        }
        Ok(())
    }

    fn delete(&mut self, key: Key) -> bool {
        let hash = self.hash.of(key);
        let part = self.part_of(hash);
        let Ok(entry) = self.parts[part].0.find_entry(hash, |item| item.key == key) else {
            return false;
        };
        let (item, _) = entry.remove();
        self.items -= 1;
        self.heap_bytes -= item.value.own_heap_bytes();
        true
    }

    fn items(&self) -> u64 {
        self.items
    }

    fn used_bytes(&self) -> u64 {
        self.table_bytes + self.heap_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Hashing;

    #[test]
    fn table_has_the_buckets_that_memory_accounting_assumes() {
        for places in [4, 8, 16, 1 << 10, 1 << 16] {
            let mut items = HashTable::<Item>::new();
            items.try_reserve(bucket_capacity(places), |_| 0).unwrap();
            assert_eq!((items.num_buckets(), items.capacity()), (places, bucket_capacity(places)));
        }
    }

    /// Puts an item in, past the request that would carry it.
    fn put(table: &mut SingleThreadTable, number: u64) -> bool {
        let key = Key::from_words([number, 7]);
        let hash = table.hash.of(key);
        let part = table.part_of(hash);
        if table.room_for(table.parts[part].growth_bytes()).is_err() {
            return false;
        }
        table.make_room(part).unwrap();
        let value = Value::from(&b"v"[..]);
        table.parts[part].0.insert_unique(hash, Item { key, value }, |_| unreachable!("there is room"));
        table.items += 1;
        true
    }

    fn table(max_bytes: u64) -> SingleThreadTable {
        SingleThreadTable::new(KeyHash::random(Hashing::Quick).unwrap(), max_bytes)
    }

    #[test]
    fn deleted_items_free_their_slots_and_the_table_does_not_grow() {
        let max_bytes = 1024 * PLACE_BYTES;
        let mut table = table(max_bytes);
        let items = (0..).find(|number| !put(&mut table, *number)).unwrap();
        assert_eq!((items, table.parts.len(), table.parts[0].0.num_buckets()), (868, 1, 1024));
        // Far more than the table has places, at its fullest.
        for number in items..items + 20_000 {
            assert!(table.delete(Key::from_words([number - items, 7])));
            assert!(put(&mut table, number), "no place for item {number}");
            assert!(!put(&mut table, u64::MAX), "and for no other");
            assert!(table.used_bytes() <= max_bytes);
        }
        assert_eq!(table.items(), items);
        let is_there = |number| table.get(Key::from_words([number, 7]), |value| value == Some(b"v"));
        assert!((20_000..20_000 + items).all(is_there));
    }

    /// However many items there are, one more moves no more than half the places of a part, and the account of memory is the
    /// sum of the parts.
    #[test]
    fn growth_moves_a_bounded_number_of_items() {
        let max_bytes = 64 << 20;
        let mut table = table(max_bytes);
        assert_eq!(table.parts.len(), 128);
        let (mut items, mut moved_most) = (0, 0);
        loop {
            let key = Key::from_words([items, 7]);
            let part = table.part_of(table.hash.of(key));
            let (before, len) = (table.parts[part].0.num_buckets(), table.parts[part].0.len());
            if !put(&mut table, items) {
                break;
            }
            if table.parts[part].0.num_buckets() != before {
                moved_most = moved_most.max(len);
            }
            items += 1;
        }
        assert!((1..=PART_PLACES as usize).contains(&moved_most), "{moved_most} items moved by one SET");
        assert!(items > 400_000, "{items} items of 65 bytes in 64 MiB");
        assert_eq!(table.used_bytes(), table.parts.iter().map(Part::bytes).sum::<u64>());
        assert!(table.used_bytes() <= max_bytes);
        let is_there = |number| table.get(Key::from_words([number, 7]), |value| value == Some(b"v"));
        assert!((0..items).all(is_there) && !is_there(items) && table.items() == items);
        for number in 0..items {
            assert!(table.delete(Key::from_words([number, 7])));
        }
        assert_eq!(table.items(), 0);
    }
}
