//! Programs of the system as users start them: natively, and by `beeline run`, with the same command and configuration.
//!
//! A [`Ground`] is a folder, a domain and a way to run; what is started on it ends with it. [`servers`] has what each program is told.
//! The tests of `beeline run` (`app/beeline/tests/real_programs.rs`) and the bench `sockets-programs` begin here.

mod ground;
mod job;
pub mod servers;
mod share;

pub use ground::{Ended, Ground, Running, Tools, Way, free_port};
pub use job::Job;
pub use share::Share;
