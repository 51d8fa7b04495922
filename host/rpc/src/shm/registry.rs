//! The clients of a server: made by the domain's workers when they connect, used by the server's threads.
//!
//! Nothing here is on the path of a request: a thread looks at one counter and takes the lock only when it has changed.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beeline_contract_memory::Sleeper;
use beeline_domain::{
    Answer, CreditPage, Disposer, Event, FreshWindow, MemoryCreditSink, MemorySleeper, Peer, PeerId, Refusal,
    Reply, SenderParts, Service, StoreOptions,
};
use beeline_mmio::{Flag, MemoryOptions, Pace, Region, SharedMemory, StoreKernel};
use beeline_spec::WORD_BYTES;
use beeline_spec::formats::rpc_client_page::REPLIES_WANTED_OFFSET;
use beeline_window::{SharedWindow, WindowConfig};

use super::hello::{Hello, OpenReply, Welcome, decode, encode};
use super::options::ServerOptions;
use crate::cancels::{Cancels, table_bytes};
use crate::service::ClientId;

/// One client, as every thread of the server sees it.
#[derive(Debug)]
pub(crate) struct ClientEntry {
    pub(crate) id: ClientId,
    pub(crate) peer: Peer,
    pub(crate) window: FreshWindow,
    pub(crate) requests: SharedWindow<MemoryCreditSink>,
    pub(crate) page: CreditPage,
    pub(crate) kernel: Option<StoreKernel>,
    pub(crate) cancels: Cancels,
    /// For each thread.
    replies: Mutex<Vec<ReplySlot>>,
    /// Threads that wait, or are about to, by the word that the client looks at. Locked while a bit of it is cleared.
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    asleep: u32,
    listening: u32,
}

/// A reply window on its way to its thread. A client opens one for each and no more.
#[derive(Debug)]
enum ReplySlot {
    None,
    Open(Box<SenderParts>),
    Fetched,
}

impl ClientEntry {
    /// Takes the reply window that the client has opened for a thread, if it has.
    pub(crate) fn take_reply(&self, worker: usize) -> Option<SenderParts> {
        let slot = &mut lock(&self.replies)[worker];
        match std::mem::replace(slot, ReplySlot::Fetched) {
            ReplySlot::Open(parts) => Some(*parts),
            other => {
                *slot = other;
                None
            }
        }
    }

    /// One more thread is about to sleep for this client. [`beeline_domain::prepare_all`] follows, for all of its clients
    /// together.
    pub(crate) fn fall_asleep(&self) {
        lock(&self.waiting).asleep += 1;
    }

    /// A thread is awake again. The word stays as it is while others sleep on it: the client must wake them.
    pub(crate) fn awake(&self, sleeper: &mut MemorySleeper) {
        let mut waiting = lock(&self.waiting);
        waiting.asleep -= 1;
        if waiting.asleep == 0 {
            sleeper.cancel();
        }
    }

    /// One more thread is about to listen for this client; its announcement follows.
    pub(crate) fn listen(&self) {
        lock(&self.waiting).listening += 1;
    }

    /// A thread listens no more. The bit stays as it is while others listen.
    pub(crate) fn unlisten(&self, sleeper: &mut MemorySleeper) {
        let mut waiting = lock(&self.waiting);
        waiting.listening -= 1;
        if waiting.listening == 0 {
            sleeper.unlisten();
        }
    }

    /// Asks the client for a reply window for a thread, and signals a client that waits by descriptor.
    pub(crate) fn want_reply(&self, worker: usize) {
        self.page.region().word(REPLIES_WANTED_OFFSET + worker * WORD_BYTES).store(1);
        self.peer.ring();
    }
}

/// What a server's threads, the domain's thread and its workers share.
#[derive(Debug)]
pub(crate) struct Registry {
    options: ServerOptions,
    /// Takes clients that are gone: unmapping their windows takes time.
    disposer: Disposer,
    clients: Mutex<HashMap<PeerId, Arc<ClientEntry>>>,
    /// Goes up whenever a client came, went, or opened a window.
    changes: AtomicU64,
    next_id: AtomicU64,
    /// What each thread sleeps on besides its clients.
    bells: Region,
    /// What is signalled besides, for each thread that waits by descriptor.
    events: Mutex<Vec<Option<Event>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    pub(crate) fn new(options: ServerOptions, disposer: Disposer) -> Self {
        let bells = Region::private(options.workers * WORD_BYTES);
        Registry {
            events: Mutex::new(vec![None; options.workers]),
            options,
            disposer,
            clients: Mutex::default(),
            changes: AtomicU64::new(0),
            next_id: AtomicU64::new(1),
            bells,
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.options.workers
    }

    /// How often something has changed. Acquire: pairs with `change`.
    #[inline(always)]
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The flag that a thread sleeps on, set to 1 before it does.
    pub(crate) fn bell(&self, worker: usize) -> Flag {
        self.bells.flag(worker * WORD_BYTES)
    }

    /// Has `event` signalled for a thread whenever something changes.
    pub(crate) fn signal(&self, worker: usize, event: Option<&Event>) {
        lock(&self.events)[worker] = event.cloned();
    }

    pub(crate) fn clients(&self) -> Vec<Arc<ClientEntry>> {
        lock(&self.clients).values().cloned().collect()
    }

    /// Lets go of a client, whoever noticed first that it is of no use any more.
    pub(crate) fn remove(&self, peer: &Peer) {
        let removed = lock(&self.clients).remove(&peer.id());
        if let Some(entry) = removed {
            peer.disconnect();
            self.change();
            self.dispose(entry);
        }
    }

    /// Has what is left of a client dropped where nobody waits for it.
    pub(crate) fn dispose(&self, left: impl Send + 'static) {
        self.disposer.dispose(left);
    }

    fn change(&self) {
        // Release: pairs with `changes`.
        self.changes.fetch_add(1, Ordering::Release);
        // Pairs with the fence of a thread between its bell and its last look (`worker.rs`): either it sees the change,
        // or the bell is seen here.
        fence(Ordering::SeqCst);
        for worker in 0..self.options.workers {
            let bell = self.bell(worker);
            if bell.load() != 0 {
                bell.store(0);
                bell.wake(u32::MAX);
            }
        }
        lock(&self.events).iter().flatten().for_each(Event::signal);
    }

    /// A client's first request.
    fn welcome(
        &self,
        peer: &Peer,
        request: &[u8],
        fds: Vec<OwnedFd>,
        pace: &dyn Pace,
    ) -> Result<Reply, Refusal> {
        let hello: Hello = decode(request).map_err(Refusal::new)?;
        hello.check().map_err(Refusal::new)?;
        let page = CreditPage::from_fd(only(fds, "credit page")?).map_err(refused)?;
        let lines = self.options.request_lines;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let window = FreshWindow::create_paced("requests", lines, self.options.memory, id as u8, pace);
        let window = window.map_err(refused)?;
        let table =
            SharedMemory::create("beeline-cancels", table_bytes(hello.slots), MemoryOptions::default())
                .map_err(refused)?;
        let config = WindowConfig::blank(window.terms().blank, window.terms().epoch);
        let requests = SharedWindow::new(lines, window.sink(&page, peer), config, self.options.workers);
        let cancels = Cancels::new(&table.map().map_err(refused)?, hello.slots);
        let table_fd = table.fd().as_fd().try_clone_to_owned().map_err(refused)?;
        let welcome = Welcome { window: window.terms().clone(), workers: self.options.workers as u32 };
        let reply =
            Reply { payload: encode(&welcome), fds: vec![window.clone_fd().map_err(refused)?, table_fd] };
        let entry = ClientEntry {
            id: ClientId(id),
            peer: peer.clone(),
            window,
            requests,
            page,
            kernel: hello.kernel(),
            cancels,
            replies: Mutex::new((0..self.options.workers).map(|_| ReplySlot::None).collect()),
            waiting: Mutex::default(),
        };
        lock(&self.clients).insert(peer.id(), Arc::new(entry));
        self.change();
        Ok(reply)
    }

    /// A client opens a reply window for one thread.
    fn open_reply(
        &self,
        peer: &Peer,
        request: &[u8],
        fds: Vec<OwnedFd>,
        pace: &dyn Pace,
    ) -> Result<Reply, Refusal> {
        let open: OpenReply = decode(request).map_err(Refusal::new)?;
        let worker = open.worker as usize;
        if worker >= self.options.workers {
            let workers = self.options.workers;
            return Err(Refusal::new(format!("a reply window for thread {worker} of {workers}")));
        }
        let (lines, most) = (open.window.lines, self.options.max_reply_lines);
        if lines > most {
            return Err(Refusal::new(format!(
                "a reply window of {lines} lines; this server takes {most} at most"
            )));
        }
        let entry = lock(&self.clients).get(&peer.id()).cloned();
        let entry = entry.ok_or_else(|| Refusal::new("the connection is closed"))?;
        if !matches!(lock(&entry.replies)[worker], ReplySlot::None) {
            return Err(Refusal::new(format!("thread {worker} has a reply window of this client")));
        }
        let page = CreditPage::create("replies").map_err(refused)?;
        let kernel = StoreOptions::with_kernel(self.options.kernel);
        let window = only(fds, "reply window")?;
        let parts = open.window.join_paced(window, &page, peer, kernel, pace).map_err(refused)?;
        lock(&entry.replies)[worker] = ReplySlot::Open(Box::new(parts));
        self.change();
        let page_fd = page.fd().try_clone_to_owned().map_err(refused)?;
        Ok(Reply { payload: Vec::new(), fds: vec![page_fd] })
    }
}

fn refused(error: impl std::fmt::Display) -> Refusal {
    Refusal::new(error.to_string())
}

fn only(fds: Vec<OwnedFd>, what: &str) -> Result<OwnedFd, Refusal> {
    let [fd] = <[OwnedFd; 1]>::try_from(fds)
        .map_err(|fds| Refusal::new(format!("{} descriptors, one {what} is needed", fds.len())))?;
    Ok(fd)
}

/// The server's half of the rendezvous.
pub(crate) struct Rendezvous(pub(crate) Arc<Registry>);

impl Service for Rendezvous {
    fn connected(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let (registry, peer, request) = (Arc::clone(&self.0), peer.clone(), request.to_vec());
        Ok(Answer::later(move |pace| registry.welcome(&peer, &request, fds, pace)))
    }

    fn requested(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let (registry, peer, request) = (Arc::clone(&self.0), peer.clone(), request.to_vec());
        Ok(Answer::later(move |pace| registry.open_reply(&peer, &request, fds, pace)))
    }

    fn departed(&mut self, peer: &Peer) {
        self.0.remove(peer);
    }
}
