//! A stream of a socket that has no counts: it goes up only where its receiver has taken exactly what was sent.

mod support;

use beeline_ledger::{KernelPath, Path, Peeked};
use beeline_stream::*;
use support::ends::{bytes, ends, receive_all};
use support::*;

/// As [`ends`], behind 100 bytes that were sent and taken.
fn ends_behind_bytes() -> (End<Plain>, End<Plain>, Memory) {
    let (mut sender, mut receiver, memory) = ends();
    assert_eq!(sender.outgoing.send(&bytes(0, 100), &mut sender.tcp), Ok(Sent::Bytes(100)));
    receive_all(&mut receiver, 100);
    (sender, receiver, memory)
}

/// A socket that has no counts, and what happens while it is asked whether anything is on its way.
struct Uncounted<F> {
    given: u64,
    meanwhile: F,
}

impl<F> KernelPath for Uncounted<F> {
    type Error = TcpError;

    fn peek(&mut self, _: &mut [u8]) -> Result<Peeked, TcpError> {
        unreachable!("it is sent by")
    }

    fn take(&mut self, _: usize) -> Result<(), TcpError> {
        unreachable!("it is sent by")
    }
}

impl<F: FnMut()> Socket for Uncounted<F> {
    fn send(&mut self, _: &[u8]) -> Result<usize, TcpError> {
        unreachable!("it is only asked")
    }

    fn given_bytes(&mut self) -> Result<u64, TcpError> {
        (self.meanwhile)();
        Ok(self.given)
    }
}

#[test]
fn bytes_of_another_writer_that_are_taken_while_the_socket_is_asked_keep_the_stream_there() {
    let (mut sender, mut receiver, _memory) = ends_behind_bytes();
    assert!(sender.outgoing.has_receiver_all());
    let given = sender.outgoing.given_bytes();
    let tcp = &mut sender.tcp;
    let mut others = || {
        assert_eq!(tcp.send(&bytes(receiver.incoming.taken_bytes(), 10)).unwrap(), 10);
        let until = receiver.incoming.taken_bytes() + 10;
        receive_all(&mut receiver, until);
    };
    let socket = &mut Uncounted { given, meanwhile: &mut others };
    assert_eq!(sender.outgoing.go_up_where_all_is_taken(socket), Err(Unmoved::NotTaken));
    assert_eq!(sender.outgoing.path(), Path::Kernel);
    // Without the other writer nothing is against it.
    let (mut sender, _receiver, _memory) = ends_behind_bytes();
    let socket = &mut Uncounted { given: sender.outgoing.given_bytes(), meanwhile: || {} };
    assert_eq!(sender.outgoing.go_up_where_all_is_taken(socket), Ok(()));
}
