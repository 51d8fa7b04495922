//! A token that was exchanged in a connection lets the process at its other end in, once, and nobody else.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::io::{IoSlice, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use beeline_contract_memory::{LoadPort, StorePort};
use beeline_domain::{
    Admissions, Answer, ConnectError, Connection, Domain, DomainConfig, Offer, OfferOptions, Peer, Refusal,
    Reply, Service, StoreOptions, Token, WindowOptions, connect_window_proving, offer_window,
};
use beeline_mmio::StoreKernel;
use harness::users::{LISTED, UNLISTED, Users};
use harness::{Role, WATCHDOG, listen, say, wait_until, watchdog};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::PidfdFlags;

/// Answers with the request.
struct Echo;

impl Service for Echo {
    fn connected(&mut self, _: &Peer, request: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
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
    DomainConfig::in_network_namespace(format!("token-{}-{number}", std::process::id()))
}

fn offer(domain: &Domain, admissions: &Admissions) -> Offer {
    let options = OfferOptions { admissions: Some(admissions.clone()), ..OfferOptions::default() };
    domain.offer_with("echo", Box::new(Echo), options).unwrap()
}

fn prove(domain: &Domain, token: &Token) -> Result<(Connection, Reply), ConnectError> {
    domain.connect_proving(token, "echo", b"hello", &[], WATCHDOG)
}

fn exchange(connection: &TcpStream) -> Token {
    Token::exchange(connection, WATCHDOG).unwrap()
}

/// The domain of the user at the other end.
fn domain_of(token: &Token, name: &str) -> Domain {
    Domain::open_foreign(&DomainConfig::in_network_namespace(name), token.uid()).unwrap()
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    let _watchdog = watchdog();
    let (name, port) = role.argument.split_once(',').unwrap();
    let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, port.parse().unwrap())).unwrap();
    match role.name.as_str() {
        "holder" => {
            let connection = connect();
            let token = exchange(&connection);
            assert_eq!(listen().as_deref(), Some("connect"));
            let (echo, reply) = prove(&domain_of(&token, name), &token).unwrap();
            assert_eq!(reply.payload, b"hello");
            assert_eq!(echo.call(b"more", &[]).unwrap().payload, b"more");
            let token = exchange(&connection);
            assert_eq!(listen().as_deref(), Some("window"));
            let store = StoreOptions::with_kernel(StoreKernel::Cached);
            let mut sender =
                connect_window_proving(&domain_of(&token, name), &token, "window", store).unwrap();
            sender.store.store_word(1, 0, 77);
            say("stored");
            assert_eq!(listen(), None);
        }
        // Of the right user, and without the connection.
        "other process" => {
            let domain = Domain::open_foreign(&DomainConfig::in_network_namespace(name), 0).unwrap();
            say(&domain.connect("echo", b"", &[]).unwrap_err().to_string());
        }
        // Has the connection, and is told by it of another process than the one that listens.
        "deceived" => {
            let token = exchange(&connect());
            assert_eq!(listen().as_deref(), Some("connect"));
            let error = prove(&domain_of(&token, name), &token).unwrap_err();
            say(&format!("{}", matches!(error, ConnectError::Unproved { .. })));
        }
        // Knows the secret of another process's token.
        "thief" => {
            let _token = exchange(&connect());
            let secret: Vec<u8> = listen().unwrap().split(' ').map(|byte| byte.parse().unwrap()).collect();
            let config = DomainConfig::in_network_namespace(name);
            say(&format!("{:?}", lie(&config, &[packet(PROVE, 1, &secret), packet(HELLO, 2, b"")])));
        }
        "owner" => {
            let admissions = Admissions::default();
            let domain = Domain::open(&DomainConfig::in_network_namespace(name)).unwrap();
            let _offer = offer(&domain, &admissions);
            say("offered");
            assert_eq!(listen(), None);
        }
        other => panic!("unknown role {other}"),
    }
}

#[test]
fn holder_of_a_token_gets_in_once_and_a_process_of_its_user_without_the_connection_does_not() {
    let Some(users) = Users::new() else { return };
    let config = config();
    let domain = Domain::open(&config).unwrap();
    let admissions = Admissions::default();
    let _offer = offer(&domain, &admissions);
    let options =
        WindowOptions { lines: 64, admissions: Some(admissions.clone()), ..WindowOptions::default() };
    let listener = offer_window(&domain, "window", options).unwrap();
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let argument = format!("{},{}", config.name, tcp.local_addr().unwrap().port());
    let mut holder = users.helper(LISTED, "holder", &argument);
    let (connection, _) = tcp.accept().unwrap();
    let _admitted = admissions.admit_holder(exchange(&connection)).unwrap();
    for uid in [LISTED, UNLISTED] {
        let refused = users.helper(uid, "other process", &argument).hear();
        // Where the kernel does not number processes, it comes as far as to be asked for its token.
        let unlisted = format!("uid {uid} is not on the offer's list");
        assert!(
            refused.contains(&unlisted) || uid == LISTED && refused.contains("has not shown a token"),
            "{refused}"
        );
    }
    holder.tell("connect");
    let token = exchange(&connection);
    let _admitted = admissions.admit_holder(token).unwrap();
    holder.tell("window");
    let parts = listener.accept(WATCHDOG).unwrap();
    assert_eq!((parts.peer.uid(), parts.peer.pid()), (LISTED, holder.pid()));
    wait_until(|| parts.load.load_word(1, 0) == 77);
    holder.expect("stored");
    // What was good once is not any more, for the same user too.
    let refused = users.helper(LISTED, "other process", &argument).hear();
    assert!(refused.contains("is not on the offer's list"), "{refused}");
}

/// Only since Linux 6.9 the kernel tells processes of one user apart for good.
fn processes_are_numbered() -> bool {
    let pidfd = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).unwrap();
    let is_numbered = rustix::fs::fstatfs(&pidfd).unwrap().f_type == 0x5049_4446;
    if !is_numbered {
        eprintln!("skipped: this kernel does not number processes; Linux 6.9 does");
    }
    is_numbered
}

#[test]
fn owner_that_is_not_at_the_other_end_is_shown_nothing() {
    let _watchdog = watchdog();
    let config = config();
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let argument = format!("{},{}", config.name, tcp.local_addr().unwrap().port());
    if !processes_are_numbered() {
        return;
    }
    // Another process of the same user listens under the name, as somebody between two others would.
    let mut between = harness::Helper::start("owner", std::path::Path::new("/nowhere"), &argument);
    between.expect("offered");
    let mut deceived = harness::Helper::start("deceived", std::path::Path::new("/nowhere"), &argument);
    let (connection, _) = tcp.accept().unwrap();
    let _token = exchange(&connection);
    deceived.tell("connect");
    deceived.expect("true");
}

/// A packet as a client would send it.
fn packet(kind: u16, serial: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = b"BEE\x01".to_vec();
    bytes.extend(4u16.to_le_bytes());
    bytes.extend(kind.to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    bytes.extend(serial.to_le_bytes());
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend([0; 12]);
    bytes.extend(payload);
    bytes
}

const HELLO: u16 = 1;
const REPLY: u16 = 3;
const REFUSAL: u16 = 4;
const BYE: u8 = 5;
const PROVE: u16 = 10;

/// What a liar sends, and the kinds of the packets that it is answered with until it is sent away.
fn lie(config: &DomainConfig, packets: &[Vec<u8>]) -> Vec<u16> {
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .unwrap();
    let name = format!("beeline/{}/{}/echo", rustix::process::geteuid().as_raw(), config.name);
    rustix::net::connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
    for packet in packets {
        let sent = rustix::net::sendmsg(
            &socket,
            &[IoSlice::new(packet)],
            &mut Default::default(),
            SendFlags::NOSIGNAL,
        );
        if sent.is_err() {
            break;
        }
    }
    rustix::net::shutdown(&socket, rustix::net::Shutdown::Write).unwrap();
    let (mut kinds, mut buffer) = (Vec::new(), vec![0; 70_000]);
    loop {
        match rustix::net::recv(socket.as_fd(), &mut buffer[..], RecvFlags::empty()) {
            Ok((_, 0)) => return kinds,
            Ok(_) if buffer[6] == BYE => {}
            Ok((_, bytes)) => {
                let kind = u16::from_le_bytes([buffer[6], buffer[7]]);
                let reason = String::from_utf8_lossy(&buffer[32..bytes]);
                assert!(
                    kind != REFUSAL || reason.contains("token") || reason.contains("kind 10"),
                    "{reason}"
                );
                kinds.push(kind);
            }
            Err(rustix::io::Errno::CONNRESET) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// The preamble that the side at `connection` sends, when it is answered with one of this process.
fn secret_sent_over(connection: &mut TcpStream, answer: &[u8]) -> Vec<u8> {
    let mut preamble = [0; 56];
    connection.read_exact(&mut preamble).unwrap();
    connection.write_all(answer).unwrap();
    preamble[8..40].to_vec()
}

/// A token of this process with itself, and the secret that lets it in.
fn token_and_its_secret() -> (Token, Vec<u8>) {
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut ours = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
    let (theirs, _) = tcp.accept().unwrap();
    // What this process says of itself, taken from a token of its own.
    let mut preamble = [0; 56];
    let (mut probe, probed) = std::os::unix::net::UnixStream::pair().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| Token::exchange(&probed, WATCHDOG).unwrap());
        probe.read_exact(&mut preamble).unwrap();
        preamble[8] ^= 0xff;
        probe.write_all(&preamble).unwrap();
    });
    std::thread::scope(|scope| {
        let exchanging = scope.spawn(|| exchange(&theirs));
        let secret = secret_sent_over(&mut ours, &preamble);
        (exchanging.join().unwrap(), secret)
    })
}

#[test]
fn liars_replays_and_parts_of_a_secret_end_their_connection_only() {
    let _watchdog = watchdog();
    let config = config();
    let domain = Domain::open(&config).unwrap();
    let admissions = Admissions::default();
    let _offer = offer(&domain, &admissions);
    let (good, _) = domain.connect("echo", b"good", &[]).unwrap();
    let (token, secret) = token_and_its_secret();
    let _admitted = admissions.admit_holder(token).unwrap();
    let mut wrong = secret.clone();
    wrong[31] ^= 1;
    let hello = || packet(HELLO, 2, b"");
    for lies in [
        vec![packet(PROVE, 1, &wrong), hello()],
        vec![packet(PROVE, 1, &secret[..31]), hello()],
        vec![packet(PROVE, 1, b""), hello()],
        vec![packet(PROVE, 1, &[secret.clone(), vec![0]].concat()), hello()],
        vec![packet(PROVE, 1, &vec![0; 60_000]), hello()],
    ] {
        assert_eq!(lie(&config, &lies), [REFUSAL]);
        assert_eq!(good.call(b"still", &[]).unwrap().payload, b"still");
    }
    // After a client's first request there is nothing to prove.
    assert!(lie(&config, &[packet(HELLO, 1, b""), packet(PROVE, 2, &secret)]).ends_with(&[REFUSAL]));
    // The right one, with the same packets again behind it, and again over another connection.
    assert_eq!(lie(&config, &[packet(PROVE, 1, &secret), hello()]), [REPLY, REPLY]);
    assert_eq!(lie(&config, &[packet(PROVE, 1, &secret), hello()]), [REFUSAL]);
    assert_eq!(good.call(b"still", &[]).unwrap().payload, b"still");
}

#[test]
fn secret_of_another_process_lets_nobody_in_and_stays_good() {
    let _watchdog = watchdog();
    if !processes_are_numbered() {
        return;
    }
    let config = config();
    let domain = Domain::open(&config).unwrap();
    let admissions = Admissions::default();
    let _offer = offer(&domain, &admissions);
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let argument = format!("{},{}", config.name, tcp.local_addr().unwrap().port());
    let mut thief = harness::Helper::start("thief", std::path::Path::new("/nowhere"), &argument);
    let (connection, _) = tcp.accept().unwrap();
    // It is waited for, with another secret.
    let _thiefs = admissions.admit_holder(exchange(&connection)).unwrap();
    let (token, secret) = token_and_its_secret();
    let _own = admissions.admit_holder(token).unwrap();
    thief.tell(&secret.iter().map(u8::to_string).collect::<Vec<_>>().join(" "));
    thief.expect("[4]");
    assert_eq!(lie(&config, &[packet(PROVE, 1, &secret), packet(HELLO, 2, b"")]), [REPLY, REPLY]);
}
