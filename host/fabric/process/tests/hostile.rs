//! Members that say whatever they like: who connects to them is refused, and keeps nothing of them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use beeline_domain::{Answer, Domain, Entry, Holder, Kind, Offer, Peer, Refusal as Refused, Reply, Service};
use beeline_fabric::{BOARD_WORDS, Call, FORMAT_WORD, Part, Refusal, SequenceStatus, USE_WORDS, Value};
use beeline_fabric_process::{FabricMember, NotMapped};
use beeline_mmio::{MemoryOptions, ReadOnlyMemory, Region, SharedMemory, Words};
use support::Fabric;
use support::random::Random;
use support::segments::{available, available_telling, connect};

const BOARD: usize = BOARD_WORDS.next_power_of_two() as usize * 8;
const CLAIMS: usize = USE_WORDS.next_power_of_two() as usize * 8;
const BANK: usize = 1 << 20;
const BELLS: usize = 64 << 16;
const YARD: usize = ((128 + 1) * 64) << 16;
const NUMBER: NonZeroU64 = NonZeroU64::new(0xbad).unwrap();

/// A member of node 4 that answers as it is told to, and says that it has segment 7.
struct Liar {
    _offer: Offer,
    _holder: Holder,
    _domain: Domain,
}

struct Lying<F>(F);

impl<F: Fn(Vec<OwnedFd>) -> Result<Reply, Refused> + Send> Service for Lying<F> {
    fn connected(&mut self, _: &Peer, _: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refused> {
        (self.0)(fds).map(Answer::Now)
    }

    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refused> {
        Err(Refused::new("no"))
    }

    fn departed(&mut self, _: &Peer) {}
}

impl Liar {
    fn new(
        fabric: &Fabric,
        answer: impl Fn(Vec<OwnedFd>) -> Result<Reply, Refused> + Send + 'static,
    ) -> Self {
        let domain = fabric.domain();
        let offer = domain.offer("fabric.4.0000000000000bad", Box::new(Lying(answer))).unwrap();
        let holder = domain.registry("fabric.4").unwrap().join(NUMBER).unwrap();
        holder.put(Entry { kind: Kind::new(1).unwrap(), id: 7, slot: 3 }, |_| false).unwrap();
        Liar { _offer: offer, _holder: holder, _domain: domain }
    }
}

/// The answer of a member whose bank has so many bytes.
fn welcome(bank_bytes: u64) -> Vec<u8> {
    [b"BEEF\x02\0\0\0".as_slice(), &bank_bytes.to_le_bytes()].concat()
}

fn bank(bytes: usize) -> OwnedFd {
    SharedMemory::create("beeline-test", bytes, MemoryOptions::default()).unwrap().into_fd()
}

fn bells() -> OwnedFd {
    bank(BELLS)
}

fn board(bytes: usize) -> (Region, OwnedFd) {
    let (region, memory) = ReadOnlyMemory::create_sparse("beeline-test", bytes).unwrap();
    (region, memory.fd().try_clone_to_owned().unwrap())
}

fn open_fds() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn member_without_a_board_is_one_that_does_not_answer_and_costs_nothing() {
    type Answering = fn() -> Result<Reply, Refused>;
    let answers: [(&str, Answering); 7] = [
        ("a refusal", || Err(Refused::new("no"))),
        ("nothing", || Ok(Reply::default())),
        ("no memory", || Ok(Reply::new(welcome(BANK as u64)))),
        ("a bank of another size", || {
            Ok(Reply { payload: welcome(1 << 46), fds: vec![board(BOARD).1, bank(BANK), bells()] })
        }),
        ("bells of another size", || {
            Ok(Reply { payload: welcome(BANK as u64), fds: vec![board(BOARD).1, bank(BANK), bank(BANK)] })
        }),
        ("a board that is too short", || {
            Ok(Reply { payload: welcome(BANK as u64), fds: vec![board(4096).1, bank(BANK), bells()] })
        }),
        ("a board of zeros", || {
            Ok(Reply { payload: welcome(BANK as u64), fds: vec![board(BOARD).1, bank(BANK), bells()] })
        }),
    ];
    for (what, answer) in answers {
        let fabric = Fabric::new();
        let _liar = Liar::new(&fabric, move |_| answer());
        let member = FabricMember::open(fabric.config(8)).unwrap();
        assert_eq!(connect(&member, 4, 7), Err(Refusal::NodeNotResponding), "{what}");
        let before = open_fds();
        for _ in 0..10 {
            assert_eq!(connect(&member, 4, 7), Err(Refusal::NodeNotResponding), "{what}");
        }
        support::wait_until(|| open_fds() <= before);
    }
}

/// A socket whose last close takes a minute, and the other end, which takes nothing.
fn slow_to_close() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (other, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    while socket.write(&[0; 1 << 16]).is_ok() {}
    socket.set_nonblocking(false).unwrap();
    rustix::net::sockopt::set_socket_linger(&socket, Some(Duration::from_secs(60))).unwrap();
    (socket.into(), other)
}

#[test]
fn descriptor_that_takes_long_to_close_delays_nobody_who_connects() {
    for packet in [welcome(BANK as u64), Vec::new()] {
        let fabric = Fabric::new();
        let (socket, other) = slow_to_close();
        let passed = Mutex::new(Some(socket));
        let _liar = Liar::new(&fabric, move |_| {
            let Some(socket) = passed.lock().unwrap().take() else { return Err(Refused::new("no")) };
            Ok(Reply { payload: packet.clone(), fds: vec![socket, bank(BANK), bells()] })
        });
        let member = FabricMember::open(fabric.config(8)).unwrap();
        let began = Instant::now();
        for _ in 0..2 {
            assert_eq!(connect(&member, 4, 7), Err(Refusal::NodeNotResponding));
        }
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        // Ends the wait of whoever closes it.
        drop(other);
    }
}

#[test]
fn segment_outside_the_bank_is_not_mapped() {
    let fabric = Fabric::new();
    let (region, board) = board(BOARD);
    let words = region.words(0, BOARD / 8);
    // Node, life and the link of adapter 0; then the entry: number, size, in the bank, at an offset beyond it.
    let entry = 32 + 3 * 8;
    let values = [(1, 4), (2, 1), (8, 3), (entry + 1, 1 << 32 | 7), (entry + 2, 1 << 40), (entry + 3, 1)];
    values.into_iter().for_each(|(word, value)| words.store(word, value));
    words.store(entry, 1 << 32 | 1 << 16 | 1);
    words.store_release(0, FORMAT_WORD);
    let _liar = Liar::new(&fabric, move |_| {
        let board = board.try_clone().unwrap();
        Ok(Reply { payload: welcome(BANK as u64), fds: vec![board, bank(BANK), bells()] })
    });
    let member = FabricMember::open(fabric.config(8)).unwrap();
    for offset in [0, 1 << 20, 1 << 63, !0xfff] {
        words.store(entry + 4, offset);
        let remote = connect(&member, 4, 7).unwrap();
        let bytes = 1 << 40;
        let map = member.map_remote(remote, Part { offset: 0, bytes });
        assert!(matches!(map, Err(NotMapped::Memory(_))), "{offset:#x}: {map:?}");
        let map = member.map_remote(remote, Part { offset: (1 << 40) - 1, bytes: 1 });
        assert!(map.is_err(), "{offset:#x}: {map:?}");
        // What is not mapped does not count as a map.
        assert_eq!(member.call(Call::Disconnect(remote)), Ok(Value::Nothing));
    }
}

#[test]
fn consumer_that_claims_for_ever_is_forced_off_and_others_are_refused() {
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let local = available(&owner, 7, 4096);
    let (domain, name) = (fabric.domain(), format!("fabric.4.{:016x}", owner.number().0));
    let hello = [b"BEEF\x02\0\x08\0".as_slice(), &[7; 8], &(YARD as u64).to_le_bytes()].concat();
    let (claims, memory) = board(CLAIMS);
    let refused = |request: &[u8], fds: &[&OwnedFd]| {
        let fds: Vec<_> = fds.iter().map(|fd| std::os::fd::AsFd::as_fd(*fd)).collect();
        domain.connect(&name, request, &fds).unwrap_err().to_string()
    };
    assert!(refused(b"", &[&memory]).contains("no packet of the fabric"));
    let yard = bank(YARD);
    assert!(refused(&hello, &[&memory]).contains("not claims and a yard"));
    assert!(refused(&hello, &[&memory, &yard, &yard]).contains("not claims and a yard"));
    refused(&hello, &[&bank(4096), &yard]);
    refused(&hello, &[&memory, &bank(4096)]);
    let fds = [std::os::fd::AsFd::as_fd(&memory), std::os::fd::AsFd::as_fd(&yard)];
    let (connection, reply) = domain.connect(&name, &hello, &fds).unwrap();
    let [of_owner, _bank, _bells] = <[OwnedFd; 3]>::try_from(reply.fds).unwrap();
    let of_owner = ReadOnlyMemory::from_fd(of_owner, BOARD).unwrap().map_sparse().unwrap();
    let incarnation = of_owner.read_words(0, BOARD / 8).load(32) >> 32;
    claims.words(0, CLAIMS / 8).store(0, incarnation << 32 | u64::from(u32::MAX));
    assert_eq!(owner.call(Call::RemoveSegment { local, is_forced: false }), Err(Refusal::Busy));
    assert!(connection.call(b"more", &[]).is_err());
    assert_eq!(owner.call(Call::RemoveSegment { local, is_forced: true }), Ok(Value::Nothing));
    available(&owner, 7, 4096);
}

/// Stores anything, what is almost right and then what is right, in one place after the other, until it is told to stop.
fn scribble(words: &Words, right: &[(usize, u64)], mut random: Random, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let (word, right) = right[random.below(right.len() as u64) as usize];
        let value = match random.below(4) {
            0 => random.any(),
            1 => random.below(4),
            2 => random.below(3) << 32 | random.below(3) << 16 | 1,
            _ => u64::MAX,
        };
        words.store(word, value);
        (0..random.below(2000)).for_each(|_| std::hint::spin_loop());
        words.store(word, right);
        (0..random.below(2000)).for_each(|_| std::hint::spin_loop());
    }
}

/// What comes of using a segment that may be anything: nothing, or memory of the bank. Whether it was there.
fn use_whatever(user: &FabricMember, node: u16, id: u32) -> bool {
    let Ok(remote) = connect(user, node, id) else { return false };
    let sequence = user.sequence(remote).unwrap();
    for (offset, bytes) in [(0, 8), (0, 1 << 21), (1 << 40, 8)] {
        if let Ok(map) = user.map_remote(remote, Part { offset, bytes }) {
            map.copy_in(0, b"12345678").unwrap();
        }
    }
    if let (_, Some(start)) = sequence.start() {
        sequence.check(start);
    }
    let timeout_nanos = Some(0);
    let _ = user.call(Call::WaitRemote { remote, timeout_nanos });
    assert_eq!(user.call(Call::Disconnect(remote)), Ok(Value::Nothing));
    true
}

/// Says that something is over when this is dropped.
struct AtEnd<'a>(&'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn members_that_scribble_over_boards_and_claims_harm_nobody_else() {
    const ROUNDS: u32 = 300;
    const MOST_ROUNDS: u32 = 20 * ROUNDS;
    let (fabric, mut random) = (Fabric::new(), Random::new());
    let owner = FabricMember::open(fabric.config(12)).unwrap();
    let user = FabricMember::open(fabric.config(8)).unwrap();
    available(&owner, 9, 4096);
    // A member of node 4 that lies in its board, and one that lies in its claims of the honest one.
    let (region, board) = board(BOARD);
    let words = region.words(0, BOARD / 8);
    // Node, life and the link of adapter 0, and the entry: number, size, in the bank, there.
    let entry = 32 + 3 * 8;
    let right = [(2, 1), (8, 3), (entry + 1, 1 << 32 | 7), (entry + 2, 4096), (entry + 3, 1), (entry + 4, 0)];
    // And whether others hold it.
    let right = [right.as_slice(), &[(entry + 5, 0)]].concat();
    let right = [right.as_slice(), &[(entry, 1 << 32 | 1 << 16 | 1)]].concat();
    words.store(1, 4);
    right.iter().for_each(|(word, value)| words.store(*word, *value));
    words.store_release(0, FORMAT_WORD);
    let _liar = Liar::new(&fabric, move |_| {
        let board = board.try_clone().unwrap();
        Ok(Reply { payload: welcome(BANK as u64), fds: vec![board, bank(BANK), bells()] })
    });
    let (claims, memory) = ReadOnlyMemory::create_sparse("beeline-test", CLAIMS).unwrap();
    let hello = [b"BEEF\x02\0\x04\0".as_slice(), &[7; 8], &(YARD as u64).to_le_bytes()].concat();
    let (name, yard) = (format!("fabric.12.{:016x}", owner.number().0), bank(YARD));
    let fds = [memory.fd(), std::os::fd::AsFd::as_fd(&yard)];
    let (_connection, _) = fabric.domain().connect(&name, &hello, &fds).unwrap();
    let claims = claims.words(0, CLAIMS / 8);

    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (over, of_board, of_claims) = (&is_over, random.split(), random.split());
        scope.spawn(move || scribble(&words, &right, of_board, over));
        scope.spawn(move || scribble(&claims, &[0, 1, 2, 3].map(|slot| (slot, 0)), of_claims, over));
        // Also when this fails.
        let _end = AtEnd(&is_over);
        let (mut round, mut uses) = (0, 0);
        // On a busy machine those who scribble may not run for as long as many rounds take.
        while round < ROUNDS || (round < MOST_ROUNDS && !(1..round).contains(&uses)) {
            uses += u32::from(use_whatever(&user, 4, 7));
            let remote = connect(&user, 12, 9).unwrap();
            let sequence = user.sequence(remote).unwrap();
            let start = sequence.start().1.unwrap();
            user.map_remote(remote, Part { offset: 0, bytes: 8 }).unwrap().copy_in(0, b"12345678").unwrap();
            assert_eq!(sequence.check(start), SequenceStatus::Ok);
            user.call(Call::Disconnect(remote)).unwrap();
            let local = available_telling(&owner, 1000 + round, 64, true);
            for _ in 0..8 {
                owner.next_event();
            }
            // Whoever claims it for ever does not keep it.
            assert_eq!(owner.call(Call::RemoveSegment { local, is_forced: true }), Ok(Value::Nothing));
            round += 1;
        }
        assert!((1..round).contains(&uses), "{uses} of {round}: neither always nor never what it should be");
    });
}
