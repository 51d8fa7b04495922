//! Filters of the packets that a socket gets.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

use crate::call;

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
    let option = (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER);
    let fd = socket.as_fd();
    // SAFETY: the kernel reads `program`, and `count` instructions where it points, which live through the call; it keeps a copy.
    unsafe { call::setsockopt(fd.as_raw_fd(), option, &program) }
}
