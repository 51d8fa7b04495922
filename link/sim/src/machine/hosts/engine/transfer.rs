//! One transfer, as its program tells it, and how far it has come.

use super::super::Region;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From memory of the engine's host, by posted writes.
    Out,
    /// Into memory of the engine's host, by requests that the other one's root complex answers.
    In,
}

/// What an engine is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// By this it is aborted, and its status says it. No other transfer that the engine has is to have the same.
    pub number: u32,
    pub way: Way,
    /// Memory of the engine's host, and where in it the bytes begin.
    pub local: (Region, usize),
    /// The address of the other bytes in the fabric.
    pub remote: u64,
    pub bytes: u64,
    /// The address of a word across that is read when all has left. Its answer comes behind what was written, so without one "done" says
    /// only that all has left.
    pub answer: Option<u64>,
    /// Memory of the engine's host, and where in it the status is stored, behind all that lands there: a word of
    /// [`Outcome::word`], then the word that was read across.
    pub status: (Region, usize),
}

/// How a transfer has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done = 1,
    /// It was aborted before all of it had begun.
    Aborted = 2,
    /// An answer was lost, or was that there is no such memory.
    Failed = 3,
}

impl Outcome {
    /// The status word of a transfer of this number, which is never zero.
    pub fn word(self, number: u32) -> u64 {
        u64::from(number) << 32 | self as u64
    }

    /// How the transfer of this number has ended, if a status word says so.
    pub fn of(word: u64, number: u32) -> Option<Outcome> {
        let all = [Outcome::Done, Outcome::Aborted, Outcome::Failed];
        all.into_iter().find(|outcome| outcome.word(number) == word)
    }
}

#[derive(Debug)]
pub(super) struct Job {
    pub transfer: Transfer,
    pub is_begun: bool,
    /// Bytes that are under way or have been moved.
    pub begun_bytes: u64,
    /// Writes that have not left, and requests that are not answered.
    pub owed: u32,
    pub is_aborted: bool,
    pub has_failed: bool,
    pub has_asked: bool,
    /// What the word across was.
    pub shown: u64,
}

impl Job {
    pub(super) fn new(transfer: Transfer) -> Self {
        Job {
            transfer,
            is_begun: false,
            begun_bytes: 0,
            owed: 0,
            is_aborted: false,
            has_failed: false,
            has_asked: false,
            shown: 0,
        }
    }

    /// Whether nothing more of it begins.
    pub(super) fn is_all_begun(&self) -> bool {
        self.is_aborted || self.has_failed || self.begun_bytes == self.transfer.bytes
    }

    fn is_moved(&self) -> bool {
        self.is_begun && self.is_all_begun() && self.owed == 0
    }

    /// Whether the word behind it is to be asked for.
    pub(super) fn can_ask(&self) -> bool {
        self.is_moved() && self.transfer.answer.is_some() && !self.has_asked
    }

    pub(super) fn has_ended(&self) -> bool {
        self.is_moved() && (self.transfer.answer.is_none() || self.has_asked)
    }

    pub(super) fn outcome(&self) -> Outcome {
        match (self.has_failed, self.begun_bytes == self.transfer.bytes) {
            (true, _) => Outcome::Failed,
            (false, true) => Outcome::Done,
            (false, false) => Outcome::Aborted,
        }
    }
}
