//! A peer passes a descriptor that takes long to close: nobody's death is seen later for that.
//!
//! A file of its own, because a test that starts a process meanwhile would have that process close the descriptor.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use beeline_domain::{Answer, Departure, Peer, Refusal, Reply, Service};
use harness::{Role, TestFolder, WATCHDOG, say, wait_for_end};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix};

/// The first request of a client with which the domain's thread waits.
const HOLD: &[u8] = b"hold";

/// Tells which peers go, and how. The domain's thread waits with a client that asks for it until the test goes on.
struct Departures {
    told: Sender<(u32, Departure)>,
    held: Sender<()>,
    go_on: Receiver<()>,
}

impl Service for Departures {
    fn connected(&mut self, _: &Peer, request: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        if request == HOLD {
            self.held.send(()).unwrap();
            self.go_on.recv().unwrap();
        }
        Ok(Reply::default().into())
    }

    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply::default().into())
    }

    fn departed(&mut self, peer: &Peer) {
        self.told.send((peer.pid(), peer.departure().unwrap())).unwrap();
    }
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    let _connection = role.open().connect("name", b"", &[]).unwrap();
    say("connected");
    wait_for_end();
}

/// A socket whose last descriptor takes an hour to close: it lingers, and what was sent over it is not read.
fn lingering() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (theirs, _) = listener.accept().unwrap();
    ours.set_nonblocking(true).unwrap();
    while std::io::Write::write(&mut &ours, &[0; 65536]).is_ok() {}
    let ours = OwnedFd::from(ours);
    rustix::net::sockopt::set_socket_linger(&ours, Some(Duration::from_secs(3600))).unwrap();
    (ours, theirs)
}

/// Passes a descriptor to the owner in a packet that no client of ours sends.
fn pass(folder: &TestFolder, fd: &OwnedFd) -> OwnedFd {
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    let address = SocketAddrUnix::new(folder.path().join("test/name.sock")).unwrap();
    rustix::net::connect(&socket, &address).unwrap();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let rights = [fd.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&rights)));
    let parts = [IoSlice::new(b"not a packet of ours")];
    rustix::net::sendmsg(&socket, &parts, &mut control, SendFlags::empty()).unwrap();
    socket
}

#[test]
fn closing_what_a_peer_passes_delays_no_death() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let ((told, departed), (held, is_held), (may_go_on, go_on)) = (channel(), channel(), channel());
    let _offer = domain.offer("name", Box::new(Departures { told, held, go_on })).unwrap();
    let mut victim = folder.helper("client", "");
    victim.expect("connected");
    let holder = {
        let domain = domain.clone();
        std::thread::spawn(move || domain.connect("name", HOLD, &[]).unwrap())
    };
    is_held.recv_timeout(WATCHDOG).unwrap();
    let (fd, _unread) = lingering();
    let _socket = pass(&folder, &fd);
    // From here on the only descriptor is the one on its way: the domain's thread has not taken it. Had it closed its own
    // before, this line would take the minute after which the kernel gives up such a socket.
    drop(fd);
    may_go_on.send(()).unwrap();
    let _held = holder.join().unwrap();
    let pid = victim.pid();
    victim.kill();
    assert_eq!(departed.recv_timeout(WATCHDOG / 4).unwrap(), (pid, Departure::Died));
    // And the domain's thread goes on.
    let (mine, _) = domain.connect("name", b"mine", &[]).unwrap();
    drop(mine);
    assert_eq!(departed.recv_timeout(WATCHDOG).unwrap().1, Departure::Closed);
}
