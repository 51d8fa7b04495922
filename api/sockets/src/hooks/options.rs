//! Calls that ask a socket for something, or set it, and the end of one direction.

use core::ffi::{c_int, c_long, c_void};

use libc::socklen_t;
use rustix::net::Shutdown;

use crate::hooks::datagrams::known_datagrams;
use crate::hooks::groups;
use crate::process::{forbid, guarded, known, settle};
use crate::real;
use crate::{errno, origin};
use beeline_socket_rules::Why;

/// Of `linux/tcp.h`: takes pages of received bytes.
const TCP_ZEROCOPY_RECEIVE: c_int = 35;
/// Of `asm-generic/sockios.h` and `linux/sockios.h`.
const FIOSETOWN: c_long = 0x8901;
const SIOCSPGRP: c_long = 0x8902;
const SIOCATMARK: c_long = 0x8905;
const SIOCINQ: c_long = libc::FIONREAD as c_long;

/// # Safety
/// As `shutdown`.
pub unsafe fn shutdown(number: c_int, how: c_int) -> c_int {
    let direction = match how {
        libc::SHUT_RD => Some(Shutdown::Read),
        libc::SHUT_WR => Some(Shutdown::Write),
        libc::SHUT_RDWR => Some(Shutdown::Both),
        _ => None,
    };
    if known_datagrams(number).is_some() {
        forbid(number, Why::HalfClosed);
    }
    if let (Some(known), Some(direction)) = (known(number), direction)
        && !guarded(|| known.sockets.shutdown(known.socket, direction))
    {
        // Its other direction ends at once.
        // SAFETY: what the program gives.
        return if how == libc::SHUT_RDWR { unsafe { real::shutdown(number, libc::SHUT_RD) } } else { 0 };
    }
    // SAFETY: what the program gives.
    unsafe { real::shutdown(number, how) }
}

/// # Safety
/// As `setsockopt`.
pub unsafe fn setsockopt(
    number: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    if let Some(known) = known_datagrams(number).filter(|known| known.sockets.groups_are_of_host()) {
        // SAFETY: the program says that the value is there.
        if let Some(result) = unsafe { groups::set(known, level, name, value, length) } {
            return result;
        }
    }
    let is_neutral = match known_datagrams(number) {
        Some(_) => beeline_tcp::is_neutral_for_datagrams(level, name),
        None => beeline_tcp::is_neutral(level, name),
    };
    if !is_neutral {
        match (level, name) {
            // Readiness is the kernel's from then on.
            (libc::SOL_SOCKET, libc::SO_RCVLOWAT) => settle(number, Why::Option),
            // What the option asks for comes with bytes of the socket alone.
            _ if known(number).is_some_and(|known| known.sockets.is_unix(number)) => {
                settle(number, Why::Option);
            }
            _ => forbid(number, Why::Option),
        }
        origin::make_odd(number);
    }
    // SAFETY: what the program gives.
    unsafe { real::setsockopt(number, level, name, value, length) }
}

/// # Safety
/// As `getsockopt`.
pub unsafe fn getsockopt(
    number: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    if (level, name) == (libc::IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE) {
        forbid(number, Why::Option);
    }
    // SAFETY: what the program gives.
    unsafe { real::getsockopt(number, level, name, value, length) }
}

/// # Safety
/// As `ioctl`.
#[inline]
pub unsafe fn ioctl(number: c_int, request: c_long, argument: *mut c_void) -> c_int {
    if known(number).is_some() {
        // SAFETY: what the program gives.
        return unsafe { ioctl_of_connection(number, request, argument) };
    }
    // SAFETY: what the program gives.
    unsafe { real::ioctl(number, request, argument) }
}

/// # Safety
/// As `ioctl`.
unsafe fn ioctl_of_connection(number: c_int, request: c_long, argument: *mut c_void) -> c_int {
    let Some(known) = known(number) else {
        // SAFETY: what the program gives.
        return unsafe { real::ioctl(number, request, argument) };
    };
    // Programs pass the request as an int or a long; the kernel looks at 32 bits.
    match request & 0xffff_ffff {
        SIOCINQ if known.sockets.is_of_datagrams(number) => {
            // SAFETY: the program says that the integer is there.
            let place = unsafe { argument.cast::<c_int>().as_mut() };
            if let (Some(bytes), Some(place)) = (guarded(|| known.sockets.next_datagram_bytes(number)), place)
            {
                *place = c_int::try_from(bytes).unwrap_or(c_int::MAX);
                return 0;
            }
        }
        SIOCINQ => {
            // SAFETY: the program says that the integer is there.
            let place = unsafe { argument.cast::<c_int>().as_mut() };
            match (guarded(|| known.sockets.unread_bytes(known.socket)), place) {
                (Some(Ok(bytes)), Some(place)) => {
                    *place = c_int::try_from(bytes).unwrap_or(c_int::MAX);
                    return 0;
                }
                (Some(Err(errno)), _) => return errno::fail(errno) as c_int,
                _ => {}
            }
        }
        SIOCATMARK if is_before_mark(number) => {
            // SAFETY: the program says that the integer is there.
            let place = unsafe { argument.cast::<c_int>().as_mut() };
            if let Some(place) = place {
                *place = 0;
                return 0;
            }
        }
        FIOSETOWN | SIOCSPGRP => forbid(number, Why::Option),
        request if request == libc::FIOASYNC as c_long => forbid(number, Why::Option),
        _ => {}
    }
    // SAFETY: what the program gives.
    let result = unsafe { real::ioctl(number, request, argument) };
    if result != 0 {
        return result;
    }
    // SAFETY: the kernel has just read or written the integer of each request that is looked at here.
    let value = unsafe { argument.cast::<c_int>().as_mut() };
    match (request & 0xffff_ffff, value) {
        (request, Some(value)) if request == libc::FIONBIO as c_long => {
            known.sockets.set_nonblocking(number, *value != 0);
        }
        _ => {}
    }
    result
}

/// # Safety
/// As `sockatmark`.
pub unsafe fn sockatmark(number: c_int) -> c_int {
    if is_before_mark(number) {
        return 0;
    }
    // SAFETY: what the program gives.
    unsafe { real::sockatmark(number) }
}

/// Whether bytes of the window come before the mark of urgent data, which the kernel does not know of. Whoever asks for the mark may have such data, and is the kernel's.
fn is_before_mark(number: c_int) -> bool {
    forbid(number, Why::OutOfBand);
    let endpoint = known(number).and_then(|known| known.sockets.endpoint(number));
    endpoint.is_some_and(|endpoint| guarded(|| endpoint.has_news()))
}

/// Prepares for reads and writes at an offset, which are those of the socket for an offset of -1.
pub fn before_call_with_offset([number, ..]: [c_long; 3]) {
    forbid(number as c_int, Why::Option);
}
