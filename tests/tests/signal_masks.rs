//! A program's signals are handled on the program's threads: those of the library block them, whatever part of it is in use.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod e2e_support;

use std::collections::{BTreeMap, HashSet};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use beeline::rpc::{Method, Replied, Reply as RpcReply, Request};
use beeline::{Domain, WaitPolicy};
use beeline_domain::{Answer, DomainConfig, Notified, Peer, Refusal, Reply, Service};
use beeline_heartbeat::{Acceptance, HeartbeatLink, MappedFile, MappedState, Side};
use beeline_mmio::selftest::whole_lines;
use beeline_mmio::{Choice, Region, StoreKernel, Traffic, cpu, thread};
use beeline_nic_process::{NicProcess, NicProcessConfig};
use e2e_support::{WATCHDOG, domain_at};
use nix::libc;

/// What a thread causes itself, which stays open, and what nobody can block.
const OPEN: [libc::c_int; 9] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
    libc::SIGKILL,
    libc::SIGSTOP,
];
/// The C library keeps these two for itself.
const OWN_OF_LIBC: [libc::c_int; 2] = [32, 33];

/// The signals of a program, a bit each.
fn of_the_program() -> u64 {
    OPEN.iter().chain(&OWN_OF_LIBC).fold(u64::MAX, |bits, signal| bits & !(1 << (signal - 1)))
}

fn threads() -> Vec<u32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}

/// A thread's name and the signals of a program that it does not block; `None` once it ends.
fn open_signals(thread: u32) -> Option<(String, u64)> {
    let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).ok()?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    // Of a thread that has no signals any more the kernel shows a process of no threads, and empty masks.
    if field("Threads:")? == "0" {
        return None;
    }
    let blocked = u64::from_str_radix(field("SigBlk:")?, 16).ok()?;
    Some((field("Name:")?.to_owned(), of_the_program() & !blocked))
}

/// The open signals of every thread but the program's own, by name.
#[derive(Default)]
struct Seen {
    open: Mutex<BTreeMap<String, u64>>,
    is_over: AtomicBool,
}

impl Seen {
    /// Looks at all threads until it is over.
    fn look(&self, mut program: HashSet<u32>) {
        program.insert(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned());
        // Relaxed: only the end of the loop follows from it.
        while !self.is_over.load(Ordering::Relaxed) {
            let ours = threads().into_iter().filter(|id| !program.contains(id));
            for (name, open) in ours.filter_map(open_signals) {
                *self.open.lock().unwrap().entry(name).or_default() |= open;
            }
        }
    }

    /// Waits until a thread with this name was looked at; the kernel keeps 15 bytes of a name.
    fn wait_for(&self, name: &str) {
        let begun = Instant::now();
        while !self.open.lock().unwrap().contains_key(&name[..name.len().min(15)]) {
            assert!(begun.elapsed() < WATCHDOG, "no thread is called {name}");
            std::thread::yield_now();
        }
    }
}

/// Tells whoever connects something.
struct Greeting;

impl Service for Greeting {
    fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply::default().into())
    }

    fn requested(&mut self, peer: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        assert_eq!(peer.notify(b"hello", &[]).unwrap(), Notified::Accepted);
        Ok(Answer::later(|_| Ok(Reply::default())))
    }

    fn departed(&mut self, _: &Peer) {}
}

fn notifications(root: &std::path::Path, seen: &Seen) {
    let domain = domain_at(root);
    let _offer = domain.offer("greeting", Box::new(Greeting)).unwrap();
    let (connection, _) = domain.connect("greeting", b"", &[]).unwrap();
    let (sender, given) = mpsc::channel();
    let _thread =
        connection.notifications().unwrap().deliver_to(move |given| drop(sender.send(given))).unwrap();
    connection.call(b"", &[]).unwrap();
    assert_eq!(given.recv_timeout(WATCHDOG).unwrap().unwrap().payload, b"hello");
    for name in ["beeline-domain", "beeline-worker", "beeline-disposer", "beeline-notify"] {
        seen.wait_for(name);
    }
}

fn windows_and_calls(domain: &Domain) {
    let mut receiver = domain.receiver("window").unwrap();
    let mut sender = domain.sender("window").unwrap();
    sender.send(b"hello").unwrap();
    assert_eq!(receiver.recv().unwrap().to_vec(), b"hello");
    drop((sender, receiver));
    let (_server, mut worker) = domain.server("calls").unwrap();
    let mut client = domain.client("calls").unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let serving = thread::start("test", {
        let stop = Arc::clone(&stop);
        let mut echo = |_: &mut Request<'_>, reply: RpcReply<'_>| -> Replied { reply.send(b"yes") };
        move || worker.run(&mut echo, &WaitPolicy::default(), &stop)
    });
    let mut answer = Vec::new();
    client.call(Method(1), b"here?", &mut answer, None).unwrap();
    assert_eq!(answer, b"yes");
    stop.store(true, Ordering::Relaxed);
    serving.unwrap().join().unwrap();
}

fn port_of_a_nic(root: &std::path::Path, domain: &Domain) {
    let config = DomainConfig { root: Some(root.to_owned()), name: "e2e".into() };
    let config = NicProcessConfig { domain: config, ..NicProcessConfig::default() };
    let core = cpu::allowed_cores()[0];
    let mut nic = NicProcess::new(NicProcessConfig { core: Some(core), ..config }).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let serving = thread::start("test", {
        let stop = Arc::clone(&stop);
        move || nic.run(&stop).map(drop)
    });
    let port = domain.port("nic").unwrap();
    drop(port);
    stop.store(true, Ordering::Relaxed);
    serving.unwrap().join().unwrap().unwrap();
}

fn link_by_heartbeats(seen: &Seen) {
    let state = MappedState::new(&Region::private(MappedState::BYTES), 0, Side::First);
    let _link = HeartbeatLink::open::<MappedFile>(state, Acceptance::AtOnce).unwrap();
    seen.wait_for("beeline-beat");
}

fn timings() {
    let _ = Choice::timed(Traffic::Stream);
    let _ = whole_lines(&Region::private(4096), 0, StoreKernel::Cached, Duration::from_millis(20));
}

#[test]
fn every_thread_of_the_library_blocks_the_signals_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let (program, seen) = (threads().into_iter().collect(), Seen::default());
    std::thread::scope(|scope| {
        scope.spawn(|| seen.look(program));
        let used = catch_unwind(AssertUnwindSafe(|| {
            let domain = Domain::open_in(folder.path(), "e2e").unwrap();
            notifications(folder.path(), &seen);
            windows_and_calls(&domain);
            port_of_a_nic(folder.path(), &domain);
            link_by_heartbeats(&seen);
            timings();
        }));
        // Relaxed: the thread that looks reads nothing on the strength of it.
        seen.is_over.store(true, Ordering::Relaxed);
        assert!(used.is_ok());
    });
    let mut open = seen.open.into_inner().unwrap();
    open.retain(|_, open| *open != 0);
    assert!(open.is_empty(), "{open:x?}");
}
