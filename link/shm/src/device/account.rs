//! How much memory a port has in this process: counted when it is made, until the loop has let go of it.
//!
//! Memory is made on the thread that answers the host and dropped on the loop's, some time later. Counting it by what
//! the host has open would let a host that opens and closes faster than the loop looks have any amount of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::ControlError;

/// The account of one port.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    used: Arc<AtomicU64>,
    limit: u64,
}

impl Account {
    /// Starts an account of which nothing of the `limit` bytes is used.
    pub(crate) fn new(limit: u64) -> Self {
        Account { used: Arc::default(), limit }
    }

    /// Bytes that are mapped, or about to be.
    pub(crate) fn used(&self) -> u64 {
        // Acquire: what was given back is unmapped. Pairs with the drop of a charge.
        self.used.load(Ordering::Acquire)
    }

    /// Charges the account before memory is made; `regions` is only said in the error.
    pub(crate) fn charge(&self, bytes: u64, regions: usize) -> Result<Charge, ControlError> {
        let used = self.used();
        if bytes > self.limit.saturating_sub(used) {
            return Err(ControlError::TooMuchMemory { asked: bytes, used, limit: self.limit, regions });
        }
        // Relaxed: one thread charges, others only give back, so it is still within the limit.
        self.used.fetch_add(bytes, Ordering::Relaxed);
        Ok(Charge { used: Arc::clone(&self.used), bytes })
    }
}

/// Bytes charged. It is kept beside the mapping it stands for and dropped after it.
#[derive(Debug)]
pub(crate) struct Charge {
    used: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        // Release: the mapping is gone before it is counted as gone. Pairs with the load in `Account::used`.
        self.used.fetch_sub(self.bytes, Ordering::Release);
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
        assert_eq!(account.used(), 0);
    }
}
