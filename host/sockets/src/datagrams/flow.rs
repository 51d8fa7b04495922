//! What one socket of UDP has with one other address: how often, and how far two processes are with it.

use std::net::SocketAddr;
use std::ops::Deref;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use beeline_socket_rules::{Row, Why};

use crate::endpoint::AgreedSlot;
use crate::forks::OfProcess;
use crate::lock::locked;

/// So many datagrams to or from an address, within this time, are worth a window of some ten KiB each way.
const WORTH_DATAGRAMS: u32 = 64;
const WORTH_WITHIN: Duration = Duration::from_millis(100);
/// So many of them have to have come by the kernel, so that it is known that it gives them to this socket.
const HEARD_BEFORE_OFFER: u64 = 8;

/// The kernel carries it, and it is counted.
const COUNTED: u8 = 0;
/// The process at the other end is looked for.
const MEETING: u8 = 1;
const AGREED: u8 = 2;
/// The other socket has ended. One that has its address next may be worth another flow.
const OVER: u8 = 3;
/// The kernel's for ever.
const FORBIDDEN: u8 = 4;

#[derive(Debug)]
pub(crate) struct Flow {
    /// As the program's calls have it.
    pub(crate) remote: SocketAddr,
    number: RawFd,
    stage: AtomicU8,
    cookie: AtomicU64,
    worth: Mutex<Worth>,
    /// Datagrams that came from there, by either path.
    heard: AtomicU64,
    live: Mutex<Option<Arc<Live>>>,
    /// Another one for whoever looks for the other end by its cookie, or has its place.
    in_use: Arc<()>,
    row: Mutex<Option<Arc<Row>>>,
    /// Told when the processes have agreed: the socket's.
    has_agreed: &'static AtomicBool,
}

/// Counts datagrams until they are worth a window.
#[derive(Debug)]
pub(crate) struct Worth {
    since: Instant,
    datagrams: u32,
}

impl Worth {
    pub(crate) fn new() -> Self {
        Worth { since: Instant::now(), datagrams: 0 }
    }

    /// Counts one. Whether there were enough in a short time.
    pub(crate) fn count(&mut self) -> bool {
        self.datagrams += 1;
        // The clock is read where it can matter.
        if self.datagrams < WORTH_DATAGRAMS {
            return false;
        }
        let now = Instant::now();
        let is_worth_it = now - self.since <= WORTH_WITHIN;
        *self = Worth { since: now, datagrams: 0 };
        is_worth_it
    }
}

/// A place in the memory of two processes. The place is free for others once both have dropped all of these.
#[derive(Debug)]
pub(crate) struct Live {
    agreed: AgreedSlot,
    cookie: u64,
    // Let go behind the drop, which says that the place is free.
    _in_use: Arc<()>,
}

/// A flow whose other end is looked for. As long as it is there, nobody else is met by the flow's cookie.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    flow: Arc<Flow>,
    _in_use: Arc<()>,
}

impl Deref for Asking {
    type Target = Flow;

    fn deref(&self) -> &Flow {
        &self.flow
    }
}

/// Cookies of flows whose places are used no more, for the thread that says so.
static RELEASED: OfProcess<Mutex<Vec<u64>>> = OfProcess::new();

/// Takes what has been released since the last call.
pub(crate) fn released() -> Vec<u64> {
    RELEASED
        .get_or_init(Mutex::default)
        .map(|released| std::mem::take(&mut *locked(released)))
        .unwrap_or_default()
}

impl Live {
    pub(crate) fn slot(&self) -> &crate::memory::Slot {
        &self.agreed.slot
    }

    /// Says that nothing is stored in a rest that is asked for, where nothing was: whoever does sees the receiver's word first.
    pub(crate) fn answer_rest(&self) {
        self.slot().begin_rest(self.slot().rest_asked_for());
    }

    /// Whether the process at the other end has ended.
    pub(crate) fn has_departed(&self) -> bool {
        self.agreed.has_gone()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(released) = RELEASED.get_or_init(Mutex::default) {
            locked(released).push(self.cookie);
        }
    }
}

impl Flow {
    pub(crate) fn new(remote: SocketAddr, number: RawFd, has_agreed: &'static AtomicBool) -> Self {
        Flow {
            remote,
            number,
            stage: AtomicU8::new(COUNTED),
            cookie: AtomicU64::new(0),
            worth: Mutex::new(Worth::new()),
            heard: AtomicU64::new(0),
            live: Mutex::new(None),
            in_use: Arc::new(()),
            row: Mutex::new(None),
            has_agreed,
        }
    }

    /// Counts a datagram that the kernel carries. Whether the flow has become worth a window with it: once.
    pub(crate) fn count(self: &Arc<Self>) -> Option<Asking> {
        let is_counted = self.stage.load(Ordering::Relaxed) == COUNTED;
        if is_counted && locked(&self.worth).count() { self.begin() } else { None }
    }

    /// Has the process at the other end looked for: once.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<Asking> {
        // Before the step: who sees that it has ended behind that sees this, too.
        let asking = Asking { flow: Arc::clone(self), _in_use: Arc::clone(&self.in_use) };
        self.come_to(COUNTED, MEETING).then_some(asking)
    }

    fn come_to(&self, from: u8, to: u8) -> bool {
        self.stage.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// A datagram came from there.
    #[inline]
    pub(crate) fn hear(&self) {
        let heard = self.heard.fetch_add(1, Ordering::Relaxed) + 1;
        if heard == HEARD_BEFORE_OFFER && self.stage.load(Ordering::Relaxed) == AGREED {
            self.has_agreed.store(true, Ordering::Release);
        }
    }

    pub(crate) fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// Whether it is known that the kernel gives this socket what comes from there.
    pub(crate) fn is_heard_enough(&self) -> bool {
        self.heard() >= HEARD_BEFORE_OFFER
    }

    /// The process at the other end is looked for, by this cookie.
    pub(crate) fn look_for(&self, cookie: u64) {
        self.cookie.store(cookie, Ordering::Relaxed);
    }

    /// Whether the process at the other end is looked for still.
    pub(crate) fn is_wanted(&self, cookie: u64) -> bool {
        self.stage.load(Ordering::Acquire) == MEETING && self.cookie.load(Ordering::Relaxed) == cookie
    }

    pub(crate) fn number(&self) -> RawFd {
        self.number
    }

    /// Both processes know it.
    pub(crate) fn agree(&self, agreed: AgreedSlot) {
        let (cookie, in_use) = (self.cookie.load(Ordering::Relaxed), Arc::clone(&self.in_use));
        *locked(&self.live) = Some(Arc::new(Live { agreed, cookie, _in_use: in_use }));
        if self.come_to(MEETING, AGREED) {
            locked(&self.row).iter().for_each(|row| row.set_why(None));
            self.has_agreed.store(true, Ordering::Release);
        } else {
            // It has ended meanwhile.
            self.leave();
        }
    }

    /// What both processes have agreed on, once the other side's words are in order.
    pub(crate) fn live(&self) -> Option<Arc<Live>> {
        if !self.has_agreed() {
            return None;
        }
        let live = locked(&self.live).clone()?;
        live.agreed.slot.is_open(live.agreed.other_cookie).then_some(live)
    }

    /// Whether the processes have agreed, though the other side's words may not be in order yet.
    pub(crate) fn has_agreed(&self) -> bool {
        self.stage.load(Ordering::Acquire) == AGREED
    }

    /// The kernel's for ever.
    pub(crate) fn forbid(&self, why: Why) {
        tracing::debug!(number = self.number, remote = %self.remote, ?why, "datagrams go by the kernel");
        locked(&self.row).iter().for_each(|row| row.set_why(Some(why)));
        self.leave();
        self.stage.store(FORBIDDEN, Ordering::Release);
    }

    /// Whether it has ended, and its cookie and its place are nobody's any more, so that another one of the same two sockets' addresses may begin.
    pub(crate) fn is_spent(&self) -> bool {
        self.stage.load(Ordering::Acquire) == OVER && !self.is_in_use()
    }

    /// Whether somebody looks for the other end by its cookie, or has its place. Asked of one that has ended, or is the kernel's: of another one it says nothing for long.
    pub(crate) fn is_in_use(&self) -> bool {
        let is_in_use = Arc::strong_count(&self.in_use) > 1;
        // Pairs with the drop of the last one: what was released before is seen.
        fence(Ordering::Acquire);
        is_in_use
    }

    /// Ends it, if nothing is lost with it but how often it was heard. Whether it has ended, and another one may begin.
    pub(crate) fn may_be_forgotten(&self) -> bool {
        self.come_to(COUNTED, OVER);
        self.is_spent()
    }

    /// Ends it: the other side is told, and its place is free once nobody here reads what is left in the window.
    pub(crate) fn leave(&self) {
        // Behind the step of who has begun to look for the other end, if somebody has.
        self.stage.swap(OVER, Ordering::AcqRel);
        if let Some(live) = locked(&self.live).take() {
            live.slot().end_datagrams();
        }
    }

    pub(crate) fn list(&self, row: Row) {
        row.set_why(Some(Why::PeerUnknown));
        *locked(&self.row) = Some(Arc::new(row));
    }

    pub(crate) fn row(&self) -> Option<Arc<Row>> {
        locked(&self.row).clone()
    }

    pub(crate) fn set_peer_pid(&self, pid: u32) {
        locked(&self.row).iter().for_each(|row| row.set_peer_pid(pid));
    }
}
