//! Calls after which the library cannot work in this process, or a connection cannot leave the kernel.

use core::ffi::{c_int, c_long};

use syscalls::Sysno;

use crate::hooks::numbers;
use crate::process::{end_for_good, hand_over};
use beeline_socket_rules::Why;

/// Prepares for `setns` and `unshare`: some namespaces are not for a process with a second thread.
pub fn before_namespace(_arguments: [c_long; 3]) {
    end_for_good(Why::Namespace);
}

/// Prepares for `prctl`: a filter of system calls may kill for one that the library makes.
pub fn before_prctl([what, ..]: [c_long; 3]) {
    if what as c_int == libc::PR_SET_SECCOMP {
        end_for_good(Why::Seccomp);
    }
}

/// Prepares for a system call that is made by number (`syscall`).
pub fn before_system_call([call, first, second]: [c_long; 3]) {
    let Some(call) = usize::try_from(call).ok().and_then(Sysno::new) else { return };
    let number = first as c_int;
    match call {
        Sysno::io_uring_setup => end_for_good(Why::IoUring),
        Sysno::seccomp => end_for_good(Why::Seccomp),
        Sysno::prctl => before_prctl([first, second, 0]),
        Sysno::setns | Sysno::unshare => before_namespace([first, second, 0]),
        Sysno::close => numbers::before_close(number),
        Sysno::dup3 if first != second => {
            hand_over(number, Why::Duplicated);
            numbers::before_close(second as c_int);
        }
        Sysno::dup | Sysno::fcntl => hand_over(number, Why::Duplicated),
        Sysno::splice | Sysno::sendfile => {
            hand_over(number, Why::Splice);
            hand_over(second as c_int, Why::Splice);
        }
        call if is_on_socket(call) => hand_over(number, Why::Option),
        _ => {}
    }
}

/// System calls that read or write a socket, or ask it for what the kernel alone does not know.
fn is_on_socket(call: Sysno) -> bool {
    matches!(
        call,
        Sysno::read
            | Sysno::readv
            | Sysno::preadv2
            | Sysno::recvfrom
            | Sysno::recvmsg
            | Sysno::recvmmsg
            | Sysno::write
            | Sysno::writev
            | Sysno::pwritev2
            | Sysno::sendto
            | Sysno::sendmsg
            | Sysno::sendmmsg
            | Sysno::shutdown
            | Sysno::connect
            | Sysno::ioctl
            | Sysno::setsockopt
    )
}
