//! What programs see: the functions of the list, under all their names.

use core::ffi::{c_int, c_long, c_uint, c_void};

use libc::{
    epoll_event, fd_set, iovec, mmsghdr, msghdr, nfds_t, off_t, pollfd, sigset_t, size_t, sockaddr,
    socklen_t, ssize_t, timespec, timeval,
};

use crate::calls::calls;
use crate::hooks;

macro_rules! exports {
    ($($name:ident $(, $other:ident)* ($($arguments:tt)*) -> $gives:ty = $hooks:ident, $number:ident $raw:tt;)*) => {
        $(export!(($name $($other)*) ($($arguments)*) -> $gives = hooks::$hooks::$name);)*
    };
}

macro_rules! export {
    (() $arguments:tt -> $gives:ty = $hook:path) => {};
    (($name:ident $($rest:ident)*) ($($argument:ident: $type:ty),*) -> $gives:ty = $hook:path) => {
        const _: () = {
            // "C-unwind": a thread that is cancelled in a real function unwinds through the hook.
            #[cfg_attr(not(test), unsafe(export_name = stringify!($name)))]
            unsafe extern "C-unwind" fn exported($($argument: $type),*) -> $gives {
                // SAFETY: a program gives what it would give to the function of C.
                unsafe { $hook($($argument),*) }
            }
        };
        export!(($($rest)*) ($($argument: $type),*) -> $gives = $hook);
    };
}

calls!(exports);
