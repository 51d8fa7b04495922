//! A server answers who shares a connection with it, and no list names: the user at the other end of a connection of TCP, or
//! the process with which a token was exchanged.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

#[path = "../../../os/domain/tests/harness/mod.rs"]
mod harness;
mod support;

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

use beeline_domain::{Admissions, Armed, Domain, DomainConfig, Event, OtherEnd, Source, Token};
use beeline_rpc::shm::{Client, ClientOptions, Server, ServerOptions, Worker};
use beeline_rpc::{CallError, CallFailure, StartError, WaitPolicy};
use harness::users::{LISTED, UNLISTED, Users};
use harness::{Role, listen, say};
use support::{ECHO, WATCHDOG, ask, handle};

fn config(test: &str) -> DomainConfig {
    DomainConfig::in_network_namespace(format!("rpc-{test}-{}", std::process::id()))
}

fn offer(domain: &Domain, admissions: &Admissions) -> (Server, Vec<Worker>) {
    let admissions = Some(admissions.clone());
    Server::offer(domain, "echo", ServerOptions { admissions, ..ServerOptions::default() }).unwrap()
}

/// Both sides of a token, which are this process.
fn tokens() -> (Token, Token) {
    let (a, b) = UnixStream::pair().unwrap();
    std::thread::scope(|scope| {
        let at_b = scope.spawn(|| Token::exchange(&b, WATCHDOG).unwrap());
        (Token::exchange(&a, WATCHDOG).unwrap(), at_b.join().unwrap())
    })
}

fn options() -> ClientOptions {
    ClientOptions { timeout: WATCHDOG, ..ClientOptions::default() }
}

#[test]
fn client_with_a_token_calls_and_a_token_that_nobody_admitted_or_that_was_used_lets_nobody_in() {
    let domain = Domain::open(&config("token")).unwrap();
    let admissions = Admissions::default();
    let (_server, mut workers) = offer(&domain, &admissions);
    let (at_server, at_client) = tokens();
    assert!(Client::connect_proving(&domain, &at_client, "echo", options()).is_err());
    let _admitted = admissions.admit_holder(at_server).unwrap();
    let mut client = Client::connect_proving(&domain, &at_client, "echo", options()).unwrap();
    assert_eq!(ask(&mut client, &mut workers, ECHO, b"hello"), Ok(b"hello".to_vec()));
    assert!(Client::connect_proving(&domain, &at_client, "echo", options()).is_err());
    let wrong = ClientOptions { reply_lines: 3, ..options() };
    let refused = Client::connect_proving(&domain, &at_client, "echo", wrong).unwrap_err();
    assert!(refused.to_string().contains("reply_lines = 3"), "{refused}");
}

#[test]
fn client_with_a_token_does_not_look_for_whoever_serves_after_its_server() {
    let domain = Domain::open(&config("lost")).unwrap();
    let admissions = Admissions::default();
    let (server, workers) = offer(&domain, &admissions);
    let (at_server, at_client) = tokens();
    let _admitted = admissions.admit_holder(at_server).unwrap();
    let mut client = Client::connect_proving(&domain, &at_client, "echo", options()).unwrap();
    drop((server, workers));
    let (_server, mut workers) = offer(&domain, &admissions);
    let mut answer = Vec::new();
    let mut call = || client.call(ECHO, b"again", &mut answer, None).unwrap_err();
    assert!(matches!(call(), CallFailure::Call(CallError::ServerGone { .. })));
    // Long enough for one that looks: others of this user, whom the owner lets in without a token, come and are answered.
    for _ in 0..32 {
        let mut other = Client::connect(&domain, "echo", options()).unwrap();
        assert_eq!(ask(&mut other, &mut workers, ECHO, b"other"), Ok(b"other".to_vec()));
        drop(client.poll());
        assert!(matches!(client.start(ECHO, b"again", None), Err(StartError::NotConnected { .. })));
    }
    // Nor does it wait for what cannot come: this ends, and a wait by descriptor is not broken off to look again.
    assert!(!client.wait(None));
    assert_eq!(client.listen(&Event::new().unwrap()), Armed::Wait);
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    let _watchdog = harness::watchdog();
    let (name, port) = role.argument.split_once(',').unwrap();
    let tcp = || TcpStream::connect((Ipv4Addr::LOCALHOST, port.parse().unwrap())).unwrap();
    let domain = || Domain::open_foreign(&DomainConfig::in_network_namespace(name), 0).unwrap();
    let answer = |client: Result<Client, _>| {
        let mut answer = Vec::new();
        client.unwrap().call(ECHO, b"hello", &mut answer, None).unwrap();
        say(&String::from_utf8(answer).unwrap());
    };
    match role.name.as_str() {
        "user" => {
            let _connection = tcp();
            assert_eq!(listen().as_deref(), Some("connect"));
            answer(Client::connect(&domain(), "echo", options()));
        }
        "holder" => {
            let token = Token::exchange(tcp(), WATCHDOG).unwrap();
            assert_eq!(listen().as_deref(), Some("connect"));
            answer(Client::connect_proving(&domain(), &token, "echo", options()));
        }
        "stranger" => say(&Client::connect(&domain(), "echo", options()).unwrap_err().to_string()),
        other => panic!("unknown role {other}"),
    }
}

#[test]
fn other_users_who_share_a_connection_are_answered_and_nobody_else_is() {
    let Some(users) = Users::new() else { return };
    let config = config("users");
    let domain = Domain::open(&config).unwrap();
    let admissions = Admissions::default();
    let (_server, mut workers) = offer(&domain, &admissions);
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let argument = format!("{},{}", config.name, tcp.local_addr().unwrap().port());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stops = Stops(&stop);
        scope.spawn(|| workers[0].run(&mut handle, &WaitPolicy::default(), &stop));
        for role in ["user", "holder"] {
            let mut sharer = users.helper(LISTED, role, &argument);
            let (connection, _) = tcp.accept().unwrap();
            let _admitted = match role {
                "user" => admissions.admit(OtherEnd::of_tcp(&connection).unwrap()).unwrap(),
                _ => admissions.admit_holder(Token::exchange(&connection, WATCHDOG).unwrap()).unwrap(),
            };
            sharer.tell("connect");
            sharer.expect("hello");
            let refused = users.helper(UNLISTED, "stranger", &argument).hear();
            assert!(refused.contains(&format!("uid {UNLISTED} is not on the offer's list")), "{refused}");
        }
    });
}

/// Ends the worker also where the test fails.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        // Relaxed: the worker only has to see it some time.
        self.0.store(true, Ordering::Relaxed);
    }
}
