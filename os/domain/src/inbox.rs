//! What other threads ask of the background thread.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::EventfdFlags;
use rustix::io::Errno;

use crate::channel::Channel;
use crate::evidence::Evidence;
use crate::mailbox::Mailbox;
use crate::service::{OfferOptions, Refusal, Reply, Service};

/// Where the background thread says what came of a command.
pub(crate) type Done = SyncSender<Result<(), Errno>>;

/// What other threads ask of the background thread. An answer goes back where somebody waits for one.
pub(crate) enum Command {
    Offer {
        number: u64,
        listener: OwnedFd,
        service: Box<dyn Service>,
        options: OfferOptions,
        done: Done,
    },
    Withdraw {
        number: u64,
        /// Takes the service, so that whoever withdraws it takes the time to drop it.
        done: SyncSender<Option<Box<dyn Service>>>,
    },
    Join {
        channel: Arc<Channel>,
        evidence: Arc<Evidence>,
        mailbox: Arc<Mailbox>,
        done: Done,
    },
    /// The work behind the request with this serial of a connection is done.
    Answered {
        link: u64,
        serial: u32,
        /// Whether it was the first request of the connection.
        is_first: bool,
        result: Result<Reply, Refusal>,
    },
    Stop,
}

/// Commands, and the eventfd that says that there are some.
pub(crate) struct Inbox {
    wake: OwnedFd,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    commands: VecDeque<Command>,
    next_offer: u64,
}

impl Inbox {
    pub(crate) fn new() -> Result<Self, Errno> {
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Inbox { wake, state: Mutex::default() })
    }

    /// Readable when there are commands.
    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.wake
    }

    /// A number for an offer; each is given once.
    pub(crate) fn next_offer(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.next_offer += 1;
        state.next_offer
    }

    /// Leaves a command. It never waits.
    pub(crate) fn post(&self, command: Command) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).commands.push_back(command);
        // A full counter is a thread that is already being woken.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable again.
    pub(crate) fn empty_wake(&self) {
        // The count does not matter; commands are taken until there are none.
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
    }

    /// The next command. One at a time and without the lock held: a service may drop handles that post commands.
    pub(crate) fn take(&self) -> Option<Command> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).commands.pop_front()
    }
}
