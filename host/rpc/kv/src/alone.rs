//! The items of a store with one thread: a table that nobody else sees.

use beeline_rpc::Request;
use hashbrown::HashTable;

use crate::hash::KeyHash;
use crate::key::Key;
use crate::service::{Refused, Table};
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

/// Items, and the memory that their values have besides.
#[derive(Debug)]
pub(crate) struct AloneTable {
    items: HashTable<Item>,
    hash: KeyHash,
    heap_bytes: u64,
    max_bytes: u64,
}

impl AloneTable {
    pub(crate) fn new(hash: KeyHash, max_bytes: u64) -> Self {
        AloneTable { items: HashTable::new(), hash, heap_bytes: 0, max_bytes }
    }

    fn table_bytes(&self) -> u64 {
        self.items.num_buckets() as u64 * PLACE_BYTES
    }

    /// Memory that one more item takes in the table: a table that grows is there twice while it does.
    fn growth_bytes(&self) -> u64 {
        let places = self.items.num_buckets() as u64;
        let has_place = self.items.len() < self.items.capacity();
        // Half empty, it is tidied where it lies.
        let is_tidied = (self.items.len() as u64) < places / 8 * 7 / 2;
        if has_place || is_tidied { 0 } else { (places * 2).max(MIN_PLACES) * PLACE_BYTES }
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

impl Table for AloneTable {
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
        if let Some(item) = last
            && item.value.replace(request)
        {
            return Ok(());
        }
        if is_new {
            needed_bytes += self.growth_bytes();
        }
        self.room_for(needed_bytes)?;
        let value = Value::of_request(request).map_err(|OutOfMemory| self.out_of_memory(needed_bytes))?;
        let own_hash = &self.hash;
        if self.items.try_reserve(1, |item| own_hash.of(item.key)).is_err() {
            return Err(self.out_of_memory(needed_bytes));
        }
        let same = |item: &Item| item.key == key;
        let entry = self.items.entry(hash, same, |item| own_hash.of(item.key));
        self.heap_bytes += value.own_heap_bytes();
        match entry {
            hashbrown::hash_table::Entry::Occupied(mut last) => {
                let last = core::mem::replace(&mut last.get_mut().value, value);
                self.heap_bytes -= last.own_heap_bytes();
            }
            hashbrown::hash_table::Entry::Vacant(place) => {
                place.insert(Item { key, value });
            }
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
