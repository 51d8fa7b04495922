//! What a program says of a message queue, and is told.

use beeline_fabric::{AdapterNumber, NodeId, SegmentId};
pub use beeline_window::Sent;

/// What the two ends of a message queue say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// The node of the other end.
    pub node: NodeId,
    /// The adapter by which this end goes there, and over which its own segment can be connected to.
    pub adapter: AdapterNumber,
    /// The segment that this end makes, a number of its own node.
    pub local: SegmentId,
    /// The segment that the other end makes, a number of the other node.
    pub remote: SegmentId,
    /// How many of the longest messages this end takes in before the other one has to wait.
    pub max_messages: u32,
    pub max_message_bytes: u32,
}

/// What a receive has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Received {
    /// All the bytes that were asked for.
    All,
    /// Fewer have come, and none was taken.
    TooFew,
}
