//! A link that beats by itself: the state machine, the memory of its lines, and the thread that looks.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use beeline_contract_link::{Heartbeat, LinkKind, StatePort};
use beeline_domain::Event;
use beeline_mmio::ThisProcess;

use crate::beater::{self, Beats};
use crate::state::{Acceptance, LinkState};
use crate::status::{Counters, Down, Session, Status};

/// One side of a link whose peer no kernel shows. A thread of the process beats for it and looks at the peer in each half period;
/// dropping it tells the peer that this side has left.
///
/// What the thread has seen is as old as its last look. A process that was stopped may believe for a moment that the link is up: what
/// it stores for a session carries [`Session::number`], so that the peer can tell.
#[derive(Debug)]
pub struct HeartbeatLink {
    shared: Arc<Shared>,
    process: ThisProcess,
}

#[derive(Debug)]
struct Shared {
    /// The number of the session; 0 while the link is down.
    session: AtomicU64,
    event: Event,
    opened_at: Instant,
    inner: Mutex<Inner>,
}

struct Inner {
    state: LinkState,
    port: Box<dyn StatePort + Send>,
    /// What [`HeartbeatLink::take_change`] has returned last.
    taken: Status,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Inner").field("status", &self.state.status()).finish_non_exhaustive()
    }
}

impl HeartbeatLink {
    /// Opens a side of a link of kind `K`. At most one in the whole world may have a side open; another one displaces it.
    ///
    /// # Errors
    /// The process is out of threads or descriptors, or the kernel has no random numbers.
    pub fn open<K: LinkKind>(
        mut port: impl StatePort + Send + 'static,
        acceptance: Acceptance,
    ) -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let state = LinkState::new::<K>(acceptance, u64::from_le_bytes(random), port.pushed().as_ref());
        let inner = Inner { taken: state.status(), state, port: Box::new(port) };
        let shared = Arc::new(Shared {
            session: AtomicU64::new(0),
            event: Event::new()?,
            opened_at: Instant::now(),
            inner: Mutex::new(inner),
        });
        shared.event.clear();
        shared.beat();
        beater::add(Arc::clone(&shared) as Arc<dyn Beats>, Heartbeat::of::<K>().period() / 2)?;
        Ok(HeartbeatLink { shared, process: ThisProcess::get() })
    }

    /// Whether the link was up at the last look: one relaxed load. Not for a forked child, which nobody tells of anything.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.shared.session.load(Ordering::Relaxed) != 0
    }

    /// Returns how the link stands.
    pub fn status(&self) -> Status {
        match self.inner() {
            Some(inner) => inner.state.status(),
            None => FORKED,
        }
    }

    /// Returns the status once after each change of it, and makes the descriptor unreadable. Changes that follow each other faster
    /// than they are taken are one; [`Counters`] has them all.
    pub fn take_change(&self) -> Option<Status> {
        let mut inner = self.inner()?;
        self.shared.event.clear();
        let now = inner.state.status();
        let before = std::mem::replace(&mut inner.taken, now);
        (before != now).then_some(now)
    }

    /// Returns the session that waits for [`HeartbeatLink::accept`]: with [`Acceptance::WhenTold`], once the peer beats. It is no
    /// change of the status, and makes the descriptor readable once.
    pub fn offered(&self) -> Option<Session> {
        self.inner()?.state.offered()
    }

    /// Takes the peer whose session is on offer; `false` if it has gone meanwhile. The link is up at a later look.
    pub fn accept(&self, session: Session) -> bool {
        self.inner().is_some_and(|mut inner| inner.state.accept(session))
    }

    /// Takes the link down until [`HeartbeatLink::enable`]: for an administrator, or for a test of what a program does then. When this
    /// returns the session is over here, and the peer is told: it finds the link down ([`Down::PeerDisabled`]) at its next look, and
    /// goes on to see that this side is there. Nothing in a forked child, or once the link is over.
    pub fn disable(&self) {
        self.order(LinkState::disable);
    }

    /// Lets the link come up again, in another session.
    pub fn enable(&self) {
        self.order(LinkState::enable);
    }

    /// Whether the link stays down until [`HeartbeatLink::enable`].
    pub fn is_disabled(&self) -> bool {
        self.inner().is_some_and(|inner| inner.state.is_disabled())
    }

    /// Whether the link stays down until it is enabled on the peer's side, as that has said within the bound.
    pub fn is_peer_disabled(&self) -> bool {
        self.inner().is_some_and(|inner| inner.state.is_peer_disabled())
    }

    fn order(&self, order: impl FnOnce(&mut LinkState)) {
        if self.process.is_this() {
            self.shared.turn(order);
        }
    }

    /// Whether the peer declares another period or bound, so that the link does not come up.
    pub fn is_mismatch(&self) -> bool {
        self.inner().is_some_and(|inner| inner.state.is_mismatch())
    }

    /// Returns what this side has counted.
    pub fn counters(&self) -> Counters {
        self.inner().map(|inner| inner.state.counters()).unwrap_or_default()
    }

    /// When the clock began that the times of [`Status`] are of.
    pub fn opened_at(&self) -> Instant {
        self.shared.opened_at
    }

    /// In a forked child nothing: a thread of the parent may have held the lock.
    fn inner(&self) -> Option<MutexGuard<'_, Inner>> {
        self.process.is_this().then(|| self.shared.lock())
    }
}

const FORKED: Status = Status::Down { reason: Down::Forked, since: Duration::ZERO };

/// Readable when [`HeartbeatLink::take_change`] or [`HeartbeatLink::offered`] may have something, until that is taken.
impl AsFd for HeartbeatLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.event.as_fd()
    }
}

impl Drop for HeartbeatLink {
    fn drop(&mut self) {
        let Some(mut inner) = self.inner() else { return };
        if inner.state.is_over() {
            return;
        }
        let now = self.shared.opened_at.elapsed();
        // Whoever has taken this side meanwhile must not leave by our word.
        let is_ours = inner.is_ours();
        if let Some(farewell) = inner.state.leave(now).filter(|_| is_ours) {
            inner.port.push(&farewell);
        }
    }
}

impl Inner {
    fn beat(&mut self, opened_at: Instant) {
        let (heard, pushed) = (self.port.look(), self.port.pushed());
        // The time of the look: what comes after it is later.
        let now = opened_at.elapsed();
        if let Some(line) = self.state.look(now, &heard, pushed.as_ref()) {
            self.port.push(&line);
        }
    }

    /// What a program is told of when it changes.
    fn standing(&self) -> (Status, Option<Session>) {
        (self.state.status(), self.state.offered())
    }

    fn is_ours(&mut self) -> bool {
        let pushed = self.port.pushed();
        pushed.is_none_or(|pushed| self.state.is_own(&pushed))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the state obey an order, looks and speaks; `false` once the link is over.
    fn turn(&self, order: impl FnOnce(&mut LinkState)) -> bool {
        let mut inner = self.lock();
        let before = inner.standing();
        order(&mut inner.state);
        // A port that panics ends its own link, and not the thread that beats for the others. The state is whole: it does not
        // change while the port is called.
        if catch_unwind(AssertUnwindSafe(|| inner.beat(self.opened_at))).is_err() {
            inner.state.fail(self.opened_at.elapsed());
        }
        let after = inner.standing();
        if before != after {
            let number = after.0.session().map_or(0, Session::number);
            // Relaxed: the number orders nothing, and what belongs to it comes from the peer.
            self.session.store(number, Ordering::Relaxed);
            self.event.signal();
        }
        !inner.state.is_over()
    }
}

impl Beats for Shared {
    fn beat(&self) -> bool {
        self.turn(|_| ())
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use beeline_mmio::Region;

    use super::*;
    use crate::{MappedFile, MappedState, Side};

    #[test]
    fn beat_allocates_nothing() {
        let region = Region::private(MappedState::BYTES);
        let links = [Side::First, Side::Second].map(|side| {
            HeartbeatLink::open::<MappedFile>(MappedState::new(&region, 0, side), Acceptance::AtOnce).unwrap()
        });
        let allocations = allocation_counter::measure(|| {
            for _ in 0..100 {
                assert!(links.iter().all(|link| link.shared.beat()));
            }
        });
        assert!(links.iter().all(HeartbeatLink::is_up), "with a change of status among them");
        assert_eq!(allocations.count_total, 0);
    }
}
