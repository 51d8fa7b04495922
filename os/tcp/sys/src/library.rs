//! System calls by the C library, where stable Rust has no instruction for them or rustix calls the library too.

use rustix::io::Errno;

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
    let result = unsafe { libc::getsockopt(fd, level, name, out.cast(), bytes) };
    if result < 0 { Err(last_error()) } else { Ok(()) }
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
    let bytes = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `value` and what it points to, for which this function's contract answers, and writes nothing.
    let result = unsafe { libc::setsockopt(fd, level, name, std::ptr::from_ref(value).cast(), bytes) };
    if result < 0 { Err(last_error()) } else { Ok(()) }
}

/// Receives, whoever has sent it (`recv`).
///
/// # Safety
/// `out` is valid for writes of `bytes` bytes, or the kernel finds no memory there.
pub unsafe fn recv(fd: libc::c_int, out: *mut u8, bytes: usize, flags: libc::c_int) -> Result<usize, Errno> {
    // SAFETY: the kernel writes to `out` alone, for which this function's contract answers.
    let result = unsafe { libc::recv(fd, out.cast(), bytes, flags) };
    usize::try_from(result).map_err(|_| last_error())
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}
