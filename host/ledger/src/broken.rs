//! What the other side cannot have said.

use thiserror::Error;

/// The other side has broken the rules of the ledger, so that which byte comes next is not known any more. The connection is to be reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Broken {
    /// An entry that is of no kind.
    #[error("entry {index} of the ledger is of no kind ({word:#x})")]
    Kind { index: u64, word: u64 },
    /// An entry that cannot come where it does.
    #[error(
        "entry {index} of the ledger changes to a path on which the stream is already, or resumes where it cannot"
    )]
    Order { index: u64 },
    /// An entry behind bytes that were taken.
    #[error("entry {index} of the ledger is at byte {offset}, and {taken} bytes were taken")]
    Offset { index: u64, offset: u64, taken: u64 },
    /// The socket ended, or gave bytes, where the ledger has neither.
    #[error("the socket ended or gave bytes that the ledger does not know of, behind byte {taken}")]
    Socket { taken: u64 },
    /// More entries passed than there are, or fewer than before.
    #[error("{passed} entries were passed of {published}, after {before}")]
    Passed { passed: u64, published: u64, before: u64 },
    /// More bytes taken than were sent, or fewer than before.
    #[error("{cursor} bytes were taken of {sent}, after {before}")]
    Cursor { cursor: u64, sent: u64, before: u64 },
}
