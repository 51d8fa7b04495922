//! How long a stream stands still when its connection changes its path: the longest gap between two arrivals that the receiver saw for each change.
//!
//! `cargo run --release -p beeline-socket-engine --example switch_stalls -- [windows|tcp] [CHANGES]`. A process sends 256 bytes every 200 us, another
//! one receives. `windows`: connections of the socket library are ordered off their windows and back. `tcp`: the kernel's sockets over loopback,
//! without a change, is what the machine itself does to such a stream. Many changes of one connection, by the engine alone; `beeline-bench run
//! sockets-fail-over` has few, of programs, and MPTCP beside them.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on ends")]

use std::io::{BufRead, BufReader, IoSlice, IoSliceMut};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use beeline_domain::DomainConfig;
use beeline_socket_engine::{Sockets, Turn, switch};
use beeline_socket_rules::{Rules, Windows};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketType, accept, bind, connect, listen, socket, sockopt,
};
use rustix::time::{ClockId, clock_gettime};

const EVERY: Duration = Duration::from_micros(200);
const MESSAGE_BYTES: usize = 256;
/// Gaps that are kept: all that are longer than a message that is late.
const LEAST_GAP_NS: u64 = 250_000;

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A connection as a program has it: by the library, or by the kernel alone.
struct Stream {
    socket: OwnedFd,
    sockets: Option<Sockets>,
}

impl Stream {
    fn new(kind: &str, root: &Path) -> Self {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        sockopt::set_tcp_nodelay(&socket, true).unwrap();
        let domain = DomainConfig { root: Some(root.to_owned()), name: "d".to_owned() };
        let library = || Sockets::new(Rules::default().for_this_program(), domain);
        Stream { socket, sockets: (kind == "windows").then(library) }
    }

    fn send(&self, bytes: &[u8]) -> usize {
        let by_kernel = || rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL).unwrap();
        let Some(sockets) = &self.sockets else { return by_kernel() };
        match sockets.send(self.socket.as_fd(), &[IoSlice::new(bytes)], SendFlags::empty()) {
            Turn::Done(sent) => sent.unwrap(),
            Turn::Kernel(pass) => {
                let sent = by_kernel();
                pass.moved(sent);
                sent
            }
        }
    }

    fn receive(&self, out: &mut [u8]) -> usize {
        let by_kernel = |out: &mut [u8]| rustix::net::recv(&self.socket, out, RecvFlags::empty()).unwrap().1;
        let Some(sockets) = &self.sockets else { return by_kernel(out) };
        match sockets.receive(self.socket.as_fd(), &mut [IoSliceMut::new(out)], RecvFlags::empty()) {
            Turn::Done(received) => received.unwrap(),
            Turn::Kernel(pass) => {
                let received = by_kernel(out);
                pass.moved(received);
                received
            }
        }
    }
}

/// Says when each long gap ended, and how long it was.
fn receive(kind: &str, root: &Path, at: SocketAddrV4) {
    let listener = Stream::new(kind, root);
    sockopt::set_socket_reuseaddr(&listener.socket, true).unwrap();
    bind(&listener.socket, &at).unwrap();
    listen(&listener.socket, 1).unwrap();
    println!("ready");
    let stream = Stream { socket: accept(&listener.socket).unwrap(), ..listener };
    stream.sockets.iter().for_each(|sockets| sockets.accepted(stream.socket.as_fd()));
    let (mut gaps, mut total, mut out) = (Vec::with_capacity(1 << 20), 0_u64, vec![0; 1 << 16]);
    let mut last = 0;
    loop {
        let received = stream.receive(&mut out);
        if received == 0 {
            break;
        }
        let wrong = out[..received].iter().zip(total..).position(|(found, at)| *found != at as u8);
        assert_eq!(wrong, None, "behind {total}");
        total += received as u64;
        let now = now_ns();
        if last != 0 && now - last > LEAST_GAP_NS {
            gaps.push((now, now - last));
        }
        last = now;
    }
    gaps.iter().for_each(|(at, gap)| println!("{at} {gap}"));
    println!("end {total}");
}

/// Sends until its input ends.
fn send(kind: &str, root: &Path, to: SocketAddrV4) {
    let stream = Stream::new(kind, root);
    connect(&stream.socket, &to).unwrap();
    stream.sockets.iter().for_each(|sockets| sockets.connected(stream.socket.as_fd()));
    let (input, mut sent, mut due) = (std::io::stdin(), 0_u64, now_ns());
    let mut watched = [rustix::event::PollFd::new(&input, rustix::event::PollFlags::IN)];
    while rustix::event::poll(&mut watched, Some(&rustix::event::Timespec::default())).unwrap() == 0 {
        let bytes: Vec<u8> = (sent..sent + MESSAGE_BYTES as u64).map(|at| at as u8).collect();
        let mut rest = &*bytes;
        while !rest.is_empty() {
            rest = &rest[stream.send(rest)..];
        }
        sent += MESSAGE_BYTES as u64;
        due += EVERY.as_nanos() as u64;
        std::thread::sleep(Duration::from_nanos(due.saturating_sub(now_ns())));
    }
    stream.sockets.iter().for_each(|sockets| sockets.close(stream.socket.as_fd()));
}

fn start(kind: &str, role: &str, root: &Path, at: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([role, kind, at]).arg(root).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Changes the path, or does not.
fn change(kind: &str, root: &Path, is_down: bool) {
    if kind == "windows" {
        let to = if is_down { Windows::Down } else { Windows::Up };
        let switched = switch(&root.join("d"), &[], to, Duration::from_secs(1)).unwrap();
        assert_eq!((switched.done.len(), switched.not_yet.len()), (2, 0));
    }
}

fn print(what: &str, mut longest: Vec<u64>) {
    longest.sort_unstable();
    let at = |share: f64| longest[((longest.len() - 1) as f64 * share) as usize] as f64 / 1e6;
    println!(
        "{what}: {} times, longest gap p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms",
        longest.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

fn measure(kind: &str, changes: usize) {
    let folder = tempfile::tempdir().unwrap();
    let (between, address) = (Duration::from_millis(20), "127.0.0.1:7777");
    let mut receiver = start(kind, "receive", folder.path(), address);
    let mut lines = BufReader::new(receiver.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("ready"));
    let mut sender = start(kind, "send", folder.path(), address);
    std::thread::sleep(Duration::from_secs(1));
    let mut begun = Vec::new();
    for number in 0..changes {
        begun.push(now_ns());
        change(kind, folder.path(), number % 2 == 0);
        std::thread::sleep(between);
    }
    begun.push(now_ns());
    drop(sender.stdin.take());
    let mut gaps = Vec::new();
    for line in lines {
        let Some((at, gap)) = line.split_once(' ').filter(|(at, _)| *at != "end") else { continue };
        gaps.push((at.parse::<u64>().unwrap(), gap.parse::<u64>().unwrap()));
    }
    assert!(sender.wait().unwrap().success() && receiver.wait().unwrap().success());
    // A gap is of the change behind which it ended.
    let longest = |number: usize| {
        let (from, to) = (begun[number], begun[number + 1]);
        gaps.iter()
            .filter(|(at, _)| (from..to).contains(at))
            .map(|(_, gap)| *gap)
            .max()
            .unwrap_or(LEAST_GAP_NS)
    };
    match kind {
        "tcp" => print("no change", (0..changes).map(longest).collect()),
        _ => {
            print(&format!("{kind}, down"), (0..changes).step_by(2).map(longest).collect());
            print(&format!("{kind}, up"), (1..changes).step_by(2).map(longest).collect());
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["receive", kind, at, root] => receive(kind, Path::new(root), at.parse().unwrap()),
        ["send", kind, to, root] => send(kind, Path::new(root), to.parse().unwrap()),
        [kind, changes] => measure(kind, changes.parse().unwrap()),
        [kind] => measure(kind, 1_000),
        _ => measure("windows", 1_000),
    }
}
