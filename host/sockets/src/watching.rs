//! Endpoints and their bells as sets and polls see them, and the question to a connection's set that comes before its window begins.

use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use beeline_socket_rules::Why;

use crate::carried::Carried;
use crate::endpoint::{Endpoint, Stage};
use crate::endpoints::endpoint;
use crate::numbers::{self, Pass, What};
use crate::process::Process;
use crate::quiet::Quiet;
use crate::readiness::{Begin, Connections, Found, Glance, Refusal, Sleeper, Watched};
use crate::sleepers::OwnBell;
use crate::sockets::Sockets;

impl Endpoint {
    /// Whether its set has room for its window, or no set watches it.
    pub(crate) fn is_admitted(&self) -> bool {
        // The window begins behind this look and the next one, at calls in the kernel: pairs with `find`.
        self.admitted.load(Ordering::SeqCst) == self.cookie.load(Ordering::Relaxed)
            && self.stage() == Stage::Agreed
    }

    /// Asks the set that watches it, unless it was asked, once the processes have agreed. No lock of the endpoint is held: the set looks at the window under its own.
    #[inline]
    pub(crate) fn ask_set(&'static self, process: &Process) {
        if self.stage() == Stage::Agreed && !self.is_admitted() {
            self.ask_set_now(process);
        }
    }

    #[cold]
    fn ask_set_now(&'static self, process: &Process) {
        let Some((_, agreed)) = self.agreed() else { return };
        // Bells are told by it.
        self.lock_reader().slot.get_or_insert(agreed);
        // First: a registration that is made meanwhile looks at it.
        self.admitted.store(self.cookie.load(Ordering::Relaxed), Ordering::SeqCst);
        match process.sets().begin(self.number.load(Ordering::Relaxed), Carried::Connection(self)) {
            Begin::Yes => {}
            Begin::NotYet => self.admitted.store(0, Ordering::SeqCst),
            Begin::Never(refusal) => {
                self.admitted.store(0, Ordering::SeqCst);
                self.forbid(refusal.into());
            }
        }
    }
}

impl From<Refusal> for Why {
    fn from(refusal: Refusal) -> Why {
        match refusal {
            Refusal::OneShot => Why::SetOneShot,
            Refusal::Exclusive => Why::SetExclusive,
            Refusal::ManySets | Refusal::SharedSet => Why::SetShared,
            Refusal::NoBell => Why::Descriptors,
        }
    }
}

impl Watched for Carried {
    type Sleeper = Arc<OwnBell>;
    type Glance = Arc<Quiet>;

    fn id(self) -> u64 {
        match self {
            Carried::Connection(endpoint) => endpoint.cookie.load(Ordering::Relaxed),
            Carried::Datagrams(socket) => socket.cookie(),
        }
    }

    fn glance(self) -> Option<Arc<Quiet>> {
        match self {
            Carried::Connection(endpoint) => endpoint.quiet.load_full(),
            // Each of its senders has a window.
            Carried::Datagrams(_) => None,
        }
    }

    fn has_news(self) -> bool {
        match self {
            Carried::Connection(endpoint) => endpoint.has_news(),
            Carried::Datagrams(socket) => socket.has_news(),
        }
    }

    fn taken_bytes(self) -> u64 {
        match self {
            Carried::Connection(endpoint) => endpoint.taken_bytes(),
            Carried::Datagrams(socket) => socket.traffic().received,
        }
    }

    fn arrivals(self) -> u64 {
        match self {
            Carried::Connection(endpoint) if endpoint.is_read_here() => 0,
            Carried::Connection(endpoint) => {
                endpoint.lock_reader().slot.as_ref().map_or(0, |agreed| agreed.slot.arrivals().count())
            }
            Carried::Datagrams(socket) => socket.arrivals(),
        }
    }

    fn may_have_news(self) -> bool {
        match self {
            Carried::Connection(endpoint) => {
                endpoint.may_have_news.load(Ordering::Acquire) || endpoint.is_admitted()
            }
            Carried::Datagrams(socket) => {
                socket.may_have_news.load(Ordering::Acquire) || socket.is_admitted()
            }
        }
    }

    fn add_sleeper(self, sleeper: &Arc<OwnBell>) -> bool {
        match self {
            Carried::Connection(endpoint) => endpoint.add_bell(sleeper),
            Carried::Datagrams(socket) => socket.add_bell(sleeper),
        }
    }

    fn remove_sleeper(self, sleeper: &Arc<OwnBell>) {
        match self {
            Carried::Connection(endpoint) => endpoint.remove_bell(sleeper),
            Carried::Datagrams(socket) => socket.remove_bell(sleeper),
        }
    }
}

impl Glance for Arc<Quiet> {
    #[inline]
    fn is_empty_still(&self) -> bool {
        self.is_so()
    }
}

impl Sleeper for Arc<OwnBell> {
    fn bell(&self) -> BorrowedFd<'_> {
        OwnBell::bell(self)
    }

    fn announce(&self) {
        OwnBell::announce(self);
    }

    fn withdraw(&self) {
        OwnBell::withdraw(self);
    }

    fn is_whole(&self) -> bool {
        OwnBell::is_whole(self)
    }

    fn clear(&self) -> bool {
        OwnBell::clear(self)
    }

    fn clear_at_next_sleep(&self) {
        OwnBell::clear_at_next_sleep(self);
    }

    fn ring(&self) {
        OwnBell::ring(self);
    }
}

impl Connections for Sockets {
    type Watched = Carried;
    type Pass = Pass;

    fn are_any(&self) -> bool {
        numbers::are_any()
    }

    fn find(&self, number: RawFd) -> Found<Carried, Pass> {
        let Some(entry) = numbers::number(number) else { return Found::Unknown };
        loop {
            let (what, claim) = entry.claim();
            let known = match what {
                What::Unknown | What::Left => return Found::Unknown,
                What::OfParent => {
                    claim.take_over();
                    continue;
                }
                What::Listener => return Found::Listener,
                What::Candidate(_) | What::DatagramCandidate => None,
                // A parent's has locks that a thread of the parent may have had.
                What::Endpoint(index) => {
                    let own = Some(endpoint(index)).filter(|endpoint| self.is_own(endpoint));
                    own.map(Carried::Connection)
                }
                What::Datagrams(_) => self.datagram_socket(number).map(Carried::Datagrams),
            };
            if let Some(carried) = known.filter(|carried| carried.may_have_news()) {
                return Found::Watched(carried);
            }
            // Counted before the second look: pairs with `is_admitted` of whoever begins its window, who looks at the count behind it.
            let Some(pass) = claim.read() else { continue };
            if known.is_none_or(|carried| !carried.may_have_news()) {
                return Found::Kernel(pass);
            }
        }
    }

    fn is_writable(&self, number: RawFd) -> bool {
        self.endpoint(number).is_some_and(|endpoint| endpoint.sends_by_window.load(Ordering::Relaxed))
    }

    fn forbid(&self, number: RawFd) {
        if let Some(endpoint) = self.endpoint(number) {
            self.forbid_endpoint(endpoint, Why::Poll);
        } else if let Some(socket) = self.datagram_socket(number) {
            socket.forbid(Why::Poll);
        }
    }
}
