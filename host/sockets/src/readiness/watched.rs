//! A connection as a set or a poll sees it, and whom its sender wakes.

use std::os::fd::{BorrowedFd, RawFd};

/// A connection as a set sees it: a handle of an endpoint that is never freed.
pub trait Watched: Copy + Send + Sync + 'static {
    /// Whom its sender can wake.
    type Sleeper: Sleeper;
    /// What says without a lock that its window is as empty as it was.
    type Glance: Glance;

    /// Which it is of all connections that there were: a handle is used again.
    fn id(self) -> u64;

    /// To look at the window with, where one is enough; none while nothing counts what comes. It is good until the connection ends, and says from then on that nobody knows.
    fn glance(self) -> Option<Self::Glance>;

    /// Whether a receive would find something that the kernel does not tell of: bytes in the window, or an entry of the ledger that was not come to.
    /// No system call.
    fn has_news(self) -> bool;

    /// How many bytes were received by this side. Where no sender knows the set's sleeper, an edge is reported again when this changed.
    fn taken_bytes(self) -> u64;

    /// A number that changes behind each arrival, while the sender knows a sleeper. An edge is reported again when this changed.
    fn arrivals(self) -> u64;

    /// Whether bytes can come by the window at all. While this is false, what the kernel says is the whole truth.
    fn may_have_news(self) -> bool;

    /// Adds whom the sender rings; false where there is no place.
    fn add_sleeper(self, sleeper: &Self::Sleeper) -> bool;

    /// Takes back one [`Self::add_sleeper`]. Does nothing for a sleeper that the connection does not have.
    fn remove_sleeper(self, sleeper: &Self::Sleeper);
}

/// A look at a window that costs two loads.
pub trait Glance: Send + Sync + 'static {
    /// Whether nothing has come since [`Watched::has_news`] said so. False where that is not known.
    fn is_empty_still(&self) -> bool;
}

/// Whom senders ring: a thread or a set. Its bell is readable from a ring to the next [`Self::clear`].
pub trait Sleeper: Send + Sync + 'static {
    /// What stands in the set, or in the list of the poll.
    fn bell(&self) -> BorrowedFd<'_>;

    /// Says that a thread is about to sleep, and passes a barrier against the senders' looks. The caller looks once more behind it. A sender rings
    /// once for an announcement, so a further one has it ring again. Each is taken back once.
    fn announce(&self);

    /// Takes one announcement back. The sleeper stays announced while there are others.
    fn withdraw(&self);

    /// Whether the descriptor is the bell's still. A thread asks that before it sleeps.
    fn is_whole(&self) -> bool;

    /// Makes the bell unreadable. False where the descriptor is not the bell's any more.
    fn clear(&self) -> bool;

    /// The same with the next announcement at the latest, where the bell stands in nothing that is looked at before.
    fn clear_at_next_sleep(&self) {
        self.clear();
    }

    /// Rings its own bell, announced or not.
    fn ring(&self);
}

/// What a number in the list of a poll is.
#[derive(Debug)]
pub enum Found<W, P> {
    /// No connection that could leave the kernel.
    Unknown,
    /// A listener: what comes there comes over a network, and may be told late.
    Listener,
    /// A connection of which the kernel knows everything, and will while the pass is kept.
    Kernel(P),
    /// A connection whose bytes may come by a window.
    Watched(W),
}

/// The connections of a process, by number.
pub trait Connections {
    type Watched: Watched;
    /// Keeps a connection with the kernel until it is dropped.
    type Pass;

    /// Whether any number may be a connection at all. One load.
    fn are_any(&self) -> bool;

    fn find(&self, number: RawFd) -> Found<Self::Watched, Self::Pass>;

    /// Whether a number is a connection that sends by its window. The kernel has nothing of it then that is not taken, so it has room: a window that is full
    /// sends its sender there.
    fn is_writable(&self, number: RawFd) -> bool;

    /// Has a connection go back to the kernel for ever: a poll watches it that no sender can wake.
    fn forbid(&self, number: RawFd);
}
