//! A domain's thread that reads nothing for a while.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use beeline_domain::{Answer, ConnectError, Domain, Offer, Peer, Refusal, Reply, Service};

use super::WATCHDOG;

/// The thread of a domain, which is held until it may go on. Whoever connects to the domain meanwhile is not answered.
pub struct Held {
    go_on: Sender<()>,
    connecting: JoinHandle<Result<(), ConnectError>>,
    _offer: Offer,
}

impl Held {
    /// Holds the thread of `domain` in an answer to `other`, a domain with a thread of its own.
    pub fn new(domain: &Domain, other: Domain) -> Self {
        let ((is_held, held), (go_on, told)) = (channel(), channel());
        let offer = domain.offer("holding", Box::new(Holding { is_held, go_on: told })).unwrap();
        let connecting = std::thread::spawn(move || other.connect("holding", b"", &[]).map(drop));
        held.recv_timeout(WATCHDOG).unwrap();
        Held { go_on, connecting, _offer: offer }
    }

    /// Lets the thread go on, and waits until it has answered.
    pub fn go_on(self) {
        self.go_on.send(()).unwrap();
        self.connecting.join().unwrap().unwrap();
    }
}

/// Holds the domain's thread from its first connection until it is told to go on.
struct Holding {
    is_held: Sender<()>,
    go_on: Receiver<()>,
}

impl Service for Holding {
    fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        self.is_held.send(()).unwrap();
        self.go_on.recv().unwrap();
        Ok(Reply::default().into())
    }

    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply::default().into())
    }

    fn departed(&mut self, _: &Peer) {}
}
