//! A segment of other hosts, mapped: stores that cross, and sequences that say whether they have come.

use beeline_fabric::{ConnectionView, SequenceStart, SequenceStatus};
use beeline_link_sim::machine::hosts::{HostId, LOST};

use crate::device::Device;
use crate::session::{Losses, Sessions};
use crate::words::View;

/// A part of a connected segment, or of the window of a group that the central switch copies to each of its holders. Stores are
/// write-combined: they leave in any order until a barrier.
pub struct Mapped {
    pub(crate) sessions: Sessions,
    pub(crate) address: u64,
    pub(crate) bytes: usize,
    /// Those whose memories the stores come to, as the connection knew them when this was mapped.
    pub(crate) holders: Vec<(HostId, ConnectionView<View>)>,
    /// Whose memory it is, if it is none of a host.
    pub(crate) device: Option<Device>,
}

/// How each holder stood when a sequence began, and how often its link had gone down and that of the device, whose memory it is.
#[derive(Clone, Debug)]
pub struct Start(Vec<(HostId, SequenceStart, Losses, u64)>, u64);

impl Mapped {
    /// Stores bytes, of which the first and the number are multiples of eight.
    ///
    /// # Panics
    /// If they are not, or lie outside of the part.
    pub fn copy_in(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.bytes, "a store outside the map");
        let (words, rest) = bytes.as_chunks::<8>();
        assert!(rest.is_empty() && offset.is_multiple_of(8), "stores are of words");
        let mut at = self.address + offset as u64;
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>().into_iter();
        while !words.as_slice().is_empty() {
            match words.as_slice().first_chunk() {
                Some(line) if at.is_multiple_of(64) => {
                    self.sessions.core.store_line(at, line);
                    words.nth(7);
                    at += 64;
                }
                _ => {
                    self.sessions.core.store_word(at, words.as_slice()[0]);
                    words.next();
                    at += 8;
                }
            }
        }
    }

    /// Stores a word, write-combined.
    ///
    /// # Panics
    /// If it is outside of the part.
    pub fn store_word(&self, offset: usize, value: u64) {
        self.copy_in(offset, &value.to_le_bytes());
    }

    /// The same part, stored to by one adapter, whatever others are up. What goes by any adapter goes by the first whose links are up.
    ///
    /// # Panics
    /// If this host does not have that adapter.
    #[must_use]
    pub fn by(mut self, adapter: u16) -> Mapped {
        self.sessions.core = self.sessions.core.by(adapter);
        self
    }

    /// Lets stores so far leave the core.
    pub fn flush(&self) {
        self.sessions.core.fence();
    }

    /// The address of the part in the fabric, for devices that store to it or read it.
    pub fn io_address(&self) -> u64 {
        self.address
    }

    /// How many holders there are whose memories the stores come to.
    pub fn holders(&self) -> usize {
        self.there().count()
    }

    fn there(&self) -> impl Iterator<Item = &(HostId, ConnectionView<View>)> {
        self.holders.iter().filter(|(host, view)| self.sessions.is_there(*host) && view.is_there())
    }

    /// What the switch says of the port of the device: nothing while its link is down.
    fn downs_of_device(&self) -> Option<u64> {
        self.device.map_or(Some(0), |device| self.sessions.core.downs_of(device.at))
    }

    /// Begins a sequence, if all links are up and nothing that was lost is still to be pushed anew.
    pub fn start(&self) -> (SequenceStatus, Option<Start>) {
        let mut holders = Vec::new();
        for (host, view) in self.there() {
            // A holder says what its link has lost when it looks, and the switch at once.
            match (view.start(), self.sessions.losses(*host), self.sessions.core.downs_of(*host)) {
                ((SequenceStatus::Ok, Some(start)), Some(losses), Some(downs)) => {
                    holders.push((*host, start, losses, downs));
                }
                _ => return (SequenceStatus::Pending, None),
            }
        }
        if holders.is_empty() {
            return (SequenceStatus::NotRetriable, None);
        }
        // What is stored while it is down is lost, and it does not go down again for that.
        match self.downs_of_device() {
            Some(downs) => (SequenceStatus::Ok, Some(Start(holders, downs))),
            None => (SequenceStatus::Pending, None),
        }
    }

    /// Waits until all stores so far have come to every holder that is there, and says what happened since a sequence began.
    pub fn check(&self, start: &Start) -> SequenceStatus {
        self.sessions.core.fence();
        // No read passes a write of the same source, and the host whose segment it is does not see what comes to its device.
        let answer = self.device.map_or(0, |device| self.sessions.core.load_across(device.probe()));
        for (host, ..) in &start.0 {
            // Whom it cannot confirm has no losses to compare from here on.
            let _ = self.sessions.confirm(*host);
        }
        self.found_since(start, answer == LOST)
    }

    /// The address of the word of the holder that is to be read across behind what an engine has moved, if one such word says all that
    /// [`Mapped::check`] asks for.
    pub(crate) fn probe(&self) -> Option<u64> {
        match self.holders.as_slice() {
            [(host, _)] if self.device.is_none() => Some(self.sessions.said_by(*host)),
            _ => None,
        }
    }

    /// As [`Mapped::check`], of what an engine has moved and then read, if there is [a word](Mapped::probe) to be read.
    pub(crate) fn check_behind(&self, start: &Start, says: u64) -> SequenceStatus {
        if self.probe().is_none() {
            return self.check(start);
        }
        for (host, ..) in &start.0 {
            let _ = self.sessions.confirm_behind(*host, says);
        }
        self.found_since(start, false)
    }

    /// What is known to have happened since a sequence began, once that was confirmed which is confirmed.
    fn found_since(&self, start: &Start, is_probe_lost: bool) -> SequenceStatus {
        let downs = self.downs_of_device();
        let is_device_lost = is_probe_lost || downs != Some(start.1);
        let is_up = self.sessions.core.is_link_up() && downs.is_some();
        let mut worst = SequenceStatus::NotRetriable;
        for (host, began, losses, downs) in &start.0 {
            // Whoever is gone has no use for what was stored.
            let Some((_, view)) = self.there().find(|(it, _)| it == host) else { continue };
            let now = self.sessions.core.downs_of(*host);
            let has_lost =
                is_device_lost || now != Some(*downs) || self.sessions.losses(*host) != Some(*losses);
            let found = match view.check(*began) {
                SequenceStatus::Ok if !has_lost => SequenceStatus::Ok,
                SequenceStatus::Ok if is_up && now.is_some() => SequenceStatus::Retriable,
                SequenceStatus::Ok => SequenceStatus::Pending,
                SequenceStatus::NotRetriable => continue,
                found => found,
            };
            worst = match (worst, found) {
                (SequenceStatus::NotRetriable | SequenceStatus::Ok, found) => found,
                (_, SequenceStatus::Pending) | (SequenceStatus::Pending, _) => SequenceStatus::Pending,
                (worst, _) => worst,
            };
        }
        worst
    }
}
