//! Random schedules of what arrives, is taken and is registered, against what a level and an edge mean.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod readiness;

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use beeline_socket_engine::readiness::*;
use beeline_socket_rules::Spin;
use proptest::prelude::*;
use readiness::*;
use rustix::event::epoll::{self, EventFlags};

const MEMBERS: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Step {
    WindowArrives(usize),
    WindowTakes(usize),
    KernelArrives(usize),
    KernelTakes(usize),
    Register(usize, u32),
    Remove(usize),
    Ring,
    /// Room for so many events, and how many microseconds go by at each look at the clock.
    Wait(usize, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let member = 0..MEMBERS;
    let step = prop_oneof![
        4 => member.clone().prop_map(Step::WindowArrives),
        3 => member.clone().prop_map(Step::WindowTakes),
        1 => member.clone().prop_map(Step::KernelArrives),
        1 => member.clone().prop_map(Step::KernelTakes),
        2 => (member.clone(), 0u32..8).prop_map(|(at, asked)| Step::Register(at, asked)),
        1 => member.prop_map(Step::Remove),
        1 => Just(Step::Ring),
        8 => (1usize..6, prop_oneof![Just(0), Just(20), Just(60)]).prop_map(|(most, step)| Step::Wait(most, step)),
    ];
    prop::collection::vec(step, 1..120)
}

/// One member, as the model has it.
struct Member {
    socket: UnixStream,
    other: UnixStream,
    connection: Connection,
    asked: Option<EventFlags>,
    window: u64,
    kernel: u64,
    /// Whether an edge has to be told, by each of the two.
    is_due: [bool; 2],
    /// How often an edge may be told: each of the two has its own, and one call may tell both as one.
    may_be_told: u32,
    /// Waits with room and time for everything that did not tell what has to be told.
    passed_over: u32,
}

struct World {
    sets: &'static Sets<Connection>,
    epoll: OwnedFd,
    microseconds: Arc<AtomicU64>,
    members: Vec<Member>,
}

impl World {
    fn new() -> Self {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let sets = sets();
        sets.created(epoll.as_raw_fd());
        let members = (0..MEMBERS).map(|_| {
            let (socket, other) = UnixStream::pair().unwrap();
            socket.set_nonblocking(true).unwrap();
            let connection = Connection::up();
            let (window, kernel, is_due) = (0, 0, [false; 2]);
            Member {
                socket,
                other,
                connection,
                asked: None,
                window,
                kernel,
                is_due,
                may_be_told: 0,
                passed_over: 0,
            }
        });
        let members = members.collect();
        World { sets, epoll, microseconds: Arc::new(AtomicU64::new(1_000_000)), members }
    }

    fn change(&mut self, change: Change, at: usize, flags: EventFlags) {
        let member = &mut self.members[at];
        let event = event(at as u64, flags);
        match change {
            Change::Add => epoll::add(&self.epoll, &member.socket, event.data, flags).unwrap(),
            Change::Modify => epoll::modify(&self.epoll, &member.socket, event.data, flags).unwrap(),
            Change::Delete => epoll::delete(&self.epoll, &member.socket).unwrap(),
        }
        let number = member.socket.as_raw_fd();
        self.sets.changed(self.epoll.as_fd(), change, number, Some(member.connection), event).unwrap();
        member.asked = (change != Change::Delete).then_some(flags);
        member.is_due = [member.window > 0, member.kernel > 0];
        member.may_be_told = 2;
        member.passed_over = 0;
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::WindowArrives(at) => {
                let member = &mut self.members[at];
                member.connection.send();
                member.window += 1;
                member.is_due[0] = true;
                member.allow();
            }
            Step::WindowTakes(at) => {
                let member = &mut self.members[at];
                if member.connection.take() {
                    member.window -= 1;
                    member.allow();
                    member.is_due[0] &= member.window > 0;
                }
            }
            Step::KernelArrives(at) => {
                let member = &mut self.members[at];
                member.other.write_all(b"x").unwrap();
                member.kernel += 1;
                member.is_due[1] = true;
                member.allow();
            }
            Step::KernelTakes(at) => {
                let member = &mut self.members[at];
                if member.kernel > 0 {
                    member.socket.read_exact(&mut [0]).unwrap();
                    member.kernel -= 1;
                    member.allow();
                    member.is_due[1] &= member.kernel > 0;
                }
            }
            Step::Register(at, asked) => {
                let flags = [EventFlags::IN, EventFlags::OUT, EventFlags::ET];
                let flags = (0..3)
                    .filter(|bit| asked >> bit & 1 == 1)
                    .fold(EventFlags::RDHUP, |all, bit| all | flags[bit]);
                let change = if self.members[at].asked.is_some() { Change::Modify } else { Change::Add };
                self.change(change, at, flags);
            }
            Step::Remove(at) => {
                if self.members[at].asked.is_some() {
                    self.change(Change::Delete, at, EventFlags::empty());
                }
            }
            Step::Ring => {
                for member in self.members.iter().filter(|member| member.connection.sleepers() > 0) {
                    member.connection.first_sleeper().ring();
                }
            }
            Step::Wait(most, step) => self.wait(most, step),
        }
    }

    fn wait(&mut self, most: usize, step: u64) {
        let mut kernel = Real::new(&self.epoll);
        kernel.time = Time::Steps(Arc::clone(&self.microseconds), step);
        let mut out = room(most);
        let set = self.sets.find(self.epoll.as_raw_fd()).unwrap();
        let ready = set.wait(&mut kernel, &mut out, Some(Duration::ZERO), Spin::For(Duration::ZERO)).unwrap();
        let asked_kernel = kernel.looks > 0 || !kernel.sleeps.is_empty();
        let told = told(&out[..ready]);
        let mut seen = [None; MEMBERS];
        for (data, flags) in told {
            let place = seen.get_mut(data as usize).expect("data that no registration has");
            assert!(place.replace(flags).is_none(), "told twice: {data}");
        }
        for (at, seen) in seen.into_iter().enumerate() {
            self.members[at].check(seen, asked_kernel, ready == most || kernel.was_full);
        }
    }
}

impl Member {
    fn allow(&mut self) {
        self.may_be_told = (self.may_be_told + 1).min(2);
    }

    fn check(&mut self, told: Option<EventFlags>, asked_kernel: bool, is_full: bool) {
        let Some(asked) = self.asked else { return assert_eq!(told, None) };
        let told = told.unwrap_or(EventFlags::empty());
        assert!(asked.contains(told), "told what nobody asked for");
        if told.contains(EventFlags::IN) {
            assert!(self.window + self.kernel > 0, "told that there is something, and there is nothing");
        }
        let is_edge = asked.contains(EventFlags::ET);
        if is_edge && !told.is_empty() {
            assert!(self.may_be_told > 0, "an edge was told again");
            self.may_be_told -= 1;
        }
        let in_window = asked.contains(EventFlags::IN) && self.window > 0 && (!is_edge || self.is_due[0]);
        let in_kernel = asked.contains(EventFlags::IN) && self.kernel > 0 && (!is_edge || self.is_due[1]);
        if told.contains(EventFlags::IN) {
            // The kernel tells the whole state with its edge too.
            self.is_due = [false, self.is_due[1] && !asked_kernel];
            self.passed_over = 0;
        } else if in_window || in_kernel && asked_kernel {
            assert!(is_full, "not told, though there was room");
            self.passed_over += 1;
            assert!(self.passed_over < 40, "it never was its turn");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_told_is_what_a_level_and_an_edge_mean(steps in steps()) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
        // Nobody was told for whom nothing comes; whoever has something is told in the end.
        world.microseconds.fetch_add(1000, Ordering::Relaxed);
        for _ in 0..12 {
            world.wait(1, 60);
        }
        world.wait(8, 60);
    }
}
