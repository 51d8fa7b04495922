//! Senders that wait to be accepted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use beeline_mmio::{Region, StoreKernel};

use super::halves::{MappedWindow, ReceiverParts, UnmappedCreditPage};
use super::options::WindowError;
use super::spare::SpareWindow;
use crate::credits::receiver_sleeper;
use crate::{Event, Peer, Process, Refusal, Shares};

/// Windows that may wait to be accepted; senders that connect and go cannot fill more.
const MAX_WAITING: usize = 16;

/// Between the domain's threads, which make windows, and whoever accepts them.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Arc<Arrival>>,
    /// For whom windows are being made.
    under_way: Vec<Process>,
    /// What is signalled when a sender comes.
    event: Option<Event>,
    /// The window of the next sender, if it was made in advance.
    spare: Option<SpareWindow>,
    is_closed: bool,
}

/// A sender that has its window and was not accepted yet. It is disconnected when this is dropped before it is, unless it is refused.
#[derive(Debug)]
pub(super) struct Arrival {
    window: MappedWindow,
    kernel: Option<StoreKernel>,
    peer: Peer,
    page: Mutex<Page>,
    /// Whether it was accepted, or refused.
    is_settled: AtomicBool,
}

/// The sender's credit page.
#[derive(Debug)]
pub(super) enum Page {
    Passed(UnmappedCreditPage),
    Mapped(Region),
    /// The process has no memory or addresses left.
    Failed,
}

impl Page {
    fn map(&mut self) -> Option<&Region> {
        if matches!(self, Page::Passed(_))
            && let Page::Passed(page) = std::mem::replace(self, Page::Failed)
        {
            match page.map() {
                Ok(page) => *self = Page::Mapped(page.region().clone()),
                Err(error) => tracing::error!(%error, "cannot map a credit page; its sender is disconnected"),
            }
        }
        if let Page::Mapped(region) = self { Some(region) } else { None }
    }
}

impl Arrival {
    pub(super) fn new(window: MappedWindow, kernel: Option<StoreKernel>, peer: Peer, page: Page) -> Self {
        let (page, is_settled) = (Mutex::new(page), AtomicBool::new(false));
        Arrival { window, kernel, peer, page, is_settled }
    }

    /// Maps the credit page, unless whoever accepts the sender is about to.
    pub(super) fn map(&self) {
        let mut page = match self.page.try_lock() {
            Ok(page) => page,
            Err(TryLockError::Poisoned(page)) => page.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if page.map().is_none() {
            self.peer.disconnect();
        }
    }

    /// The receiver's half; `None` where the credit page cannot be mapped.
    fn accept(&self) -> Option<ReceiverParts> {
        let Arrival { window, kernel, peer, .. } = self;
        let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        let page = page.map()?;
        // Relaxed: the last owner's drop comes after it by the count of owners.
        self.is_settled.store(true, Ordering::Relaxed);
        Some(ReceiverParts {
            load: window.load(*kernel),
            kernel: *kernel,
            sink: window.sink(page, peer).disconnecting(),
            peer: peer.clone(),
            blank: window.terms.blank,
            epoch: window.terms.epoch,
            sleeper: receiver_sleeper(page, peer),
        })
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        if !*self.is_settled.get_mut() {
            self.peer.disconnect();
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The half of the sender that has waited longest, if one waits.
    pub(super) fn try_accept(&self) -> Option<ReceiverParts> {
        loop {
            let arrival = self.lock().waiting.pop_front()?;
            // Without the lock: to map a page, or to say goodbye, takes time.
            if let Some(parts) = arrival.accept() {
                return Some(parts);
            }
        }
    }

    /// As [`Queue::try_accept`], but waits for one until `deadline`, if there is any.
    pub(super) fn accept(&self, deadline: Option<Instant>) -> Option<ReceiverParts> {
        loop {
            if let Some(parts) = self.try_accept() {
                return Some(parts);
            }
            let left = deadline.map_or(Duration::MAX, |d| d.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return None;
            }
            let state = self.lock();
            if state.waiting.is_empty() {
                drop(self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    pub(super) fn signal(&self, event: Option<&Event>) {
        self.lock().event = event.cloned();
    }

    /// Tells whoever waits that a sender has come.
    pub(super) fn announce(&self) {
        let event = {
            let state = self.lock();
            self.arrived.notify_one();
            state.event.clone()
        };
        if let Some(event) = event {
            event.signal();
        }
    }

    /// Lets nobody in any more, and disconnects who waits.
    pub(super) fn close(&self) {
        let left = {
            let mut state = self.lock();
            state.is_closed = true;
            (std::mem::take(&mut state.waiting), state.spare.take())
        };
        // Outside the lock: dropping an arrival disconnects its sender.
        drop(left);
    }

    pub(super) fn take_spare(&self) -> Option<SpareWindow> {
        self.lock().spare.take()
    }

    /// Has the next sender get a window that `make` makes, unless there is one for it.
    pub(super) fn keep_spare(&self, make: impl FnOnce() -> Result<SpareWindow, WindowError>) {
        let is_wanted = |state: &State| !state.is_closed && state.spare.is_none();
        if !is_wanted(&self.lock()) {
            return;
        }
        match make() {
            Ok(spare) => {
                let mut state = self.lock();
                if is_wanted(&state) {
                    state.spare = Some(spare);
                }
            }
            // The next one's will be made when it comes, or its sender told why not.
            Err(error) => tracing::debug!(%error, "no window in advance"),
        }
    }
}

/// A place in the queue for a window that is being made.
pub(super) struct Place {
    queue: Arc<Queue>,
    sender: Process,
}

impl Place {
    pub(super) fn reserve(queue: &Arc<Queue>, sender: Process) -> Result<Self, Refusal> {
        let mut state = queue.lock();
        if state.is_closed {
            return Err(closed());
        }
        let holders = state.waiting.iter().map(|arrival| Process::of(&arrival.peer));
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

    /// Has a sender wait here to be accepted. Nobody is told yet ([`Queue::announce`]). One that is refused stays connected, to be
    /// told why.
    pub(super) fn fill(self, arrival: Arc<Arrival>) -> Result<(), Refusal> {
        let mut state = self.queue.lock();
        if state.is_closed {
            drop(state);
            // Relaxed: as where it is accepted.
            arrival.is_settled.store(true, Ordering::Relaxed);
            return Err(closed());
        }
        state.waiting.push_back(arrival);
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

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};
    use std::sync::Weak;

    use beeline_mmio::{MemoryOptions, Unpaced};

    use super::*;
    use crate::peer::tests::peer_with_socket;
    use crate::socket::{self, PacketBuffer, Received};
    use crate::window::halves::FreshWindow;
    use crate::wire::{Header, Kind, MAX_MESSAGE_BYTES};

    fn window(epoch: u8) -> FreshWindow {
        FreshWindow::create_paced("test", 64, MemoryOptions::default(), epoch, &Unpaced).unwrap()
    }

    fn unmapped() -> Page {
        Page::Passed(UnmappedCreditPage::create("page").unwrap())
    }

    /// Has a sender wait whose window has this epoch; its end of the connection.
    fn arrive(queue: &Arc<Queue>, epoch: u8, page: Page) -> (Arc<Arrival>, OwnedFd) {
        let (peer, end) = peer_with_socket();
        let place = Place::reserve(queue, Process::of(&peer)).unwrap();
        let (_fd, window) = window(epoch).split();
        let arrival = Arc::new(Arrival::new(window, None, peer, page));
        place.fill(Arc::clone(&arrival)).unwrap();
        (arrival, end)
    }

    fn has_heard_goodbye(end: &OwnedFd) -> bool {
        let mut buffer: Box<PacketBuffer> = Box::new([0; MAX_MESSAGE_BYTES + 1]);
        let heard = socket::receive(end.as_fd(), &mut buffer);
        matches!(heard, Received::Packet(Header { kind: Kind::Bye, .. }, ..))
    }

    #[test]
    fn sender_whose_page_cannot_be_mapped_is_disconnected_and_the_next_accepted() {
        let queue = Arc::default();
        let (_, bad) = arrive(&queue, 1, Page::Failed);
        let (arrival, good) = arrive(&queue, 2, unmapped());
        drop(arrival);
        let parts = queue.try_accept().unwrap();
        assert_eq!(parts.epoch, 2);
        assert!(has_heard_goodbye(&bad) && !has_heard_goodbye(&good));
        let (arrival, bad) = arrive(&queue, 3, Page::Failed);
        arrival.map();
        assert!(has_heard_goodbye(&bad), "before anybody accepts it");
    }

    #[test]
    fn domains_thread_does_not_wait_for_a_receiver_that_maps_the_page() {
        let queue = Arc::default();
        let (arrival, _end) = arrive(&queue, 1, unmapped());
        let page = arrival.page.lock().unwrap();
        arrival.map();
        assert!(matches!(*page, Page::Passed(_)));
        drop(page);
        arrival.map();
        assert!(matches!(*arrival.page.lock().unwrap(), Page::Mapped(_)));
    }

    #[test]
    fn closed_queue_disconnects_who_waits_and_keeps_no_memory() {
        let queue = Arc::default();
        let (arrival, end) = arrive(&queue, 1, unmapped());
        drop(arrival);
        let spare = SpareWindow::keep(window(0));
        let memory: Weak<_> = spare.memory();
        queue.keep_spare(|| Ok(spare));
        assert!(memory.upgrade().is_some());
        queue.close();
        assert!(memory.upgrade().is_none() && has_heard_goodbye(&end));
        queue.keep_spare(|| panic!("nobody will come"));
        assert!(queue.try_accept().is_none() && Place::reserve(&queue, Process { pid: 1, uid: 1 }).is_err());
    }
}
