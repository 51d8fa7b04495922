//! The two sockets of a connection are told apart from all others, and from each other.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod connections;

use std::fs::File;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;

use beeline_tcp::{
    NoOtherSocket, State, Tuple, TupleError, cookie, established, find, is_tcp, netns_cookie, other_socket,
    state,
};
use connections::{FAMILIES, Family, pair, to_itself, wait_until};
use nix::sched::{CloneFlags, unshare};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, ipproto};

fn inode(stream: &TcpStream) -> u32 {
    rustix::fs::fstat(stream).unwrap().st_ino as u32
}

#[test]
fn each_end_names_the_socket_of_the_other() {
    for family in FAMILIES {
        let [a, b] = pair(family);
        assert_ne!(cookie(&a.stream), cookie(&b.stream));
        assert_eq!(netns_cookie(&a.stream), netns_cookie(&b.stream));
        for (own, other) in [(&a, &b), (&b, &a)] {
            let found = other_socket(&own.stream).unwrap();
            assert_eq!(Ok(found.cookie), cookie(&other.stream), "{family:?}");
            assert_eq!(found.inode, inode(&other.stream), "{family:?}");
            assert_eq!(found.uid, rustix::process::geteuid().as_raw(), "{family:?}");
            let tuple = Tuple::of(&own.stream).unwrap();
            let namespace = netns_cookie(&own.stream).unwrap();
            assert_eq!(established(namespace, tuple.mirrored()), Ok(found), "{family:?}");
            let elsewhere = Err(NoOtherSocket::OtherNamespace);
            assert_eq!(established(namespace + 1, tuple.mirrored()), elsewhere, "{family:?}");
            assert_eq!(tuple, Tuple::of(&other.stream).unwrap().mirrored(), "{family:?}");
            assert!(!tuple.is_to_itself());
        }
    }
}

#[test]
fn end_that_nobody_has_accepted_has_the_cookie_that_it_will_have() {
    for family in FAMILIES {
        let listener = family.listener();
        let client = family.connect(&listener);
        let before = other_socket(&client).unwrap();
        assert_eq!(before.inode, 0, "{family:?}");
        assert_ne!(Ok(before.cookie), cookie(&listener), "{family:?}");
        let accepted = listener.accept().unwrap().0;
        assert_eq!(Ok(before.cookie), cookie(&accepted), "{family:?}");
        let after = other_socket(&client).unwrap();
        assert_eq!((after.cookie, after.inode), (before.cookie, inode(&accepted)), "{family:?}");
    }
}

#[test]
fn other_end_of_a_connection_to_itself_is_the_same_socket() {
    let end = to_itself();
    assert!(Tuple::of(&end.stream).unwrap().is_to_itself());
    assert_eq!(other_socket(&end.stream).map(|found| found.cookie), Ok(cookie(&end.stream).unwrap()));
}

#[test]
fn end_that_is_not_established_is_refused() {
    for family in FAMILIES {
        let listener = family.listener();
        let not_connected = NoOtherSocket::NoTuple(TupleError::NotConnected);
        assert_eq!(other_socket(&listener), Err(not_connected));
        let [a, b] = pair(family);
        a.stream.shutdown(Shutdown::Write).unwrap();
        wait_until(|| state(&a.stream) == Ok(State::FinWait2));
        let refused = |state| Err(NoOtherSocket::NotEstablished(state));
        assert_eq!(other_socket(&a.stream), refused(State::FinWait2), "{family:?}");
        assert_eq!(other_socket(&b.stream), refused(State::CloseWait), "{family:?}");
        let namespace = netns_cookie(&a.stream).unwrap();
        let found = established(namespace, Tuple::of(&a.stream).unwrap());
        assert_eq!(found, refused(State::FinWait2), "{family:?}");
        beeline_tcp::reset(&b.stream).unwrap();
        for end in [&a, &b] {
            wait_until(|| other_socket(&end.stream) == Err(not_connected));
        }
    }
}

#[test]
fn ended_connection_is_listed_as_such_and_never_as_its_listener() {
    for family in FAMILIES {
        let listener = family.listener();
        let client = family.connect(&listener);
        let accepted = listener.accept().unwrap().0;
        let (tuple, was) = (Tuple::of(&client).unwrap(), cookie(&client).unwrap());
        assert_eq!(find(tuple).unwrap().unwrap().cookie, Some(was));
        // Who ends first is remembered by the kernel for a minute.
        drop(client);
        drop(accepted);
        wait_until(|| find(tuple).unwrap().is_some_and(|listed| listed.state == State::TimeWait));
        assert_eq!(find(tuple).unwrap().unwrap().inode, 0);
        wait_until(|| find(tuple.mirrored()).unwrap().is_none());
    }
}

#[test]
fn connection_of_another_network_namespace_is_refused() {
    let [a, _b] = pair(Family::Ipv4);
    let addresses = (a.stream.local_addr().unwrap(), a.stream.peer_addr().unwrap());
    let own_namespace = netns_cookie(&a.stream).unwrap();
    // The other namespace is that of this thread alone.
    let inside = std::thread::spawn(move || {
        if unshare(CloneFlags::CLONE_NEWNET) == Err(nix::Error::EPERM) {
            eprintln!("skipped: only root can make a network namespace");
            return;
        }
        assert_eq!(other_socket(&a.stream), Err(NoOtherSocket::OtherNamespace));
        // The same addresses, and another connection.
        let (theirs, accepted) = connect_between(addresses);
        assert_eq!(other_socket(&a.stream), Err(NoOtherSocket::OtherNamespace));
        assert_eq!(other_socket(&theirs).unwrap().cookie, cookie(&accepted).unwrap());
        assert_ne!(netns_cookie(&theirs), Ok(own_namespace));
        assert_eq!(netns_cookie(&theirs), netns_cookie(&accepted));
    });
    inside.join().unwrap();
}

/// In a network namespace without anything, a connection between these addresses of the loopback.
fn connect_between((local, peer): (SocketAddr, SocketAddr)) -> (TcpStream, TcpStream) {
    // A child of this thread is in its namespace.
    let up = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
    assert!(up.unwrap().success(), "`ip` is part of what the tests need (iproute2)");
    let listener = TcpListener::bind(peer).unwrap();
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &local).unwrap();
    rustix::net::connect(&socket, &peer).unwrap();
    (socket.into(), listener.accept().unwrap().0)
}

#[test]
fn only_sockets_of_tcp_are_taken_for_them() {
    let [a, b] = pair(Family::Ipv4);
    assert!(is_tcp(&a.stream) && is_tcp(&b.stream));
    let (unix, _other) = UnixStream::pair().unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let file = File::open("/dev/null").unwrap();
    assert!(!is_tcp(&unix) && !is_tcp(&udp) && !is_tcp(&file));
    // Where the kernel has them and the user may make them.
    let others = [(SocketType::STREAM, ipproto::MPTCP), (SocketType::RAW, ipproto::TCP)];
    for (kind, protocol) in others {
        if let Ok(other) = rustix::net::socket(AddressFamily::INET, kind, Some(protocol)) {
            assert!(!is_tcp(&other), "{kind:?} of {protocol:?}");
        }
    }
    assert_eq!(Tuple::of(&unix), Err(TupleError::NotInternet));
    assert_eq!(Tuple::of(&udp), Err(TupleError::NotConnected));
    assert_eq!(Tuple::of(&file), Err(TupleError::System(Errno::NOTSOCK)));
    assert_eq!(netns_cookie(&file), Err(Errno::NOTSOCK));
}
