//! A socket that somebody else is about to use: by another number of this process, or who does not know of windows.

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use beeline_socket_rules::Why;
use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::endpoints::endpoint;
use crate::numbers::{self, What};
use crate::sockets::Sockets;
use crate::turn::Turn;

const BETWEEN_LOOKS: Duration = Duration::from_micros(200);

impl Sockets {
    /// The program has given the socket of a connection a second number, by which calls come from now on too.
    pub fn duplicated(&self, from_number: RawFd, to: RawFd) {
        let (Some(from), Some(to)) = (numbers::number(from_number), numbers::number(to)) else { return };
        match from.claim().0 {
            What::Endpoint(index) => endpoint(index).copies.fetch_add(1, Ordering::Relaxed),
            What::Datagrams(_) => {
                let Some(own) = self.datagram_socket(from_number) else { return };
                own.copies.fetch_add(1, Ordering::Relaxed)
            }
            _ => return,
        };
        to.become_(from.claim().0);
    }

    /// Leaves a connection to the kernel for ever, before somebody uses its socket who does not know of windows. Waits until the other process sends by
    /// the socket, which its thread has it do at once, or it is `until`. `false` where bytes of the window would be missing for whoever that is, because they are not received yet, or the other process is stopped.
    pub fn hand_over(&self, socket: BorrowedFd<'_>, why: Why, until: Instant) -> bool {
        self.forbid(socket, why);
        while self.reads_by_ledger(socket) {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        true
    }

    /// Resets a connection of which bytes would be missing.
    pub fn reset(&self, socket: BorrowedFd<'_>) -> Option<Errno> {
        let endpoint = self.endpoint(socket.as_raw_fd())?;
        Some(
            endpoint.reset(socket, &"bytes of the window are not received, and somebody else has the socket"),
        )
    }

    fn reads_by_ledger(&self, socket: BorrowedFd<'_>) -> bool {
        if self.endpoint(socket.as_raw_fd()).is_none() {
            return false;
        }
        // Goes on to what the sender does next, and takes nothing.
        let mut byte = [0];
        let out = &mut [IoSliceMut::new(&mut byte)];
        matches!(self.receive(socket, out, RecvFlags::PEEK | RecvFlags::DONTWAIT), Turn::Done(_))
    }
}
