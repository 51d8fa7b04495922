//! The receiver's side: a name under which clients join, and the windows that they open.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::departed::Departed;
use super::messages::{Ask, Hello};
use super::options::ArenaOptions;
use super::owner::{Openings, OwnedArena};
use super::queue::{Client, Queue};
use crate::window::ReceiverParts;
use crate::window::options::{WindowError, check_lines};
use crate::{
    Answer, Disposer, Domain, Event, Offer, OfferOptions, Peer, PeerId, Process, Refusal, Service, Shares,
};

/// A name under which many windows are offered to each of several clients.
#[derive(Debug)]
pub struct ArenaListener {
    offer: Arc<Offer>,
    queue: Arc<Openings>,
}

/// Offers windows under `name`: each client that joins gets an arena of its own, and opens windows in it.
///
/// # Errors
/// The options cannot be, or the name cannot be offered.
pub fn offer_windows(
    domain: &Domain,
    name: &str,
    options: ArenaOptions,
) -> Result<ArenaListener, WindowError> {
    options.check()?;
    let queue = Arc::new(Queue::new());
    let of_other_user = (options.clients / 2).max(1);
    let shares = Shares { of_process: (options.clients / 16).max(1), of_other_user };
    let offer_options = OfferOptions {
        allowed_uids: options.allowed_uids.clone(),
        admissions: options.admissions.clone(),
        max_connections: options.clients,
        shares: Some(shares),
        ..OfferOptions::default()
    };
    let maker = Maker {
        name: name.to_owned(),
        departed: Departed::new(options.clients, shares),
        options: Arc::new(options),
        queue: Arc::clone(&queue),
        disposer: domain.disposer(),
        arenas: HashMap::new(),
    };
    let offer = Arc::new(domain.offer_with(name, Box::new(maker), offer_options)?);
    Ok(ArenaListener { offer, queue })
}

impl ArenaListener {
    /// The next window that a client has opened, if one waits. The name stays taken until the listener and every window accepted
    /// from it are dropped. In a process that was forked from the one that offers there is never one.
    pub fn try_accept(&self) -> Option<ReceiverParts> {
        // Before the lock, which a thread may hold that a child does not have.
        if !self.offer.is_own() {
            return None;
        }
        self.queue.try_take().map(|opened| opened.accept(&self.offer))
    }

    /// As [`ArenaListener::try_accept`], but waits for at most `timeout`.
    pub fn accept(&self, timeout: Duration) -> Option<ReceiverParts> {
        if !self.offer.is_own() {
            return None;
        }
        // A timeout beyond the clock's range is no timeout.
        let opened = self.queue.take(Instant::now().checked_add(timeout));
        opened.map(|opened| opened.accept(&self.offer))
    }

    /// Whether a window waits to be accepted.
    pub fn has_opened(&self) -> bool {
        self.offer.is_own() && !self.queue.is_empty()
    }

    /// Has `event` signalled when a window is opened, instead of what was given before. What was opened before the call is there
    /// for the next [`ArenaListener::try_accept`].
    pub fn signal(&self, event: Option<&Event>) {
        if self.offer.is_own() {
            self.queue.signal(event);
        }
    }
}

impl Drop for ArenaListener {
    fn drop(&mut self) {
        // In a forked child the lock may have been held by a thread that the child does not have.
        if self.offer.is_own() {
            self.queue.close();
        }
    }
}

/// The service behind the name: an arena for each client.
struct Maker {
    name: String,
    options: Arc<ArenaOptions>,
    queue: Arc<Openings>,
    disposer: Disposer,
    /// Each is made by a worker; until it is done, nothing more is heard of its client.
    arenas: HashMap<PeerId, Arc<OnceLock<Arc<OwnedArena>>>>,
    departed: Departed,
}

impl Maker {
    fn arena(&self, peer: &Peer) -> Option<&Arc<OwnedArena>> {
        self.arenas.get(&peer.id())?.get()
    }
}

impl Service for Maker {
    fn connected(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let hello = match Hello::decode(request) {
            Ok(hello) => hello,
            Err(reason) => return Ok(Answer::refusal(Refusal::new(reason), fds)),
        };
        if check_lines(hello.lines).is_err() || hello.lines > self.options.lines {
            let reason =
                format!("windows of {} lines, {} are the most here", hello.lines, self.options.lines);
            return Ok(Answer::refusal(Refusal::new(reason), fds));
        }
        let comer = Process::of(peer);
        let crowd = self.departed.check(comer).is_err().then(|| self.departed.clone());
        let made = Arc::new(OnceLock::new());
        self.arenas.insert(peer.id(), Arc::clone(&made));
        let (peer, name, options) = (peer.clone(), self.name.clone(), Arc::clone(&self.options));
        let (queue, disposer) = (Arc::clone(&self.queue), self.disposer.clone());
        Ok(Answer::later(move |_pace| {
            if let Some(crowd) = crowd {
                crowd.check_heard(comer)?;
            }
            let [credits] = <[OwnedFd; 1]>::try_from(fds).map_err(|fds| {
                Refusal::new(format!("{} descriptors, memory for credits is needed", fds.len()))
            })?;
            let arena = OwnedArena::make(&peer, &name, &options, hello.lines, credits, &queue, &disposer);
            let (arena, reply) = arena.map_err(|error| {
                tracing::error!(%error, name, "cannot make an arena");
                Refusal::new(format!("the receiver cannot make an arena: {error}"))
            })?;
            // It was just made, and nobody else fills it.
            let _ = made.set(arena);
            Ok(reply)
        }))
    }

    fn requested(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        if !fds.is_empty() {
            return Ok(Answer::refusal(Refusal::new("no descriptors are wanted"), fds));
        }
        let arena = self.arena(peer).ok_or_else(|| Refusal::new("there is no arena"))?;
        let ask = Ask::decode(request).ok_or_else(|| Refusal::new("not a request for windows"))?;
        if check_lines(ask.lines).is_err() {
            return Err(Refusal::new(format!("a window of {} lines", ask.lines)));
        }
        if let Some(answer) = arena.asked_at_once(ask.lines) {
            return answer.map(Answer::Now);
        }
        let arena = Arc::clone(arena);
        Ok(Answer::later(move |pace| {
            OwnedArena::hear_all(&arena);
            arena.asked(ask.lines, pace)
        }))
    }

    fn told(&mut self, peer: &Peer, _: &[u8]) {
        tracing::warn!(pid = peer.pid(), "a client of windows tells what it has to ask; it is disconnected");
        peer.disconnect();
    }

    fn heard(&mut self, peer: &Peer) {
        if let Some(arena) = self.arena(peer) {
            arena.packet_came();
        }
    }

    fn has_room(&mut self, peer: &Peer) {
        if let Some(arena) = self.arena(peer) {
            arena.tell_more();
        }
    }

    fn departed(&mut self, peer: &Peer) {
        if let Some(made) = self.arenas.remove(&peer.id()) {
            if let Some(arena) = made.get() {
                arena.end();
                self.departed.add(Process::of(peer), arena);
            }
            // With it goes what the client had not opened.
            self.disposer.dispose(made);
        }
    }
}
