//! The items of a store with one thread: a table that nobody else sees.

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

/// Bytes of the table for each place: the item and its control byte.
const PLACE_BYTES: u64 = size_of::<Item>() as u64 + 1;
/// Places of the smallest table.
const MIN_PLACES: u64 = 4;

/// Items that a table of so many places takes: the rule of `hashbrown`, which a test holds against it.
fn bucket_capacity(places: usize) -> usize {
    if places < 8 { places.saturating_sub(1) } else { places / 8 * 7 }
}

/// Items, and the memory that their values have besides.
#[derive(Debug)]
pub(crate) struct SingleThreadTable {
    items: HashTable<Item>,
    hash: KeyHash,
    heap_bytes: u64,
    max_bytes: u64,
}

impl SingleThreadTable {
    pub(crate) fn new(hash: KeyHash, max_bytes: u64) -> Self {
        SingleThreadTable { items: HashTable::new(), hash, heap_bytes: 0, max_bytes }
    }

    fn table_bytes(&self) -> u64 {
        self.items.num_buckets() as u64 * PLACE_BYTES
    }

    /// Items that this table takes, if it does not grow. A thirty-second part stays free, so that tidying it always
    /// frees so many places that it is seldom done.
    fn max_items(&self) -> usize {
        let filled = bucket_capacity(self.items.num_buckets());
        filled - filled / 32
    }

    /// Memory that one more item takes in the table.
    fn growth_bytes(&self) -> u64 {
        let places = self.items.num_buckets() as u64;
        let grown = if self.items.len() < self.max_items() { places } else { (places * 2).max(MIN_PLACES) };
        (grown - places) * PLACE_BYTES
    }

    /// Makes sure that one more item has a place. A table whose places were used up by items that are gone is written
    /// anew in the same size, one that is really full in twice the size.
    fn make_room(&mut self) -> Result<(), OutOfMemory> {
        let hash = &self.hash;
        if self.items.len() < self.items.capacity() && self.items.len() < self.max_items() {
            return Ok(());
        }
        let wanted = if self.items.len() < self.max_items() {
            bucket_capacity(self.items.num_buckets())
        } else {
            bucket_capacity((self.items.num_buckets() * 2).max(MIN_PLACES as usize))
        };
        let mut table = HashTable::new();
        table.try_reserve(wanted, |item: &Item| hash.of(item.key)).map_err(|_| OutOfMemory)?;
        for item in self.items.drain() {
            table.insert_unique(hash.of(item.key), item, |item| hash.of(item.key));
        }
        self.items = table;
        Ok(())
    }

    fn room_for(&self, needed_bytes: u64) -> Result<(), Refused> {
        let used_bytes = self.used_bytes();
        if used_bytes.saturating_add(needed_bytes) <= self.max_bytes {
            return Ok(());
        }
        Err(Refused { used_bytes, max_bytes: self.max_bytes, needed_bytes })
    }

    fn out_of_memory(&self, needed_bytes: u64) -> Refused {
        Refused { used_bytes: self.used_bytes(), max_bytes: self.max_bytes, needed_bytes }
    }
}

impl Table for SingleThreadTable {
    #[inline(always)]
    fn get<R>(&self, key: Key, found: impl FnOnce(Option<&[u8]>) -> R) -> R {
        let item = self.items.find(self.hash.of(key), |item| item.key == key);
        found(item.map(|item| item.value.as_slice()))
    }

    fn set(&mut self, key: Key, request: &mut Request<'_>, bytes: usize) -> Result<(), Refused> {
        let hash = self.hash.of(key);
        let mut needed_bytes = Value::heap_bytes(bytes);
        let last = self.items.find_mut(hash, |item| item.key == key);
        let is_new = last.is_none();
        if last.is_some_and(|item| item.value.replace(request)) {
            return Ok(());
        }
        if is_new {
            needed_bytes += self.growth_bytes();
        }
        self.room_for(needed_bytes)?;
        let value = Value::of_request(request).map_err(|OutOfMemory| self.out_of_memory(needed_bytes))?;
        if is_new {
            self.make_room().map_err(|OutOfMemory| self.out_of_memory(needed_bytes))?;
        }
        self.heap_bytes += value.own_heap_bytes();
        // Not by `entry`, which makes a place before it looks whether one is needed.
        if let Some(item) = self.items.find_mut(hash, |item| item.key == key) {
            let last = core::mem::replace(&mut item.value, value);
            self.heap_bytes -= last.own_heap_bytes();
        } else {
            let own_hash = &self.hash;
            self.items.insert_unique(hash, Item { key, value }, |item| own_hash.of(item.key));
        }
        Ok(())
    }

    fn delete(&mut self, key: Key) -> bool {
        let Ok(entry) = self.items.find_entry(self.hash.of(key), |item| item.key == key) else {
            return false;
        };
        let (item, _) = entry.remove();
        self.heap_bytes -= item.value.own_heap_bytes();
        true
    }

    fn items(&self) -> u64 {
        self.items.len() as u64
    }

    fn used_bytes(&self) -> u64 {
        self.table_bytes() + self.heap_bytes
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
        if table.room_for(table.growth_bytes()).is_err() {
            return false;
        }
        table.make_room().unwrap();
        let key = Key::from_words([number, 7]);
        let hash = table.hash.of(key);
        table.items.insert_unique(hash, Item { key, value: Value::from(&b"v"[..]) }, |_| {
            unreachable!("there is room")
        });
        true
    }

    #[test]
    fn deleted_items_free_their_slots_and_the_table_does_not_grow() {
        let max_bytes = 1024 * PLACE_BYTES;
        let mut table = SingleThreadTable::new(KeyHash::random(Hashing::Quick).unwrap(), max_bytes);
        let items = (0..).find(|number| !put(&mut table, *number)).unwrap();
        assert_eq!((items, table.items.num_buckets()), (868, 1024));
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
}
