//! Eight processes that put, find and take out the same thousand names, and are killed at any moment: no name ever has two owners,
//! nothing of the dead is found, and nothing is left of them.
//!
//! `BEELINE_KILLS` asks for another number of kills than 150. The seed is printed and taken back from `BEELINE_SEED`.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use beeline_domain::{Entry, Holder, Kind, PutError, Registry};
use harness::{Helper, Role, TestFolder};

const PROCESSES: usize = 8;
const NAMES: u32 = 1000;
/// Names that all processes want, each for itself alone.
const WANTED: Kind = Kind::new(1).unwrap();
/// Names that each process has beside those of others.
const SHARED: Kind = Kind::new(2).unwrap();
/// Who has a name, as its owner wrote it: a process id of 4 bytes for each.
const OWNERS: &str = "owners";
const BROKEN: &str = "broken";

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ word >> 31) % limit
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().unwrap())
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    let root = role.config.root.clone().unwrap();
    let owners = File::options().read(true).write(true).open(root.join(OWNERS)).unwrap();
    let mut random = Random(role.argument.parse().unwrap());
    let registry = role.open().registry("names").unwrap();
    loop {
        let number = NonZeroU64::new(random.below(u64::MAX) | 1).unwrap();
        let round = std::panic::catch_unwind(|| {
            let holder = registry.join(number).unwrap();
            put_all(&registry, &holder, &owners, number.get());
        });
        if round.is_err() {
            File::create(root.join(BROKEN)).unwrap();
            std::process::exit(1);
        }
    }
}

/// Puts every name in that nobody has, and takes all out again.
fn put_all(registry: &Registry, holder: &Holder, owners: &File, start: u64) {
    let own_pid = std::process::id().to_le_bytes();
    let ids = (0..NAMES).map(|id| (id + start as u32 % NAMES) % NAMES);
    let mut got = Vec::new();
    for id in ids {
        holder.put(Entry { kind: SHARED, id, slot: 1 }, |_| true).unwrap();
        match holder.put(Entry { kind: WANTED, id, slot: 0 }, |_| false) {
            Ok(()) => {
                owners.write_all_at(&own_pid, u64::from(id) * 4).unwrap();
                got.push(id);
            }
            Err(PutError::Taken { found }) => assert_ne!(found.number, holder.number(), "{id}"),
            Err(error) => panic!("{id}: {error}"),
        }
    }
    let is_own = |kind, id| {
        let found = registry.find(kind, id).unwrap();
        found.iter().filter(|found| found.number == holder.number()).count()
    };
    for id in got {
        assert_eq!((is_own(WANTED, id), is_own(SHARED, id)), (1, 1), "{id}");
        let mut owner = [0; 4];
        owners.read_exact_at(&mut owner, u64::from(id) * 4).unwrap();
        assert_eq!(owner, own_pid, "{id} had two owners");
        assert!(holder.remove(Entry { kind: WANTED, id, slot: 0 }).unwrap(), "{id}");
        assert_eq!(is_own(WANTED, id), 0, "{id}");
    }
}

#[test]
fn no_name_has_two_owners_and_nothing_is_left_of_processes_that_are_killed_at_any_moment() {
    let kills = number("BEELINE_KILLS").unwrap_or(150);
    let seed = number("BEELINE_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("BEELINE_SEED={seed}");
    let mut random = Random(seed);
    let folder = TestFolder::new();
    std::fs::write(folder.path().join(OWNERS), vec![0; NAMES as usize * 4]).unwrap();
    let start = |random: &mut Random| folder.helper("churn", &random.below(1 << 60).to_string());
    let mut processes: Vec<Helper> = (0..PROCESSES).map(|_| start(&mut random)).collect();
    let is_broken = || folder.path().join(BROKEN).exists();
    for kill in 0..kills {
        std::thread::sleep(Duration::from_micros(random.below(40_000)));
        let which = random.below(PROCESSES as u64) as usize;
        processes[which].kill();
        assert!(!is_broken(), "after {kill} kills");
        processes[which] = start(&mut random);
    }
    processes.iter_mut().for_each(Helper::kill);
    assert!(!is_broken());
    let registry = folder.open().registry("names").unwrap();
    assert_eq!((registry.entries().unwrap(), registry.holders().unwrap()), (vec![], vec![]));
    let swept = registry.sweep().unwrap();
    println!("{swept} words of the dead were left");
    let bytes = std::fs::read(folder.path().join("test/names.registry")).unwrap();
    assert!(bytes[8..].iter().all(|byte| *byte == 0), "something is left");
}
