//! The owner: it offers a window, a byte stream and a service that notifies and lends a segment, all to one other user, and checks
//! every item of every client.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use beeline::{ByteRead, ByteReceiver, ReceiverOptions, RecvError};
use beeline_domain::{
    Answer, Departure, Domain, Notified, OfferOptions, Peer, PeerId, Refusal, Reply, Service, Shares,
};
use beeline_mmio::{MappedSegment, MemoryOptions, Region, SegmentOptions, SharedMemory};

use crate::e2e_support::items::{self, Items};
use crate::e2e_support::{PAUSE, WATCHDOG, argument, domain_config, say, stop_flag};

/// Bytes of the segment that each client is lent: the first half is the owner's to write.
pub const SEGMENT_BYTES: usize = 1 << 16;
/// Notifications to one client in one turn of the loop.
const BURST: usize = 8;

/// A client of the service.
struct Client {
    peer: Peer,
    segment: Region,
    told: u64,
}

type Clients = Arc<Mutex<BTreeMap<PeerId, Client>>>;

struct Notifying(Clients);

impl Service for Notifying {
    fn connected(&mut self, peer: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let memory = SharedMemory::create("beeline-lent", SEGMENT_BYTES, MemoryOptions::default()).unwrap();
        let segment = MappedSegment::memory(memory.fd(), &SegmentOptions::default()).unwrap();
        let client = Client { peer: peer.clone(), segment: segment.region().unwrap(), told: 0 };
        self.0.lock().unwrap().insert(peer.id(), client);
        say(&format!("came {}", peer.pid()));
        let lent = memory.fd().as_fd().try_clone_to_owned().unwrap();
        Ok(Reply { fds: vec![lent], ..Reply::default() }.into())
    }

    fn requested(&mut self, _: &Peer, request: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply::new(request).into())
    }

    fn departed(&mut self, peer: &Peer) {
        assert!(self.0.lock().unwrap().remove(&peer.id()).is_some(), "a departure of nobody");
        let how = match peer.departure().unwrap() {
            Departure::Died => "died",
            _ => "closed",
        };
        say(&format!("{how} {}", peer.pid()));
    }
}

/// Tells every client the next numbers, and writes them into the segment that it was lent.
fn tell(clients: &Clients) {
    for client in clients.lock().unwrap().values_mut() {
        for _ in 0..BURST {
            // One that goes is taken off the list when its departure is known.
            if client.peer.notify(&items::notification(client.told), &[]) != Ok(Notified::Accepted) {
                break;
            }
            client.told += 1;
            client.segment.word((client.told % 4096) as usize * 8).store(client.told);
        }
        // The other half is the client's: whatever it writes is taken as a number and no more.
        let _ = client.segment.word(SEGMENT_BYTES / 2).load();
    }
}

/// What was read of a stream and is no whole item yet.
#[derive(Default)]
struct Stream {
    items: Items,
    part: Vec<u8>,
}

fn read(reader: &mut ByteReceiver, stream: &mut Stream) {
    let mut bytes = [0; 4096];
    for _ in 0..16 {
        match reader.try_read(&mut bytes) {
            Ok(ByteRead::Bytes(count)) => {
                stream.part.extend_from_slice(&bytes[..count]);
                while let Some(item) = items::split_first(&mut stream.part) {
                    stream.items.check(&item);
                }
            }
            Ok(ByteRead::Nothing) => return,
            Ok(ByteRead::End) => {
                assert!(stream.part.is_empty(), "a stream that was shut down ends with a whole item");
                *stream = Stream::default();
                reader.next_stream();
            }
            Err(RecvError::SenderGone | RecvError::Torn(_)) => {
                *stream = Stream::default();
                reader.next_stream();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Plays the owner until the test hangs up.
pub fn run() {
    let stop: &AtomicBool = stop_flag();
    let allowed: u32 = argument("ALLOWED").unwrap().parse().unwrap();
    let domain = Domain::open(&domain_config()).unwrap();
    let clients = Clients::default();
    let shares = Shares { of_process: 8, of_other_user: 16 };
    let options =
        OfferOptions { allowed_uids: vec![allowed], shares: Some(shares), ..OfferOptions::default() };
    let _offer = domain.offer_with("notes", Box::new(Notifying(Arc::clone(&clients))), options).unwrap();
    let facade = beeline::Domain::from(domain);
    let window = || ReceiverOptions::new().lines(256).allowed_uids([allowed]);
    let mut receiver = facade.receiver_with("window", window()).unwrap();
    let mut reader = facade.receiver_with("bytes", window()).unwrap().into_bytes();
    say("ready");
    let (mut items, mut stream) = (Items::default(), Stream::default());
    while !stop.load(Ordering::Relaxed) {
        items.receive(&mut receiver);
        read(&mut reader, &mut stream);
        tell(&clients);
        // The others, and those that are just started, need the cores too.
        std::thread::sleep(PAUSE);
    }
    let begun = Instant::now();
    while !clients.lock().unwrap().is_empty() {
        assert!(begun.elapsed() < WATCHDOG, "clients that nobody saw go");
        std::thread::yield_now();
    }
}
