//! Up-links on sockets, between two network namespaces joined by a veth: what crosses the wire, what goes on working
//! beside it, what is left behind, and what is said where something is missing.
//!
//! Needs root and `ip` of iproute2. Where they are missing each test says why, and checks that the error would tell a
//! user the same.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod frames;
mod refusals;
mod rig;
mod sessions;
mod steering;
