//! A window between two processes that share a mapped file and no kernel object: the link's state says when there is a peer, and its
//! session which memory is whose. Senders are killed and stopped in the flow of messages; whoever comes back gets other
//! memory, and no wrong byte is ever received.
//!
//! The receiver takes a peer when it is told to ([`Acceptance::WhenTold`]): first it prepares the session's memory and says
//! where that is. So what the sender finds when the link is up is ready, and a stopped sender's late stores go where nobody looks.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod link_support;

use std::sync::Arc;

use beeline_contract_memory::{CreditSink, CreditSource};
use beeline_heartbeat::{Acceptance, Down, HeartbeatLink, MappedFile, MappedState, Session, Side, Status};
use beeline_mmio::{LoadWindow, Region, StoreKernel, StoreWindow, Word};
use beeline_spec::escape::blank_from_random;
use beeline_window::{Receiver, Sent, WindowConfig, Writer};
use link_support::e2e_support::{own_role, say};
use link_support::{Role, folder, introduce, map};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

const LINES: u32 = 64;
/// Where the receiver says which memory is a session's, and which session's: two words.
const SAID_AT: usize = 1024;
/// The memory of a session: a page with the credits, and the lines.
const AREA_BYTES: usize = 8192;
const PAGE_BYTES: usize = 4096;
/// Messages of a session after which the receiver says so.
const MANY: u64 = 2000;

#[test]
#[ignore = "a role of the other test, not a test"]
fn role() {
    introduce();
    match own_role().as_deref() {
        Some("receiver") => Receiving::new().run(),
        Some("sender") => Sending::new().run(),
        other => panic!("no role {other:?}"),
    }
}

struct Credits(Word);

impl CreditSource for Credits {
    fn freed_lines(&mut self) -> u64 {
        self.0.load_acquire()
    }
}

impl CreditSink for Credits {
    fn publish(&mut self, freed_lines: u64) {
        self.0.store_release(freed_lines);
    }
}

fn config(session: Session) -> WindowConfig {
    WindowConfig::blank(blank_from_random(session.number()), session.number() as u8)
}

fn message(session: Session, index: u64) -> Vec<u8> {
    let mut payload = [session.number().to_le_bytes(), index.to_le_bytes()].concat();
    payload.resize(16 + (index % 150) as usize, index as u8);
    payload
}

/// Until something happens to the link, or a moment has passed.
fn rest(link: &HeartbeatLink) -> Option<Status> {
    let limit = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    poll(&mut [PollFd::new(link, PollFlags::IN)], Some(&limit)).unwrap();
    link.take_change()
}

/// Takes the link down and lets it come up as the test says, as an administrator's thread would, and ends with the test.
fn obey(link: &Arc<HeartbeatLink>) {
    let link = Arc::clone(link);
    std::thread::spawn(move || {
        for order in std::io::stdin().lines() {
            match order.unwrap().as_str() {
                "disable" => link.disable(),
                "enable" => link.enable(),
                other => panic!("no order {other:?}"),
            }
        }
        std::process::exit(0);
    });
}

struct Receiving {
    link: Arc<HeartbeatLink>,
    memory: Region,
    areas: usize,
    window: Option<(Session, Receiver<LoadWindow, Credits>, u64)>,
}

impl Receiving {
    fn new() -> Self {
        let memory = map();
        let state = MappedState::new(&memory, 0, Side::First);
        let link = Arc::new(HeartbeatLink::open::<MappedFile>(state, Acceptance::WhenTold).unwrap());
        obey(&link);
        Receiving { link, memory, areas: 0, window: None }
    }

    fn run(mut self) {
        loop {
            if let Some(Status::Down { reason, .. }) = rest(&self.link) {
                // What had come before is still there.
                self.take();
                let received = self.window.take().map_or(0, |(_, _, received)| received);
                say(&format!("down {reason:?} after {received}"));
            }
            if let Some(session) = self.link.offered() {
                self.prepare(session);
                self.link.accept(session);
            }
            self.take();
        }
    }

    /// Memory that no other session ever had.
    fn prepare(&mut self, session: Session) {
        let start = PAGE_BYTES + self.areas * AREA_BYTES;
        self.areas += 1;
        self.memory.fill(start, PAGE_BYTES, 0);
        self.memory.fill(start + PAGE_BYTES, LINES as usize * 64, config(session).blank);
        let lines = self.memory.load_window(start + PAGE_BYTES, LINES);
        let receiver = Receiver::new(lines, Credits(self.memory.word(start)), config(session));
        self.window = Some((session, receiver, 0));
        self.memory.word(SAID_AT).store(start as u64);
        // Release: pairs with the acquire of `Sending::window`.
        self.memory.word(SAID_AT + 8).store_release(session.number());
    }

    fn take(&mut self) {
        let Some((session, receiver, received)) = &mut self.window else { return };
        while let Some(mut found) = receiver.poll().expect("an honest sender") {
            let mut payload = Vec::new();
            found.copy_to(&mut payload);
            assert_eq!(payload, message(*session, *received), "message {received}");
            *received += 1;
            if *received == MANY {
                say(&format!("heard {:016x}", session.number()));
            }
        }
    }
}

struct Sending {
    link: Arc<HeartbeatLink>,
    memory: Region,
}

/// A window, and where its lines are in the memory.
struct Sender {
    writer: Writer<StoreWindow, Credits>,
    lines_at: usize,
    sent: u64,
}

impl Sending {
    fn new() -> Self {
        let memory = map();
        let state = MappedState::new(&memory, 0, Side::Second);
        let link = Arc::new(HeartbeatLink::open::<MappedFile>(state, Acceptance::AtOnce).unwrap());
        obey(&link);
        Sending { link, memory }
    }

    fn run(self) {
        let mut window = None;
        loop {
            match rest(&self.link) {
                Some(Status::Up { session, .. }) => {
                    window = self.window(session).map(|sender| (session, sender));
                    say(&format!("up {:016x}", session.number()));
                }
                Some(Status::Down { reason, .. }) => {
                    // Late stores, as many and as wrong as they can be: a stopped sender may make some until it knows. Not where
                    // the link was taken down: then the receiver takes what had come before.
                    let is_late = !matches!(reason, Down::Disabled | Down::PeerDisabled);
                    if let Some((_, sender)) = window.take().filter(|_| is_late) {
                        self.memory.fill(sender.lines_at, LINES as usize * 64, u64::MAX / 3);
                    }
                    say(&format!("down {reason:?}"));
                }
                Some(Status::NeverUp) | None => {}
            }
            let Some((session, Sender { writer, sent, .. })) = &mut window else { continue };
            while writer.try_send(&message(*session, *sent)).expect("an honest receiver") == Sent::Sent {
                *sent += 1;
            }
        }
    }

    /// `None`: the receiver has prepared another session meanwhile, so that this one is about to end.
    fn window(&self, session: Session) -> Option<Sender> {
        if self.memory.word(SAID_AT + 8).load_acquire() != session.number() {
            return None;
        }
        let start = self.memory.word(SAID_AT).load() as usize;
        let lines_at = start + PAGE_BYTES;
        let lines = self.memory.store_window(lines_at, LINES, StoreKernel::Cached);
        let writer = Writer::new(lines, Credits(self.memory.word(start)), config(session));
        Some(Sender { writer, lines_at, sent: 0 })
    }
}

#[test]
fn senders_that_are_killed_and_stopped_leave_no_wrong_byte_behind() {
    let folder = folder();
    let mut receiver = Role::start("receiver", "first", folder.path(), &[]);
    let mut sender = Role::start("sender", "second", folder.path(), &[]);
    let mut sessions = vec![sender.up()];
    for round in 0..3 {
        assert_eq!(receiver.line(), format!("heard {}", sessions[round]));
        sender.signal(if round == 0 { Signal::KILL } else { Signal::STOP });
        let line = receiver.line();
        assert!(line.starts_with("down Silent"), "{line}");
        if round == 1 {
            // It goes on where it was, and stores before it looks.
            sender.signal(Signal::CONT);
            assert_eq!(sender.line(), "down DeclaredDown");
            sessions.push(sender.up());
            continue;
        }
        let mut before = std::mem::replace(&mut sender, Role::start("sender", "second", folder.path(), &[]));
        sessions.push(sender.up());
        if round == 2 {
            // While its successor sends.
            before.signal(Signal::CONT);
            assert_eq!(before.line(), "down Displaced");
        }
    }
    assert_eq!(receiver.line(), format!("heard {}", sessions[3]));
    let different: std::collections::HashSet<_> = sessions.iter().collect();
    assert_eq!(different.len(), sessions.len());
}

#[test]
fn link_that_is_taken_down_on_either_side_ends_its_window_and_comes_back_with_another() {
    let folder = folder();
    let receiver = Role::start("receiver", "first", folder.path(), &[]);
    let sender = Role::start("sender", "second", folder.path(), &[]);
    let mut sides = [receiver, sender];
    let mut sessions = vec![sides[1].up()];
    for disabling in [0, 1, 0] {
        let last = sessions.last().unwrap();
        assert_eq!(sides[0].line(), format!("heard {last}"));
        sides[disabling].order("disable");
        for (at, side) in sides.iter_mut().enumerate() {
            let expected = if at == disabling { "down Disabled" } else { "down PeerDisabled" };
            let line = side.line();
            assert!(line.starts_with(expected), "side {at}: {line}");
        }
        sides[disabling].order("enable");
        let session = sides[1].up();
        assert!(!sessions.contains(&session), "{session} came back");
        sessions.push(session);
    }
    assert_eq!(sides[0].line(), format!("heard {}", sessions[3]));
}
