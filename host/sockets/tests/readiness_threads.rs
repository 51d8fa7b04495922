//! Several threads: senders that find a sleeper asleep, nearly asleep or awake, and threads that share a set.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod readiness;

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use beeline_socket_engine::readiness::*;
use beeline_socket_rules::Spin;
use nix::sys::pthread::{Pthread, pthread_kill, pthread_self};
use nix::sys::signal::Signal;
use readiness::*;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity};

const IN: EventFlags = EventFlags::IN;
const ET: EventFlags = EventFlags::ET;
const NEVER: Spin = Spin::For(Duration::ZERO);
const SHORT: Spin = Spin::For(Duration::from_micros(5));

struct Fixture {
    sets: &'static Sets<Connection>,
    epoll: OwnedFd,
    sockets: Vec<(UnixStream, UnixStream)>,
}

impl Fixture {
    fn new() -> Self {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let fixture = Fixture { sets: sets(), epoll, sockets: Vec::new() };
        fixture.sets.created(fixture.epoll.as_raw_fd());
        fixture
    }

    fn add(&mut self, connection: Connection, flags: EventFlags) {
        let pair = UnixStream::pair().unwrap();
        let event = event(self.sockets.len() as u64, flags);
        epoll::add(&self.epoll, &pair.0, event.data, event.flags).unwrap();
        let number = pair.0.as_raw_fd();
        self.sets.changed(self.epoll.as_fd(), Change::Add, number, Some(connection), event).unwrap();
        self.sockets.push(pair);
    }

    fn set(&self) -> &'static Set<Connection> {
        self.sets.find(self.epoll.as_raw_fd()).unwrap()
    }

    fn wait(&self, most: usize, spin: Spin) -> Result<Vec<u64>, Errno> {
        let mut out = room(most);
        let ready = self.set().wait(&mut Real::new(&self.epoll), &mut out, None, spin)?;
        Ok(told(&out[..ready]).into_iter().map(|told| told.0).collect())
    }
}

/// Goes on for as long as `seconds` at most: a wake-up that is lost is a hang, which this makes a failure.
fn watched(seconds: u64, test: impl FnOnce() + Send + 'static) {
    let (done, is_done) = std::sync::mpsc::channel();
    let tested = thread::spawn(move || {
        test();
        done.send(()).unwrap();
    });
    let end = is_done.recv_timeout(Duration::from_secs(seconds));
    assert_ne!(end, Err(std::sync::mpsc::RecvTimeoutError::Timeout), "a wake-up was lost");
    tested.join().unwrap();
}

/// Two threads that wake each other: whoever is woken takes one and sends one.
fn storm(turns: u32, flags: EventFlags, spin: Spin) {
    watched(100, move || {
        let ends = [Connection::up(), Connection::up()];
        thread::scope(|scope| {
            for side in 0..2 {
                let (own, other) = (ends[side], ends[1 - side]);
                scope.spawn(move || {
                    let mut fixture = Fixture::new();
                    fixture.add(own, flags);
                    if side == 0 {
                        other.send();
                    }
                    for turn in 0..turns {
                        while !own.take() {
                            fixture.wait(4, spin).unwrap();
                        }
                        // At other moments of the other's way to sleep.
                        (0..turn % 97).for_each(|_| std::hint::spin_loop());
                        other.send();
                    }
                });
            }
        });
    });
}

#[test]
fn no_wake_up_is_lost_in_40_000_turns() {
    storm(20_000, IN, NEVER);
}

#[test]
fn no_edge_is_lost_in_turns_that_spin_and_sleep() {
    storm(10_000, IN | ET, SHORT);
}

/// Threads that share a set take everything that arrives, one event a call.
fn shared(flags: EventFlags, waiters: usize, most: usize) {
    const MEMBERS: usize = 5;
    const EACH: u32 = 600;
    watched(100, move || {
        let mut fixture = Fixture::new();
        let members: Vec<_> = (0..MEMBERS).map(|_| Connection::up()).collect();
        members.iter().for_each(|member| fixture.add(*member, flags));
        let stop = Connection::up();
        fixture.add(stop, IN);
        let taken = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..waiters {
                scope.spawn(|| {
                    loop {
                        let told = fixture.wait(most, NEVER).unwrap();
                        if told.contains(&(MEMBERS as u64)) {
                            break;
                        }
                        for at in told {
                            while members[at as usize].take() {
                                taken.fetch_add(1, Ordering::SeqCst);
                            }
                        }
                    }
                });
            }
            // A burst at all members, and the next once it was taken: by then all waiters sleep, or are about to.
            for burst in 1..=EACH {
                members.iter().for_each(|member| member.send());
                while taken.load(Ordering::SeqCst) < burst * MEMBERS as u32 {
                    thread::yield_now();
                }
            }
            // It stays told, so that each thread sees it.
            stop.send();
        });
    });
}

#[test]
fn threads_of_one_set_wake_each_other_for_levels() {
    shared(IN, 3, 1);
}

#[test]
fn threads_of_one_set_wake_each_other_for_edges() {
    shared(IN | ET, 3, 1);
}

#[test]
fn level_that_one_thread_leaves_wakes_the_next() {
    watched(20, || {
        let mut fixture = Fixture::new();
        let member = Connection::up();
        fixture.add(member, IN);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| assert_eq!(fixture.wait(1, NEVER).unwrap(), [0]));
            }
            member.send();
        });
    });
}

/// A thread of which others know that it waits: how far it is, and which it is.
struct Waiter {
    thread: AtomicU32,
    this: std::sync::Mutex<Option<Pthread>>,
}

/// The state that the kernel shows of a thread.
fn is_asleep(thread: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().trim_start().starts_with('S')
}

fn interrupted(spin: Spin) {
    let waiter = Arc::new(Waiter { thread: AtomicU32::new(0), this: std::sync::Mutex::new(None) });
    let own = Arc::clone(&waiter);
    watched(20, move || {
        HANDLED.store(0, Ordering::SeqCst);
        let called = thread::spawn(move || {
            let mut fixture = Fixture::new();
            fixture.add(Connection::up(), IN);
            let mut kernel = Real::new(&fixture.epoll);
            *own.this.lock().unwrap() = Some(pthread_self());
            // Before this a signal is one before the call.
            assert!(spin != Spin::Forever || !kernel.is_interrupted());
            own.thread.store(rustix::thread::gettid().as_raw_nonzero().get() as u32, Ordering::SeqCst);
            fixture.set().wait(&mut kernel, &mut room(4), None, spin)
        });
        while waiter.thread.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        let thread = waiter.thread.load(Ordering::SeqCst);
        while spin != Spin::Forever && !is_asleep(thread) {
            thread::yield_now();
        }
        pthread_kill(waiter.this.lock().unwrap().unwrap(), Signal::SIGUSR1).unwrap();
        assert_eq!(called.join().unwrap(), Err(Errno::INTR));
        assert_eq!(HANDLED.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn handler_ends_a_wait_that_sleeps_or_spins() {
    interrupted(NEVER);
    interrupted(Spin::Forever);
}

#[test]
fn connection_that_begins_wakes_who_sleeps_without_a_bell_to_hear() {
    watched(20, || {
        let mut fixture = Fixture::new();
        let connection = Connection::up();
        fixture.add(connection, IN);
        // Back to the kernel: the next wait sleeps as if there were no window.
        connection.0.may.store(false, Ordering::SeqCst);
        let limit = Some(Duration::from_millis(1));
        let set = fixture.set();
        assert_eq!(set.wait(&mut Real::new(&fixture.epoll), &mut room(4), limit, NEVER), Ok(0));
        let thread = AtomicU32::new(0);
        let number = fixture.sockets[0].0.as_raw_fd();
        thread::scope(|scope| {
            let told = scope.spawn(|| {
                thread.store(rustix::thread::gettid().as_raw_nonzero().get() as u32, Ordering::SeqCst);
                fixture.wait(4, NEVER).unwrap()
            });
            while thread.load(Ordering::SeqCst) == 0 || !is_asleep(thread.load(Ordering::SeqCst)) {
                thread::yield_now();
            }
            connection.0.may.store(true, Ordering::SeqCst);
            assert_eq!(fixture.sets.begin(number, connection), Begin::Yes);
            connection.send();
            assert_eq!(told.join().unwrap(), [0]);
        });
    });
}

/// Whoever slept without a bell to hear is one of those that a sender wakes from then on, also if another of them woke for what began.
#[test]
fn connection_that_begins_wakes_everybody_who_sleeps_without_a_bell_to_hear() {
    const ROUNDS: usize = 300;
    const WAITERS: usize = 3;
    watched(60, || {
        for _ in 0..ROUNDS {
            let mut fixture = Fixture::new();
            let connection = Connection::up();
            // By edges: who is told of one leaves nothing for which it would wake the next.
            fixture.add(connection, IN | ET);
            connection.0.may.store(false, Ordering::SeqCst);
            let limit = Some(Duration::from_millis(1));
            assert_eq!(fixture.set().wait(&mut Real::new(&fixture.epoll), &mut room(4), limit, NEVER), Ok(0));
            let threads: [AtomicU32; WAITERS] = std::array::from_fn(|_| AtomicU32::new(0));
            let number = fixture.sockets[0].0.as_raw_fd();
            let (done, is_done) = std::sync::mpsc::channel();
            thread::scope(|scope| {
                for thread in &threads {
                    let (fixture, done) = (&fixture, done.clone());
                    scope.spawn(move || {
                        // On one core: who wakes first has gone on before the kernel's next one has looked.
                        let mut core = CpuSet::new();
                        core.set(0);
                        sched_setaffinity(None, &core).unwrap();
                        thread
                            .store(rustix::thread::gettid().as_raw_nonzero().get() as u32, Ordering::SeqCst);
                        // Each takes one and does not come back, as one whose handler takes long.
                        while !connection.take() {
                            fixture.wait(4, NEVER).unwrap();
                        }
                        done.send(()).unwrap();
                    });
                }
                let sleeps = |thread: &AtomicU32| {
                    let thread = thread.load(Ordering::SeqCst);
                    thread != 0 && is_asleep(thread)
                };
                while !threads.iter().all(sleeps) {
                    thread::yield_now();
                }
                connection.0.may.store(true, Ordering::SeqCst);
                assert_eq!(fixture.sets.begin(number, connection), Begin::Yes);
                for _ in 0..WAITERS {
                    connection.send();
                    is_done.recv().unwrap();
                }
            });
        }
    });
}

#[test]
fn connection_is_added_while_it_begins() {
    // Whichever comes first, the set looks at the window.
    watched(60, || {
        for _ in 0..2000 {
            let mut fixture = Fixture::new();
            fixture.add(Connection::up(), IN);
            let pair = UnixStream::pair().unwrap();
            let (number, connection) = (pair.0.as_raw_fd(), Connection::new());
            let registered = event(7, IN);
            epoll::add(&fixture.epoll, &pair.0, registered.data, registered.flags).unwrap();
            let go = AtomicBool::new(false);
            let begun = thread::scope(|scope| {
                let begun = scope.spawn(|| {
                    while !go.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                    connection.0.may.store(true, Ordering::Relaxed);
                    fixture.sets.begin(number, connection)
                });
                go.store(true, Ordering::Relaxed);
                let changed = fixture.sets.changed(
                    fixture.epoll.as_fd(),
                    Change::Add,
                    number,
                    Some(connection),
                    registered,
                );
                changed.unwrap();
                begun.join().unwrap()
            });
            assert_eq!(begun, Begin::Yes);
            connection.send();
            assert_eq!(fixture.wait(4, NEVER).unwrap(), [7]);
        }
    });
}

#[test]
fn child_of_fork_sees_what_the_kernel_has_and_no_bell() {
    let mut fixture = Fixture::new();
    let connection = Connection::up();
    fixture.add(connection, IN);
    connection.send();
    let set = fixture.set();
    match fork::fork().unwrap() {
        fork::Fork::Child => {
            fixture.sets.forked();
            // Its parent's bell is readable, from when the member was added.
            let limit = Some(Duration::from_millis(5));
            let empty = set.wait(&mut Real::new(&fixture.epoll), &mut room(4), limit, NEVER);
            let mut out = room(4);
            std::io::Write::write_all(&mut fixture.sockets[0].1, b"x").unwrap();
            let full = set.wait(&mut Real::new(&fixture.epoll), &mut out, None, NEVER);
            let begun = fixture.sets.begin(fixture.sockets[0].0.as_raw_fd(), connection);
            let is_right = (empty, full) == (Ok(0), Ok(1))
                && out[0].data.u64() == 0
                && begun == Begin::Never(Refusal::SharedSet);
            nix::sys::signal::raise(if is_right { Signal::SIGTERM } else { Signal::SIGKILL }).unwrap();
            beeline_mmio::end_child(0);
        }
        fork::Fork::Parent(child) => {
            let child = rustix::process::Pid::from_raw(child).unwrap();
            let (_, status) = rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty())
                .unwrap()
                .unwrap();
            assert_eq!(status.terminating_signal(), Some(Signal::SIGTERM as i32));
        }
    }
    assert_eq!(fixture.wait(4, NEVER).unwrap(), [0]);
}
