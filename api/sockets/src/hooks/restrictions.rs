//! Calls after which the library cannot work in this process, or a connection cannot leave the kernel.

use core::ffi::{c_int, c_long};

use syscalls::Sysno;

use crate::hooks::{numbers, sets};
use crate::process::{begin_leaving, hand_over, leave};
use crate::{errno, origin};
use beeline_socket_rules::Why;

/// Of `dlfcn.h`; not every C library has it.
const RTLD_DEEPBIND: c_int = 8;
/// The namespace of the program itself.
const LM_ID_BASE: c_long = 0;
/// Operations of `seccomp` behind which system calls are refused, or kill.
const RESTRICTING: [u32; 2] = [libc::SECCOMP_SET_MODE_STRICT, libc::SECCOMP_SET_MODE_FILTER];

/// The library leaves this process: before the program's call, every connection is the kernel's, no set has a bell, and no thread of the library is there.
#[cold]
fn leave_for(why: Why) {
    errno::preserved(|| {
        if begin_leaving() {
            (0..origin::end()).for_each(|number| sets::leave(number, why));
            leave(why);
        }
    });
}

/// Prepares for `setns` and `unshare`: some namespaces are not for a process with a second thread.
pub fn before_namespace(_arguments: [c_long; 3]) {
    leave_for(Why::Namespace);
}

/// Prepares for `prctl`: a filter of system calls may kill for one that the library makes.
pub fn before_prctl([what, ..]: [c_long; 3]) {
    if what as c_int == libc::PR_SET_SECCOMP {
        leave_for(Why::Seccomp);
    }
}

/// Prepares for `dlopen(file, flags)`. What is opened so looks for functions in the C library before it looks among those that are preloaded.
pub fn before_open([_file, flags, _]: [c_long; 3]) {
    if flags as c_int & RTLD_DEEPBIND != 0 {
        leave_for(Why::DeepBind);
    }
}

/// Prepares for `dlmopen(namespace, file, flags)`. Another namespace has a C library of its own.
pub fn before_open_in_namespace([namespace, file, flags]: [c_long; 3]) {
    if namespace != LM_ID_BASE {
        leave_for(Why::DeepBind);
    }
    before_open([file, flags, 0]);
}

/// Prepares for a system call that is made by number (`syscall`).
pub fn before_system_call([call, first, second]: [c_long; 3]) {
    let Some(call) = usize::try_from(call).ok().and_then(Sysno::new) else { return };
    let number = first as c_int;
    match call {
        Sysno::io_uring_setup => leave_for(Why::IoUring),
        Sysno::seccomp if RESTRICTING.contains(&number.cast_unsigned()) => leave_for(Why::Seccomp),
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
