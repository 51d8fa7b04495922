//! The items of a store with several threads: a table that all of them read without a lock.
//!
//! A GET announces itself in memory of its own thread, and looks up; a SET puts a new item in the place of the last one,
//! which is freed when no GET that has begun before can still have it. Readers of one item disturb nobody: no line is
//! written that another thread reads. With a lock for each part of the table every GET would write that lock's line
//! twice, and threads would pull it from each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use beeline_rpc::Request;
use papaya::{HashMap, ResizeMode};

use crate::hash::KeyHash;
use crate::item_page::Found;
use crate::key::Key;
use crate::table::{Refused, Table};
use crate::value::{ALLOCATION_BYTES, Value};

/// What an item takes besides the heap of its value: key and value in memory of their own, and up to four places of the
/// table, a pointer and a control byte each. A bound: items of short values have taken 102 bytes each when they were new
/// and 122 after all of them had been replaced.
const ITEM_BYTES: u64 = (16 + size_of::<Value>() + ALLOCATION_BYTES + 4 * 9) as u64;

#[derive(Debug)]
struct Items {
    map: HashMap<Key, Value, KeyHash>,
    used_bytes: AtomicU64,
    max_bytes: u64,
}

/// One thread's hold of the items.
#[derive(Clone, Debug)]
pub(crate) struct SharedTable(Arc<Items>);

impl SharedTable {
    pub(crate) fn new(hash: KeyHash, max_bytes: u64) -> Self {
        // Incremental: no SET moves the whole table at once.
        let map = HashMap::builder().hasher(hash).resize_mode(ResizeMode::default()).build();
        SharedTable(Arc::new(Items { map, used_bytes: AtomicU64::new(0), max_bytes }))
    }

    /// Takes memory from what there is. Both the new value and the one it replaces are counted until that one is let go.
    fn take(&self, needed_bytes: u64) -> Result<(), Refused> {
        let Items { used_bytes, max_bytes, .. } = &*self.0;
        let enough = |used: u64| used.checked_add(needed_bytes).filter(|sum| sum <= max_bytes);
        // Relaxed: it is a sum, and nothing else is read by it.
        match used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enough) {
            Ok(_) => Ok(()),
            Err(used_bytes) => Err(Refused { used_bytes, max_bytes: *max_bytes, needed_bytes }),
        }
    }

    fn give_back(&self, bytes: u64) {
        // Relaxed: as in `take`.
        self.0.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Memory of one item.
fn item_bytes(heap_bytes: u64) -> u64 {
    ITEM_BYTES + heap_bytes
}

impl Table for SharedTable {
    #[inline(always)]
    fn get<R>(&self, key: Key, found: impl FnOnce(Option<Found<'_>>) -> R) -> R {
        let items = &self.0.map;
        let guard = items.guard();
        found(items.get(&key, &guard).map(|value| Found::Whole(value.as_slice())))
    }

    fn set(&mut self, key: Key, request: &mut Request<'_>, bytes: usize) -> Result<(), Refused> {
        let needed_bytes = item_bytes(Value::heap_bytes(bytes));
        self.take(needed_bytes)?;
        let Ok(value) = Value::of_request(request) else {
            self.give_back(needed_bytes);
            let used_bytes = self.used_bytes();
            return Err(Refused { used_bytes, max_bytes: self.0.max_bytes, needed_bytes });
        };
        let guard = self.0.map.guard();
        if let Some(last) = self.0.map.insert(key, value, &guard) {
            self.give_back(item_bytes(last.own_heap_bytes()));
        }
        Ok(())
    }

    fn delete(&mut self, key: Key) -> bool {
        let guard = self.0.map.guard();
        let removed = self.0.map.remove(&key, &guard);
        if let Some(last) = removed {
            self.give_back(item_bytes(last.own_heap_bytes()));
        }
        removed.is_some()
    }

    fn items(&self) -> u64 {
        self.0.map.len() as u64
    }

    fn used_bytes(&self) -> u64 {
        // Relaxed: as in `take`.
        self.0.used_bytes.load(Ordering::Relaxed)
    }
}
