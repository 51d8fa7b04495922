//! Programs whose calls go through the engine, as hooks would have them.
#![allow(dead_code, reason = "each test uses a part of it")]
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

use std::io::{IoSlice, IoSliceMut};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use beeline_domain::DomainConfig;
use beeline_socket_engine::{Sockets, Traffic, Turn};
use beeline_socket_rules::{Rules, Why};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Pid, Signal, WaitOptions, waitpid};

/// Nothing takes so long that does not hang.
pub const HANGS: Duration = Duration::from_secs(60);

static SOCKETS: OnceLock<Sockets> = OnceLock::new();

/// The engine of this process, whose domain is in this folder.
pub fn sockets(folder: &Path, rules: Rules) -> &'static Sockets {
    SOCKETS.get_or_init(|| {
        let domain = DomainConfig { root: Some(folder.to_owned()), name: "d".to_owned() };
        Sockets::new(rules.for_this_program(), domain)
    })
}

/// A connection, as a program has it.
pub struct Connection {
    pub socket: TcpStream,
    sockets: &'static Sockets,
}

impl Connection {
    pub fn connected(sockets: &'static Sockets, to: &TcpListener) -> Self {
        let socket = TcpStream::connect(to.local_addr().unwrap()).unwrap();
        sockets.connected(socket.as_fd());
        Connection { socket, sockets }
    }

    pub fn accepted(sockets: &'static Sockets, at: &TcpListener) -> Self {
        let socket = at.accept().unwrap().0;
        sockets.accepted(socket.as_fd());
        Connection { socket, sockets }
    }

    pub fn sockets(&self) -> &'static Sockets {
        self.sockets
    }

    pub fn receive_with(&self, out: &mut [u8], flags: RecvFlags) -> Result<usize, Errno> {
        match self.sockets.receive(self.socket.as_fd(), &mut [IoSliceMut::new(out)], flags) {
            Turn::Done(done) => done,
            Turn::Kernel(pass) => {
                let received = rustix::net::recv(&self.socket, out, flags).map(|(_, bytes)| bytes);
                pass.moved(received.unwrap_or(0));
                received
            }
        }
    }

    pub fn receive(&self, out: &mut [u8]) -> Result<usize, Errno> {
        self.receive_with(out, RecvFlags::empty())
    }

    pub fn send_with(&self, bytes: &[u8], flags: SendFlags) -> Result<usize, Errno> {
        match self.sockets.send(self.socket.as_fd(), &[IoSlice::new(bytes)], flags) {
            Turn::Done(done) => done,
            Turn::Kernel(pass) => {
                let sent = rustix::net::send(&self.socket, bytes, flags | SendFlags::NOSIGNAL);
                pass.moved(sent.unwrap_or(0));
                sent
            }
        }
    }

    pub fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        self.send_with(bytes, SendFlags::empty())
    }

    pub fn send_all(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let sent = self.send(bytes).unwrap();
            bytes = &bytes[sent..];
        }
    }

    /// Fills all of `out`, before the end.
    pub fn receive_all(&self, out: &mut [u8]) {
        let mut filled = 0;
        while filled < out.len() {
            let bytes = self.receive(&mut out[filled..]).unwrap();
            assert!(bytes > 0, "it ended behind {filled} bytes");
            filled += bytes;
        }
    }

    pub fn shut_down(&self) {
        if self.sockets.shutdown(self.socket.as_fd(), rustix::net::Shutdown::Write) {
            rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write).unwrap();
        }
    }

    pub fn traffic(&self) -> Traffic {
        self.sockets
            .endpoint(self.socket.as_raw_fd())
            .map_or(Traffic::default(), |endpoint| endpoint.traffic())
    }

    /// Why it is the kernel's, if it is.
    pub fn why(&self) -> Option<Why> {
        self.sockets.endpoint(self.socket.as_raw_fd())?.why()
    }

    /// Whether its bytes come and go by windows.
    pub fn is_carried(&self) -> bool {
        let traffic = self.traffic();
        traffic.received_by_window_bytes > 0 && traffic.sent_by_window_bytes > 0
    }

    pub fn close(self) {
        self.sockets.close(self.socket.as_fd());
    }
}

/// Sends messages to who answers them ([`answer`]) until both ways are carried.
pub fn warm_up(connection: &Connection) {
    let started = Instant::now();
    let mut number = 0_u64;
    while !connection.is_carried() {
        assert!(
            started.elapsed() < HANGS,
            "not carried: {:?}, {:?}, {:?}",
            connection.traffic(),
            connection.socket,
            connection.why()
        );
        number += 1;
        connection.send_all(&number.to_le_bytes());
        let mut answer = [0; 8];
        connection.receive_all(&mut answer);
        assert_eq!(u64::from_le_bytes(answer), number);
    }
}

/// Sends back what comes until the end.
pub fn answer(connection: &Connection) {
    let mut bytes = vec![0; 1 << 16];
    loop {
        match connection.receive(&mut bytes).unwrap() {
            0 => break,
            received => connection.send_all(&bytes[..received]),
        }
    }
}

/// Sends back the numbers of [`warm_up`] until the last, `u64::MAX`.
pub fn answer_to_the_last(connection: &Connection) {
    let mut bytes = [0; 8];
    while u64::from_le_bytes(bytes) != u64::MAX {
        connection.receive_all(&mut bytes);
        connection.send_all(&bytes);
    }
}

/// Byte `at` of a stream.
pub fn byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29) as u8
}

/// Runs a part in a child, in which the engine is its own. The child is killed when the test that made it has failed.
pub fn in_child(part: impl FnOnce()) -> Pid {
    match fork::fork().unwrap() {
        fork::Fork::Child => {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(part));
            if let Err(panic) = &ended {
                // What a test prints is kept by the harness, of which there is a copy here that nobody reads.
                let text = panic.downcast_ref::<String>().map_or("the other end failed", String::as_str);
                let _ = rustix::io::write(rustix::stdio::stderr(), format!("{text}\n").as_bytes());
            }
            beeline_mmio::end_child(i32::from(ended.is_err()))
        }
        fork::Fork::Parent(child) => Pid::from_raw(child).unwrap(),
    }
}

/// As [`in_child`], with the connections of this process, as hooks tell the engine of a fork.
pub fn in_fork(sockets: &Sockets, part: impl FnOnce()) -> Pid {
    sockets.before_fork();
    let child = in_child(|| {
        // It may have its connections longer than its parent.
        rustix::process::set_parent_process_death_signal(None).unwrap();
        sockets.in_child();
        part();
    });
    sockets.after_fork();
    child
}

pub fn exit_of(child: Pid) -> Option<i32> {
    waitpid(Some(child), WaitOptions::empty()).unwrap().unwrap().1.exit_status()
}
