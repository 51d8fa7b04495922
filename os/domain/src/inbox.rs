//! What other threads ask of the background thread.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use crate::descriptor::Descriptor;
use crate::links::{Link, Waits};
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
    /// Takes in a connection that this process made and that is watched already.
    Join {
        number: u64,
        link: Box<Link>,
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

impl State {
    fn next_link(&mut self) -> u64 {
        self.next_link += 1;
        self.next_link
    }
}

/// Commands, and the eventfd that says that there are some.
pub(crate) struct Inbox {
    waits: Waits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    commands: VecDeque<Command>,
    next_offer: u64,
    next_link: u64,
    /// Whether the thread has ended, or is about to: nobody takes commands.
    is_over: bool,
}

impl Inbox {
    /// The inbox of the thread that waits for these.
    pub(crate) fn new(waits: Waits) -> Self {
        Inbox { waits, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is finished before anything that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether other code of this process closed or replaced the thread's epoll or what wakes it.
    pub(crate) fn is_lost(&self) -> bool {
        !self.waits.epoll.is_ours()
    }

    /// Takes no more commands, and gives those that were not taken: who waits for the answer to one is told that there will be none
    /// when it is dropped.
    pub(crate) fn close(&self) -> VecDeque<Command> {
        let mut state = self.lock();
        state.is_over = true;
        std::mem::take(&mut state.commands)
    }

    /// A number for an offer; each is given once.
    pub(crate) fn next_offer(&self) -> u64 {
        let mut state = self.lock();
        state.next_offer += 1;
        state.next_offer
    }

    /// A number for a connection; each is given once.
    pub(crate) fn next_link(&self) -> u64 {
        self.lock().next_link()
    }

    /// Has the thread watch a connection that this process made. It is not woken for it: the first event takes it in.
    ///
    /// # Errors
    /// The process lacks memory; the thread has ended.
    pub(crate) fn join(&self, link: Link) -> Result<(), Errno> {
        if self.is_lost() {
            return Err(Errno::BADF);
        }
        // With the lock, so that the thread finds it when it has heard of it, and moves it when it moves the others.
        let mut state = self.lock();
        if state.is_over {
            return Err(Errno::CANCELED);
        }
        let number = state.next_link();
        self.waits.watch(number, &link)?;
        state.commands.push_back(Command::Join { number, link: Box::new(link) });
        Ok(())
    }

    /// Leaves a command. It never waits. One that nobody will take is dropped, and with it what would answer.
    pub(crate) fn post(&self, command: Command) {
        if self.is_lost() {
            return;
        }
        {
            let mut state = self.lock();
            if state.is_over {
                return;
            }
            state.commands.push_back(command);
        }
        // A full counter is a thread that is already being woken.
        let _ = rustix::io::write(self.waits.wake.hold(), &1u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable again.
    pub(crate) fn empty_wake(&self) {
        // The count does not matter; commands are taken until there are none.
        let _ = rustix::io::read(self.waits.wake.hold(), &mut [0u8; 8]);
    }

    /// The next command. One at a time and without the lock held: a service may drop handles that post commands.
    pub(crate) fn take(&self) -> Option<Command> {
        self.lock().commands.pop_front()
    }
}
