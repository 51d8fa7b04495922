//! One owner of a queue who keeps no rule, and others who keep all of them: at the NIC's pins, cycle by cycle.
//!
//! `names` writes the bursts that once lost, doubled and misused names of pool lines; `neighbours` puts, interface by
//! interface, a hostile queue beside an honest one, which must leave byte for byte and in its budget of cycles. `host` is
//! what stands around the NIC in both.
#![cfg(feature = "rtl")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail the test")]

mod host;
mod names;
mod neighbours;
mod stops;
