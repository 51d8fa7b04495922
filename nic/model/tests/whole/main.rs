//! Tests of the whole device through its contract: registers, windows, wants.

mod hostile;
mod lifecycle;
mod limits;
mod oracle;
mod qos;
mod registers;
mod reorder;
mod rig;
mod runs;
