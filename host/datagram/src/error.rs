//! Errors of an endpoint and ends of connections, each with the numbers that were found.

use std::time::Duration;

use beeline_ethernet::UplinkError;

use crate::{Address, ConnectionId};

/// Why an endpoint cannot be made, or cannot go on for now.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The configuration cannot work.
    #[error("a datagram endpoint cannot be set up like this: {wrong}")]
    Config {
        /// The setting that is wrong, and a value to give instead.
        wrong: String,
    },
    /// The system gives no random numbers, without which attackers could guess sessions.
    #[error("the system gives no random numbers: {0}; see that getrandom(2) or /dev/urandom is there")]
    NoRandom(getrandom::Error),
    /// The up-link failed. Connections stay as they are; a later poll may succeed.
    #[error(transparent)]
    Uplink(#[from] UplinkError),
}

/// Reasons for which a connection cannot be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// There is one already between the two endpoints.
    #[error(
        "a connection with {remote} exists already; use it, close it, or give this endpoint another port"
    )]
    Exists {
        /// The other endpoint.
        remote: Address,
        id: ConnectionId,
    },
    /// The endpoint has as many connections as it may have.
    #[error("{most} connections are open, as many as this endpoint may have; close one or configure more")]
    TooMany {
        /// Connections allowed.
        most: u16,
    },
    /// The address is not that of another station.
    #[error("{remote} is no other station; give the address of the interface of the other side")]
    NoStation { remote: Address },
}

/// Why a message cannot be sent. A full window is not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The message does not fit a frame.
    #[error("a message of {bytes} bytes; a frame carries {max_bytes} at most: send it in parts")]
    TooLong {
        /// Bytes asked for.
        bytes: usize,
        /// Bytes of the longest message.
        max_bytes: usize,
    },
    /// There is no such connection, or no longer; its end was reported.
    #[error("{id} is not open; connect again")]
    NotOpen { id: ConnectionId },
    /// The connection is being closed by this side.
    #[error("{id} is being closed; connect again after its end was reported")]
    Closing { id: ConnectionId },
}

/// How a connection ended. Messages that were sent and not acknowledged may have arrived or not.
///
/// Over a wire there is no evidence of death as between processes: silence is all there is. A side that is only slow,
/// or whose network is cut, looks as dead as one that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Down {
    /// This side closed it, and everything it sent arrived.
    #[error("closed by this side")]
    Closed,
    /// The other side closed it, and everything it sent was delivered.
    #[error("closed by the other side")]
    ClosedByPeer,
    /// The other side was silent for too long.
    #[error(
        "the other side was silent for {after:?}; see that it runs, is polled, and is on the same Ethernet"
    )]
    Silent {
        /// Time since the last frame of the other side.
        after: Duration,
    },
    /// The other side speaks, but acknowledged nothing for this long: it is faulty.
    #[error("the other side acknowledged nothing for {after:?} although it is there; it is faulty")]
    Stuck {
        /// Time since the last acknowledgement.
        after: Duration,
    },
    /// The other side was started again, or gave this connection up.
    #[error(
        "the other side does not know this connection: it was started again, or gave it up; connect again"
    )]
    Restarted,
    /// The other side takes no connections, or no more.
    #[error("the other side takes no connection: it does not listen, or has no room")]
    Refused,
    /// This station has as many connections with the other side as that one lets a station have. Its other programs, and other
    /// users of it, have them.
    #[error(
        "the other side has as many connections with this station as it lets one station have; close some, or have it allow \
         a station more"
    )]
    StationShare,
    /// The two sides are set up for frames of different lengths.
    #[error(
        "frames of the other side carry {theirs_bytes} bytes, of this side {ours_bytes}; give both interfaces the same MTU"
    )]
    FrameBytes {
        /// Longest message of this side, in bytes.
        ours_bytes: usize,
        /// Longest message of the other side, in bytes; 0 when it did not say.
        theirs_bytes: usize,
    },
    /// The program on the other side ended it without waiting.
    #[error("ended by the other side at once")]
    Aborted,
}
