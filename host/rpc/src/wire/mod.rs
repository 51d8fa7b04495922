//! Calls over a wire, past the kernel's network: the same calls on connections of `host/datagram`.
//!
//! The up-link runs inside the polling threads of client and server, so two threads are busy and nothing else is woken.
//! What differs from windows of the same host: a message is a frame, so requests longer than one come in parts; a
//! server's death is seen by its silence, or when it is started again; a deadline travels as what is left of it; a
//! cancelled call ends for its caller, but the server is not told; one thread serves all clients of an up-link, in its own
//! memory rather than in the client's.

pub(crate) mod caller;
mod server;
mod transport;

pub use server::WireServer;
pub use transport::WireTransport;

/// A client of a server behind an up-link.
pub type Client<U> = crate::Client<WireTransport<U>>;
