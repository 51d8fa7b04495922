//! This target reads a bucket of a registry and puts entries into it. A hostile process of the owner's user has written every word, and
//! some holders are dead. An entry that is put in is there once and as it was put in; one of somebody who lives is never changed,
//! and refuses what may not be beside it; only the dead and what is no entry make room.
#![no_main]

use arbitrary::Arbitrary;
use beeline_domain::fuzzing::{RegistryBucket, RegistryWord};
use beeline_domain::{Entry, Kind};
use libfuzzer_sys::fuzz_target;

/// Holders that the steps choose from.
const HOLDERS: u16 = 8;
const WORDS: usize = 64;

#[derive(Arbitrary, Debug)]
struct Input {
    kind: u8,
    id: u32,
    bytes: Vec<u8>,
    /// Words as a process would write them that puts in what it likes.
    words: Vec<(Step, u8)>,
    steps: Vec<Step>,
    alive: u8,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Step {
    is_other_id: bool,
    neighbour: u8,
    holder: u8,
    slot: u8,
    may: bool,
    removes: bool,
}

/// Ids of the same bucket, the first one given.
fn ids(bucket: &RegistryBucket, kind: Kind, id: u32) -> Vec<Entry> {
    let entry = |id| Entry { kind, id, slot: 0 };
    let others = (0..1 << 20).map(|distance| entry(id.wrapping_add(distance)));
    others.filter(|entry| bucket.is_place_of(*entry)).take(4).collect()
}

fn step(bucket: &mut RegistryBucket, ids: &[Entry], step: Step, is_alive: impl Fn(u16) -> bool) {
    let id = if step.is_other_id { usize::from(step.neighbour) % ids.len() } else { 0 };
    let entry = Entry { slot: u16::from(step.slot), ..ids[id] };
    let holder = u16::from(step.holder) % HOLDERS;
    let before = bucket.entries();
    if step.removes {
        let was_there = before.iter().any(|(_, found, whose)| (*found, *whose) == (entry, holder));
        assert_eq!(bucket.remove(entry, holder), was_there);
        return;
    }
    let is_same = |found: &&RegistryWord| (found.1.kind, found.1.id) == (entry.kind, entry.id);
    let living: Vec<RegistryWord> = before.iter().copied().filter(|(_, _, whose)| is_alive(*whose)).collect();
    let hinders = |found: &RegistryWord| !step.may || (found.1, found.2) == (entry, holder);
    let is_taken = living.iter().filter(is_same).any(hinders);
    let put = bucket.put(entry, holder, &is_alive, step.may);
    assert_eq!(put.is_none(), is_taken);
    assert_eq!(put == Some(false), !is_taken && living.len() == WORDS);
    let after = bucket.entries();
    assert!(living.iter().all(|word| after.contains(word)), "an entry of somebody who lives has changed");
    let new = after.iter().filter(|word| !before.contains(word)).count();
    if put == Some(true) {
        assert!(after.iter().any(|(_, found, whose)| (*found, *whose) == (entry, holder)));
        assert!(new <= 1);
        let same = after.iter().filter(is_same);
        assert!(same.filter(|word| !is_alive(word.2) && (word.1, word.2) != (entry, holder)).count() == 0);
    } else {
        assert_eq!(after, before, "nothing was put in");
    }
}

fuzz_target!(|input: Input| {
    let kind = Kind::new(input.kind % 7 + 1).expect("1 to 7");
    let mut bucket = RegistryBucket::of(kind, input.id, input.bytes);
    let ids = ids(&bucket, kind, input.id);
    let is_alive = |holder: u16| holder >= HOLDERS || input.alive >> holder & 1 == 1;
    for (word, times) in input.words.iter().take(16) {
        for slot in 0..*times {
            let wild = Step { slot: word.slot.wrapping_add(slot), may: true, removes: false, ..*word };
            step(&mut bucket, &ids, wild, |_| true);
        }
    }
    input.steps.iter().take(256).for_each(|next| step(&mut bucket, &ids, *next, is_alive));
});
