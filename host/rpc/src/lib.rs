//! Request-response in nanoseconds: polled calls over windows, and over a wire past the kernel.
//!
//! A client begins calls and polls for their ends; the threads of a server poll for requests and answer them where they
//! lie. Nothing on the way of a call locks, allocates, fences or enters the kernel. Between processes of one host calls go
//! through shared windows ([`shm`]); over raw Ethernet through AF_XDP and a light reliable protocol ([`wire`]).
//!
//! ```no_run
//! use beeline_domain::{Domain, DomainConfig};
//! use beeline_rpc::{Method, Replied, Reply, Request, shm};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let domain = Domain::open(&DomainConfig { root: None, name: "demo".into() })?;
//! // One program:
//! let (_server, mut workers) = shm::Server::offer(&domain, "sums", shm::ServerOptions::default())?;
//! let mut sum = |request: &mut Request<'_>, reply: Reply<'_>| -> Replied {
//!     reply.send(&(request.word(0) + request.word(1)).to_le_bytes())
//! };
//! std::thread::spawn(move || loop { workers[0].poll(&mut sum); });
//! // Another one:
//! let mut client = shm::Client::connect(&domain, "sums", shm::ClientOptions::default())?;
//! let (mut request, mut answer) = (Vec::new(), Vec::new());
//! request.extend(40u64.to_le_bytes());
//! request.extend(2u64.to_le_bytes());
//! client.call(Method(1), &request, &mut answer, None)?;
//! assert_eq!(answer, 42u64.to_le_bytes());
//! # Ok(())
//! # }
//! ```
//!
//! **At most once.** No request is ever sent twice. A call whose server went ends with an error that says whether the
//! request had been sent whole; what was not is certainly not executed.
//!
//! **Back-pressure is an answer**: [`Started::Full`] when the server does not take requests as fast as they come.
//!
//! Not here: what requests mean, names and schemas (bring your own), retries (only the caller knows what may be repeated).
//! Source: the RAMCloud/HiStar notes (R bullets: OS bypass, a light protocol, polling, requests processed while
//! still in the ring, several server threads).
#![forbid(unsafe_code)]

mod assembly;
mod calls;
mod cancels;
mod client;
mod deadline;
mod dispatch;
mod error;
#[cfg(all(fuzzing, feature = "wire"))]
pub mod fuzzing;
mod intake;
mod method;
mod outgoing;
mod payload;
mod service;
pub mod shm;
mod transport;
#[cfg(feature = "wire")]
pub mod wire;

pub use beeline_window::WaitPolicy;
pub use calls::{CallId, MAX_OUTSTANDING};
pub use client::{Client, Completion, Started};
pub use deadline::Deadline;
pub use error::{CallError, CallFailure, Loss, RpcError, StartError};
pub use method::Method;
pub use payload::{Body, Payload};
pub use service::{ClientId, Replied, Reply, ReplyWriter, Request, Service};
pub use transport::Transport;
