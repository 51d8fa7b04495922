//! `poll` and `select`: windows beside what the kernel tells, and who sleeps in them.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod readiness;

use std::collections::HashMap;
use std::io::Write;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use beeline_socket_engine::readiness::*;
use beeline_socket_rules::Spin;
use readiness::*;
use rustix::io::Errno;

const IN: i16 = 0x01;
const OUT: i16 = 0x04;
const HUP: i16 = 0x10;
const NEVER: Spin = Spin::For(Duration::ZERO);

/// Connections by number, and what became of them.
#[derive(Default)]
struct World {
    connections: HashMap<RawFd, Connection>,
    candidates: Vec<RawFd>,
    listeners: Vec<RawFd>,
    passes: Arc<AtomicU32>,
    forbidden: Mutex<Vec<RawFd>>,
    writable: Mutex<Vec<RawFd>>,
}

struct Pass(Arc<AtomicU32>);

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Connections for World {
    type Watched = Connection;
    type Pass = Pass;

    fn are_any(&self) -> bool {
        !self.connections.is_empty() || !self.candidates.is_empty()
    }

    fn find(&self, number: RawFd) -> Found<Connection, Pass> {
        if let Some(connection) = self.connections.get(&number) {
            return Found::Watched(*connection);
        }
        if self.candidates.contains(&number) {
            self.passes.fetch_add(1, Ordering::SeqCst);
            return Found::Kernel(Pass(Arc::clone(&self.passes)));
        }
        if self.listeners.contains(&number) { Found::Listener } else { Found::Unknown }
    }

    fn is_writable(&self, number: RawFd) -> bool {
        self.writable.lock().unwrap().contains(&number)
    }

    fn forbid(&self, number: RawFd) {
        self.forbidden.lock().unwrap().push(number);
    }
}

fn entry(number: RawFd, asked: i16) -> PollEntry {
    PollEntry { number, asked, told: 0x7f }
}

fn pair() -> (UnixStream, UnixStream) {
    UnixStream::pair().unwrap()
}

fn told(entries: &[PollEntry]) -> Vec<i16> {
    entries.iter().map(|entry| entry.told).collect()
}

fn poll_once(world: &World, entries: &mut [PollEntry]) -> Result<usize, Errno> {
    poll(world, entries, &mut Real::of_polls(), Some(Duration::ZERO), NEVER, own_sleeper)
}

#[test]
fn windows_are_told_beside_what_the_kernel_tells() {
    let (mut one, two, mut three) = (pair(), pair(), pair());
    let connection = Connection::up();
    let mut world = World::default();
    world.connections.insert(one.0.as_raw_fd(), connection);
    let (first, second, third) = (one.0.as_raw_fd(), two.0.as_raw_fd(), three.0.as_raw_fd());
    let list =
        || [entry(first, IN), entry(-7, IN), entry(second, IN), entry(third, IN | OUT), entry(first, OUT)];
    let mut entries = list();
    assert_eq!(poll_once(&world, &mut entries), Ok(2));
    assert_eq!(told(&entries), [0, 0, 0, OUT, OUT]);
    connection.send();
    three.1.write_all(b"x").unwrap();
    let mut entries = list();
    assert_eq!(poll_once(&world, &mut entries), Ok(3));
    assert_eq!(told(&entries), [IN, 0, 0, IN | OUT, OUT]);
    // One descriptor with both is one.
    one.1.write_all(b"x").unwrap();
    assert_eq!(poll_once(&world, &mut entries), Ok(3));
    assert!(connection.take());
    drop(two.1);
    assert_eq!(poll_once(&world, &mut entries), Ok(4));
    assert_eq!(told(&entries), [IN, 0, IN | HUP, IN | OUT, OUT]);
}

#[test]
fn list_of_windows_asks_the_kernel_when_it_was_not_for_a_while() {
    let one = pair();
    let connection = Connection::up();
    let mut world = World::default();
    world.connections.insert(one.0.as_raw_fd(), connection);
    connection.send();
    let mut kernel = Real::of_polls();
    kernel.time = Time::steps_of_microseconds(15);
    for _ in 0..40 {
        let mut entries = [entry(one.0.as_raw_fd(), IN)];
        assert_eq!(poll(&world, &mut entries, &mut kernel, None, NEVER, own_sleeper), Ok(1));
        assert_eq!(told(&entries), [IN]);
    }
    // One look at the clock a call, of 15 microseconds.
    assert!((5..=15).contains(&kernel.looks), "{}", kernel.looks);
    // Where the kernel has more to tell it is always asked.
    for _ in 0..10 {
        let mut entries = [entry(one.0.as_raw_fd(), IN | OUT)];
        assert_eq!(poll(&world, &mut entries, &mut kernel, None, NEVER, own_sleeper), Ok(1));
        assert_eq!(told(&entries), [IN | OUT]);
    }
}

#[test]
fn room_of_windows_is_told_of_and_the_kernel_asked_when_it_was_not_for_a_while() {
    let (one, other) = (pair(), pair());
    let mut world = World::default();
    world.candidates.push(one.0.as_raw_fd());
    world.candidates.push(other.0.as_raw_fd());
    world.writable.lock().unwrap().push(one.0.as_raw_fd());
    (&other.1).write_all(b"x").unwrap();
    let mut kernel = Real::of_polls();
    kernel.time = Time::steps_of_microseconds(5);
    let (mut with_the_other, mut without) = (0, 0);
    for _ in 0..40 {
        let mut entries = [entry(one.0.as_raw_fd(), OUT), entry(other.0.as_raw_fd(), IN)];
        let ready = poll(&world, &mut entries, &mut kernel, None, NEVER, own_sleeper).unwrap();
        match (ready, &told(&entries)[..]) {
            (2, [OUT, IN]) => with_the_other += 1,
            (1, [OUT, 0]) => without += 1,
            found => panic!("{found:?}"),
        }
    }
    assert_eq!(with_the_other, kernel.looks);
    assert!(with_the_other >= 3 && without >= 20, "{with_the_other}, {without}");
    // What is no connection is asked for each time.
    world.candidates.pop();
    for _ in 0..10 {
        let mut entries = [entry(one.0.as_raw_fd(), OUT), entry(other.0.as_raw_fd(), IN)];
        assert_eq!(poll(&world, &mut entries, &mut kernel, None, NEVER, own_sleeper), Ok(2));
    }
    // A connection that sends by the socket is the kernel's to tell of.
    world.writable.lock().unwrap().clear();
    let mut entries = [entry(one.0.as_raw_fd(), OUT)];
    assert_eq!(poll(&world, &mut entries, &mut kernel, None, NEVER, own_sleeper), Ok(1));
    assert_eq!(kernel.sleeps.len(), 1);
}

#[test]
fn kernel_is_asked_seldom_of_a_listener_beside_a_window_with_bytes_by_polls_and_selects() {
    let (one, listener) = (pair(), pair());
    let mut world = World::default();
    let (connection, numbers) = (Connection::up(), [one.0.as_raw_fd(), listener.0.as_raw_fd()]);
    connection.send();
    world.connections.insert(numbers[0], connection);
    world.listeners.push(numbers[1]);
    let mut kernel = Real::of_polls();
    kernel.time = Time::steps_of_microseconds(10);
    for _ in 0..40 {
        let mut entries = numbers.map(|number| entry(number, IN));
        let ready = poll(&world, &mut entries, &mut kernel, None, NEVER, own_sleeper);
        assert_eq!((ready, told(&entries)), (Ok(1), vec![IN, 0]));
    }
    assert!((3..=10).contains(&kernel.looks), "{}", kernel.looks);
    let mut polls = Real::of_polls();
    // The thread remembers when it last asked, by the clock before.
    polls.time = Time::steps_of_microseconds(20);
    let mut kernel = RealSelect { polls, selects: 0 };
    for _ in 0..40 {
        let mut sets = Sets3::of([&numbers, &[], &[]]);
        assert_eq!(sets.select_by(&mut kernel, &world, Duration::from_secs(1)), Ok(1));
        assert_eq!(sets.numbers(), [vec![numbers[0]], vec![], vec![]]);
    }
    assert!((3..=20).contains(&kernel.polls.looks) && kernel.selects == 0, "{}", kernel.polls.looks);
}

#[test]
fn poll_without_windows_is_the_kernels_and_holds_connections_there() {
    let one = pair();
    let mut world = World::default();
    world.candidates.push(one.0.as_raw_fd());
    let mut kernel = Real::of_polls();
    kernel.watch = Some(Arc::clone(&world.passes));
    let mut entries = [entry(one.0.as_raw_fd(), IN)];
    let limit = Some(Duration::from_millis(2));
    assert_eq!(poll(&world, &mut entries, &mut kernel, limit, NEVER, own_sleeper), Ok(0));
    assert_eq!((kernel.looks, &kernel.sleeps), (0, &vec![limit]));
    assert_eq!((&kernel.seen, world.passes.load(Ordering::SeqCst)), (&vec![1], 0));
}

#[test]
fn connection_that_cannot_ring_is_forbidden_and_looked_at_in_short_sleeps() {
    let one = pair();
    let connection = Connection::up();
    connection.0.is_full.store(true, Ordering::Relaxed);
    let mut world = World::default();
    world.connections.insert(one.0.as_raw_fd(), connection);
    let mut kernel = Real::of_polls();
    kernel.time = Time::steps_of_microseconds(100);
    let mut entries = [entry(one.0.as_raw_fd(), IN)];
    let limit = Some(Duration::from_millis(4));
    assert_eq!(poll(&world, &mut entries, &mut kernel, limit, NEVER, own_sleeper), Ok(0));
    assert!(kernel.sleeps.len() > 2);
    assert!(kernel.sleeps.iter().all(|sleep| sleep.unwrap() <= Duration::from_millis(1)));
    assert_eq!(world.forbidden.lock().unwrap()[0], one.0.as_raw_fd());
    // A thread that has no bell looks as often.
    let mut kernel = Real::of_polls();
    kernel.time = Time::steps_of_microseconds(100);
    assert_eq!(poll(&world, &mut entries, &mut kernel, limit, NEVER, || None::<Own>), Ok(0));
    assert!(kernel.sleeps.len() > 2);
}

#[test]
fn no_wake_up_is_lost_between_threads_that_poll() {
    let connections = [Connection::up(), Connection::up()];
    thread::scope(|scope| {
        for side in 0..2 {
            let (own, other) = (connections[side], connections[1 - side]);
            scope.spawn(move || {
                let one = pair();
                let mut world = World::default();
                world.connections.insert(one.0.as_raw_fd(), own);
                let bell = own_sleeper();
                if side == 0 {
                    other.send();
                }
                for turn in 0..5000 {
                    while !own.take() {
                        let mut entries = [entry(one.0.as_raw_fd(), IN)];
                        let spin = Spin::For(Duration::from_micros(turn % 7));
                        let limit = Some(Duration::from_secs(20));
                        let polled =
                            poll(&world, &mut entries, &mut Real::of_polls(), limit, spin, || bell.clone());
                        assert_eq!(polled, Ok(1), "a wake-up was lost");
                        assert_eq!(told(&entries), [IN]);
                    }
                    other.send();
                }
                assert_eq!(own.sleepers(), 0);
            });
        }
    });
}

/// Calls of a select whose program's own call is told from a poll.
struct RealSelect {
    polls: Real<'static>,
    selects: u32,
}

impl Clock for RealSelect {
    fn now(&self) -> Duration {
        self.polls.now()
    }

    fn is_interrupted(&mut self) -> bool {
        self.polls.is_interrupted()
    }
}

impl PollKernel for RealSelect {
    fn look(&mut self, entries: &mut [PollEntry]) -> Result<usize, Errno> {
        PollKernel::look(&mut self.polls, entries)
    }

    fn sleep(&mut self, entries: &mut [PollEntry], limit: Option<Duration>) -> Result<usize, Errno> {
        PollKernel::sleep(&mut self.polls, entries, limit)
    }
}

impl SelectKernel for RealSelect {
    fn select(&mut self) -> Result<usize, Errno> {
        self.selects += 1;
        Ok(0)
    }
}

/// Sets of numbers, longer than `FD_SETSIZE`.
struct Sets3([Vec<usize>; 3]);

impl Sets3 {
    fn of(numbers: [&[RawFd]; 3]) -> Self {
        Sets3(numbers.map(|numbers| {
            let mut words = vec![0; 40];
            numbers.iter().for_each(|number| words[*number as usize / 64] |= 1 << (number % 64));
            words
        }))
    }

    fn select(&mut self, world: &World, limit: Duration) -> (Result<usize, Errno>, u32) {
        let mut kernel = RealSelect { polls: Real::of_polls(), selects: 0 };
        let told = self.select_by(&mut kernel, world, limit);
        (told, kernel.selects)
    }

    fn select_by(&mut self, kernel: &mut RealSelect, world: &World, limit: Duration) -> Result<usize, Errno> {
        let [read, write, except] = &mut self.0;
        let sets = [Some(&mut read[..]), Some(&mut write[..]), Some(&mut except[..])];
        let mut selection = Selection { sets, numbers: 2500 };
        select(world, &mut selection, kernel, Some(limit), NEVER, own_sleeper)
    }

    fn numbers(&self) -> [Vec<RawFd>; 3] {
        self.0.each_ref().map(|words| {
            let bits = (0..2560).filter(|bit| words[bit / 64] >> (bit % 64) & 1 == 1);
            bits.map(|bit| bit as RawFd).collect()
        })
    }
}

#[test]
fn select_counts_bits_and_clears_what_is_not_ready() {
    let (one, mut two) = (pair(), pair());
    let (first, second) = (one.0.as_raw_fd(), two.0.as_raw_fd());
    let connection = Connection::up();
    let mut world = World::default();
    world.connections.insert(first, connection);
    let mut sets = Sets3::of([&[first, second], &[], &[first]]);
    assert_eq!(sets.select(&world, Duration::ZERO), (Ok(0), 0));
    assert!(sets.numbers().concat().is_empty());

    connection.send();
    let mut sets = Sets3::of([&[first, second], &[first], &[first, second]]);
    assert_eq!(sets.select(&world, Duration::from_secs(9)), (Ok(2), 0));
    assert_eq!(sets.numbers(), [vec![first], vec![first], vec![]]);

    two.1.write_all(b"x").unwrap();
    let mut sets = Sets3::of([&[first, second], &[], &[]]);
    assert_eq!(sets.select(&world, Duration::from_secs(9)), (Ok(2), 0));

    // A number that is closed, and sets that are left alone then. None is as high here.
    let closed = 2400;
    let mut sets = Sets3::of([&[first, closed], &[], &[]]);
    assert_eq!(sets.select(&world, Duration::ZERO), (Err(Errno::BADF), 0));
    assert_eq!(sets.numbers()[0], [first, closed]);

    // No window in it: the program's own call.
    let mut sets = Sets3::of([&[second], &[first], &[]]);
    assert_eq!(sets.select(&world, Duration::ZERO), (Ok(0), 1));
}

#[test]
fn end_that_a_select_does_not_tell_does_not_end_it() {
    let (one, two) = (pair(), pair());
    let connection = Connection::up();
    let mut world = World::default();
    world.connections.insert(one.0.as_raw_fd(), connection);
    drop(two.1);
    let mut sets = Sets3::of([&[one.0.as_raw_fd()], &[], &[two.0.as_raw_fd()]]);
    assert_eq!(sets.select(&world, Duration::from_millis(3)), (Ok(0), 0));
    assert!(sets.numbers().concat().is_empty());
}
