//! Both ends of a connection in one thread, and what comes over it.

use std::net::{TcpListener, TcpStream};

use beeline_ledger::Received;

use super::{End, Memory, Windows, byte};

/// The sending end, the receiving end, and their memory; the first has a window of the second.
pub fn ends<W: Windows>() -> (End<W>, End<W>, Memory) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let memory = Memory::new();
    let mut receiver = End::new(&memory, 1, listener.accept().unwrap().0, 1);
    let mut sender = End::new(&memory, 0, client, 1);
    receiver.offer();
    sender.take_window();
    (sender, receiver, memory)
}

/// What the first stream has from this byte on.
pub fn bytes(from: u64, count: u64) -> Vec<u8> {
    (from..from + count).map(|at| byte(0, at)).collect()
}

/// Reads until nothing more comes of what is on its way, and says how many bytes that were.
pub fn receive_all<W: Windows>(receiver: &mut End<W>, until: u64) {
    while receiver.incoming.taken_bytes() < until {
        assert_ne!(receiver.receive().unwrap(), Received::End);
    }
    assert_eq!(receiver.receive().unwrap(), Received::Nothing);
}
