use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::options::Hashing;

fn table(max_bytes: u64) -> SingleThreadTable {
    SingleThreadTable::new(KeyHash::random(Hashing::Quick).unwrap(), max_bytes, false).unwrap()
}

fn key(number: u64) -> Key {
    Key::from_words([number, 7])
}

/// What value a key has at some turn.
fn value(number: u64, turn: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| (number * 31 + turn * 7 + at * (at / 192 + 1)) as u8).collect()
}

fn put(table: &mut SingleThreadTable, number: u64, value: &[u8]) -> bool {
    let write = |offset: usize, piece: &mut [u8]| piece.copy_from_slice(&value[offset..offset + piece.len()]);
    table.store(key(number), value.len(), write).is_ok()
}

fn get(table: &SingleThreadTable, number: u64) -> Option<Vec<u8>> {
    table.get(key(number), |found| match found? {
        Found::Whole(bytes) => Some(bytes.to_vec()),
        Found::InPieces(pieces) => {
            let (bytes, pieces) = (pieces.bytes(), pieces.flatten().copied().collect::<Vec<u8>>());
            assert_eq!(pieces.len(), bytes);
            Some(pieces)
        }
    })
}

/// How many values of so many bytes fit, from this number of a key on.
fn fill_up(table: &mut SingleThreadTable, from: u64, bytes: usize) -> u64 {
    let end = (from..).find(|number| !put(table, *number, &value(*number, 0, bytes))).unwrap();
    end - from
}

#[derive(Clone, Debug)]
enum Step {
    Set(u64, usize),
    Delete(u64),
    /// Keys of which every so many stay.
    DeleteMost(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = || prop_oneof![0..48usize, 41..400usize, 0..9000usize];
    let step = prop_oneof![
        12 => (0..900u64, bytes()).prop_map(|(number, bytes)| Step::Set(number, bytes)),
        3 => (0..900u64).prop_map(Step::Delete),
        1 => (2..20u64).prop_map(Step::DeleteMost),
    ];
    proptest::collection::vec(step, 1..1500)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Far more than fits is stored, so that pages are divided, made one, vacated and used for something else all the time.
    #[test]
    fn table_is_a_map_and_refuses_only_what_does_not_fit(steps in steps()) {
        let max_bytes = 40 * PAGE_BYTES as u64;
        let (mut table, mut model) = (table(max_bytes), HashMap::new());
        for (turn, step) in steps.into_iter().enumerate() {
            match step {
                Step::Set(number, bytes) => {
                    let value = value(number, turn as u64, bytes);
                    if put(&mut table, number, &value) {
                        model.insert(number, value);
                    } else {
                        // Room for its blocks, for a page of items and one that leads there is room for it.
                        let needed = blocks_of(bytes) + 2 * PAGE_BLOCKS;
                        prop_assert!(table.free_blocks() < u64::from(needed));
                    }
                }
                Step::Delete(number) => prop_assert_eq!(table.delete(key(number)), model.remove(&number).is_some()),
                Step::DeleteMost(kept) => model.retain(|number, _| number % kept == 0 || !table.delete(key(*number))),
            }
            prop_assert!(table.used_bytes() <= max_bytes);
        }
        for number in 0..900 {
            prop_assert_eq!(get(&table, number), model.get(&number).cloned(), "key {}", number);
        }
        prop_assert_eq!(table.items(), model.len() as u64);
        model.into_keys().for_each(|number| assert!(table.delete(key(number))));
        prop_assert_eq!((table.items(), table.used_bytes(), table.arena.free_pages()), (0, 0, 40));
    }
}

/// The attack: values of one length fill the store, most of them go, longer ones come. What a store that was never used
/// takes, this one takes too, but for what has stayed.
#[test]
fn nothing_that_is_free_is_out_of_reach_whatever_was_stored_before() {
    let max_bytes = 4 << 20;
    let (mut table, mut from) = (table(max_bytes), 0);
    for bytes in [41, 5, 300, 40, 1000, 3, 5000, 100, 20_000, 30] {
        let kept_bytes = table.used_bytes();
        let items = fill_up(&mut table, from, bytes);
        let (item_bytes, room) = ((64 + long_blocks(bytes) as usize * 205) as u64, max_bytes - kept_bytes);
        // Pages of items are half full when they were divided just now, and a value of 20,000 bytes needs 105 blocks at once.
        assert!(items * item_bytes > room * 2 / 5, "{items} values of {bytes} bytes in {room} free bytes");
        for number in (from..from + items).filter(|number| number % 10 != 0) {
            assert!(table.delete(key(number)));
        }
        from += items;
        assert!(table.used_bytes() < max_bytes / 2, "{} bytes are used", table.used_bytes());
        // What stayed of this round is gone with the next one.
        let old: Vec<u64> =
            (0..from.saturating_sub(items)).filter(|number| table.delete(key(*number))).collect();
        drop(old);
    }
}

/// However many items there are, one more moves no more than a page of them.
#[test]
fn many_items_fill_the_memory_and_come_and_go() {
    let max_bytes = 64 << 20;
    let mut table = table(max_bytes);
    assert_eq!(table.parts.len(), 64);
    let items = fill_up(&mut table, 0, 1);
    assert!(items > 400_000, "{items} items of 64 bytes in 64 MiB");
    assert!(table.used_bytes() <= max_bytes && table.items() == items);
    assert!((0..items).step_by(97).all(|number| get(&table, number) == Some(value(number, 0, 1))));
    assert_eq!(get(&table, items), None);
    for number in 0..items {
        assert!(table.delete(key(number)));
    }
    assert_eq!((table.items(), table.used_bytes()), (0, 0));
}

fn is_alike(table: &SingleThreadTable, number: u64) -> bool {
    let hash = table.hash.of(key(number));
    hash & (PLACES - 1) == 0 && table.part_of(hash) == 0
}

/// With the hashes alike, no page is left after some divisions, and the store says so.
#[test]
fn keys_that_no_bit_of_their_hash_tells_apart_are_refused_at_last() {
    let mut table = table(1 << 20);
    let alike = (0..).filter(|number| is_alike(&table, *number)).take(70).collect::<Vec<u64>>();
    let stored = alike.iter().filter(|number| put(&mut table, **number, b"v")).count();
    assert_eq!(stored, PAGE_ITEMS as usize);
    assert!(alike[..stored].iter().all(|number| get(&table, *number).is_some()));
}
