//! How many bytes a socket was ever given, and how many were ever taken from it, by whomever.
//!
//! The kernel has no such counts, but has two parts of each: what the other side has acknowledged (`tcpi_bytes_acked`) and what it has not
//! (`SIOCOUTQ`); what has come (`tcpi_bytes_received`) and what of it is unread (`SIOCINQ`). The parts are read by different calls, between
//! which bytes move. The first part only grows, and while it stands still the second is exact; so the first is read before and after
//! the second, until it is the same. The result is then the count at the moment in which the second part was read.

use std::os::fd::{AsFd, BorrowedFd};

use beeline_tcp_sys::{self as sys, BytesOption};
use rustix::io::Errno;

use crate::State;

/// Who began a connection. The kernel counts the SYN of the side that connects as a byte that was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The socket was connected, also one to itself, or by both sides at once.
    Connected,
    Accepted,
}

/// Why a socket's bytes are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CountError {
    /// Before a connection is established, and in `Closed`, the kernel does not say whether a SYN or a FIN is among what it counts.
    #[error("a socket in state {0:?} does not tell how many bytes went through it")]
    NotOpen(State),
    /// Bytes were acknowledged, or came, at each of so many looks.
    #[error("the connection moved at each of {looks} looks; try again when it is quieter")]
    Moving { looks: u32 },
    /// The socket is accepted and was said to be connected, it has urgent data, or a program set its sequence numbers (`TCP_REPAIR`).
    #[error("the kernel's counts contradict each other: {whole} bytes, and {part} of them to be left out")]
    Contradiction { whole: u64, part: u64 },
    /// Linux before 4.1.
    #[error("this kernel's tcp_info has {bytes} bytes; the counts of bytes need {INFO_BYTES} (Linux 4.1)")]
    OldKernel { bytes: usize },
    /// Another kernel's number, or what a program of the administrator (BPF) answers in the kernel's place.
    #[error("the kernel gives a state of TCP without a name: {0}")]
    UnknownState(u8),
    #[error("cannot ask the kernel for a socket's counts: {0}")]
    System(Errno),
}

impl From<Errno> for CountError {
    fn from(errno: Errno) -> Self {
        CountError::System(errno)
    }
}

/// Bytes that `socket` was ever given to send, by any process that holds it, also by calls that have not returned. A FIN is no byte.
///
/// It reads the counts of a moment within the call. At least three system calls; each waits while another thread copies bytes into or out of
/// the socket, but for no byte of the other side.
///
/// # Errors
/// [`CountError`] says why the kernel's numbers are no count of bytes.
pub fn given(socket: impl AsFd, side: Side) -> Result<u64, CountError> {
    let socket = socket.as_fd();
    let first = || {
        let info = Info::of(socket)?;
        Ok((info.acknowledged, info.state.has_given_fin().ok_or(CountError::NotOpen(info.state))?))
    };
    let second = || Ok(u64::from(sys::unacknowledged(socket)?));
    let ((acknowledged, has_fin), queued) = settle(first, second)?;
    let (whole, part) = (acknowledged + queued, u64::from(side == Side::Connected) + u64::from(has_fin));
    whole.checked_sub(part).ok_or(CountError::Contradiction { whole, part })
}

/// Bytes that were ever taken from `socket`, by any process that holds it. A FIN is no byte, and neither is what was peeked at.
///
/// It reads the counts of a moment within the call. At least three system calls; each waits while another thread copies bytes into or out of
/// the socket, but for no byte of the other side. While urgent data is on its way (`MSG_OOB`), the kernel shows fewer bytes as unread than there
/// are, and the count is too high.
///
/// # Errors
/// [`CountError`] says why the kernel's numbers are no count of bytes.
pub fn taken(socket: impl AsFd) -> Result<u64, CountError> {
    let socket = socket.as_fd();
    let first = || {
        let info = Info::of(socket)?;
        Ok((info.received, info.state.has_received_fin().ok_or(CountError::NotOpen(info.state))?))
    };
    let second = || Ok(rustix::io::ioctl_fionread(socket)?);
    let ((whole, has_fin), unread) = settle(first, second)?;
    let part = unread.saturating_add(u64::from(has_fin));
    whole.checked_sub(part).ok_or(CountError::Contradiction { whole, part })
}

/// What the two sides of a connection tell each other to find out whether it is one.
///
/// What one side has told, and the other one looks at after that, is in this order if both are of one connection: what is taken at one end
/// was given at the other, and what is acknowledged at one end has come to the other. At rest both are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that were given before it was asked, at least; and of these what the other side has acknowledged, at most.
    pub given: u64,
    pub acknowledged: u64,
    /// Bytes that had come before it was asked, at least; and what of these was taken, at most.
    pub received: u64,
    pub taken: u64,
}

impl Progress {
    /// Whether this, which was read after `told`, may be of the other end of the same connection.
    pub fn may_be_the_other_end_of(&self, told: &Progress) -> bool {
        told.taken <= self.given && told.acknowledged <= self.received
    }
}

/// What went through an established `socket` so far. Three system calls, each of which waits while another thread copies bytes into or out of
/// the socket; bytes that move meanwhile make it less exact, never wrong.
///
/// # Errors
/// [`CountError`]; one that is not established tells nothing.
pub fn progress(socket: impl AsFd, side: Side) -> Result<Progress, CountError> {
    let socket = socket.as_fd();
    // First: bytes that are acknowledged before the next call are counted twice, and none is missed.
    let queued = u64::from(sys::unacknowledged(socket)?);
    let info = Info::of(socket)?;
    if info.state != State::Established {
        return Err(CountError::NotOpen(info.state));
    }
    let (whole, part) = (info.acknowledged, u64::from(side == Side::Connected));
    let acknowledged = whole.checked_sub(part).ok_or(CountError::Contradiction { whole, part })?;
    // Last: bytes that have come since the call before are taken for unread ones of before.
    let unread = rustix::io::ioctl_fionread(socket)?;
    let received = info.received;
    let (given, taken) = (acknowledged + queued, received.saturating_sub(unread));
    Ok(Progress { given, acknowledged, received, taken })
}

/// State of `socket`.
///
/// # Errors
/// [`CountError`], of which only those that the kernel's answer can be.
pub fn state(socket: impl AsFd) -> Result<State, CountError> {
    Info::of(socket.as_fd()).map(|info| info.state)
}

/// Looks until a count is given up: some 100 us, in which a sender without a pause is acknowledged at most looks.
const MAX_LOOKS: u32 = 64;

/// Reads the second part of a count between two equal readings of the first.
fn settle<F: PartialEq, S>(
    mut first: impl FnMut() -> Result<F, CountError>,
    mut second: impl FnMut() -> Result<S, CountError>,
) -> Result<(F, S), CountError> {
    let mut before = first()?;
    for _ in 0..MAX_LOOKS {
        let between = second()?;
        let after = first()?;
        if before == after {
            return Ok((after, between));
        }
        before = after;
    }
    Err(CountError::Moving { looks: MAX_LOOKS })
}

/// `struct tcp_info` up to and with `tcpi_bytes_received`.
const INFO_BYTES: usize = 136;
const ACKNOWLEDGED_AT: usize = 120;
const RECEIVED_AT: usize = 128;

/// What is used of `struct tcp_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Info {
    state: State,
    acknowledged: u64,
    received: u64,
}

impl Info {
    fn of(socket: BorrowedFd<'_>) -> Result<Info, CountError> {
        let mut bytes = [0; INFO_BYTES];
        let there = sys::get(socket, BytesOption::TcpInfo, &mut bytes)?;
        Info::read(&bytes, there)
    }

    /// Reads the first `there` bytes of `bytes`.
    fn read(bytes: &[u8; INFO_BYTES], there: usize) -> Result<Info, CountError> {
        if there < INFO_BYTES {
            return Err(CountError::OldKernel { bytes: there });
        }
        let count = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let state = State::from_number(bytes[0]).ok_or(CountError::UnknownState(bytes[0]))?;
        Ok(Info { state, acknowledged: count(ACKNOWLEDGED_AT), received: count(RECEIVED_AT) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_is_taken_between_two_readings_that_are_equal() {
        // Acknowledged one byte at each of the first three looks, while the queue loses it.
        let (mut acknowledged, mut looks) = (10, 0);
        let first = || {
            looks += 1;
            acknowledged += u64::from(looks <= 3);
            Ok(acknowledged)
        };
        let mut queued = 100;
        let second = || {
            queued -= 1;
            Ok(queued)
        };
        assert_eq!(settle(first, second), Ok((13, 97)));
        assert_eq!(looks, 4);
    }

    #[test]
    fn connection_that_never_stands_still_is_given_up() {
        let mut moves = 0_u64;
        let first = || {
            moves += 1;
            Ok(moves)
        };
        assert_eq!(settle(first, || Ok(0)), Err(CountError::Moving { looks: MAX_LOOKS }));
        assert_eq!(moves, u64::from(MAX_LOOKS) + 1);
    }

    #[test]
    fn shorter_answer_of_an_old_kernel_is_told() {
        let mut bytes = [0; INFO_BYTES];
        bytes[0] = State::CloseWait as u8;
        bytes[ACKNOWLEDGED_AT..RECEIVED_AT].copy_from_slice(&7_u64.to_ne_bytes());
        bytes[RECEIVED_AT..].copy_from_slice(&9_u64.to_ne_bytes());
        let info = Info { state: State::CloseWait, acknowledged: 7, received: 9 };
        assert_eq!(Info::read(&bytes, INFO_BYTES), Ok(info));
        for there in [0, 104, INFO_BYTES - 1] {
            let error = Info::read(&bytes, there).unwrap_err();
            assert_eq!(error, CountError::OldKernel { bytes: there });
            assert!(error.to_string().contains("Linux 4.1"), "{error}");
        }
        bytes[0] = 13;
        assert_eq!(Info::read(&bytes, INFO_BYTES), Err(CountError::UnknownState(13)));
    }
}
