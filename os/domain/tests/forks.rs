//! Fork and exec while other threads use everything: a child never waits for a lock of a thread that it does not have, and
//! inherits nothing through exec.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use beeline_contract_memory::{LoadPort, StorePort};
use beeline_domain::{
    Answer, ArenaListener, ArenaOptions, ConnectError, Domain, MisuseError, NotificationsEnded, Notified,
    OfferError, Peer, ReceiverParts, Refusal, Reply, SenderArena, SenderParts, Service, StoreOptions,
    WindowError, WindowOptions, connect_window, join_windows, offer_window, offer_windows,
};
use beeline_mmio::StoreKernel;
use harness::{Role, TestFolder, WATCHDOG, is_readable, say, wait_for_end};
use rustix::process::{Pid, Signal, WaitOptions};

/// Answers with the process id of who asks, and notifies it before.
struct Who;

impl Service for Who {
    fn connected(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        self.requested(peer, request, fds)
    }

    fn requested(&mut self, peer: &Peer, _: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let _ = peer.notify(b"told", &[]).map(|told| told == Notified::Accepted);
        Ok(Reply { payload: peer.pid().to_string().into_bytes(), fds }.into())
    }

    fn departed(&mut self, _: &Peer) {}
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    let _watchdog = harness::watchdog();
    // What this process was given without a domain.
    let given = listed_by_a_program();
    let domain = role.open();
    match role.name.as_str() {
        "owner" => {
            let _offer = domain.offer("name", Box::new(Who)).unwrap();
            say("ready");
            wait_for_end();
        }
        "forker" => under_load(&domain, || fork_many(&domain, 150)),
        "grandparent" => fork_deep(&domain, 5),
        "arena" => fork_with_windows_of_an_arena(&domain),
        "execer" => under_load(&domain, || exec_many(&given, 60)),
        other => panic!("unknown role {other}"),
    }
}

/// Does `work` while threads connect, call, offer, notify, make windows and open domains all the time.
fn under_load(domain: &Domain, work: impl FnOnce()) {
    let is_done = AtomicBool::new(false);
    let rounds = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let repeat = |load: &(dyn Fn() + Sync)| {
            while !is_done.load(Ordering::Relaxed) {
                load();
                rounds.fetch_add(1, Ordering::Relaxed);
            }
        };
        for thread in 0..2 {
            let own = format!("load-{thread}");
            scope.spawn(move || repeat(&|| connect_and_call(domain)));
            scope.spawn(move || repeat(&|| offer_and_notify(domain, &own)));
        }
        scope.spawn(move || repeat(&|| make_window(domain)));
        scope.spawn(move || {
            repeat(&|| drop(domain.retry_until_offered(Duration::ZERO, |_| domain.connect("name", b"", &[]))))
        });
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_done.store(true, Ordering::Relaxed);
        worked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    assert!(rounds.into_inner() > 100, "there was no load");
    say("done");
}

fn connect_and_call(domain: &Domain) {
    let (reader, _writer) = std::io::pipe().unwrap();
    let (connection, _) = domain.connect("name", b"", &[reader.as_fd()]).unwrap();
    let notifications = connection.notifications().unwrap();
    connection.call(b"", &[reader.as_fd()]).unwrap();
    while notifications.try_next().unwrap().is_some() {}
}

fn offer_and_notify(domain: &Domain, name: &str) {
    let _offer = domain.offer(name, Box::new(Who)).unwrap();
    let (connection, _) = domain.connect(name, b"", &[]).unwrap();
    let callbacks = connection.notifications().unwrap().deliver_to(|_| {}).unwrap();
    connection.call(b"", &[]).unwrap();
    drop(callbacks);
}

fn make_window(domain: &Domain) {
    let options = WindowOptions { lines: 64, ..WindowOptions::default() };
    let listener = offer_window(domain, "window", options).unwrap();
    let sender = connect_window(domain, "window", StoreOptions::with_kernel(StoreKernel::Cached)).unwrap();
    drop((listener.accept(WATCHDOG).unwrap(), sender));
}

/// Runs `body` in a child, and fails if it does not say `true` in time.
fn in_child(body: impl FnOnce() -> bool) {
    let (reader, writer) = std::io::pipe().unwrap();
    match fork::fork().unwrap() {
        fork::Fork::Child => {
            let _ = rustix::io::write(&writer, &[u8::from(body())]);
            end_this_child();
        }
        fork::Fork::Parent(pid) => {
            expect_good(&reader, writer, pid);
            let pid = Pid::from_raw(pid).unwrap();
            rustix::process::waitpid(Some(pid), WaitOptions::empty()).unwrap();
        }
    }
}

fn expect_good(reader: &PipeReader, writer: PipeWriter, pid: i32) {
    drop(writer);
    if !is_readable(reader, WATCHDOG / 2) {
        let stacks = std::fs::read_to_string(format!("/proc/{pid}/stack")).unwrap_or_default();
        let _ = rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        panic!("a child hangs: {stacks}");
    }
    let mut good = [0];
    assert_eq!(rustix::io::read(reader, &mut good), Ok(1), "a child has ended");
    assert_eq!(good, [1], "a child could not use the domain");
}

/// Without the exit handlers of the C library, which are the parent's.
fn end_this_child() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
    unreachable!()
}

/// Connects, is told and answered under its own process id, offers under a name of its own, and uses that.
fn uses_domain(domain: &Domain) -> bool {
    let pid = std::process::id().to_string();
    let is_own = |name: &str| {
        let Ok((connection, _)) = domain.connect(name, b"", &[]) else { return false };
        let answered = connection.call(b"", &[]).is_ok_and(|reply| reply.payload == pid.as_bytes());
        let notifications = connection.notifications().unwrap();
        let told = (0..2).filter(|_| notifications.try_next().is_ok_and(|next| next.is_some())).count();
        answered && told == 2
    };
    let name = format!("child-{pid}");
    let offer = domain.offer(&name, Box::new(Who));
    offer.is_ok() && is_own("name") && is_own(&name)
}

fn fork_many(domain: &Domain, children: usize) {
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    let notifications = connection.notifications().unwrap();
    let offer = domain.offer("parent", Box::new(Who)).unwrap();
    let callbacks = notifications.clone().deliver_to(|_| {}).unwrap();
    let mut inherited = Some((callbacks, offer));
    for _ in 0..children {
        in_child(|| {
            let is_good = uses_domain(domain)
                && matches!(notifications.try_next(), Err(NotificationsEnded::Misuse(_)))
                && connection.call(b"", &[]).is_err()
                && matches!(domain.offer("parent", Box::new(Who)), Err(OfferError::Taken { .. }));
            // What was inherited is dropped too.
            drop(inherited.take());
            is_good && uses_domain(domain)
        });
        // The parent has lost nothing.
        connection.call(b"", &[]).unwrap();
    }
    drop(inherited);
}

/// A child of a child of a child, each of which uses what it inherited.
fn fork_deep(domain: &Domain, depth: u32) {
    fn deeper(domain: &Domain, depth: u32) -> bool {
        if depth > 0 {
            in_child(|| uses_domain(domain) && deeper(domain, depth - 1) && uses_domain(domain));
        }
        uses_domain(domain)
    }
    assert!(deeper(domain, depth));
    say("done");
}

/// Both sides of an arena, and windows in it.
type Windows = (ArenaListener, SenderArena, Vec<(SenderParts, ReceiverParts)>);

/// Whether a child is told that the windows are its parent's, in everything that it may do with them, before it drops them.
fn has_no_windows((listener, arena, windows): Windows) -> bool {
    let is_forked = |opened: Result<SenderParts, WindowError>| {
        matches!(
            opened,
            Err(WindowError::Connect(ConnectError::Misuse(MisuseError::Forked { opened_by, .. })))
                if opened_by != std::process::id()
        )
    };
    let says_so = is_forked(arena.open(StoreKernel::Cached))
        && is_forked(arena.open_sized(128, StoreKernel::Cached))
        && listener.try_accept().is_none()
        && listener.accept(WATCHDOG).is_none();
    for (sender, receiver) in &windows[..2] {
        sender.peer.disconnect();
        receiver.peer.disconnect();
    }
    // Handles of either side first, and both sides while the other one's are there.
    let (senders, receivers): (Vec<_>, Vec<_>) = windows.into_iter().unzip();
    drop((senders, receivers, arena, listener));
    says_so
}

fn fork_with_windows_of_an_arena(domain: &Domain) {
    let options = ArenaOptions { lines: 128, windows: 40, ..ArenaOptions::default() };
    let listener = offer_windows(domain, "arena", options).unwrap();
    let arena = join_windows(domain, "arena", 64).unwrap();
    let open = |arena: &SenderArena| arena.open(StoreKernel::Cached).unwrap();
    let accept = |listener: &ArenaListener| listener.accept(WATCHDOG).unwrap();
    let windows = (0..8).map(|_| (open(&arena), accept(&listener))).collect();
    // One that nobody has accepted when the child drops the listener.
    let waiting = open(&arena);
    let mut inherited: Option<Windows> = Some((listener, arena, windows));
    for _ in 0..3 {
        in_child(|| has_no_windows(inherited.take().unwrap()));
    }
    let (listener, arena, mut windows) = inherited.unwrap();
    windows.push((waiting, accept(&listener)));
    // What a child had told would be heard before these are opened.
    let mut others: Vec<_> = (0..20).map(|_| (open(&arena), accept(&listener))).collect();
    for (sender, receiver) in &mut windows {
        assert!(sender.peer.is_alive() && receiver.peer.is_alive(), "a child has ended a window");
        sender.store.store_word(63, 7, 1);
        assert_eq!(receiver.load.load_word(63, 7), 1);
    }
    for (_, receiver) in &mut others {
        assert_eq!(receiver.load.load_word(63, 7), receiver.blank, "a child has given a window back");
    }
    say("done");
}

/// Executes a program that lists its descriptors, many times.
fn exec_many(given: &[u32], programs: usize) {
    for _ in 0..programs {
        assert_eq!(listed_by_a_program(), given, "a descriptor leaks through exec");
    }
}

/// The descriptors of a program that this process executes, the one by which it lists them included.
fn listed_by_a_program() -> Vec<u32> {
    let mut list = Command::new("ls");
    let listed = list.arg("/proc/self/fd").stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap();
    let numbers = String::from_utf8(listed.stdout).unwrap();
    numbers.lines().map(|number| number.parse().unwrap()).collect()
}

fn play(role: &str) {
    let folder = TestFolder::new();
    let mut owner = folder.helper("owner", "");
    owner.expect("ready");
    let mut helper = folder.helper(role, "");
    helper.expect("done");
    assert!(helper.finish().success());
}

#[test]
fn child_forked_under_load_uses_the_domain_and_never_hangs() {
    play("forker");
}

#[test]
fn grandchildren_use_the_domain() {
    play("grandparent");
}

/// Such a child says so, gives nothing back and ends nothing.
#[test]
fn child_has_no_windows_of_an_arena() {
    play("arena");
}

#[test]
fn nothing_leaks_through_exec_under_load() {
    play("execer");
}

#[test]
fn child_of_a_service_that_returns_is_ended() {
    /// Forks in its callback, and returns in both processes.
    struct Forking(std::sync::mpsc::Sender<i32>);

    impl Service for Forking {
        fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
            if let fork::Fork::Parent(child) = fork::fork().unwrap() {
                self.0.send(child).unwrap();
            }
            Ok(Reply::default().into())
        }

        fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
            Ok(Reply::new("still here").into())
        }

        fn departed(&mut self, _: &Peer) {}
    }

    let folder = TestFolder::new();
    let domain = folder.open();
    let (children, forked) = std::sync::mpsc::channel();
    let _offer = domain.offer("forking", Box::new(Forking(children))).unwrap();
    let (connection, _) = domain.connect("forking", b"", &[]).unwrap();
    let child = Pid::from_raw(forked.recv_timeout(WATCHDOG).unwrap()).unwrap();
    let (_, status) = rustix::process::waitpid(Some(child), WaitOptions::empty()).unwrap().unwrap();
    assert_eq!(status.terminating_signal(), Some(Signal::ABORT.as_raw()), "{status:?}");
    assert_eq!(connection.call(b"", &[]).unwrap().payload, b"still here");
}
