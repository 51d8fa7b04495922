//! Which connections of a program leave the kernel's path, by rule.
//!
//! - [`Rules`]: the table `[sockets]` of `beeline.toml` and the variables `BEELINE_SOCKETS_*`, checked. `beeline run` passes them on to
//!   the programs that it starts as one variable ([`RESOLVED_VARIABLE`]), so that those need no file. [`Settings`] are the rules for one program.
//! - [`Why`]: the reasons for which a connection is the kernel's.
//!
//! It does not know sockets: whoever carries a program's connections asks here. Record 0068.
#![forbid(unsafe_code)]

mod keys;
mod read;
mod report;
mod rules;
mod why;

pub use keys::{KEYS, key_names};
pub use read::{
    FILE_VARIABLE, LIBRARY_VARIABLE, Place, RESOLVED_VARIABLE, RUN_VARIABLE, RulesError, VARIABLE_PREFIX,
    is_rule,
};
pub use report::report;
pub use rules::{Level, Patterns, Ports, Retain, Rules, Settings, Spin};
pub use why::Why;
