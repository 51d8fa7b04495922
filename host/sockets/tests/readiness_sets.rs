//! One thread and one set: what is told, once or again, beside what the kernel tells.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod readiness;

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use beeline_socket_engine::readiness::*;
use beeline_socket_rules::Spin;
use readiness::*;
use rustix::event::epoll::{self, Event, EventFlags};
use rustix::io::Errno;

const IN: EventFlags = EventFlags::IN;
const OUT: EventFlags = EventFlags::OUT;
const ET: EventFlags = EventFlags::ET;
const NEVER: Spin = Spin::For(Duration::ZERO);

/// A set of the kernel and its twin.
struct Fixture {
    sets: &'static Sets<Connection>,
    epoll: OwnedFd,
    microseconds: Arc<AtomicU64>,
}

/// A member: a real socket beside a window.
struct Member {
    socket: UnixStream,
    other: UnixStream,
    connection: Connection,
}

impl Member {
    fn new() -> Self {
        let (socket, other) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        Member { socket, other, connection: Connection::up() }
    }

    fn number(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Fixture {
    fn new() -> Self {
        Fixture::of(sets())
    }

    fn of(sets: &'static Sets<Connection>) -> Self {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let fixture = Fixture { sets, epoll, microseconds: Arc::new(AtomicU64::new(1_000_000)) };
        fixture.sets.created(fixture.epoll.as_raw_fd());
        fixture
    }

    fn set(&self) -> &'static Set<Connection> {
        self.sets.find(self.epoll.as_raw_fd()).unwrap()
    }

    fn change(&self, change: Change, member: &Member, event: Event) -> Result<(), Refusal> {
        self.set().before_change(self.epoll.as_fd(), event);
        let (data, flags) = (event.data, event.flags);
        match change {
            Change::Add => epoll::add(&self.epoll, &member.socket, data, flags),
            Change::Modify => epoll::modify(&self.epoll, &member.socket, data, flags),
            Change::Delete => epoll::delete(&self.epoll, &member.socket),
        }
        .unwrap();
        self.sets.changed(self.epoll.as_fd(), change, member.number(), Some(member.connection), event)
    }

    fn add(&self, data: u64, flags: EventFlags) -> Member {
        let member = Member::new();
        self.change(Change::Add, &member, event(data, flags)).unwrap();
        member
    }

    /// With a clock by which the kernel is due at every call.
    fn wait(&self, most: usize) -> Vec<(u64, EventFlags)> {
        self.wait_by(most, 60)
    }

    fn wait_by(&self, most: usize, step: u64) -> Vec<(u64, EventFlags)> {
        let mut kernel = Real::new(&self.epoll);
        kernel.time = Time::Steps(Arc::clone(&self.microseconds), step);
        let mut out = room(most);
        let ready = self.set().wait(&mut kernel, &mut out, Some(Duration::ZERO), NEVER).unwrap();
        assert!(kernel.sleeps.iter().all(|limit| *limit == Some(Duration::ZERO)));
        told(&out[..ready])
    }
}

#[test]
fn level_is_told_until_it_is_taken_and_an_edge_once() {
    let fixture = Fixture::new();
    let level = fixture.add(1, IN);
    let edge = fixture.add(2, IN | ET);
    assert_eq!(fixture.wait(8), []);
    level.connection.send();
    edge.connection.send();
    let mut both = fixture.wait(8);
    both.sort_by_key(|told| told.0);
    assert_eq!(both, [(1, IN), (2, IN)]);
    assert_eq!(fixture.wait(8), [(1, IN)]);
    // More behind what nobody took is an edge, and what a receive leaves is none.
    edge.connection.send();
    edge.connection.send();
    assert_eq!(fixture.wait(8).len(), 2);
    assert!(edge.connection.take());
    assert_eq!(fixture.wait(8), [(1, IN)]);
    assert!(level.connection.take());
    assert_eq!(fixture.wait(8), []);
}

#[test]
fn modification_arms_an_edge_and_changes_what_is_told() {
    let fixture = Fixture::new();
    let member = fixture.add(1, IN | ET);
    member.connection.send();
    assert_eq!(fixture.wait(8), [(1, IN)]);
    assert_eq!(fixture.wait(8), []);
    fixture.change(Change::Modify, &member, event(7, IN | ET)).unwrap();
    assert_eq!(fixture.wait(8), [(7, IN)]);
    fixture.change(Change::Modify, &member, event(8, EventFlags::RDHUP | ET)).unwrap();
    assert_eq!(fixture.wait(8), []);
    fixture.change(Change::Modify, &member, event(9, IN | EventFlags::RDNORM)).unwrap();
    assert_eq!(fixture.wait(8), [(9, IN | EventFlags::RDNORM)]);
    fixture.change(Change::Delete, &member, event(0, IN)).unwrap();
    assert_eq!(fixture.wait(8), []);
    assert_eq!(member.connection.sleepers(), 0);
}

#[test]
fn member_that_is_put_in_again_at_once_keeps_its_sleeper() {
    let fixture = Fixture::new();
    let (member, other) = (fixture.add(1, IN), fixture.add(2, IN));
    let sleeper = member.connection.first_sleeper();
    fixture.change(Change::Delete, &member, event(0, IN)).unwrap();
    member.connection.send();
    other.connection.send();
    // What is out is not told, and its sender has not been told so.
    assert_eq!(fixture.wait(8), [(2, IN)]);
    assert!(Arc::ptr_eq(&sleeper.0, &member.connection.first_sleeper().0));
    fixture.change(Change::Add, &member, event(3, IN | ET)).unwrap();
    assert_eq!(member.connection.sleepers(), 1);
    let mut both = fixture.wait(8);
    both.sort_by_key(|told| told.0);
    assert_eq!(both, [(2, IN), (3, IN)]);
    assert_eq!(fixture.wait(8), [(2, IN)]);
    assert!(other.connection.take());
    // A sleep is rung for those alone that are in.
    fixture.change(Change::Delete, &member, event(0, IN)).unwrap();
    let short = Some(Duration::from_millis(1));
    let slept = fixture.set().wait(&mut Real::new(&fixture.epoll), &mut room(8), short, NEVER);
    assert_eq!(slept, Ok(0));
    assert_eq!((member.connection.sleepers(), other.connection.sleepers()), (0, 1));
    fixture.change(Change::Add, &member, event(4, IN)).unwrap();
    assert_eq!(fixture.wait(8), [(4, IN)]);
}

#[test]
fn member_that_was_taken_out_and_goes_elsewhere_leaves_nothing_behind() {
    let (fixture, sets) = (Fixture::new(), sets());
    let fixture = Fixture { sets, ..fixture };
    fixture.sets.created(fixture.epoll.as_raw_fd());
    let elsewhere = Fixture::of(sets);
    let member = fixture.add(1, IN);
    let own = member.connection.first_sleeper();
    fixture.change(Change::Delete, &member, event(0, IN)).unwrap();
    elsewhere.change(Change::Add, &member, event(2, IN)).unwrap();
    assert_eq!(member.connection.sleepers(), 1);
    assert!(!Arc::ptr_eq(&own.0, &member.connection.first_sleeper().0));
    member.connection.send();
    assert_eq!((fixture.wait(8), elsewhere.wait(8)), (vec![], vec![(2, IN)]));
    // A number that is closed, and then another connection's.
    elsewhere.change(Change::Delete, &member, event(0, IN)).unwrap();
    sets.closed(member.number());
    assert_eq!(member.connection.sleepers(), 0);
    let member = Member { connection: Connection::up(), ..member };
    elsewhere.change(Change::Add, &member, event(5, IN)).unwrap();
    assert_eq!(elsewhere.wait(8), []);
    member.connection.send();
    assert_eq!(elsewhere.wait(8), [(5, IN)]);
}

#[test]
fn member_that_begins_wakes_nobody_where_nobody_sleeps() {
    let fixture = Fixture::new();
    let first = fixture.add(1, IN);
    let sleeper = first.connection.first_sleeper();
    let rings = || sleeper.0.rings.load(Ordering::Relaxed);
    let before = rings();
    let _second = fixture.add(2, IN);
    assert_eq!(rings(), before);
    assert_eq!(fixture.wait(8), []);
}

#[test]
fn windows_and_the_kernel_tell_of_one_member_once() {
    let fixture = Fixture::new();
    let mut member = fixture.add(1, IN | OUT);
    member.connection.send();
    member.other.write_all(b"x").unwrap();
    assert_eq!(fixture.wait(8), [(1, IN | OUT)]);
    member.socket.read_exact(&mut [0]).unwrap();
    assert_eq!(fixture.wait(8), [(1, IN | OUT)]);
    assert!(member.connection.take());
    assert_eq!(fixture.wait(8), [(1, OUT)]);
}

#[test]
fn edge_of_a_window_tells_that_the_connection_can_be_written_to() {
    let fixture = Fixture::new();
    let member = fixture.add(1, IN | OUT | ET);
    assert_eq!(fixture.wait(8), [(1, OUT)]);
    member.connection.send();
    assert_eq!(fixture.wait(8), [(1, IN | OUT)]);
    assert_eq!(fixture.wait(8), []);
}

#[test]
fn kernel_is_asked_when_it_was_not_for_a_while() {
    let fixture = Fixture::new();
    let busy = fixture.add(1, IN);
    let mut listener = fixture.add(2, IN);
    listener.other.write_all(b"x").unwrap();
    busy.connection.send();
    let mut kernel = Real::new(&fixture.epoll);
    kernel.time = Time::steps_of_microseconds(1);
    let mut seen = Vec::new();
    let mut out = room(8);
    for _ in 0..50 {
        let ready = fixture.set().wait(&mut kernel, &mut out, None, NEVER).unwrap();
        seen.push(ready);
    }
    // One call looks at the clock twice: when it begins, and where it decides.
    assert_eq!(seen[0], 2, "it was never asked");
    assert_eq!(seen[1..24], [1; 23]);
    assert!(seen[24..28].contains(&2));
    assert_eq!(kernel.looks, 2);
}

#[test]
fn single_event_is_a_windows_and_the_kernels_turn() {
    let fixture = Fixture::new();
    let busy = fixture.add(1, IN);
    let mut other = fixture.add(2, IN);
    busy.connection.send();
    other.other.write_all(b"x").unwrap();
    // The ring that a new member makes.
    assert_eq!(fixture.wait(8).len(), 2);
    let told: Vec<_> = (0..8).map(|_| fixture.wait(1)).collect();
    for pair in told.windows(2) {
        assert_eq!(pair[0].len(), 1);
        assert_ne!(pair[0][0].0, pair[1][0].0);
    }
}

#[test]
fn members_of_a_long_list_take_turns() {
    let fixture = Fixture::new();
    let members: Vec<_> = (0..10).map(|data| fixture.add(data, IN)).collect();
    members.iter().for_each(|member| member.connection.send());
    let mut all: Vec<u64> = (0..4).flat_map(|_| fixture.wait_by(3, 0)).map(|told| told.0).collect();
    assert_eq!(all.len(), 12);
    all.truncate(10);
    all.sort_unstable();
    assert_eq!(all, (0..10).collect::<Vec<_>>());
}

#[test]
fn bell_is_told_to_nobody_and_gives_its_data_to_the_program() {
    let fixture = Fixture::new();
    let member = fixture.add(1, IN);
    let ringing = Ring::of(&member);
    ringing.ring();
    // Two more readable descriptors, and room for one event: whatever comes first, it is the program's.
    let mut others = [fixture.add(2, IN), fixture.add(3, IN)];
    others.iter_mut().for_each(|other| other.other.write_all(b"x").unwrap());
    for _ in 0..6 {
        ringing.ring();
        assert!(fixture.wait(1).iter().all(|told| [2, 3].contains(&told.0)));
    }
    ringing.ring();
    assert_eq!(fixture.wait(8).len(), 2);
    // The program takes the very word that the bell has.
    ringing.ring();
    let mut raw = room(8);
    let count = epoll::wait(&fixture.epoll, &mut raw[..], Some(&rustix::time::Timespec::default())).unwrap();
    let word = told(&raw[..count]).into_iter().find(|told| told.0 > 3).unwrap().0;
    let mut same = Member::new();
    fixture.change(Change::Add, &same, event(word, IN)).unwrap();
    same.other.write_all(b"x").unwrap();
    // The ring of the new member.
    assert_eq!(fixture.wait(8).len(), 3);
    let mut all: Vec<u64> = fixture.wait(8).into_iter().map(|told| told.0).collect();
    all.sort_unstable();
    assert_eq!(all, [2, 3, word]);
}

/// The bell of the set that a member is in.
struct Ring(Own);

impl Ring {
    fn of(member: &Member) -> Self {
        Ring(member.connection.first_sleeper())
    }

    fn ring(&self) {
        self.0.ring();
    }
}

#[test]
fn sets_that_cannot_watch_windows_refuse_members() {
    let fixture = Fixture::new();
    let member = Member::new();
    let one_shot = fixture.change(Change::Add, &member, event(1, IN | EventFlags::ONESHOT));
    assert_eq!(one_shot, Err(Refusal::OneShot));
    assert_eq!(fixture.sets.begin(member.number(), member.connection), Begin::Never(Refusal::OneShot));
    // What is in its window already is told once.
    member.connection.send();
    assert_eq!(fixture.wait(8), [(1, IN)]);
    assert_eq!(fixture.wait(8), []);
    let exclusive = fixture.change(Change::Add, &Member::new(), event(2, IN | EventFlags::EXCLUSIVE));
    assert_eq!(exclusive, Err(Refusal::Exclusive));

    let second = Fixture::of(fixture.sets);
    let both = fixture.add(3, IN);
    assert_eq!(second.change(Change::Add, &both, event(3, IN)), Err(Refusal::ManySets));
    assert_eq!(fixture.sets.begin(both.number(), both.connection), Begin::Never(Refusal::ManySets));
    // Both tell of what is in its window.
    both.connection.send();
    assert_eq!(fixture.wait(8), [(3, IN)]);
    assert_eq!(second.wait(8), [(3, IN)]);
    fixture.sets.closed(both.number());
    assert_eq!((fixture.wait(8), second.wait(8)), (vec![], vec![]));
    assert_eq!(fixture.sets.begin(both.number(), both.connection), Begin::Yes);

    let full = Member::new();
    full.connection.0.is_full.store(true, Ordering::Relaxed);
    assert_eq!(fixture.change(Change::Add, &full, event(4, IN)), Err(Refusal::NoBell));
}

#[test]
fn shared_set_gives_its_connections_back_and_tells_what_is_in_windows() {
    let fixture = Fixture::new();
    let member = fixture.add(1, IN);
    assert_eq!(fixture.set().share(fixture.epoll.as_fd()), [member.number()]);
    assert!(fixture.set().share(fixture.epoll.as_fd()).is_empty());
    assert_eq!(member.connection.sleepers(), 0);
    assert_eq!(fixture.sets.begin(member.number(), member.connection), Begin::Never(Refusal::SharedSet));
    member.connection.send();
    assert_eq!(fixture.wait(8), [(1, IN)]);
    // Its bell is not in the kernel's set any more.
    let mut raw = room(8);
    let count = epoll::wait(&fixture.epoll, &mut raw[..], Some(&rustix::time::Timespec::default())).unwrap();
    assert_eq!(count, 0);
}

#[test]
fn number_of_a_closed_set_is_another_set() {
    let mut fixture = Fixture::new();
    let member = fixture.add(1, IN);
    member.connection.send();
    let number = fixture.epoll.as_raw_fd();
    fixture.sets.closed(number);
    assert!(fixture.sets.find(number).is_none());
    assert_eq!(member.connection.sleepers(), 0);
    let new = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    rustix::io::dup3(new, &mut fixture.epoll, rustix::io::DupFlags::CLOEXEC).unwrap();
    fixture.sets.created(number);
    assert_eq!(fixture.wait(8), []);
    assert_eq!(fixture.sets.begin(member.number(), member.connection), Begin::Yes);
}

#[test]
fn connection_begins_once_the_bell_stands_in_its_set() {
    let fixture = Fixture::new();
    let member = Member::new();
    // A socket that is not connected yet, as programs register it.
    epoll::add(&fixture.epoll, &member.socket, epoll::EventData::new_u64(1), IN).unwrap();
    fixture.sets.changed(fixture.epoll.as_fd(), Change::Add, member.number(), None, event(1, IN)).unwrap();
    assert_eq!(fixture.sets.begin(member.number(), member.connection), Begin::NotYet);
    assert_eq!(fixture.sets.begin(member.number(), member.connection), Begin::NotYet);
    assert_eq!(fixture.sleepless_wait(), 0);
    assert_eq!(fixture.sets.begin(member.number(), member.connection), Begin::Yes);
    assert_eq!(member.connection.sleepers(), 1);
    member.connection.send();
    assert_eq!(fixture.wait(8), [(1, IN)]);
}

impl Fixture {
    /// A call that may go to the kernel at once.
    fn sleepless_wait(&self) -> usize {
        let mut out = room(8);
        self.set().wait(&mut Real::new(&self.epoll), &mut out, Some(Duration::ZERO), NEVER).unwrap()
    }
}

#[test]
fn thread_sleeps_for_short_at_a_set_whose_bell_was_closed() {
    let fixture = Fixture::new();
    let member = fixture.add(1, IN);
    assert_eq!(fixture.sleepless_wait(), 0);
    // As a program that closes every number.
    nix::unistd::close(member.connection.first_sleeper().bell().as_raw_fd()).unwrap();
    let mut kernel = Real::new(&fixture.epoll);
    kernel.time = Time::steps_of_microseconds(100);
    let limit = Duration::from_secs(1);
    assert_eq!(fixture.set().wait(&mut kernel, &mut room(8), Some(limit), NEVER), Ok(0));
    assert!(kernel.sleeps.iter().all(|sleep| sleep.unwrap() < limit / 100), "{:?}", kernel.sleeps);
    assert_eq!(member.connection.sleepers(), 0);
}

/// A child has the file of the bell, so that it stays in the kernel's set, and readable.
#[test]
fn set_whose_bell_was_closed_while_it_was_readable_tells_of_the_rest_and_does_not_spin() {
    for is_member_left in [true, false] {
        let fixture = Fixture::new();
        let mut member = fixture.add(1, IN);
        let bell = member.connection.first_sleeper();
        let _child_s = bell.bell().try_clone_to_owned().unwrap();
        bell.ring();
        nix::unistd::close(bell.bell().as_raw_fd()).unwrap();
        if !is_member_left {
            fixture.change(Change::Delete, &member, event(0, IN)).unwrap();
            member = Member { connection: Connection::new(), ..Member::new() };
            fixture.change(Change::Add, &member, event(1, IN)).unwrap();
        }
        for most in [1, 8] {
            assert_eq!(fixture.wait(most), []);
            let mut kernel = Real::new(&fixture.epoll);
            let limit = Duration::from_millis(20);
            assert_eq!(fixture.set().wait(&mut kernel, &mut room(most), Some(limit), NEVER), Ok(0));
            // Each is behind a pause of a millisecond.
            assert!(kernel.sleeps.len() <= 22, "{}", kernel.sleeps.len());
            member.other.write_all(b"x").unwrap();
            let waited = [fixture.wait(most), fixture.wait(most)].concat();
            assert!(waited.contains(&(1, IN)), "{waited:?}");
            assert_eq!(member.socket.read(&mut [0; 2]).unwrap(), 1);
        }
    }
}

#[test]
fn limits_are_counted_from_where_the_call_began() {
    let fixture = Fixture::new();
    let member = fixture.add(1, IN);
    let mut kernel = Real::new(&fixture.epoll);
    kernel.time = Time::steps_of_microseconds(100);
    let mut out = room(8);
    // The ring of the new member ends the first sleep; the second is shorter by what went by, and its end is the call's.
    Ring::of(&member).ring();
    let limit = Duration::from_millis(3);
    assert_eq!(fixture.set().wait(&mut kernel, &mut out, Some(limit), NEVER), Ok(0));
    assert!(kernel.sleeps.iter().all(|sleep| sleep.unwrap() < limit));
    assert_eq!(kernel.sleeps.len(), 1);

    // By a clock alone, when it spins: no sleep, and as many looks at the kernel as fit.
    let mut kernel = Real::new(&fixture.epoll);
    kernel.time = Time::steps_of_microseconds(10);
    let spun = fixture.set().wait(&mut kernel, &mut out, Some(Duration::from_millis(1)), Spin::Forever);
    assert_eq!((spun, kernel.sleeps.len()), (Ok(0), 0));
    assert!((45..=55).contains(&kernel.looks), "{}", kernel.looks);
}

#[test]
fn window_that_nobody_can_ring_is_looked_at_in_short_sleeps() {
    let fixture = Fixture::new();
    let full = Member::new();
    full.connection.0.is_full.store(true, Ordering::Relaxed);
    let refused = fixture.change(Change::Add, &full, event(1, IN));
    assert_eq!(refused, Err(Refusal::NoBell));
    let mut kernel = Real::new(&fixture.epoll);
    kernel.time = Time::steps_of_microseconds(400);
    assert_eq!(fixture.set().wait(&mut kernel, &mut room(8), Some(Duration::from_millis(6)), NEVER), Ok(0));
    assert!(kernel.sleeps.iter().all(|sleep| sleep.unwrap() <= Duration::from_millis(1)));
    assert!(kernel.sleeps.len() > 2);
    // It has gone back to the kernel: the set sleeps as it did.
    full.connection.0.may.store(false, Ordering::Relaxed);
    let mut kernel = Real::new(&fixture.epoll);
    kernel.time = Time::steps_of_microseconds(1);
    assert_eq!(fixture.set().wait(&mut kernel, &mut room(8), Some(Duration::from_millis(6)), NEVER), Ok(0));
    assert!(kernel.sleeps[0].unwrap() > Duration::from_millis(5));
}

#[test]
fn calls_fail_as_the_kernels_do() {
    let fixture = Fixture::new();
    let _member = fixture.add(1, IN);
    let mut kernel = Real::new(&fixture.epoll);
    let refused = fixture.set().wait(&mut kernel, &mut [], Some(Duration::ZERO), NEVER);
    assert_eq!(refused, Err(Errno::INVAL));
}
