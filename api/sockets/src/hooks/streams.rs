//! Streams of the C library, which read and write by calls of its own.

use core::ffi::{c_int, c_long};

use crate::hooks::numbers;
use crate::process::hand_over;
use beeline_socket_rules::Why;

/// Prepares for a stream that is made of a number, or for text that is printed to one.
pub fn before_use_of_number([number, ..]: [c_long; 3]) {
    hand_over(number as c_int, Why::Stream);
}

/// Prepares for the end of a stream, by which its number is closed.
pub fn before_close([stream, ..]: [c_long; 3]) {
    close_number_of(stream);
}

/// Prepares for a stream that gets another file (`freopen`); its number is that file's then.
pub fn before_reopen([_, _, stream]: [c_long; 3]) {
    close_number_of(stream);
}

fn close_number_of(stream: c_long) {
    let stream = stream as *mut libc::FILE;
    if !stream.is_null() {
        // SAFETY: the program gives a stream, which is open until the real function has it.
        let number: c_int = unsafe { libc::fileno(stream) };
        numbers::before_close(number);
    }
}
