//! An owner that notifies its clients, what counts notifications without end, and what checks that none is missing.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use beeline_domain::{
    Answer, Connection, Departure, Domain, Notification, Notifications, Notified, NotifyError, Offer, Peer,
    Refusal, Reply, Service,
};

use crate::harness::{TestFolder, WATCHDOG, say, wait_for_end};

/// Clients of a [`Teller`], and what its threads wait for.
#[derive(Default)]
pub struct Told {
    pub clients: Mutex<Vec<Peer>>,
    has_room: Condvar,
    pub departed: Mutex<Vec<Option<Departure>>>,
    requests: AtomicU64,
}

impl Told {
    /// Notifies, and waits for room while there is none; `false` when the client has gone.
    pub fn tell(&self, peer: &Peer, payload: &[u8]) -> bool {
        loop {
            let clients = self.clients.lock().unwrap();
            match peer.notify(payload, &[]) {
                Ok(Notified::Accepted) => return true,
                // `has_room` takes the lock, so that it comes after the wait has begun.
                Ok(Notified::WouldBlock) => drop(self.has_room.wait_timeout(clients, WATCHDOG).unwrap()),
                Err(NotifyError::Gone) => return false,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Returns a client by its number in the order of connections, without those that departed.
    pub fn client(&self, number: usize) -> Peer {
        self.clients.lock().unwrap()[number].clone()
    }
}

/// Notifies with the number of the request from within it, before it answers: `b"call"` and the number.
pub struct Teller(Arc<Told>);

impl Service for Teller {
    fn connected(&mut self, peer: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        self.0.clients.lock().unwrap().push(peer.clone());
        Ok(Reply::default().into())
    }

    fn requested(&mut self, peer: &Peer, request: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let number = self.0.requests.fetch_add(1, Ordering::SeqCst) + 1;
        match request {
            b"tell" => {
                let payload = [&b"call"[..], &number.to_le_bytes()].concat();
                let told = peer.notify(&payload, &[]).map_err(|error| Refusal::new(error.to_string()))?;
                Ok(Reply::new(if told == Notified::Accepted { "told" } else { "full" }).into())
            }
            b"bye" => {
                peer.disconnect();
                Ok(Reply::default().into())
            }
            b"no" => Err(Refusal::new("asked to refuse")),
            other => Ok(Reply::new(other).into()),
        }
    }

    fn departed(&mut self, peer: &Peer) {
        self.0.departed.lock().unwrap().push(peer.departure());
        self.0.clients.lock().unwrap().retain(|client| client.id() != peer.id());
        self.0.has_room.notify_all();
    }

    fn has_room(&mut self, _: &Peer) {
        drop(self.0.clients.lock().unwrap());
        self.0.has_room.notify_all();
    }
}

pub fn teller() -> (Box<dyn Service>, Arc<Told>) {
    let told = Arc::new(Told::default());
    (Box::new(Teller(Arc::clone(&told))), told)
}

/// Offers a [`Teller`] as `name`.
pub fn offer(domain: &Domain) -> (Offer, Arc<Told>) {
    let (service, told) = teller();
    (domain.offer("name", service).unwrap(), told)
}

/// Connects to a [`Teller`], and takes what it notifies.
pub fn connect(domain: &Domain) -> (Connection, Notifications) {
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    let notifications = connection.notifications().unwrap();
    (connection, notifications)
}

/// A domain with a [`Teller`], and one client in the same process. The client is dropped first, the folder last.
pub struct Pair {
    /// The client as its owner sees it.
    pub peer: Peer,
    pub connection: Connection,
    pub told: Arc<Told>,
    pub offer: Offer,
    pub domain: Domain,
    pub folder: TestFolder,
}

impl Pair {
    pub fn new() -> Self {
        let folder = TestFolder::new();
        let domain = folder.open();
        let (offer, told) = offer(&domain);
        let (connection, _) = domain.connect("name", b"", &[]).unwrap();
        Pair { peer: told.client(0), connection, told, offer, domain, folder }
    }
}

/// Counts notifications to one client without end, each with the requests that were seen before it.
pub fn count_for(told: &Told, peer: &Peer, bytes: usize) {
    for number in 0_u64.. {
        let requests = told.requests.load(Ordering::SeqCst);
        let mut payload = [number.to_le_bytes(), requests.to_le_bytes()].concat();
        payload.resize(bytes.max(16), 7);
        if !told.tell(peer, &payload) {
            return;
        }
    }
}

pub fn word(payload: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(payload[at..at + 8].try_into().unwrap())
}

/// Offers, and notifies each client from a thread of its own with payloads of so many bytes.
pub fn counter(domain: &Domain, bytes: usize) {
    let (_offer, told) = offer(domain);
    let watched = Arc::clone(&told);
    std::thread::spawn(move || {
        let mut served = Vec::new();
        loop {
            let clients = watched.clients.lock().unwrap().clone();
            for peer in clients {
                if served.contains(&peer.id()) {
                    continue;
                }
                served.push(peer.id());
                let told = Arc::clone(&watched);
                std::thread::spawn(move || count_for(&told, &peer, bytes));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    say("ready");
    wait_for_end();
}

/// Checks one client's notifications: [`count_for`]'s are without a gap, those of calls are where they belong.
#[derive(Default)]
pub struct Order {
    pub counted: u64,
    pub calls: u64,
}

impl Order {
    pub fn check(&mut self, notification: &Notification) {
        let payload = &notification.payload;
        if let Some(number) = payload.strip_prefix(b"call") {
            self.calls += 1;
            // Sent from within the call: after the answers to the connect and to all calls before, before its own.
            assert_eq!(notification.answers_before, word(number, 0));
        } else {
            assert_eq!(word(payload, 0), self.counted, "a notification is missing or came twice");
            self.counted += 1;
            // While so many requests had been seen, all but the last of them had been answered, and the connect.
            let answered = word(payload, 8);
            assert!(notification.answers_before >= answered, "{notification:?}");
        }
    }
}

/// Notifies until it would block; how many were accepted.
pub fn fill(peer: &Peer, payload: &[u8]) -> usize {
    (0..).take_while(|_| peer.notify(payload, &[]).unwrap() == Notified::Accepted).count()
}
