//! What other threads ask of the background thread.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;

use crate::channel::Channel;
use crate::descriptor::Descriptor;
use crate::evidence::Evidence;
use crate::links::Links;
use crate::mailbox::Mailbox;
use crate::service::{OfferOptions, Refusal, Reply, Service};

/// Where the background thread says what came of a command.
pub(crate) type Done = SyncSender<Result<(), Errno>>;

/// What other threads ask of the background thread. An answer goes back where somebody waits for one.
pub(crate) enum Command {
    Offer {
        number: u64,
        listener: Descriptor,
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
    /// Gives every descriptor a number of at least so much.
    Move {
        lowest: RawFd,
        done: Done,
    },
    Stop,
}

/// Commands, and the eventfd that says that there are some.
pub(crate) struct Inbox {
    wake: Arc<Descriptor>,
    epoll: Arc<Descriptor>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    commands: VecDeque<Command>,
    next_offer: u64,
    /// Whether the thread has ended, or is about to: nobody takes commands.
    is_over: bool,
}

impl Inbox {
    /// The inbox of the thread that waits for `links`.
    pub(crate) fn new(links: &Links) -> Self {
        let (epoll, wake) = links.shared();
        Inbox { wake, epoll, state: Mutex::default() }
    }

    /// Whether other code of this process closed or replaced the thread's epoll or what wakes it.
    pub(crate) fn is_lost(&self) -> bool {
        !self.epoll.is_ours()
    }

    /// Takes no more commands; who waits for the answer to one is told that there will be none.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_over = true;
        let commands = std::mem::take(&mut state.commands);
        drop(state);
        // Outside the lock: a service that is dropped may post.
        drop(commands);
    }

    /// A number for an offer; each is given once.
    pub(crate) fn next_offer(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.next_offer += 1;
        state.next_offer
    }

    /// Leaves a command. It never waits. One that nobody will take is dropped, and with it what would answer.
    pub(crate) fn post(&self, command: Command) {
        if self.is_lost() {
            return;
        }
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.is_over {
                return;
            }
            state.commands.push_back(command);
        }
        // A full counter is a thread that is already being woken.
        let _ = rustix::io::write(self.wake.hold(), &1u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable again.
    pub(crate) fn empty_wake(&self) {
        // The count does not matter; commands are taken until there are none.
        let _ = rustix::io::read(self.wake.hold(), &mut [0u8; 8]);
    }

    /// The next command. One at a time and without the lock held: a service may drop handles that post commands.
    pub(crate) fn take(&self) -> Option<Command> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).commands.pop_front()
    }
}
