//! A machine in virtual time: a discrete-event core, PCIe in it, and what stands at both ends.
//!
//! [`des`] knows no PCIe and [`pcie`] knows no NIC: a packet is a kind, an address and a number of bytes. [`cpu`], [`root`]
//! and [`device`] are the ends, each alone; [`machine`] puts them together behind the traits of every other link. The crate
//! names no interface; what writes and reads mean is the driver's and the device's affair. Everything is integer arithmetic
//! on picoseconds, so a run is the same on every machine for the same seed.
//!
//! From: programs, by [`machine::CoreLink`]. To: a device behind the trait of `contract/device`. Not here: what a machine's
//! parameters are worth.

#![forbid(unsafe_code)]

pub mod cpu;
pub mod des;
pub mod device;
pub mod machine;
pub mod pcie;
pub mod root;
