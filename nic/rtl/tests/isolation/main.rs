//! One owner of a queue who keeps no rule, and others who keep all of them: at the NIC's pins, cycle by cycle.
#![cfg(feature = "rtl")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail the test")]

mod host;
mod names;
