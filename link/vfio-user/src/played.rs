//! A client's messages, played to a function in one thread: for tests, and for the fuzzer.
//!
//! Whoever serves the client calls `wake` when there is something for the loop; here that is a turn of the loop, so that every
//! play of the same messages is the same.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

use beeline_contract_device::{Device, QueueId, SimTime};
use beeline_link_shm::{DevicePort, PortConfig, Wire, Wired};
use beeline_mmio::{MemoryOptions, SharedMemory};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};

use crate::function::{assemble, stop_event};
use crate::host::FunctionHost;
use crate::message::{self, Header, MAX_MESSAGE_BYTES};
use crate::serving::Serving;
use crate::socket::{Ended, Socket};

/// Bytes of the guest's memory that a record may send along.
pub const GUEST_BYTES: usize = 1 << 16;
/// Most records of a play: their answers have to fit the socket, because nobody reads them meanwhile.
pub const MOST_RECORDS: usize = 24;

/// A message of a client.
#[derive(Clone, Debug)]
pub struct Record {
    pub command: u16,
    /// Flags of the header.
    pub flags: u32,
    /// What is sent along: a bit each for a sealed memory, a memory that can shrink, an eventfd and a socket.
    pub descriptors: u8,
    /// How many bytes more the header says than there are; the rest is the next message's.
    pub excess_bytes: i8,
    pub body: Vec<u8>,
}

/// Takes every frame.
struct Sink;

impl Wire for Sink {
    fn transmit(&mut self, _queue: QueueId, _frame: &[u8]) -> Wired {
        Wired::Back
    }
}

/// A function whose loop makes a turn whenever it is woken.
struct Stage {
    serving: Serving,
}

impl Stage {
    fn new<D: Device + Send + 'static>(device: D) -> Self {
        let port = Arc::new(Mutex::new(None::<DevicePort<D, FunctionHost>>));
        let woken = Arc::clone(&port);
        let turn = move || {
            if let Some(port) = woken.lock().expect("one thread").as_mut() {
                port.time_passed(SimTime::from_ns(1_000_000));
                port.poll().expect("accesses of a function break no protocol");
                port.drive(&mut Sink);
            }
        };
        let stop = Arc::new(stop_event().expect("an event"));
        let (serving, made) =
            assemble(device, &PortConfig::default(), stop, turn).expect("memory for a function");
        *port.lock().expect("one thread") = Some(made);
        Stage { serving }
    }

    /// Has a client say the records; what it is answered, and why it was let go, unless it went.
    fn play(&mut self, records: &[Record]) -> (Vec<Header>, Option<Ended>) {
        let (guest, shrinking) = (memory(true), memory(false));
        let event = eventfd(0, EventfdFlags::CLOEXEC).expect("an event");
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let pair = || socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("a socket");
        let ((ours, theirs), (socket, _other)) = (pair(), pair());
        let descriptors = [guest.as_fd(), shrinking.as_fd(), event.as_fd(), socket.as_fd()];
        let client = Socket::new(theirs, None);
        for record in records.iter().take(MOST_RECORDS) {
            let mut body = record.body.clone();
            body.truncate(MAX_MESSAGE_BYTES / 4);
            let mut message = message::message(7, record.command, record.flags, 0, &body);
            let bytes = (message.len() as u32).wrapping_add_signed(i32::from(record.excess_bytes));
            message[4..8].copy_from_slice(&bytes.to_le_bytes());
            let chosen = (0..4).filter(|bit| record.descriptors >> bit & 1 == 1);
            let chosen: Vec<BorrowedFd<'_>> = chosen.map(|bit: usize| descriptors[bit]).collect();
            client.send(&message, &chosen).expect("room for a few messages");
        }
        shutdown(client.fd(), Shutdown::Write).expect("an open socket");
        let ended = self.serving.client(&Socket::new(ours, None)).err();
        assert!(self.serving.forget(), "the loop goes on");
        let answers = std::iter::from_fn(|| client.receive().ok()).map(|(header, ..)| header).collect();
        (answers, ended)
    }
}

/// A guest's memory, whose size is sealed or is not.
fn memory(is_sealed: bool) -> OwnedFd {
    if is_sealed {
        let memory = SharedMemory::create("guest", GUEST_BYTES, MemoryOptions::default());
        return memory.expect("memory").into_fd();
    }
    let memory = memfd_create("shrinks", MemfdFlags::CLOEXEC).expect("memory");
    rustix::fs::ftruncate(&memory, GUEST_BYTES as u64).expect("memory");
    memory
}

/// Plays the records to a function with `device` behind it, then a sound client, which is answered. Why the client was let go,
/// unless it went.
///
/// # Panics
/// If the function does not stand it.
pub fn play<D: Device + Send + 'static>(device: D, records: &[Record]) -> Option<Ended> {
    answers_to(device, records).1
}

/// As [`play`], with what the client is answered.
fn answers_to<D: Device + Send + 'static>(device: D, records: &[Record]) -> (Vec<Header>, Option<Ended>) {
    let mut stage = Stage::new(device);
    let played = stage.play(records);
    let (command, body) = (message::command::DEVICE_INFO, vec![0; 16]);
    let sound = Record { command, flags: 0, descriptors: 0, excess_bytes: 0, body };
    let (answers, ended) = stage.play(&[sound]);
    assert!(answers.len() == 1 && !answers[0].is_error() && ended.is_none(), "{answers:?} {ended:?}");
    played
}

#[cfg(test)]
mod tests;
