//! Readiness by descriptor through the public API: no wake-up of a window, a server or a client is lost.
//! Several things in one epoll are `epoll.rs`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use beeline::rpc::{Method, Replied, Reply, Request, Started};
use beeline::{Armed, Domain, Polled, Receiver, RecvError, Sender, ServerOptions};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Seconds after which a wake-up counts as lost; only a lost one takes them.
const LOST_AFTER_SECONDS: i64 = 60;

/// Whether the descriptor becomes readable in time.
fn wait(fd: impl AsFd, seconds: i64) -> bool {
    let limit = Timespec { tv_sec: seconds, tv_nsec: 0 };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&limit)).unwrap() == 1
}

struct Pair {
    sender: Sender,
    receiver: Polled<Receiver>,
    domain: Domain,
    _folder: tempfile::TempDir,
}

fn pair() -> Pair {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "test").unwrap();
    let receiver = Polled::new(domain.receiver("window").unwrap()).unwrap();
    let sender = domain.sender("window").unwrap();
    Pair { sender, receiver, domain, _folder: folder }
}

/// Runs something when a test ends, by a failed assertion too: threads that wait for this one would otherwise hang it.
struct AtEnd<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Every message is sent when the last one was received: in even cases only after the receiver has armed and found
/// nothing, in odd ones while it arms.
fn no_wake_up_is_lost(cases: u64) {
    let Pair { mut sender, mut receiver, .. } = pair();
    let (received, armed) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for case in 1..=cases {
                let may_send = || {
                    received.load(Ordering::Acquire) == case - 1
                        && (!case.is_multiple_of(2) || armed.load(Ordering::Acquire) == case)
                };
                while !may_send() {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    std::thread::yield_now();
                }
                sender.send(&case.to_le_bytes()).unwrap();
            }
        });
        let _end = AtEnd(|| is_over.store(true, Ordering::Relaxed));
        let mut waits = 0u64;
        for case in 1..=cases {
            loop {
                if let Some(message) = receiver.try_recv().unwrap() {
                    assert_eq!(message.word(0), case);
                    break;
                }
                if receiver.arm() == Armed::Wait {
                    waits += 1;
                    armed.store(case, Ordering::Release);
                    assert!(wait(&receiver, LOST_AFTER_SECONDS), "the wake-up of message {case} is lost");
                }
            }
            received.store(case, Ordering::Release);
        }
        assert!(waits >= cases / 2, "{waits} waits for {cases} messages");
    });
}

#[test]
fn no_wake_up_is_lost_in_a_hundred_thousand() {
    no_wake_up_is_lost(100_000);
}

#[test]
#[ignore = "takes minutes; for a quiet machine"]
fn no_wake_up_is_lost_in_ten_million() {
    no_wake_up_is_lost(10_000_000);
}

#[test]
fn end_of_a_sender_and_the_next_sender_are_signalled() {
    let Pair { sender, mut receiver, domain, _folder } = pair();
    assert_eq!(receiver.arm(), Armed::Wait);
    assert!(!wait(&receiver, 0), "nothing has happened");
    drop(sender);
    assert!(wait(&receiver, LOST_AFTER_SECONDS), "the end of the sender");
    let error = loop {
        match receiver.try_recv() {
            Err(error) => break error,
            Ok(message) => assert!(message.is_none()),
        }
        assert!(receiver.arm() == Armed::Ready || wait(&receiver, LOST_AFTER_SECONDS));
    };
    assert!(matches!(error, RecvError::SenderGone), "{error}");
    assert_eq!(receiver.arm(), Armed::Wait, "there is no sender");
    assert!(!wait(&receiver, 0));
    let mut next = domain.sender("window").unwrap();
    assert!(wait(&receiver, LOST_AFTER_SECONDS), "the next sender");
    next.send(b"again").unwrap();
    loop {
        if let Some(message) = receiver.try_recv().unwrap() {
            assert_eq!(message.to_vec(), b"again");
            return;
        }
        assert!(receiver.arm() == Armed::Ready || wait(&receiver, LOST_AFTER_SECONDS));
    }
}

#[test]
fn sender_that_waits_for_room_gets_it_from_a_receiver_that_listens() {
    let Pair { mut sender, mut receiver, domain: _domain, _folder } = pair();
    while sender.try_send(&[7; 56]).unwrap() == beeline::Sent::Sent {}
    let sending = std::thread::spawn(move || sender.send(b"the last").unwrap());
    let mut last = Vec::new();
    while last != b"the last" {
        let message = receiver.try_recv().unwrap().map(beeline::Message::to_vec);
        if message.is_none() {
            assert!(receiver.arm() == Armed::Ready || wait(&receiver, LOST_AFTER_SECONDS));
        }
        last = message.unwrap_or(last);
    }
    sending.join().unwrap();
}

fn double(request: &mut Request<'_>, reply: Reply<'_>) -> Replied {
    reply.send(&(request.word(0) * 2).to_le_bytes())
}

/// Two threads of a server and a client, each always waiting by descriptor; the client's calls go to either thread.
#[test]
fn servers_and_clients_that_only_wait_by_descriptor_answer_every_call() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "test").unwrap();
    let (_server, workers) = domain.server_with("doubles", ServerOptions::new().workers(2)).unwrap();
    let is_over = AtomicBool::new(false);
    let (stop, stopped) = rustix::pipe::pipe().map(|(read, write)| (write, read)).unwrap();
    std::thread::scope(|scope| {
        for worker in workers {
            let (stopped, is_over) = (&stopped, &is_over);
            let mut worker = Polled::new(worker).unwrap();
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    if worker.poll(&mut double) == 0 && worker.arm() == Armed::Wait {
                        let mut set = [worker.as_fd(), stopped.as_fd()]
                            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
                        poll(&mut set, None).unwrap();
                    }
                }
            });
        }
        let _end = AtEnd(|| {
            is_over.store(true, Ordering::Relaxed);
            rustix::io::write(&stop, b"over").unwrap();
        });
        let mut client = Polled::new(domain.client("doubles").unwrap()).unwrap();
        for case in 0..20_000u64 {
            let started = client.start(Method(1), &case.to_le_bytes(), None).unwrap();
            assert!(matches!(started, Started::Call(_)), "one call at a time");
            loop {
                if let Some(completion) = client.poll() {
                    assert_eq!(completion.result.unwrap().word(0), case * 2);
                    break;
                }
                match client.arm() {
                    Armed::Ready => {}
                    Armed::Wait => assert!(wait(&client, LOST_AFTER_SECONDS), "answer {case} is lost"),
                    Armed::WaitAtMost(_) => std::thread::yield_now(),
                }
            }
        }
    });
}
