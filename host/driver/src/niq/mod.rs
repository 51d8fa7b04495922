//! `niq`: entries in the BAR, stored to send and polled by reads to receive (ATC'13).

mod factory;
mod long_frames;
pub(crate) mod receive;
pub(crate) mod settings;
pub(crate) mod transmit;
