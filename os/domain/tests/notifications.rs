//! Notifications between real processes and threads: their order with answers, what overflows, who dies.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use beeline_domain::{
    Answer, Departure, Domain, MAX_NOTIFICATION_BYTES, MAX_NOTIFICATION_FDS, MAX_UNTAKEN_NOTIFICATIONS,
    MisuseError, Notification, NotificationsEnded, Notified, NotifyError, Peer, Refusal, Reply, Service,
};
use harness::{Role, TestFolder, WATCHDOG, listen, say, wait_for_end, wait_until};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

/// Clients of a [`Teller`], and what its threads wait for.
#[derive(Default)]
struct Told {
    clients: Mutex<Vec<Peer>>,
    has_room: Condvar,
    departed: Mutex<Vec<Option<Departure>>>,
    requests: AtomicU64,
}

impl Told {
    /// Notifies, and waits for room while there is none; `false` when the client has gone.
    fn tell(&self, peer: &Peer, payload: &[u8]) -> bool {
        loop {
            let clients = self.clients.lock().unwrap();
            match peer.notify(payload, &[]) {
                Ok(Notified::Accepted) => return true,
                // `has_room` takes the lock, so that it comes after the wait has begun.
                Ok(Notified::WouldBlock) => drop(self.has_room.wait_timeout(clients, WATCHDOG).unwrap()),
                Err(NotifyError::Gone) => return false,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Notifies with the number of the request from within it, before it answers: `b"call"` and the number.
struct Teller(Arc<Told>);

impl Service for Teller {
    fn connected(&mut self, peer: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        self.0.clients.lock().unwrap().push(peer.clone());
        Ok(Reply::default().into())
    }

    fn requested(&mut self, peer: &Peer, request: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let number = self.0.requests.fetch_add(1, Ordering::SeqCst) + 1;
        match request {
            b"tell" => {
                let payload = [&b"call"[..], &number.to_le_bytes()].concat();
                let told = peer.notify(&payload, &[]).map_err(|error| Refusal::new(error.to_string()))?;
                Ok(Reply::new(if told == Notified::Accepted { "told" } else { "full" }).into())
            }
            b"bye" => {
                peer.disconnect();
                Ok(Reply::default().into())
            }
            b"no" => Err(Refusal::new("asked to refuse")),
            other => Ok(Reply::new(other).into()),
        }
    }

    fn departed(&mut self, peer: &Peer) {
        self.0.departed.lock().unwrap().push(peer.departure());
        self.0.clients.lock().unwrap().retain(|client| client.id() != peer.id());
        self.0.has_room.notify_all();
    }

    fn has_room(&mut self, _: &Peer) {
        drop(self.0.clients.lock().unwrap());
        self.0.has_room.notify_all();
    }
}

fn teller() -> (Box<dyn Service>, Arc<Told>) {
    let told = Arc::new(Told::default());
    (Box::new(Teller(Arc::clone(&told))), told)
}

/// Counts notifications to one client without end, each with the requests that were seen before it.
fn count_for(told: &Told, peer: &Peer, bytes: usize) {
    for number in 0_u64.. {
        let requests = told.requests.load(Ordering::SeqCst);
        let mut payload = [number.to_le_bytes(), requests.to_le_bytes()].concat();
        payload.resize(bytes.max(16), 7);
        if !told.tell(peer, &payload) {
            return;
        }
    }
}

fn word(payload: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(payload[at..at + 8].try_into().unwrap())
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    let domain = role.open();
    match role.name.as_str() {
        "counter" => counter(&domain, role.argument.parse().unwrap()),
        "taker" => taker(&domain),
        "holder" => holder(&domain),
        other => panic!("unknown role {other}"),
    }
}

/// Offers, and notifies each client from a thread of its own with payloads of so many bytes.
fn counter(domain: &Domain, bytes: usize) {
    let (service, told) = teller();
    let _offer = domain.offer("name", service).unwrap();
    let watched = Arc::clone(&told);
    std::thread::spawn(move || {
        let mut served = Vec::new();
        loop {
            let clients = watched.clients.lock().unwrap().clone();
            for peer in clients {
                if served.contains(&peer.id()) {
                    continue;
                }
                served.push(peer.id());
                let told = Arc::clone(&watched);
                std::thread::spawn(move || count_for(&told, &peer, bytes));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    say("ready");
    wait_for_end();
}

/// Connects and takes for ever.
fn taker(domain: &Domain) {
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    let notifications = connection.notifications().unwrap();
    say("connected");
    while notifications.next_within(WATCHDOG).is_ok() {}
}

/// Connects, and takes as many as it is told to, or until the end.
fn holder(domain: &Domain) {
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    let notifications = connection.notifications().unwrap();
    say("connected");
    let most: usize = listen().unwrap().parse().unwrap();
    let mut count = 0;
    let mut ended = "open".to_owned();
    while count < most && ended == "open" {
        match notifications.next_within(WATCHDOG) {
            Ok(next) => count += usize::from(next.is_some()),
            Err(error) => ended = format!("{error:?}"),
        }
    }
    say(&format!("{count} {ended}"));
    wait_for_end();
}

/// Checks one client's notifications: [`count_for`]'s are without a gap, those of calls are where they belong.
#[derive(Default)]
struct Order {
    counted: u64,
    calls: u64,
}

impl Order {
    fn check(&mut self, notification: &Notification) {
        let payload = &notification.payload;
        if let Some(number) = payload.strip_prefix(b"call") {
            self.calls += 1;
            // Sent from within the call: after the answers to the connect and to all calls before, before its own.
            assert_eq!(notification.answers_before, word(number, 0));
        } else {
            assert_eq!(word(payload, 0), self.counted, "a notification is missing or came twice");
            self.counted += 1;
            // While so many requests had been seen, all but the last of them had been answered, and the connect.
            let answered = word(payload, 8);
            assert!(notification.answers_before >= answered, "{notification:?}");
        }
    }
}

#[test]
fn notifications_of_threads_keep_their_order_with_answers() {
    let folder = TestFolder::new();
    // Long ones, so that the socket is full now and then and packets wait for room.
    let mut owner = folder.helper("counter", "4000");
    owner.expect("ready");
    let domain = folder.open();
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    let notifications = connection.notifications().unwrap();
    let (told, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
    let order = std::thread::scope(|scope| {
        let taking = scope.spawn(|| {
            let mut order = Order::default();
            while !is_done.load(Ordering::SeqCst) || order.calls < told.load(Ordering::SeqCst) {
                let next = notifications.next_within(Duration::from_millis(1)).unwrap();
                next.iter().for_each(|notification| order.check(notification));
            }
            assert_eq!(order.calls, told.load(Ordering::SeqCst), "each accepted one came once");
            order
        });
        while told.load(Ordering::SeqCst) < 1000 {
            // While all that may be untaken is, the owner is told so.
            match &*connection.call(b"tell", &[]).unwrap().payload {
                b"told" => told.fetch_add(1, Ordering::SeqCst),
                _ => 0,
            };
        }
        is_done.store(true, Ordering::SeqCst);
        taking.join().unwrap()
    });
    assert!(order.counted > 1000, "only {} notifications came: no load", order.counted);
}

#[test]
fn notification_is_there_when_the_call_it_was_sent_in_returns() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let _offer = domain.offer("name", teller().0).unwrap();
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    let notifications = connection.notifications().unwrap();
    let mut order = Order::default();
    for _ in 0..2000 {
        assert_eq!(connection.call(b"tell", &[]).unwrap().payload, b"told");
        order.check(&notifications.try_next().unwrap().expect("it came before the answer"));
        assert!(notifications.try_next().unwrap().is_none());
    }
}

#[test]
fn killed_owner_leaves_no_gap_in_what_it_told() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let mut random = 1_u64;
    for _ in 0..12 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bytes = if random >> 63 == 1 { MAX_NOTIFICATION_BYTES } else { 16 };
        let mut owner = folder.helper("counter", &bytes.to_string());
        owner.expect("ready");
        let (connection, _) = domain.connect("name", b"", &[]).unwrap();
        let notifications = connection.notifications().unwrap();
        let (mut order, kill_at) = (Order::default(), random >> 52 & 0xfff);
        while order.counted < kill_at {
            order.check(&notifications.next_within(WATCHDOG).unwrap().unwrap());
        }
        owner.kill();
        let ended = loop {
            match notifications.next_within(WATCHDOG) {
                Ok(next) => order.check(&next.unwrap()),
                Err(ended) => break ended,
            }
        };
        assert_eq!(ended, NotificationsEnded::OwnerDied, "killed after {kill_at}");
        assert_eq!(notifications.try_next().err(), Some(ended), "the end stays");
    }
}

#[test]
fn owner_that_is_killed_is_heard_out() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let ((is_held, held), (go_on, told)) = (channel(), channel());
    let _holding = domain.offer("holding", Box::new(Holding { is_held, go_on: told })).unwrap();
    let mut owner = folder.helper("counter", "16");
    owner.expect("ready");
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    let notifications = connection.notifications().unwrap();
    // Our domain's thread reads nothing while the owner fills the socket and is killed.
    let other = folder.open();
    let connecting = std::thread::spawn(move || other.connect("holding", b"", &[]).map(drop));
    held.recv_timeout(WATCHDOG).unwrap();
    let mut order = Order::default();
    while let Some(next) = notifications.try_next().unwrap() {
        order.check(&next);
    }
    let taken = order.counted;
    // It has sent all that it may, and nothing happens any more.
    std::thread::sleep(Duration::from_millis(100));
    owner.kill();
    go_on.send(()).unwrap();
    while let Ok(next) = notifications.next_within(WATCHDOG) {
        order.check(&next.unwrap());
    }
    assert!(order.counted > taken + 100, "{taken} before the death, {} in all", order.counted);
    connecting.join().unwrap().unwrap();
}

/// Holds the domain's thread from its first connection until it is told to go on.
struct Holding {
    is_held: Sender<()>,
    go_on: Receiver<()>,
}

impl Service for Holding {
    fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        self.is_held.send(()).unwrap();
        self.go_on.recv().unwrap();
        Ok(Reply::default().into())
    }

    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply::default().into())
    }

    fn departed(&mut self, _: &Peer) {}
}

#[test]
fn killed_clients_cost_the_owner_and_others_nothing() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (service, told) = teller();
    let _offer = domain.offer("name", service).unwrap();
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    let notifications = connection.notifications().unwrap();
    let good = told.clients.lock().unwrap()[0].clone();
    let (mut order, mut sent) = (Order::default(), 0_u64);
    for round in 0..12 {
        let mut client = folder.helper("taker", "");
        client.expect("connected");
        let victim = told.clients.lock().unwrap()[1].clone();
        std::thread::scope(|scope| {
            let counting = scope.spawn(|| count_for(&told, &victim, 16));
            for _ in 0..round * 37 {
                assert!(told.tell(&good, &[sent.to_le_bytes(), [0; 8]].concat()));
                sent += 1;
                order.check(&notifications.next_within(WATCHDOG).unwrap().unwrap());
            }
            client.kill();
            counting.join().unwrap();
        });
        wait_until(|| victim.departure().is_some());
        assert_eq!(victim.departure(), Some(Departure::Died));
        assert_eq!(victim.notify(b"", &[]), Err(NotifyError::Gone));
    }
    assert_eq!(connection.call(b"ab", &[]).unwrap().payload, b"ab");
    wait_until(|| told.departed.lock().unwrap().len() == 12);
}

/// Notifies until it would block; how many were accepted.
fn fill(peer: &Peer, payload: &[u8]) -> usize {
    (0..).take_while(|_| peer.notify(payload, &[]).unwrap() == Notified::Accepted).count()
}

#[test]
fn client_that_does_not_take_is_bounded_and_still_answered() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (service, told) = teller();
    let _offer = domain.offer("name", service).unwrap();
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    let peer = told.clients.lock().unwrap()[0].clone();
    assert_eq!(fill(&peer, &[7; MAX_NOTIFICATION_BYTES]), MAX_UNTAKEN_NOTIFICATIONS);
    // Answers do not wait behind what is not taken.
    assert_eq!(connection.call(b"ab", &[]).unwrap().payload, b"ab");
    assert_eq!(connection.call(b"tell", &[]).unwrap().payload, b"full");
    let notifications = connection.notifications().unwrap();
    let waiting = std::thread::spawn(move || told.tell(&peer, b"last"));
    let mut taken = 0;
    loop {
        let next = notifications.next_within(WATCHDOG).unwrap().unwrap();
        if next.payload == b"last" {
            break;
        }
        assert_eq!(next.payload.len(), MAX_NOTIFICATION_BYTES);
        taken += 1;
    }
    assert_eq!(taken, MAX_UNTAKEN_NOTIFICATIONS);
    assert!(waiting.join().unwrap());
}

#[test]
fn stopped_client_neither_blocks_its_owner_nor_loses_what_was_accepted() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (service, told) = teller();
    let _offer = domain.offer("name", service).unwrap();
    let mut client = folder.helper("holder", "");
    client.expect("connected");
    let peer = told.clients.lock().unwrap()[0].clone();
    client.stop();
    assert_eq!(fill(&peer, &[7; MAX_NOTIFICATION_BYTES]), MAX_UNTAKEN_NOTIFICATIONS);
    // The owner serves others meanwhile.
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    assert_eq!(connection.call(b"ab", &[]).unwrap().payload, b"ab");
    assert!(peer.is_alive());
    client.signal(Signal::CONT);
    client.tell(&MAX_UNTAKEN_NOTIFICATIONS.to_string());
    client.expect(&format!("{MAX_UNTAKEN_NOTIFICATIONS} open"));
}

#[test]
fn owner_that_closes_with_notifications_left_says_so() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (service, told) = teller();
    let offer = domain.offer("name", service).unwrap();
    let mut client = folder.helper("holder", "");
    client.expect("connected");
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    let notifications = connection.notifications().unwrap();
    let peers = told.clients.lock().unwrap().clone();
    client.stop();
    fill(&peers[0], &[7; MAX_NOTIFICATION_BYTES]);
    fill(&peers[1], b"all of them leave");
    drop(offer);
    client.signal(Signal::CONT);
    client.tell("1000000");
    let heard = client.hear();
    let (count, ended) = heard.split_once(' ').unwrap();
    assert!(count.parse::<usize>().unwrap() < MAX_UNTAKEN_NOTIFICATIONS, "the socket had room for all");
    assert!(ended.starts_with("CutOff"), "{heard}");
    for _ in 0..MAX_UNTAKEN_NOTIFICATIONS {
        assert!(notifications.next_within(WATCHDOG).unwrap().is_some());
    }
    assert_eq!(notifications.next_within(WATCHDOG).err(), Some(NotificationsEnded::Closed));
}

fn is_readable(fd: impl AsFd, seconds: i64) -> bool {
    let limit = Timespec { tv_sec: seconds, tv_nsec: 0 };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&limit)).unwrap() == 1
}

#[test]
fn descriptors_travel_and_the_wait_is_by_descriptor() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (service, told) = teller();
    let _offer = domain.offer("name", service).unwrap();
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    let notifications = connection.notifications().unwrap();
    let peer = told.clients.lock().unwrap()[0].clone();
    assert!(!is_readable(&notifications, 0));
    assert!(notifications.next_within(Duration::from_millis(1)).unwrap().is_none());
    for round in 0..100_u8 {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let fds: [BorrowedFd<'_>; MAX_NOTIFICATION_FDS] = [writer.as_fd(); MAX_NOTIFICATION_FDS];
        assert_eq!(peer.notify(&[round], &fds), Ok(Notified::Accepted), "those taken make room");
        drop(writer);
        assert!(is_readable(&notifications, WATCHDOG.as_secs().cast_signed()));
        let next = notifications.try_next().unwrap().unwrap();
        assert_eq!((next.payload[0], next.fds.len()), (round, MAX_NOTIFICATION_FDS));
        assert!(!is_readable(&notifications, 0));
        std::fs::File::from(next.fds.into_iter().next().unwrap()).write_all(b"x").unwrap();
        // The pipe ends only when no copy of its writing end is left on either side.
        let mut text = Vec::new();
        reader.read_to_end(&mut text).unwrap();
        assert_eq!(text, b"x");
    }
    drop(connection);
    assert!(is_readable(&notifications, WATCHDOG.as_secs().cast_signed()), "the end is something");
    assert_eq!(notifications.try_next().err(), Some(NotificationsEnded::ClosedHere));
}

#[test]
fn what_cannot_be_notified_is_said_so() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (service, told) = teller();
    let _offer = domain.offer("name", service).unwrap();
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    let peer = told.clients.lock().unwrap()[0].clone();
    assert_eq!(connection.peer().notify(b"", &[]), Err(NotifyError::Misuse(MisuseError::NotClient)));
    let bytes = MAX_NOTIFICATION_BYTES + 1;
    assert_eq!(peer.notify(&vec![0; bytes], &[]), Err(NotifyError::TooLarge { bytes, fds: 0 }));
    let stdin = std::io::stdin();
    let fds = [stdin.as_fd(); MAX_NOTIFICATION_FDS + 1];
    assert_eq!(peer.notify(b"", &fds), Err(NotifyError::TooLarge { bytes: 0, fds: fds.len() }));
    connection.call(b"bye", &[]).unwrap_err();
    assert_eq!(peer.notify(b"", &[]), Err(NotifyError::Gone));
    let ended = connection.notifications().unwrap().next_within(WATCHDOG);
    assert_eq!(ended.err(), Some(NotificationsEnded::Closed));
}

#[test]
fn callbacks_call_connect_and_close() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (service, told) = teller();
    let _offer = domain.offer("name", service).unwrap();
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    let notifications = connection.notifications().unwrap();
    let peer = told.clients.lock().unwrap()[0].clone();
    let (results, heard) = channel();
    let connection = Mutex::new(Some(connection));
    let callbacks = notifications.deliver_to({
        let domain = domain.clone();
        move |given| {
            let mut connection = connection.lock().unwrap();
            match given.map(|notification| notification.payload) {
                Ok(payload) if payload == b"panic" => {
                    drop(connection);
                    panic!("a callback that panics, on purpose")
                }
                Ok(payload) if payload == b"close" => *connection = None,
                Ok(payload) => {
                    let answer = connection.as_ref().unwrap().call(&payload, &[]).unwrap();
                    let (other, _) = domain.connect("name", b"", &[]).unwrap();
                    assert_eq!(other.call(b"other", &[]).unwrap().payload, b"other");
                    let _other = domain.offer("from-a-callback", teller().0).unwrap();
                    results.send(Ok(answer.payload)).unwrap();
                }
                Err(ended) => results.send(Err(ended)).unwrap(),
            }
        }
    });
    for payload in [&b"one"[..], b"panic", b"two", b"close"] {
        assert!(told.tell(&peer, payload));
    }
    let next = || heard.recv_timeout(WATCHDOG).unwrap();
    assert_eq!((next(), next()), (Ok(b"one".to_vec()), Ok(b"two".to_vec())));
    assert_eq!(next(), Err(NotificationsEnded::ClosedHere));
    drop(callbacks);
}

#[test]
fn callback_thread_that_is_dropped_gives_nothing_more() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (service, told) = teller();
    let _offer = domain.offer("name", service).unwrap();
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    let peer = told.clients.lock().unwrap()[0].clone();
    let count = Arc::new(AtomicU64::new(0));
    for is_own in [false, true] {
        let (given, own) = channel();
        let counted = Arc::clone(&count);
        let thread = connection.notifications().unwrap().deliver_to(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            if is_own {
                // The handle of this very thread.
                drop(own.recv_timeout(WATCHDOG).unwrap());
            }
        });
        let before = count.load(Ordering::SeqCst);
        assert!(told.tell(&peer, b"given"));
        if is_own {
            given.send(thread.unwrap()).unwrap();
            wait_until(|| count.load(Ordering::SeqCst) == before + 1);
            // The thread ends by itself after its callback.
            wait_until(|| threads_named("beeline-notify") == 0);
        } else {
            wait_until(|| count.load(Ordering::SeqCst) == before + 1);
            drop(thread);
        }
        assert!(told.tell(&peer, b"kept"));
        let kept = connection.notifications().unwrap().next_within(WATCHDOG).unwrap().unwrap();
        assert_eq!(kept.payload, b"kept");
    }
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

fn status_of_threads() -> Vec<(String, String)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let read = |task: std::io::Result<std::fs::DirEntry>| {
        let folder = task.ok()?.path();
        let name = std::fs::read_to_string(folder.join("comm")).ok()?;
        Some((name.trim().to_owned(), std::fs::read_to_string(folder.join("status")).ok()?))
    };
    tasks.filter_map(read).collect()
}

fn threads_named(name: &str) -> usize {
    status_of_threads().iter().filter(|(found, _)| found == name).count()
}

#[test]
fn signals_are_blocked_on_every_thread_of_ours() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let _offer = domain.offer("name", teller().0).unwrap();
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    let _callbacks = connection.notifications().unwrap().deliver_to(|_| {}).unwrap();
    // A thread has its name some moments after it was started.
    for name in ["beeline-domain", "beeline-notify"] {
        wait_until(|| threads_named(name) > 0);
    }
    for (name, status) in status_of_threads().into_iter().filter(|(name, _)| name.starts_with("beeline-")) {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap().trim().to_owned();
        let mask = u64::from_str_radix(&mask, 16).unwrap();
        for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::ALARM, Signal::CHILD, Signal::USR1] {
            assert_ne!(mask & 1 << (signal.as_raw() - 1), 0, "{signal:?} is not blocked on {name}");
        }
    }
}
