//! What stands behind the hooks: the functions of the next library, or system calls.

use core::ffi::{CStr, c_int, c_long, c_uint, c_void};
use core::mem::transmute;

use libc::{
    epoll_event, fd_set, iovec, mmsghdr, msghdr, nfds_t, off_t, pollfd, sigset_t, size_t, sockaddr,
    socklen_t, ssize_t, timespec, timeval,
};
use syscalls::{Sysno, raw_syscall};

use crate::calls::calls;
use crate::find::Real;
use crate::kernel;

macro_rules! reals {
    ($($name:ident $(, $other:ident)* ($($argument:ident: $type:ty),*) -> $gives:ty = $hooks:ident, $number:ident ($($raw:expr),*);)*) => {
        $(
            /// The function behind the hook.
            ///
            /// # Safety
            /// What the function of C asks for.
            #[inline]
            #[allow(non_snake_case, reason = "a function has the name that C knows it by")]
            pub unsafe fn $name($($argument: $type),*) -> $gives {
                type Function = unsafe extern "C-unwind" fn($($type),*) -> $gives;
                let address = addresses::$name.address();
                if address.is_null() {
                    // SAFETY: the kernel does with the arguments what the function of C would.
                    let result = unsafe { raw_syscall!(Sysno::$number $(, $raw)*) };
                    return kernel::answer(result) as $gives;
                }
                // SAFETY: the address is that of the function of this name, which has this signature.
                let function = unsafe { transmute::<*mut c_void, Function>(address) };
                // SAFETY: the caller has given what the function of C asks for.
                unsafe { function($($argument),*) }
            }
        )*

        /// Looks for all of them, so that none is looked for while a call is made.
        pub fn find_all() {
            $(addresses::$name.find();)*
        }

        #[allow(non_upper_case_globals, reason = "a function has the name that C knows it by")]
        mod addresses {
            use super::{Real, name};

            $(pub static $name: Real = Real::new(name(concat!(stringify!($name), "\0")));)*
        }
    };
}

/// A name with its zero as a string of C.
pub const fn name(with_zero: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(with_zero.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name of a function has one zero, at its end"),
    }
}

calls!(reals);
