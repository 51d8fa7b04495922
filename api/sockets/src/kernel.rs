//! System calls as instructions: for hooks that are entered before the real functions are found, and for what no library may see.

use core::ffi::{c_int, c_long};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;
use syscalls::{Sysno, raw_syscall};

/// What a function of C gives for the result of a system call: the result, or -1 with `errno`.
pub fn answer(result: usize) -> c_long {
    match syscalls::Errno::from_ret(result) {
        Ok(value) => value.cast_signed() as c_long,
        Err(errno) => {
            beeline_ffi::set_errno(errno.into_raw());
            -1
        }
    }
}

/// The number of this process, also in a child of `vfork`, whose memory is its parent's.
pub fn process() -> c_int {
    // SAFETY: the call has no argument, and changes nothing.
    unsafe { raw_syscall!(Sysno::getpid) as c_int }
}

/// Whether the kernel has a filter of system calls for this thread.
pub fn is_filtered() -> bool {
    // SAFETY: the call reads a number, and changes nothing.
    let mode = unsafe { raw_syscall!(Sysno::prctl, libc::PR_GET_SECCOMP, 0, 0, 0, 0) };
    mode != 0
}

/// Flags of a descriptor (`F_GETFD`), if the number is one.
pub fn descriptor_flags(number: c_int) -> Result<c_int, Errno> {
    // SAFETY: the call reads flags of a number, whatever that is, and changes nothing.
    let flags = unsafe { raw_syscall!(Sysno::fcntl, number, libc::F_GETFD, 0) };
    syscalls::Errno::from_ret(flags)
        .map(|flags| flags as c_int)
        .map_err(|errno| Errno::from_raw_os_error(errno.into_raw()))
}

/// The integer of an option, if the number is a socket that has it.
pub fn option(number: c_int, level: c_int, name: c_int) -> Option<c_int> {
    let mut value: c_int = 0;
    let mut bytes = size_of::<c_int>() as libc::socklen_t;
    let (out, length) = (&raw mut value, &raw mut bytes);
    // SAFETY: the kernel writes as many bytes as `bytes` says to `value`, and to `bytes`; both live through the call.
    let result = unsafe { raw_syscall!(Sysno::getsockopt, number, level, name, out, length) };
    (result == 0 && bytes as usize == size_of::<c_int>()).then_some(value)
}

/// Puts the name of a socket's peer where a receive of `AF_UNIX` has it, as far as there is room, and returns how long it is: 0 of one without a name.
///
/// # Safety
/// `address` is valid for writes of `room` bytes.
pub unsafe fn peer_name(
    socket: BorrowedFd<'_>,
    address: *mut libc::sockaddr,
    room: libc::socklen_t,
) -> libc::socklen_t {
    let mut name = [0_u8; size_of::<libc::sockaddr_storage>()];
    let mut length = name.len() as libc::socklen_t;
    let number = socket.as_raw_fd();
    // SAFETY: the kernel writes at most as many bytes as `length` says; both live through the call.
    let result = unsafe { raw_syscall!(Sysno::getpeername, number, name.as_mut_ptr(), &raw mut length) };
    let is_named = result == 0 && length as usize > size_of::<libc::sa_family_t>();
    if !is_named {
        return 0;
    }
    let bytes = (length.min(room) as usize).min(name.len());
    // SAFETY: `address` has room for `room` bytes, by this function's contract, and the name is memory of this function's own.
    unsafe { core::ptr::copy_nonoverlapping(name.as_ptr(), address.cast(), bytes) };
    length
}

thread_local! {
    /// A time that a call is about to be given, until the thread makes another.
    static TIME: core::cell::Cell<libc::timespec> =
        const { core::cell::Cell::new(libc::timespec { tv_sec: 0, tv_nsec: 0 }) };
}

fn kept(time: libc::timespec) -> *const libc::timespec {
    TIME.with(|kept| {
        kept.set(time);
        kept.as_ptr().cast_const()
    })
}

/// A time of so many milliseconds, until this thread asks for another; null, which is for ever, for a negative number.
pub fn time_of(milliseconds: c_int) -> *const libc::timespec {
    if milliseconds < 0 {
        return core::ptr::null();
    }
    let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
    kept(libc::timespec { tv_sec: seconds.into(), tv_nsec: c_long::from(rest) * 1_000_000 })
}

/// The same of a time with microseconds; null for null. Not every machine has a system call that takes one.
///
/// # Safety
/// Null, or a time that can be read.
pub unsafe fn time_at(time: *const libc::timeval) -> *const libc::timespec {
    // SAFETY: as the caller says.
    match unsafe { time.as_ref() } {
        None => core::ptr::null(),
        // The kernel takes more than a million microseconds for seconds.
        Some(time) => kept(libc::timespec {
            tv_sec: time.tv_sec.saturating_add(time.tv_usec / 1_000_000),
            tv_nsec: time.tv_usec % 1_000_000 * 1000,
        }),
    }
}

/// Sends SIGPIPE to this thread, as the kernel does to one that writes to a socket that nobody reads.
#[cold]
pub fn raise_broken_pipe() {
    // SAFETY: the call has no argument, and changes nothing.
    let thread = unsafe { raw_syscall!(Sysno::gettid) };
    // SAFETY: a signal to the calling thread; what it does is the program's affair, as it would be if the kernel sent it.
    unsafe { raw_syscall!(Sysno::tgkill, process(), thread, libc::SIGPIPE) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_of_the_kernel_is_minus_one_with_its_number() {
        assert_eq!(answer(7), 7);
        beeline_ffi::set_errno(0);
        assert_eq!(answer((-9isize).cast_unsigned()), -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EBADF));
    }

    #[test]
    fn process_is_the_one_that_runs() {
        assert_eq!(process().cast_unsigned(), std::process::id());
    }

    #[test]
    fn number_that_is_none_has_no_flags_and_no_options() {
        assert_eq!(descriptor_flags(-1), Err(Errno::BADF));
        assert_eq!(option(-1, libc::SOL_SOCKET, libc::SO_TYPE), None);
    }
}
