//! The transport of a client whose server is on the same host: windows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use beeline_contract_memory::Sleeper;
use beeline_domain::{Departure, Event, MemoryCreditSink, Peer, listen_all, park_any, prepare_all};
use beeline_mmio::LoadWindow;
use beeline_spec::WORD_BYTES;
use beeline_spec::formats::rpc_client_page::REPLIES_WANTED_OFFSET;
use beeline_window::{Message, ReceiveError, Sent};

use super::opening::{Pending, ReplyEnd, Session, Target};
use crate::deadline::Deadline;
use crate::error::Loss;
use crate::transport::Transport;

/// Times between two attempts to find a server again: the first and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));
/// Longest sleep while some thread of the server has no reply window: it cannot wake us to ask for one.
const ASKED_AFTER: Duration = Duration::from_millis(1);

/// Windows to a server and from each of its threads.
#[derive(Debug)]
pub struct ShmTransport {
    target: Target,
    /// `None` while there is no server.
    session: Option<Session>,
    /// The thread whose window is looked at next.
    turn: usize,
    /// A reply window that is being opened, and for which thread.
    opening: Option<(usize, Pending<ReplyEnd>)>,
    search: Search,
    /// The stream that a poll has found to end, and how.
    broken: Option<(usize, ReceiveError)>,
    /// How the server went, while what it had answered is still polled.
    departed: Option<Loss>,
    /// When a reply window is opened again that could not be.
    retry_opening: Instant,
}

#[cold]
#[inline(never)]
fn broke(broken: &mut Option<(usize, ReceiveError)>, stream: usize, error: ReceiveError) {
    *broken = Some((stream, error));
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

impl ShmTransport {
    pub(super) fn new(target: Target, session: Session) -> Self {
        ShmTransport {
            target,
            session: Some(session),
            turn: 0,
            opening: None,
            search: Search::new(),
            broken: None,
            departed: None,
            retry_opening: Instant::now(),
        }
    }

    /// The server's process, while there is one.
    pub fn peer(&self) -> Option<&Peer> {
        self.session.as_ref().map(|session| session.connection.peer())
    }

    /// Has `event` signalled for answers, for a server's thread that asks for a window, and for the server's end. Says
    /// whether something else is due: a window that is being opened, or is to be.
    pub(super) fn listen(&mut self, event: &Event) -> bool {
        for end in self.session.iter_mut().flat_map(|session| session.replies.iter_mut().flatten()) {
            // A server that waits for room must not wait for a look that does not come.
            end.receiver.push_credits();
            end.sleeper.announce(event);
        }
        let ends = self.session.iter().flat_map(|session| session.replies.iter().flatten());
        listen_all(ends.map(|end| &end.sleeper));
        let is_gone = self.session.as_ref().is_some_and(|session| !session.connection.peer().is_alive());
        let is_asked = self.session.as_ref().is_some_and(|session| asking(session).is_some());
        is_gone || is_asked || self.opening.is_some()
    }

    pub(super) fn unlisten(&mut self) {
        for end in self.session.iter_mut().flat_map(|session| session.replies.iter_mut().flatten()) {
            end.sleeper.unlisten();
        }
    }

    /// Has the server find a count of freed lines in the window of its first thread that cannot be, and takes no more from it.
    #[cfg(test)]
    pub(super) fn forge_credits(&mut self) {
        let end =
            self.session.as_mut().and_then(|session| session.replies[0].take()).expect("a reply window");
        let (_, mut sink, _) = end.receiver.into_parts();
        beeline_contract_memory::CreditSink::publish(&mut sink, u64::MAX);
    }

    /// Opens reply windows that the server's threads ask for, one at a time.
    fn open_replies(&mut self) {
        let Some(session) = &mut self.session else { return };
        if session.replies.len() == 1 {
            // The only one is open from the beginning.
            return;
        }
        if let Some((worker, pending)) = &self.opening {
            let Some(result) = pending.take() else { return };
            let worker = *worker;
            self.opening = None;
            match result {
                Ok(end) => session.replies[worker] = Some(end),
                Err(error) => {
                    // Other threads of the server may answer; this one is asked again.
                    tracing::warn!(%error, worker, "a reply window cannot be opened");
                    self.retry_opening = Instant::now() + RETRY.1;
                }
            }
        }
        if self.opening.is_some() || Instant::now() < self.retry_opening {
            return;
        }
        if let Some(worker) = asking(session) {
            let (connection, options) = (Arc::clone(&session.connection), self.target.options.clone());
            let open = move || ReplyEnd::open(&connection, &options, worker as u32, options.timeout);
            self.opening = Pending::start(open).map(|pending| (worker, pending));
        }
    }

    /// Takes note of the server's departure: what it had answered whole is still polled, and each stream then ends.
    fn take_leave(&mut self) {
        let Some(session) = &mut self.session else { return };
        let peer = session.connection.peer();
        if peer.is_alive() || self.departed.is_some() {
            return;
        }
        // The kernel says 0 for a process outside this pid namespace.
        let pid = Some(peer.pid()).filter(|pid| *pid != 0);
        self.departed = match peer.departure() {
            None => return,
            Some(Departure::Died) => Some(Loss::Died { pid }),
            Some(Departure::Closed) => Some(Loss::Closed { pid }),
        };
        session.replies.iter_mut().flatten().for_each(|end| end.receiver.sender_gone());
    }
}

/// A thread of the server that has no reply window and asks for one.
fn asking(session: &Session) -> Option<usize> {
    let asks = |worker: &usize| {
        let word = session.page.region().word(REPLIES_WANTED_OFFSET + worker * WORD_BYTES);
        session.replies[*worker].is_none() && word.load() != 0
    };
    (0..session.replies.len()).find(asks)
}

/// Without a session nothing is sent and nothing comes; the client does not ask.
fn absent() -> Loss {
    Loss::Broke { what: "it is not connected".to_owned() }
}

impl Transport for ShmTransport {
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
                broke(&mut self.broken, self.turn, error);
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
        self.take_leave();
        match self.broken.take() {
            Some((stream, ReceiveError::Gone | ReceiveError::Torn(_))) => {
                if let Some(session) = &mut self.session {
                    session.replies[stream] = None;
                }
            }
            Some((_, error)) => return Err(Loss::Broke { what: error.to_string() }),
            None => {}
        }
        if self.departed.is_some() {
            let has_streams =
                self.session.as_ref().is_some_and(|session| session.replies.iter().any(Option::is_some));
            return if has_streams { Ok(()) } else { self.departed.take().map_or(Ok(()), Err) };
        }
        self.open_replies();
        Ok(())
    }

    fn reconnect(&mut self) -> bool {
        if self.session.take().is_some() {
            (self.opening, self.broken, self.departed) = (None, None, None);
            if self.search.next.elapsed() > RETRY.1 * 10 {
                // It was a good server; one that is lost at once is looked for ever more rarely.
                self.search = Search::new();
            }
        }
        if !self.target.is_found_again {
            return false;
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
            self.search.pending = Pending::start(move || Session::open(&target, target.options.timeout));
        }
        false
    }

    fn looks_again(&self) -> bool {
        self.target.is_found_again
    }

    fn prepare_sleep(&mut self) {
        let ends = self.session.iter().flat_map(|session| session.replies.iter().flatten());
        prepare_all(ends.map(|end| &end.sleeper));
    }

    fn has_news(&mut self) -> bool {
        if self.departed.is_some() || self.broken.is_some() {
            return true;
        }
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
