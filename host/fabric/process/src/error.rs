//! What can go wrong outside the semantics.

use beeline_domain::{DomainError, OfferError, RegistryError};
use beeline_fabric::Refusal;
use beeline_mmio::{MapError, RegisterError, SegmentError};

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
}
