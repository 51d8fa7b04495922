//! Calls that give bytes to a socket.

use core::ffi::{c_int, c_uint, c_void};
use core::slice;
use std::io::IoSlice;

use libc::{iovec, mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t};
use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::hooks::{datagrams, sets};
use crate::process::{Known, forbid, guarded, hand_over, known};
use crate::real;
use crate::{cancellation, errno, kernel, messages};
use beeline_socket_engine::Turn;
use beeline_socket_rules::Why;

/// Flags that the engine does, or that mean nothing to a connection.
const FLAGS: c_int =
    libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_MORE | libc::MSG_CONFIRM | libc::MSG_EOR;

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
            _ if flags & libc::MSG_ZEROCOPY != 0 => Why::ZeroCopy,
            _ => Why::Option,
        },
    );
    None
}

/// A call that the kernel makes, behind bytes that are to be in the socket before it: what the program has sent and what came back of that.
#[cold]
fn behind_owed(number: c_int, flags: c_int, kernel: impl FnOnce() -> ssize_t) -> ssize_t {
    let Some(known) = known(number) else { return kernel() };
    if !guarded(|| known.sockets.settle_sending(known.socket, flags & libc::MSG_DONTWAIT == 0)) {
        return errno::fail(Errno::AGAIN);
    }
    kernel()
}

/// Sends by the engine, or by the kernel where it says so.
pub fn send_pieces(
    known: Known,
    pieces: &[IoSlice<'_>],
    flags: c_int,
    kernel: impl FnOnce() -> ssize_t,
) -> ssize_t {
    cancellation::point();
    let send_flags = SendFlags::from_bits_retain(flags.cast_unsigned());
    match guarded(|| known.sockets.send(known.socket, pieces, send_flags)) {
        Turn::Kernel(pass) => {
            let moved = kernel();
            if moved > 0 {
                pass.moved(moved.cast_unsigned());
            }
            moved
        }
        Turn::Done(Err(Errno::PIPE)) if flags & libc::MSG_NOSIGNAL == 0 => {
            kernel::raise_broken_pipe();
            errno::fail(Errno::PIPE)
        }
        Turn::Done(result) => errno::answer(result),
    }
}

/// Sends one piece.
///
/// # Safety
/// `from` is null, or valid for reads of `bytes` bytes.
unsafe fn send_piece(
    known: Known,
    from: *const c_void,
    bytes: size_t,
    flags: c_int,
    kernel: impl FnOnce() -> ssize_t,
) -> ssize_t {
    // SAFETY: by this function's contract.
    match unsafe { messages::piece(from, bytes) } {
        Ok(piece) => send_pieces(known, slice::from_ref(&piece), flags, kernel),
        Err(errno) => errno::fail(errno),
    }
}

/// # Safety
/// As `write`.
#[inline]
pub unsafe fn write(number: c_int, from: *const c_void, bytes: size_t) -> ssize_t {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::write(number, from, bytes) };
    match known(number) {
        Some(known) if known.sockets.is_of_datagrams(number) && isize::try_from(bytes).is_ok() => {
            // SAFETY: the program says that the memory is there.
            unsafe { send_datagram(known, from, bytes, 0, core::ptr::null(), 0, kernel) }
        }
        // More is an error of the kernel's, whatever the socket's state is.
        Some(known) if isize::try_from(bytes).is_ok() => {
            // SAFETY: the program says that the memory is there.
            unsafe { send_piece(known, from, bytes, 0, kernel) }
        }
        _ => kernel(),
    }
}

/// # Safety
/// As `writev`.
#[inline]
pub unsafe fn writev(number: c_int, vectors: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::writev(number, vectors, count) };
    let Some(known) = known(number) else { return kernel() };
    let Ok(count) = usize::try_from(count) else { return errno::fail(Errno::INVAL) };
    // SAFETY: the program says that the memory is there.
    match unsafe { messages::pieces(vectors, count) } {
        // The kernel returns before it asks the socket.
        Ok(pieces) if pieces.iter().all(|piece| piece.is_empty()) => 0,
        Ok(pieces) if known.sockets.is_of_datagrams(number) => {
            // SAFETY: no address is given.
            unsafe { datagrams::send_pieces(known, &pieces, 0, core::ptr::null(), 0, kernel) }
        }
        Ok(pieces) => send_pieces(known, &pieces, 0, kernel),
        Err(errno) => errno::fail(errno),
    }
}

/// Sends one piece as a datagram.
///
/// # Safety
/// As `sendto`.
#[inline]
unsafe fn send_datagram(
    known: Known,
    from: *const c_void,
    bytes: size_t,
    flags: c_int,
    address: *const sockaddr,
    length: socklen_t,
    kernel: impl FnOnce() -> ssize_t,
) -> ssize_t {
    // SAFETY: the program says that the memory is there.
    match unsafe { messages::piece(from, bytes) } {
        // SAFETY: the program says that the address is there.
        Ok(piece) => unsafe {
            datagrams::send_pieces(known, slice::from_ref(&piece), flags, address, length, kernel)
        },
        Err(errno) => errno::fail(errno),
    }
}

/// # Safety
/// As `send`.
#[inline]
pub unsafe fn send(number: c_int, from: *const c_void, bytes: size_t, flags: c_int) -> ssize_t {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::send(number, from, bytes, flags) };
    if let Some(known) = datagrams::known_datagrams(number) {
        // SAFETY: what the program gives.
        return unsafe { send_datagram(known, from, bytes, flags, core::ptr::null(), 0, kernel) };
    }
    match known_for(number, flags) {
        // SAFETY: the program says that the memory is there.
        Some(known) => unsafe { send_piece(known, from, bytes, flags, kernel) },
        None => kernel(),
    }
}

/// The kernel takes no notice of the address that a call on a connection of TCP has, unless it is longer than any can be.
const LONGEST_ADDRESS: socklen_t = size_of::<libc::sockaddr_storage>() as socklen_t;

/// # Safety
/// As `sendto`.
#[inline]
pub unsafe fn sendto(
    number: c_int,
    from: *const c_void,
    bytes: size_t,
    flags: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> ssize_t {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::sendto(number, from, bytes, flags, address, length) };
    if let Some(known) = datagrams::known_datagrams(number) {
        // SAFETY: what the program gives.
        return unsafe { send_datagram(known, from, bytes, flags, address, length, kernel) };
    }
    match known_for(number, flags) {
        // AF_UNIX refuses an address.
        Some(known) if !address.is_null() && length > 0 && known.sockets.is_unix(number) => kernel(),
        // SAFETY: the program says that the memory is there.
        Some(known) if address.is_null() || length <= LONGEST_ADDRESS => unsafe {
            send_piece(known, from, bytes, flags, kernel)
        },
        // The kernel says what is wrong with it, and sends nothing.
        Some(_) => kernel(),
        None => behind_owed(number, flags, kernel),
    }
}

/// # Safety
/// As `sendmsg`.
pub unsafe fn sendmsg(number: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::sendmsg(number, message, flags) };
    // SAFETY: the program says that it is a message; null is none.
    let Some(header) = (unsafe { message.as_ref() }) else { return kernel() };
    // SAFETY: the program says that the control bytes are there.
    unsafe { before_passing(header) };
    if let Some(known) = datagrams::known_datagrams(number) {
        // SAFETY: what the program gives.
        return unsafe { datagrams::send_message(known, header, flags) };
    }
    let Some(known) = known_for(number, flags) else { return behind_owed(number, flags, kernel) };
    if header.msg_controllen != 0 {
        let is_unix = known.sockets.is_unix(number);
        forbid(number, if is_unix { Why::Ancillary } else { Why::Option });
        return behind_owed(number, flags, kernel);
    }
    if !header.msg_name.is_null() && header.msg_namelen > 0 && known.sockets.is_unix(number) {
        return kernel();
    }
    if !header.msg_name.is_null() && header.msg_namelen > LONGEST_ADDRESS {
        // As in `sendto`; a length that is too large is shortened there, which is not worth a thought here.
        forbid(number, Why::Option);
        return kernel();
    }
    let pieces = messages::check_message(header).and_then(|()| {
        // SAFETY: the program says that the memory is there.
        unsafe { messages::pieces(header.msg_iov, header.msg_iovlen) }
    });
    match pieces {
        Ok(pieces) => send_pieces(known, &pieces, flags, kernel),
        Err(errno) => errno::fail(errno),
    }
}

/// Connections whose descriptors are in the message become the kernel's.
///
/// # Safety
/// The control bytes of the message are null or valid for reads.
unsafe fn before_passing(message: &msghdr) {
    // SAFETY: by this function's contract.
    unsafe { messages::passed(message) }.for_each(|number| {
        sets::share(number, Why::SetShared);
        hand_over(number, Why::Passed);
    });
}

/// # Safety
/// As `sendmmsg`.
pub unsafe fn sendmmsg(number: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    let count = if messages.is_null() { 0 } else { count.min(1024) };
    if known(number).is_none() {
        for at in 0..count as usize {
            // SAFETY: the program says that there are `count` messages.
            let message = unsafe { messages.add(at) };
            // SAFETY: one of those messages.
            let header = unsafe { &(*message).msg_hdr };
            // SAFETY: the program says that the control bytes are there.
            unsafe { before_passing(header) };
        }
        // SAFETY: what the program gives; of more messages than these the kernel sends none.
        return unsafe { real::sendmmsg(number, messages, count, flags) };
    }
    if let Some(known) = datagrams::known_datagrams(number)
        && count > 0
        && !datagrams::is_carried(known)
    {
        // SAFETY: what the program gives.
        return unsafe { datagrams::send_messages(known, messages, count, flags) };
    }
    for at in 0..count {
        // SAFETY: the program says that there are `count` messages.
        let message = unsafe { messages.add(at as usize) };
        // SAFETY: one of those messages; the field is there, and nothing is read.
        let header = unsafe { &raw const (*message).msg_hdr };
        // SAFETY: one of those messages.
        let sent = unsafe { sendmsg(number, header, flags) };
        if sent < 0 {
            return if at == 0 { -1 } else { at as c_int };
        }
        // SAFETY: one of those messages.
        unsafe { (*message).msg_len = sent as c_uint };
    }
    count as c_int
}
