//! What an owner tells a client in another container unasked.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};

use beeline_domain::{Answer, Domain, DomainConfig, Notified, Peer, Refusal, Reply, Service};

use crate::roles::{DOMAIN, WATCHDOG, listen, say};

/// Tells whoever connects the number 0, and says how it goes.
struct News(Arc<Mutex<Option<Peer>>>);

impl Service for News {
    fn connected(&mut self, peer: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        tell(peer, "0");
        *self.0.lock().unwrap() = Some(peer.clone());
        Ok(Reply::default().into())
    }

    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Err(Refusal::new("nothing is to be asked"))
    }

    fn departed(&mut self, peer: &Peer) {
        say(&format!("end: {:?}", peer.departure().unwrap()));
    }
}

fn tell(peer: &Peer, number: &str) {
    assert_eq!(peer.notify(number.as_bytes(), &[]).unwrap(), Notified::Accepted);
}

fn open(root: &Path) -> Domain {
    Domain::open(&DomainConfig { root: Some(root.to_owned()), name: DOMAIN.to_owned() }).unwrap()
}

/// Passes on to its client what the test says.
pub fn notify(root: &Path, name: &str) {
    let client = Arc::default();
    let _offer = open(root).offer(name, Box::new(News(Arc::clone(&client)))).unwrap();
    say("ready");
    while let Some(number) = listen() {
        tell(client.lock().unwrap().as_ref().unwrap(), &number);
    }
}

/// Says what it is told, until the owner is gone.
pub fn be_notified(root: &Path, name: &str) {
    let (connection, _) = open(root).connect(name, b"", &[]).unwrap();
    let notifications = connection.notifications().unwrap();
    let end = loop {
        match notifications.next_within(WATCHDOG) {
            Ok(Some(told)) => say(&format!("news {}", String::from_utf8(told.payload.clone()).unwrap())),
            Ok(None) => panic!("nothing is told"),
            Err(end) => break end,
        }
    };
    say(&format!("end: {end:?}"));
}
