//! Many windows offered under one name, each to whoever opens it.

use std::time::Duration;

use beeline_domain::{ArenaListener, Armed, Event, ReceiverParts, Source, offer_windows};
use beeline_tuning::ReceiveTuning;
use beeline_window::WaitPolicy;

use crate::origin::Origin;
use crate::receiver::Open;
use crate::{Admissions, Domain, OfferError, Receiver, Target};

/// The windows that a receiver offers in an arena: for each of 64 processes of this user up to 4,096 windows of up to 16 KiB, 64 MiB
/// in all; a receiver of one looks, then sleeps.
///
/// ```
/// let options = beeline::ArenaOptions::new().lines(64).windows(16_384).clients(4);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ArenaOptions {
    below: beeline_domain::ArenaOptions,
    wait: WaitPolicy,
    tuning: Option<ReceiveTuning>,
}

impl ArenaOptions {
    /// Up to 4,096 windows of up to 256 lines for each of 64 processes of this user.
    pub fn new() -> Self {
        Self::default()
    }

    /// Most lines of 64 bytes that a window has, a power of two from 2 to 2^24; senders may ask for fewer. One of up to 256 lines is
    /// opened without an answer, larger ones are made when they are asked for.
    pub fn lines(mut self, lines: u32) -> Self {
        self.below.lines = lines;
        self
    }

    /// Most windows of one process at the same time, 1 to 16,384. Up to 32 of them are lent to it before it opens them.
    pub fn windows(mut self, windows: u32) -> Self {
        self.below.windows = windows;
        self
    }

    /// Most bytes of the windows of one process, a multiple of 4,096 up to 64 GiB. Each window takes a page at least. It is address
    /// space; memory is what is open of it.
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.below.bytes = bytes;
        self
    }

    /// Arenas at the same time. One process may have a sixteenth of them, and another user half; one at least.
    /// Nobody opens one while windows of as many that are gone wait to be accepted; the shares of these are the same.
    pub fn clients(mut self, clients: usize) -> Self {
        self.below.clients = clients;
        self
    }

    /// Users besides the domain's owner who may open windows. They open the domain with [`Domain::open_foreign`].
    pub fn allowed_uids(mut self, uids: impl IntoIterator<Item = u32>) -> Self {
        self.below.allowed_uids = uids.into_iter().collect();
        self
    }

    /// Who may open windows besides, because it shares a connection with this process.
    pub fn admissions(mut self, admissions: &Admissions) -> Self {
        self.below.admissions = Some(admissions.0.clone());
        self
    }

    /// Looks, yields and sleeps as `policy` says while nothing has arrived in a window.
    pub fn wait(mut self, policy: WaitPolicy) -> Self {
        self.wait = policy;
        self
    }

    /// Looks at the windows this way, as [`crate::ReceiverOptions::tuning`].
    pub fn tuning(mut self, tuning: ReceiveTuning) -> Self {
        self.tuning = Some(tuning);
        self
    }
}

/// Offers thousands of windows under one name: each process that comes has an arena, memory that is mapped once, and opens
/// windows in it ([`crate::SenderArena`]). Made by [`Domain::receiver_arena`].
///
/// Descriptors and connections are those of the processes, not of the windows. What is opened waits here until it is accepted;
/// when this is dropped, the senders of what was not are told that their receiver is gone, and the others go on. Any thread may accept.
/// [`crate::ReceiverSet::set_arena`] accepts by itself.
#[derive(Debug)]
pub struct ReceiverArena {
    listener: ArenaListener,
    wait: WaitPolicy,
    tuning: Option<ReceiveTuning>,
}

impl ReceiverArena {
    /// The receiver of the next window that was opened; `None` when there is none now. Never waits.
    ///
    /// It has one sender: once that has ended and what it left was received, every call fails with
    /// [`crate::RecvError::SenderGone`]. A window can be opened anew when its receiver and its sender are both dropped.
    pub fn try_accept(&self) -> Option<Receiver> {
        self.listener.try_accept().map(|parts| self.receiver(parts))
    }

    /// As [`ReceiverArena::try_accept`], waiting for a window for at most `timeout`; in a child of fork there never is one.
    pub fn accept_timeout(&self, timeout: Duration) -> Option<Receiver> {
        self.listener.accept(timeout).map(|parts| self.receiver(parts))
    }

    /// Whether a window waits to be accepted.
    pub fn has_opened(&self) -> bool {
        self.listener.has_opened()
    }

    /// Has `event` signalled when a window is opened.
    pub(crate) fn signal(&self, event: Option<&Event>) {
        self.listener.signal(event);
    }

    fn receiver(&self, parts: ReceiverParts) -> Receiver {
        let open = Open::new(parts, self.tuning);
        Receiver { open: Some(open), ..Receiver::new(Origin::Arena, self.wait, self.tuning) }
    }
}

/// Ready while a window may be there for [`ReceiverArena::try_accept`].
impl Source for ReceiverArena {
    fn listen(&mut self, event: &Event) -> Armed {
        self.signal(Some(event));
        // Whatever was opened before the line above is seen by this look, whatever comes after it signals.
        if self.has_opened() { Armed::Ready } else { Armed::Wait }
    }

    fn unlisten(&mut self) {
        self.signal(None);
    }
}

impl Domain {
    /// Offers windows under `name`, many to each of several processes of this user, within a few descriptors for each process.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), beeline::Error> {
    /// let mut set = beeline::ReceiverSet::new();
    /// set.set_arena(Some(beeline::Domain::open("demo")?.receiver_arena("sessions")?));
    /// loop {
    ///     let drained = set.drain_timeout(256, std::time::Duration::from_secs(1), |session, message| {
    ///         println!("{}: {} bytes", session.number(), message.len());
    ///     });
    ///     if let Err(ended) = drained {
    ///         println!("{} has ended", ended.member.number());
    ///     }
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// Somebody offers the name already.
    pub fn receiver_arena(&self, name: &str) -> Result<ReceiverArena, OfferError> {
        self.receiver_arena_with(name, ArenaOptions::new())
    }

    /// Offers windows with options, as [`Domain::receiver_arena`] does with the default ones.
    ///
    /// # Errors
    /// Somebody offers the name already; an option is out of bounds.
    pub fn receiver_arena_with(
        &self,
        name: &str,
        options: ArenaOptions,
    ) -> Result<ReceiverArena, OfferError> {
        let ArenaOptions { below, wait, tuning } = options;
        let listener = offer_windows(&self.inner, name, below)
            .map_err(|error| OfferError::window(Target::Arena(name.to_owned()), error))?;
        Ok(ReceiverArena { listener, wait, tuning })
    }
}
