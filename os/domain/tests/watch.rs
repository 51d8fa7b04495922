//! Nothing may delay the thread that watches: what takes time in proportion to what somebody asked for is done elsewhere, and
//! a death is seen while it lasts.
//!
//! Work is counted in page faults of that thread, or held up for as long as the test likes; no time is measured but where a
//! test says so.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use beeline_contract_memory::LoadPort;
use beeline_domain::{
    Answer, Departure, Domain, MAX_NOTIFICATION_BYTES, MAX_UNTAKEN_NOTIFICATIONS, Notified, Offer,
    OfferOptions, Peer, Refusal, Reply, Service, StoreOptions, WindowOptions, connect_window, offer_window,
};
use beeline_mmio::StoreKernel;
use harness::{Role, TestFolder, WATCHDOG, listen, say, wait_for_end};

/// What happened to a service, in order.
type Events = Receiver<(u32, &'static str)>;

/// The last peer that asked for anything, and the thread that watches it.
type Asked = Arc<Mutex<Option<(Peer, rustix::thread::Pid)>>>;

/// Answers `slow` when the test lets it, `late refusal` with a refusal, and everything else at once.
struct Slow {
    events: Sender<(u32, &'static str)>,
    may: Arc<Mutex<Receiver<()>>>,
    asked: Asked,
}

impl Service for Slow {
    fn connected(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        self.requested(peer, request, fds)
    }

    fn requested(&mut self, peer: &Peer, request: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let (events, may, pid) = (self.events.clone(), Arc::clone(&self.may), peer.pid());
        *self.asked.lock().unwrap() = Some((peer.clone(), rustix::thread::gettid()));
        match request {
            b"slow" => Ok(Answer::later(move |_| {
                events.send((pid, "begins")).unwrap();
                may.lock().unwrap().recv().unwrap();
                events.send((pid, "ends")).unwrap();
                Ok(Reply::new("slow"))
            })),
            b"late refusal" => Ok(Answer::later(|_| Err(Refusal::new("looked at it, and no")))),
            b"panics" => Ok(Answer::later(|_| panic!("work that panics, on purpose"))),
            _ => Ok(Reply::new(request).into()),
        }
    }

    fn departed(&mut self, peer: &Peer) {
        let how = match peer.departure().unwrap() {
            Departure::Died => "died",
            Departure::Closed => "closed",
        };
        self.events.send((peer.pid(), how)).unwrap();
    }
}

/// Offers a [`Slow`]; gives what happens, and what lets a slow answer end.
fn offer(domain: &Domain) -> (Offer, Events, Sender<()>) {
    let (offer, events, go, _) = offer_with_peer(domain);
    (offer, events, go)
}

/// As [`offer`]; also gives where the last peer is.
fn offer_with_peer(domain: &Domain) -> (Offer, Events, Sender<()>, Asked) {
    let ((events, happened), (go, may)) = (channel(), channel());
    let asked = Arc::default();
    let service = Slow { events, may: Arc::new(Mutex::new(may)), asked: Arc::clone(&asked) };
    (domain.offer("name", Box::new(service)).unwrap(), happened, go, asked)
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    let domain = role.open();
    match role.name.as_str() {
        "client" => {
            say("begins");
            let connected = domain.connect("name", role.argument.as_bytes(), &[]);
            say(if connected.is_ok() { "connected" } else { "refused" });
            wait_for_end();
        }
        "windows" => {
            let options = StoreOptions::with_kernel(StoreKernel::Cached);
            while listen().is_some() {
                drop(connect_window(&domain, "window", options).unwrap());
                say("again");
            }
        }
        other => panic!("unknown role {other}"),
    }
}

#[test]
fn a_death_is_seen_and_others_are_answered_while_an_answer_is_worked_on() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (_offer, events, go) = offer(&domain);
    let mut slow = folder.helper("client", "slow");
    let slow_pid = slow.pid();
    slow.expect("begins");
    assert_eq!(events.recv().unwrap(), (slow_pid, "begins"));
    // The work lasts until `go`; nothing below waits for it.
    let mut victim = folder.helper("client", "hello");
    victim.expect("begins");
    victim.expect("connected");
    let (mine, reply) = domain.connect("name", b"mine", &[]).unwrap();
    assert_eq!(reply.payload, b"mine");
    assert_eq!(mine.call(b"more", &[]).unwrap().payload, b"more");
    let pid = victim.pid();
    victim.kill();
    assert_eq!(events.recv_timeout(WATCHDOG).unwrap(), (pid, "died"));
    go.send(()).unwrap();
    assert_eq!(events.recv().unwrap(), (slow_pid, "ends"));
    slow.expect("connected");
    slow.kill();
    assert_eq!(events.recv_timeout(WATCHDOG).unwrap(), (slow_pid, "died"));
}

/// Says what it is told and how peers go. `hold` keeps the thread that watches until the test lets it go on.
struct Holding {
    events: Sender<String>,
    go_on: Receiver<()>,
}

impl Service for Holding {
    fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply::default().into())
    }

    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply::default().into())
    }

    fn told(&mut self, _: &Peer, message: &[u8]) {
        self.events.send(String::from_utf8(message.to_vec()).unwrap()).unwrap();
        if message == b"hold" {
            self.go_on.recv().unwrap();
        }
    }

    fn departed(&mut self, peer: &Peer) {
        self.events.send(format!("{:?}", peer.departure().unwrap())).unwrap();
    }
}

/// The second packet may ask for what the dead one had.
#[test]
fn death_is_seen_before_a_packet_that_was_there_earlier() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let ((events, happened), (go, go_on)) = (channel(), channel());
    let _offer = domain.offer("name", Box::new(Holding { events, go_on })).unwrap();
    let hear = || happened.recv_timeout(WATCHDOG).unwrap();
    let theirs = folder.open();
    let [one, two, three] = [(); 3].map(|()| theirs.connect("name", b"", &[]).unwrap().0);
    let mut victim = folder.helper("client", "");
    victim.expect("begins");
    victim.expect("connected");
    assert_eq!(one.tell(b"hold").unwrap(), Notified::Accepted);
    assert_eq!(hear(), "hold");
    // The thread finds both together when it goes on.
    assert_eq!(two.tell(b"hold").unwrap(), Notified::Accepted);
    assert_eq!(three.tell(b"last").unwrap(), Notified::Accepted);
    go.send(()).unwrap();
    assert_eq!(hear(), "hold");
    victim.kill();
    go.send(()).unwrap();
    assert_eq!((hear(), hear()), ("Died".to_owned(), "last".to_owned()));
    // The thread finds the packet and the death together when it goes on.
    let mut victim = folder.helper("client", "");
    victim.expect("begins");
    victim.expect("connected");
    assert_eq!(one.tell(b"hold").unwrap(), Notified::Accepted);
    assert_eq!(hear(), "hold");
    assert_eq!(three.tell(b"last").unwrap(), Notified::Accepted);
    victim.kill();
    go.send(()).unwrap();
    assert_eq!((hear(), hear()), ("Died".to_owned(), "last".to_owned()));
}

#[test]
fn a_peer_that_dies_while_its_answer_is_worked_on_departs_once_when_that_is_done() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (_offer, events, go) = offer(&domain);
    for round in 0..3 {
        let mut slow = folder.helper("client", "slow");
        slow.expect("begins");
        let pid = slow.pid();
        assert_eq!(events.recv().unwrap(), (pid, "begins"));
        slow.kill();
        // The domain's thread has been through its deaths; the service has heard of none.
        let (mine, _) = domain.connect("name", b"mine", &[]).unwrap();
        drop(mine);
        assert_eq!(events.recv_timeout(WATCHDOG).unwrap(), (std::process::id(), "closed"), "round {round}");
        go.send(()).unwrap();
        assert_eq!(events.recv().unwrap(), (pid, "ends"));
        assert_eq!(events.recv_timeout(WATCHDOG).unwrap(), (pid, "died"));
    }
    assert!(events.try_recv().is_err());
}

#[test]
fn refusals_and_panics_of_work_are_told_and_end_a_first_request_only() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (_offer, events, _go) = offer(&domain);
    for (request, said) in [(&b"late refusal"[..], "looked at it"), (b"panics", "the service failed")] {
        let refused = domain.connect("name", request, &[]).unwrap_err().to_string();
        assert!(refused.contains(said), "{refused}");
        assert_eq!(events.recv_timeout(WATCHDOG).unwrap().1, "closed");
        let (good, _) = domain.connect("name", b"x", &[]).unwrap();
        let refused = good.call(request, &[]).unwrap_err().to_string();
        assert!(refused.contains(said), "{refused}");
        assert_eq!(good.call(b"goes on", &[]).unwrap().payload, b"goes on");
        drop(good);
        assert_eq!(events.recv_timeout(WATCHDOG).unwrap().1, "closed");
    }
}

#[test]
fn an_offer_and_its_domain_may_go_while_an_answer_is_worked_on() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (offer, events, go) = offer(&domain);
    let mut slow = folder.helper("client", "slow");
    slow.expect("begins");
    assert_eq!(events.recv().unwrap().1, "begins");
    drop(offer);
    slow.expect("refused");
    drop(domain);
    go.send(()).unwrap();
    assert_eq!(events.recv().unwrap().1, "ends");
    assert!(events.recv().is_err(), "the service is gone, and hears of nothing");
}

#[test]
fn one_process_leaves_connections_to_others() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let ((events, _happened), (_go, may)) = (channel(), channel());
    let service = Slow { events, may: Arc::new(Mutex::new(may)), asked: Arc::default() };
    let options = OfferOptions { max_connections: 16, ..OfferOptions::default() };
    let _offer = domain.offer_with("name", Box::new(service), options).unwrap();
    let mut mine: Vec<_> = (0..15).map(|_| domain.connect("name", b"x", &[]).unwrap()).collect();
    let refused = domain.connect("name", b"x", &[]).unwrap_err().to_string();
    assert!(refused.contains("the most that one process may have"), "{refused}");
    let mut other = folder.helper("client", "x");
    other.expect("begins");
    other.expect("connected");
    let refused = domain.connect("name", b"x", &[]).unwrap_err().to_string();
    assert!(refused.contains("all of the offer's 16 connections"), "{refused}");
    // One that has used up no share finds no room either.
    let mut third = folder.helper("client", "x");
    third.expect("begins");
    third.expect("refused");
    mine.pop();
    drop(domain.connect("name", b"x", &[]).unwrap());
}

#[test]
fn what_waits_for_room_is_passed_on_while_an_answer_is_worked_on() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (_offer, events, go, asked) = offer_with_peer(&domain);
    let (client, _) = folder.open().connect("name", b"x", &[]).unwrap();
    let notifications = client.notifications().unwrap();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| client.call(b"slow", &[]).unwrap().payload);
        assert_eq!(events.recv().unwrap().1, "begins");
        let (peer, _) = asked.lock().unwrap().clone().unwrap();
        // More than a socket holds, so that some wait on the owner's side.
        let payload = vec![7; MAX_NOTIFICATION_BYTES];
        for number in 0..MAX_UNTAKEN_NOTIFICATIONS {
            assert_eq!(peer.notify(&payload, &[]).unwrap(), Notified::Accepted, "{number}");
        }
        for number in 0..MAX_UNTAKEN_NOTIFICATIONS {
            let told = notifications.next_within(WATCHDOG).unwrap();
            assert_eq!(told.map(|told| told.payload.len()), Some(MAX_NOTIFICATION_BYTES), "{number}");
        }
        go.send(()).unwrap();
        assert_eq!(events.recv().unwrap().1, "ends");
        assert_eq!(call.join().unwrap(), b"slow");
    });
}

#[test]
fn a_peer_that_hangs_up_while_its_answer_is_worked_on_has_closed_and_nobody_spins() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (_offer, events, go, asked) = offer_with_peer(&domain);
    let (first, _) = folder.open().connect("name", b"x", &[]).unwrap();
    let call = std::thread::spawn(move || drop(first.call_within(b"slow", &[], Duration::ZERO)));
    assert_eq!(events.recv().unwrap().1, "begins");
    // The call gave up, and its connection was closed.
    call.join().unwrap();
    let (peer, watching) = asked.lock().unwrap().clone().unwrap();
    let ticks = || cpu_ticks(watching);
    let before = ticks();
    // Looked at for a while: it can be seen that somebody spins, not that nobody does.
    std::thread::sleep(Duration::from_millis(300));
    assert!(ticks() - before < 20, "{} hundredths of a second of CPU time", ticks() - before);
    assert!(peer.is_alive(), "its goodbye is read after its answer");
    go.send(()).unwrap();
    assert_eq!(events.recv().unwrap().1, "ends");
    assert_eq!(events.recv_timeout(WATCHDOG).unwrap(), (std::process::id(), "closed"));
}

/// CPU time so far of a thread of this process, in hundredths of a second.
fn cpu_ticks(thread: rustix::thread::Pid) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
    let (_, after) = stat.rsplit_once(')').unwrap();
    let mut times = after.split_ascii_whitespace().skip(11).map(|time| time.parse::<u64>().unwrap());
    times.next().unwrap() + times.next().unwrap()
}

/// Page faults so far of each thread of this process that has this name.
fn faults(name: &str) -> HashMap<String, u64> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let stat = |thread: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).ok()?;
        let (before, after) = stat.rsplit_once(')').unwrap();
        let found = before.split_once('(').unwrap().1 == name;
        let faults = after.split_ascii_whitespace().nth(7).unwrap().parse().unwrap();
        found.then(|| (thread.file_name().into_string().unwrap(), faults))
    };
    threads.filter_map(|thread| stat(thread.unwrap())).collect()
}

#[test]
fn windows_are_not_made_on_the_thread_that_watches() {
    const LINES: u32 = 1 << 18;
    const ROUNDS: u64 = 4;
    let folder = TestFolder::new();
    let domain = folder.open();
    let options = WindowOptions { lines: LINES, ..WindowOptions::default() };
    let listener = offer_window(&domain, "window", options).unwrap();
    let mut sender = folder.helper("windows", "");
    let before = faults("beeline-domain");
    for _ in 0..ROUNDS {
        sender.tell("go");
        let parts = listener.accept(WATCHDOG).unwrap();
        assert_eq!(parts.load.load_word(LINES - 1, 7), parts.blank);
        sender.expect("again");
    }
    let after = faults("beeline-domain");
    let made: u64 = after.iter().map(|(thread, faults)| faults - before.get(thread).unwrap_or(&0)).sum();
    // Each window is of 4096 pages.
    assert!(made < 1000, "{made} page faults on threads that watch, for {ROUNDS} windows");
}

/// Prints how late deaths are seen, without and with a process that opens and closes a large window as fast as it can.
#[test]
#[ignore = "takes half a minute, and its times mean something on a quiet machine only"]
fn deaths_are_seen_in_time_while_a_large_window_comes_and_goes() {
    const BOUND: Duration = Duration::from_millis(50);
    let folder = TestFolder::new();
    let domain = folder.open();
    let (_offer, events, _go) = offer(&domain);
    let options = WindowOptions { lines: 1 << 20, ..WindowOptions::default() };
    let listener = offer_window(&domain, "window", options).unwrap();
    let measure = |what: &str, kills: usize| {
        let mut times: Vec<Duration> = (0..kills)
            .map(|_| {
                let mut victim = folder.helper("client", "hello");
                victim.expect("begins");
                victim.expect("connected");
                let pid = victim.pid();
                let killed = Instant::now();
                victim.signal(rustix::process::Signal::KILL);
                while events.recv_timeout(WATCHDOG).unwrap() != (pid, "died") {}
                killed.elapsed()
            })
            .collect();
        times.sort();
        let late = times.iter().filter(|time| **time > BOUND).count();
        let (median, worst) = (times[kills / 2], times[kills - 1]);
        println!("{what}: median {median:?}, worst {worst:?}, {late} of {kills} after {BOUND:?}");
        median
    };
    let quiet = measure("no window is made", 100);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let median = std::thread::scope(|scope| {
        let churn = scope.spawn(|| {
            let mut sender = folder.helper("windows", "");
            let mut windows = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                sender.tell("go");
                let parts = listener.accept(WATCHDOG).unwrap();
                sender.expect("again");
                drop(parts);
                windows += 1;
            }
            windows
        });
        let median = measure("windows of 64 MiB come and go", 100);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        println!("{} windows came and went", churn.join().unwrap());
        median
    });
    assert!(median < quiet + BOUND);
}

/// Answers, and then says whether the client had its answer before that was over.
struct Lingering {
    heard: Receiver<()>,
    told: Sender<bool>,
}

impl Service for Lingering {
    fn connected(&mut self, _: &Peer, request: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        if request == b"panic" {
            return Ok(Answer::Then(Reply::default(), Box::new(|| panic!("after an answer, on purpose"))));
        }
        let (heard, told) = (std::mem::replace(&mut self.heard, channel().1), self.told.clone());
        let afterwards = move || {
            let _ = told.send(heard.recv_timeout(Duration::from_secs(5)).is_ok());
        };
        Ok(Answer::Then(Reply::new("now"), Box::new(afterwards)))
    }

    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply::default().into())
    }

    fn departed(&mut self, _: &Peer) {}
}

#[test]
fn what_comes_after_an_answer_is_not_waited_for_and_may_panic() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let ((hear, heard), (told, telling)) = (channel(), channel());
    let _offer = domain.offer("name", Box::new(Lingering { heard, told })).unwrap();
    // A client reads its first answer itself; others are passed on by the thread that is busy here.
    let (_connection, reply) = domain.connect("name", b"", &[]).unwrap();
    assert_eq!(reply.payload, b"now");
    hear.send(()).unwrap();
    assert_eq!(telling.recv(), Ok(true));
    let (connection, _) = domain.connect("name", b"panic", &[]).unwrap();
    connection.call(b"", &[]).unwrap();
}
