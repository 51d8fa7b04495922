//! The list of guarded mappings, walked by a signal handler on one thread while mappings come and go on others. Run with
//! `RUSTFLAGS="--cfg loom" cargo test -p beeline-mmio --test loom_table --release --target-dir target/loom`.
#![cfg(loom)]
#![expect(unsafe_code, reason = "the list is part of the crate that has the unsafe code")]

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
}
#[path = "../src/guard/table.rs"]
mod table;

use std::ptr;

use loom::thread;
use sync::AtomicPtr;
use table::{Entry, Range, Table};

/// A list for one run of a model; handlers may walk a list for ever.
fn list() -> &'static Table {
    // SAFETY: null.
    Box::leak(Box::new(unsafe { Table::of(AtomicPtr::new(ptr::null_mut())) }))
}

/// Differs from every other in all that is noted.
fn range(number: usize) -> Range {
    Range {
        start: number << 16,
        bytes: number << 12,
        page_bytes: number,
        is_writable: number.is_multiple_of(2),
    }
}

fn entered(table: &'static Table, number: usize) -> &'static Entry {
    let entry = table.append();
    entry.write(range(number));
    entry
}

#[test]
fn place_that_changes_is_read_whole_or_not_at_all() {
    loom::model(|| {
        let entry = entered(list(), 1);
        let changing = thread::spawn(|| entry.write(range(2)));
        let found = entry.read();
        assert!(found.is_none_or(|found| [range(1), range(2)].contains(&found)), "{found:x?}");
        changing.join().unwrap();
        assert_eq!(entry.read(), Some(range(2)));
    });
}

#[test]
fn place_of_a_mapping_that_ends_is_read_as_free_as_that_mapping_or_as_the_next() {
    loom::model(|| {
        let entry = entered(list(), 1);
        let changing = thread::spawn(|| {
            entry.write(Range::NONE);
            entry.write(range(2));
        });
        for found in [entry.read(), entry.read()] {
            let is_whole = found.is_none_or(|found| [range(1), Range::NONE, range(2)].contains(&found));
            assert!(is_whole, "{found:x?}");
        }
        changing.join().unwrap();
    });
}

#[test]
fn mapping_that_stays_is_found_while_another_is_entered() {
    loom::model(|| {
        let table = list();
        entered(table, 1);
        // The walk is on the other thread: the model tries a load against the latest access to a word alone, and who enters a
        // mapping loads the word before it changes it.
        let handler = thread::spawn(|| table.find(range(1).start).map(|(_, found)| found));
        table.append();
        assert_eq!(handler.join().unwrap(), Some(range(1)));
    });
}

#[test]
fn mappings_that_are_entered_at_once_are_all_found() {
    loom::model(|| {
        let table = list();
        let other = thread::spawn(|| entered(table, 1));
        let places = [entered(table, 2), other.join().unwrap()];
        for (number, place) in [2, 1].into_iter().zip(places) {
            let found = table.find(range(number).start);
            assert!(found.is_some_and(|(entry, found)| ptr::eq(entry, place) && found == range(number)));
        }
    });
}

#[test]
fn who_is_told_of_a_loss_finds_what_the_handler_did_before_it() {
    loom::model(|| {
        let entry = entered(list(), 1);
        let met = loom::sync::Arc::new(loom::cell::UnsafeCell::new(false));
        let handler = thread::spawn({
            let met = met.clone();
            move || {
                // SAFETY: the model fails where the other thread reads it at the same time.
                met.with_mut(|met| unsafe { *met = true });
                entry.mark_lost();
            }
        });
        if entry.is_lost() {
            // SAFETY: as above.
            assert!(met.with(|met| unsafe { *met }));
        }
        handler.join().unwrap();
        assert!(entry.is_lost());
    });
}
