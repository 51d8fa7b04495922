//! The sides of an echo that this program plays itself ([`super::play`]), by their names on its command line.

/// The hidden subcommand that runs [`super::play`].
pub const ROLE: &str = "echo";
/// The bare copy between processes, without a window or a call.
pub const BARE_COPY: &str = "bare-copy";
/// Our calls between processes; with a comma and a number behind it, through windows of so many lines.
pub const RPC: &str = "rpc";
/// Our calls over AF_XDP, between two ends of a [`crate::veth::Veth`].
pub const RPC_AF_XDP: &str = "rpc-af-xdp";
/// Our calls over AF_PACKET, likewise.
pub const RPC_AF_PACKET: &str = "rpc-af-packet";
/// Our key-value store: a server only, which answers so many requests and then waits for a job; with a comma and a
/// number behind it, a store of so many MiB.
pub const KV: &str = "kv";
/// The same, which takes its memory at the start.
pub const KV_PREALLOCATED: &str = "kv-preallocated";
