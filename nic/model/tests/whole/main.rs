//! Tests of the whole device through its contract: registers, windows, wants.

mod lifecycle;
mod oracle;
mod qos;
mod reorder;
mod rig;
