//! The client's way to a server of the same host.

use std::sync::Arc;
use std::time::{Duration, Instant};

use beeline_domain::{Departure, MemoryCreditSink, Peer, park_any};
use beeline_link_contract::Sleeper;
use beeline_mmio::LoadWindow;
use beeline_spec::WORD_BYTES;
use beeline_spec::formats::rpc_client_page::REPLIES_WANTED_OFFSET;
use beeline_window::{Message, ReceiveError, Sent};

use super::connect::{Pending, ReplyEnd, Session, Target};
use crate::deadline::Deadline;
use crate::error::Loss;
use crate::transport::Transport;

/// Times between two attempts to find a server again: the first and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));
/// Longest sleep while some thread of the server has no reply window: it cannot wake us to ask for one.
const ASKED_AFTER: Duration = Duration::from_millis(1);

/// Windows to a server and from each of its threads.
#[derive(Debug)]
pub struct ShmLink {
    target: Target,
    /// None while there is no server.
    session: Option<Session>,
    /// The thread whose window is looked at next.
    turn: usize,
    /// A reply window that is being opened, and for which thread.
    opening: Option<(usize, Pending<ReplyEnd>)>,
    search: Search,
    /// What a poll has found that no server stores.
    broken: Option<ReceiveError>,
}

#[cold]
#[inline(never)]
fn broke(broken: &mut Option<ReceiveError>, error: ReceiveError) {
    *broken = Some(error);
}

/// Looking for a server again.
#[derive(Debug)]
struct Search {
    pending: Option<Pending<Session>>,
    next: Instant,
    pause: Duration,
}

impl Search {
    fn new() -> Self {
        Search { pending: None, next: Instant::now(), pause: RETRY.0 }
    }
}

impl ShmLink {
    pub(super) fn new(target: Target, session: Session) -> Self {
        ShmLink {
            target,
            session: Some(session),
            turn: 0,
            opening: None,
            search: Search::new(),
            broken: None,
        }
    }

    /// The server's process, while there is one.
    pub fn peer(&self) -> Option<&Peer> {
        self.session.as_ref().map(|session| session.connection.peer())
    }

    /// Opens reply windows that the server's threads ask for, one at a time.
    fn open_replies(&mut self) -> Result<(), Loss> {
        let Some(session) = &mut self.session else { return Ok(()) };
        if let Some((worker, pending)) = &self.opening {
            let Some(result) = pending.take() else { return Ok(()) };
            let worker = *worker;
            self.opening = None;
            match result {
                Ok(end) => session.replies[worker] = Some(end),
                Err(error) => return Err(Loss::Broke { what: format!("no reply window: {error}") }),
            }
        }
        let wants = |worker: &usize| {
            let word = session.page.region().word(REPLIES_WANTED_OFFSET + worker * WORD_BYTES);
            session.replies[*worker].is_none() && word.load() != 0
        };
        if let Some(worker) = (0..session.replies.len()).find(wants) {
            let (connection, options) = (Arc::clone(&session.connection), self.target.options.clone());
            let open = move || ReplyEnd::open(&connection, &options, worker as u32, options.timeout);
            self.opening = Pending::start(open).map(|pending| (worker, pending));
        }
        Ok(())
    }
}

/// Without a session nothing is sent and nothing comes; the client does not ask.
fn absent() -> Loss {
    Loss::Broke { what: "it is not connected".to_owned() }
}

impl Transport for ShmLink {
    type Message<'a> = Message<'a, LoadWindow, MemoryCreditSink>;

    fn max_message_bytes(&self) -> usize {
        self.session.as_ref().map_or(64, |session| session.max_message_bytes)
    }

    #[inline(always)]
    fn try_send(&mut self, head: &[u8], rest: &[u8]) -> Result<Sent, Loss> {
        let Some(session) = &mut self.session else { return Err(absent()) };
        session.requests.try_send_parts(head, rest).map_err(|error| Loss::Broke { what: error.to_string() })
    }

    #[inline(always)]
    fn try_send_prefixed(&mut self, word: u64, bytes: &[u8]) -> Result<Sent, Loss> {
        let Some(session) = &mut self.session else { return Err(absent()) };
        match session.requests.try_send_prefixed(word, bytes) {
            Ok(sent) => Ok(sent),
            Err(error) => Err(Loss::Broke { what: error.to_string() }),
        }
    }

    #[inline(always)]
    fn poll(&mut self) -> Option<Self::Message<'_>> {
        let session = self.session.as_mut()?;
        // Streams take turns, one look each; the common server has one.
        self.turn = if self.turn + 1 < session.replies.len() { self.turn + 1 } else { 0 };
        let end = session.replies[self.turn].as_mut()?;
        match end.receiver.poll() {
            Ok(message) => message,
            Err(error) => {
                broke(&mut self.broken, error);
                None
            }
        }
    }

    fn encode_deadline(&self, deadline: Deadline) -> u64 {
        deadline.as_ns()
    }

    fn cancel(&mut self, number: u32, slot: usize) {
        if let Some(session) = &self.session {
            session.cancels.set(number, slot);
        }
    }

    fn uncancel(&mut self, slot: usize) {
        if let Some(session) = &self.session {
            session.cancels.clear(slot);
        }
    }

    fn tend(&mut self) -> Result<(), Loss> {
        if let Some(error) = self.broken.take() {
            return Err(Loss::Broke { what: error.to_string() });
        }
        let Some(session) = &self.session else { return Ok(()) };
        let peer = session.connection.peer();
        // Asked before the windows are looked at for the last time: what it had answered is still polled.
        if !peer.is_alive()
            && let Some(departure) = peer.departure()
            && !self.has_news()
        {
            let pid = self.peer().map_or(0, Peer::pid);
            return Err(match departure {
                Departure::Died => Loss::Died { pid },
                Departure::Closed => Loss::Closed { pid },
            });
        }
        self.open_replies()
    }

    fn reconnect(&mut self) -> bool {
        if self.session.take().is_some() {
            (self.opening, self.broken) = (None, None);
            self.search = Search::new();
        }
        if let Some(pending) = &self.search.pending {
            let Some(result) = pending.take() else { return false };
            self.search.pending = None;
            self.search.next = Instant::now() + self.search.pause;
            self.search.pause = (self.search.pause * 2).min(RETRY.1);
            match result {
                Ok(session) => {
                    self.session = Some(session);
                    return true;
                }
                Err(error) => tracing::debug!(%error, name = self.target.name, "no server yet"),
            }
        }
        if self.search.pending.is_none() && Instant::now() >= self.search.next {
            let target = self.target.clone();
            self.search.pending = Pending::start(move || Session::open(&target));
        }
        false
    }

    fn prepare_sleep(&mut self) {
        for end in self.session.iter_mut().flat_map(|session| session.replies.iter_mut().flatten()) {
            end.sleeper.prepare();
        }
    }

    fn has_news(&mut self) -> bool {
        let ends = self.session.iter_mut().flat_map(|session| session.replies.iter_mut().flatten());
        ends.into_iter().any(|end| end.receiver.has_begun())
    }

    fn park(&mut self, limit: Duration) {
        let Some(session) = &self.session else { return };
        let is_complete = session.replies.iter().all(Option::is_some);
        let limit = if is_complete { limit } else { limit.min(ASKED_AFTER) };
        let flags: Vec<_> = session.replies.iter().flatten().map(|end| end.sleeper.flag()).collect();
        if session.connection.peer().is_alive() {
            park_any(&flags, limit);
        }
        self.cancel_sleep();
    }

    fn cancel_sleep(&mut self) {
        for end in self.session.iter_mut().flat_map(|session| session.replies.iter_mut().flatten()) {
            end.sleeper.cancel();
        }
    }
}
