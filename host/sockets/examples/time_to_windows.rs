//! How long a connection stays with the kernel: from `connect` until what the client sends and what it receives goes by windows, while it sends 64 bytes and
//! waits for as many; and the longest of these round trips, which is as long as the change keeps a program waiting.
//!
//! `cargo run --release -p beeline-socket-engine --example time_to_windows -- [PROCESSES] [CONNECTIONS]`. Each client is a new process with a new server, which
//! make their connections one behind the other; the first is apart, since two processes that have none find each other for it.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on ends")]

use std::io::{BufRead, BufReader, IoSlice, IoSliceMut, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use beeline_domain::DomainConfig;
use beeline_socket_engine::{Sockets, Turn};
use beeline_socket_rules::Rules;
use rustix::net::{RecvFlags, SendFlags};

const MESSAGE_BYTES: usize = 64;
/// Behind that a connection stays with the kernel for a reason.
const GIVES_UP: Duration = Duration::from_secs(5);

/// What one connection took, in µs; round trips by the kernel, and the longest.
#[derive(Clone, Copy)]
struct Begun {
    micros: u64,
    rounds: u64,
    longest_micros: u64,
}

fn engine(root: &Path) -> Sockets {
    let domain = DomainConfig { root: Some(root.to_owned()), name: "d".to_owned() };
    Sockets::new(Rules::default().for_this_program(), domain)
}

fn send(sockets: &Sockets, socket: &TcpStream, bytes: &[u8]) -> usize {
    match sockets.send(socket.as_fd(), &[IoSlice::new(bytes)], SendFlags::empty()) {
        Turn::Done(sent) => sent.unwrap(),
        Turn::Kernel(pass) => {
            let sent = rustix::net::send(socket, bytes, SendFlags::NOSIGNAL).unwrap();
            pass.moved(sent);
            sent
        }
    }
}

fn receive(sockets: &Sockets, socket: &TcpStream, out: &mut [u8]) -> usize {
    match sockets.receive(socket.as_fd(), &mut [IoSliceMut::new(out)], RecvFlags::empty()) {
        Turn::Done(received) => received.unwrap(),
        Turn::Kernel(pass) => {
            let received = rustix::net::recv(socket, out, RecvFlags::empty()).unwrap().1;
            pass.moved(received);
            received
        }
    }
}

/// Answers on one connection behind the other, until it is killed.
fn serve(root: &Path) {
    let (sockets, listener) = (engine(root), TcpListener::bind(("127.0.0.1", 0)).unwrap());
    println!("{}", listener.local_addr().unwrap().port());
    std::io::stdout().flush().unwrap();
    let mut bytes = [0; MESSAGE_BYTES];
    for socket in listener.incoming() {
        let socket = socket.unwrap();
        sockets.accepted(socket.as_fd());
        loop {
            match receive(&sockets, &socket, &mut bytes) {
                0 => break,
                received => assert_eq!(send(&sockets, &socket, &bytes[..received]), received),
            }
        }
        sockets.close(socket.as_fd());
    }
}

/// Makes connections, and says of each how it began.
fn ask(root: &Path, port: u16, connections: usize) {
    let sockets = engine(root);
    for _ in 0..connections {
        let began = Instant::now();
        let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        sockets.connected(socket.as_fd());
        let (mut rounds, mut longest) = (0, Duration::ZERO);
        loop {
            let round = Instant::now();
            assert_eq!(send(&sockets, &socket, &[1; MESSAGE_BYTES]), MESSAGE_BYTES);
            let mut received = 0;
            while received < MESSAGE_BYTES {
                received += receive(&sockets, &socket, &mut [0; MESSAGE_BYTES][received..]);
            }
            (rounds, longest) = (rounds + 1, longest.max(round.elapsed()));
            // None until it is a candidate.
            let endpoint = sockets.endpoint(socket.as_raw_fd());
            let traffic = endpoint.map(|endpoint| endpoint.traffic()).unwrap_or_default();
            if traffic.sent_by_window_bytes > 0 && traffic.received_by_window_bytes > 0 {
                break;
            }
            assert!(began.elapsed() < GIVES_UP, "{traffic:?}");
        }
        println!("{} {rounds} {}", began.elapsed().as_micros(), longest.as_micros());
        sockets.close(socket.as_fd());
        drop(socket);
    }
}

/// Two processes; how each of their connections began.
fn run(connections: usize) -> Vec<Begun> {
    let (root, own) = (tempfile::tempdir().unwrap(), std::env::current_exe().unwrap());
    let begin = |words: &[&str]| {
        Command::new(&own).args(words).env("ROOT", root.path()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let mut server = begin(&["serve"]);
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let client = begin(&["ask", port.trim(), &connections.to_string()]).wait_with_output().unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(client.status.success());
    let of = |line: &str| {
        let mut numbers = line.split(' ').map(|number| number.parse().unwrap());
        let mut next = || numbers.next().unwrap();
        Begun { micros: next(), rounds: next(), longest_micros: next() }
    };
    String::from_utf8(client.stdout).unwrap().lines().map(of).collect()
}

fn print(of: &str, all: &[Begun]) {
    let quantiles = |value: fn(&Begun) -> u64| {
        let mut values: Vec<u64> = all.iter().map(value).collect();
        values.sort_unstable();
        [0.5, 0.9, 1.0].map(|part| values[((values.len() - 1) as f64 * part) as usize])
    };
    let [micros, rounds, longest] = [
        quantiles(|begun| begun.micros),
        quantiles(|begun| begun.rounds),
        quantiles(|begun| begun.longest_micros),
    ];
    println!(
        "{of:<24} {:>5} connections; p50, p90, most: {micros:?} us, {rounds:?} round trips, the longest {longest:?} us",
        all.len()
    );
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let root = std::env::var("ROOT").unwrap_or_default();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => serve(Path::new(&root)),
        ["ask", port, connections] => {
            ask(Path::new(&root), port.parse().unwrap(), connections.parse().unwrap())
        }
        ref numbers => {
            let number = |at: usize, other| numbers.get(at).map_or(other, |word| word.parse().unwrap());
            let all: Vec<_> = (0..number(0, 20)).map(|_| run(number(1, 20))).collect();
            let first: Vec<_> = all.iter().map(|of_process| of_process[0]).collect();
            let later: Vec<_> = all.iter().flat_map(|of_process| of_process[1..].to_vec()).collect();
            print("first of two processes", &first);
            print("later", &later);
        }
    }
}
