//! The domain's background thread: one epoll for every offer, connection and process of the domain.
//!
//! It sleeps in the kernel until something happens; an idle domain costs no CPU time. It alone reads sockets, calls
//! services and declares deaths, so none of that needs a lock. Other threads leave commands in its inbox. Nothing it
//! does waits for a peer: whoever does not read, write or say hello in time loses its connection.

use std::io;
use std::os::fd::RawFd;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Weak};
use std::time::Instant;

use beeline_mmio::thread::{self, Running};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll;
use rustix::io::Errno;

use crate::descriptor::Descriptor;
use crate::disposer::Disposer;
use crate::inbox::{Command, Done, Inbox};
use crate::links::{Link, Links, Source};
use crate::moving::{self, Movable, Registered};
use crate::service::{OfferOptions, Service};
use crate::socket::PacketBuffer;
use crate::table::Table;
use crate::wire::{Identity, MAX_MESSAGE_BYTES};
use crate::workers::{Starter, Workers};

/// Events taken at a time.
const EVENTS: usize = 64;

/// Other threads' handle on the background thread. Dropping it ends the thread, and with it every connection.
pub(crate) struct Reactor {
    _moves: (Arc<Mover>, Registered),
    inbox: Arc<Inbox>,
    workers: Starter,
    disposer: Disposer,
    thread: Option<Running<()>>,
}

impl Reactor {
    /// Starts the thread.
    pub(crate) fn start(identity: Identity) -> Result<Self, (&'static str, io::Error)> {
        let links = Links::new().map_err(|e| ("create an epoll and an eventfd", e.into()))?;
        let inbox = Arc::new(Inbox::new(links.waits()));
        let (workers, disposer) = (Workers::new(identity.uid), Disposer::default());
        let starter = workers.starter();
        let table = Table::new(links, identity, Arc::clone(&inbox), workers, disposer.clone());
        let body = Loop { inbox: Arc::clone(&inbox), table };
        let thread =
            thread::start("beeline-domain", move || body.run()).map_err(|e| ("start a thread", e))?;
        let mover = Arc::new(Mover(Arc::clone(&inbox)));
        let moves: Weak<Mover> = Arc::downgrade(&mover);
        let _moves = (mover, moving::register(moves));
        Ok(Reactor { _moves, inbox, workers: starter, disposer, thread: Some(thread) })
    }

    /// Whether the caller is the background thread, which must not wait for itself.
    pub(crate) fn is_this_thread(&self) -> bool {
        self.thread.as_ref().is_some_and(Running::is_this_thread)
    }

    /// Starts to serve; gives the offer a number.
    pub(crate) fn offer(
        &self,
        listener: Descriptor,
        service: Box<dyn Service>,
        options: OfferOptions,
    ) -> Result<u64, Errno> {
        // Here, so that the background thread never has to start a thread.
        self.disposer.start();
        self.workers.start().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?;
        let number = self.inbox.next_offer();
        self.ask(|done| Command::Offer { number, listener, service, options, done })?;
        Ok(number)
    }

    /// Stops to serve and drops the service; waits until that is done, except on the thread itself.
    pub(crate) fn withdraw(&self, number: u64) {
        let (done, answer) = sync_channel(1);
        self.inbox.post(Command::Withdraw { number, done });
        if !self.is_this_thread() {
            // A closed channel is a thread that has ended, and with it every offer.
            drop(answer.recv());
        }
    }

    /// What drops things for this domain.
    pub(crate) fn disposer(&self) -> &Disposer {
        &self.disposer
    }

    /// Has the thread watch a connection that this process made.
    ///
    /// # Errors
    /// The process lacks memory; the thread has ended.
    pub(crate) fn join(&self, link: Link) -> Result<(), Errno> {
        if self.thread.as_ref().is_none_or(Running::is_finished) {
            return Err(Errno::CANCELED);
        }
        self.inbox.join(link)
    }

    fn ask(&self, command: impl FnOnce(Done) -> Command) -> Result<(), Errno> {
        let (done, answer) = sync_channel(1);
        self.inbox.post(command(done));
        // A closed channel is a thread that has ended, which it does only when the domain goes.
        answer.recv().unwrap_or(Err(Errno::CANCELED))
    }

    /// Whether descriptors of the thread were closed or replaced. One system call.
    pub(crate) fn is_lost(&self) -> bool {
        self.inbox.is_lost()
    }

    /// In a forked child: forgets the thread, which exists in the parent only. Not even its handle may be dropped: the
    /// C library has taken the thread's stack, where its state lay, for other uses.
    pub(crate) fn forget_thread(&mut self) {
        std::mem::forget(self.thread.take());
    }
}

impl std::fmt::Debug for Reactor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Reactor").field("thread", &self.thread).finish_non_exhaustive()
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.inbox.is_lost() {
            // Nothing wakes the thread any more, if it sleeps.
            tracing::error!(
                "descriptors of a domain were closed or replaced in this process; its thread is left behind"
            );
            return;
        }
        self.inbox.post(Command::Stop);
        // The last handle may be dropped by a service, on the thread itself: then it ends on its own.
        if !thread.is_this_thread() && thread.join().is_err() {
            tracing::error!("the domain's background thread panicked");
        }
    }
}

/// Has the thread move its descriptors: it alone watches and forgets them.
struct Mover(Arc<Inbox>);

impl Movable for Mover {
    fn move_above(&self, lowest: RawFd) -> io::Result<()> {
        let (done, answer) = sync_channel(1);
        self.0.post(Command::Move { lowest, done });
        // A closed channel is a thread that has ended, and has no descriptors.
        Ok(answer.recv().unwrap_or(Ok(()))?)
    }
}

/// The thread's own state.
struct Loop {
    inbox: Arc<Inbox>,
    table: Table,
}

impl Loop {
    fn run(mut self) {
        moving::begin_domain_thread();
        let mut buffer: Box<PacketBuffer> = Box::new([0; MAX_MESSAGE_BYTES + 1]);
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            if self.table.links.is_lost() {
                tracing::error!(
                    "descriptors of a domain were closed or replaced in this process; the domain ends"
                );
                return self.end();
            }
            let timeout = if self.table.rouse_severed() {
                Some(Timespec { tv_sec: 0, tv_nsec: 0 })
            } else {
                self.table.next_deadline().map(time_until)
            };
            events.clear();
            match epoll::wait(self.table.epoll().hold(), spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "the domain's epoll failed; its peers are no longer watched");
                    return self.end();
                }
            }
            // Who connects comes after who has gone before, whose place it may need.
            events.sort_by_key(|event| matches!(Source::from_token(event.data), Source::Listener(_)));
            // Deaths before each of the others, however many there are: everybody waits for those, and a name or window that
            // a dead peer held is free for whoever asks next. Before the first of them the wait has just said whether there are
            // any, unless there was no room for them among the events.
            let mut may_be_dead = events.len() == EVENTS
                || events.iter().any(|event| Source::from_token(event.data) == Source::Deaths);
            for event in &events {
                if std::mem::replace(&mut may_be_dead, true) {
                    self.table.deaths(&mut buffer);
                }
                match Source::from_token(event.data) {
                    Source::Inbox => self.inbox.empty_wake(),
                    Source::Listener(number) => self.table.accept(number, &mut buffer),
                    Source::Socket(number) => self.table.read(number, &mut buffer),
                    Source::Deaths => {}
                }
            }
            if !self.obey() {
                return self.end();
            }
            self.table.expire(Instant::now());
        }
    }

    fn end(&mut self) {
        let left = self.inbox.close();
        for command in left {
            // Others are dropped. A service that is dropped may post.
            if let Command::Join { number, link } = command {
                self.table.links.insert(number, *link);
            }
        }
        self.table.end_all();
        while self.table.rouse_severed() {}
    }

    /// Carries out what is in the inbox; `false` when the thread is to end.
    fn obey(&mut self) -> bool {
        loop {
            let command = self.inbox.take();
            // Whoever asked may have given up waiting; then nobody hears the answer.
            let _ = match command {
                Some(Command::Offer { number, listener, service, options, done }) => {
                    done.send(self.table.add_offer(number, listener, service, options))
                }
                Some(Command::Withdraw { number, done }) => {
                    let service = self.table.withdraw(number);
                    if let Err(unheard) = done.send(service) {
                        self.table.disposer.dispose(unheard.0);
                    }
                    Ok(())
                }
                Some(Command::Join { number, link }) => {
                    self.table.links.insert(number, *link);
                    Ok(())
                }
                Some(Command::Answered { link, serial, is_first, result }) => {
                    self.table.answered(link, serial, is_first, result);
                    Ok(())
                }
                Some(Command::Move { lowest, done }) => done.send(self.table.move_above(lowest)),
                Some(Command::Stop) => return false,
                None => return true,
            };
        }
    }
}

fn time_until(deadline: Instant) -> Timespec {
    let left = deadline.saturating_duration_since(Instant::now());
    Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    }
}
