//! All sockets of UDP of a process that were worth it; each is made once.

use std::sync::{Mutex, OnceLock};

use super::socket::DatagramSocket;
use crate::forks::OfProcess;
use crate::lock::locked;

/// Those that may be there at the same time.
const MOST: usize = 1 << 14;
/// So many are made at a time: a program with few has memory for few.
const TOGETHER: usize = 16;

static SOCKETS: [OnceLock<Box<[DatagramSocket]>>; MOST / TOGETHER] =
    [const { OnceLock::new() }; MOST / TOGETHER];
/// Those that no socket has. A child has its parent's, and does not use them again.
static FREE: OfProcess<Mutex<Free>> = OfProcess::new();

#[derive(Debug)]
struct Free {
    free: Vec<u32>,
    next: u32,
}

/// The one with this index; below [`MOST`], as all that were ever given are.
pub(crate) fn socket(index: u32) -> &'static DatagramSocket {
    let (part, at) = (index as usize / TOGETHER, index as usize % TOGETHER);
    let first = (part * TOGETHER) as u32;
    &SOCKETS[part].get_or_init(|| (first..first + TOGETHER as u32).map(DatagramSocket::new).collect())[at]
}

/// Those that were ever given, and a few more.
pub(crate) fn sockets() -> impl Iterator<Item = &'static DatagramSocket> {
    SOCKETS.iter().map_while(OnceLock::get).flatten()
}

fn free() -> Option<&'static Mutex<Free>> {
    FREE.get_or_init(|| Mutex::new(Free { free: Vec::new(), next: sockets().count() as u32 }))
}

pub(crate) fn take() -> Option<&'static DatagramSocket> {
    let mut free = locked(free()?);
    if let Some(index) = free.free.pop() {
        return Some(socket(index));
    }
    let next = free.next;
    free.next += 1;
    ((next as usize) < MOST).then(|| socket(next))
}

pub(crate) fn give(socket: &DatagramSocket) {
    if let Some(free) = free() {
        locked(free).free.push(socket.index);
    }
}
