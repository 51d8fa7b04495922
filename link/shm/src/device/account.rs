//! How much memory a host has in this process: counted when it is made, until it was dropped.
//!
//! Memory is made on the thread that answers the host, given up on the loop's and dropped on a third, some time later. Counting it by what
//! the host has open would let a host that opens and closes faster than the loop looks have any amount of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::error::ControlError;

/// How much memory somebody may have mapped in this process: a port, or all ports of a process or a user. Clones are the same
/// account.
#[derive(Clone, Debug)]
pub struct MemoryAccount {
    used: Arc<Used>,
    limit: u64,
}

/// What is mapped, or about to be.
#[derive(Debug, Default)]
struct Used {
    bytes: AtomicU64,
    mappings: AtomicU32,
}

impl MemoryAccount {
    /// Starts an account of which nothing of the `limit` bytes is used.
    pub fn new(limit: u64) -> Self {
        MemoryAccount { used: Arc::default(), limit }
    }

    /// The bytes that may be used.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that are mapped, or about to be.
    pub fn used(&self) -> u64 {
        // Acquire: what was given back is unmapped. Pairs with the drop of a charge.
        self.used.bytes.load(Ordering::Acquire)
    }

    /// Whether nobody else has this account any more, nor anything that was charged to it.
    pub fn is_closed(&self) -> bool {
        Arc::strong_count(&self.used) == 1
    }

    /// Mappings that there are, or are about to be.
    pub(crate) fn mappings(&self) -> u32 {
        // Acquire: as for the bytes.
        self.used.mappings.load(Ordering::Acquire)
    }

    /// Charges the account before memory is made; `regions` is only said in the error.
    pub(crate) fn charge(&self, bytes: u64, regions: usize) -> Result<Charge, ControlError> {
        let mut charge = Charge { used: Vec::with_capacity(3), bytes };
        charge.add(self, regions)?;
        Ok(charge)
    }
}

/// Bytes charged, to one account or several. It is kept beside the mapping it stands for and dropped after it.
#[derive(Debug)]
pub(crate) struct Charge {
    used: Vec<Arc<Used>>,
    bytes: u64,
}

impl Charge {
    /// Charges one more account with the same bytes.
    pub(crate) fn add(&mut self, account: &MemoryAccount, regions: usize) -> Result<(), ControlError> {
        let (asked, limit) = (self.bytes, account.limit);
        let charged = |used: u64| used.checked_add(asked).filter(|sum| *sum <= limit);
        // Acquire: what was given back is unmapped. Pairs with the drop of a charge.
        let added = account.used.bytes.fetch_update(Ordering::Acquire, Ordering::Acquire, charged);
        added.map_err(|used| ControlError::TooMuchMemory { asked, used, limit, regions })?;
        account.used.mappings.fetch_add(1, Ordering::Relaxed);
        self.used.push(Arc::clone(&account.used));
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        for used in &self.used {
            // Release: the mapping is gone before it is counted as gone. Pairs with the loads of the account.
            used.bytes.fetch_sub(self.bytes, Ordering::Release);
            used.mappings.fetch_sub(1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_can_be_had_again_and_no_more() {
        let account = MemoryAccount::new(100);
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

    #[test]
    fn a_charge_to_several_accounts_is_whole_or_none() {
        let (port, process) = (MemoryAccount::new(100), MemoryAccount::new(70));
        let both = |bytes| {
            let mut charge = port.charge(bytes, 0)?;
            charge.add(&process, 0).map(|()| charge)
        };
        let first = both(50).unwrap();
        assert!(matches!(both(30), Err(ControlError::TooMuchMemory { used: 50, limit: 70, .. })));
        assert_eq!((port.used(), process.used()), (50, 50), "the port's part was given back");
        assert!(!process.is_closed());
        drop(first);
        assert!(process.is_closed() && both(70).is_ok());
    }
}
