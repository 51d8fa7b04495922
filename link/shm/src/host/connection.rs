//! Whom a link asks when something is to be opened: the NIC process, through the domain, or the other half of a pair
//! in the same process.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

use beeline_domain::{ConnectError, Connection, Peer};

use crate::PortControl;
use crate::messages::{Answer, Request, to_bytes};

/// Where requests go.
#[derive(Clone, Debug)]
pub(crate) enum Requests {
    /// To the NIC's process.
    Domain(Arc<Connection>),
    /// To the other half in this process.
    Pair(Arc<Mutex<PortControl>>),
}

/// Why a request brought nothing; its words go on to the user, and are not acted on.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The NIC process is gone.
    Gone,
    /// The NIC refused, with its reason.
    Refused(String),
}

impl Requests {
    /// Asks, and waits for the answer. Slow path only.
    pub(crate) fn call(
        &self,
        request: &Request,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(Answer, Vec<OwnedFd>), Unanswered> {
        let request = to_bytes(request);
        let refused = |text: String| Unanswered::Refused(text);
        let reply = match self {
            Requests::Domain(connection) => connection.call(&request, fds).map_err(|error| match error {
                ConnectError::Refused { reason, .. } => refused(reason),
                other if connection.peer().is_alive() => refused(other.to_string()),
                _ => Unanswered::Gone,
            })?,
            Requests::Pair(control) => {
                let copies = fds.iter().map(BorrowedFd::try_clone_to_owned).collect::<Result<Vec<_>, _>>();
                let copies = copies.map_err(|error| refused(error.to_string()))?;
                let mut control = control.lock().map_err(|_| Unanswered::Gone)?;
                control.request(&request, copies).map_err(|error| refused(error.to_string()))?
            }
        };
        let answer = serde_json::from_slice(&reply.payload).map_err(|error| refused(error.to_string()))?;
        Ok((answer, reply.fds))
    }

    /// Whether the other side is there, as far as the kernel has shown. One relaxed load.
    #[inline]
    pub(crate) fn is_alive(&self) -> bool {
        match self {
            Requests::Domain(connection) => connection.peer().is_alive(),
            Requests::Pair(_) => true,
        }
    }

    /// The NIC process; `None` for a pair.
    pub(crate) fn peer(&self) -> Option<&Peer> {
        match self {
            Requests::Domain(connection) => Some(connection.peer()),
            Requests::Pair(_) => None,
        }
    }
}
