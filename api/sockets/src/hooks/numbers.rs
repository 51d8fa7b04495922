//! Calls that close numbers of descriptors, or make more of them.

use core::ffi::{c_int, c_long, c_uint};

use crate::hooks::sets;
use crate::process::{active, borrow_numbers, forbid, guarded, hand_over, has_left, known, owns_tables};
use crate::real;
use crate::{errno, kernel, origin};
use beeline_socket_rules::Why;

/// The number is about to mean nothing, or something else.
pub fn before_close(number: c_int) {
    let known = known(number);
    if known.is_none() && !origin::is_noted(number) && !sets::has(number) || has_left() {
        return;
    }
    if !owns_tables() {
        borrow_numbers();
        return;
    }
    origin::clear(number);
    sets::closed(number);
    if let Some(known) = known {
        guarded(|| known.sockets.close(known.socket));
    }
}

/// As [`before_close`], for all numbers from `first` to `last`.
fn before_close_of_range(first: c_uint, last: c_uint) {
    let end = origin::end().cast_unsigned();
    if first < end {
        (first..=last.min(end - 1)).for_each(|number| before_close(number.cast_signed()));
    }
}

/// # Safety
/// As `close`.
#[inline]
pub unsafe fn close(number: c_int) -> c_int {
    before_close(number);
    // SAFETY: what the program gives.
    unsafe { real::close(number) }
}

/// # Safety
/// As `close_range`.
pub unsafe fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    if flags.cast_unsigned() & libc::CLOSE_RANGE_CLOEXEC == 0 {
        before_close_of_range(first, last);
    }
    // SAFETY: what the program gives.
    unsafe { real::close_range(first, last, flags) }
}

/// Prepares for `closefrom`.
pub fn before_closefrom([first, ..]: [c_long; 3]) {
    before_close_of_range((first as c_int).max(0).cast_unsigned(), c_uint::MAX);
}

/// # Safety
/// As `dup`.
pub unsafe fn dup(number: c_int) -> c_int {
    before_copy(number);
    // SAFETY: what the program gives.
    let copy = unsafe { real::dup(number) };
    copied(number, copy)
}

/// # Safety
/// As `dup2`.
pub unsafe fn dup2(number: c_int, to: c_int) -> c_int {
    if number == to {
        // The call that stands in for it where there is no real function refuses equal numbers.
        return match kernel::descriptor_flags(number) {
            Ok(_) => number,
            Err(errno) => errno::fail(errno) as c_int,
        };
    }
    before_copy_to(number, to);
    // SAFETY: what the program gives.
    let copy = unsafe { real::dup2(number, to) };
    copied(number, copy)
}

/// # Safety
/// As `dup3`.
pub unsafe fn dup3(number: c_int, to: c_int, flags: c_int) -> c_int {
    before_copy_to(number, to);
    // SAFETY: what the program gives.
    let copy = unsafe { real::dup3(number, to, flags) };
    copied(number, copy)
}

/// A connection whose socket gets a second number is the kernel's.
fn before_copy(number: c_int) {
    sets::share(number, Why::SetShared);
    if known(number).is_none() {
        return;
    }
    match owns_tables() {
        true => forbid(number, Why::Duplicated),
        // In a child of `vfork`, which makes copies for the program that it becomes.
        false => hand_over(number, Why::Executed),
    }
}

/// As [`before_copy`]; the other number is closed by the call, if that can be done.
fn before_copy_to(number: c_int, to: c_int) {
    let is_tracked = |number| known(number).is_some() || origin::is_noted(number) || sets::has(number);
    if !has_left()
        && number != to
        && (is_tracked(number) || is_tracked(to))
        && kernel::descriptor_flags(number).is_ok()
    {
        before_copy(number);
        before_close(to);
    }
}

/// What is known of a socket is known of its copy.
fn copied(number: c_int, copy: c_int) -> c_int {
    if copy >= 0 && copy != number && active().is_some() && owns_tables() {
        origin::copy(number, copy);
        origin::note(copy);
        if let Some(known) = known(number) {
            guarded(|| known.sockets.duplicated(number, copy));
        }
    }
    copy
}

/// # Safety
/// As `fcntl`.
#[inline]
pub unsafe fn fcntl(number: c_int, command: c_int, argument: c_long) -> c_int {
    before_fcntl(number, command, argument);
    // SAFETY: what the program gives.
    let result = unsafe { real::fcntl(number, command, argument) };
    after_fcntl(number, command, argument, result)
}

/// # Safety
/// As `fcntl64`.
#[inline]
pub unsafe fn fcntl64(number: c_int, command: c_int, argument: c_long) -> c_int {
    before_fcntl(number, command, argument);
    // SAFETY: what the program gives.
    let result = unsafe { real::fcntl64(number, command, argument) };
    after_fcntl(number, command, argument, result)
}

/// Signals for a connection come of the kernel's bytes alone.
fn before_fcntl(number: c_int, command: c_int, argument: c_long) {
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => before_copy(number),
        libc::F_SETOWN | F_SETOWN_EX | F_SETSIG => forbid(number, Why::Option),
        libc::F_SETFL if argument as c_int & libc::O_ASYNC != 0 => forbid(number, Why::Option),
        _ => {}
    }
}

fn after_fcntl(number: c_int, command: c_int, argument: c_long, result: c_int) -> c_int {
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => return copied(number, result),
        libc::F_SETFL if result == 0 => {
            if let Some(known) = known(number) {
                known.sockets.set_nonblocking(number, argument as c_int & libc::O_NONBLOCK != 0);
            }
        }
        _ => {}
    }
    result
}

/// Of Linux's `asm-generic/fcntl.h`; libc does not have them for every C library.
const F_SETSIG: c_int = 10;
const F_SETOWN_EX: c_int = 15;
