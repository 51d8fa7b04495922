//! Reliable datagrams on raw Ethernet: messages with their bounds, in order, exactly once, past the kernel's network.
//!
//! An [`Endpoint`] owns an up-link (AF_XDP, AF_PACKET, a TAP, a loop-back) and is polled by one thread; it holds many
//! connections. A message fits one frame. Lost frames are repeated selectively, acknowledgements travel on messages
//! that go the other way, so that a question and its answer cost two frames. The frame's layout is `spec`'s
//! (`datagram_frame`); the protocol is written down in `docs/datagram.md`, and decision 0008 says why it is our own.
//!
//! The protocol itself (`connection/`, `outbox.rs`, `inbox.rs`) does no I/O and reads no clock: time comes in as
//! [`Nanos`], frames go out through a sink. All that an attacker can send is checked in `header.rs` before anything is
//! believed. Not here: frames longer than the up-link carries, fragments, requests (`host/rpc`), finding a station,
//! secrecy: whoever can read the wire can also forge what is on it.
//!
//! Source: RAMCloud/HiStar notes ("OS bypass", "proprietary protocol", "polling"); RFC 6298 for time-outs, RFC 2018
//! for what a selective acknowledgement says.
#![forbid(unsafe_code)]

mod address;
mod adversary;
mod config;
mod connection;
mod ended;
mod endpoint;
mod error;
mod event;
mod handshake;
mod header;
mod id;
mod inbox;
mod outbox;
mod pacer;
mod ring;
mod round_trip;
mod sequence;
mod stats;
mod table;
mod time;

pub use address::{Address, MacAddress, MacAddressError, Port};
pub use adversary::{Adversary, Chances};
pub use config::{Config, Pacing};
pub use endpoint::Endpoint;
pub use error::{ConnectError, Down, EndpointError, SendError};
pub use event::{Event, Sent};
pub use id::ConnectionId;
pub use stats::{ConnectionStats, EndpointStats};
pub use time::{Clock, Nanos, TickClock};

/// Bytes of Ethernet header and protocol in front of the message of a frame.
pub const HEAD_BYTES: usize = beeline_spec::formats::datagram_frame::BYTES;
/// Most messages of one direction that can be under way.
pub const MOST_WINDOW: u8 = beeline_spec::formats::DATAGRAM_WINDOW as u8;
