//! A write at the BAR.

use beeline_contract_device::Enables;

/// A write at the BAR.
#[derive(Clone, Debug)]
pub struct Store {
    /// Offset in the BAR.
    pub offset: u64,
    /// The bytes, those not enabled included.
    pub data: Vec<u8>,
    /// Bytes of the line that are written.
    pub enables: Enables,
}

impl Store {
    /// A write of all these bytes.
    pub fn whole(offset: u64, data: &[u8]) -> Store {
        Store { offset, data: data.to_vec(), enables: Enables::All }
    }
}
