//! What can go wrong outside the semantics.

use beeline_domain::{DomainError, OfferError, RegistryError};
use beeline_fabric::Refusal;
use beeline_mmio::{BarPartError, MapError, RegisterError, SegmentError};

use crate::words::WordsError;

/// Why a process does not become a member.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The domain of the fabric cannot be opened.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The names of its node are not to be had.
    #[error(transparent)]
    Names(#[from] RegistryError),
    /// Others cannot reach it.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// There is no memory for what it publishes.
    #[error(transparent)]
    Words(#[from] WordsError),
    /// There is no memory for its segments.
    #[error("the bank of segments: {0}")]
    Bank(MapError),
    /// The kernel gives no random numbers.
    #[error("no random number: {0}")]
    Random(getrandom::Error),
}

/// Why a part of a segment is not mapped.
#[derive(Debug, thiserror::Error)]
pub enum NotMapped {
    /// The segment does not allow it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The kernel does not.
    #[error(transparent)]
    Memory(#[from] SegmentError),
    /// The memory says nothing of its pages.
    #[error("the memory of the segment: {0}")]
    Unexamined(MapError),
    /// A map was to be uncached.
    #[error(
        "the segment is of memory of the host, which programs have through the caches alone: ask for an uncached map of segments of devices"
    )]
    Cached,
}

/// Why a segment is not made.
#[derive(Debug, thiserror::Error)]
pub enum NotCreated {
    /// The fabric does not allow it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There is no memory of the kind that the member's [`Terms`](crate::Terms) ask for.
    #[error(transparent)]
    Memory(#[from] MapError),
}

/// Why memory of the program is not behind a segment.
#[derive(Debug, thiserror::Error)]
pub enum NotRegistered {
    /// The segment does not allow it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The memory does not.
    #[error(transparent)]
    Memory(#[from] RegisterError),
    /// No device has it, or this process may not have it.
    #[error(transparent)]
    Device(#[from] BarPartError),
}
