//! Many windows between two domains, over one connection: a set that is polled or waited for by one descriptor, and windows that
//! have a descriptor each in an epoll set.

use std::hint::spin_loop;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Sender, channel};

use beeline_domain::{
    Answer, Armed, Connection, CreditPage, Domain, Event, FreshWindow, MemoryCreditSink, MemoryCredits,
    MemorySleeper, Offer, Peer, PeerWindow, Polled, Readiness, Refusal, Reply, Service, Source, StoreOptions,
    WindowTerms, listen_all,
};
use beeline_floor::{Cores, on_core};
use beeline_mmio::{LoadWindow, MemoryOptions, StoreKernel};
use beeline_session::PrivateDomain;
use beeline_window::{Receiver, ReceiverSet, Sent, WindowConfig, Writer};

use super::way::{Rig, Sends, Set, Waits, failed, wait_readable};
use crate::{BenchError, LINE_PAYLOAD_BYTES};

/// What the side that waits offers.
const NAME: &str = "windows";
/// Lines of a window: enough that its sender seldom waits, few enough that a thousand stay in a second-level cache's reach.
const LINES: u32 = 256;
/// Messages that are taken of one window at a time, and of all in a pass.
const BURST: usize = 16;
const PASS: usize = 256;

type WindowReceiver = Receiver<LoadWindow, MemoryCreditSink>;

/// How the windows are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// A set, looked at without pause.
    Polled,
    /// A set, with one descriptor for all of it.
    Asleep,
    /// A descriptor for each, in an epoll set.
    Epoll,
}

/// The receiving half of a window that was made for a request.
struct Half {
    receiver: WindowReceiver,
    sleeper: MemorySleeper,
}

/// Makes a window for each request, and hands its receiving half over.
struct Maker(Sender<Half>);

impl Maker {
    fn make(&self, peer: &Peer, fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let refuse = |error: &dyn std::fmt::Display| Refusal::new(error.to_string());
        let [page] = <[OwnedFd; 1]>::try_from(fds).map_err(|_| Refusal::new("one credit page is needed"))?;
        let page = CreditPage::from_fd(page).map_err(|error| refuse(&error))?;
        let window = FreshWindow::create(NAME, LINES, MemoryOptions::default(), 0);
        let window = window.map_err(|error| refuse(&error))?;
        let terms = window.terms();
        let config = WindowConfig::blank(terms.blank, terms.epoch);
        let load = window.load(Some(StoreKernel::Cached));
        let receiver = Receiver::new(load, window.sink(&page, peer), config);
        let half = Half { receiver, sleeper: window.sleeper(&page, peer) };
        self.0.send(half).map_err(|_| Refusal::new("nobody waits"))?;
        let payload = serde_json::to_vec(terms).map_err(|error| refuse(&error))?;
        Ok(Reply { payload, fds: vec![window.clone_fd().map_err(|error| refuse(&error))?] }.into())
    }
}

impl Service for Maker {
    fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply::default().into())
    }

    // It is for a bench, whose windows are small: made at once, on the thread that watches.
    fn requested(&mut self, peer: &Peer, _: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        self.make(peer, fds)
    }

    fn departed(&mut self, _: &Peer) {}
}

/// Windows, their senders first: those go before the connection that they are over.
struct Windows {
    writers: Vec<Writer<PeerWindow, MemoryCredits>>,
    _connection: Connection,
}

/// What the side that waits lives by.
struct Held {
    _offer: Offer,
    _domain: PrivateDomain,
}

/// Both ends of so many windows; each side's threads are on its core.
pub(super) fn windows(cores: Cores, count: usize, wait: Wait) -> Result<Rig, BenchError> {
    let private = PrivateDomain::new().map_err(|error| failed(&error))?;
    let (sender, halves) = channel();
    let offer = on_core::<_, BenchError>(cores.second, || {
        let domain = Domain::open(private.config()).map_err(|error| failed(&error))?;
        domain.offer(NAME, Box::new(Maker(sender))).map_err(|error| failed(&error))
    })?;
    let sends = on_core::<_, BenchError>(cores.first, || {
        let domain = Domain::open(private.config()).map_err(|error| failed(&error))?;
        let (connection, _) = domain.connect(NAME, b"", &[]).map_err(|error| failed(&error))?;
        let writers = (0..count).map(|_| writer(&connection)).collect::<Result<_, _>>()?;
        Ok(Windows { writers, _connection: connection })
    })?;
    let halves = halves.try_iter().take(count);
    let held = Held { _offer: offer, _domain: private };
    let waits: Box<dyn Waits> = match wait {
        Wait::Polled => Box::new(PolledSet { members: Members::of(halves), _held: held }),
        Wait::Asleep => Box::new(AsleepSet::new(Members::of(halves), held)?),
        Wait::Epoll => Box::new(Each::new(halves, held)?),
    };
    Ok(Rig { sends: Box::new(sends), waits })
}

fn writer(connection: &Connection) -> Result<Writer<PeerWindow, MemoryCredits>, BenchError> {
    let page = CreditPage::create(NAME).map_err(|error| failed(&error))?;
    let mut reply = connection.call(b"", &[page.fd()]).map_err(|error| failed(&error))?;
    let terms: WindowTerms = serde_json::from_slice(&reply.payload).map_err(|error| failed(&error))?;
    let window = reply.fds.pop().ok_or_else(|| failed(&"a window without a descriptor"))?;
    let options = StoreOptions::with_kernel(StoreKernel::Cached);
    let parts = terms.join(window, &page, connection.peer(), options).map_err(|error| failed(&error))?;
    Ok(Writer::new(parts.store, parts.credits, WindowConfig::blank(terms.blank, terms.epoch)))
}

impl Sends for Windows {
    fn try_send(&mut self, number: usize, stamp: u64) -> Result<bool, BenchError> {
        let mut payload = [0; LINE_PAYLOAD_BYTES];
        payload[..8].copy_from_slice(&stamp.to_le_bytes());
        Ok(self.writers[number].try_send(&payload)? != Sent::Full)
    }
}

/// The members of a set, and how each is waited for.
struct Members {
    set: ReceiverSet<LoadWindow, MemoryCreditSink>,
    sleepers: Vec<MemorySleeper>,
}

impl Members {
    fn of(halves: impl Iterator<Item = Half>) -> Self {
        let (mut set, mut sleepers) = (ReceiverSet::new(BURST), Vec::new());
        for Half { receiver, sleeper } in halves {
            set.insert(receiver);
            sleepers.push(sleeper);
        }
        Members { set, sleepers }
    }

    fn take(&mut self) -> Result<u64, BenchError> {
        let taken = self.set.drain(PASS, |_, _| {}).map_err(|error| failed(&error))?;
        Ok(taken as u64)
    }
}

impl Source for Members {
    fn listen(&mut self, event: &Event) -> Armed {
        self.sleepers.iter_mut().for_each(|sleeper| sleeper.announce(event));
        listen_all(&self.sleepers);
        if self.set.has_begun() { Armed::Ready } else { Armed::Wait }
    }

    fn unlisten(&mut self) {
        self.sleepers.iter_mut().for_each(MemorySleeper::unlisten);
    }
}

struct PolledSet {
    members: Members,
    _held: Held,
}

impl Waits for PolledSet {
    fn take(&mut self) -> Result<u64, BenchError> {
        let taken = self.members.take()?;
        if taken == 0 {
            spin_loop();
        }
        Ok(taken)
    }
}

struct AsleepSet {
    members: Members,
    readiness: Readiness,
    _held: Held,
}

impl AsleepSet {
    fn new(members: Members, held: Held) -> Result<Self, BenchError> {
        Ok(AsleepSet { members, readiness: Readiness::new()?, _held: held })
    }
}

impl Waits for AsleepSet {
    fn take(&mut self) -> Result<u64, BenchError> {
        loop {
            let taken = self.members.take()?;
            if taken > 0 {
                return Ok(taken);
            }
            if self.readiness.arm(&mut self.members) != Armed::Ready {
                wait_readable(self.readiness.as_fd())?;
                // Or the time is over: the caller looks whether anybody sends any more.
                return self.members.take();
            }
        }
    }
}

/// A window that has a descriptor of its own.
impl Source for Half {
    fn listen(&mut self, event: &Event) -> Armed {
        self.sleeper.announce(event);
        listen_all([&self.sleeper]);
        if self.receiver.has_begun() { Armed::Ready } else { Armed::Wait }
    }

    fn unlisten(&mut self) {
        self.sleeper.unlisten();
    }
}

struct Each {
    windows: Vec<Polled<Half>>,
    set: Set,
    _held: Held,
}

impl Each {
    fn new(halves: impl Iterator<Item = Half>, held: Held) -> Result<Self, BenchError> {
        let set = Set::new()?;
        let mut windows = halves.map(Polled::new).collect::<Result<Vec<_>, _>>()?;
        for (number, window) in windows.iter_mut().enumerate() {
            set.add(window.as_fd(), number)?;
            // What is there already keeps it readable.
            let _ = window.arm();
        }
        Ok(Each { windows, set, _held: held })
    }
}

impl Waits for Each {
    fn take(&mut self) -> Result<u64, BenchError> {
        let mut taken = 0;
        for number in self.set.wait()? {
            let window = &mut self.windows[number];
            taken += window.receiver.drain(BURST, |_| {})? as u64;
            // Where more has come meanwhile it stays readable, and has its turn after the others.
            let _ = window.arm();
        }
        Ok(taken)
    }
}
