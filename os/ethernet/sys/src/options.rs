//! Socket options that are an integer.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

/// An option whose value is an integer; the kernel reads four bytes and keeps no pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntOption {
    /// Frames that are sent pass no queueing discipline (AF_PACKET).
    PacketQdiscBypass,
    /// Frames that this machine sends are not received (AF_PACKET).
    PacketIgnoreOutgoing,
    /// The device's frames are taken by whoever polls the socket, not by interrupts.
    PreferBusyPoll,
    /// Microseconds to poll the device for in a blocking call; 0 is off. More than `net.core.busy_read` needs
    /// CAP_NET_ADMIN.
    BusyPollMicroseconds,
    /// Frames to take from the device in one poll.
    BusyPollBudget,
}

impl IntOption {
    fn level_and_name(self) -> (libc::c_int, libc::c_int) {
        match self {
            IntOption::PacketQdiscBypass => (libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS),
            IntOption::PacketIgnoreOutgoing => (libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING),
            IntOption::PreferBusyPoll => (libc::SOL_SOCKET, libc::SO_PREFER_BUSY_POLL),
            IntOption::BusyPollMicroseconds => (libc::SOL_SOCKET, libc::SO_BUSY_POLL),
            IntOption::BusyPollBudget => (libc::SOL_SOCKET, libc::SO_BUSY_POLL_BUDGET),
        }
    }
}

/// Sets an option of a socket.
///
/// # Errors
/// What the kernel says; `NOPROTOOPT` when it does not know the option, `PERM` when it needs a capability.
pub fn set(socket: impl AsFd, option: IntOption, value: i32) -> Result<(), Errno> {
    let (level, name) = option.level_and_name();
    set_bytes(socket, level, name, &value)
}

/// Sets an option to the bytes of `value`, which has no padding and holds no pointer.
pub(crate) fn set_bytes<T: Copy>(
    socket: impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> Result<(), Errno> {
    let fd = socket.as_fd().as_raw_fd();
    let bytes = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is borrowed for the call and the kernel reads `bytes` bytes of `value`, which lives through
    // it; the options of this crate change a socket's behaviour, no memory of ours.
    let done = unsafe { libc::setsockopt(fd, level, name, std::ptr::from_ref(value).cast(), bytes) };
    check(done)
}

/// The error that the last call of this thread left, if `result` says that there is one.
pub(crate) fn check(result: libc::c_int) -> Result<(), Errno> {
    match result {
        0.. => Ok(()),
        _ => Err(last_error()),
    }
}

pub(crate) fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketType, socket};

    use super::*;

    #[test]
    fn an_option_of_another_family_is_refused() {
        let udp = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
        assert_eq!(set(&udp, IntOption::PacketQdiscBypass, 1), Err(Errno::NOPROTOOPT));
        assert_eq!(set(&udp, IntOption::BusyPollMicroseconds, 0), Ok(()));
        assert_eq!(set(&udp, IntOption::BusyPollBudget, -1), Err(Errno::INVAL));
    }
}
