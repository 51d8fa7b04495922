//! Calls that make sockets and connections.

use core::ffi::c_int;
use std::os::fd::BorrowedFd;

use libc::{sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

use crate::hooks::datagrams::known_datagrams;
use crate::hooks::sets;
use crate::origin::Listener;
use crate::process::{active, forbid, guarded, known};
use crate::real;
use crate::{errno, kernel, origin};
use beeline_socket_engine::Sockets;
use beeline_socket_rules::Why;

/// Options that a connection has of its listener, with what they are where nobody has set them; those that the kernel does not know do not count.
const INHERITED: [(c_int, c_int, c_int); 12] = [
    (libc::SOL_SOCKET, libc::SO_OOBINLINE, 0),
    (libc::SOL_SOCKET, libc::SO_RCVLOWAT, 1),
    (libc::SOL_SOCKET, libc::SO_ZEROCOPY, 0),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMP, 0),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 0),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMPING, 0),
    (libc::SOL_SOCKET, libc::SO_PEEK_OFF, -1),
    (libc::SOL_SOCKET, libc::SO_MARK, 0),
    (libc::SOL_SOCKET, libc::SO_PASSCRED, 0),
    (libc::SOL_SOCKET, libc::SO_PASSSEC, 0),
    (libc::SOL_SOCKET, SO_PASSPIDFD, 0),
    (libc::IPPROTO_IP, libc::IP_TRANSPARENT, 0),
];

/// `SO_PASSPIDFD` of Linux 6.5, which `libc` does not have.
const SO_PASSPIDFD: c_int = 76;

/// # Safety
/// As `socket`.
pub unsafe fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: what the program gives.
    let number = unsafe { real::socket(domain, kind, protocol) };
    if number >= 0
        && let Some(sockets) = active()
    {
        let kind = kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
        let is_stream = kind == libc::SOCK_STREAM && matches!(protocol, 0 | libc::IPPROTO_TCP);
        sets::closed(number);
        let is_internet = matches!(domain, libc::AF_INET | libc::AF_INET6);
        let is_unix = domain == libc::AF_UNIX && kind == libc::SOCK_STREAM && sockets.carries_unix();
        origin::made(number, is_stream && is_internet || is_unix);
        if kind == libc::SOCK_DGRAM && matches!(protocol, 0 | libc::IPPROTO_UDP) && is_internet {
            // SAFETY: the kernel has just made the descriptor.
            let socket = unsafe { BorrowedFd::borrow_raw(number) };
            guarded(|| sockets.datagrams_made(socket));
        }
    }
    number
}

/// # Safety
/// As `bind`.
pub unsafe fn bind(number: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: what the program gives.
    let result = unsafe { real::bind(number, address, length) };
    if result == 0 {
        may_hear_groups(number);
    }
    result
}

/// The kernel may give a socket what is sent to groups, as it may not have before.
fn may_hear_groups(number: c_int) {
    if let Some(sockets) = active().filter(|sockets| sockets.groups_are_of_host()) {
        // SAFETY: the kernel has just said that the number is a socket.
        let socket = unsafe { BorrowedFd::borrow_raw(number) };
        errno::preserved(|| guarded(|| sockets.bound(socket)));
    }
}

/// # Safety
/// As `connect`.
pub unsafe fn connect(number: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the program says that the address is there.
    let family = unsafe { family(address, length) };
    if family == Some(libc::AF_UNSPEC) {
        // The socket may be another connection's next.
        forbid(number, Why::Disconnected);
    } else if let Some(known) = known_datagrams(number)
        && known.sockets.datagram_socket(number).is_some()
    {
        // Whose datagrams are received is another question from now on.
        forbid(number, Why::Disconnected);
    }
    // SAFETY: what the program gives.
    let result = unsafe { real::connect(number, address, length) };
    if result == 0 && family == Some(libc::AF_UNSPEC) {
        // It is at every address again, if it was bound to that.
        may_hear_groups(number);
    }
    if let Some(sockets) = active()
        && matches!(family, Some(libc::AF_INET | libc::AF_INET6 | libc::AF_UNIX))
        && origin::may_leave_kernel(number)
        && known(number).is_none()
    {
        match family {
            // It is connected, or is not: nobody waits for it by other means.
            Some(libc::AF_UNIX) if result != 0 => {}
            Some(libc::AF_UNIX) => errno::preserved(|| begin_unix(sockets, number)),
            _ => errno::preserved(|| begin(sockets, number, result)),
        }
    }
    result
}

/// The connection is there, or will be.
fn begin(sockets: &Sockets, number: c_int, result: c_int) {
    let errno = std::io::Error::last_os_error().raw_os_error();
    if result == 0 || matches!(errno, Some(libc::EINPROGRESS | libc::EINTR)) {
        origin::note(number);
        // SAFETY: the kernel has just said that the number is a socket.
        let socket = unsafe { BorrowedFd::borrow_raw(number) };
        guarded(|| sockets.connected(socket));
    }
}

/// A stream of `AF_UNIX` is connected.
fn begin_unix(sockets: &Sockets, number: c_int) {
    origin::note(number);
    // SAFETY: the kernel has just said that the number is a socket.
    let socket = unsafe { BorrowedFd::borrow_raw(number) };
    guarded(|| sockets.unix_connected(socket));
}

/// The family of an address, if that is there.
///
/// # Safety
/// `address` is null or valid for reads of `length` bytes.
unsafe fn family(address: *const sockaddr, length: socklen_t) -> Option<c_int> {
    let is_whole = |family: c_int| match family {
        libc::AF_INET => length as usize >= size_of::<sockaddr_in>(),
        libc::AF_INET6 => length as usize >= size_of::<sockaddr_in6>() - size_of::<u32>(),
        _ => true,
    };
    if address.is_null() || (length as usize) < size_of::<libc::sa_family_t>() {
        return None;
    }
    // SAFETY: not null, and the family is the first field, within `length` bytes; a program may have the address anywhere.
    let family = unsafe { address.cast::<libc::sa_family_t>().read_unaligned() };
    let family = c_int::from(family);
    is_whole(family).then_some(family)
}

/// # Safety
/// As `accept`.
pub unsafe fn accept(number: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: what the program gives.
    let connection = unsafe { real::accept(number, address, length) };
    accepted(number, connection)
}

/// # Safety
/// As `accept4`.
pub unsafe fn accept4(number: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int {
    // SAFETY: what the program gives.
    let connection = unsafe { real::accept4(number, address, length, flags) };
    accepted(number, connection)
}

/// Begins what a listener has accepted.
fn accepted(listener: c_int, connection: c_int) -> c_int {
    if connection < 0 {
        return connection;
    }
    if let Some(sockets) = active() {
        origin::clear(connection);
        sets::closed(connection);
        if is_plain(sockets, listener) {
            origin::note(connection);
            // SAFETY: the kernel has just made the descriptor.
            let socket = unsafe { BorrowedFd::borrow_raw(connection) };
            guarded(|| {
                match sockets.carries_unix() && beeline_tcp::is_unix_stream(socket) {
                    true => sockets.unix_accepted(socket),
                    false => sockets.accepted(socket),
                }
                sockets.listens(listener);
            });
        }
    }
    connection
}

/// Whether connections of this listener may leave the kernel. One that another process made is asked once.
fn is_plain(sockets: &Sockets, listener: c_int) -> bool {
    match origin::listener(listener) {
        Listener::Plain => true,
        Listener::Refused => false,
        Listener::Unknown => {
            // SAFETY: the kernel has just accepted a connection from it.
            let socket = unsafe { BorrowedFd::borrow_raw(listener) };
            let is_default = |(level, name, default)| {
                kernel::option(listener, level, name).is_none_or(|value| value == default)
            };
            let is_of_kind =
                beeline_tcp::is_tcp(socket) || sockets.carries_unix() && beeline_tcp::is_unix_stream(socket);
            let is_plain = is_of_kind && INHERITED.into_iter().all(is_default);
            origin::asked(listener, is_plain);
            is_plain
        }
    }
}
