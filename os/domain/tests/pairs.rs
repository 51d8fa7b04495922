//! Pairs between real processes: who agrees with whom on which connections, and what stopped, killed and lying ones do to it.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::collections::BTreeSet;
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::num::NonZeroU64;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

use beeline_domain::{
    ConnectionEnds, Departure, Met, MisuseError, PairCounts, Pairs, Purpose, RegistryError, descriptors,
};
use harness::pairs::{
    MEMORY_BYTES, SERVER, agree_on_all, agreed, cookie, counts, ends, hello_of, meet, pairs,
};
use harness::{Helper, Role, TestFolder, listen, say, wait_until};

const FORKS: u32 = 20;

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    let pairs = pairs(&role.open());
    say("ready");
    if role.argument == "forks" {
        return fork_children(&pairs);
    }
    // `server|client FIRST PAST`
    let Some(told) = listen() else { return };
    let words: Vec<&str> = told.split(' ').collect();
    let [side, first, past] = words[..] else { panic!("{told}") };
    let ports: std::ops::Range<u16> = first.parse().unwrap()..past.parse().unwrap();
    if role.argument == "says when it has asked" {
        ports.clone().for_each(|port| assert!(agreed(&pairs, side == "server", port).is_none()));
        say("asked");
    }
    let all = agree_on_all(&pairs, side == "server", ports);
    let slots: Vec<u32> = all.iter().map(|agreed| agreed.slot).collect();
    let owned = all.iter().filter(|agreed| agreed.owns).count();
    say(&format!("{owned} {slots:?}"));
    // Answers what comes later.
    loop {
        pairs.turn();
        std::thread::yield_now();
    }
}

/// Forks while another thread uses the pairs, whose lock it may have: a child has nothing of them and waits for nothing.
fn fork_children(pairs: &Pairs) {
    let _ = meet(pairs, true, 1);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                pairs.turn();
            }
        });
        for _ in 0..FORKS {
            if let fork::Fork::Child = fork::fork().unwrap() {
                in_a_child(pairs);
            }
        }
        let _ = listen();
        is_over.store(true, Ordering::Relaxed);
    });
}

fn in_a_child(pairs: &Pairs) {
    let ends = ends(false, 1);
    let refused = pairs.meet(cookie(&ends), &ends);
    let is_forked = |error| matches!(error, RegistryError::Misuse(MisuseError::Forked { .. }));
    assert!(refused.is_err_and(is_forked));
    pairs.turn();
    pairs.release(1);
    assert_eq!(pairs.counts(), PairCounts::default());
    say("refused");
    std::process::exit(0);
}

fn helper(folder: &TestFolder, argument: &str) -> Helper {
    let mut helper = folder.helper("pairs", argument);
    helper.expect("ready");
    helper
}

fn connections() -> usize {
    descriptors().into_iter().filter(|(_, purpose)| *purpose == Purpose::Connection).count()
}

/// Mappings that this process has of memories of pairs.
fn mapped_memories() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().matches("/memfd:beeline-pair").count()
}

#[test]
fn two_processes_agree_on_all_that_they_share_over_one_connection() {
    let folder = TestFolder::new();
    for round in 0..5_u16 {
        let ours = pairs(&folder.open());
        let mut other = helper(&folder, "");
        let ports = 1000 + 400 * round..1400 + 400 * round;
        // Both begin at the same time.
        other.tell(&format!("client {} {}", ports.start, ports.end));
        let all = agree_on_all(&ours, true, ports.clone());
        let owned = all.iter().filter(|agreed| agreed.owns).count();
        let slots: Vec<u32> = all.iter().map(|agreed| agreed.slot).collect();
        // The other one may still have to hear what it is accepted with.
        let mut heard = None;
        std::thread::scope(|scope| {
            let listening = scope.spawn(|| other.hear());
            while !listening.is_finished() {
                ours.turn();
                std::thread::yield_now();
            }
            heard = listening.join().ok();
        });
        assert_eq!(heard.unwrap(), format!("{} {slots:?}", 400 - owned));
        assert!(owned == 0 || owned == 400, "{owned}");
        assert_eq!(slots.iter().collect::<BTreeSet<_>>().len(), 400);
        assert!(all.iter().all(|agreed| agreed.peer.pid() == other.pid()));
        assert_eq!(ours.counts(), counts(1, 0));
    }
    // Of other tests as well, which end. What is unmapped takes a thread its time.
    wait_until(|| connections() == 0 && mapped_memories() == 0);
}

#[test]
fn child_of_fork_is_refused() {
    let folder = TestFolder::new();
    let mut forking = helper(&folder, "forks");
    (0..FORKS).for_each(|_| forking.expect("refused"));
}

#[test]
fn process_that_has_both_ends_is_told_so_at_once() {
    let folder = TestFolder::new();
    let ours = pairs(&folder.open());
    assert!(matches!(meet(&ours, false, 1), Met::NotYet));
    assert!(matches!(meet(&ours, true, 1), Met::ThisProcess { other_cookie: 2 }));
    assert!(matches!(meet(&ours, false, 1), Met::ThisProcess { other_cookie: 3 }));
    assert!(matches!(meet(&ours, true, SERVER), Met::SameSocket));
    ours.release(2);
    assert!(matches!(meet(&ours, true, 1), Met::NotYet), "it has let go of the other end");
    assert_eq!(ours.counts(), PairCounts::default());
}

#[test]
fn processes_with_pairs_are_woken_by_who_has_none_as_long_as_that_is_wanted() {
    let folder = TestFolder::new();
    let ours = pairs(&folder.open());
    let woken = std::sync::Arc::new(AtomicBool::new(false));
    let wakes = std::sync::Arc::clone(&woken);
    ours.wake_by(move || wakes.store(true, Ordering::Relaxed));
    let other = folder.open();
    other.wake_all_pairs(&|| false).unwrap();
    assert!(!woken.load(Ordering::Relaxed));
    other.wake_all_pairs(&|| true).unwrap();
    wait_until(|| woken.load(Ordering::Relaxed));
    assert_eq!(ours.counts(), counts(0, 0), "it has not come in");
}

#[test]
fn kernel_confirms_the_ends_of_a_real_connection() {
    let folder = TestFolder::new();
    let ours = folder.open().pairs(Box::new(ConnectionEnds::established_cookie), MEMORY_BYTES).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let server = listener.accept().unwrap().0;
    let cookie = |socket: &TcpStream| beeline_tcp::cookie(socket).unwrap();
    let meet = |socket: &TcpStream| ours.meet(cookie(socket), &ConnectionEnds::of(socket).unwrap()).unwrap();
    assert!(matches!(meet(&client), Met::NotYet));
    let other = cookie(&client);
    assert!(matches!(meet(&server), Met::ThisProcess { other_cookie } if other_cookie == other));
    let ends = ConnectionEnds::of(&client).unwrap();
    assert_eq!(ends.established_cookie(), Some(other));
    client.shutdown(Shutdown::Both).unwrap();
    assert_eq!(ends.established_cookie(), None);
    assert!(ConnectionEnds::of(&listener).is_err());
}

#[test]
fn kernel_confirms_the_ends_of_a_stream_without_addresses() {
    let folder = TestFolder::new();
    let ours = folder.open().pairs(Box::new(ConnectionEnds::cookie_at_the_kernel), MEMORY_BYTES).unwrap();
    let (client, server) = UnixStream::pair().unwrap();
    let (another, _its_peer) = UnixStream::pair().unwrap();
    let cookie = |socket: &UnixStream| beeline_tcp::cookie(socket).unwrap();
    let ends = |socket: &UnixStream| ConnectionEnds::of_unix(socket).unwrap();
    let meet = |socket: &UnixStream| ours.meet(cookie(socket), &ends(socket)).unwrap();
    assert!(ends(&client).is_unix() && ends(&client).mirrored() == ends(&server));
    assert!(matches!(meet(&client), Met::NotYet));
    assert!(matches!(meet(&another), Met::NotYet));
    let other = cookie(&client);
    assert!(matches!(meet(&server), Met::ThisProcess { other_cookie } if other_cookie == other));
    assert_eq!(ends(&client).established_cookie(), Some(other));
    // What has the same numbers as addresses of TCP is another connection.
    let stream = ConnectionEnds::new(1, ends(&client).local(), ends(&client).remote());
    assert_eq!(stream.cookie_at_the_kernel(), None);
    let ends = ends(&server);
    drop(server);
    assert_eq!(ends.established_cookie(), None);
}

#[test]
fn kernel_confirms_two_sockets_of_datagrams_that_are_not_connected() {
    let folder = TestFolder::new();
    let ours = folder.open().pairs(Box::new(ConnectionEnds::cookie_at_the_kernel), MEMORY_BYTES).unwrap();
    let [server, one, two] = [0; 3].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
    let ends = |own: &UdpSocket, other: &UdpSocket| {
        let namespace = beeline_tcp::netns_cookie(own).unwrap();
        let [own, other] = [own, other].map(|socket| socket.local_addr().unwrap());
        ConnectionEnds::of_datagrams(namespace, own, other)
    };
    let cookie = |own: &UdpSocket, other: &UdpSocket| {
        ends(own, other).datagrams_cookie(beeline_tcp::cookie(own).unwrap())
    };
    let meet = |own, other| ours.meet(cookie(own, other), &ends(own, other)).unwrap();
    // One socket has a number for each of the others.
    assert_ne!(cookie(&server, &one), cookie(&server, &two));
    for client in [&one, &two] {
        assert!(matches!(meet(client, &server), Met::NotYet));
        let other = cookie(client, &server);
        assert!(matches!(meet(&server, client), Met::ThisProcess { other_cookie } if other_cookie == other));
        assert_eq!(ends(client, &server).cookie_at_the_kernel(), Some(other));
    }
    // The same addresses of TCP are another connection.
    let [own, other] = [&one, &server].map(|socket| socket.local_addr().unwrap());
    let stream = ConnectionEnds::new(beeline_tcp::netns_cookie(&one).unwrap(), own, other);
    assert!(matches!(ours.meet(77, &stream), Ok(Met::NotYet)));
    assert_eq!(stream.cookie_at_the_kernel(), None);
    // The kernel gives nothing to a socket that is connected to somebody else.
    one.connect(two.local_addr().unwrap()).unwrap();
    assert_eq!(ends(&one, &server).cookie_at_the_kernel(), None);
}

#[test]
fn other_end_in_this_process_is_the_one_that_the_kernel_has_there() {
    let folder = TestFolder::new();
    // The socket that is there has cookie 5, for which this process has asked with other ends.
    let ours = folder.open().pairs(Box::new(|_| Some(5)), MEMORY_BYTES).unwrap();
    let meet = |cookie, ends| ours.meet(cookie, &ends).unwrap();
    assert!(matches!(meet(5, ends(false, 2)), Met::NotYet));
    assert!(matches!(meet(6, ends(false, 1)), Met::NotYet));
    assert!(matches!(meet(7, ends(true, 1)), Met::NotYet));
    assert!(matches!(meet(5, ends(false, 1)), Met::NotYet | Met::ThisProcess { .. }));
    assert!(matches!(meet(7, ends(true, 1)), Met::ThisProcess { other_cookie: 5 }));
}

#[test]
fn stopped_process_holds_nobody_up() {
    let folder = TestFolder::new();
    let ours = pairs(&folder.open());
    let mut stopped = helper(&folder, "says when it has asked");
    let mut other = helper(&folder, "");
    stopped.tell("client 1 9");
    stopped.expect("asked");
    stopped.stop();
    assert!((1..9).all(|port| agreed(&ours, true, port).is_none()));
    assert_eq!(ours.counts(), counts(0, 1));
    other.tell("client 11 50");
    assert_eq!(agree_on_all(&ours, true, 11..50).len(), 39);
    stopped.signal(rustix::process::Signal::CONT);
    assert_eq!(agree_on_all(&ours, true, 1..9).len(), 8);
}

#[test]
fn what_was_agreed_with_a_killed_process_is_agreed_anew_with_the_next() {
    let folder = TestFolder::new();
    let ours = pairs(&folder.open());
    for _ in 0..3 {
        let mut other = helper(&folder, "");
        other.tell("client 1 9");
        let all = agree_on_all(&ours, true, 1..9);
        assert!(all.iter().all(|agreed| agreed.peer.pid() == other.pid()));
        other.kill();
        wait_until(|| all[0].peer.departure() == Some(Departure::Died));
        ours.turn();
        assert!((1..9).all(|port| agreed(&ours, true, port).is_none()));
    }
    assert_eq!(ours.counts().open, 0);
    // Of other tests as well, which end.
    wait_until(|| mapped_memories() == 0);
}

#[test]
fn socket_that_the_kernel_does_not_confirm_is_never_agreed_on() {
    let folder = TestFolder::new();
    // Of port 1 it says another socket, of port 2 none.
    let ours = folder
        .open()
        .pairs(
            Box::new(|ends| match ends.local().port() {
                1 => Some(77),
                2 => None,
                _ => Some(cookie(ends)),
            }),
            MEMORY_BYTES,
        )
        .unwrap();
    let mut other = helper(&folder, "");
    other.tell("client 1 4");
    wait_until(|| {
        ours.turn();
        assert!([1, 2].into_iter().all(|port| agreed(&ours, true, port).is_none()));
        agreed(&ours, true, 3).is_some() && ours.counts().wrong >= 2
    });
}

/// A process that says what cannot be: nothing that it says is agreed on, and others are not held up.
#[test]
fn liar_is_refused_and_counted() {
    let folder = TestFolder::new();
    let ours = pairs(&folder.open());
    let domain = folder.open();
    let name = domain.names().unwrap().into_iter().find(|name| name.starts_with("connections-")).unwrap();
    let member = folder.open().connection_table().unwrap();
    let hello = |number: NonZeroU64, place: u16| hello_of(MEMORY_BYTES, number, place);
    let mut none = hello(member.number(), 1);
    none[7] = 1;
    let other_sizes = [0, MEMORY_BYTES - 1, usize::MAX].map(|bytes| hello_of(bytes, member.number(), 1));
    for hello in [&b""[..], &none].into_iter().chain(other_sizes.iter().map(|hello| &hello[..])) {
        let refused = domain.connect(&name, hello, &[]).err().unwrap();
        assert!(refused.to_string().contains("another version"), "{refused}");
    }
    // The first place is that of the pairs.
    for (number, place) in [(member.number(), 0), (NonZeroU64::MIN, 1), (member.number(), 9000)] {
        let refused = domain.connect(&name, &hello(number, place), &[]).err().unwrap();
        assert!(refused.to_string().contains("has not joined"), "{refused}");
    }
    let hello = hello(member.number(), 1);
    let (liar, _) = domain.connect(&name, &hello, &[]).unwrap();
    assert!(domain.connect(&name, &hello, &[]).is_err(), "a second connection");
    assert!(matches!(meet(&ours, true, 1), Met::NotYet));
    let say = |kind: u32, slot: u32, own: u64, other: u64| {
        let words = [kind.to_le_bytes(), slot.to_le_bytes()].concat();
        let message = [words, own.to_le_bytes().to_vec(), other.to_le_bytes().to_vec()].concat();
        let _ = liar.tell(&message).unwrap();
    };
    let none = u32::MAX;
    let lies = [
        (1, none, 2, 99),
        (1, none, 99, 3),
        (1, 5, 2, 3),
        (2, 0, 2, 3),
        (3, none, 2, 3),
        (9, none, 2, 3),
        (1, 1 << 20, 2, 3),
    ];
    lies.into_iter().for_each(|(kind, slot, own, other)| say(kind, slot, own, other));
    let _ = liar.tell(b"short").unwrap();
    wait_until(|| {
        ours.turn();
        ours.counts().wrong == lies.len() as u64 + 1
    });
    assert!(agreed(&ours, true, 1).is_none());
    let mut other = helper(&folder, "");
    other.tell("client 2 9");
    assert_eq!(agree_on_all(&ours, true, 2..9).len(), 7);
    // One that says more than there can be to say is let go of.
    wait_until(|| {
        let release = [&4_u32.to_le_bytes()[..], &[0xff; 4], &[0; 16]].concat();
        let _ = liar.tell(&release);
        liar.peer().departure().is_some()
    });
}
