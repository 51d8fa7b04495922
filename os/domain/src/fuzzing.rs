//! What an attacker's bytes go through first, reachable for the fuzz targets alone (`fuzz/`).
//!
//! Compiled only with `--cfg fuzzing`, so none of it is part of the crate's interface.

use std::os::fd::{AsFd, OwnedFd};

pub use crate::connection_table::fuzzed::{ConnectionSpot, ConnectionWords};
use crate::name::Name;
use crate::notices::Notices;
use crate::outbox::Outbox;
use crate::registry::words::{BUCKET_BYTES, Bucket, Placed, Plan, WORD_BYTES, bucket_of};
use crate::token;
use crate::window;
use crate::wire::Header;
use crate::{Entry, Kind};

/// The payload of a packet that arrived with so many descriptors; `None` when it is refused.
pub fn packet(packet: &[u8], descriptors: usize) -> Option<&[u8]> {
    Header::decode(packet, descriptors).ok().map(|(_, payload)| payload)
}

/// Whether a sender's request for a window is taken.
pub fn window_request(request: &[u8]) -> bool {
    window::decode_request(request).is_ok()
}

/// Lines and bytes of the window in a receiver's answer; `None` when it is refused.
pub fn window_answer(answer: &[u8]) -> Option<(u32, usize)> {
    window::decode_answer(answer).ok()
}

/// Whether the other side of an arena of windows may have said this.
pub fn arena_message(bytes: &[u8]) -> bool {
    window::fuzzed::decode(bytes)
}

/// Starts and ends of the windows that a client takes of what an owner lends in a memory of so many bytes.
pub fn arena_lent(bytes: usize, notes: &[Vec<u8>]) -> Vec<(usize, usize)> {
    window::fuzzed::lent(bytes, notes)
}

/// What a client says of windows, of which so many were lent to it: a name and what happened to it each time. No window that a
/// receiver has is free.
pub fn arena_told(lent: u8, said: &[(u8, u8)]) {
    window::fuzzed::told(lent, said);
}

/// How many entries of a client's ring an owner hears until it disconnects the client: these counts are stored one after the other.
pub fn arena_heard(counts: &[u64], entries: &[u64]) -> u64 {
    window::fuzzed::heard(counts, entries)
}

/// Whether a text may name a domain or an offer.
pub fn is_name(text: &str) -> bool {
    Name::new(text).is_ok()
}

/// Whether bytes are the preamble of a token.
pub fn is_preamble(bytes: &[u8]) -> bool {
    token::is_preamble(bytes)
}

/// A client's side of notifications: what the owner sends is put in, what the program takes is taken out.
#[derive(Debug, Default)]
pub struct Received(Notices);

impl Received {
    /// Whether a notification with this number, payload and so many descriptors is taken in.
    pub fn receive(&self, serial: u32, payload: &[u8], descriptors: u8) -> bool {
        let fd = || crate::Event::new().and_then(|event| event.as_fd().try_clone_to_owned());
        let fds = (0..descriptors).map(|_| fd()).collect::<Result<_, _>>();
        fds.is_ok_and(|mut fds| self.0.receive(serial, payload, &mut fds).is_ok())
    }

    /// The length of the next payload and its descriptors, and what the owner is told.
    pub fn take(&self) -> Option<(usize, usize, Option<u32>)> {
        let taken = self.0.take().ok()??;
        Some((taken.notification.payload.len(), taken.notification.fds.len(), taken.tell))
    }
}

/// An owner's side of notifications, and a client that never reads them but may say that it took them.
#[derive(Debug)]
pub struct Sent(Outbox, [OwnedFd; 2]);

impl Sent {
    /// A connection without notifications; `None` when the process is out of descriptors.
    pub fn new() -> Option<Sent> {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).ok()?;
        Some(Sent(Outbox::default(), pair.into()))
    }

    /// Whether a notification is accepted.
    pub fn notify(&self, payload: &[u8]) -> bool {
        self.0.notify(self.1[0].as_fd(), payload, &[]).is_ok_and(|accepted| accepted)
    }

    /// What the client says; `false` ends its connection.
    pub fn client_took(&self, said: u32) -> bool {
        self.0.client_took(said).is_ok()
    }
}

/// A bucket of a registry, as it lies in the file.
#[derive(Clone, Debug)]
pub struct RegistryBucket {
    number: usize,
    bytes: Vec<u8>,
}

/// A word of a registry's bucket: its place, and what it says with whose holder.
pub type RegistryWord = (usize, Entry, u16);

impl RegistryBucket {
    /// The bucket of an id, with these bytes and zeros in it.
    pub fn of(kind: Kind, id: u32, mut bytes: Vec<u8>) -> Self {
        bytes.resize(BUCKET_BYTES, 0);
        RegistryBucket { number: bucket_of(kind, id), bytes }
    }

    /// Without what is free, and what nobody can have put there.
    pub fn entries(&self) -> Vec<RegistryWord> {
        let bucket = Bucket::new(self.number, &self.bytes);
        bucket.entries().map(|(place, placed)| (place, placed.entry, placed.holder)).collect()
    }

    /// Whether this lies in this bucket.
    pub fn is_place_of(&self, entry: Entry) -> bool {
        bucket_of(entry.kind, entry.id) == self.number
    }

    /// Puts an entry in as a holder does; `None` where it is taken, `Some(false)` where there is no room.
    pub fn put(
        &mut self,
        entry: Entry,
        holder: u16,
        is_alive: impl Fn(u16) -> bool,
        may: bool,
    ) -> Option<bool> {
        let new = Placed { entry, holder };
        let plan =
            Bucket::new(self.number, &self.bytes).plan(new, |holder| Ok(is_alive(holder)), |_| Ok(may));
        match plan.unwrap_or_else(|never: std::convert::Infallible| match never {}) {
            Plan::Put { place, cleared } => {
                cleared.into_iter().for_each(|place| self.write(place, 0));
                self.write(place, new.to_word());
                Some(true)
            }
            Plan::Taken => None,
            Plan::Full => Some(false),
        }
    }

    /// Takes an entry of a holder out; `false` where it is not there.
    pub fn remove(&mut self, entry: Entry, holder: u16) -> bool {
        let place = Bucket::new(self.number, &self.bytes).place_of(Placed { entry, holder });
        place.inspect(|place| self.write(*place, 0)).is_some()
    }

    fn write(&mut self, place: usize, word: u64) {
        self.bytes[place * WORD_BYTES..][..WORD_BYTES].copy_from_slice(&word.to_le_bytes());
    }
}
