//! How much memory a port has in this process: counted when it is made, until the loop has let go of it.
//!
//! Memory is made on the thread that answers the host and dropped on the loop's, some time later. Counting it by what
//! the host has open would let a host that opens and closes faster than the loop looks have any amount of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::error::ControlError;

/// The account of one port.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    used: Arc<Used>,
    limit: u64,
}

/// What is mapped, or about to be.
#[derive(Debug, Default)]
struct Used {
    bytes: AtomicU64,
    mappings: AtomicU32,
}

impl Account {
    /// Starts an account of which nothing of the `limit` bytes is used.
    pub(crate) fn new(limit: u64) -> Self {
        Account { used: Arc::default(), limit }
    }

    /// Bytes that are mapped, or about to be.
    pub(crate) fn used(&self) -> u64 {
        // Acquire: what was given back is unmapped. Pairs with the drop of a charge.
        self.used.bytes.load(Ordering::Acquire)
    }

    /// Mappings that there are, or are about to be.
    pub(crate) fn mappings(&self) -> u32 {
        // Acquire: as for the bytes.
        self.used.mappings.load(Ordering::Acquire)
    }

    /// Charges the account before memory is made; `regions` is only said in the error.
    pub(crate) fn charge(&self, bytes: u64, regions: usize) -> Result<Charge, ControlError> {
        let used = self.used();
        if bytes > self.limit.saturating_sub(used) {
            return Err(ControlError::TooMuchMemory { asked: bytes, used, limit: self.limit, regions });
        }
        // Relaxed: one thread charges, others only give back, so it is still within the limit.
        self.used.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.used.mappings.fetch_add(1, Ordering::Relaxed);
        Ok(Charge { used: Arc::clone(&self.used), bytes })
    }
}

/// Bytes charged. It is kept beside the mapping it stands for and dropped after it.
#[derive(Debug)]
pub(crate) struct Charge {
    used: Arc<Used>,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        // Release: the mapping is gone before it is counted as gone. Pairs with the load in `Account::used`.
        self.used.bytes.fetch_sub(self.bytes, Ordering::Release);
        self.used.mappings.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_can_be_had_again_and_no_more() {
        let account = Account::new(100);
        let (first, second) = (account.charge(60, 0).unwrap(), account.charge(40, 1).unwrap());
        assert!(matches!(
            account.charge(1, 2),
            Err(ControlError::TooMuchMemory { asked: 1, used: 100, limit: 100, regions: 2 })
        ));
        drop(first);
        assert!(account.charge(u64::MAX, 1).is_err() && account.charge(61, 1).is_err());
        let third = account.charge(60, 1).unwrap();
        drop((second, third));
        assert_eq!((account.used(), account.mappings()), (0, 0));
    }
}
