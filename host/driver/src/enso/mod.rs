//! `enso`: pipes of bytes in both directions (OSDI'23).

mod factory;
mod pipe;
pub(crate) mod receive;
pub(crate) mod receiver;
pub(crate) mod settings;
pub(crate) mod transmit;
