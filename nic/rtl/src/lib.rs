//! The NIC's RTL behind the device trait: the very modules of `nic/rtl`, Verilated, driven by TLPs.
//!
//! Every interface whose host half has landed drives it, and every shared vector and conformance body runs on it, as on
//! the behavioural NIC (`nic/model`). What it is slow at is simulation: a million cycles a second at the best. Without
//! the feature `rtl` there is no simulator in the build, and [`RtlNic::new`] says how to get one.
//!
//! From: a link's TLPs. To: cycles of `nic_top` (`sys/`). Two ways to drive it: [`RtlNic`] makes as many cycles as it takes
//! whenever it is called, so that cycles are counted and make no time pass, and the link's clock drives the NIC's `now_ns`;
//! `ClockedNic` makes each cycle at its time in a virtual-time machine. Not here: the RTL itself (`*/*.sv`).
#![forbid(unsafe_code)]

#[cfg(feature = "rtl")]
mod beats;
#[cfg(feature = "rtl")]
mod clocked;
mod config;
#[cfg(feature = "rtl")]
mod device;

pub use config::{ClockPeriod, QUEUES, RtlConfig, RtlError};
#[cfg(not(feature = "rtl"))]
mod absent;

#[cfg(not(feature = "rtl"))]
pub use absent::RtlNic;
#[cfg(feature = "rtl")]
pub use clocked::ClockedNic;
#[cfg(feature = "rtl")]
pub use device::RtlNic;

/// Sizes of the NIC that was built, if one was.
#[cfg(feature = "rtl")]
pub use beeline_nic_rtl_sys::{PARAMETERS, Parameters};

#[cfg(feature = "rtl")]
const _: () = assert!(PARAMETERS.queues == QUEUES, "what is built has the queues that everybody counts on");
