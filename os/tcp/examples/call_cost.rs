//! What each question to a socket of TCP costs: `cargo run --release -p beeline-tcp --example call_cost`, on a quiet machine.
//!
//! Both ends are here, on one thread, connected over the loopback. Times are per call, the median of rounds and the least of them.

#![allow(clippy::unwrap_used, reason = "an example fails by panicking")]

use std::hint::black_box;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use beeline_tcp::{
    Peeked, Side, cookie, find, given, netns_cookie, other_socket, peek, reset, send, state, take, taken,
};

const ROUNDS: usize = 101;
const CALLS: u32 = 200;
const MESSAGE: [u8; 64] = [7; 64];

fn main() {
    let (client, server) = pair();
    println!("{:34} {:>9} {:>9}", "call", "median ns", "least ns");
    cost("given", || given(&client, Side::Connected).unwrap());
    cost("taken", || taken(&client).unwrap());
    cost("state", || state(&client).unwrap());
    cost("cookie", || cookie(&client).unwrap());
    cost("netns_cookie", || netns_cookie(&client).unwrap());
    cost("other_socket", || other_socket(&client).unwrap());
    let tuple = beeline_tcp::Tuple::of(&client).unwrap();
    cost("find (over netlink)", || find(tuple).unwrap());
    let mut out = [0; 64];
    cost("peek, nothing there", || peek(&server, &mut out).unwrap());

    cost("send 64 B, recv", || {
        assert_eq!(send(&client, &MESSAGE), Ok(64));
        while rustix::net::recv(&server, &mut out, rustix::net::RecvFlags::DONTWAIT).is_err() {}
    });
    cost("send 64 B, peek, take", || {
        assert_eq!(send(&client, &MESSAGE), Ok(64));
        while peek(&server, &mut out) != Ok(Peeked::Bytes(64)) {}
        take(&server, 64).unwrap();
    });
    send(&client, &MESSAGE).unwrap();
    while peek(&server, &mut out) != Ok(Peeked::Bytes(64)) {}
    cost("peek 64 B", || peek(&server, &mut out).unwrap());
    reset_cost();
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

/// Prints what a call costs in a row of many.
fn cost<T>(name: &str, mut call: impl FnMut() -> T) {
    let round = || {
        let start = Instant::now();
        (0..CALLS).for_each(|_| drop(black_box(call())));
        start.elapsed() / CALLS
    };
    print(name, std::iter::repeat_with(round).take(ROUNDS).collect());
}

/// A socket is reset once, so each call has a connection of its own.
fn reset_cost() {
    let once = || {
        let (client, _server) = pair();
        let start = Instant::now();
        reset(&client).unwrap();
        start.elapsed()
    };
    print("reset", std::iter::repeat_with(once).take(ROUNDS).collect());
}

fn print(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    println!("{name:34} {:>9} {:>9}", times[times.len() / 2].as_nanos(), times[0].as_nanos());
}
