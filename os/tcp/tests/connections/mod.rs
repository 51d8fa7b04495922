//! Connections of the loopback, and what a test waits for.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use beeline_tcp::Side;

/// Long enough for any machine; nothing waits for it unless it fails.
pub const WATCHDOG: Duration = Duration::from_secs(60);

/// By which addresses a connection is made.
#[derive(Clone, Copy, Debug)]
pub enum Family {
    Ipv4,
    Ipv6,
    /// IPv4 between sockets of IPv6.
    Mapped,
}

pub const FAMILIES: [Family; 3] = [Family::Ipv4, Family::Ipv6, Family::Mapped];

impl Family {
    pub fn listener(self) -> TcpListener {
        match self {
            Family::Ipv4 => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)),
            Family::Ipv6 => TcpListener::bind((Ipv6Addr::LOCALHOST, 0)),
            Family::Mapped => TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)),
        }
        .unwrap()
    }

    pub fn connect(self, listener: &TcpListener) -> TcpStream {
        let port = listener.local_addr().unwrap().port();
        let address: SocketAddr = match self {
            Family::Ipv4 => (Ipv4Addr::LOCALHOST, port).into(),
            Family::Ipv6 => (Ipv6Addr::LOCALHOST, port).into(),
            Family::Mapped => (Ipv4Addr::LOCALHOST.to_ipv6_mapped(), port).into(),
        };
        TcpStream::connect(address).unwrap()
    }
}

/// One end of a connection, and who began it.
pub struct End {
    pub stream: TcpStream,
    pub side: Side,
}

/// The end that connected, and the one that accepted.
pub fn pair(family: Family) -> [End; 2] {
    let listener = family.listener();
    let stream = family.connect(&listener);
    let accepted = listener.accept().unwrap().0;
    [End { stream, side: Side::Connected }, End { stream: accepted, side: Side::Accepted }]
}

/// A socket that is connected to itself.
pub fn to_itself() -> End {
    use rustix::net::{AddressFamily, SocketType, bind, connect, getsockname, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    connect(&socket, &getsockname(&socket).unwrap()).unwrap();
    End { stream: socket.into(), side: Side::Connected }
}

pub fn wait_until(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + WATCHDOG;
    while !is_so() {
        assert!(Instant::now() < deadline, "it does not come");
        std::thread::yield_now();
    }
}

/// Whether a thread of this process waits in the kernel.
pub fn sleeps(thread: rustix::thread::Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().trim_start().starts_with('S')
}
