//! The receiver's half: a name under which senders ask for a window.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use beeline_mmio::{LoadWindow, MemoryOptions, Pace, StoreKernel, Unpaced, is_small_memory};
use beeline_spec::formats::CONTROL_PAGE_BYTES;

use super::halves::{CreditPage, FreshWindow};
use super::hello::{Request, encode_answer};
use super::options::{SMALL_BYTES, WindowError, WindowOptions, check_lines, line_bytes};
use crate::{
    Answer, Domain, Event, MemoryCreditSink, MemorySleeper, Offer, OfferOptions, Peer, Process, Refusal,
    Reply, Service, Shares, process_name,
};

/// Windows that may wait to be accepted; senders that connect and go cannot fill more.
const MAX_WAITING: usize = 16;

/// A receiver's half of one window. When the peer has gone, what it left is still there to be read; then drop it and
/// accept the next sender's.
#[derive(Debug)]
pub struct ReceiverParts {
    /// The window's lines.
    pub load: LoadWindow,
    /// How the sender says it stores, if this version knows that way; nothing but speed rests on it.
    pub kernel: Option<StoreKernel>,
    /// Where freed lines are counted. Dropping it disconnects the sender.
    pub sink: MemoryCreditSink,
    /// The sender.
    pub peer: Peer,
    /// Value of a free word.
    pub blank: u64,
    /// Epoch of the messages in this window.
    pub epoch: u8,
    /// How the receiver waits for messages.
    pub sleeper: MemorySleeper,
}

/// A name under which a window is offered to one sender at a time.
#[derive(Debug)]
pub struct WindowListener {
    offer: Arc<Offer>,
    queue: Arc<Queue>,
}

/// Between the workers, which make windows, and whoever accepts them.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<QueueState>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: VecDeque<ReceiverParts>,
    /// For whom windows are being made.
    under_way: Vec<Process>,
    /// What is signalled when a sender comes.
    event: Option<Event>,
    is_closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Offers a window under `name`. Each sender gets a fresh one; a second is refused while the first is there.
///
/// # Errors
/// The number of lines cannot be, or the name cannot be offered.
pub fn offer_window(
    domain: &Domain,
    name: &str,
    options: WindowOptions,
) -> Result<WindowListener, WindowError> {
    check_lines(options.lines)?;
    let queue = Arc::new(Queue::default());
    let maker = Maker {
        name: name.to_owned(),
        lines: options.lines,
        memory: options.memory,
        queue: Arc::clone(&queue),
        sender: None,
        epoch: 0,
    };
    let WindowOptions { allowed_uids, admissions, .. } = options;
    let offer_options = OfferOptions { allowed_uids, admissions, ..OfferOptions::default() };
    let offer = Arc::new(domain.offer_with(name, Box::new(maker), offer_options)?);
    Ok(WindowListener { offer, queue })
}

impl WindowListener {
    /// The window of a sender that has connected, if one waits. The name stays taken until the listener and every
    /// window accepted from it are dropped. In a process that was forked from the one that offers there is never one.
    pub fn try_accept(&self) -> Option<ReceiverParts> {
        // Before the lock, which a thread may hold that a child does not have.
        if !self.offer.is_own() {
            return None;
        }
        self.take(&mut self.queue.lock())
    }

    /// As [`WindowListener::try_accept`], but waits for a sender for at most `timeout`.
    pub fn accept(&self, timeout: Duration) -> Option<ReceiverParts> {
        if !self.offer.is_own() {
            return None;
        }
        let deadline = Instant::now().checked_add(timeout);
        let mut state = self.queue.lock();
        loop {
            if let Some(parts) = self.take(&mut state) {
                return Some(parts);
            }
            // A timeout beyond the clock's range is no timeout.
            let left = deadline.map_or(Duration::MAX, |d| d.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return None;
            }
            state = self.queue.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Has `event` signalled when a sender comes, instead of what was given before. Whoever came before the call is there
    /// for the next [`WindowListener::try_accept`].
    pub fn signal(&self, event: Option<&Event>) {
        if !self.offer.is_own() {
            return;
        }
        self.queue.lock().event = event.cloned();
    }

    fn take(&self, state: &mut QueueState) -> Option<ReceiverParts> {
        let mut parts = state.waiting.pop_front()?;
        // Not earlier: a part in the queue belongs to the service, which the offer owns.
        parts.sink.keep(Arc::clone(&self.offer));
        Some(parts)
    }
}

impl Drop for WindowListener {
    fn drop(&mut self) {
        // In a forked child the lock may have been held by a thread that the child does not have.
        if !self.offer.is_own() {
            return;
        }
        let left = {
            let mut state = self.queue.lock();
            state.is_closed = true;
            std::mem::take(&mut state.waiting)
        };
        // Outside the lock: dropping a part disconnects its sender.
        drop(left);
    }
}

/// The service behind the name: has a window made for each sender.
struct Maker {
    name: String,
    lines: u32,
    memory: MemoryOptions,
    queue: Arc<Queue>,
    /// The last sender.
    sender: Option<Peer>,
    /// Epoch of the last window.
    epoch: u8,
}

impl Service for Maker {
    fn connected(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        match self.begin(peer, request) {
            // At once where a constant bounds it: to wake a worker up would take longer.
            Ok((place, making)) if making.is_small(&fds) => {
                making.make_in(place, fds, &Unpaced).map(Answer::Now)
            }
            Ok((place, making)) => Ok(Answer::later(move |pace| making.make_in(place, fds, pace))),
            Err(refusal) => Ok(Answer::refusal(refusal, fds)),
        }
    }

    fn requested(&mut self, _peer: &Peer, _request: &[u8], _fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Err(Refusal::new("a window answers no further requests"))
    }

    fn departed(&mut self, peer: &Peer) {
        if self.sender.as_ref().is_some_and(|sender| sender.id() == peer.id()) {
            self.sender = None;
        }
    }
}

impl Maker {
    /// Gives the window to a sender, if it is free.
    fn begin(&mut self, peer: &Peer, request: &[u8]) -> Result<(Place, Making), Refusal> {
        let kernel = Request::decode(request).map_err(Refusal::new)?;
        if let Some(sender) = self.sender.as_ref().filter(|sender| sender.is_connected_now()) {
            return Err(Refusal::new(format!("the window is taken by {}", process_name(sender.pid()))));
        }
        let place = Place::reserve(&self.queue, Process::of(peer))?;
        self.sender = Some(peer.clone());
        self.epoch = self.epoch.wrapping_add(1);
        let (name, peer) = (self.name.clone(), peer.clone());
        let (lines, memory, epoch) = (self.lines, self.memory, self.epoch);
        Ok((place, Making { name, lines, memory, epoch, peer, kernel }))
    }
}

/// A place in the queue for a window that is being made.
struct Place {
    queue: Arc<Queue>,
    sender: Process,
}

impl Place {
    fn reserve(queue: &Arc<Queue>, sender: Process) -> Result<Self, Refusal> {
        let mut state = queue.lock();
        if state.is_closed {
            return Err(closed());
        }
        let holders = state.waiting.iter().map(|parts| Process::of(&parts.peer));
        let holders = holders.chain(state.under_way.iter().copied());
        if let Err(exceeded) = Shares::of(MAX_WAITING).check(sender, holders) {
            return Err(Refusal::new(format!("of the windows that wait to be accepted {exceeded}")));
        }
        if state.waiting.len() + state.under_way.len() >= MAX_WAITING {
            return Err(Refusal::new(format!("{MAX_WAITING} windows already wait to be accepted")));
        }
        state.under_way.push(sender);
        Ok(Place { queue: Arc::clone(queue), sender })
    }

    fn fill(self, parts: ReceiverParts) -> Result<(), Refusal> {
        let mut state = self.queue.lock();
        if state.is_closed {
            drop(state);
            return Err(closed());
        }
        state.waiting.push_back(parts);
        self.queue.arrived.notify_one();
        if let Some(event) = &state.event {
            event.signal();
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        if let Some(place) = state.under_way.iter().position(|sender| *sender == self.sender) {
            state.under_way.swap_remove(place);
        }
    }
}

fn closed() -> Refusal {
    Refusal::new("the receiver accepts no more senders")
}

/// What a worker needs to make a window.
struct Making {
    name: String,
    lines: u32,
    memory: MemoryOptions,
    epoch: u8,
    peer: Peer,
    kernel: Option<StoreKernel>,
}

impl Making {
    /// Whether a constant bounds the time that it takes, with what the sender has sent for it.
    fn is_small(&self, fds: &[OwnedFd]) -> bool {
        let is_credit_page = |fd: &OwnedFd| is_small_memory(fd.as_fd(), CONTROL_PAGE_BYTES);
        self.memory == MemoryOptions::default()
            && line_bytes(self.lines) <= SMALL_BYTES
            && fds.iter().all(is_credit_page)
    }

    fn make_in(self, place: Place, fds: Vec<OwnedFd>, pace: &dyn Pace) -> Result<Reply, Refusal> {
        let (reply, parts) = self.make(fds, pace)?;
        place.fill(parts)?;
        Ok(reply)
    }

    /// A fresh window, all blank, and the receiver's half of it.
    fn make(self, fds: Vec<OwnedFd>, pace: &dyn Pace) -> Result<(Reply, ReceiverParts), Refusal> {
        let [credit_fd] = <[OwnedFd; 1]>::try_from(fds)
            .map_err(|fds| Refusal::new(format!("{} descriptors, one credit page is needed", fds.len())))?;
        let page = CreditPage::from_fd(credit_fd)
            .map_err(|error| Refusal::new(format!("the credit page cannot be used: {error}")))?;
        self.halves(&page, pace).map_err(|error| {
            tracing::error!(%error, window = self.name, "cannot make a window");
            Refusal::new(format!("the receiver cannot make a window: {error}"))
        })
    }

    fn halves(&self, page: &CreditPage, pace: &dyn Pace) -> Result<(Reply, ReceiverParts), WindowError> {
        let window = FreshWindow::create_paced(&self.name, self.lines, self.memory, self.epoch, pace)?;
        let parts = ReceiverParts {
            load: window.load(self.kernel),
            kernel: self.kernel,
            sink: window.sink(page, &self.peer).disconnecting(),
            peer: self.peer.clone(),
            blank: window.terms().blank,
            epoch: self.epoch,
            sleeper: window.sleeper(page, &self.peer),
        };
        Ok((Reply { payload: encode_answer(window.terms()), fds: vec![window.into_fd()] }, parts))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::os::fd::AsFd;

    use beeline_mmio::Unpaced;

    use super::*;
    use crate::peer::tests::peer_with_socket;

    fn ask(maker: &mut Maker, peer: &Peer) -> Result<Reply, Refusal> {
        let fd = CreditPage::create("page").unwrap().fd().as_fd().try_clone_to_owned().unwrap();
        match maker.connected(peer, &Request::encode(StoreKernel::Cached), vec![fd])? {
            Answer::Now(reply) => Ok(reply),
            Answer::Later(work) => work(&Unpaced),
        }
    }

    fn maker(lines: u32) -> Maker {
        let (memory, queue) = (MemoryOptions::default(), Arc::default());
        Maker { name: "test".into(), lines, memory, queue, sender: None, epoch: 255 }
    }

    #[test]
    fn small_window_is_made_at_once_if_what_came_for_it_is_small() {
        use rustix::fs::{MemfdFlags, SealFlags};

        let page = || CreditPage::create("page").unwrap().fd().as_fd().try_clone_to_owned().unwrap();
        let is_now = |lines: u32, fds: Vec<OwnedFd>| {
            let (peer, _end) = peer_with_socket();
            let answer = maker(lines).connected(&peer, &Request::encode(StoreKernel::Cached), fds);
            matches!(answer.unwrap(), Answer::Now(_))
        };
        assert!(is_now(64, vec![page()]) && is_now(256, vec![page()]));
        assert!(!is_now(512, vec![page()]), "it is larger");
        // To close it takes as long as the pages take that are hidden behind its end.
        let hidden = rustix::fs::memfd_create("page", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&hidden, CONTROL_PAGE_BYTES as u64).unwrap();
        let behind = rustix::fs::FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&hidden, behind, CONTROL_PAGE_BYTES as u64, 1 << 20).unwrap();
        rustix::fs::fcntl_add_seals(&hidden, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).unwrap();
        assert!(!is_now(64, vec![hidden]));
        assert!(!is_now(64, vec![page(), std::fs::File::open("/proc/self/exe").unwrap().into()]));
    }

    #[test]
    fn departed_sender_frees_the_window_before_its_hang_up_is_seen() {
        let mut maker = maker(64);
        let ((first, first_end), (second, _second_end)) = (peer_with_socket(), peer_with_socket());
        ask(&mut maker, &first).unwrap();
        assert!(ask(&mut maker, &second).unwrap_err().reason().contains("taken by process"));
        drop(first_end);
        assert!(first.is_alive(), "the domain's thread has not seen the hang-up");
        ask(&mut maker, &second).unwrap();
        let epochs: Vec<_> = maker.queue.lock().waiting.iter().map(|parts| parts.epoch).collect();
        assert_eq!(epochs, [0, 1], "the epoch wraps");
    }
}
