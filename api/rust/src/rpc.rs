//! Calls: what [`crate::Domain::server`] and [`crate::Domain::client`] give, and what handlers are given.

pub use beeline_rpc::shm::{Client, Server, Worker};
pub use beeline_rpc::{
    Body, CallError, CallFailure, CallId, ClientId, Completion, Deadline, Loss, MAX_OUTSTANDING, Method,
    Payload, Replied, Reply, ReplyWriter, Request, Service, StartError, Started,
};
#[cfg(feature = "wire")]
pub use beeline_rpc::{Transport, wire};
