//! The published figures beside ours, scored honestly.
//!
//! [`run`] takes every row of `published_figures.csv`, asks a [`Simulator`] for what `rows/*.toml` says the row is
//! about, and gives an [`Outcome`]: published value, ours, error and whether the row was used to fit, the score, what
//! was lost, how far each platform is when it is left out, and the figures of the papers as curves. [`output`] makes
//! tables, files and a page of it.
//!
//! Nothing is simulated here and no figure of ours is typed here. The frame comes from `beeline figures`
//! (`app/beeline`), which brings the simulator; it goes to a terminal or to files.
#![forbid(unsafe_code)]

mod cache;
pub mod curves;
mod error;
pub mod evaluate;
pub mod fences;
pub mod formula;
pub mod freeze;
pub mod left_out;
pub mod moves;
pub mod output;
pub mod plot;
pub mod published;
pub mod quantity;
pub mod registry;
mod run;
pub mod score;
pub mod shape;
mod simulator;
pub mod snapshot;
pub mod sources;
pub mod unit;
mod virtual_time;

pub use error::Error;
pub use run::{Options, Outcome, run};
pub use simulator::{Arithmetic, Card, NotModelled, Parameter, Replacement, Setting, Simulator};
pub use virtual_time::VirtualTime;
