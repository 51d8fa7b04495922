//! `kill -9` of a process while the other one sleeps in epoll: whoever waits by descriptor is woken, and told.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod e2e_support;

use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use beeline::rpc::{CallError, Method, Replied, Reply, Request, Started};
use beeline::{Armed, Domain, Polled, PortOptions, PortRecvError, RecvError, Source};
use e2e_support::{Role, WATCHDOG, domain_config, own_role, run_nic, say};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};

#[test]
#[ignore = "a role of the other tests, not a test"]
fn role() {
    let domain = || Domain::open_in(domain_config().root.unwrap(), "e2e").unwrap();
    match own_role().as_deref() {
        Some("nic") => run_nic(),
        Some("sender") => until_killed(domain().sender("window").unwrap()),
        Some("client") => until_killed(domain().client("calls").unwrap()),
        // Its worker is never polled: calls stay outstanding.
        Some("server") => until_killed(domain().server("calls").unwrap()),
        other => panic!("no role {other:?}"),
    }
}

/// Keeps what a role has opened until the test kills it, or has ended itself.
fn until_killed<T>(opened: T) {
    say("ready");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    drop(opened);
}

fn ready(name: &'static str, root: &Path) -> Role {
    let mut role = Role::start(name, root, &[]);
    role.expect("ready");
    role
}

/// Whether a thread of this process sleeps in the kernel.
fn is_asleep(thread: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
    // The name stands in brackets and may have any byte in it.
    state.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S'))
}

/// Looks, arms and waits until `is_gone`; meanwhile `peer` is killed, as soon as this thread sleeps.
fn wait_until_gone<S: Source>(
    polled: &mut Polled<S>,
    peer: Role,
    mut is_gone: impl FnMut(&mut Polled<S>) -> bool,
) {
    let begun = Instant::now();
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    epoll::add(&set, &*polled, EventData::new_u64(0), EventFlags::IN).unwrap();
    let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let (is_waiting, was_killed) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !(is_waiting.load(Ordering::Acquire) && is_asleep(thread)) && begun.elapsed() < WATCHDOG {
                std::thread::yield_now();
            }
            was_killed.store(true, Ordering::Release);
            peer.kill();
        });
        while !is_gone(polled) {
            assert!(begun.elapsed() < 2 * WATCHDOG, "the end of the peer is not told");
            if polled.arm() != Armed::Wait {
                continue;
            }
            is_waiting.store(true, Ordering::Release);
            let mut events = Vec::with_capacity(1);
            let limit = Timespec { tv_sec: WATCHDOG.as_secs() as i64, tv_nsec: 0 };
            epoll::wait(set.as_fd(), spare_capacity(&mut events), Some(&limit)).unwrap();
            assert!(!events.is_empty(), "the end of the peer wakes nobody");
            is_waiting.store(false, Ordering::Release);
        }
    });
    assert!(was_killed.load(Ordering::Acquire), "it was gone before it was killed");
}

#[test]
fn killed_sender_wakes_a_receiver_in_epoll() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "e2e").unwrap();
    let mut receiver = Polled::new(domain.receiver("window").unwrap()).unwrap();
    let sender = ready("sender", folder.path());
    wait_until_gone(&mut receiver, sender, |receiver| match receiver.try_recv() {
        Ok(message) => {
            assert!(message.is_none(), "a message of a sender that sends none");
            false
        }
        Err(error) => {
            assert!(matches!(error, RecvError::SenderGone), "{error}");
            true
        }
    });
}

#[test]
fn killed_client_wakes_a_server_in_epoll() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "e2e").unwrap();
    let (_server, worker) = domain.server("calls").unwrap();
    let mut worker = Polled::new(worker).unwrap();
    let client = ready("client", folder.path());
    let mut refuse = |_: &mut Request<'_>, reply: Reply<'_>| -> Replied { reply.unknown_method() };
    worker.poll(&mut refuse);
    assert_eq!(worker.clients(), 1);
    wait_until_gone(&mut worker, client, |worker| {
        worker.poll(&mut refuse);
        worker.clients() == 0
    });
}

#[test]
fn killed_server_wakes_a_client_in_epoll() {
    let folder = tempfile::tempdir().unwrap();
    let server = ready("server", folder.path());
    let domain = Domain::open_in(folder.path(), "e2e").unwrap();
    let mut client = Polled::new(domain.client("calls").unwrap()).unwrap();
    let started = client.start(Method(1), b"outstanding", None).unwrap();
    assert!(matches!(started, Started::Call(_)));
    wait_until_gone(&mut client, server, |client| {
        let Some(completion) = client.poll() else { return false };
        let error = completion.result.err();
        assert!(matches!(error, Some(CallError::ServerGone { was_sent: true, .. })), "{error:?}");
        true
    });
}

#[test]
fn killed_nic_wakes_a_port_in_epoll() {
    let folder = tempfile::tempdir().unwrap();
    let nic = Role::nic(folder.path());
    let domain = Domain::open_in(folder.path(), "e2e").unwrap();
    let mut port = Polled::new(domain.port_with("nic", PortOptions::new()).unwrap()).unwrap();
    wait_until_gone(&mut port, nic, |port| match port.try_recv() {
        Ok(frame) => {
            assert!(frame.is_none(), "a frame that nobody sent");
            false
        }
        Err(error) => {
            assert!(matches!(error, PortRecvError::NicGone), "{error}");
            true
        }
    });
}
