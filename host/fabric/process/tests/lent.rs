//! Segments that have their memory alone, which their member passes to who is connected to them; members that pass anything else.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};

use beeline_domain::{Answer, Connection, Entry, Kind, Peer, Refusal as Refused, Reply, Service};
use beeline_fabric::{
    AdapterNumber, BOARD_WORDS, Call, FORMAT_WORD, LocalSegment, Part, Refusal, USE_WORDS, Value,
};
use beeline_fabric_process::{FabricMember, Map, NotMapped};
use beeline_mmio::{MemoryOptions, ReadOnlyMemory, Region, SharedMemory, Words};
use rustix::process::Signal;
use support::Fabric;
use support::segments::{connect, create_own};

const BOARD: usize = BOARD_WORDS.next_power_of_two() as usize * 8;
const CLAIMS: usize = USE_WORDS.next_power_of_two() as usize * 8;
const YARD: usize = ((128 + 1) * 64) << 16;
const PAGE: u64 = 4096;
const ALL: Part = Part { offset: 0, bytes: PAGE };

#[test]
fn role() {
    support::play();
}

#[test]
fn memory_of_its_own_is_what_its_member_and_its_users_store_into() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.member(4), fabric.member(8));
    owner.expect("create-own s 7 100000", "ok 7");
    owner.expect("create-own t 9 5000", "ok 9");
    for line in ["prepare s", "available s", "prepare t", "available t"] {
        owner.expect(line, "ok");
    }
    owner.expect("map-local s 0 100000", "ok 100000");
    owner.expect("store s 70000 owner", "ok");
    user.expect("connect s 4 7 0", "ok 100000");
    user.expect("connect t 4 9 0", "ok 5000");
    user.expect("map-remote s 69999 30001", "ok 30001");
    user.expect("load s 0 7", ".owner.");
    user.expect("store s 30000 !", "ok");
    owner.expect("load s 99998 2", ".!");
    user.expect("map-remote t 0 5000", "ok 5000");
    user.expect("load t 0 3", "...");
    user.expect("map-remote t 4999 2", "OutOfRange");
    // It connects to its own as others do.
    owner.expect("connect r 4 7 0", "ok 100000");
    owner.expect("map-remote r 70000 5", "ok 5");
    owner.expect("load r 0 5", "owner");

    // What takes its place has another memory.
    owner.expect("unmap s", "ok");
    owner.expect("remove-force s", "ok");
    user.expect("unmap s", "ok");
    user.expect("map-remote s 0 1", "NotConnected");
    user.expect("disconnect s", "ok");
    owner.expect("unmap r", "ok");
    owner.expect("disconnect r", "ok");
    owner.expect("create-own s 7 100000", "ok 7");
    owner.expect("prepare s", "ok");
    owner.expect("available s", "ok");
    user.expect("connect s 4 7 0", "ok 100000");
    user.expect("map-remote s 70000 5", "ok 5");
    user.expect("load s 0 5", ".....");
    // It stays as long as it is mapped.
    user.expect("store t 0 still", "ok");
    owner.kill();
    user.expect("load t 0 5", "still");
}

#[test]
fn stopped_member_delays_nobody_but_who_wants_its_memory() {
    let fabric = Fabric::new();
    let mut owner = fabric.member(4);
    owner.expect("create-own s 7 4096", "ok 7");
    owner.expect("prepare s", "ok");
    owner.expect("available s", "ok");
    let user = FabricMember::open(fabric.config(8)).unwrap();
    let remote = connect(&user, 4, 7).unwrap();
    owner.stop();
    std::thread::scope(|scope| {
        let mapping = scope.spawn(|| refusal(user.map_remote(remote, ALL)));
        let others = create_own(&user, 1, 64).unwrap();
        user.call(Call::RemoveSegment { local: others, is_forced: false }).unwrap();
        assert!(!mapping.is_finished(), "nobody was waited for");
        assert_eq!(mapping.join().unwrap(), Some(Refusal::NodeNotResponding));
    });
    owner.signal(Signal::CONT);
    support::wait_until(|| user.map_remote(remote, ALL).is_ok());
    assert_eq!(user.call(Call::Disconnect(remote)), Ok(Value::Nothing));
}

/// Why something was not mapped; nothing if it was.
fn refusal(map: Result<Map, NotMapped>) -> Option<Refusal> {
    match map {
        Ok(_) => None,
        Err(NotMapped::Refused(refusal)) => Some(refusal),
        Err(other) => panic!("{other}"),
    }
}

/// A member that has a segment of one page, whose memory is what it is told to pass.
struct Lying<F> {
    board: OwnedFd,
    passes: F,
}

impl<F: FnMut(&[u8]) -> Result<Reply, Refused> + Send> Service for Lying<F> {
    fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refused> {
        let fds = vec![self.board.try_clone().unwrap(), memory(1 << 20), memory(64 << 16)];
        Ok(Answer::Now(Reply { payload: answer(1 << 20)[..16].to_vec(), fds }))
    }

    fn requested(&mut self, _: &Peer, request: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refused> {
        (self.passes)(request).map(Answer::Now)
    }

    fn departed(&mut self, _: &Peer) {}
}

/// What is said with a memory that is passed, of so many bytes.
fn answer(bytes: u64) -> Vec<u8> {
    answer_at(bytes, 0)
}

/// As [`answer`], of a segment that begins at an offset.
fn answer_at(bytes: u64, offset: u64) -> Vec<u8> {
    [b"BEEF\x02\0\0\0".as_slice(), &bytes.to_le_bytes(), &offset.to_le_bytes()].concat()
}

fn memory(bytes: usize) -> OwnedFd {
    SharedMemory::create("beeline-test", bytes, MemoryOptions::default()).unwrap().into_fd()
}

fn table(bytes: usize) -> (Region, OwnedFd) {
    let (region, memory) = ReadOnlyMemory::create_sparse("beeline-test", bytes).unwrap();
    (region, memory.fd().try_clone_to_owned().unwrap())
}

/// The board of a member of node 4 that has segment 7 in its entry 3.
fn board() -> (Words, OwnedFd) {
    let (region, board) = table(BOARD);
    let words = region.words(0, BOARD / 8);
    // Node, life and the link of adapter 0; then the entry: what it is, its size, a memory of its own.
    let entry = 32 + 3 * 8;
    let values = [(1, 4), (2, 1), (8, 3), (entry + 1, 1 << 32 | 7), (entry + 2, PAGE), (entry + 3, 2)];
    values.into_iter().for_each(|(word, value)| words.store(word, value));
    words.store(entry, 5 << 32 | 1 << 16 | 1);
    words.store_release(0, FORMAT_WORD);
    (words, board)
}

#[test]
fn what_is_no_memory_of_the_size_of_the_segment_is_not_mapped() {
    type Passing = Box<dyn FnMut(&[u8]) -> Result<Reply, Refused> + Send>;
    let passes = |payload: Vec<u8>, fds: fn() -> Vec<OwnedFd>| -> Passing {
        Box::new(move |_| Ok(Reply { payload: payload.clone(), fds: fds() }))
    };
    let (gone, lost) = (Refusal::NotConnected, Refusal::NodeNotResponding);
    let answers: [(&str, Refusal, Passing); 11] = [
        ("a refusal", gone, Box::new(|_| Err(Refused::new("no")))),
        ("nothing", lost, passes(Vec::new(), Vec::new)),
        ("no memory", lost, passes(answer(PAGE), Vec::new)),
        ("two memories", lost, passes(answer(PAGE), || vec![memory(4096), memory(4096)])),
        ("a pipe", lost, passes(answer(PAGE), || vec![std::io::pipe().unwrap().0.into()])),
        ("a file", lost, passes(answer(PAGE), || vec![tempfile::tempfile().unwrap().into()])),
        ("a memory that nobody may write", lost, passes(answer(PAGE), || vec![table(4096).1])),
        ("a memory that is too small", lost, passes(answer(PAGE - 1), || vec![memory(4095)])),
        ("a segment that begins too late", lost, passes(answer_at(PAGE, 1), || vec![memory(4096)])),
        ("a segment that begins nowhere", lost, passes(answer_at(PAGE, u64::MAX), || vec![memory(4096)])),
        ("a memory of another size", lost, passes(answer(PAGE), || vec![memory(4095)])),
    ];
    for (what, expected, passes) in answers {
        let fabric = Fabric::new();
        let (_words, board) = board();
        let domain = fabric.domain();
        let service = Box::new(Lying { board, passes });
        let _offer = domain.offer("fabric.4.0000000000000bad", service).unwrap();
        let holder = domain.registry("fabric.4").unwrap().join(NonZeroU64::new(0xbad).unwrap()).unwrap();
        holder.put(Entry { kind: Kind::new(1).unwrap(), id: 7, slot: 3 }, |_| false).unwrap();
        let user = FabricMember::open(fabric.config(8)).unwrap();
        let remote = connect(&user, 4, 7).unwrap();
        for _ in 0..3 {
            assert_eq!(refusal(user.map_remote(remote, ALL)), Some(expected), "{what}");
        }
        // What is not mapped does not count as a map.
        assert_eq!(user.call(Call::Disconnect(remote)), Ok(Value::Nothing), "{what}");
    }
}

#[test]
fn more_memory_than_the_segment_has_is_mapped_as_far_as_that_goes() {
    let fabric = Fabric::new();
    let (_words, board) = board();
    let domain = fabric.domain();
    let mut asked = Vec::new();
    let passes = move |request: &[u8]| {
        asked.push(request.to_vec());
        assert_eq!(asked, [b"BEEF\x02\0\x03\0\x05\0\0\0".as_slice()], "once a connection");
        Ok(Reply { payload: answer_at(3 * PAGE, PAGE), fds: vec![memory(3 * PAGE as usize)] })
    };
    let _offer = domain.offer("fabric.4.0000000000000bad", Box::new(Lying { board, passes })).unwrap();
    let holder = domain.registry("fabric.4").unwrap().join(NonZeroU64::new(0xbad).unwrap()).unwrap();
    holder.put(Entry { kind: Kind::new(1).unwrap(), id: 7, slot: 3 }, |_| false).unwrap();
    let user = FabricMember::open(fabric.config(8)).unwrap();
    let remote = connect(&user, 4, 7).unwrap();
    let map = user.map_remote(remote, ALL).unwrap();
    let again = user.map_remote(remote, Part { offset: 1, bytes: 3 }).unwrap();
    map.copy_in(1, b"abc").unwrap();
    let mut loaded = [0; 3];
    again.copy_out(0, &mut loaded).unwrap();
    assert_eq!(&loaded, b"abc");
    assert_eq!(refusal(user.map_remote(remote, Part { offset: 1, bytes: PAGE })), Some(Refusal::OutOfRange));
}

/// Somebody who speaks to a member as another member does, and what it claims.
struct Asking {
    connection: Connection,
    claims: Words,
    board: beeline_mmio::ReadWords,
}

impl Asking {
    fn of(fabric: &Fabric, owner: &FabricMember) -> Self {
        let name = format!("fabric.4.{:016x}", owner.number().0);
        let hello = [b"BEEF\x02\0\x08\0".as_slice(), &[7; 8], &(YARD as u64).to_le_bytes()].concat();
        let ((claims, passed), yard) = (table(CLAIMS), memory(YARD));
        let (connection, reply) =
            fabric.domain().connect(&name, &hello, &[passed.as_fd(), yard.as_fd()]).unwrap();
        let board = reply.fds.into_iter().next().unwrap();
        let board = ReadOnlyMemory::from_fd(board, BOARD).unwrap().map_sparse().unwrap();
        let (claims, board) = (claims.words(0, CLAIMS / 8), board.read_words(0, BOARD / 8));
        Asking { connection, claims, board }
    }

    /// The incarnation of an entry.
    fn incarnation(&self, slot: u16) -> u32 {
        (self.board.load(32 + usize::from(slot) * 8) >> 32) as u32
    }

    fn claim(&self, slot: u16, incarnation: u32, count: u32) {
        self.claims.store(slot.into(), u64::from(incarnation) << 32 | u64::from(count));
    }

    /// How many bytes it is passed; nothing if it is refused.
    fn ask(&self, slot: u16, incarnation: u32) -> Option<u64> {
        ask(&self.connection, slot, incarnation)
    }
}

fn ask(connection: &Connection, slot: u16, incarnation: u32) -> Option<u64> {
    let request = [b"BEEF\x02\0".as_slice(), &slot.to_le_bytes(), &incarnation.to_le_bytes()].concat();
    let reply = connection.call(&request, &[]).ok()?;
    let bytes = u64::from_le_bytes(reply.payload[8..16].try_into().unwrap());
    let [fd] = <[OwnedFd; 1]>::try_from(reply.fds).unwrap();
    SharedMemory::from_fd(fd, bytes as usize).unwrap();
    Some(bytes)
}

fn set_available(member: &FabricMember, local: LocalSegment) {
    let adapter = AdapterNumber::new(0).unwrap();
    member.call(Call::Prepare(local, adapter)).unwrap();
    member.call(Call::SetAvailable(local, adapter)).unwrap();
}

#[test]
fn memory_is_passed_to_who_is_connected_to_its_segment_and_to_nobody_else() {
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let own = create_own(&owner, 7, 100_000).unwrap();
    set_available(&owner, own);
    support::segments::available(&owner, 8, 4096);
    let create = |is_private| {
        let id = beeline_fabric::SegmentId(9);
        let (is_auto, is_empty, has_callback) = (false, false, false);
        let call = Call::CreateSegment { id, is_auto, bytes: 64, is_private, is_empty, has_callback };
        owner.call(call).unwrap();
    };
    create(true);
    let asking = Asking::of(&fabric, &owner);
    let incarnation = asking.incarnation(0);
    assert_eq!(asking.ask(0, incarnation), None, "without a claim");
    asking.claim(0, incarnation, 1);
    assert_eq!(asking.ask(0, incarnation), Some(100_000));
    assert_eq!(asking.ask(0, incarnation + 1), None, "another incarnation");
    asking.claim(0, incarnation + 1, 1);
    assert_eq!(asking.ask(0, incarnation + 1), None, "one that is not there");
    for slot in [1, 2, 3, u16::MAX] {
        let incarnation = asking.incarnation(slot).max(1);
        asking.claim(slot, incarnation, 1);
        assert_eq!(asking.ask(slot, incarnation), None, "in the bank, private, or none: {slot}");
    }
    asking.claim(0, incarnation, 1);
    for wrong in [b"".as_slice(), b"BEEF\x02\0\0\0\x01\0\0\0\0", b"BEEF\x03\0\0\0\x01\0\0\0"] {
        assert!(asking.connection.call(wrong, &[]).is_err());
    }

    // Whoever asked a question is connected, and is no member.
    let question = [b"BEEQ\x02\0\x01\0".as_slice(), &[0; 16]].concat();
    let name = format!("fabric.4.{:016x}", owner.number().0);
    let (visitor, _) = fabric.domain().connect(&name, &question, &[]).unwrap();
    assert_eq!(ask(&visitor, 0, incarnation), None);

    assert_eq!(asking.ask(0, incarnation), Some(100_000));
    owner.call(Call::RemoveSegment { local: own, is_forced: true }).unwrap();
    assert_eq!(asking.ask(0, incarnation), None, "removed");
}
