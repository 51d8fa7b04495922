//! A link in virtual time: a discrete-event core, and PCIe in it.
//!
//! [`des`] knows no PCIe and [`pcie`] knows no NIC: a packet is a kind, an address and a number of bytes. The crate names no
//! interface; what writes and reads mean is the driver's and the device's affair. Everything is integer arithmetic on
//! picoseconds, so a run is the same on every machine for the same seed.
//!
//! From: a model that hands packets to [`pcie::Link`]. To: that model, as packets that arrived. Not here yet: the core with
//! its write-combining buffers, the root complex, the device.

#![forbid(unsafe_code)]

pub mod cpu;
pub mod des;
pub mod device;
pub mod machine;
pub mod pcie;
pub mod root;
