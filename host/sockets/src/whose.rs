//! Whose other end the thread in the background looks for.

use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use beeline_socket_rules::{Row, Why};

use crate::datagrams::flow::Asking;
use crate::endpoint::{AgreedSlot, Endpoint, Stage};

#[derive(Clone, Debug)]
pub(crate) enum Whose {
    Connection(&'static Endpoint),
    Flow(Asking),
}

impl Whose {
    /// Whether it has not ended meanwhile, and may leave the kernel.
    pub(crate) fn is_still(&self, cookie: u64) -> bool {
        match self {
            Whose::Connection(endpoint) => {
                endpoint.stage() == Stage::Meeting && endpoint.cookie.load(Ordering::Relaxed) == cookie
            }
            Whose::Flow(flow) => flow.is_wanted(cookie),
        }
    }

    pub(crate) fn number(&self) -> RawFd {
        match self {
            Whose::Connection(endpoint) => endpoint.number.load(Ordering::Relaxed),
            Whose::Flow(flow) => flow.number(),
        }
    }

    pub(crate) fn list(&self, row: Row) {
        match self {
            Whose::Connection(endpoint) => endpoint.list(row),
            Whose::Flow(flow) => flow.list(row),
        }
    }

    pub(crate) fn set_peer_pid(&self, pid: u32) {
        match self {
            Whose::Connection(endpoint) => endpoint.set_peer_pid(pid),
            Whose::Flow(flow) => flow.set_peer_pid(pid),
        }
    }

    pub(crate) fn agree(&self, agreed: AgreedSlot) {
        match self {
            Whose::Connection(endpoint) => _ = endpoint.agree(agreed),
            Whose::Flow(flow) => flow.agree(agreed),
        }
    }

    pub(crate) fn forbid(&self, why: Why) {
        match self {
            Whose::Connection(endpoint) => endpoint.forbid(why),
            Whose::Flow(flow) => flow.forbid(why),
        }
    }
}
