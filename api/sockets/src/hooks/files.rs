//! Calls that move bytes between a socket and something else without the program's memory.

use core::ffi::{c_int, c_uint};
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use beeline_socket_rules::Why;
use libc::{off_t, size_t, ssize_t};
use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, pread};

use crate::errno;
use crate::hooks::send::send_pieces;
use crate::process::{Known, hand_over, known};
use crate::real;

/// As much of a file as is read before it is sent.
const READ_BYTES: usize = 64 << 10;

/// # Safety
/// As `sendfile`.
pub unsafe fn sendfile(to: c_int, from: c_int, offset: *mut off_t, bytes: size_t) -> ssize_t {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::sendfile(to, from, offset, bytes) };
    let Some(known) = known(to) else { return kernel() };
    if known.sockets.endpoint(to).is_none() {
        return send_pieces(known, &[], 0, kernel);
    }
    if from < 0 {
        return errno::fail(Errno::BADF);
    }
    // SAFETY: the program keeps the file open while it makes the call; a number that is nothing is an error of the kernel's.
    let file = unsafe { BorrowedFd::borrow_raw(from) };
    // SAFETY: null, or the offset that the program gives.
    let given = unsafe { offset.as_mut() };
    let start = match &given {
        Some(offset) => u64::try_from(**offset).map_err(|_| Errno::INVAL),
        None => seek(file, SeekFrom::Current(0)),
    };
    let mut buffer = vec![0; READ_BYTES.min(bytes)];
    match start.and_then(|start| pread(file, &mut buffer[..0], start).map(|_| start)) {
        Ok(start) => {
            let sent = send_file(known, file, start, bytes, &mut buffer);
            let end = start + sent.max(0).cast_unsigned() as u64;
            match given {
                Some(offset) => *offset = end.cast_signed(),
                // The file could be read at a place, so it has one.
                None => _ = seek(file, SeekFrom::Start(end)),
            }
            sent
        }
        // What is no file goes as the kernel can.
        Err(_) => {
            hand_over(to, Why::Splice);
            kernel()
        }
    }
}

/// Reads pieces of a file and sends them, until one goes in part.
fn send_file(known: Known, file: BorrowedFd<'_>, start: u64, bytes: usize, buffer: &mut [u8]) -> ssize_t {
    let mut sent = 0;
    while sent < bytes {
        let most = buffer.len().min(bytes - sent);
        let piece = match pread(file, &mut buffer[..most], start + sent as u64) {
            Ok(0) => break,
            Ok(read) => &buffer[..read],
            Err(errno) if sent == 0 => return errno::fail(errno),
            Err(_) => break,
        };
        let number = std::os::fd::AsRawFd::as_raw_fd(&known.socket);
        // SAFETY: the piece is there while the call is made.
        let kernel = || unsafe { real::write(number, piece.as_ptr().cast(), piece.len()) };
        match send_pieces(known, &[IoSlice::new(piece)], 0, kernel) {
            moved if moved < 0 && sent == 0 => return moved,
            moved if moved < 0 => break,
            moved => {
                sent += moved.cast_unsigned();
                if moved.cast_unsigned() < piece.len() {
                    break;
                }
            }
        }
    }
    sent.cast_signed()
}

/// # Safety
/// As `splice`.
pub unsafe fn splice(
    from: c_int,
    from_offset: *mut off_t,
    to: c_int,
    to_offset: *mut off_t,
    bytes: size_t,
    flags: c_uint,
) -> ssize_t {
    for number in [from, to] {
        if known(number).is_some() {
            hand_over(number, Why::Splice);
        }
    }
    // SAFETY: what the program gives.
    unsafe { real::splice(from, from_offset, to, to_offset, bytes, flags) }
}
