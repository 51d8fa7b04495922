//! Which connections of a program leave the kernel's path, by rule; and what is told of them while they run.
//!
//! - [`Rules`]: the table `[sockets]` of `beeline.toml` and the variables `BEELINE_SOCKETS_*`, checked. `beeline run` passes them on to
//!   the programs that it starts as one variable ([`RESOLVED_VARIABLE`]), so that those need no file. [`Settings`] are the rules for one program.
//! - [`Why`]: the reasons for which a connection is the kernel's.
//! - [`Board`]: counters of a process's connections in a file that it has mapped, each a plain store; [`boards`] reads those of all
//!   processes of a domain, by system calls.
//!
//! It does not know sockets: whoever carries a program's connections asks and counts here. Record 0068.
#![forbid(unsafe_code)]

mod board;
#[cfg(fuzzing)]
pub mod fuzzing;
mod keys;
mod read;
mod report;
mod rules;
mod why;

pub use board::{
    Board, BoardError, BoardView, Carrier, Counters, Direction, Life, LookError, NoRun, Odd, Order,
    OrderError, Ordered, Row, RowView, Run, Windows, boards, boards_of_run, order, windows_of,
};
pub use keys::{KEYS, key_names};
pub use read::{
    FILE_VARIABLE, LIBRARY_VARIABLE, Place, RESOLVED_VARIABLE, RUN_VARIABLE, RulesError, VARIABLE_PREFIX,
    is_rule, works_under_filter,
};
pub use report::report;
pub use rules::{Level, Multicast, Patterns, Ports, Retain, Rules, Settings, Spin};
pub use why::Why;
