//! What is done for a program's call, by what the call is about.

pub mod datagrams;
pub mod files;
pub mod groups;
pub mod held;
pub mod numbers;
pub mod opened;
pub mod options;
pub mod polls;
pub mod programs;
pub mod receive;
pub mod restrictions;
pub mod send;
pub mod sets;
pub mod signals;
pub mod streams;
