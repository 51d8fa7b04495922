//! Between what a job copies.

use crate::ids::{LocalSegment, RemoteSegment};

/// Which way a job copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaDirection {
    /// From the local segment to the remote one.
    Write,
    /// From the remote segment to the local one.
    Read,
}

/// The segments of a job, and which way it copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaSides {
    pub local: LocalSegment,
    pub remote: RemoteSegment,
    pub direction: DmaDirection,
}
