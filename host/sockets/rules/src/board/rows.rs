//! A row of this process's board: the counters of one connection, each a plain store.

use beeline_mmio::{ThisProcess, Words};

use super::carrier::Carrier;
use super::layout::{CLOSED, FREE, GENERATION, STATE_MASK, header, row};
use crate::Why;

/// The counters of one connection. It is free again when this is dropped.
///
/// A word has one writer at a time, so that counting is a load and a store: what is said of sending is said by whoever holds the connection's sending side, what is
/// said of receiving by whoever holds its receiving side. The reason and the peer are either's.
#[derive(Debug)]
pub struct Row {
    words: Words,
    header: Words,
    process: ThisProcess,
    is_kept: bool,
}

impl Row {
    /// A row that was taken, all of whose counters are zero. One that is kept can be read when its connection has ended.
    pub(super) fn new(words: Words, header: Words, process: ThisProcess, is_kept: bool) -> Self {
        Row { words, header, process, is_kept }
    }

    fn add(&self, word: usize, more: u64) {
        self.words.store(word, self.words.load(word).wrapping_add(more));
    }

    fn count(&self, first: usize, carrier: Carrier, bytes: usize) {
        let (of_bytes, of_messages) = match carrier {
            Carrier::Socket => (row::SOCKET_BYTES, row::SOCKET_MESSAGES),
            Carrier::Window => (row::WINDOW_BYTES, row::WINDOW_MESSAGES),
        };
        self.add(first + of_bytes, bytes as u64);
        self.add(first + of_messages, 1);
    }

    fn change(&self, first: usize, carrier: Carrier) {
        let now = u64::from(carrier == Carrier::Window);
        if self.words.load(first + row::CARRIER) != now {
            self.words.store(first + row::CARRIER, now);
            self.add(first + if carrier == Carrier::Window { row::UPS } else { row::DOWNS }, 1);
        }
    }

    /// A call has sent bytes. By the sending side.
    #[inline]
    pub fn sent(&self, carrier: Carrier, bytes: usize) {
        self.count(row::SENDING, carrier, bytes);
    }

    /// A datagram was dropped, since the window had no room for it. By the sending side.
    pub fn dropped(&self) {
        self.add(row::DROPPED, 1);
    }

    /// Bytes are sent by this from now on; a change is counted. By the sending side.
    pub fn sends_by(&self, carrier: Carrier) {
        self.change(row::SENDING, carrier);
    }

    /// A sleeper at the other end was woken. By the sending side.
    pub fn rang(&self) {
        self.add(row::RINGS, 1);
    }

    /// A call has received bytes. By the receiving side.
    #[inline]
    pub fn received(&self, carrier: Carrier, bytes: usize) {
        self.count(row::RECEIVING, carrier, bytes);
    }

    /// Bytes are received by this from now on; a change is counted. By the receiving side.
    pub fn receives_by(&self, carrier: Carrier) {
        self.change(row::RECEIVING, carrier);
    }

    /// A wait ended before it slept. By the receiving side.
    #[inline]
    pub fn spin_paid(&self) {
        self.add(row::SPINS, 1);
    }

    /// A wait sleeps. By the receiving side.
    pub fn slept(&self) {
        self.add(row::SLEEPS, 1);
    }

    /// Why the kernel carries the connection; `None`: it does not.
    pub fn set_why(&self, why: Option<Why>) {
        self.words.store(row::WHY, why.map_or(0, |why| why.code().into()));
    }

    /// The process at the other end.
    pub fn set_peer_pid(&self, pid: u32) {
        self.words.store(row::PEER_PID, pid.into());
    }

    /// The connection has the number `socket` now.
    pub fn set_socket(&self, socket: u32) {
        self.words.store(row::SOCKET, socket.into());
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        // A child of fork has a copy of the handle; the row is its parent's.
        if !self.process.is_this() {
            return;
        }
        let state = if self.is_kept {
            CLOSED
        } else {
            tally(&self.header, self.words.load(row::WHY));
            FREE
        };
        let generation = self.words.load(row::STATE) & !STATE_MASK;
        // Pairs with the exchange of `Board::row`: whoever takes it next finds these stores done.
        self.words.store_release(row::STATE, generation.wrapping_add(GENERATION) | state);
    }
}

/// Counts a connection that has ended and is not listed any more.
pub(super) fn tally(header: &Words, why: u64) {
    let code = usize::try_from(why).unwrap_or(usize::MAX).min(header::TALLY_COUNT - 1);
    header.raise_release(header::TALLIES + code);
}
