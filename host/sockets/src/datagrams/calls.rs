//! Calls on sockets of UDP, as hooks make them.

use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use beeline_socket_rules::Why;
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::flow::{Asking, Flow};
use super::passing;
use super::socket::{Counted, DatagramSocket, Known, peer_of};
use super::table;
use super::turn::{DatagramTurn, Step};
use crate::lock::is_any_held_here;
use crate::numbers::{self, Claim, Number, Pass, What};
use crate::sockets::Sockets;
use crate::turn::Turn;

impl Sockets {
    /// This process has made a socket of UDP.
    pub fn datagrams_made(&self, socket: BorrowedFd<'_>) {
        self.forget_number(socket.as_raw_fd());
        if self.process().rules().udp
            && let Some(number) = numbers::number(socket.as_raw_fd())
        {
            number.begin(What::DatagramCandidate);
        }
    }

    /// Whether a number that is known is a socket of UDP: one load.
    #[inline]
    pub fn is_of_datagrams(&self, number: RawFd) -> bool {
        numbers::number(number).is_some_and(Number::is_of_datagrams)
    }

    /// The socket of UDP that has a number, if it was worth it.
    pub fn datagram_socket(&self, number: RawFd) -> Option<&'static DatagramSocket> {
        match numbers::number(number)?.claim().0 {
            What::Datagrams(index) => Some(table::socket(index)).filter(|socket| socket.is_own()),
            _ => None,
        }
    }

    /// Receives a datagram, and waits for it as the program would.
    #[inline]
    pub fn receive_datagram(
        &self,
        socket: BorrowedFd<'_>,
        out: &mut [IoSliceMut<'_>],
        flags: RecvFlags,
    ) -> DatagramTurn {
        if is_any_held_here() && self.datagram_socket(socket.as_raw_fd()).is_some() {
            // A handler that has interrupted its own thread in the engine, and cannot wait for it.
            return DatagramTurn::Done(Err(Errno::AGAIN));
        }
        loop {
            let (own, claim) = match self.own_socket(socket) {
                Own::Kernel => return DatagramTurn::Kernel(Pass::uncounted()),
                Own::Candidate(claim) => match Step::of(claim.read()) {
                    Step::Turn(turn) => return turn,
                    Step::Again => continue,
                },
                Own::Socket(own, claim) => (own, claim),
            };
            match own.receive(self.process(), claim, socket, out, flags) {
                Step::Turn(DatagramTurn::Done(Ok(datagram))) => {
                    if !datagram.is_of_window && !flags.contains(RecvFlags::PEEK) {
                        self.note_heard(own, socket, datagram.from);
                    }
                    return DatagramTurn::Done(Ok(datagram));
                }
                Step::Turn(turn) => return turn,
                Step::Again => {}
            }
        }
    }

    /// Sends a datagram to an address, or to the one that the socket is connected to.
    #[inline]
    pub fn send_datagram(
        &self,
        socket: BorrowedFd<'_>,
        to: Option<SocketAddr>,
        pieces: &[IoSlice<'_>],
    ) -> Turn {
        if is_any_held_here() {
            return Turn::Kernel(Pass::uncounted());
        }
        loop {
            let (own, claim) = match self.own_socket(socket) {
                Own::Kernel => return Turn::Kernel(Pass::uncounted()),
                Own::Candidate(claim) => match claim.write() {
                    Some(pass) => return Turn::Kernel(pass),
                    None => continue,
                },
                Own::Socket(own, claim) => (own, claim),
            };
            match own.send(self, socket, claim, to, pieces) {
                passing::Step::Sent(bytes) => return Turn::Done(Ok(bytes)),
                passing::Step::Failed(errno) => return Turn::Done(Err(errno)),
                passing::Step::Kernel(pass, flow) => {
                    if let Some(flow) = flow {
                        own.count(Counted::Sent);
                        self.count_flow(own, socket, &flow);
                    }
                    return Turn::Kernel(pass);
                }
                passing::Step::Again => {}
            }
        }
    }

    /// The kernel gave the program a datagram from this address.
    pub fn heard_datagram(&self, socket: BorrowedFd<'_>, from: Option<SocketAddr>) {
        if !is_any_held_here()
            && let Some(own) = self.datagram_socket(socket.as_raw_fd())
        {
            own.count(Counted::Received);
            self.note_heard(own, socket, from.or_else(|| own.lock_writer().peer));
        }
    }

    fn note_heard(&self, own: &'static DatagramSocket, socket: BorrowedFd<'_>, from: Option<SocketAddr>) {
        let Some(from) = from else { return };
        if own.is_for_groups() {
            return self.note_heard_by_member(own, socket, from);
        }
        if let Some(flow) = own.flow(from) {
            flow.hear();
            self.count_flow(own, socket, &flow);
        }
    }

    /// The program gives the socket datagrams by a call that the engine does not make.
    pub fn sends_datagrams_by_kernel(&self, socket: BorrowedFd<'_>) {
        if !is_any_held_here()
            && let Some(own) = self.datagram_socket(socket.as_raw_fd())
        {
            own.sends_by_kernel();
        }
    }

    /// Bytes of the datagram that a receive would find in a window (`FIONREAD`); `None`: the kernel knows.
    pub fn next_datagram_bytes(&self, number: RawFd) -> Option<usize> {
        if is_any_held_here() { None } else { self.datagram_socket(number)?.next_length() }
    }

    fn own_socket(&self, socket: BorrowedFd<'_>) -> Own {
        let Some(number) = numbers::number(socket.as_raw_fd()) else { return Own::Kernel };
        loop {
            let (what, claim) = number.claim();
            match what {
                What::DatagramCandidate
                    if number.traffic().0 < self.process().rules().begin_after_messages =>
                {
                    return Own::Candidate(claim);
                }
                What::DatagramCandidate => self.nominate_datagrams(socket, claim),
                What::Datagrams(index) => {
                    let own = table::socket(index);
                    // A child's is the kernel's: its parent has gone back there.
                    return if own.is_own() { Own::Socket(own, claim) } else { Own::Kernel };
                }
                _ => return Own::Kernel,
            }
        }
    }

    /// Makes a socket that was worth it known, or leaves it to the kernel for ever.
    #[cold]
    pub(super) fn nominate_datagrams(&self, socket: BorrowedFd<'_>, claim: Claim) {
        let own = known_of(socket).and_then(|known| Some((table::take()?, known)));
        let Some((own, known)) = own else {
            let _ = claim.number.forget();
            return;
        };
        own.begin(&known);
        if !claim.becomes(What::Datagrams(own.index)) {
            // Another thread was first, or has closed it.
            table::give(own);
        }
    }

    /// Counts a datagram that the kernel carries, and looks for the process at the other end when it was worth it.
    fn count_flow(&self, own: &'static DatagramSocket, socket: BorrowedFd<'_>, flow: &Arc<Flow>) {
        if let Some(flow) = flow.count() {
            self.look_for(own, socket, flow);
        }
    }

    #[cold]
    fn look_for(&self, own: &'static DatagramSocket, socket: BorrowedFd<'_>, flow: Asking) {
        let Some(ends) = own.ends(socket, flow.remote) else { return flow.forbid(Why::PeerUnknown) };
        self.meet_other_end(flow, own.cookie(), ends);
    }

    /// A number of the socket is about to be closed, or has been, by a call that nobody saw.
    pub(crate) fn close_datagrams(&self, index: u32, socket: Option<BorrowedFd<'_>>) {
        let own = table::socket(index);
        if is_any_held_here() {
            // Of a handler: what it has interrupted has it still, and it is not used again.
            return;
        }
        let one_less = |copies: u32| copies.checked_sub(1);
        if !own.is_own() || own.copies.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
            return;
        }
        if socket.is_some_and(|socket| own.keep(socket, self.process())) {
            return;
        }
        self.process().give_memory(own.end());
        table::give(own);
    }

    pub(crate) fn forbid_datagrams(&self, index: u32, why: Why) {
        let own = table::socket(index);
        if own.is_own() {
            own.forbid(why);
        }
    }
}

/// What a number of a socket of UDP is.
enum Own {
    /// The kernel's for ever.
    Kernel,
    Candidate(Claim),
    Socket(&'static DatagramSocket, Claim),
}

/// What has to be known of a socket; `None` where the kernel does not say, or it is none of UDP.
fn known_of(socket: BorrowedFd<'_>) -> Option<Known> {
    if !beeline_tcp::is_udp(socket) {
        return None;
    }
    Some(Known {
        number: socket.as_raw_fd(),
        cookie: beeline_tcp::cookie(socket).ok()?,
        peer: peer_of(socket),
        is_v6: SocketAddr::try_from(rustix::net::getsockname(socket).ok()?).ok()?.is_ipv6(),
        is_nonblocking: fcntl_getfl(socket).ok()?.contains(OFlags::NONBLOCK),
    })
}
