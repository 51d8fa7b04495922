//! The memory that two processes of a pair share: that it is one, and what hostile owners and limits of the process do to it.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use beeline_domain::{Answer, Domain, Pairs, Peer, Refusal, Reply, Service};
use beeline_mmio::{MemoryOptions, ReadOnlyMemory, SharedMemory};
use harness::pairs::{MEMORY_BYTES, agree_on_all, agreed, cookie, counts, ends, hello_of, meet, pairs};
use harness::{Helper, Role, TestFolder, listen, say, wait_until};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};

const PORTS: std::ops::Range<u16> = 1..9;
/// Bytes of the memory that each slot has in these tests.
const SLOT_BYTES: usize = 32 << 10;
/// More than a process may map that has [`FREE_BYTES`] left.
const TOO_MANY_BYTES: usize = 8 << 30;
const FREE_BYTES: u64 = 2 << 30;

fn pairs_of(domain: &Domain, memory_bytes: usize) -> Pairs {
    domain.pairs(Box::new(|ends| Some(cookie(ends))), memory_bytes).unwrap()
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    match &*role.argument {
        "has no room" => return without_room(&role.open()),
        "is hostile" => return hostile_owner(&role),
        "has another size" => return with_another_size(&role.open()),
        _ => {}
    }
    let pairs = pairs(&role.open());
    say("ready");
    let all = agree_on_all(&pairs, false, PORTS);
    for (port, agreed) in PORTS.zip(&all) {
        // Release: the test loads it with acquire.
        agreed.memory.word(agreed.slot as usize * SLOT_BYTES).store_release(u64::from(port));
    }
    let sums = || all.iter().map(|agreed| agreed.memory.word(agreed.slot as usize * SLOT_BYTES + 64));
    wait_until(|| {
        pairs.turn();
        sums().zip(PORTS).all(|(word, port)| word.load_acquire() == 1000 + u64::from(port))
    });
    say("has seen it");
    let _ = listen();
}

#[test]
fn both_processes_see_what_the_other_one_stores_at_a_slots_place() {
    let folder = TestFolder::new();
    let ours = pairs(&folder.open());
    let mut other = folder.helper("pair_memory", "");
    other.expect("ready");
    let all = agree_on_all(&ours, true, PORTS);
    for (port, agreed) in PORTS.zip(&all) {
        assert_eq!(agreed.memory.bytes(), MEMORY_BYTES);
        let word = agreed.memory.word(agreed.slot as usize * SLOT_BYTES);
        wait_until(|| {
            ours.turn();
            word.load_acquire() == u64::from(port)
        });
        agreed.memory.word(agreed.slot as usize * SLOT_BYTES + 64).store_release(1000 + u64::from(port));
    }
    other.expect("has seen it");
    // What was stored outlives the other process, and what the pairs know of it.
    other.kill();
    wait_until(|| {
        ours.turn();
        ours.counts().open == 0
    });
    drop(ours);
    let words = all.iter().map(|agreed| agreed.memory.word(agreed.slot as usize * SLOT_BYTES).load_acquire());
    assert!(words.eq(PORTS.map(u64::from)));
}

#[test]
fn memory_that_an_owner_hands_out_can_never_change_its_size() {
    let folder = TestFolder::new();
    let _ours = pairs(&folder.open());
    // The first place is that of the pairs.
    let (domain, member) = (folder.open(), folder.open().connection_table().unwrap());
    let name = domain.names().unwrap().into_iter().find(|name| name.starts_with("connections-")).unwrap();
    let hello = hello_of(MEMORY_BYTES, member.number(), 1);
    let (_connection, reply) = domain.connect(&name, &hello, &[]).unwrap();
    let [memory] = <[OwnedFd; 1]>::try_from(reply.fds).unwrap();
    for bytes in [0, 4096, MEMORY_BYTES as u64 - 1, MEMORY_BYTES as u64 + 1] {
        assert_eq!(rustix::fs::ftruncate(&memory, bytes), Err(Errno::PERM), "{bytes}");
    }
    assert_eq!(rustix::fs::fcntl_add_seals(&memory, SealFlags::WRITE), Err(Errno::PERM));
    assert_eq!(rustix::fs::fchmod(&memory, Mode::RWXU), Err(Errno::PERM), "it is never executed");
    let memory = SharedMemory::from_fd(memory, MEMORY_BYTES).unwrap();
    assert_eq!(rustix::fs::fstat(memory.fd()).unwrap().st_blocks, 0, "no page is brought in");
}

/// Is refused, and refuses, as often as the other asks.
fn with_another_size(domain: &Domain) {
    let pairs = pairs_of(domain, MEMORY_BYTES / 2);
    say("ready");
    let Some(_asks) = listen() else { return };
    let mut refusals = 0;
    wait_until(|| {
        refusals += u32::from(is_refused(&pairs, false));
        refusals == 3
    });
    say("was refused");
    let _ = listen();
}

/// Asks until a connection is being opened, and waits until it is not.
fn is_refused(pairs: &Pairs, is_server: bool) -> bool {
    assert!(agreed(pairs, is_server, 1).is_none());
    if pairs.counts().opening == 0 {
        return false;
    }
    wait_until(|| pairs.counts().opening == 0);
    assert_eq!(pairs.counts(), counts(0, 0));
    true
}

#[test]
fn processes_that_ask_for_different_sizes_share_nothing() {
    let folder = TestFolder::new();
    let ours = pairs(&folder.open());
    let mut other = folder.helper("pair_memory", "has another size");
    other.expect("ready");
    assert!(agreed(&ours, true, 1).is_none());
    other.tell("ask");
    other.expect("was refused");
    let mut refusals = 0;
    wait_until(|| {
        refusals += u32::from(is_refused(&ours, true));
        refusals == 3
    });
}

/// Hands out what it was told last.
struct HostileOwner {
    told: Arc<Mutex<String>>,
    folder: PathBuf,
}

impl Service for HostileOwner {
    fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply { payload: Vec::new(), fds: memories(&self.told.lock().unwrap(), &self.folder) }.into())
    }

    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Err(Refusal::new("nothing"))
    }

    fn departed(&mut self, _: &Peer) {}
}

fn hostile_owner(role: &Role) {
    let (domain, member) = (role.open(), role.open().connection_table().unwrap());
    let told = Arc::new(Mutex::new(String::new()));
    let service = HostileOwner { told: Arc::clone(&told), folder: role.config.root.clone().unwrap() };
    let _offer = domain.offer(&format!("connections-{:016x}", member.number()), Box::new(service)).unwrap();
    let _ = member.find(&ends(false, 1)).unwrap();
    say("ready");
    while let Some(what) = listen() {
        *told.lock().unwrap() = what;
        say("will do");
    }
}

fn memory_of(bytes: usize) -> OwnedFd {
    SharedMemory::create("test", bytes, MemoryOptions::default()).unwrap().into_fd()
}

fn memory_with_seals(seals: SealFlags) -> OwnedFd {
    let memory = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&memory, MEMORY_BYTES as u64).unwrap();
    rustix::fs::fcntl_add_seals(&memory, seals).unwrap();
    memory
}

fn opened_for_reading(memory: &OwnedFd) -> OwnedFd {
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(memory));
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap()
}

const HOSTILE: [&str; 14] = [
    "none",
    "two",
    "short",
    "long",
    "unsealed",
    "may shrink",
    "may grow",
    "may be sealed",
    "cannot be written",
    "read-only",
    "open for reading",
    "a file",
    "a device",
    "a socket",
];

fn memories(what: &str, folder: &Path) -> Vec<OwnedFd> {
    let size = SealFlags::SHRINK | SealFlags::GROW;
    let memory = match what {
        "none" => return Vec::new(),
        "two" => return vec![memory_of(MEMORY_BYTES), memory_of(MEMORY_BYTES)],
        "short" => memory_of(MEMORY_BYTES - 4096),
        "long" => memory_of(MEMORY_BYTES + 1),
        "unsealed" => memory_with_seals(SealFlags::empty()),
        "may shrink" => memory_with_seals(SealFlags::GROW | SealFlags::SEAL),
        "may grow" => memory_with_seals(SealFlags::SHRINK | SealFlags::SEAL),
        "may be sealed" => memory_with_seals(size),
        "cannot be written" => memory_with_seals(size | SealFlags::SEAL | SealFlags::FUTURE_WRITE),
        "read-only" => {
            let (_region, memory) = ReadOnlyMemory::create_sparse("test", MEMORY_BYTES).unwrap();
            memory.fd().try_clone_to_owned().unwrap()
        }
        "open for reading" => opened_for_reading(&memory_of(MEMORY_BYTES)),
        "a file" => {
            let mut options = File::options();
            let file = options.create(true).truncate(true).read(true).write(true).open(folder.join("file"));
            file.as_ref().unwrap().set_len(MEMORY_BYTES as u64).unwrap();
            file.unwrap().into()
        }
        "a device" => File::options().read(true).write(true).open("/dev/zero").unwrap().into(),
        "a socket" => UnixDatagram::unbound().unwrap().into(),
        _ => memory_of(MEMORY_BYTES),
    };
    vec![memory]
}

#[test]
fn memory_of_a_hostile_owner_is_refused_and_counted() {
    let folder = TestFolder::new();
    let ours = pairs(&folder.open());
    let mut owner = folder.helper("pair_memory", "is hostile");
    owner.expect("ready");
    for what in HOSTILE {
        // What was handed out before is judged.
        wait_until(|| ours.counts().opening == 0);
        owner.tell(what);
        owner.expect("will do");
        let before = ours.counts().wrong;
        wait_until(|| {
            assert!(agreed(&ours, true, 1).is_none(), "{what}");
            assert_eq!(ours.counts().open, 0, "{what}");
            ours.counts().wrong > before
        });
    }
    // One who begins to behave is let in.
    owner.tell("as agreed");
    owner.expect("will do");
    wait_until(|| agreed(&ours, true, 1).is_none() && ours.counts().open == 1);
    assert_eq!(ours.counts().without_memory, 0);
}

/// A process that may not map the memory says so, when it lets in and when it is let in, and goes on.
fn without_room(domain: &Domain) {
    let pairs = pairs_of(domain, TOO_MANY_BYTES);
    let pages: u64 =
        std::fs::read_to_string("/proc/self/statm").unwrap().split(' ').next().unwrap().parse().unwrap();
    let limit = pages * rustix::param::page_size() as u64 + FREE_BYTES;
    setrlimit(Resource::As, Rlimit { current: Some(limit), maximum: Some(limit) }).unwrap();
    say("ready");
    while let Some(told) = listen() {
        let (is_asking, before) = (told == "ask", pairs.counts().without_memory);
        if told == "be asked" {
            let _ = meet(&pairs, false, 1);
            say("can be asked");
        }
        wait_until(|| {
            if is_asking {
                assert!(agreed(&pairs, false, 2).is_none());
            }
            pairs.turn();
            pairs.counts().without_memory > before
        });
        assert_eq!((pairs.counts().open, pairs.counts().wrong), (0, 0));
        say("has no room");
    }
}

#[test]
fn process_that_may_not_map_the_memory_leaves_the_connection_alone_and_lives() {
    let folder = TestFolder::new();
    let ours = pairs_of(&folder.open(), TOO_MANY_BYTES);
    let mut other: Helper = folder.helper("pair_memory", "has no room");
    other.expect("ready");
    // It is let in, and cannot map.
    assert!(agreed(&ours, true, 2).is_none());
    other.tell("ask");
    other.expect("has no room");
    // It lets in, and cannot make.
    other.tell("be asked");
    other.expect("can be asked");
    let heard = std::thread::scope(|scope| {
        let listening = scope.spawn(|| other.hear());
        while !listening.is_finished() {
            ours.turn();
            assert!(agreed(&ours, true, 1).is_none());
            std::thread::yield_now();
        }
        listening.join().unwrap()
    });
    assert_eq!(heard, "has no room");
    assert_eq!((ours.counts().wrong, ours.counts().without_memory), (0, 0));
}
