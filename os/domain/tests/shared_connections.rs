//! Two processes of different users become peers because they share a connection of TCP, and nobody else gets in.
//!
//! No list names a user here, and no byte is put into a connection.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use beeline_contract_memory::{CreditSink, CreditSource, LoadPort, StorePort};
use beeline_domain::{
    Admissions, Answer, ConnectError, Domain, DomainConfig, NotShared, Notified, OfferOptions, OtherEnd,
    Peer, Refusal, Reply, Service, StoreOptions, WindowError, WindowOptions, connect_window, offer_window,
};
use beeline_mmio::StoreKernel;
use harness::users::{LISTED, UNLISTED, Users};
use harness::{Role, WATCHDOG, listen, say, wait_for_end, wait_until, watchdog};
use nix::sched::{CloneFlags, unshare};
use rustix::net::{AddressFamily, SocketType};

/// Words that go through the window.
const WORDS: u32 = 64;

/// Notifies whoever connects.
struct Teller;

impl Service for Teller {
    fn connected(&mut self, peer: &Peer, request: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        assert_eq!(peer.notify(b"welcome", &[]).unwrap(), Notified::Accepted);
        Ok(Reply::new(request).into())
    }

    fn requested(&mut self, _: &Peer, request: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply::new(request).into())
    }

    fn departed(&mut self, _: &Peer) {}
}

/// A domain of a test's own: every process of the machine that is in this network namespace sees its name.
fn config() -> DomainConfig {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    DomainConfig::in_network_namespace(format!("shared-{}-{number}", std::process::id()))
}

fn store() -> StoreOptions {
    StoreOptions::with_kernel(StoreKernel::Cached)
}

fn connect_to(port: &str) -> TcpStream {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port.parse().unwrap())).unwrap()
}

/// The domain of whoever has the other end.
fn domain_of(other_end: OtherEnd, name: &str) -> Domain {
    Domain::open_foreign(&DomainConfig::in_network_namespace(name), other_end.uid()).unwrap()
}

/// Asks until the connection is accepted.
fn other_end(connection: &TcpStream) -> OtherEnd {
    loop {
        match OtherEnd::of_tcp(connection) {
            Err(NotShared::NotAccepted) => std::thread::yield_now(),
            found => return found.unwrap(),
        }
    }
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    let _watchdog = watchdog();
    let (name, port) = role.argument.split_once(',').unwrap();
    let open = |uid| Domain::open_foreign(&DomainConfig::in_network_namespace(name), uid).unwrap();
    match role.name.as_str() {
        "sharer" => {
            let connection = connect_to(port);
            say("connected");
            // Until the other side has admitted this user, too.
            assert_eq!(listen().as_deref(), Some("go on"));
            let other_end = other_end(&connection);
            say(&format!("uid {}", other_end.uid()));
            use_window(&domain_of(other_end, name));
            assert_eq!(listen().as_deref(), Some("again"));
            let refused = domain_of(other_end, name).connect("told", b"", &[]).unwrap_err();
            say(&refused.to_string());
        }
        "stranger" => {
            for name in ["told", "window"] {
                say(&open(0).connect(name, b"", &[]).unwrap_err().to_string());
            }
        }
        "leaver" => {
            let connection = connect_to(port);
            other_end(&connection);
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            say(&format!("{:?}", OtherEnd::of_tcp(&connection)));
            let addresses = (connection.local_addr().unwrap(), connection.peer_addr().unwrap());
            let (_theirs, _accepted) = connect_between(addresses);
            say(&format!("{:?}", OtherEnd::of_tcp(&connection)));
            wait_for_end();
        }
        other => panic!("unknown role {other}"),
    }
}

/// In a network namespace without anything, a connection between these addresses of the loopback.
fn connect_between((local, peer): (SocketAddr, SocketAddr)) -> (OwnedFd, TcpStream) {
    // A child of this thread is in its namespace.
    let up = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
    assert!(up.unwrap().success(), "`ip` is part of what the tests need (iproute2)");
    let listener = TcpListener::bind(peer).unwrap();
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &local).unwrap();
    rustix::net::connect(&socket, &peer).unwrap();
    let (accepted, from) = listener.accept().unwrap();
    assert_eq!(from, local);
    (socket, accepted)
}

/// Is notified, and sends [`WORDS`] through the window.
fn use_window(domain: &Domain) {
    let (connection, _) = domain.connect("told", b"hello", &[]).unwrap();
    let notifications = connection.notifications().unwrap();
    assert_eq!(notifications.next_within(WATCHDOG).unwrap().unwrap().payload, b"welcome");
    let mut sender = connect_window(domain, "window", store()).unwrap();
    for line in 0..WORDS {
        sender.store.store_word(line, 0, u64::from(line) + 1);
    }
    sender.store.wake_receiver();
    wait_until(|| sender.credits.freed_lines() == u64::from(WORDS));
    say("sent");
}

#[test]
fn users_who_share_a_connection_become_peers_and_nobody_else_gets_in() {
    let Some(users) = Users::new() else { return };
    let config = config();
    let domain = Domain::open(&config).unwrap();
    let admissions = Admissions::default();
    let for_sharers = || Some(admissions.clone());
    let options = OfferOptions { admissions: for_sharers(), ..OfferOptions::default() };
    let _told = domain.offer_with("told", Box::new(Teller), options).unwrap();
    let options = WindowOptions { lines: WORDS, admissions: for_sharers(), ..WindowOptions::default() };
    let listener = offer_window(&domain, "window", options).unwrap();
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let argument = format!("{},{}", config.name, tcp.local_addr().unwrap().port());

    let mut sharer = users.helper(LISTED, "sharer", &argument);
    sharer.expect("connected");
    let (connection, _) = tcp.accept().unwrap();
    let other_end = OtherEnd::of_tcp(&connection).unwrap();
    assert_eq!(other_end.uid(), LISTED);
    let admitted = admissions.admit(other_end).unwrap();
    sharer.tell("go on");
    sharer.expect("uid 0");
    let mut parts = listener.accept(WATCHDOG).unwrap();
    assert!(other_end.is_user_of(&parts.peer));
    for line in 0..WORDS {
        wait_until(|| parts.load.load_word(line, 0) == u64::from(line) + 1);
    }
    parts.sink.publish(u64::from(WORDS));
    sharer.expect("sent");

    let mut stranger = users.helper(UNLISTED, "stranger", &argument);
    for _ in ["told", "window"] {
        let refused = stranger.hear();
        assert!(refused.contains(&format!("uid {UNLISTED} is not on the offer's list")), "{refused}");
    }
    // The proof is taken back: who is connected stays, and nobody is let in by it.
    drop(admitted);
    sharer.tell("again");
    let refused = sharer.hear();
    assert!(refused.contains(&format!("uid {LISTED} is not on the offer's list")), "{refused}");
}

#[test]
fn user_of_another_connection_is_not_let_in_by_this_one() {
    let Some(users) = Users::new() else { return };
    let config = config();
    let domain = Domain::open(&config).unwrap();
    let admissions = Admissions::default();
    let options =
        WindowOptions { lines: WORDS, admissions: Some(admissions.clone()), ..WindowOptions::default() };
    let _listener = offer_window(&domain, "window", options.clone()).unwrap();
    let options = OfferOptions { admissions: options.admissions, ..OfferOptions::default() };
    let _told = domain.offer_with("told", Box::new(Teller), options).unwrap();
    // Both ends are of root, as where root accepts a connection before it becomes another user.
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = tcp.local_addr().unwrap().port();
    let client = connect_to(&port.to_string());
    let (connection, _) = tcp.accept().unwrap();
    assert_eq!(OtherEnd::of_tcp(&client).unwrap().uid(), 0);
    let _admitted = admissions.admit(OtherEnd::of_tcp(&connection).unwrap()).unwrap();
    let mut stranger = users.helper(LISTED, "stranger", &format!("{},{port}", config.name));
    for _ in ["told", "window"] {
        let refused = stranger.hear();
        assert!(refused.contains(&format!("uid {LISTED} is not on the offer's list")), "{refused}");
    }
}

#[test]
fn owner_of_another_user_than_the_other_end_is_refused_before_anything_is_sent() {
    let Some(_users) = Users::new() else { return };
    let config = config();
    let (_told, domain) = {
        let domain = Domain::open(&config).unwrap();
        (domain.offer("told", Box::new(Teller)).unwrap(), domain)
    };
    // As if the other end were of a user who offers nothing here: the names are that user's, and nobody listens.
    let theirs = Domain::open_foreign(&config, LISTED).unwrap();
    let absent = theirs.connect("told", b"secret", &[]).unwrap_err();
    assert!(matches!(absent, ConnectError::Absent { .. }), "{absent}");
    let absent = connect_window(&theirs, "window", store()).unwrap_err();
    assert!(matches!(absent, WindowError::Connect(ConnectError::Absent { .. })), "{absent}");
    assert!(domain.connect("told", b"own", &[]).is_ok());
}

#[test]
fn connection_of_another_network_namespace_proves_nothing() {
    let _watchdog = watchdog();
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can leave a network namespace");
        return;
    }
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let argument = format!("-,{}", tcp.local_addr().unwrap().port());
    let mut leaver = harness::Helper::start("leaver", std::path::Path::new("/nowhere"), &argument);
    let (_connection, _) = tcp.accept().unwrap();
    leaver.expect("Err(OtherNamespace)");
    // Also where another connection has the same addresses, and its other end an owner who could be taken for ours.
    leaver.expect("Err(OtherNamespace)");
}
