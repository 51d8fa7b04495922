//! What a service asks of the items, whether one thread has them or several share them.

use beeline_rpc::Request;

use crate::item_page::Found;
use crate::key::Key;

/// Items by key, for one thread.
pub(crate) trait Table {
    /// Hands the value of a key to `found`, where it lies.
    fn get<R>(&self, key: Key, found: impl FnOnce(Option<Found<'_>>) -> R) -> R;

    /// Stores the value of `bytes` bytes that a SET carries behind its key; if it is refused, the last one stays.
    fn set(&mut self, key: Key, request: &mut Request<'_>, bytes: usize) -> Result<(), Refused>;

    /// Removes a key; whether it was there.
    fn delete(&mut self, key: Key) -> bool;

    /// Keys that are there.
    fn items(&self) -> u64;

    /// Memory in use.
    fn used_bytes(&self) -> u64;
}

/// There is no memory for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) used_bytes: u64,
    pub(crate) max_bytes: u64,
    pub(crate) needed_bytes: u64,
}
