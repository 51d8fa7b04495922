//! System calls as instructions, where stable Rust has them and rustix makes its own so.

use rustix::io::Errno;
use syscalls::{Sysno, raw_syscall};

/// Reads an option of a socket (`getsockopt`).
///
/// # Safety
/// `out` is valid for writes of `*bytes` bytes, and `bytes` for reads and writes.
pub unsafe fn getsockopt(
    fd: libc::c_int,
    (level, name): (libc::c_int, libc::c_int),
    out: *mut u8,
    bytes: *mut libc::socklen_t,
) -> Result<(), Errno> {
    // SAFETY: the kernel writes to `out` and `bytes` alone, for which this function's contract answers.
    let result = unsafe { raw_syscall!(Sysno::getsockopt, fd, level, name, out, bytes) };
    check(result).map(drop)
}

/// Sets an option of a socket (`setsockopt`).
///
/// # Safety
/// The kernel finds in `value` what it reads for that option, and memory where that points.
pub unsafe fn setsockopt<T>(
    fd: libc::c_int,
    (level, name): (libc::c_int, libc::c_int),
    value: &T,
) -> Result<(), Errno> {
    let value = std::ptr::from_ref(value);
    // SAFETY: the kernel reads `value` and what it points to, for which this function's contract answers, and writes nothing.
    let result = unsafe { raw_syscall!(Sysno::setsockopt, fd, level, name, value, size_of::<T>()) };
    check(result).map(drop)
}

/// Receives, whoever has sent it (`recv`).
///
/// # Safety
/// `out` is valid for writes of `bytes` bytes, or the kernel finds no memory there.
pub unsafe fn recv(fd: libc::c_int, out: *mut u8, bytes: usize, flags: libc::c_int) -> Result<usize, Errno> {
    let nobody = std::ptr::null_mut::<u8>();
    // SAFETY: the kernel writes to `out` alone, for which this function's contract answers; it is given no place for the sender's address.
    let result = unsafe { raw_syscall!(Sysno::recvfrom, fd, out, bytes, flags, nobody, nobody) };
    check(result)
}

fn check(result: usize) -> Result<usize, Errno> {
    syscalls::Errno::from_ret(result).map_err(|errno| Errno::from_raw_os_error(errno.into_raw()))
}
