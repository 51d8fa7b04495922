//! A thread of a server: it polls the clients' requests and answers them.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::{Duration, Instant};

use beeline_domain::{Armed, Event, MAX_SLEEP, Source, listen_all, park_any, prepare_all};
use beeline_mmio::MAX_FLAGS;
use beeline_wait::{Idle, WaitPolicy};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::registry::Registry;
use super::session::{Session, Step};
use crate::service::Service;

/// How long answers may take to leave when a thread stops.
const LAST_ANSWERS: Duration = Duration::from_millis(100);
/// Requests of one client that are answered before the next one's turn.
const BURST: u32 = 32;

/// One thread's share of a server. It belongs to one thread at a time; a server whose workers are not all polled serves
/// with those that are.
///
/// Poll it together with whatever else the thread polls, or give the thread to it with [`Worker::run`].
#[derive(Debug)]
pub struct Worker {
    index: usize,
    registry: Arc<Registry>,
    seen_changes: u64,
    sessions: Vec<Session>,
    /// What a sleep on more flags than the kernel takes waits for; made by the first one.
    event: Option<Event>,
}

impl Worker {
    pub(crate) fn new(index: usize, registry: Arc<Registry>) -> Self {
        Worker { index, registry, seen_changes: 0, sessions: Vec::new(), event: None }
    }

    /// Answers what is there, at most a burst of each client: how many messages of requests it took. Never waits: an
    /// answer that finds no room in the client's window leaves in a later poll ([`Worker::has_unsent`]).
    #[inline]
    pub fn poll(&mut self, service: &mut impl Service) -> usize {
        if self.registry.changes() != self.seen_changes {
            self.refresh();
        }
        let mut round = Round { worker: self, service, session: 0, left: BURST, worked: 0 };
        // Caught here and not around each call, so that handler and loop are one piece of code, with the reply in registers.
        // What is caught is one word, the reference: several would be moved through memory.
        while catch_unwind(AssertUnwindSafe(|| round.run())).is_err() {
            round.handler_panicked();
        }
        round.worked
    }

    /// Polls until `stop`, waiting as `policy` says. Answers that wait for room then get 100 ms to leave; a client that makes
    /// no room for its answers in that time loses them, as it would by a server that died.
    pub fn run(&mut self, service: &mut impl Service, policy: &WaitPolicy, stop: &AtomicBool) {
        let mut idle = Idle::new(*policy);
        // Relaxed: nothing is read by it but that it is time to stop.
        while !stop.load(Ordering::Relaxed) {
            if self.poll(service) > 0 {
                idle.busy();
            } else if let Some(limit) = idle.pass() {
                self.sleep(limit);
                idle.busy();
            }
        }
        self.send_rest(service);
    }

    /// Takes no more requests, and sends what was answered.
    #[cold]
    fn send_rest(&mut self, service: &mut impl Service) {
        let end = Instant::now() + LAST_ANSWERS;
        while self.send_waiting(service) && Instant::now() < end {
            std::thread::yield_now();
        }
    }

    /// Sends of each answer that waits as much as there is room for; whether some still wait. A client that is found to be of no
    /// use is left out from now on, and the others are not.
    fn send_waiting(&mut self, service: &mut impl Service) -> bool {
        // With an answer waiting, that is all that a step is about.
        let is_broken = |session: &mut Session| session.has_unsent() && session.step(service) == Step::Broken;
        for broken in self.sessions.extract_if(.., is_broken) {
            disconnect(&self.registry, &broken);
            self.registry.dispose(broken);
        }
        self.has_unsent()
    }

    /// Sleeps until a client may have sent something, at most `limit`. For a thread that polls nothing else.
    pub fn sleep(&mut self, limit: Duration) {
        // The bell is one more.
        if self.sessions.iter().flat_map(Session::sleepers).count() >= MAX_FLAGS {
            self.event = self.event.take().or_else(|| Event::new().ok());
            if let Some(event) = self.event.clone() {
                return self.sleep_by_event(&event, limit);
            }
        }
        let bell = self.registry.bell(self.index);
        bell.store(1);
        // Pairs with the fence in `Registry::change`.
        fence(Ordering::SeqCst);
        for session in &self.sessions {
            session.entry.fall_asleep();
        }
        prepare_all(self.sessions.iter().flat_map(Session::sleepers));
        let has_work = self.registry.changes() != self.seen_changes
            || self.sessions.iter_mut().any(|session| session.has_work());
        if !has_work {
            let flags = self.sessions.iter().flat_map(Session::sleepers).map(|sleeper| sleeper.flag());
            let flags: Vec<_> = std::iter::once(&bell).chain(flags).collect();
            park_any(&flags, limit);
        }
        self.sessions.iter_mut().for_each(Session::awake);
        bell.store(0);
    }

    /// As [`Worker::sleep`], for any number of clients: the sleep is by descriptor, and a wake-up passes through the domain's
    /// thread.
    #[cold]
    fn sleep_by_event(&mut self, event: &Event, limit: Duration) {
        event.clear();
        if self.listen(event) != Armed::Ready {
            let limit = Timespec::try_from(limit.min(MAX_SLEEP)).ok();
            // An error is a signal, or a lack of memory: who polls looks again in either case.
            let _ = poll(&mut [PollFd::new(event, PollFlags::IN)], limit.as_ref());
        }
        self.unlisten();
    }

    /// Whether a request was taken whose answer waits for room in its client's window. Who polls for a number of
    /// requests, or is about to stop, goes on polling until there is none: nobody else sends it.
    pub fn has_unsent(&self) -> bool {
        self.sessions.iter().any(Session::has_unsent)
    }

    /// Clients that are connected, as this thread has seen it.
    pub fn clients(&self) -> usize {
        self.sessions.len()
    }

    /// Drops clients that went, takes up new ones, fetches their reply windows.
    #[cold]
    #[inline(never)]
    fn refresh(&mut self) {
        self.seen_changes = self.registry.changes();
        let clients = self.registry.clients();
        let present: HashSet<_> = clients.iter().map(|client| client.id).collect();
        for gone in self.sessions.extract_if(.., |session| !present.contains(&session.entry.id)) {
            self.registry.dispose(gone);
        }
        let known: HashSet<_> = self.sessions.iter().map(|session| session.entry.id).collect();
        let new = clients.into_iter().filter(|client| !known.contains(&client.id));
        self.sessions.extend(new.map(|client| Session::new(client, self.index)));
        for session in &mut self.sessions {
            session.fetch_reply();
        }
    }
}

/// One look at every client, up to a burst of each: where it stands, so that it goes on when a handler has panicked.
struct Round<'w, S> {
    worker: &'w mut Worker,
    service: &'w mut S,
    /// Whose turn it is, and what is left of it.
    session: usize,
    left: u32,
    worked: usize,
}

impl<S: Service> Round<'_, S> {
    #[inline]
    fn run(&mut self) {
        while let Some(session) = self.worker.sessions.get_mut(self.session) {
            while self.left > 0 {
                self.left -= 1;
                match session.step(self.service) {
                    Step::Worked => self.worked += 1,
                    Step::Sent => {}
                    Step::Idle => break,
                    Step::Broken => {
                        disconnect(&self.worker.registry, session);
                        break;
                    }
                }
            }
            self.session += 1;
            self.left = BURST;
        }
    }

    /// The request in hand was answered by the drop of its reply, and freed.
    #[cold]
    fn handler_panicked(&mut self) {
        self.worked += 1;
        if let Some(session) = self.worker.sessions.get_mut(self.session)
            && session.after_answer() == Step::Broken
        {
            disconnect(&self.worker.registry, session);
            self.left = 0;
        }
    }
}

#[cold]
#[inline(never)]
fn disconnect(registry: &Registry, session: &Session) {
    tracing::warn!(client = session.entry.peer.pid(), why = session.why(), "a client is disconnected");
    registry.remove(&session.entry.peer);
}

/// Ready while a request may be there, room for an answer that waits, or a client that came or went, for [`Worker::poll`].
impl Source for Worker {
    fn listen(&mut self, event: &Event) -> Armed {
        self.registry.signal(self.index, Some(event));
        // Only a poll takes up who came and went: who waits for that looks after polls, and would sleep on what was taken up here.
        if self.registry.changes() != self.seen_changes {
            return Armed::Ready;
        }
        self.sessions.iter_mut().for_each(|session| session.listen(event));
        listen_all(self.sessions.iter().flat_map(Session::sleepers));
        let has_work = self.sessions.iter_mut().any(|session| session.has_work());
        if has_work || self.registry.changes() != self.seen_changes { Armed::Ready } else { Armed::Wait }
    }

    fn unlisten(&mut self) {
        self.registry.signal(self.index, None);
        self.sessions.iter_mut().for_each(Session::unlisten);
    }
}

#[cfg(test)]
mod tests;
