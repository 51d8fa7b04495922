//! The two ends of a window's credits, over the sender's credit page and the window's control page.
//!
//! | word | lies in | written by | looked at by |
//! |---|---|---|---|
//! | `freed_lines` | the sender's credit page | the receiver | the sender, local load |
//! | `receiver_waiting` | the sender's credit page | the receiver | the sender after each message, local load ([`crate::PeerWindow`]) |
//! | `sender_waiting` | the window's control page (receiver) | the sender | the receiver after each push, local load |
//!
//! So nobody loads across to the other side, neither to send nor to free (docs/design.md, decision 3). The count is not
//! checked here: who counts lines, the writer, is who can tell a wild or backward credit.

use std::sync::Arc;

use beeline_contract_memory::{CreditSink, CreditSource};
use beeline_mmio::{Region, Word};
use beeline_spec::formats::{credit_page, window_control};

use crate::connection::Connection;
use crate::{MemorySleeper, Offer, Peer, Waker};

/// The sender's end: reads credits from its own credit page.
#[derive(Debug)]
pub struct MemoryCredits {
    /// The window is this sender's as long as the connection stands; it ends with the credits, so with the writer. Dropped before any
    /// memory: the receiver hears of the end while that is unmapped.
    _connection: Option<Arc<Connection>>,
    freed_lines: Word,
    peer: Peer,
    /// The lines, so that they are not unmapped before.
    _window: Option<Region>,
}

impl MemoryCredits {
    pub(crate) fn new(credit_page: &Region, peer: &Peer) -> Self {
        let freed_lines = credit_page.word(credit_page::FREED_LINES_OFFSET);
        MemoryCredits { _connection: None, freed_lines, peer: peer.clone(), _window: None }
    }

    /// With the memory of the window, which goes after what ends the connection.
    pub(crate) fn of_window(self, window: Region) -> Self {
        MemoryCredits { _window: Some(window), ..self }
    }

    /// With the connection that ends when these credits are dropped.
    pub(crate) fn holding(self, connection: Connection) -> Self {
        MemoryCredits { _connection: Some(Arc::new(connection)), ..self }
    }

    /// The receiver's process.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }
}

impl CreditSource for MemoryCredits {
    #[inline]
    fn freed_lines(&mut self) -> u64 {
        // Acquire: pairs with `publish` below, in the receiver's process.
        self.freed_lines.load_acquire()
    }
}

/// The receiver's end: pushes credits into the sender's memory, and wakes the sender.
#[derive(Debug)]
pub struct MemoryCreditSink {
    freed_lines: Word,
    sender: Waker,
    peer: Peer,
    /// Keeps the connection's owner, and so the connection, for as long as the window is read.
    offer: Option<Arc<Offer>>,
    /// Whether the sender is disconnected when this is dropped: without a receiver nobody frees lines any more.
    disconnects: bool,
}

impl MemoryCreditSink {
    pub(crate) fn new(credit_page: &Region, window: &Region, peer: &Peer) -> Self {
        MemoryCreditSink {
            freed_lines: credit_page.word(credit_page::FREED_LINES_OFFSET),
            sender: Waker::new(window.flag(window_control::SENDER_WAITING_OFFSET), peer),
            peer: peer.clone(),
            offer: None,
            disconnects: false,
        }
    }

    /// As it is, but it disconnects the sender when it is dropped.
    pub(crate) fn disconnecting(mut self) -> Self {
        self.disconnects = true;
        self
    }

    pub(crate) fn keep(&mut self, offer: Arc<Offer>) {
        self.offer = Some(offer);
    }

    /// The sender's process.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }
}

impl CreditSink for MemoryCreditSink {
    #[inline]
    fn publish(&mut self, freed_lines: u64) {
        // Release: pairs with `freed_lines` above, in the sender's process: the lines are blank before they are free.
        self.freed_lines.store_release(freed_lines);
        self.sender.wake_if_asleep();
    }
}

impl Drop for MemoryCreditSink {
    /// Without a receiver nobody frees lines any more; the sender learns it from the connection.
    fn drop(&mut self) {
        if self.disconnects {
            self.peer.disconnect();
        }
    }
}

/// Wakes a receiver that sleeps for messages.
pub(crate) fn receiver_waker(credit_page: &Region, peer: &Peer) -> Waker {
    Waker::new(credit_page.flag(credit_page::RECEIVER_WAITING_OFFSET), peer)
}

/// The receiver sleeps for messages on the word in the sender's page that the sender looks at.
pub(crate) fn receiver_sleeper(credit_page: &Region, peer: &Peer) -> MemorySleeper {
    MemorySleeper::new(credit_page.flag(credit_page::RECEIVER_WAITING_OFFSET), peer)
}

/// The sender sleeps for credits on the word in the receiver's page that the receiver looks at.
pub(crate) fn sender_sleeper(window: &Region, peer: &Peer) -> MemorySleeper {
    MemorySleeper::new(window.flag(window_control::SENDER_WAITING_OFFSET), peer)
}
