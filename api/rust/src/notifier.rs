//! An owner that tells its subscribers things unasked, and answers what they ask.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use beeline_domain::{Event, Notified, Offer, OfferOptions, Peer, PeerId, Refusal, Reply, Service};
use beeline_mmio::ThisProcess;

use crate::{Admissions, Domain, NotifyError, OfferError, Target};

/// Who may subscribe, and how many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct NotifierOptions {
    below: OfferOptions,
}

impl NotifierOptions {
    /// At most 1024 subscribers, all of this user.
    pub fn new() -> Self {
        Self::default()
    }

    /// Subscribers at the same time. One process may have all but a sixteenth of them, another user half.
    pub fn max_subscribers(mut self, subscribers: usize) -> Self {
        self.below.max_connections = subscribers;
        self
    }

    /// Users besides the domain's owner who may subscribe. They open the domain with [`Domain::open_foreign`].
    pub fn allowed_uids(mut self, uids: impl IntoIterator<Item = u32>) -> Self {
        self.below.allowed_uids = uids.into_iter().collect();
        self
    }

    /// Who may subscribe besides, because it shares a connection with this process.
    pub fn admissions(mut self, admissions: &Admissions) -> Self {
        self.below.admissions = Some(admissions.0.clone());
        self
    }
}

/// What a subscriber is answered.
#[derive(Debug, Default)]
pub struct Answer {
    /// At most 65,000 bytes. To a subscriber they are from a process that it may not trust: check before use.
    pub payload: Vec<u8>,
    /// At most 32 descriptors; closed on the notifier's side once they are sent.
    pub fds: Vec<OwnedFd>,
}

impl Answer {
    /// An answer without descriptors.
    pub fn new(payload: impl Into<Vec<u8>>) -> Self {
        Answer { payload: payload.into(), fds: Vec::new() }
    }
}

/// A process that has subscribed. Clones are the same one. Any thread may tell it something.
#[derive(Clone, Debug)]
pub struct Subscriber(Peer);

impl Subscriber {
    /// A number that no other subscriber of this process has, ever.
    pub fn id(&self) -> PeerId {
        self.0.id()
    }

    /// Its process; `None` for one outside this pid namespace.
    pub fn pid(&self) -> Option<u32> {
        Some(self.0.pid()).filter(|pid| *pid != 0)
    }

    /// Its user, by the kernel's word when it subscribed.
    pub fn uid(&self) -> u32 {
        self.0.uid()
    }

    /// Whether its process has ended or it has unsubscribed. Costs one load.
    pub fn is_gone(&self) -> bool {
        !self.0.is_alive()
    }

    /// Tells it something, in order with the answers to its calls: what was accepted before an answer was given is there when
    /// its call returns. At most 4096 bytes and 4 descriptors. Never waits for the subscriber: [`Notified::WouldBlock`] when it
    /// has to take earlier ones first, and nothing was sent; [`NotifierEvent::HasRoom`] says when it did. One system call.
    ///
    /// # Errors
    /// It has gone; the notification is too large; the kernel refused something; this process was forked from the one that
    /// offers.
    pub fn notify(&self, payload: &[u8], fds: &[BorrowedFd<'_>]) -> Result<Notified, NotifyError> {
        Ok(self.0.notify(payload, fds)?)
    }

    /// Ends its subscription.
    pub fn disconnect(&self) {
        self.0.disconnect();
    }
}

/// What happened to a subscriber.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NotifierEvent {
    /// It has come.
    Joined(Subscriber),
    /// It has taken notifications since it was last told nothing for want of room.
    HasRoom(Subscriber),
    /// It has ended or unsubscribed. Nothing more is heard of it.
    Left(Subscriber),
}

impl NotifierEvent {
    /// Whom it happened to.
    pub fn subscriber(&self) -> &Subscriber {
        match self {
            NotifierEvent::Joined(it) | NotifierEvent::HasRoom(it) | NotifierEvent::Left(it) => it,
        }
    }
}

/// Tells subscribers things unasked. Made by [`Domain::notifier`]; dropping it withdraws the name and ends every subscription.
///
/// Who has come and gone is told by events, which wait to be taken: never more than two for each subscriber. The descriptor is
/// readable while one waits. Any thread may do anything with it.
///
/// ```no_run
/// # fn main() -> Result<(), beeline::Error> {
/// let prices = beeline::Domain::open("demo")?.notifier("prices")?;
/// for subscriber in prices.subscribers() {
///     if subscriber.notify(b"41.5", &[])? == beeline::Notified::WouldBlock { /* it is slow: leave it out, or wait for HasRoom */ }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Notifier {
    /// Dropped first: afterwards nobody calls the service.
    _offer: Offer,
    book: Arc<Book>,
    made_by: ThisProcess,
}

impl Notifier {
    /// Those who are subscribed now.
    pub fn subscribers(&self) -> Vec<Subscriber> {
        if !self.made_by.is_this() {
            return Vec::new();
        }
        let entries = &self.book.lock().entries;
        entries.values().filter(|entry| entry.has_joined).map(|entry| entry.subscriber.clone()).collect()
    }

    /// The subscriber whose [`PeerId::number`] this is; `None` once it has gone. Known from its first request on, before
    /// [`Notifier::subscribers`] has it. In a child of fork nobody is.
    pub fn subscriber(&self, number: u64) -> Option<Subscriber> {
        // Before the lock, which a thread may hold that a child does not have.
        if !self.made_by.is_this() {
            return None;
        }
        self.book.lock().entries.get(&number).map(|entry| entry.subscriber.clone())
    }

    /// The next event; `None` when there is none now. Never waits.
    pub fn try_event(&self) -> Option<NotifierEvent> {
        self.event_timeout(Duration::ZERO)
    }

    /// The next event, waited for for at most `timeout`; `None` when nothing happened. In a child of fork nothing ever does.
    pub fn event_timeout(&self, timeout: Duration) -> Option<NotifierEvent> {
        // Before the lock, which a thread may hold that a child does not have.
        if !self.made_by.is_this() {
            return None;
        }
        let deadline = Instant::now().checked_add(timeout);
        let mut state = self.book.lock();
        loop {
            if let Some(event) = state.take() {
                if state.events.is_empty() {
                    self.book.event.clear();
                }
                return Some(event);
            }
            let left = deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return None;
            }
            state = self.book.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl AsFd for Notifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.book.event.as_fd()
    }
}

impl AsRawFd for Notifier {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Domain {
    /// Offers notifications under `name` to processes of this user. They are told things and cannot ask for any.
    ///
    /// # Errors
    /// Somebody offers the name already, or this process has no descriptor left.
    pub fn notifier(&self, name: &str) -> Result<Notifier, OfferError> {
        self.notifier_with(name, NotifierOptions::new(), |_, request, _| match request {
            [] => Ok(Answer::default()),
            _ => Err("this notifier answers nothing".to_owned()),
        })
    }

    /// Offers notifications with options, as [`Domain::notifier`] does with the default ones. `answer` is given what a
    /// subscriber says when it subscribes and whatever it asks later, with descriptors; an error refuses, and its text is told.
    ///
    /// `answer` runs on threads of the library, one request at a time, may take its time and may use the whole API, but must not
    /// drop the notifier. What it is given is from a process that is not trusted: check before use. All signals are blocked on
    /// those threads. If it panics, the request is refused.
    ///
    /// # Errors
    /// Somebody offers the name already, or this process has no descriptor left.
    pub fn notifier_with<F>(
        &self,
        name: &str,
        options: NotifierOptions,
        answer: F,
    ) -> Result<Notifier, OfferError>
    where
        F: FnMut(&Subscriber, &[u8], Vec<OwnedFd>) -> Result<Answer, String> + Send + 'static,
    {
        let target = || Target::Notifier(name.to_owned());
        let event =
            Event::new().map_err(|error| OfferError::System { target: target(), source: error.into() })?;
        event.clear();
        let book = Arc::new(Book { state: Mutex::default(), changed: Condvar::new(), event });
        let desk = Desk { book: Arc::clone(&book), answer: Arc::new(Mutex::new(answer)) };
        let offer = self
            .inner
            .offer_with(name, Box::new(desk), options.below)
            .map_err(|error| OfferError::new(target(), error))?;
        Ok(Notifier { _offer: offer, book, made_by: ThisProcess::get() })
    }
}

/// Who has subscribed, and what the program has not been told of them.
#[derive(Debug)]
struct Book {
    state: Mutex<State>,
    changed: Condvar,
    /// Readable while an event waits.
    event: Event,
}

#[derive(Debug, Default)]
struct State {
    /// By the numbers of their ids.
    entries: HashMap<u64, Entry>,
    /// In order; at most one of a kind for each subscriber.
    events: VecDeque<NotifierEvent>,
}

#[derive(Debug)]
struct Entry {
    subscriber: Subscriber,
    /// Its first request was answered.
    has_joined: bool,
}

impl State {
    fn take(&mut self) -> Option<NotifierEvent> {
        self.events.pop_front()
    }

    /// Whether an event of a subscriber waits that `is_such`.
    fn has(&self, id: PeerId, is_such: impl Fn(&NotifierEvent) -> bool) -> bool {
        self.events.iter().any(|event| event.subscriber().id() == id && is_such(event))
    }
}

impl Book {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is finished before anything that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, subscriber: &Subscriber) {
        let entry = Entry { subscriber: subscriber.clone(), has_joined: false };
        self.lock().entries.insert(subscriber.id().number(), entry);
    }

    /// Its first request was answered.
    fn joined(&self, subscriber: &Subscriber) {
        let mut state = self.lock();
        let Some(entry) = state.entries.get_mut(&subscriber.id().number()) else { return };
        entry.has_joined = true;
        self.tell(&mut state, NotifierEvent::Joined(subscriber.clone()));
    }

    fn has_room(&self, id: PeerId) {
        let mut state = self.lock();
        let Some(entry) = state.entries.get(&id.number()).filter(|entry| entry.has_joined) else { return };
        let subscriber = entry.subscriber.clone();
        if !state.has(id, |event| matches!(event, NotifierEvent::HasRoom(_))) {
            self.tell(&mut state, NotifierEvent::HasRoom(subscriber));
        }
    }

    fn left(&self, id: PeerId) {
        let mut state = self.lock();
        let Some(entry) = state.entries.remove(&id.number()) else { return };
        let is_known = entry.has_joined && !state.has(id, |event| matches!(event, NotifierEvent::Joined(_)));
        // Of one that the program has not heard of it need not hear at all: so nobody fills this by coming and going.
        state.events.retain(|event| event.subscriber().id() != id);
        if is_known {
            self.tell(&mut state, NotifierEvent::Left(entry.subscriber));
        } else if state.events.is_empty() {
            self.event.clear();
        }
    }

    fn tell(&self, state: &mut State, event: NotifierEvent) {
        state.events.push_back(event);
        self.event.signal();
        self.changed.notify_all();
    }
}

/// The service behind the name.
struct Desk<F> {
    book: Arc<Book>,
    answer: Arc<Mutex<F>>,
}

impl<F> Desk<F>
where
    F: FnMut(&Subscriber, &[u8], Vec<OwnedFd>) -> Result<Answer, String> + Send + 'static,
{
    /// Has a worker answer, and then do `after`.
    fn answer(
        &self,
        peer: &Peer,
        request: &[u8],
        fds: Vec<OwnedFd>,
        after: impl FnOnce(&Subscriber) + Send + 'static,
    ) -> beeline_domain::Answer {
        let (answer, subscriber, request) =
            (Arc::clone(&self.answer), Subscriber(peer.clone()), request.to_vec());
        beeline_domain::Answer::later(move |_| {
            // One that panicked before is asked again: what it left is the program's affair.
            let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
            let Answer { payload, fds } = answer(&subscriber, &request, fds).map_err(Refusal::new)?;
            after(&subscriber);
            Ok(Reply { payload, fds })
        })
    }
}

impl<F> Service for Desk<F>
where
    F: FnMut(&Subscriber, &[u8], Vec<OwnedFd>) -> Result<Answer, String> + Send + 'static,
{
    fn connected(
        &mut self,
        peer: &Peer,
        request: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Result<beeline_domain::Answer, Refusal> {
        self.book.enter(&Subscriber(peer.clone()));
        let book = Arc::clone(&self.book);
        Ok(self.answer(peer, request, fds, move |subscriber| book.joined(subscriber)))
    }

    fn requested(
        &mut self,
        peer: &Peer,
        request: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Result<beeline_domain::Answer, Refusal> {
        Ok(self.answer(peer, request, fds, |_| ()))
    }

    fn departed(&mut self, peer: &Peer) {
        self.book.left(peer.id());
    }

    fn has_room(&mut self, peer: &Peer) {
        self.book.has_room(peer.id());
    }
}
