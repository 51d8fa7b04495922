//! Registries between real processes: who finds what, and what is left of those that end.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::num::NonZeroU64;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use beeline_domain::{
    Domain, DomainConfig, Entry, Found, Holder, Kind, Life, MisuseError, PutError, Registry, RegistryError,
    Resident,
};
use harness::users::{LISTED, Users};
use harness::{Role, TestFolder, fork_a_bystander, listen, say, wait_for_end, wait_until};
use nix::fcntl::FcntlArg;
use nix::libc;
use nix::sys::signal::{Signal, raise};

const A: Kind = Kind::new(1).unwrap();
const B: Kind = Kind::new(2).unwrap();
const OURS: NonZeroU64 = NonZeroU64::new(0x11).unwrap();
const THEIRS: NonZeroU64 = NonZeroU64::new(0x22).unwrap();

fn entry(id: u32) -> Entry {
    Entry { kind: A, id, slot: 0xabcd }
}

fn registry(folder: &TestFolder) -> Registry {
    folder.open().registry("names").unwrap()
}

fn who(registry: &Registry, id: u32) -> Vec<u64> {
    registry.find(A, id).unwrap().iter().map(|found| found.number.get()).collect()
}

fn never(_: Found) -> bool {
    false
}

fn path(folder: &TestFolder, file: &str) -> std::path::PathBuf {
    folder.path().join("test").join(file)
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    match role.name.as_str() {
        "foreign" => return foreign(&role),
        "forker" => return forker(&role),
        "locker" => return lock_a_byte(&role),
        _ => {}
    }
    let registry = role.open().registry("names").unwrap();
    let holder = registry.join(THEIRS).unwrap();
    match role.name.as_str() {
        "holder" => {
            (1..=3).for_each(|id| holder.put(entry(id), never).unwrap());
            fork_a_bystander();
            say("ready");
            wait_for_end();
        }
        "stops" => put_and(&holder, Signal::SIGSTOP),
        "dies" => put_and(&holder, Signal::SIGKILL),
        "finder" => {
            say("ready");
            while let Some(id) = listen() {
                say(&format!("{:?}", who(&registry, id.parse().unwrap())));
            }
        }
        other => panic!("unknown role {other}"),
    }
}

/// Has the lock of a byte, from one word of the test to the next, in the file of a registry's locks: `REGISTRY BYTE`.
fn lock_a_byte(role: &Role) {
    let (registry, byte) = role.argument.split_once(' ').unwrap();
    let path = role.config.root.as_ref().unwrap().join(format!("test/{registry}.registry-locks"));
    let file = std::fs::File::options().write(true).open(path).unwrap();
    for kind in [libc::F_WRLCK, libc::F_UNLCK].into_iter().cycle() {
        if listen().is_none() {
            return;
        }
        let lock = libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: byte.parse().unwrap(),
            l_len: 1,
            l_pid: 0,
        };
        nix::fcntl::fcntl(&file, FcntlArg::F_SETLK(&lock)).unwrap();
        say("done");
    }
}

/// How often this process has a file open.
fn times_open(path: &std::path::Path) -> usize {
    let numbers = std::fs::read_dir("/proc/self/fd").unwrap();
    numbers
        .filter(|number| std::fs::read_link(number.as_ref().unwrap().path()).is_ok_and(|it| it == path))
        .count()
}

/// Puts 7 in, and an 8 beside ours: it ends or stops where it has the lock.
fn put_and(holder: &Holder, signal: Signal) {
    holder.put(entry(7), never).unwrap();
    say("ready");
    listen();
    let put = holder.put(entry(8), |_| {
        // To this thread, which gets no further.
        raise(signal).unwrap();
        true
    });
    say(&format!("{put:?}"));
    wait_for_end();
}

#[test]
fn entry_is_found_until_it_is_taken_out_and_its_id_is_the_holders_alone_unless_he_shares() {
    let folder = TestFolder::new();
    let registry = registry(&folder);
    let (ours, theirs) = (registry.join(OURS).unwrap(), registry.join(THEIRS).unwrap());
    assert_eq!(registry.holders().unwrap(), [OURS, THEIRS]);
    ours.put(entry(5), |_| panic!("nobody has it")).unwrap();
    assert_eq!(registry.find(A, 5).unwrap(), [Found { entry: entry(5), number: OURS }]);
    assert_eq!((registry.find(B, 5).unwrap(), registry.find(A, 6).unwrap()), (vec![], vec![]));
    let taken = theirs.put(entry(5), never).unwrap_err();
    assert!(matches!(taken, PutError::Taken { found } if found.number == OURS), "{taken}");
    let again = ours.put(entry(5), |_| true).unwrap_err();
    assert!(matches!(again, PutError::Taken { found } if found.number == OURS), "{again}");
    theirs.put(entry(5), |found| found.number == OURS && found.entry == entry(5)).unwrap();
    assert_eq!(who(&registry, 5), [OURS.get(), THEIRS.get()]);
    theirs.put(Entry { kind: B, id: u32::MAX, slot: 0 }, never).unwrap();
    assert_eq!(registry.entries().unwrap().len(), 3);
    assert!(!theirs.remove(Entry { slot: 0, ..entry(5) }).unwrap() && theirs.remove(entry(5)).unwrap());
    assert!(!theirs.remove(entry(5)).unwrap());
    assert_eq!(who(&registry, 5), [OURS.get()]);
    drop(ours);
    assert_eq!((who(&registry, 5), registry.holders().unwrap()), (vec![], vec![THEIRS]));
    drop(theirs);
    assert_eq!(registry.entries().unwrap(), []);
    // Nobody has been here.
    let bytes = std::fs::read(path(&folder, "names.registry")).unwrap();
    assert!(bytes.len() > 1 << 20 && bytes[8..].iter().all(|byte| *byte == 0));
}

#[test]
fn full_bucket_is_said_so() {
    let folder = TestFolder::new();
    let registry = registry(&folder);
    let (ours, theirs) = (registry.join(OURS).unwrap(), registry.join(THEIRS).unwrap());
    let put = |holder: &Holder, slot| holder.put(Entry { kind: A, id: 1, slot }, |_| true);
    (0..64).for_each(|slot| put(if slot < 32 { &ours } else { &theirs }, slot).unwrap());
    assert!(matches!(put(&ours, 64), Err(PutError::Full)));
    assert_eq!(registry.find(A, 1).unwrap().len(), 64);
    drop(theirs);
    put(&ours, 64).unwrap();
    assert_eq!(registry.find(A, 1).unwrap().len(), 33);
}

#[test]
fn entries_end_with_their_process_and_not_before() {
    let folder = TestFolder::new();
    let registry = registry(&folder);
    let ours = registry.join(OURS).unwrap();
    let mut holder = folder.helper("holder", "");
    holder.expect("ready");
    assert_eq!(registry.holders().unwrap(), [OURS, THEIRS]);
    holder.stop();
    let refused = ours.put(entry(1), never).unwrap_err();
    assert!(matches!(refused, PutError::Taken { found } if found.number == THEIRS), "{refused}");
    let own = Resident { number: OURS, life: Life::Alive { pid: std::process::id() }, entries: 0 };
    let stopped = Resident { number: THEIRS, life: Life::Alive { pid: holder.pid() }, entries: 3 };
    assert_eq!(registry.residents().unwrap(), [own, stopped]);
    // A child of it lives on, with copies of every descriptor.
    holder.kill();
    assert_eq!(registry.residents().unwrap(), [own, Resident { life: Life::Dead, ..stopped }]);
    assert_eq!((who(&registry, 1), registry.holders().unwrap()), (vec![], vec![OURS]));
    ours.put(entry(1), |_| panic!("the dead have a say")).unwrap();
    assert_eq!(who(&registry, 1), [OURS.get()]);
    assert_eq!((registry.sweep().unwrap(), registry.sweep().unwrap()), (2, 0));
    assert_eq!(registry.residents().unwrap(), [Resident { entries: 1, ..own }]);
    assert_eq!(registry.entries().unwrap().len(), 1);
}

#[test]
fn who_joins_sweeps_what_the_dead_have_left_before_their_places_are_given_away() {
    let folder = TestFolder::new();
    let registry = registry(&folder);
    for _ in 0..3 {
        let mut holder = folder.helper("holder", "");
        holder.expect("ready");
        holder.kill();
    }
    let ours = registry.join(OURS).unwrap();
    assert_eq!((registry.sweep().unwrap(), registry.entries().unwrap()), (0, vec![]));
    ours.put(entry(1), never).unwrap();
    let bytes = std::fs::read(path(&folder, "names.registry")).unwrap();
    let words = bytes[8..].as_chunks::<8>().0.iter().filter(|word| **word != [0; 8]).count();
    assert_eq!(words, 2, "a number and an entry");
}

#[test]
fn process_that_is_stopped_inside_a_lock_makes_writers_fail_in_time_and_no_reader_wait() {
    let folder = TestFolder::new();
    let registry = registry(&folder);
    let ours = registry.join(OURS).unwrap();
    ours.put(entry(8), never).unwrap();
    let mut stopped = folder.helper("stops", "");
    stopped.expect("ready");
    stopped.tell("go");
    stopped.wait_for_state('T');
    let started = Instant::now();
    assert_eq!((who(&registry, 8), who(&registry, 7)), (vec![OURS.get()], vec![THEIRS.get()]));
    assert_eq!(registry.entries().unwrap().len(), 2);
    assert!(started.elapsed().as_millis() < 1000, "a reader waited for a lock");
    let busy = ours.put(Entry { slot: 1, ..entry(8) }, |_| true).unwrap_err();
    assert!(matches!(busy, PutError::Registry(RegistryError::Busy { .. })), "{busy}");
    assert!(matches!(ours.remove(entry(8)), Err(RegistryError::Busy { .. })));
    // Elsewhere all goes on, and whoever comes and goes leaves what cannot be swept.
    ours.put(entry(9), never).unwrap();
    drop(ours);
    let again = registry.join(OURS).unwrap();
    assert_eq!((who(&registry, 8), registry.entries().unwrap().len()), (vec![], 1));
    stopped.signal(rustix::process::Signal::CONT);
    stopped.expect("Ok(())");
    assert_eq!(who(&registry, 8), [THEIRS.get()]);
    assert_eq!(registry.sweep().unwrap(), 1);
    again.put(Entry { slot: 1, ..entry(8) }, |found| found.number == THEIRS).unwrap();
}

#[test]
fn process_that_is_stopped_while_it_makes_a_registry_delays_nobody_who_opens_another() {
    let folder = TestFolder::new();
    let domain = folder.open();
    for name in ["slow", "other"] {
        drop(domain.registry(name).unwrap());
    }
    let slow_locks = path(&folder, "slow.registry-locks");
    let mut maker = folder.helper("locker", "slow 0");
    let mut turn_lock = || {
        maker.tell("turn");
        maker.expect("done");
    };
    turn_lock();
    let busy = domain.registry("slow").err().unwrap();
    assert!(matches!(busy, RegistryError::Busy { .. }), "{busy}");
    assert_eq!(times_open(&slow_locks), 0);
    turn_lock();
    let mut try_once = || {
        turn_lock();
        std::thread::scope(|scope| {
            let slow = [(); 2].map(|()| scope.spawn(|| domain.registry("slow")));
            wait_until(|| times_open(&slow_locks) > 0);
            let other = domain.registry("other").unwrap();
            assert_eq!(other.entries().unwrap(), []);
            drop(other);
            let was_sooner = slow.iter().all(|it| !it.is_finished());
            assert!(times_open(&slow_locks) <= 1, "to close either would end the locks of the other");
            turn_lock();
            let opened = slow.map(|it| it.join().unwrap());
            was_sooner && opened.iter().all(Result::is_ok)
        })
    };
    // Where much else runs, they may give up first.
    assert!((0..5).any(|_| try_once()));
}

/// Of the two bytes that a holder has locked, a sweep has the first one.
#[test]
fn holder_whose_place_is_being_swept_stays_dead() {
    let folder = TestFolder::new();
    let registry = registry(&folder);
    let mut holder = folder.helper("holder", "");
    holder.expect("ready");
    holder.kill();
    // A process that was stopped in its sweep, at the first of all places.
    let mut sweeper = folder.helper("locker", "names 65536");
    let mut turn_lock = || {
        sweeper.tell("turn");
        sweeper.expect("done");
    };
    turn_lock();
    assert_eq!((who(&registry, 1), registry.holders().unwrap()), (vec![], vec![]));
    let ours = registry.join(OURS).unwrap();
    ours.put(entry(1), |_| panic!("the dead have a say")).unwrap();
    assert_eq!((registry.sweep().unwrap(), who(&registry, 1)), (0, vec![OURS.get()]));
    turn_lock();
    assert_eq!((registry.sweep().unwrap(), registry.holders().unwrap()), (2, vec![OURS]));
}

#[test]
fn process_that_is_killed_inside_a_lock_holds_nobody_up() {
    let folder = TestFolder::new();
    let registry = registry(&folder);
    let ours = registry.join(OURS).unwrap();
    ours.put(entry(8), never).unwrap();
    let mut dies = folder.helper("dies", "");
    dies.expect("ready");
    dies.tell("go");
    wait_until(|| registry.holders().unwrap() == [OURS]);
    ours.put(Entry { slot: 1, ..entry(8) }, |_| true).unwrap();
    assert_eq!((who(&registry, 8).len(), registry.sweep().unwrap()), (2, 1));
}

#[test]
fn register_that_a_process_opens_twice_is_one_and_lasts_as_long_as_either() {
    let folder = TestFolder::new();
    let first = registry(&folder);
    let ours = first.join(OURS).unwrap();
    ours.put(entry(1), never).unwrap();
    let mut finder = folder.helper("finder", "");
    finder.expect("ready");
    let mut found = || {
        finder.tell("1");
        finder.hear()
    };
    let second = registry(&folder);
    assert_eq!(who(&second, 1), [OURS.get()]);
    let theirs = second.join(NonZeroU64::MAX).unwrap();
    assert!(matches!(theirs.put(entry(1), never), Err(PutError::Taken { .. })));
    drop((second, theirs));
    assert_eq!(found(), "[17]", "closing the second ended the locks of the first");
    drop(first);
    assert_eq!(found(), "[17]", "a holder keeps the registry open");
    drop(ours);
    assert_eq!(found(), "[]");
    let open = std::fs::read_dir("/proc/self/fd").unwrap().map(|fd| std::fs::read_link(fd.unwrap().path()));
    assert!(!open.flatten().any(|file| file.starts_with(folder.path())), "a file of it is open");
}

#[test]
fn of_threads_that_put_the_same_id_at_once_one_wins() {
    let folder = TestFolder::new();
    let registry = registry(&folder);
    let numbers = (1..=4).map(|number| NonZeroU64::new(number).unwrap());
    let holders: Vec<_> = numbers.map(|number| registry.join(number).unwrap()).collect();
    let won: Vec<Vec<u32>> = std::thread::scope(|scope| {
        let put = |holder| (0..300).filter(|id| Holder::put(holder, entry(*id), never).is_ok()).collect();
        let threads: Vec<_> = holders.iter().map(|holder| scope.spawn(move || put(holder))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut ids = won.concat();
    ids.sort_unstable();
    assert_eq!(ids, (0..300).collect::<Vec<_>>());
    assert!((0..300).all(|id| who(&registry, id).len() == 1));
}

#[test]
fn file_that_was_removed_replaced_or_cut_is_an_error_and_no_crash() {
    let folder = TestFolder::new();
    for file in ["names.registry", "names.registry-locks"] {
        let registry = registry(&folder);
        let ours = registry.join(OURS).unwrap();
        ours.put(entry(1), never).unwrap();
        std::fs::rename(path(&folder, file), path(&folder, "moved")).unwrap();
        let removed = ours.put(entry(2), never).unwrap_err();
        assert!(
            matches!(&removed, PutError::Registry(RegistryError::Removed { path }) if path.ends_with(file))
        );
        assert!(matches!(registry.join(THEIRS), Err(RegistryError::Removed { .. })));
        std::fs::write(path(&folder, file), "another").unwrap();
        assert!(matches!(ours.remove(entry(1)), Err(RegistryError::Removed { .. })));
        std::fs::rename(path(&folder, "moved"), path(&folder, file)).unwrap();
        assert!(ours.remove(entry(1)).unwrap());
    }
    let registry = registry(&folder);
    let ours = registry.join(OURS).unwrap();
    let words = path(&folder, "names.registry");
    std::fs::File::options().write(true).open(&words).unwrap().set_len(4096).unwrap();
    assert!(matches!(registry.find(A, 1), Err(RegistryError::Short { .. })));
    assert!(matches!(ours.put(entry(1), never), Err(PutError::Registry(RegistryError::Short { .. }))));
    drop((registry, ours));
    assert!(matches!(folder.open().registry("names"), Err(RegistryError::Short { .. })));
}

#[test]
fn what_is_no_register_is_not_taken_for_one() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let open = || domain.registry("names");
    let words = path(&folder, "names.registry");
    // Whoever made it was killed before it was whole.
    std::fs::write(&words, vec![0; 5000]).unwrap();
    let ours = open().unwrap().join(OURS).unwrap();
    ours.put(entry(1), never).unwrap();
    drop(ours);
    std::fs::write(&words, "another thing").unwrap();
    assert!(matches!(open(), Err(RegistryError::Format { .. })));
    std::fs::remove_file(&words).unwrap();
    std::os::unix::fs::symlink(path(&folder, "elsewhere"), &words).unwrap();
    assert!(matches!(open(), Err(RegistryError::NotOwners { .. })));
    std::fs::remove_file(&words).unwrap();
    std::fs::create_dir(&words).unwrap();
    assert!(matches!(open(), Err(RegistryError::NotOwners { .. })));
    std::fs::remove_dir(&words).unwrap();
    open().unwrap();
    assert!(matches!(domain.registry("../names"), Err(RegistryError::Name(_))));
    let without = Domain::open(&DomainConfig::in_network_namespace("registry")).unwrap();
    assert!(matches!(without.registry("names"), Err(RegistryError::NoFolder)));
}

/// Does with the registry of its parent what it must not, and then opens it for itself.
fn forker(role: &Role) {
    let domain = role.open();
    let registry = domain.registry("names").unwrap();
    let holder = registry.join(THEIRS).unwrap();
    holder.put(entry(1), never).unwrap();
    if let fork::Fork::Child = fork::fork().unwrap() {
        let is_forked = |error| matches!(error, RegistryError::Misuse(MisuseError::Forked { .. }));
        assert!(registry.find(A, 1).is_err_and(is_forked));
        let PutError::Registry(error) = holder.put(entry(2), never).unwrap_err() else {
            panic!("it was refused")
        };
        assert!(is_forked(error));
        let own = domain.registry("names").unwrap();
        let child = own.join(NonZeroU64::MAX).unwrap();
        child.put(entry(2), never).unwrap();
        assert_eq!(who(&own, 1), [THEIRS.get()]);
        drop((registry, holder));
        say("dropped");
        wait_for_end();
        std::process::exit(0);
    }
    wait_for_end();
}

#[test]
fn child_of_fork_opens_a_register_of_its_own_and_ends_neither_its_parents_locks_nor_its_own() {
    let folder = TestFolder::new();
    let registry = registry(&folder);
    let mut forker = folder.helper("forker", "");
    forker.expect("dropped");
    assert_eq!((who(&registry, 1), who(&registry, 2)), (vec![THEIRS.get()], vec![u64::MAX]));
    forker.kill();
    assert_eq!((who(&registry, 1), who(&registry, 2)), (vec![], vec![u64::MAX]));
}

/// A process of another user, on a registry that is not its own.
fn foreign(role: &Role) {
    let domain = Domain::open_foreign(&role.config, 0).unwrap();
    assert!(matches!(domain.registry("none"), Err(RegistryError::Absent { .. })));
    assert!(matches!(domain.registry("closed"), Err(RegistryError::NotAllowed { .. })));
    let registry = domain.registry("open").unwrap();
    assert_eq!(registry.find(A, 1).unwrap(), [Found { entry: entry(1), number: OURS }]);
    assert_eq!((registry.entries().unwrap().len(), registry.holders().unwrap()), (1, vec![OURS]));
    let is_refused = |error| matches!(error, RegistryError::Misuse(MisuseError::NotOwner { owner: 0 }));
    assert!(registry.join(THEIRS).is_err_and(is_refused) && registry.sweep().is_err_and(is_refused));
    let file = |name| role.config.root.as_ref().unwrap().join("test").join(name);
    let open = |name| std::fs::File::options().read(true).write(true).open(file(name)).is_ok();
    assert!(!open("open.registry") && std::fs::File::open(file("open.registry-locks")).is_err());
    // The most that it can do: a lock for reading on all of the file.
    let words = std::fs::File::open(file("open.registry")).unwrap();
    let lock = libc::flock { l_type: libc::F_RDLCK as i16, l_whence: 0, l_start: 0, l_len: 0, l_pid: 0 };
    nix::fcntl::fcntl(&words, FcntlArg::F_SETLK(&lock)).unwrap();
    say("locked");
    wait_for_end();
}

#[test]
fn another_user_reads_what_he_is_let_and_neither_writes_nor_keeps_writers_out() {
    let Some(users) = Users::new() else { return };
    let config = DomainConfig { root: Some(users.folder().to_owned()), name: "test".into() };
    let domain = Domain::open(&config).unwrap();
    let (_closed, open) = (domain.registry("closed").unwrap(), domain.registry("open").unwrap());
    let ours = open.join(OURS).unwrap();
    ours.put(entry(1), never).unwrap();
    open.let_others_read().unwrap();
    let mut foreign = users.helper(LISTED, "foreign", "");
    foreign.expect("locked");
    ours.put(entry(2), never).unwrap();
    assert_eq!(open.holders().unwrap(), [OURS]);
    let mode = |file: &str| users.folder().join("test").join(file).metadata().unwrap().permissions().mode();
    assert_eq!((mode("open.registry") & 0o777, mode("open.registry-locks") & 0o777), (0o644, 0o600));
    // Opening it again takes nothing away.
    drop((open, ours, domain));
    let again = Domain::open(&config).unwrap().registry("open").unwrap();
    assert_eq!((mode("open.registry") & 0o777, again.entries().unwrap()), (0o644, vec![]));
}
