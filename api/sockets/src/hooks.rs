//! What is done for a program's call, by what the call is about.

pub mod files;
pub mod numbers;
pub mod opened;
pub mod options;
pub mod programs;
pub mod receive;
pub mod restrictions;
pub mod send;
pub mod signals;
pub mod streams;
