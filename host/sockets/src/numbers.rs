//! Numbers of descriptors: which are connections that may leave the kernel, and how much went over each so far.
//!
//! A call on any descriptor comes here first, so that a number that is none of ours costs one load. The table has no lock. What a
//! number is may change while a thread is inside a call on it: whoever has taken the lock of an endpoint looks again.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};

use beeline_tcp::Side;

use crate::forks::{self, forks};

/// As many as a process can have (`fs.nr_open`) by default. Those above are the kernel's.
const MOST: usize = 1 << 20;
/// What a number is that is no connection of ours.
const UNKNOWN: u32 = 0;
const CONNECTED: u32 = 1;
const ACCEPTED: u32 = 2;
const LISTENER: u32 = 3;
/// A socket of UDP, of which nothing is known yet.
const UDP: u32 = 4;
const LEFT: u32 = 5;
const SIDE: u32 = 0xff;
/// Behind the side of a candidate: how many forks led to the process whose it is. A child's are none of its parent's, which may use them too.
const FORKS_SHIFT: u32 = 8;
const FORKS: u32 = 0xffff;
/// Beside the side of a candidate that the process accepted which this one was forked from.
const OF_PARENT: u32 = 1 << 24;
/// Beside the side of a candidate that is a stream of `AF_UNIX`.
const OF_UNIX: u32 = 1 << 25;
/// Beside the index of an endpoint.
const ENDPOINT: u32 = 1 << 31;
/// Beside the index of a socket of UDP, and the bit above.
const DATAGRAMS: u32 = 1 << 30;

static ARE_ANY: AtomicBool = AtomicBool::new(false);
static NUMBERS: [Number; MOST] = [const { Number::new() }; MOST];

/// What is known of one number.
#[derive(Debug)]
pub(crate) struct Number {
    what: AtomicU32,
    /// Calls that are inside the kernel and take bytes out of the socket, or give it some.
    reads: AtomicU16,
    writes: AtomicU16,
    messages: AtomicU32,
    /// Bytes that calls of the kernel's have given the socket and taken out of it, modulo 2^32: a number that is too large is one that no other end has counted, too.
    sent: AtomicU32,
    received: AtomicU32,
    /// Children that the process had made when the connection began.
    children: AtomicU32,
}

/// What a number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Unknown,
    /// A connection that is the kernel's so far.
    Candidate(Side),
    /// A candidate of the process that this one was forked from, which accepted it.
    OfParent,
    /// A connection that a child has, and that this process uses by the kernel, if at all.
    Left,
    /// The endpoint with this index.
    Endpoint(u32),
    /// It has accepted a connection. It stays the kernel's.
    Listener,
    /// A socket of UDP that is the kernel's so far.
    DatagramCandidate,
    /// The socket of UDP with this index.
    Datagrams(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Read,
    Write,
}

/// A call into the kernel that is under way; it is dropped behind the call.
#[derive(Debug)]
#[must_use]
pub struct Pass(Option<(&'static Number, Way)>);

/// The number as it was when a call came in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub number: &'static Number,
    what: u32,
}

impl What {
    fn of(word: u32) -> What {
        let of_fork = word >> FORKS_SHIFT & FORKS;
        let is_own = of_fork == forks() & FORKS;
        match word & SIDE {
            _ if word & (ENDPOINT | DATAGRAMS) == ENDPOINT | DATAGRAMS => {
                What::Datagrams(word & !(ENDPOINT | DATAGRAMS))
            }
            _ if word & ENDPOINT != 0 => What::Endpoint(word & !ENDPOINT),
            UDP if is_own => What::DatagramCandidate,
            CONNECTED if is_own => What::Candidate(Side::Connected),
            ACCEPTED if is_own => What::Candidate(Side::Accepted),
            LISTENER => What::Listener,
            ACCEPTED if of_fork == forks().wrapping_sub(1) & FORKS => What::OfParent,
            LEFT if is_own => What::Left,
            _ => What::Unknown,
        }
    }

    fn word(self) -> u32 {
        match self {
            What::Unknown | What::OfParent => UNKNOWN,
            What::Left => LEFT | (forks() & FORKS) << FORKS_SHIFT,
            What::Candidate(Side::Connected) => CONNECTED | (forks() & FORKS) << FORKS_SHIFT,
            What::Candidate(Side::Accepted) => ACCEPTED | (forks() & FORKS) << FORKS_SHIFT,
            What::Endpoint(index) => ENDPOINT | index,
            What::Listener => LISTENER,
            What::DatagramCandidate => UDP | (forks() & FORKS) << FORKS_SHIFT,
            What::Datagrams(index) => ENDPOINT | DATAGRAMS | index,
        }
    }
}

/// Whether any number was ever a connection. One load.
#[inline]
pub(crate) fn are_any() -> bool {
    ARE_ANY.load(Ordering::Relaxed)
}

/// The entry of a number; `None` above the table.
#[inline]
pub(crate) fn number(number: RawFd) -> Option<&'static Number> {
    NUMBERS.get(usize::try_from(number).ok()?)
}

impl Number {
    const fn new() -> Self {
        Number {
            what: AtomicU32::new(UNKNOWN),
            reads: AtomicU16::new(0),
            writes: AtomicU16::new(0),
            messages: AtomicU32::new(0),
            sent: AtomicU32::new(0),
            received: AtomicU32::new(0),
            children: AtomicU32::new(0),
        }
    }

    #[inline]
    pub(crate) fn is_known(&self) -> bool {
        // Relaxed: who closes a number and who uses it at the same time do not say which of them came first.
        self.what.load(Ordering::Relaxed) != UNKNOWN
    }

    #[inline]
    pub(crate) fn claim(&'static self) -> (What, Claim) {
        // Acquire: pairs with the store of whoever made an endpoint of it.
        let what = self.what.load(Ordering::Acquire);
        (What::of(what), Claim { number: self, what })
    }

    /// Whether it is a socket of UDP, of this process or its parent's. One load.
    #[inline]
    pub(crate) fn is_of_datagrams(&self) -> bool {
        let what = self.what.load(Ordering::Relaxed);
        what & ENDPOINT == 0 && what & SIDE == UDP || what & (ENDPOINT | DATAGRAMS) == ENDPOINT | DATAGRAMS
    }

    /// Begins a connection, or a socket of UDP, of which nothing is known yet.
    pub(crate) fn begin(&self, candidate: What) {
        self.begin_word(candidate.word());
    }

    /// As [`Self::begin`], of a stream of `AF_UNIX`.
    pub(crate) fn begin_unix(&self, side: Side) {
        self.begin_word(What::Candidate(side).word() | OF_UNIX);
    }

    fn begin_word(&self, word: u32) {
        if !are_any() {
            ARE_ANY.store(true, Ordering::Relaxed);
        }
        self.messages.store(0, Ordering::Relaxed);
        self.sent.store(0, Ordering::Relaxed);
        self.received.store(0, Ordering::Relaxed);
        self.children.store(forks::children(), Ordering::Relaxed);
        self.what.store(word, Ordering::Release);
    }

    /// It has accepted a connection, unless it has become something else since.
    pub(crate) fn listens(&self) {
        if !self.is_known() {
            let listener = What::Listener.word();
            let _ = self.what.compare_exchange(UNKNOWN, listener, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Says what it is from now on. Whoever looks for calls in the kernel afterwards finds all that began before.
    pub(crate) fn become_(&self, what: What) {
        self.what.store(what.word(), Ordering::SeqCst);
    }

    /// Makes it unknown; what it was.
    pub(crate) fn forget(&self) -> What {
        What::of(self.what.swap(UNKNOWN, Ordering::SeqCst))
    }

    /// Whether this process has made one child since the connection began.
    pub(crate) fn has_one_child(&self) -> bool {
        forks::children() == self.children.load(Ordering::Relaxed).wrapping_add(1)
    }

    /// Messages and bytes that went over it since it began.
    pub(crate) fn traffic(&self) -> (u32, u64) {
        let bytes = u64::from(self.sent_bytes()) + u64::from(self.received_bytes());
        (self.messages.load(Ordering::Relaxed), bytes)
    }

    /// Bytes that calls of the kernel's which have returned gave the socket.
    pub(crate) fn sent_bytes(&self) -> u32 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Bytes that calls of the kernel's which have returned took out of it.
    pub(crate) fn received_bytes(&self) -> u32 {
        self.received.load(Ordering::Relaxed)
    }

    /// Whether no call is inside the kernel that takes bytes out of the socket.
    pub(crate) fn has_no_reads(&self) -> bool {
        self.reads.load(Ordering::SeqCst) == 0
    }

    /// Whether no call is inside the kernel that gives bytes to the socket.
    pub(crate) fn has_no_writes(&self) -> bool {
        self.writes.load(Ordering::SeqCst) == 0
    }
}

impl Claim {
    /// Whether the number still is what it was.
    #[inline]
    pub(crate) fn holds(self) -> bool {
        self.number.what.load(Ordering::Acquire) == self.what
    }

    /// Makes it another thing, if the number still is what it was.
    pub(crate) fn becomes(self, what: What) -> bool {
        let word = &self.number.what;
        word.compare_exchange(self.what, what.word(), Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Makes a candidate of it that its parent accepted, if nobody can have used it: neither the parent before the fork, nor a child that it made
    /// before this one. Else it is the kernel's.
    pub(crate) fn take_over(self) {
        let is_first = forks::is_first_child_behind(self.number.children.load(Ordering::Relaxed));
        let is_unused = self.number.traffic() == (0, 0);
        let candidate = What::Candidate(Side::Accepted).word() | OF_PARENT | self.what & OF_UNIX;
        let what = if is_first && is_unused { candidate } else { UNKNOWN };
        self.number.children.store(forks::children(), Ordering::Relaxed);
        // Another thread of this process came to the same.
        let _ = self.number.what.compare_exchange(self.what, what, Ordering::SeqCst, Ordering::Relaxed);
    }

    /// Whether it is a stream of `AF_UNIX`; of a candidate.
    pub(crate) fn is_of_unix(self) -> bool {
        self.what & (ENDPOINT | OF_UNIX) == OF_UNIX
    }

    /// Whether no other process of the family has the connection: its parent says so when it closes it.
    pub(crate) fn is_alone(self, number: RawFd) -> bool {
        self.what & OF_PARENT == 0 || forks::parent_has_left(number)
    }

    /// Begins a call into the kernel, if the number still is what it was.
    pub(crate) fn read(self) -> Option<Pass> {
        self.enter(Way::Read)
    }

    pub(crate) fn write(self) -> Option<Pass> {
        self.enter(Way::Write)
    }

    fn enter(self, way: Way) -> Option<Pass> {
        // Before the look: of this call and a thread that makes an endpoint of the number and looks for calls, one sees the other.
        way.calls(self.number).fetch_add(1, Ordering::SeqCst);
        let pass = Pass(Some((self.number, way)));
        (self.number.what.load(Ordering::SeqCst) == self.what).then_some(pass)
    }
}

impl Way {
    fn calls(self, number: &Number) -> &AtomicU16 {
        match self {
            Way::Read => &number.reads,
            Way::Write => &number.writes,
        }
    }

    fn bytes(self, number: &Number) -> &AtomicU32 {
        match self {
            Way::Read => &number.received,
            Way::Write => &number.sent,
        }
    }
}

impl Pass {
    /// A call that nobody counts.
    pub(crate) fn uncounted() -> Self {
        Pass(None)
    }

    /// The call has moved so many bytes.
    pub fn moved(&self, bytes: usize) {
        if let Some((number, way)) = self.0 {
            number.messages.fetch_add(1, Ordering::Relaxed);
            // No call of the kernel's moves as much as 2^32 bytes.
            way.bytes(number).fetch_add(bytes as u32, Ordering::Relaxed);
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some((number, way)) = self.0 {
            way.calls(number).fetch_sub(1, Ordering::SeqCst);
        }
    }
}
