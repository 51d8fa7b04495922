//! Who is let in because it shares a connection with the process that offers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use beeline::{
    Admissions, ArenaOptions, ConnectError, Domain, NETWORK_NAMESPACE, NotifierOptions, OtherEnd, ProofError,
    ReceiverOptions, SenderOptions, Token,
};

#[path = "support/other_user.rs"]
mod other_user;

use other_user::{OTHER_UID, as_other_user};

const WATCHDOG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(30);
/// Says to a copy of this test which domain it is to come to, whose it is, and by which port.
const ROLE: &str = "BEELINE_TEST_ADMISSION";

/// A name that no other test and no other run has: every process of the network namespace sees it.
fn name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("admission-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Both sides of an exchange, each in a thread.
fn exchanged(admissions: &Admissions) -> (beeline::Admitted, Token) {
    let (here, there) = UnixStream::pair().unwrap();
    std::thread::scope(|scope| {
        let token = scope.spawn(|| Token::exchange(&there, WATCHDOG).unwrap());
        (admissions.admit_other_side(&here, WATCHDOG).unwrap(), token.join().unwrap())
    })
}

/// What `connect` gives, in a thread, and `offer`, called when the other has looked for it in vain: 30 ms later.
fn offered_late<O, C: Send>(offer: impl FnOnce() -> O, connect: impl FnOnce() -> C + Send) -> (O, C) {
    let (begin, begun) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let connected = scope.spawn(move || {
            begin.send(()).unwrap();
            connect()
        });
        begun.recv().unwrap();
        std::thread::sleep(SHORT);
        (offer(), connected.join().unwrap())
    })
}

#[test]
fn token_connects_once_and_only_while_its_admission_lasts() {
    let domain = Domain::open_in(NETWORK_NAMESPACE, &name()).unwrap();
    let admissions = Admissions::new();
    let options = || ReceiverOptions::new().admissions(&admissions);
    let (admitted, token) = exchanged(&admissions);
    let waiting = SenderOptions::new().timeout(WATCHDOG);
    // A token is as good after the attempts that found nobody.
    let (mut receiver, mut sender) = offered_late(
        || domain.receiver_with("window", options()).unwrap(),
        || domain.sender_proving("window", token, waiting).unwrap(),
    );
    drop(admitted);
    sender.send(b"who is in stays").unwrap();
    assert_eq!(receiver.recv_timeout(WATCHDOG).unwrap().unwrap().to_vec(), b"who is in stays");
    let (admitted, token) = exchanged(&admissions);
    drop(admitted);
    let _other = domain.receiver_with("other", options()).unwrap();
    let refused = domain.sender_proving("other", token, SenderOptions::new()).unwrap_err();
    assert!(matches!(refused, ConnectError::Refused { .. }), "{refused}");
    // The token is of the admissions that have it, and of no others.
    let (_elsewhere, token) = exchanged(&Admissions::new());
    let refused = domain.sender_proving("other", token, SenderOptions::new()).unwrap_err();
    assert!(matches!(refused, ConnectError::Refused { .. }), "{refused}");
}

#[test]
fn other_side_may_connect_as_soon_as_it_has_its_token() {
    let domain = Domain::open_in(NETWORK_NAMESPACE, &name()).unwrap();
    let admissions = Admissions::new();
    let options = NotifierOptions::new().admissions(&admissions);
    let notifier =
        domain.notifier_with("news", options, |_, _, _| Ok(beeline::Answer::new("hello"))).unwrap();
    for _ in 0..50 {
        let (here, there) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            let subscribed = scope.spawn(|| {
                let token = Token::exchange(&there, WATCHDOG).unwrap();
                domain
                    .subscribe_proving("news", token, b"", &[], WATCHDOG)
                    .map(|news| news.first_answer().payload.clone())
            });
            let _admitted = admissions.admit_other_side(&here, WATCHDOG).unwrap();
            assert_eq!(subscribed.join().unwrap().unwrap(), b"hello");
        });
    }
    drop(notifier);
}

#[test]
fn subscriber_with_a_token_waits_for_its_notifier() {
    let domain = Domain::open_in(NETWORK_NAMESPACE, &name()).unwrap();
    let admissions = Admissions::new();
    let (_admitted, token) = exchanged(&admissions);
    let options = NotifierOptions::new().admissions(&admissions);
    let (_notifier, late) = offered_late(
        || domain.notifier_with("late", options, |_, _, _| Ok(beeline::Answer::new("hello"))).unwrap(),
        || domain.subscribe_proving("late", token, b"", &[], WATCHDOG).unwrap(),
    );
    assert_eq!(late.first_answer().payload, b"hello");
}

#[test]
fn token_joins_an_arena_once_and_opens_its_windows() {
    let domain = Domain::open_in(NETWORK_NAMESPACE, &name()).unwrap();
    let admissions = Admissions::new();
    let (_admitted, token) = exchanged(&admissions);
    let options = ArenaOptions::new().admissions(&admissions);
    let waiting = SenderOptions::new().timeout(WATCHDOG);
    let (receivers, arena) = offered_late(
        || domain.receiver_arena_with("arena", options).unwrap(),
        || domain.sender_arena_proving("arena", 8, token, waiting).unwrap(),
    );
    for number in 0..40u64 {
        arena.open().unwrap().send(&number.to_le_bytes()).unwrap();
        let mut receiver = receivers.accept_timeout(WATCHDOG).unwrap();
        assert_eq!(receiver.recv_timeout(WATCHDOG).unwrap().unwrap().word(0), number);
    }
    let (_elsewhere, token) = exchanged(&Admissions::new());
    let refused = domain.sender_arena_proving("arena", 8, token, SenderOptions::new()).unwrap_err();
    assert!(matches!(refused, ConnectError::Refused { .. }), "{refused}");
}

#[test]
#[cfg(feature = "rpc")]
fn client_with_a_token_waits_for_its_server_and_calls() {
    use beeline::rpc::{Method, Reply, Request};
    let domain = Domain::open_in(NETWORK_NAMESPACE, &name()).unwrap();
    let admissions = Admissions::new();
    let (_admitted, token) = exchanged(&admissions);
    let options = || beeline::ServerOptions::new().admissions(&admissions);
    let waiting = beeline::ClientOptions::new().timeout(WATCHDOG);
    let (server, mut client) = offered_late(
        || domain.server_with("calls", options()).unwrap(),
        || domain.client_proving("calls", token, waiting).unwrap(),
    );
    let (_server, mut workers) = server;
    let _ = client.start(Method(1), b"hello", None).unwrap();
    let mut echo = |request: &mut Request<'_>, reply: Reply<'_>| reply.send(&[request.len() as u8]);
    while workers[0].poll(&mut echo) == 0 {}
    let answered = std::iter::repeat_with(|| client.poll().map(|ended| ended.result.unwrap().to_vec()));
    assert_eq!(answered.flatten().next().unwrap(), [5]);
    let (_elsewhere, token) = exchanged(&Admissions::new());
    let refused = domain.client_proving("calls", token, beeline::ClientOptions::new()).unwrap_err();
    assert!(matches!(refused, ConnectError::Refused { .. }), "{refused}");
}

#[test]
fn connections_that_prove_nothing_are_told_apart() {
    let admissions = Admissions::new();
    let (mut here, mut there) = UnixStream::pair().unwrap();
    let late = admissions.admit_other_side(&here, SHORT).unwrap_err();
    assert!(matches!(late, ProofError::TimedOut { waited } if waited == SHORT), "{late}");
    there.write_all(b"GET / HTTP/1.1").unwrap();
    let other = admissions.admit_other_side(&here, WATCHDOG).unwrap_err();
    assert!(matches!(other, ProofError::NotToken), "{other}");
    // Nothing was read, and nothing sent.
    let mut request = [0; 14];
    here.read_exact(&mut request).unwrap();
    assert_eq!(&request, b"GET / HTTP/1.1");
    there.set_nonblocking(true).unwrap();
    assert_eq!(there.read(&mut request).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    drop(here);
    let closed = Token::exchange(&there, WATCHDOG).unwrap_err();
    assert!(matches!(closed, ProofError::Closed), "{closed}");
    assert!(matches!(OtherEnd::of_tcp(&there), Err(ProofError::WrongKind)));
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let early = OtherEnd::of_tcp(&connection).unwrap_err();
    assert!(early.remedy().contains("accepted"), "{early}: {}", early.remedy());
}

/// The other user's program: a copy of this test that finds [`ROLE`] in its environment.
fn come_as_another_user(role: &str) {
    let [name, owner_uid, port] = role.split(',').collect::<Vec<_>>()[..] else { panic!("{role}") };
    let owner_uid: u32 = owner_uid.parse().unwrap();
    let connection = TcpStream::connect(("127.0.0.1", port.parse().unwrap())).unwrap();
    let token = Token::exchange(&connection, WATCHDOG).unwrap();
    assert_eq!(token.uid(), owner_uid);
    let domain = Domain::open_foreign(NETWORK_NAMESPACE, name, token.uid()).unwrap();
    let refused = domain.sender("window").unwrap_err();
    assert!(matches!(refused, ConnectError::Refused { .. }), "{refused}");
    domain.sender_proving("window", token, SenderOptions::new()).unwrap().send(b"by a token").unwrap();
    let unlisted = [domain.subscribe("news").map(drop), domain.sender_arena("arena", 8).map(drop)]
        .map(Result::unwrap_err);
    for refused in unlisted {
        assert!(refused.to_string().contains("list"), "{refused}");
    }
    let remedy = domain.sender_arena("arena", 8).unwrap_err().remedy();
    assert!(remedy.contains("admits it by a connection"), "{remedy}");
    println!("refused");
    let mut told = String::new();
    std::io::stdin().read_line(&mut told).unwrap();
    assert_eq!(OtherEnd::of_tcp(&connection).unwrap().uid(), owner_uid);
    let news = domain.subscribe("news").unwrap();
    assert_eq!(news.next_timeout(WATCHDOG).unwrap().unwrap().payload, b"by a connection");
    let arena = domain.sender_arena("arena", 8).unwrap();
    arena.open().unwrap().send(b"by a connection").unwrap();
}

#[test]
fn another_user_comes_by_a_token_and_by_a_connection() {
    if let Ok(role) = std::env::var(ROLE) {
        return come_as_another_user(&role);
    }
    let folder = tempfile::tempdir().unwrap();
    let name = name();
    let admissions = Admissions::new();
    let domain = Domain::open_in(NETWORK_NAMESPACE, &name).unwrap();
    let mut receiver =
        domain.receiver_with("window", ReceiverOptions::new().admissions(&admissions)).unwrap();
    let options = NotifierOptions::new().admissions(&admissions);
    let news = domain.notifier_with("news", options, |_, _, _| Ok(beeline::Answer::default())).unwrap();
    let options = ArenaOptions::new().admissions(&admissions);
    let receivers = domain.receiver_arena_with("arena", options).unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let role = format!("{name},{},{port}", rustix::process::geteuid().as_raw());
    let test = "another_user_comes_by_a_token_and_by_a_connection";
    let Some(mut other) = as_other_user(folder.path(), test) else { return };
    other.env(ROLE, role).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut other = other.spawn().unwrap();
    let (connection, _) = listener.accept().unwrap();
    let _holder = admissions.admit_other_side(&connection, WATCHDOG).unwrap();
    assert_eq!(receiver.recv_timeout(WATCHDOG).unwrap().unwrap().to_vec(), b"by a token");
    let mut said = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("refused")), "the other user's program ended");
    let other_end = OtherEnd::of_tcp(&connection).unwrap();
    assert_eq!(other_end.uid(), OTHER_UID);
    let _user = admissions.admit(other_end).unwrap();
    other.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    let joined = news.event_timeout(WATCHDOG).unwrap();
    assert_eq!(joined.subscriber().uid(), other_end.uid());
    joined.subscriber().notify(b"by a connection", &[]).map(drop).unwrap();
    let mut opened = receivers.accept_timeout(WATCHDOG).unwrap();
    assert_eq!(opened.recv_timeout(WATCHDOG).unwrap().unwrap().to_vec(), b"by a connection");
    assert!(other.wait().unwrap().success());
}
