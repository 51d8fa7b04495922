//! `coherent`: lines of memory that pass to the device and back (CC-NIC, ASPLOS'24).

mod buffer_pool;
mod factory;
pub(crate) mod receive;
pub(crate) mod settings;
pub(crate) mod transmit;
