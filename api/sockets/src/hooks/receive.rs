//! Calls that take bytes out of a socket.

use core::ffi::{c_int, c_uint, c_void};
use core::slice;
use std::io::IoSliceMut;
use std::os::fd::AsRawFd;
use std::time::Instant;

use libc::{iovec, mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t, timespec};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::hooks::datagrams;
use crate::hooks::sets::{limit_at, time_of};
use crate::process::{Known, forbid, guarded, known};
use crate::real;
use crate::{cancellation, errno, kernel, messages};
use beeline_socket_engine::Turn;
use beeline_socket_rules::Why;

/// Flags that the engine does.
const FLAGS: c_int = libc::MSG_DONTWAIT
    | libc::MSG_PEEK
    | libc::MSG_WAITALL
    | libc::MSG_TRUNC
    | libc::MSG_NOSIGNAL
    | libc::MSG_CMSG_CLOEXEC;
/// As much as one call discards (`MSG_TRUNC` with no memory).
const DISCARDED_BYTES: usize = 16 << 10;

/// The connection, unless the flags make it the kernel's.
#[inline]
fn known_for(number: c_int, flags: c_int) -> Option<Known> {
    let known = known(number)?;
    if flags & !FLAGS == 0 {
        return Some(known);
    }
    forbid(
        number,
        match flags {
            _ if flags & libc::MSG_OOB != 0 => Why::OutOfBand,
            _ if flags & libc::MSG_ERRQUEUE != 0 => Why::ErrorQueue,
            _ => Why::Option,
        },
    );
    None
}

/// Receives from the engine, or from the kernel where it says so.
fn receive(
    known: Known,
    out: &mut [IoSliceMut<'_>],
    flags: c_int,
    kernel: impl FnOnce() -> ssize_t,
) -> ssize_t {
    cancellation::point();
    // AF_UNIX copies bytes that TCP would throw away.
    let is_unix = flags & libc::MSG_TRUNC != 0 && known.sockets.is_unix(known.socket.as_raw_fd());
    let flags = if is_unix { flags & !libc::MSG_TRUNC } else { flags };
    let receive_flags = RecvFlags::from_bits_retain(flags.cast_unsigned());
    match guarded(|| known.sockets.receive(known.socket, out, receive_flags)) {
        Turn::Kernel(pass) => {
            let moved = kernel();
            if moved > 0 && flags & libc::MSG_PEEK == 0 {
                pass.moved(moved.cast_unsigned());
            }
            moved
        }
        Turn::Done(result) => errno::answer(result),
    }
}

/// Receives to one place.
///
/// # Safety
/// `out` is null, or valid for writes of `bytes` bytes.
unsafe fn receive_at(
    known: Known,
    out: *mut c_void,
    bytes: size_t,
    flags: c_int,
    kernel: impl FnOnce() -> ssize_t,
) -> ssize_t {
    if out.is_null() && flags & libc::MSG_TRUNC != 0 && !known.sockets.is_unix(known.socket.as_raw_fd()) {
        let mut nowhere = [0; DISCARDED_BYTES];
        let bytes = bytes.min(DISCARDED_BYTES);
        return receive(known, &mut [IoSliceMut::new(&mut nowhere[..bytes])], flags, kernel);
    }
    // SAFETY: by this function's contract.
    match unsafe { messages::place(out, bytes) } {
        Ok(mut place) => receive(known, slice::from_mut(&mut place), flags, kernel),
        Err(errno) => receive_nowhere(known, errno, flags, kernel),
    }
}

/// The kernel finds that there is no memory when it has a byte for it.
#[cold]
fn receive_nowhere(known: Known, errno: Errno, flags: c_int, kernel: impl FnOnce() -> ssize_t) -> ssize_t {
    let flags = flags & libc::MSG_DONTWAIT | libc::MSG_PEEK;
    match receive(known, &mut [IoSliceMut::new(&mut [0])], flags, kernel) {
        1 => errno::fail(errno),
        nothing => nothing,
    }
}

/// # Safety
/// As `read`.
#[inline]
pub unsafe fn read(number: c_int, out: *mut c_void, bytes: size_t) -> ssize_t {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::read(number, out, bytes) };
    if let Some(known) = datagrams::known_datagrams(number)
        && bytes != 0
        && isize::try_from(bytes).is_ok()
    {
        // SAFETY: the program says that the memory is there.
        return unsafe { datagrams::receive(known, out, bytes, 0) };
    }
    match known(number) {
        // For no bytes, and for too many, the kernel answers without a look at what is there.
        Some(known) if bytes != 0 && isize::try_from(bytes).is_ok() => {
            // SAFETY: the program says that the memory is there.
            unsafe { receive_at(known, out, bytes, 0, kernel) }
        }
        _ => kernel(),
    }
}

/// # Safety
/// As `readv`.
#[inline]
pub unsafe fn readv(number: c_int, vectors: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::readv(number, vectors, count) };
    let Some(known) = known(number) else { return kernel() };
    let Ok(count) = usize::try_from(count) else { return errno::fail(Errno::INVAL) };
    // SAFETY: the program says that the memory is there.
    match unsafe { messages::places(vectors, count) } {
        Ok(places) if places.iter().all(|place| place.is_empty()) => 0,
        Ok(mut places) if known.sockets.is_of_datagrams(number) => {
            match datagrams::receive_to(known, &mut places, 0, kernel) {
                Ok(datagram) => datagram.copied.cast_signed(),
                Err(received) => received,
            }
        }
        Ok(mut places) => receive(known, &mut places, 0, kernel),
        Err(errno) => errno::fail(errno),
    }
}

/// # Safety
/// As `recv`.
#[inline]
pub unsafe fn recv(number: c_int, out: *mut c_void, bytes: size_t, flags: c_int) -> ssize_t {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::recv(number, out, bytes, flags) };
    if let Some(known) = datagrams::known_datagrams(number) {
        // SAFETY: the program says that the memory is there.
        return unsafe { datagrams::receive(known, out, bytes, flags) };
    }
    match known_for(number, flags) {
        // SAFETY: the program says that the memory is there.
        Some(known) => unsafe { receive_at(known, out, bytes, flags, kernel) },
        None => kernel(),
    }
}

/// # Safety
/// As `recvfrom`.
#[inline]
pub unsafe fn recvfrom(
    number: c_int,
    out: *mut c_void,
    bytes: size_t,
    flags: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> ssize_t {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::recvfrom(number, out, bytes, flags, address, length) };
    if let Some(known) = datagrams::known_datagrams(number) {
        // SAFETY: what the program gives.
        return unsafe { datagrams::receive_at(known, out, bytes, flags, address, length) };
    }
    let Some(known) = known_for(number, flags) else { return kernel() };
    if !address.is_null() {
        // SAFETY: what the program gives.
        return unsafe { receive_from_named(known, (out, bytes), flags, (address, length), kernel) };
    }
    // SAFETY: the program says that the memory is there.
    unsafe { receive_at(known, out, bytes, flags, kernel) }
}

/// Receives, and says from whom: TCP says no address, and a stream of `AF_UNIX` the name of its peer, if that has one.
///
/// # Safety
/// As `recvfrom`.
#[cold]
unsafe fn receive_from_named(
    known: Known,
    (out, bytes): (*mut c_void, size_t),
    flags: c_int,
    (address, length): (*mut sockaddr, *mut socklen_t),
    kernel: impl FnOnce() -> ssize_t,
) -> ssize_t {
    // Before the call, in which the number may become the kernel's.
    let is_unix = known.sockets.is_unix(known.socket.as_raw_fd());
    let was_kernel = core::cell::Cell::new(false);
    let kernel = || {
        was_kernel.set(true);
        kernel()
    };
    // SAFETY: the program says that the memory is there.
    let received = unsafe { receive_at(known, out, bytes, flags, kernel) };
    // The kernel has said it itself.
    if received < 0 || was_kernel.get() {
        return received;
    }
    // SAFETY: the program says that it is a length; null is none.
    let Some(length) = (unsafe { length.as_mut() }) else { return received };
    *length = match received {
        _ if !is_unix => 0,
        0 => 0,
        // SAFETY: the program says that the address has as much room.
        _ => unsafe { kernel::peer_name(known.socket, address, *length) },
    };
    received
}

/// # Safety
/// As `recvmsg`.
pub unsafe fn recvmsg(number: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::recvmsg(number, message, flags) };
    if let Some(known) = datagrams::known_datagrams(number) {
        // SAFETY: what the program gives.
        return unsafe { datagrams::receive_message(known, message, flags) };
    }
    let Some(known) = known_for(number, flags) else { return kernel() };
    // SAFETY: the program says that it is a message; null is none.
    let Some(header) = (unsafe { message.as_mut() }) else { return errno::fail(Errno::FAULT) };
    let places = messages::check_message(header).and_then(|()| {
        // SAFETY: the program says that the memory is there.
        unsafe { messages::places(header.msg_iov, header.msg_iovlen) }
    });
    // Before the call, in which the number may become the kernel's.
    let is_unix = known.sockets.is_unix(number);
    let was_kernel = core::cell::Cell::new(false);
    let kernel = || {
        was_kernel.set(true);
        kernel()
    };
    let received = match places {
        Ok(mut places) => receive(known, &mut places, flags, kernel),
        Err(errno) => errno::fail(errno),
    };
    // The kernel fills the header itself, with what came beside the bytes: descriptors that it has made.
    if received >= 0 && !was_kernel.get() {
        let room = header.msg_namelen;
        messages::finish(header, flags);
        if is_unix && received > 0 && !header.msg_name.is_null() {
            // SAFETY: not null, and the program says that it has as much room.
            header.msg_namelen = unsafe { kernel::peer_name(known.socket, header.msg_name.cast(), room) };
        }
    }
    received
}

/// # Safety
/// As `recvmmsg`.
pub unsafe fn recvmmsg(
    number: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    let goes_at_once = match datagrams::known_datagrams(number) {
        Some(known) => !datagrams::is_carried(known),
        None => known_for(number, flags & !libc::MSG_WAITFORONE).is_none(),
    };
    if goes_at_once {
        // SAFETY: what the program gives.
        return unsafe { real::recvmmsg(number, messages, count, flags, timeout) };
    }
    // SAFETY: the program says that it is a time; null is none.
    let Some(limit) = (unsafe { limit_at(timeout) }) else { return errno::fail(Errno::INVAL) as c_int };
    let until = limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut flags = flags;
    for at in 0..count.min(1024) {
        // SAFETY: the program says that there are `count` messages.
        let message = unsafe { messages.add(at as usize) };
        // SAFETY: one of those messages; the field is there, and nothing is read.
        let header = unsafe { &raw mut (*message).msg_hdr };
        // SAFETY: one of those messages.
        let received = unsafe { recvmsg(number, header, flags & !libc::MSG_WAITFORONE) };
        if received < 0 {
            return if at == 0 { -1 } else { at as c_int };
        }
        // SAFETY: one of those messages.
        unsafe { (*message).msg_len = received as c_uint };
        if flags & libc::MSG_WAITFORONE != 0 {
            flags |= libc::MSG_DONTWAIT;
        }
        if let Some(until) = until {
            // Looked at behind a message alone, as the kernel does.
            let left = until.saturating_duration_since(Instant::now());
            // SAFETY: not null, since there is a limit; the program has a time there.
            unsafe { timeout.write(time_of(left)) };
            if left.is_zero() {
                return at as c_int + 1;
            }
        }
    }
    count.min(1024) as c_int
}

/// # Safety
/// As `__read_chk`, which ends the process if the bytes are more than the memory has room for.
#[inline]
pub unsafe fn __read_chk(number: c_int, out: *mut c_void, bytes: size_t, room: size_t) -> ssize_t {
    if bytes > room {
        // SAFETY: what the program gives.
        return unsafe { real::__read_chk(number, out, bytes, room) };
    }
    // SAFETY: what the program gives.
    unsafe { read(number, out, bytes) }
}

/// # Safety
/// As `__recv_chk`, which ends the process if the bytes are more than the memory has room for.
#[inline]
pub unsafe fn __recv_chk(
    number: c_int,
    out: *mut c_void,
    bytes: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    if bytes > room {
        // SAFETY: what the program gives.
        return unsafe { real::__recv_chk(number, out, bytes, room, flags) };
    }
    // SAFETY: what the program gives.
    unsafe { recv(number, out, bytes, flags) }
}

/// # Safety
/// As `__recvfrom_chk`, which ends the process if the bytes are more than the memory has room for.
#[inline]
pub unsafe fn __recvfrom_chk(
    number: c_int,
    out: *mut c_void,
    bytes: size_t,
    room: size_t,
    flags: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> ssize_t {
    if bytes > room {
        // SAFETY: what the program gives.
        return unsafe { real::__recvfrom_chk(number, out, bytes, room, flags, address, length) };
    }
    // SAFETY: what the program gives.
    unsafe { recvfrom(number, out, bytes, flags, address, length) }
}
