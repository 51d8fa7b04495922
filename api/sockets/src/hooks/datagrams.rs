//! Calls that receive and send datagrams of UDP.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr::{copy_nonoverlapping, from_ref, null_mut};
use core::slice;
use std::io::{IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

use beeline_socket_engine::{Datagram, DatagramTurn, Turn};
use beeline_socket_rules::Why;
use libc::{
    mmsghdr, msghdr, size_t, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage, socklen_t, ssize_t,
};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::process::{Known, forbid, guarded, known};
use crate::real;
use crate::{cancellation, errno, messages};

/// Flags of receives that the engine does.
const RECEIVES: c_int = libc::MSG_DONTWAIT
    | libc::MSG_PEEK
    | libc::MSG_TRUNC
    | libc::MSG_WAITALL
    | libc::MSG_NOSIGNAL
    | libc::MSG_CMSG_CLOEXEC;
/// Flags of sends that the engine does, or that mean nothing on this host.
const SENDS: c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_CONFIRM;

/// The socket of UDP with this number, if the engine knows one.
#[inline]
pub fn known_datagrams(number: c_int) -> Option<Known> {
    known(number).filter(|known| known.sockets.is_of_datagrams(number))
}

/// What a receive gives to the program.
fn answer(received: Result<Datagram, Errno>, flags: c_int) -> ssize_t {
    let bytes = |datagram: Datagram| match flags & libc::MSG_TRUNC {
        0 => datagram.copied,
        _ => datagram.length,
    };
    errno::answer(received.map(bytes))
}

/// Receives to one place, and says from where.
///
/// # Safety
/// As `recvfrom`.
pub unsafe fn receive_at(
    known: Known,
    out: *mut c_void,
    bytes: size_t,
    flags: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> ssize_t {
    let number = known.socket.as_raw_fd();
    // SAFETY: what the program gives.
    let as_given = || unsafe { real::recvfrom(number, out, bytes, flags, address, length) };
    if flags & !RECEIVES != 0 {
        return as_given();
    }
    // SAFETY: the program says that the memory is there.
    let mut place = match unsafe { messages::place(out, bytes) } {
        Ok(place) => place,
        Err(errno) => return errno::fail(errno),
    };
    cancellation::point();
    let receive_flags = RecvFlags::from_bits_retain(flags.cast_unsigned());
    let turn =
        guarded(|| known.sockets.receive_datagram(known.socket, slice::from_mut(&mut place), receive_flags));
    match turn {
        DatagramTurn::Done(received) => {
            if let Ok(datagram) = received
                && !address.is_null()
                && !length.is_null()
            {
                // SAFETY: not null, and the program says that they are an address and its length.
                unsafe { put_address(datagram.from, address, length) };
            }
            answer(received, flags)
        }
        DatagramTurn::Kernel(pass) => {
            let (mut from, mut from_bytes) = (no_address(), size_of::<sockaddr_storage>() as socklen_t);
            let name = (&raw mut from).cast::<sockaddr>();
            // SAFETY: what the program gives, and an address of ours that is as long as `from_bytes` says.
            let received = unsafe { real::recvfrom(number, out, bytes, flags, name, &raw mut from_bytes) };
            if received >= 0 {
                // SAFETY: the kernel has written as many bytes of it.
                let source = unsafe { address_of(name, from_bytes) };
                if flags & libc::MSG_PEEK == 0 {
                    pass.moved(received.cast_unsigned());
                    guarded(|| known.sockets.heard_datagram(known.socket, source));
                }
                if !address.is_null() && !length.is_null() {
                    // SAFETY: not null, and the program says that they are an address and its length.
                    unsafe { put(name.cast(), from_bytes, address, length) };
                }
            }
            received
        }
    }
}

/// Receives to several places.
pub fn receive_to(
    known: Known,
    places: &mut [IoSliceMut<'_>],
    flags: c_int,
    kernel: impl FnOnce() -> ssize_t,
) -> Result<Datagram, ssize_t> {
    cancellation::point();
    let receive_flags = RecvFlags::from_bits_retain(flags.cast_unsigned());
    match guarded(|| known.sockets.receive_datagram(known.socket, places, receive_flags)) {
        DatagramTurn::Done(received) => received.map_err(errno::fail),
        DatagramTurn::Kernel(pass) => {
            let received = kernel();
            if received >= 0 && flags & libc::MSG_PEEK == 0 {
                pass.moved(received.cast_unsigned());
            }
            Err(received)
        }
    }
}

/// # Safety
/// As `recvmsg`.
pub unsafe fn receive_message(known: Known, message: *mut msghdr, flags: c_int) -> ssize_t {
    let number = known.socket.as_raw_fd();
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::recvmsg(number, message, flags) };
    if flags & !RECEIVES != 0 {
        return kernel();
    }
    // SAFETY: the program says that it is a message; null is none.
    let Some(header) = (unsafe { message.as_mut() }) else { return errno::fail(Errno::FAULT) };
    let places = messages::check_message(header).and_then(|()| {
        // SAFETY: the program says that the memory is there.
        unsafe { messages::places(header.msg_iov, header.msg_iovlen) }
    });
    let mut places = match places {
        Ok(places) => places,
        Err(errno) => return errno::fail(errno),
    };
    match receive_to(known, &mut places, flags, kernel) {
        Ok(datagram) => {
            if !header.msg_name.is_null() {
                let (name, length) = (header.msg_name.cast(), &raw mut header.msg_namelen);
                // SAFETY: not null, and the program says that they are an address and its length.
                unsafe { put_address(datagram.from, name, length) };
            }
            header.msg_controllen = 0;
            let is_cut = if datagram.length > datagram.copied { libc::MSG_TRUNC } else { 0 };
            header.msg_flags = flags & libc::MSG_CMSG_CLOEXEC | is_cut;
            answer(Ok(datagram), flags)
        }
        Err(received) => {
            if received >= 0 && flags & libc::MSG_PEEK == 0 {
                // SAFETY: the kernel has written the address of a message that has one.
                let source = unsafe { address_of(header.msg_name.cast(), header.msg_namelen) };
                guarded(|| known.sockets.heard_datagram(known.socket, source));
            }
            received
        }
    }
}

/// Whether calls for several messages are made one by one: some go by windows.
pub fn is_carried(known: Known) -> bool {
    let socket = known.sockets.datagram_socket(known.socket.as_raw_fd());
    socket.is_some_and(|socket| socket.has_windows())
}

/// Sends pieces of a datagram to an address, which is null for the one that the socket is connected to.
///
/// # Safety
/// `address` is null or valid for reads of `length` bytes.
pub unsafe fn send_pieces(
    known: Known,
    pieces: &[IoSlice<'_>],
    flags: c_int,
    address: *const sockaddr,
    length: socklen_t,
    kernel: impl FnOnce() -> ssize_t,
) -> ssize_t {
    // SAFETY: by this function's contract.
    let to = unsafe { address_of(address, length) };
    if flags & !SENDS != 0 {
        leave(known);
        return kernel();
    }
    if to.is_none() && !address.is_null() {
        // Few of these are sent.
        guarded(|| known.sockets.sends_datagrams_by_kernel(known.socket));
        return kernel();
    }
    match guarded(|| known.sockets.send_datagram(known.socket, to, pieces)) {
        Turn::Done(sent) => errno::answer(sent),
        Turn::Kernel(pass) => {
            let sent = kernel();
            if sent >= 0 {
                pass.moved(sent.cast_unsigned());
            }
            sent
        }
    }
}

/// Leaves the socket to the kernel for ever, before a call that the engine does not make: one with control data, or with `MSG_MORE`, behind which the kernel
/// waits for the rest of the datagram. The receiver gets some time to take what was sent before.
#[cold]
fn leave(known: Known) {
    guarded(|| known.sockets.sends_datagrams_by_kernel(known.socket));
    forbid(known.socket.as_raw_fd(), Why::Option);
}

/// # Safety
/// As `sendmsg`.
pub unsafe fn send_message(known: Known, message: &msghdr, flags: c_int) -> ssize_t {
    let number = known.socket.as_raw_fd();
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::sendmsg(number, from_ref(message), flags) };
    if message.msg_controllen != 0 {
        leave(known);
        return kernel();
    }
    let pieces = messages::check_message(message).and_then(|()| {
        // SAFETY: the program says that the memory is there.
        unsafe { messages::pieces(message.msg_iov, message.msg_iovlen) }
    });
    match pieces {
        // SAFETY: the program says that the address is there.
        Ok(pieces) => unsafe {
            send_pieces(known, &pieces, flags, message.msg_name.cast(), message.msg_namelen, kernel)
        },
        Err(errno) => errno::fail(errno),
    }
}

/// Sends the first of several messages so that it is counted, and has the kernel send the rest at once.
///
/// # Safety
/// As `sendmmsg`; there is one message at least.
pub unsafe fn send_messages(known: Known, list: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    // SAFETY: the first of the program's messages.
    let header = unsafe { &(*list).msg_hdr };
    // SAFETY: what the program gives.
    let sent = unsafe { send_message(known, header, flags) };
    if sent < 0 {
        return -1;
    }
    // SAFETY: the first of the program's messages.
    unsafe { (*list).msg_len = sent as c_uint };
    if count == 1 {
        return 1;
    }
    let number = known.socket.as_raw_fd();
    guarded(|| known.sockets.sends_datagrams_by_kernel(known.socket));
    // SAFETY: there are two messages at least.
    let rest = unsafe { list.add(1) };
    // SAFETY: the program's messages behind the first.
    let more = unsafe { real::sendmmsg(number, rest, count - 1, flags) };
    1 + more.max(0)
}

fn no_address() -> sockaddr_storage {
    // SAFETY: zero is a value of every field.
    unsafe { core::mem::zeroed() }
}

/// The address of a socket of the Internet, if it is one.
///
/// # Safety
/// `address` is null or valid for reads of `length` bytes.
unsafe fn address_of(address: *const sockaddr, length: socklen_t) -> Option<SocketAddr> {
    let length = length as usize;
    if address.is_null() || length < size_of::<libc::sa_family_t>() {
        return None;
    }
    // SAFETY: not null, and the family is the first field, within `length` bytes; a program may have the address anywhere.
    let family = c_int::from(unsafe { address.cast::<libc::sa_family_t>().read_unaligned() });
    match family {
        libc::AF_INET if length >= size_of::<sockaddr_in>() => {
            // SAFETY: as many bytes are there.
            let address = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
            Some(SocketAddrV4::new(ip, u16::from_be(address.sin_port)).into())
        }
        libc::AF_INET6 if length >= size_of::<sockaddr_in6>() => {
            // SAFETY: as many bytes are there.
            let address = unsafe { address.cast::<sockaddr_in6>().read_unaligned() };
            let (ip, port) = (Ipv6Addr::from(address.sin6_addr.s6_addr), u16::from_be(address.sin6_port));
            Some(SocketAddrV6::new(ip, port, address.sin6_flowinfo, address.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// Says from where a datagram came, as the kernel does: as much as there is room for, and how long it is.
///
/// # Safety
/// `address` is valid for writes of as many bytes as `length` points to.
unsafe fn put_address(from: Option<SocketAddr>, address: *mut sockaddr, length: *mut socklen_t) {
    match from {
        // SAFETY: by this function's contract.
        None => unsafe { length.write(0) },
        Some(SocketAddr::V4(from)) => {
            let in_addr = libc::in_addr { s_addr: u32::from(*from.ip()).to_be() };
            let name = sockaddr_in {
                sin_family: libc::AF_INET as _,
                sin_port: from.port().to_be(),
                sin_addr: in_addr,
                sin_zero: [0; 8],
            };
            // SAFETY: by this function's contract.
            unsafe { put(from_ref(&name).cast(), size_of_val(&name) as socklen_t, address, length) };
        }
        Some(SocketAddr::V6(from)) => {
            let name = sockaddr_in6 {
                sin6_family: libc::AF_INET6 as _,
                sin6_port: from.port().to_be(),
                sin6_flowinfo: from.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: from.ip().octets() },
                sin6_scope_id: from.scope_id(),
            };
            // SAFETY: by this function's contract.
            unsafe { put(from_ref(&name).cast(), size_of_val(&name) as socklen_t, address, length) };
        }
    }
}

/// # Safety
/// `name` has `bytes` bytes, and `address` room for as many as `length` points to.
unsafe fn put(name: *const u8, bytes: socklen_t, address: *mut sockaddr, length: *mut socklen_t) {
    // SAFETY: by this function's contract.
    let room = unsafe { length.read() };
    if room.cast_signed() > 0 {
        // SAFETY: no more than either has; the program's memory is not ours.
        unsafe { copy_nonoverlapping(name, address.cast(), bytes.min(room) as usize) };
    }
    // SAFETY: by this function's contract.
    unsafe { length.write(bytes) };
}

/// A receive of a call that has no address.
///
/// # Safety
/// As `recv`.
pub unsafe fn receive(known: Known, out: *mut c_void, bytes: size_t, flags: c_int) -> ssize_t {
    // SAFETY: by this function's contract; null addresses are none.
    unsafe { receive_at(known, out, bytes, flags, null_mut(), null_mut()) }
}
