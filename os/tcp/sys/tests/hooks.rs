//! No function of the C library is entered by anything that `beeline-tcp` and this crate do, and `errno` keeps its value.
//!
//! This program has functions of the C library's names of its own, as a preloaded library has: whoever calls one by its name comes here.
#![cfg(all(
    target_os = "linux",
    any(
        target_arch = "x86_64",
        target_arch = "x86",
        target_arch = "aarch64",
        target_arch = "arm",
        target_arch = "riscv64"
    )
))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]
#![allow(unsafe_code, reason = "functions with the names of the C library's")]

use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::net::{TcpListener, TcpStream};

use beeline_tcp::{
    Peeked, Side, State, Tuple, cookie, find, given, is_supported, is_tcp, netns_cookie, other_socket, peek,
    reset, send, state, take, taken,
};
use beeline_tcp_sys::{Instruction, attach_filter};

thread_local! {
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
    static ENTERED: RefCell<Vec<&'static CStr>> = const { RefCell::new(Vec::new()) };
}

/// Six machine words hold the arguments of each function here, also of those whose number of arguments is open.
type Function = extern "C" fn(usize, usize, usize, usize, usize, usize) -> isize;

fn enter(name: &'static CStr) -> Function {
    if IS_WATCHED.get() {
        ENTERED.with_borrow_mut(|entered| entered.push(name));
    }
    // SAFETY: the name ends with a zero, and RTLD_NEXT is a handle of every program.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    assert!(!next.is_null(), "the C library has {name:?}");
    // SAFETY: it is the C library's function, which takes its arguments from the registers that these six are in.
    unsafe { std::mem::transmute::<*mut libc::c_void, Function>(next) }
}

/// In a module, because the crate that is tested has functions of these names.
mod c_library {
    macro_rules! hooks {
        ($($function:ident $name:literal)*) => {
            $(
                // SAFETY: whoever calls the C library's function of this name gets what it does.
                #[unsafe(no_mangle)]
                extern "C" fn $function(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> isize {
                    super::enter($name)(a, b, c, d, e, f)
                }
            )*
        };
    }

    hooks! {
        bind c"bind"
        close c"close"
        connect c"connect"
        getpeername c"getpeername"
        getsockname c"getsockname"
        getsockopt c"getsockopt"
        ioctl c"ioctl"
        listen c"listen"
        open c"open"
        open64 c"open64"
        openat c"openat"
        read c"read"
        recv c"recv"
        recvfrom c"recvfrom"
        recvmsg c"recvmsg"
        send c"send"
        sendmsg c"sendmsg"
        sendto c"sendto"
        setsockopt c"setsockopt"
        shutdown c"shutdown"
        socket c"socket"
        syscall c"syscall"
        write c"write"
    }
}

/// Names of the functions that were entered meanwhile on this thread.
fn entered(calls: impl FnOnce()) -> Vec<&'static CStr> {
    IS_WATCHED.set(true);
    calls();
    IS_WATCHED.set(false);
    ENTERED.take()
}

fn set_errno(value: i32) {
    // SAFETY: the address of this thread's errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above; nobody else writes to it meanwhile.
    unsafe { errno.write(value) };
}

#[test]
fn no_function_of_the_c_library_is_called() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let server = listener.accept().unwrap().0;
    // The watch works: the standard library calls the C library.
    assert!(entered(|| drop(server.peer_addr())).contains(&c"getpeername"));
    assert!(entered(|| drop(listener)).contains(&c"close"));

    let mut errno = 0;
    let calls = entered(|| {
        set_errno(77);
        assert!(is_tcp(&client) && is_supported());
        assert_eq!(send(&client, b"0123456789"), Ok(10));
        while peek(&server, &mut [0; 20]) == Ok(Peeked::Nothing) {}
        assert_eq!(take(&server, 4), Ok(()));
        assert!(take(&server, 7).is_err() && peek(&server, &mut [0]) == Ok(Peeked::Nothing));
        while given(&client, Side::Connected) != Ok(10) {}
        assert_eq!((taken(&server), state(&server)), (Ok(10), Ok(State::Established)));
        assert_eq!(other_socket(&client).unwrap().cookie, cookie(&server).unwrap());
        assert!(find(Tuple::of(&client).unwrap()).unwrap().is_some());
        assert!(netns_cookie(&client).is_ok());
        // It keeps each packet whole.
        let keep = Instruction { code: 6, jumps: [0, 0], number: u32::MAX };
        assert_eq!(attach_filter(&server, &[keep]), Ok(()));
        assert_eq!(reset(&client), Ok(()));
        assert!(peek(&client, &mut [0]).is_err() && send(&client, b"x").is_err());
        errno = std::io::Error::last_os_error().raw_os_error().unwrap();
    });
    assert_eq!((calls, errno), (vec![], 77));
}
