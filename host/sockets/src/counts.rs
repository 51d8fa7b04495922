//! What went over one end of a connection.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of one end, each written by whoever has the lock of its direction.
#[derive(Debug, Default)]
pub(crate) struct Counts([AtomicU64; COUNTS]);

const COUNTS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    SentBytes,
    SentByWindowBytes,
    ReceivedBytes,
    ReceivedByWindowBytes,
    Ups,
    Downs,
    Sleeps,
    Rings,
}

/// What went over one end of a connection since it was worth an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// By the ledger, on either path.
    pub sent_bytes: u64,
    pub sent_by_window_bytes: u64,
    pub received_bytes: u64,
    pub received_by_window_bytes: u64,
    /// How often sending left the socket, and how often it came back.
    pub ups: u64,
    pub downs: u64,
    /// How often a receiving call slept, and how often a sending one rang.
    pub sleeps: u64,
    pub rings: u64,
}

impl Counts {
    /// A plain addition: nobody else writes this count now.
    #[inline]
    pub(crate) fn add(&self, count: Count, more: u64) {
        let count = &self.0[count as usize];
        count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }

    pub(crate) fn clear(&self) {
        self.0.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    pub(crate) fn traffic(&self) -> Traffic {
        let count = |count: Count| self.0[count as usize].load(Ordering::Relaxed);
        Traffic {
            sent_bytes: count(Count::SentBytes),
            sent_by_window_bytes: count(Count::SentByWindowBytes),
            received_bytes: count(Count::ReceivedBytes),
            received_by_window_bytes: count(Count::ReceivedByWindowBytes),
            ups: count(Count::Ups),
            downs: count(Count::Downs),
            sleeps: count(Count::Sleeps),
            rings: count(Count::Rings),
        }
    }
}
