//! System calls on a socket that rustix does not offer.
//!
//! FFI and nothing else: every function is safe, borrows the descriptor, and gives the kernel's error as it is. On x86, ARM and RISC-V (64 bits) each
//! is an instruction, not a call of the C library, so that a preloaded library that replaces `getsockopt`, `ioctl`, `recv` or `close`
//! may call it, and `errno` keeps its value. What to do about a result is said by who calls: `os/tcp`, and `os/domain` for its bells.
#![expect(unsafe_code, reason = "system calls without a safe interface")]
#![cfg(target_os = "linux")]

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::Errno;

// Also in Cargo.toml.
#[cfg_attr(
    any(
        target_arch = "x86_64",
        target_arch = "x86",
        target_arch = "aarch64",
        target_arch = "arm",
        target_arch = "riscv64"
    ),
    path = "instruction.rs"
)]
#[cfg_attr(
    not(any(
        target_arch = "x86_64",
        target_arch = "x86",
        target_arch = "aarch64",
        target_arch = "arm",
        target_arch = "riscv64"
    )),
    path = "library.rs"
)]
mod call;
mod filter;

pub use filter::{Instruction, attach_filter};

/// An option of a socket that is read as bytes, in this machine's byte order. The kernel writes no pointer into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BytesOption {
    /// `struct tcp_info`, of which later kernels have more.
    TcpInfo,
    /// The number of the socket's network namespace, eight bytes; Linux 5.14.
    NetnsCookie,
}

impl BytesOption {
    fn level_and_name(self) -> (libc::c_int, libc::c_int) {
        /// Of Linux's `asm-generic/socket.h`; libc has it for no architecture.
        const SO_NETNS_COOKIE: libc::c_int = 71;
        match self {
            BytesOption::TcpInfo => (libc::IPPROTO_TCP, libc::TCP_INFO),
            BytesOption::NetnsCookie => (libc::SOL_SOCKET, SO_NETNS_COOKIE),
        }
    }
}

/// Reads an option into the beginning of `out`, and returns how many bytes of it the kernel has.
///
/// # Errors
/// What the kernel says; `NOPROTOOPT` or `OPNOTSUPP` when the socket has no such option.
pub fn get(socket: impl AsFd, option: BytesOption, out: &mut [u8]) -> Result<usize, Errno> {
    // The kernel reads the length as a signed integer.
    let mut bytes = out.len().min(libc::c_int::MAX as usize) as libc::socklen_t;
    let fd = socket.as_fd();
    // SAFETY: `out` has as many bytes, and it and `bytes` live through the call.
    unsafe { call::getsockopt(fd.as_raw_fd(), option.level_and_name(), out.as_mut_ptr(), &raw mut bytes)? };
    // A program of the kernel's administrator (BPF) may answer in the kernel's place.
    Ok((bytes as usize).min(out.len()))
}

/// Bytes that the socket was given and the other side has not acknowledged (`SIOCOUTQ`), a FIN among them.
///
/// # Errors
/// What the kernel says; `INVAL` for a listener.
pub fn unacknowledged(socket: impl AsFd) -> Result<u32, Errno> {
    // SAFETY: for TIOCOUTQ, which is SIOCOUTQ, the kernel writes one integer.
    let request = unsafe { rustix::ioctl::Getter::<{ libc::TIOCOUTQ as _ }, libc::c_int>::new() };
    // SAFETY: the request reads an integer of the descriptor, which is borrowed for the call, and changes nothing.
    let count = unsafe { rustix::ioctl::ioctl(socket.as_fd(), request)? };
    // A difference of two sequence numbers.
    Ok(count.cast_unsigned())
}

/// Takes up to `bytes` bytes from a socket of TCP and copies none (`MSG_TRUNC`). Returns how many; never waits.
///
/// # Errors
/// What the kernel says. `FAULT` from a socket that is not of TCP, for which the flag means something else.
pub fn discard(socket: BorrowedFd<'_>, bytes: usize) -> Result<usize, Errno> {
    const FLAGS: libc::c_int = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    let nowhere = std::ptr::null_mut::<u8>();
    // SAFETY: at the address is no memory: a kernel that wants to copy bytes says so.
    unsafe { call::recv(socket.as_raw_fd(), nowhere, bytes, FLAGS) }
}

/// A second descriptor of the file that a number of this process stands for now, closed on exec. Another thread may give the number to another file
/// at any time: compare what it is.
///
/// # Errors
/// What the kernel says; `BADF` where the number stands for nothing, `MFILE` where the process is out of descriptors.
pub fn second_of(number: RawFd) -> Result<OwnedFd, Errno> {
    if number < 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: it is borrowed for one call, which answers BADF where nothing is open under the number, and changes no file.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    // Not by `pidfd_getfd`, which filters of containers forbid. INVAL: the limit of descriptors is 0.
    rustix::io::fcntl_dupfd_cloexec(borrowed, 0).map_err(|errno| match errno {
        Errno::INVAL => Errno::MFILE,
        errno => errno,
    })
}

/// A descriptor that is closed by the system call. Dropping an [`OwnedFd`] calls the C library's `close`.
#[derive(Debug)]
pub struct Descriptor(ManuallyDrop<OwnedFd>);

impl From<OwnedFd> for Descriptor {
    fn from(fd: OwnedFd) -> Self {
        Descriptor(ManuallyDrop::new(fd))
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the number is owned here, nothing borrows it any more, and the `ManuallyDrop` does not close it again.
        unsafe { rustix::io::close(self.0.as_raw_fd()) };
    }
}
