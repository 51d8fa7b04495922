//! What an engine brings into memory of its own host.

/// Bytes for memory of the engine's host, until loads see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Landing {
    pub address: u64,
    pub bytes: Vec<u8>,
}
