//! What is seen of a process's connections at one moment.

use std::net::SocketAddr;

use super::carrier::Carrier;
use super::process::{Life, Recorded};
use super::run::Run;
use crate::Why;

/// A process and its connections. Everything was written by that process, which may be hostile: names may hold any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardView {
    pub(super) process: Recorded,
    /// The run of `beeline run --why` that it belongs to.
    pub run: Option<Run>,
    pub(super) has_ended: bool,
    /// The path of its executable.
    pub program: String,
    /// Connections that were not listed, because the board had no row for them.
    pub unlisted: u64,
    /// Connections that have ended and are not listed: how many, by the reason for which the kernel carried them at last; `None` for those it did not.
    pub ended: Vec<(Option<Why>, u64)>,
    pub rows: Vec<RowView>,
}

impl BoardView {
    /// The process, as it is called in its own pid namespace.
    pub fn pid(&self) -> u32 {
        self.process.pid
    }

    /// Whether the process lives. One that has executed another program has ended here.
    pub fn life(&self) -> Life {
        if self.has_ended { Life::Ended } else { self.process.life() }
    }
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowView {
    /// Whether the connection is there; one that has ended is listed only in a run that is to read it.
    pub is_open: bool,
    /// Its descriptor's number.
    pub socket: u32,
    pub local: SocketAddr,
    pub peer: SocketAddr,
    /// The process at the other end, if that is known.
    pub peer_pid: Option<u32>,
    /// Why the kernel carries it, or carried it last.
    pub why: Option<Why>,
    pub sending: Direction,
    pub receiving: Direction,
    /// Wake-ups that it sent.
    pub rings: u64,
    /// Waits that ended before a sleep.
    pub spins: u64,
    /// Waits that slept.
    pub sleeps: u64,
    /// Datagrams for which a window had no room.
    pub dropped: u64,
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direction {
    /// What carries it now.
    pub carrier: Carrier,
    pub socket: Counters,
    pub window: Counters,
    /// Changes to the window.
    pub ups: u64,
    /// Changes back to the socket.
    pub downs: u64,
}

/// What one carrier has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub bytes: u64,
    /// Calls that sent, or received, something.
    pub messages: u64,
}
