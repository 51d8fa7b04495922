//! Why there is no store, and why a client has no answer.

use beeline_domain::{Absence, MayArrive};
use beeline_rpc::{CallError, CallFailure, RpcError, StartError};

/// Reasons for which a store cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// An option is out of bounds.
    #[error("{option} = {value}; it must be {bounds}")]
    Option { option: &'static str, value: u64, bounds: &'static str },
    /// The system does not let the process have so much memory.
    #[error("a store of {max_bytes} bytes: {why}")]
    Memory { max_bytes: u64, why: String },
    /// The system has no random number for the keys of the hash.
    #[error("the system gives no random number to hash keys with: {why}")]
    Random { why: String },
}

/// Reasons for which an operation was not done.
#[derive(Debug, thiserror::Error)]
pub enum KvError {
    /// There is no server of this name, or it refuses.
    #[error(transparent)]
    Connect(#[from] RpcError),
    /// The call failed on its way.
    #[error(transparent)]
    Call(#[from] CallFailure),
    /// The store's memory is used up; the value was not stored, and what the key had is unchanged.
    #[error(
        "the store is full: {used_bytes} of {max_bytes} bytes are used and this value needs {needed_bytes} more; \
         delete something, or serve with more memory"
    )]
    Full {
        /// Bytes in use.
        used_bytes: u64,
        max_bytes: u64,
        /// Bytes that would be needed besides.
        needed_bytes: u64,
    },
    /// The value is longer than this store takes.
    #[error("a value of {bytes} bytes; this store takes at most {max_bytes}")]
    ValueTooLong {
        bytes: u64,
        /// The bound.
        max_bytes: u64,
    },
    /// Whoever offers this name is no key-value store, or one of another version.
    #[error("what is served under this name is no key-value store of this version: {what}")]
    NotAStore { what: String },
}

impl MayArrive for KvError {
    fn absence(&self) -> Option<Absence> {
        if let KvError::Connect(error) = self { error.absence() } else { None }
    }
}

impl From<StartError> for KvError {
    fn from(error: StartError) -> Self {
        KvError::Call(error.into())
    }
}

impl From<CallError> for KvError {
    fn from(error: CallError) -> Self {
        KvError::Call(error.into())
    }
}
