//! What a program is told outside its calls.

use crate::call::Value;
use crate::event::{LocalEvent, RemoteEvent};
use crate::ids::{LocalSegment, RemoteSegment, Ticket};
use crate::refusal::Refusal;

/// Something for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// What came of a call that waited.
    Outcome(Ticket, Result<Value, Refusal>),
    /// An event of a segment that has a callback.
    OfLocal(LocalSegment, LocalEvent),
    /// An event of a connection that has a callback.
    OfRemote(RemoteSegment, RemoteEvent),
}
