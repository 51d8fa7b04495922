//! Bytes that a signal handler has sent while the thread that it interrupted was sending over the same connection: they go behind.

use core::cell::Cell;
use core::ffi::c_int;
use std::io::IoSlice;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use beeline_socket_engine::{Sockets, Turn, take_put_off};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::hooks::held::last_errno;
use crate::{errno, real};

/// Does what handlers have asked for, before the call that they had interrupted returns to the program. `socket_of` has the connection of a number.
#[cold]
pub fn catch_up(sockets: &Sockets, socket_of: fn(c_int) -> Option<BorrowedFd<'static>>) {
    thread_local! {
        static IS_UNDER_WAY: Cell<bool> = const { Cell::new(false) };
    }
    // Whoever has begun does it to the end, in order.
    if IS_UNDER_WAY.replace(true) {
        return;
    }
    errno::preserved(|| {
        while let Some((number, bytes)) = take_put_off() {
            if let Some(socket) = socket_of(number) {
                send_all(sockets, socket, &bytes);
            }
        }
        sockets.end_put_off();
    });
    IS_UNDER_WAY.set(false);
}

/// The handler was told that they are sent: where there is no room, this waits. What is wrong with the connection the next call is told.
fn send_all(sockets: &Sockets, socket: BorrowedFd<'_>, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match send(sockets, socket, bytes) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(Errno::AGAIN) => wait_for_room(socket),
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn send(sockets: &Sockets, socket: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    match sockets.send(socket, &[IoSlice::new(bytes)], SendFlags::NOSIGNAL) {
        Turn::Done(sent) => sent,
        Turn::Kernel(pass) => {
            let (number, from) = (socket.as_raw_fd(), bytes.as_ptr().cast());
            // SAFETY: the bytes live through the call, and the descriptor is borrowed for it.
            let sent = unsafe { real::send(number, from, bytes.len(), libc::MSG_NOSIGNAL) };
            let sent = usize::try_from(sent).map_err(|_| last_errno())?;
            pass.moved(sent);
            Ok(sent)
        }
    }
}

fn wait_for_room(socket: BorrowedFd<'_>) {
    const LOOKS_AGAIN_WITHIN: Duration = Duration::from_millis(10);
    let time = Timespec { tv_sec: 0, tv_nsec: LOOKS_AGAIN_WITHIN.subsec_nanos().into() };
    let _ = poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&time));
}
