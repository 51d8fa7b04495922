//! System calls on a socket that rustix does not offer.
//!
//! FFI and nothing else: every function is safe, borrows the descriptor, and gives the kernel's error as it is. Each is an instruction, not
//! a call of the C library, so that a preloaded library that replaces `setsockopt` may call it. What to do about a result is said
//! in `os/domain`, the only user.
#![expect(unsafe_code, reason = "system calls without a safe interface")]
#![cfg(target_os = "linux")]

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use syscalls::{Sysno, raw_syscall};

/// An instruction of a filter (classic BPF, `struct sock_filter`): code, two distances to jump, and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub code: u16,
    /// Instructions to pass over if a comparison holds, and if it does not.
    pub jumps: [u8; 2],
    pub number: u32,
}

/// Has the kernel run a program over each packet in the call that sends it, before the socket gets it: it answers how many bytes of the
/// packet are kept, and of 0 the packet is dropped, without a word to the sender (`SO_ATTACH_FILTER`).
///
/// # Errors
/// What the kernel says; `INVAL` for a program that it does not take, among them one of no instruction or of more than 4,096.
pub fn attach_filter(socket: impl AsFd, program: &[Instruction]) -> Result<(), Errno> {
    let mut instructions: Vec<libc::sock_filter> = program
        .iter()
        .map(|Instruction { code, jumps: [jt, jf], number }| libc::sock_filter {
            code: *code,
            jt: *jt,
            jf: *jf,
            k: *number,
        })
        .collect();
    let count = u16::try_from(instructions.len()).map_err(|_| Errno::INVAL)?;
    let program = libc::sock_fprog { len: count, filter: instructions.as_mut_ptr() };
    // SAFETY: the descriptor is borrowed for the call; the kernel reads `program`, and `count` instructions where it points, which live
    // through the call, and keeps a copy.
    let result = unsafe {
        raw_syscall!(
            Sysno::setsockopt,
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            std::ptr::from_ref(&program),
            size_of::<libc::sock_fprog>()
        )
    };
    syscalls::Errno::from_ret(result).map(drop).map_err(|errno| Errno::from_raw_os_error(errno.into_raw()))
}
