//! Both processes of an echo: what they are told, what they answer, and the loop whose time is measured.
//!
//! A side is started as `PROGRAM … RIVAL server CORE` or `PROGRAM … RIVAL client CORE ADDRESS` ([`SideArgs`]). It pins
//! itself and says `ready`, a server with its address behind it. Then it is given jobs on standard input,
//! `echo BYTES WARM-UP TRIPS`, the server first:
//!
//! - the server says `serving`, answers so many requests and says `served`;
//! - the client makes the round trips, compares every answer with its request, and says `ticks COUNT` followed by the
//!   ticks of each trip after the warm-up, 8 bytes each, little-endian.
//!
//! Between jobs a side waits on standard input, so that one that polls costs nothing while another rival is measured.
//! It ends when standard input does, from whatever it is doing, so that none outlives whoever started it.
//!
//! Not here: starting the sides, and figures (`beeline-bench`). No paper is behind this.
#![forbid(unsafe_code)]

mod client;
mod job;
mod server;
mod side;

use std::error::Error;

pub use client::{EchoClient, play_client, request, round_trips};
pub use job::{Job, NotAJob};
pub use server::{EchoServer, play_server};
pub use side::{Side, SideArgs, end_with_stdin};

/// Why a side cannot go on. It ends, and whoever started it gets no figure.
pub type Failure = Box<dyn Error + Send + Sync>;
