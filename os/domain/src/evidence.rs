//! Which process is at the other end of a socket, and whether it lives: the kernel's word, not the peer's.
//!
//! `SO_PEERCRED` names process and user; `SO_PEERPIDFD` (Linux 6.5) gives a descriptor of exactly that process, which
//! becomes readable when it ends, whoever inherited its sockets. An older kernel gives only the process id, which may
//! have been given to another process meanwhile; then the peer says when it started, and a pidfd opened by number
//! counts only if `/proc` shows that start time. A lie there hurts only the liar: it is watched as somebody else.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};

use nix::sys::socket::sockopt::{PeerCredentials, PeerPidfd};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};

use crate::descriptor::Descriptor;
use crate::file_identity::is_numbered_pidfd;
use crate::numbers::Purpose;

/// Why there is no evidence about a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EvidenceError {
    /// The process at the other end has ended.
    Gone { pid: u32 },
    /// The process cannot be seen from here: another pid namespace, on a kernel without `SO_PEERPIDFD`.
    Invisible,
    /// The kernel refused something.
    System(Errno),
}

/// The process at the other end of a socket and its user, as the kernel names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// 0 for a process outside this pid namespace.
    pub(crate) pid: u32,
    pub(crate) uid: u32,
}

/// A process, pinned by a pidfd.
#[derive(Debug)]
pub(crate) struct Evidence {
    pid: u32,
    uid: u32,
    pidfd: Descriptor,
    /// Whether the kernel vouches for the pidfd; otherwise [`Evidence::confirm`] has to.
    exact: bool,
}

impl Evidence {
    /// The process that connected (seen by the owner) or listened (seen by a client) at the other end of `socket`.
    pub(crate) fn of_peer(socket: BorrowedFd<'_>) -> Result<Self, EvidenceError> {
        Self::of_named(socket, credentials(socket)?)
    }

    /// As [`Evidence::of_peer`], with what [`credentials`] said.
    pub(crate) fn of_named(
        socket: BorrowedFd<'_>,
        Credentials { pid, uid }: Credentials,
    ) -> Result<Self, EvidenceError> {
        if !peer_pidfd_is_supported() {
            return Self::by_number(pid, uid);
        }
        match nix::sys::socket::getsockopt(&socket, PeerPidfd) {
            Ok(pidfd) => {
                close_on_exec(&pidfd);
                // One that has ended is reported by its pidfd at once.
                Ok(Evidence { pid, uid, pidfd: Descriptor::new(pidfd, Purpose::Process), exact: true })
            }
            Err(error @ (nix::Error::EMFILE | nix::Error::ENFILE | nix::Error::ENOMEM)) => {
                Err(EvidenceError::System(Errno::from_raw_os_error(error as i32)))
            }
            Err(nix::Error::ENOPROTOOPT) => Self::by_number(pid, uid),
            // ESRCH, EINVAL or ENODATA, depending on the kernel: the process was reaped.
            Err(_) => Err(EvidenceError::Gone { pid }),
        }
    }

    /// Opens a process by its number; it still has to be confirmed.
    fn by_number(pid: u32, uid: u32) -> Result<Self, EvidenceError> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(EvidenceError::Invisible)?;
        match rustix::process::pidfd_open(number, PidfdFlags::empty()) {
            Ok(pidfd) => {
                Ok(Evidence { pid, uid, pidfd: Descriptor::new(pidfd, Purpose::Process), exact: false })
            }
            Err(Errno::SRCH | Errno::INVAL) => Err(EvidenceError::Gone { pid }),
            Err(error) => Err(EvidenceError::System(error)),
        }
    }

    /// Checks a peer that says it started at `claimed_ticks`. A pidfd opened by number is of the process that has that
    /// start time only if the process is still alive after `/proc` was read: its number cannot have been reused.
    pub(crate) fn confirm(&self, claimed_ticks: u64) -> Result<(), EvidenceError> {
        if self.exact {
            return Ok(());
        }
        let found = started_ticks(&self.pid.to_string());
        if found == Some(claimed_ticks) && !self.has_died() {
            return Ok(());
        }
        Err(EvidenceError::Gone { pid: self.pid })
    }

    /// Whether the process runs, after everything that was seen of it: then it closes descriptors because it wants to, not
    /// because it dies. `false` says nothing. A few system calls on `/proc`.
    pub(crate) fn still_runs(&self) -> bool {
        // In this order: what was read is about this process, whose number was not free before it was reaped.
        has_address_space(self.pid) && !self.has_died()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn uid(&self) -> u32 {
        self.uid
    }

    /// The number of the process that no other ever has, in whatever namespace; `None` before Linux 6.9.
    pub(crate) fn inode(&self) -> Option<u64> {
        if self.exact { inode(self.pidfd.hold().as_fd()) } else { None }
    }

    pub(crate) fn pidfd(&self) -> &Descriptor {
        &self.pidfd
    }

    /// Whether the process has ended; a stopped one has not. One system call.
    pub(crate) fn has_died(&self) -> bool {
        // A file that took the number says nothing about the process.
        self.pidfd.check().is_ok_and(|pidfd| is_readable(pidfd.as_fd()))
    }
}

/// Whether `/proc` shows that a process has an address space. It gives that up when it begins to end, before it closes its
/// first descriptor, and a program that is started with exec has one at any time. `false` if `/proc` does not say.
fn has_address_space(pid: u32) -> bool {
    if pid == 0 || !proc_names_our_processes() {
        return false;
    }
    // Bytes of it, in pages, are the first number.
    let sizes = std::fs::read_to_string(format!("/proc/{pid}/statm"));
    let pages = sizes.ok().and_then(|sizes| sizes.split_ascii_whitespace().next()?.parse::<u64>().ok());
    pages.is_some_and(|pages| pages > 0)
}

/// Whether the numbers in `/proc` are those of our pid namespace.
fn proc_names_our_processes() -> bool {
    let own = std::fs::read_link("/proc/self").ok();
    own.and_then(|own| own.to_str()?.parse::<u32>().ok()) == Some(std::process::id())
}

/// Whether a descriptor is readable now.
pub(crate) fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(rustix::event::poll(&mut fds, Some(&now)), Ok(1))
}

/// Process id and user at the other end. Not through rustix, whose process id cannot be the 0 that the kernel gives
/// for a process outside this pid namespace.
pub(crate) fn credentials(socket: BorrowedFd<'_>) -> Result<Credentials, EvidenceError> {
    let found = nix::sys::socket::getsockopt(&socket, PeerCredentials)
        .map_err(|e| EvidenceError::System(Errno::from_raw_os_error(e as i32)))?;
    Ok(Credentials { pid: u32::try_from(found.pid()).unwrap_or(0), uid: found.uid() })
}

/// The kernel sets this flag on every pidfd; it is set again because a descriptor that leaks into another program is
/// the one thing that this crate must not have.
fn close_on_exec(fd: &OwnedFd) {
    let _ = rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC);
}

/// Whether this kernel gives the pidfd of a socket's peer.
pub(crate) fn peer_pidfd_is_supported() -> bool {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    /// 0 for not known. Not a `OnceLock`: in a child of fork it could be one that is filled for ever.
    static SUPPORTED: AtomicU8 = AtomicU8::new(0);
    // Relaxed: the value alone matters, and who comes first twice finds the same.
    match SUPPORTED.load(Ordering::Relaxed) {
        0 => {
            let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
            // Without descriptors nothing is learned about the kernel; who asks for the pidfd of a peer is told.
            let Ok((a, _b)) = pair else { return true };
            let is_supported = match nix::sys::socket::getsockopt(&a, PeerPidfd) {
                Err(nix::Error::EMFILE | nix::Error::ENFILE | nix::Error::ENOMEM) => return true,
                answer => answer.is_ok(),
            };
            SUPPORTED.store(1 + u8::from(is_supported), Ordering::Relaxed);
            is_supported
        }
        known => known == 2,
    }
}

/// This process's number that no other ever has; `None` before Linux 6.9.
pub(crate) fn own_inode() -> Option<u64> {
    let pidfd = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).ok()?;
    inode(pidfd.as_fd())
}

fn inode(pidfd: BorrowedFd<'_>) -> Option<u64> {
    let stat = rustix::fs::fstat(pidfd).ok()?;
    is_numbered_pidfd(pidfd).then_some(stat.st_ino)
}

/// Whether this kernel gives pidfds at all.
pub(crate) fn pidfd_is_supported() -> bool {
    rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).is_ok()
}

/// When this process started, in clock ticks since boot; 0 where `/proc` does not say.
pub(crate) fn own_started_ticks() -> u64 {
    started_ticks("self").unwrap_or(0)
}

/// Field 22 of `/proc/<pid>/stat`. The second field, the program's name in parentheses, may hold anything, so counting
/// starts behind the last parenthesis.
fn started_ticks(pid: &str) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
    }

    #[test]
    fn the_other_end_of_a_socket_pair_is_this_process() {
        let (a, _b) = pair();
        let evidence = Evidence::of_peer(a.as_fd()).unwrap();
        assert_eq!(evidence.pid(), std::process::id());
        assert_eq!(evidence.uid(), rustix::process::geteuid().as_raw());
        assert!(!evidence.has_died());
        assert_eq!(evidence.inode(), own_inode());
        evidence.confirm(own_started_ticks()).unwrap();
    }

    #[test]
    fn only_a_process_with_an_address_space_runs() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let evidence = Evidence::by_number(child.id(), 0).unwrap();
        assert!(evidence.still_runs());
        child.kill().unwrap();
        // Before it is reaped its entry in /proc is there, and everything that it had is gone.
        while !evidence.has_died() {
            std::thread::yield_now();
        }
        assert!(!has_address_space(child.id()) && !evidence.still_runs());
        child.wait().unwrap();
        assert!(!evidence.still_runs());
        assert!(!has_address_space(0));
    }

    #[test]
    fn a_process_opened_by_number_must_have_the_start_time_it_claims() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let evidence = Evidence::by_number(pid, 0).unwrap();
        let started = started_ticks(&pid.to_string()).unwrap();
        evidence.confirm(started).unwrap();
        assert_eq!(evidence.confirm(started + 1), Err(EvidenceError::Gone { pid }));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(evidence.has_died());
        assert_eq!(evidence.confirm(started), Err(EvidenceError::Gone { pid }));
        assert_eq!(Evidence::by_number(pid, 0).unwrap_err(), EvidenceError::Gone { pid });
        assert_eq!(Evidence::by_number(0, 0).unwrap_err(), EvidenceError::Invisible);
    }
}
