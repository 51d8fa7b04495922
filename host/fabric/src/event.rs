//! What happens to segments.
//!
//! Nothing is queued: a member keeps what it has told and what it sees, and the next event is the difference. So whoever does not
//! ask cannot make it run out of memory, and nobody who asks misses where things stand.

use crate::ids::{AdapterNumber, NodeId};
use crate::refusal::Refusal;

/// What happens to a segment of this member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalEvent {
    /// A member of this node has connected to it.
    Connect(NodeId),
    /// A member of this node has disconnected from it.
    Disconnect(NodeId),
    /// A connection has ended with the member of this node that had it.
    Lost(NodeId),
    /// The link of this member's adapter is down, by which the segment is prepared.
    NotOperational(AdapterNumber),
    /// The link of this member's adapter is up again.
    Operational(AdapterNumber),
}

/// What happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteEvent {
    /// It is made; the segment has so many bytes. Only of connections that are made asynchronously.
    Connect(u64),
    /// It cannot be made. Only of connections that are made asynchronously.
    NotMade(Refusal),
    /// A link is down.
    NotOperational,
    /// The links are up again.
    Operational,
    /// The segment's member asks to be disconnected from ([`Call::Notify`](crate::Call::Notify)). It stays as it is.
    Disconnect,
    /// The segment or its member is gone, for ever.
    Lost,
}
