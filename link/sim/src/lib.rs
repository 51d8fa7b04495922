//! A link in virtual time: a discrete-event core, on which PCIe is modelled.
//!
//! [`des`] knows no PCIe. The crate names no interface of a NIC; what writes and reads mean is the driver's and the
//! device's affair. Everything is integer arithmetic on picoseconds, so a run is the same on every machine for the same
//! seed.

#![forbid(unsafe_code)]

pub mod des;
