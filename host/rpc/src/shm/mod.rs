//! Calls between processes of one host, over windows.
//!
//! Each client has one request window, in the server's memory, which the server's threads share, and one reply window
//! for each thread that has answered it, in its own memory. The domain's connection carries what opens and closes them;
//! nothing of it is on the path of a call.
//!
//! ```text
//!   client ── requests ──> window (server's memory) ──claim──> worker 0 ── answers ──> window 0 (client's memory)
//!                                                   └─claim──> worker 1 ── answers ──> window 1 (client's memory)
//! ```

mod connect;
pub(crate) mod hello;
mod opening;
mod options;
mod registry;
mod server;
mod session;
mod transport;
mod worker;

pub use connect::Client;
pub use options::{ClientOptions, ServerOptions};
pub use server::Server;
pub use transport::ShmTransport;
pub use worker::Worker;
