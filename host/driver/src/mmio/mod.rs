//! `mmio`: plain stores into a window, in any order, without a fence (HotOS'25 §3).

mod factory;
pub(crate) mod settings;
pub(crate) mod transmit;
