//! DMA queues: one job at a time, whose bytes whoever has time copies piece by piece (eXpressWare, SISCI: DMA).
//!
//! A queue is a process's own affair: it uses segments, and no other member learns of it. So it is no part of the member, and whoever
//! copies asks it for the next piece. Whoever waits for a job can copy, too: handing all over would cost a sleeper's wake-up.

mod pieces;
mod sides;

use alloc::vec::Vec;

use pieces::Pieces;
pub use pieces::{DmaEntry, PIECE_BYTES, Piece};
pub use sides::{DmaDirection, DmaSides};

use crate::refusal::Refusal;

/// The most entries of one job.
pub const MAX_DMA_ENTRIES: usize = 65_536;

/// How a queue stands; the numbers are SISCI's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum DmaState {
    /// Nothing has been started.
    Idle = 0,
    /// Entries are gathered for a job that is to be posted.
    Gather = 1,
    /// A job is under way.
    Posted = 2,
    /// All bytes of the last job were copied.
    Done = 3,
    /// The last job was ended before that; some of its bytes may have been copied.
    Aborted = 4,
    /// The last job failed; some of its bytes may have been copied.
    Error = 5,
}

/// A queue, as a state machine.
#[derive(Debug)]
pub struct DmaQueue {
    /// The most entries that are gathered for a job.
    max_entries: usize,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Idle,
    /// All entries are between the same segments.
    Gathering(DmaSides, Vec<DmaEntry>),
    Posted(Job),
    Ended(Result<(), Ended>),
}

/// Why a job has not copied all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Aborted,
    Failed(Refusal),
}

#[derive(Debug)]
struct Job {
    pieces: Pieces,
    /// Pieces that somebody copies at this moment.
    under_way: u32,
    ended: Option<Ended>,
}

impl DmaQueue {
    /// A queue that gathers so many entries at most.
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: none, or more than [`MAX_DMA_ENTRIES`].
    pub fn new(max_entries: usize) -> Result<Self, Refusal> {
        match max_entries {
            1..=MAX_DMA_ENTRIES => Ok(DmaQueue { max_entries, stage: Stage::Idle }),
            _ => Err(Refusal::IllegalParameter),
        }
    }

    /// How the queue stands.
    pub fn state(&self) -> DmaState {
        match &self.stage {
            Stage::Idle => DmaState::Idle,
            Stage::Gathering(..) => DmaState::Gather,
            Stage::Posted(_) => DmaState::Posted,
            Stage::Ended(Ok(())) => DmaState::Done,
            Stage::Ended(Err(Ended::Aborted)) => DmaState::Aborted,
            Stage::Ended(Err(Ended::Failed(_))) => DmaState::Error,
        }
    }

    /// Why the last job failed; nothing if it did not.
    pub fn failure(&self) -> Option<Refusal> {
        match self.stage {
            Stage::Ended(Err(Ended::Failed(refusal))) => Some(refusal),
            _ => None,
        }
    }

    /// Starts a job with these entries.
    ///
    /// # Errors
    /// [`Refusal::Busy`] while another is under way, [`Refusal::IllegalOperation`] while entries are gathered,
    /// [`Refusal::IllegalParameter`] for none or more than [`MAX_DMA_ENTRIES`].
    pub fn start(&mut self, entries: Vec<DmaEntry>) -> Result<(), Refusal> {
        self.can_start()?;
        if entries.is_empty() || entries.len() > MAX_DMA_ENTRIES {
            return Err(Refusal::IllegalParameter);
        }
        self.begin(entries);
        Ok(())
    }

    /// Whether a job can be started now.
    ///
    /// # Errors
    /// Those of [`DmaQueue::start`], but for the entries.
    pub fn can_start(&self) -> Result<(), Refusal> {
        match self.stage {
            Stage::Idle | Stage::Ended(_) => Ok(()),
            Stage::Posted(_) => Err(Refusal::Busy),
            Stage::Gathering(..) => Err(Refusal::IllegalOperation),
        }
    }

    /// Puts an entry to those that are gathered.
    ///
    /// # Errors
    /// [`Refusal::MaxEntries`], or [`Refusal::IllegalOperation`] while a job is under way or until the last one's end is
    /// [reset](DmaQueue::reset), and for other segments or another direction than those of the entries before.
    pub fn gather(&mut self, sides: DmaSides, entry: DmaEntry) -> Result<(), Refusal> {
        match &mut self.stage {
            Stage::Idle => self.stage = Stage::Gathering(sides, [entry].into()),
            Stage::Gathering(of, _) if *of != sides => return Err(Refusal::IllegalOperation),
            Stage::Gathering(_, entries) if entries.len() >= self.max_entries => {
                return Err(Refusal::MaxEntries);
            }
            Stage::Gathering(_, entries) => entries.push(entry),
            Stage::Posted(_) | Stage::Ended(_) => return Err(Refusal::IllegalOperation),
        }
        Ok(())
    }

    /// The entries that are gathered, and between what they are.
    pub fn gathered(&self) -> Option<(DmaSides, &[DmaEntry])> {
        match &self.stage {
            Stage::Gathering(sides, entries) => Some((*sides, entries)),
            _ => None,
        }
    }

    /// Starts a job with the entries that were gathered.
    ///
    /// # Errors
    /// [`Refusal::IllegalOperation`]: there are none.
    pub fn post(&mut self) -> Result<(), Refusal> {
        match core::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Gathering(_, entries) => {
                self.begin(entries);
                Ok(())
            }
            stage => {
                self.stage = stage;
                Err(Refusal::IllegalOperation)
            }
        }
    }

    /// Forgets the entries that were gathered, and the end of the last job.
    ///
    /// # Errors
    /// [`Refusal::IllegalOperation`] while a job is under way.
    pub fn reset(&mut self) -> Result<(), Refusal> {
        if let Stage::Posted(_) = self.stage {
            return Err(Refusal::IllegalOperation);
        }
        self.stage = Stage::Idle;
        Ok(())
    }

    /// Ends a job: no piece of it is begun any more. It is aborted once those under way are copied, and done if they were its last ones.
    /// Entries that were gathered are forgotten; a job that has ended stays as it ended.
    ///
    /// # Errors
    /// [`Refusal::IllegalOperation`]: nothing has been started.
    pub fn abort(&mut self) -> Result<(), Refusal> {
        match &mut self.stage {
            Stage::Idle => return Err(Refusal::IllegalOperation),
            Stage::Gathering(..) => self.stage = Stage::Idle,
            Stage::Posted(job) if job.pieces.is_empty() => {}
            Stage::Posted(job) => {
                job.ended.get_or_insert(Ended::Aborted);
                self.settle();
            }
            Stage::Ended(_) => {}
        }
        Ok(())
    }

    /// A piece to be copied by whoever asks, who says afterwards [what came of it](DmaQueue::copied).
    pub fn next_piece(&mut self) -> Option<Piece> {
        let Stage::Posted(job) = &mut self.stage else { return None };
        if job.ended.is_some() {
            return None;
        }
        let piece = job.pieces.next()?;
        job.under_way += 1;
        Some(piece)
    }

    /// Whether there is a piece to be copied.
    pub fn has_piece(&self) -> bool {
        matches!(&self.stage, Stage::Posted(job) if job.ended.is_none() && !job.pieces.is_empty())
    }

    /// A piece was copied, or was not: then no further one of its job is. Whether the job has ended with it.
    pub fn copied(&mut self, outcome: Result<(), Refusal>) -> bool {
        let Stage::Posted(job) = &mut self.stage else { return false };
        job.under_way = job.under_way.saturating_sub(1);
        if let Err(refusal) = outcome {
            // What failed is not hidden by an abort.
            if job.ended.is_none_or(|ended| ended == Ended::Aborted) {
                job.ended = Some(Ended::Failed(refusal));
            }
        }
        self.settle()
    }

    /// An abort has ended a piece that was being copied, and some of it was not. Whether the job has ended with it.
    pub fn cut(&mut self) -> bool {
        let Stage::Posted(job) = &mut self.stage else { return false };
        job.under_way = job.under_way.saturating_sub(1);
        job.ended.get_or_insert(Ended::Aborted);
        self.settle()
    }

    fn begin(&mut self, entries: Vec<DmaEntry>) {
        self.stage = Stage::Posted(Job { pieces: Pieces::new(entries), under_way: 0, ended: None });
        // Entries may be of no bytes.
        self.settle();
    }

    /// Whether a job has ended now.
    fn settle(&mut self) -> bool {
        let Stage::Posted(Job { pieces, under_way: 0, ended }) = &self.stage else { return false };
        let ended = match ended {
            Some(ended) => Err(*ended),
            None if pieces.is_empty() => Ok(()),
            None => return false,
        };
        self.stage = Stage::Ended(ended);
        true
    }
}

#[cfg(test)]
mod tests;
