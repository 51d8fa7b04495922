//! A socket of UDP that was worth it: whom it sends to and hears from, and which windows it reads and writes.
//!
//! As an endpoint of a connection it is never freed, and used again for another socket. Nobody sleeps with a lock.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use beeline_domain::ConnectionEnds;
use beeline_socket_rules::Why;
use rustix::io::Errno;

use super::elsewhere::Elsewhere;
use super::flow::Flow;
use super::group::Group;
use super::incoming::Incoming;
use super::memberships::Memberships;
use super::outgoing::Outgoing;
use super::rest::Rest;
use crate::forks;
use crate::lock::{Held, is_any_held_here, locked, locked_by_turns};
use crate::sleepers::OwnBell;
use crate::waiters::{Kept, Waiters};

/// Other addresses of which a socket counts what it has with them. What it has with others is the kernel's.
pub(super) const MOST_FLOWS: usize = 4096;

/// A socket of UDP.
pub struct DatagramSocket {
    pub(crate) index: u32,
    pub(crate) number: AtomicI32,
    /// Of IPv4 addresses it says then that they are some of IPv6.
    is_v6: AtomicBool,
    /// Other numbers of this process with the same socket.
    pub(crate) copies: AtomicU32,
    cookie: AtomicU64,
    /// The count of forks at which it was made: a child's is larger.
    made_in: AtomicU32,
    pub(crate) is_nonblocking: AtomicBool,
    /// Whether it is the kernel's for ever, as soon as what is in its windows is received.
    is_forbidden: AtomicBool,
    why: AtomicU8,
    /// Whether datagrams may come by windows.
    pub(crate) may_have_news: AtomicBool,
    /// The cookie of the socket that the program's set has room for, so that its windows may begin.
    pub(crate) admitted: AtomicU64,
    /// Whether a flow may be offered a window that was not.
    pub(crate) has_agreed: AtomicBool,
    /// The copy by which receives go on that waited when the number was closed.
    pub(crate) kept: Mutex<Option<Kept>>,
    pub(crate) is_kept: AtomicBool,
    /// Threads that want a lock that somebody has who spins.
    pub(crate) wanted: AtomicU32,
    pub(super) flows: Mutex<HashMap<SocketAddr, Arc<Flow>>>,
    /// Whether it has windows of groups alone.
    pub(super) is_for_groups: AtomicBool,
    pub(super) memberships: Mutex<Memberships>,
    reader: Mutex<Reader>,
    writer: Mutex<Writer>,
    /// Held while the list of bells is changed.
    pub(crate) bells: Mutex<[Option<Arc<OwnBell>>; 4]>,
    counts: [AtomicU64; 5],
}

impl std::fmt::Debug for DatagramSocket {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("DatagramSocket").field("number", &self.number).finish_non_exhaustive()
    }
}

#[derive(Default)]
pub(crate) struct Reader {
    pub(crate) incoming: Vec<Incoming>,
    /// Whose window is looked at first: behind the last that had something.
    pub(crate) next: usize,
    /// Datagrams taken from windows since the kernel was looked at, and when that was.
    pub(crate) taken: u32,
    pub(crate) kernel_looked_at: Option<Instant>,
    /// Datagrams that the kernel gave while one of a window waited for its queue to be empty.
    pub(crate) before_window: u32,
    pub(crate) rest: Rest,
    /// Threads that wait for a datagram.
    pub(crate) inside: Waiters,
}

#[derive(Default)]
pub(crate) struct Writer {
    /// To whom a call without an address sends.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) outgoing: Vec<Outgoing>,
    /// The place of the last in use.
    pub(crate) last: usize,
    /// What it sends to groups that are of this domain alone.
    pub(crate) groups: Vec<Group>,
    /// Where pieces of a datagram are put together.
    pub(crate) whole: Vec<u8>,
    pub(crate) elsewhere: Elsewhere,
}

impl Writer {
    fn is_any_up(&self) -> bool {
        self.outgoing.iter().any(Outgoing::is_up) || self.groups.iter().any(Group::is_up)
    }

    fn are_all_up(&self) -> bool {
        self.outgoing.iter().all(Outgoing::is_up) && self.groups.iter().all(Group::is_up)
    }
}

/// What went over a socket of UDP since it was worth it, in datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramTraffic {
    pub sent: u64,
    pub sent_by_window: u64,
    pub received: u64,
    pub received_by_window: u64,
    /// Those for which a window had no room.
    pub dropped: u64,
}

#[derive(Clone, Copy)]
pub(crate) enum Counted {
    Sent,
    SentByWindow,
    Received,
    ReceivedByWindow,
    Dropped,
}

/// What is known of a socket when it becomes one of these.
pub(crate) struct Known {
    pub(crate) number: RawFd,
    pub(crate) cookie: u64,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) is_nonblocking: bool,
    pub(crate) is_v6: bool,
}

impl DatagramSocket {
    pub(crate) fn new(index: u32) -> Self {
        DatagramSocket {
            index,
            number: AtomicI32::new(-1),
            is_v6: AtomicBool::new(false),
            copies: AtomicU32::new(0),
            cookie: AtomicU64::new(0),
            made_in: AtomicU32::new(0),
            is_nonblocking: AtomicBool::new(false),
            is_forbidden: AtomicBool::new(false),
            why: AtomicU8::new(0),
            may_have_news: AtomicBool::new(false),
            admitted: AtomicU64::new(0),
            has_agreed: AtomicBool::new(false),
            kept: Mutex::default(),
            is_kept: AtomicBool::new(false),
            wanted: AtomicU32::new(0),
            flows: Mutex::default(),
            is_for_groups: AtomicBool::new(false),
            memberships: Mutex::default(),
            reader: Mutex::default(),
            writer: Mutex::default(),
            bells: Mutex::default(),
            counts: Default::default(),
        }
    }

    /// Takes it for a socket.
    pub(crate) fn begin(&self, known: &Known) {
        *self.lock_reader() = Reader::default();
        *self.lock_writer() = Writer { peer: known.peer, ..Writer::default() };
        *locked(&self.bells) = [const { None }; 4];
        locked(&self.flows).clear();
        *locked(&self.memberships) = Memberships::default();
        self.is_for_groups.store(false, Ordering::Relaxed);
        self.number.store(known.number, Ordering::Relaxed);
        self.copies.store(0, Ordering::Relaxed);
        self.is_v6.store(known.is_v6, Ordering::Relaxed);
        self.cookie.store(known.cookie, Ordering::Relaxed);
        self.made_in.store(forks::forks(), Ordering::Relaxed);
        self.is_nonblocking.store(known.is_nonblocking, Ordering::Relaxed);
        self.is_forbidden.store(false, Ordering::Relaxed);
        self.why.store(0, Ordering::Relaxed);
        self.may_have_news.store(false, Ordering::Relaxed);
        self.admitted.store(0, Ordering::Relaxed);
        self.has_agreed.store(false, Ordering::Relaxed);
        self.counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    pub(crate) fn cookie(&self) -> u64 {
        self.cookie.load(Ordering::Relaxed)
    }

    /// Whether this process made it, and not the one that it was forked from.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        self.made_in.load(Ordering::Relaxed) == forks::forks()
    }

    pub(crate) fn is_forbidden(&self) -> bool {
        self.is_forbidden.load(Ordering::Acquire)
    }

    /// Why it is the kernel's, if it is.
    pub fn why(&self) -> Option<Why> {
        Why::of_code(u64::from(self.why.load(Ordering::Relaxed)))
    }

    pub(crate) fn lock_reader(&self) -> Held<'_, Reader> {
        locked_by_turns(&self.reader, &self.wanted)
    }

    pub(crate) fn lock_writer(&self) -> Held<'_, Writer> {
        locked(&self.writer)
    }

    /// The flow with this address; `None` where there are too many, or where the kernel alone knows who gets what is sent there.
    pub(crate) fn flow(&'static self, remote: SocketAddr) -> Option<Arc<Flow>> {
        if remote.port() == 0
            || remote.ip().is_multicast()
            || remote.ip().is_unspecified()
            || has_scope(&remote)
            || self.is_for_groups()
        {
            return None;
        }
        if remote.is_ipv6() != self.is_v6.load(Ordering::Relaxed) {
            return None;
        }
        let mut flows = locked(&self.flows);
        if let Some(flow) = flows.get(&remote)
            && !flow.is_spent()
        {
            return Some(Arc::clone(flow));
        }
        if flows.len() >= MOST_FLOWS {
            flows.retain(|_, flow| !flow.is_spent());
        }
        if flows.len() >= MOST_FLOWS || self.is_forbidden() {
            return None;
        }
        let number = self.number.load(Ordering::Relaxed);
        let flow = Arc::new(Flow::new(remote, number, &self.has_agreed));
        flows.insert(remote, Arc::clone(&flow));
        Some(flow)
    }

    pub(crate) fn flows(&self) -> Vec<Arc<Flow>> {
        let mut flows: Vec<_> = locked(&self.flows).values().cloned().collect();
        flows.extend(locked(&self.memberships).flows().cloned());
        flows
    }

    /// The kernel's for ever: senders are told, and what is in windows is received still.
    pub(crate) fn forbid(&self, why: Why) {
        if is_any_held_here() {
            // A handler, which cannot wait for what it has interrupted.
            self.is_forbidden.store(true, Ordering::Release);
            return;
        }
        if self.why.compare_exchange(0, why.code(), Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            tracing::debug!(
                number = self.number.load(Ordering::Relaxed),
                ?why,
                "a socket of datagrams is the kernel's"
            );
        }
        self.is_forbidden.store(true, Ordering::Release);
        {
            let mut writer = self.lock_writer();
            writer.outgoing.clear();
            writer.groups.drain(..).for_each(|mut group| group.forbid(why));
        }
        for incoming in &mut self.lock_reader().incoming {
            incoming.end();
        }
        self.flows().iter().for_each(|flow| flow.forbid(why));
    }

    /// Lets it go when its socket is closed. Returns the bytes of its windows.
    pub(crate) fn end(&self) -> usize {
        self.is_forbidden.store(true, Ordering::Release);
        self.may_have_news.store(false, Ordering::Relaxed);
        let mut reader = self.lock_reader();
        for bell in locked(&self.bells).iter_mut().filter_map(Option::take) {
            reader.incoming.iter().for_each(|incoming| bell.leave(incoming.live().slot().memory()));
        }
        let window_bytes = reader.incoming.iter().map(|incoming| incoming.window_bytes).sum();
        *reader = Reader::default();
        *self.lock_writer() = Writer::default();
        let flows = std::mem::take(&mut *locked(&self.flows));
        flows.values().for_each(|flow| flow.leave());
        std::mem::take(&mut *locked(&self.memberships)).flows().for_each(|flow| flow.leave());
        window_bytes
    }

    /// The addresses of this socket and another one; `None` where this one's is not known, or the other is not of this host.
    pub(crate) fn ends(&self, socket: BorrowedFd<'_>, remote: SocketAddr) -> Option<ConnectionEnds> {
        let namespace = beeline_tcp::netns_cookie(socket).ok()?;
        let mut local = SocketAddr::try_from(rustix::net::getsockname(socket).ok()?).ok()?;
        let other = remote.ip().to_canonical();
        if !beeline_tcp::is_of_this_host(other) {
            return None;
        }
        if local.ip().is_unspecified() {
            local.set_ip(beeline_tcp::source_towards(other).ok()?);
        }
        (local.port() != 0).then(|| ConnectionEnds::of_datagrams(namespace, local, remote))
    }

    #[inline]
    pub(crate) fn count(&self, what: Counted) {
        self.counts[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// What went over it since it was worth it.
    pub fn traffic(&self) -> DatagramTraffic {
        let count = |what: Counted| self.counts[what as usize].load(Ordering::Relaxed);
        DatagramTraffic {
            sent: count(Counted::Sent),
            sent_by_window: count(Counted::SentByWindow),
            received: count(Counted::Received),
            received_by_window: count(Counted::ReceivedByWindow),
            dropped: count(Counted::Dropped),
        }
    }

    /// Whether a window is used, of whomever.
    pub fn has_windows(&self) -> bool {
        self.may_have_news.load(Ordering::Relaxed) || self.lock_writer().is_any_up()
    }

    /// Whether windows carry what it sends, if it sends, and what it receives, if it receives.
    pub fn is_carried(&self) -> bool {
        if is_any_held_here() {
            return false;
        }
        let traffic = self.traffic();
        let sends = self.lock_writer().are_all_up();
        let receives = traffic.received == 0 || !self.lock_reader().incoming.is_empty();
        sends && receives && traffic.sent_by_window + traffic.received_by_window > 0
    }
}

/// Whether an address means something with its device alone.
fn has_scope(address: &SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(address) if address.scope_id() != 0 || address.flowinfo() != 0)
}

/// The address that a socket is connected to.
pub(crate) fn peer_of(socket: BorrowedFd<'_>) -> Option<SocketAddr> {
    let found: Result<_, Errno> = rustix::net::getpeername(socket);
    SocketAddr::try_from(found.ok()??).ok()
}
