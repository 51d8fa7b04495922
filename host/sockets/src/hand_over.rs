//! A socket that somebody else is about to use: by another number of this process, or who does not know of windows.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use beeline_socket_rules::Why;
use rustix::io::Errno;

use crate::carried::Carried;
use crate::endpoint::Endpoint;
use crate::endpoints::endpoint;
use crate::give_back::Back;
use crate::lock::locked;
use crate::numbers::{self, What};
use crate::poll::sleep_for;
use crate::sockets::Sockets;

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

    /// Leaves a connection to the kernel for ever, before somebody uses its socket who does not know of windows. Bytes of the window that were not
    /// received come by the socket again: the other process has them back, and its thread sends them. `false` where that process is stopped or gone, or
    /// has ended its direction, so that bytes would be missing for whoever that is.
    pub fn hand_over(&self, socket: BorrowedFd<'_>, why: Why, until: Instant) -> bool {
        let Some(number) = numbers::number(socket.as_raw_fd()) else { return true };
        if !matches!(number.claim().0, What::Endpoint(_)) {
            self.forbid(socket, why);
            return true;
        }
        match self.carried_to_wait_for(socket) {
            Some(Carried::Connection(endpoint)) => self.give_back(endpoint, socket, why, until),
            Some(Carried::Datagrams(_)) | None => true,
        }
    }

    /// As [`Sockets::hand_over`], where this process may never use the connection: one that another process of the family has used since they were forked is that
    /// one's, and stays as it is.
    pub fn hand_over_if_unused(&self, socket: BorrowedFd<'_>, why: Why, until: Instant) -> bool {
        let Some(number) = numbers::number(socket.as_raw_fd()) else { return true };
        let What::Endpoint(index) = number.claim().0 else {
            self.forbid(socket, why);
            return true;
        };
        let endpoint = endpoint(index);
        let is_taken = endpoint.is_settled()
            || !endpoint.is_plain()
                && if self.is_own(endpoint) { endpoint.claim() } else { endpoint.adopt() };
        !is_taken || self.give_back(endpoint, socket, why, until)
    }

    pub(crate) fn give_back(
        &self,
        endpoint: &Endpoint,
        socket: BorrowedFd<'_>,
        why: Why,
        until: Instant,
    ) -> bool {
        endpoint.forbid(why);
        endpoint.send_no_more_here(&mut endpoint.lock_writer(), Some(socket));
        let is_back = match endpoint.give_back(self.process(), socket, until) {
            Back::All => endpoint.settle_sending(until),
            Back::Nothing => false,
            Back::Lost(why) => {
                endpoint.reset(socket, &why);
                false
            }
        };
        if is_back {
            endpoint.make_plain();
        }
        is_back
    }

    /// Resets a connection of which bytes would be missing.
    pub fn reset(&self, socket: BorrowedFd<'_>) -> Option<Errno> {
        let endpoint = self.endpoint(socket.as_raw_fd())?;
        Some(
            endpoint.reset(socket, &"bytes of the window are not received, and somebody else has the socket"),
        )
    }
}

impl Endpoint {
    /// Every process of the family may use its socket from now on, as the kernel has it.
    fn make_plain(&self) {
        if let Some(agreed) = locked(&self.meeting).as_ref().and_then(|meeting| meeting.agreed.as_ref()) {
            agreed.slot.received_returns().make_plain();
        }
    }

    pub(crate) fn is_plain(&self) -> bool {
        // In a child it may be locked for ever, by a thread of its parent's.
        let Ok(meeting) = self.meeting.try_lock() else { return false };
        let agreed = meeting.as_ref().and_then(|meeting| meeting.agreed.as_ref());
        agreed.is_some_and(|agreed| agreed.slot.received_returns().is_plain())
    }

    /// Waits until it is, but not longer.
    pub(crate) fn becomes_plain(&self, until: Instant) -> bool {
        while !self.is_plain() {
            if Instant::now() >= until {
                return false;
            }
            sleep_for(BETWEEN_LOOKS);
        }
        true
    }
}
