//! Opening what a client has of a server: the connection, the request window, reply windows.
//!
//! The first connection is made by whoever asks for a client. Later ones, and reply windows beyond the first, are opened
//! while the client is polled and must not wait: a thread of a moment does it, and leaves the result where a poll looks.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver as Mailbox, TryRecvError};
use std::time::{Duration, Instant};

use beeline_domain::{
    ConnectError, Connection, CreditPage, Domain, FreshWindow, MemoryCreditSink, MemorySleeper, Reply,
    StoreOptions, Token, WindowError,
};
use beeline_mmio::{LoadWindow, MemoryOptions, SharedMemory, thread};
use beeline_spec::formats::RPC_MAX_WORKERS;
use beeline_window::{Receiver, WindowConfig};

use super::hello::{Hello, OpenReply, VERSION, Welcome, decode, encode};
use super::options::{ClientOptions, check_lines};
use super::session::{max_message_bytes, writer};
use crate::cancels::{Cancels, table_bytes};
use crate::error::RpcError;
use crate::service::ReplyWindow;

/// Settings that every attempt to connect needs.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) domain: Domain,
    pub(crate) name: String,
    pub(crate) options: ClientOptions,
    /// Whether a server that was lost is looked for.
    pub(crate) is_found_again: bool,
}

impl Target {
    pub(crate) fn new(domain: &Domain, name: &str, options: ClientOptions) -> Self {
        Target { domain: domain.clone(), name: name.to_owned(), options, is_found_again: true }
    }
}

/// One reply window, at its receiver.
#[derive(Debug)]
pub(crate) struct ReplyEnd {
    pub(crate) receiver: Receiver<LoadWindow, MemoryCreditSink>,
    pub(crate) sleeper: MemorySleeper,
}

/// A client's connection to one server.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) connection: Arc<Connection>,
    pub(crate) requests: ReplyWindow,
    pub(crate) max_message_bytes: usize,
    pub(crate) cancels: Cancels,
    pub(crate) page: CreditPage,
    /// One for each thread of the server, once it is open.
    pub(crate) replies: Vec<Option<ReplyEnd>>,
}

/// A result that a thread of a moment leaves.
#[derive(Debug)]
pub(crate) struct Pending<T>(Mailbox<Result<T, RpcError>>);

impl<T: Send + 'static> Pending<T> {
    /// Has `work` done elsewhere; `None` when the process is out of threads, which may be over later.
    pub(crate) fn start(work: impl FnOnce() -> Result<T, RpcError> + Send + 'static) -> Option<Self> {
        let (sender, mailbox) = mpsc::channel();
        // A client that is gone does not want the result any more.
        let spawned = thread::start("beeline-rpc-open", move || drop(sender.send(work())));
        spawned.ok().map(|_| Pending(mailbox))
    }

    /// The result, once it is there.
    pub(crate) fn take(&self) -> Option<Result<T, RpcError>> {
        match self.0.try_recv() {
            Ok(result) => Some(result),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                Some(Err(RpcError::Malformed { what: "the thread that opens windows panicked".to_owned() }))
            }
        }
    }
}

fn malformed(what: impl std::fmt::Display) -> RpcError {
    RpcError::Malformed { what: what.to_string() }
}

impl Session {
    /// Connects, and opens the request window and the first reply window; waits at most `timeout` for the server.
    pub(crate) fn open(target: &Target, timeout: Duration) -> Result<Session, RpcError> {
        let Target { domain, name, .. } = target;
        Self::open_by(target, timeout, |hello, fds| domain.connect_within(name, hello, fds, timeout))
    }

    /// As [`Session::open`], with a token that was exchanged with the server's process.
    pub(crate) fn open_proving(
        target: &Target,
        token: &Token,
        timeout: Duration,
    ) -> Result<Session, RpcError> {
        let Target { domain, name, .. } = target;
        Self::open_by(target, timeout, |hello, fds| domain.connect_proving(token, name, hello, fds, timeout))
    }

    fn open_by(
        target: &Target,
        timeout: Duration,
        connect: impl FnOnce(&[u8], &[BorrowedFd<'_>]) -> Result<(Connection, Reply), ConnectError>,
    ) -> Result<Session, RpcError> {
        let (options, started) = (&target.options, Instant::now());
        let page = CreditPage::create("requests")?;
        let slots = options.max_outstanding;
        let hello = Hello { rpc: VERSION, slots, stores: options.kernel.name().to_owned() };
        let (connection, reply) = connect(&encode(&hello), &[page.fd()])?;
        let welcome: Welcome = decode(&reply.payload).map_err(malformed)?;
        if !(1..=RPC_MAX_WORKERS as u32).contains(&welcome.workers) {
            return Err(malformed(format!("a server of {} threads", welcome.workers)));
        }
        let [window_fd, table_fd] = <[OwnedFd; 2]>::try_from(reply.fds)
            .map_err(|fds| malformed(format!("{} descriptors instead of two", fds.len())))?;
        check_lines("lines of the server's window", welcome.window.lines)?;
        let sender = StoreOptions { kernel: options.kernel, memory: options.memory };
        let parts = welcome.window.join(window_fd, &page, connection.peer(), sender)?;
        let table = SharedMemory::from_fd(table_fd, table_bytes(slots)).map_err(WindowError::from)?;
        let cancels = Cancels::new(&table.map().map_err(WindowError::from)?, slots);
        let connection = Arc::new(connection);
        let left = timeout.saturating_sub(started.elapsed());
        let first = ReplyEnd::open(&connection, options, 0, left)?;
        let others = (1..welcome.workers).map(|_| None);
        Ok(Session {
            requests: writer(parts).0,
            max_message_bytes: max_message_bytes(welcome.window.lines),
            cancels,
            page,
            replies: std::iter::once(Some(first)).chain(others).collect(),
            connection,
        })
    }
}

impl ReplyEnd {
    /// Opens the reply window of one of the server's threads.
    pub(crate) fn open(
        connection: &Connection,
        options: &ClientOptions,
        worker: u32,
        timeout: Duration,
    ) -> Result<ReplyEnd, RpcError> {
        let window =
            FreshWindow::create("replies", options.reply_lines, MemoryOptions::default(), worker as u8)?;
        let open = OpenReply { worker, window: window.terms().clone() };
        let reply = connection.call_within(&encode(&open), &[window.fd()], timeout)?;
        let [page_fd] = <[OwnedFd; 1]>::try_from(reply.fds)
            .map_err(|fds| malformed(format!("{} descriptors instead of a credit page", fds.len())))?;
        let page = CreditPage::from_fd(page_fd)?;
        let peer = connection.peer();
        let config = WindowConfig::blank(window.terms().blank, window.terms().epoch);
        let receiver = Receiver::new(window.load(None), window.sink(&page, peer), config);
        Ok(ReplyEnd { receiver, sleeper: window.sleeper(&page, peer) })
    }
}
