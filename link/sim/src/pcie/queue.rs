//! Packets that wait for the wire, and which of them goes next.

use std::collections::VecDeque;

use super::ordering::{MayPass, may_pass};
use super::{Class, Credits, Tlp};

/// A queue that lets a packet pass others where it has credits, they have none, and the ordering table permits it.
///
/// The oldest packet goes if its credits are there: nothing passes without need. Otherwise it is the oldest of those that
/// may go. Within a class, packets keep their order unless `look_ahead` says how far behind the first one the queue looks;
/// the table forbids no transmitter to be that strict, and between classes the queue always looks, or it would deadlock.
///
/// Taking costs a few comparisons while the oldest packet has credits. Otherwise it costs one for each older packet that a
/// candidate would pass. Memory grows to the most packets that ever waited and stays.
#[derive(Debug)]
pub struct TransmitQueue {
    classes: [VecDeque<Waiting>; 3],
    arrived: u64,
    look_ahead: usize,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    tlp: Tlp,
}

impl TransmitQueue {
    /// An empty queue that looks at the first packet of a class and `look_ahead` behind it.
    pub fn new(look_ahead: usize) -> TransmitQueue {
        TransmitQueue { classes: Default::default(), arrived: 0, look_ahead }
    }

    /// A packet comes last.
    #[inline]
    pub fn push(&mut self, tlp: Tlp) {
        self.classes[tlp.kind.class() as usize].push_back(Waiting { number: self.arrived, tlp });
        self.arrived += 1;
    }

    /// The packet that goes next; its credits are taken. `None` if none may go.
    #[inline]
    pub fn take(&mut self, credits: &mut Credits) -> Option<Tlp> {
        let oldest = self.oldest()?;
        if let Some(waiting) = self.classes[oldest].front()
            && credits.take(&waiting.tlp)
        {
            return self.classes[oldest].pop_front().map(|waiting| waiting.tlp);
        }
        let (class, index) = self.oldest_that_passes(credits)?;
        let waiting = self.classes[class].remove(index)?;
        credits.take(&waiting.tlp);
        Some(waiting.tlp)
    }

    /// Packets of a class that wait.
    #[inline]
    pub fn len(&self, class: Class) -> usize {
        self.classes[class as usize].len()
    }

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.classes.iter().all(VecDeque::is_empty)
    }

    /// The class of the packet that came first.
    #[inline]
    fn oldest(&self) -> Option<usize> {
        let mut oldest = None;
        for (class, waiting) in self.classes.iter().enumerate() {
            if let Some(front) = waiting.front()
                && oldest.is_none_or(|(number, _)| front.number < number)
            {
                oldest = Some((front.number, class));
            }
        }
        oldest.map(|(_, class)| class)
    }

    fn oldest_that_passes(&self, credits: &Credits) -> Option<(usize, usize)> {
        let mut best: Option<(u64, usize, usize)> = None;
        for (class, waiting) in self.classes.iter().enumerate() {
            for (index, candidate) in waiting.iter().enumerate().take(self.look_ahead + 1) {
                let older = best.is_none_or(|(number, ..)| candidate.number < number);
                if older && credits.cover(&candidate.tlp) && self.may_pass_all_older(candidate) {
                    best = Some((candidate.number, class, index));
                }
            }
        }
        best.map(|(_, class, index)| (class, index))
    }

    fn may_pass_all_older(&self, candidate: &Waiting) -> bool {
        self.classes.iter().all(|waiting| {
            let older = waiting.iter().take_while(|other| other.number < candidate.number);
            older.into_iter().all(|other| may_pass(&candidate.tlp, &other.tlp) != MayPass::No)
        })
    }
}
