//! What a receiver is in the middle of.

use beeline_spec::Header;
use beeline_spec::batch::Cursor;

use crate::error::ReceiveError;

/// What a receiver is in the middle of, on its long way.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// No message has begun.
    Start,
    /// The header is known and this many lines have arrived.
    Arriving { header: Header, arrived_lines: u32 },
    /// A message is in the caller's hands.
    Delivered { header: Header },
    /// A batch, of which records are being handed out.
    Batch { lines: u32, cursor: Cursor },
    /// Final.
    Failed(ReceiveError),
}
