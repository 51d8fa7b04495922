//! The sender's half: asking for a window by name.

use std::os::fd::OwnedFd;

use super::halves::{CreditPage, SenderParts};
use super::hello::{Request, decode_answer};
use super::options::{StoreOptions, WindowError};
use crate::Domain;

/// Asks the receiver that offers `name` for a window. It is fresh and nobody else's.
///
/// # Errors
/// Nobody offers the name; the window is taken; the receiver cannot make one; its answer or memory is not in order.
pub fn connect_window(
    domain: &Domain,
    name: &str,
    options: StoreOptions,
) -> Result<SenderParts, WindowError> {
    let page = CreditPage::create(name)?;
    let (connection, reply) = domain.connect(name, &Request::encode(options.kernel), &[page.fd()])?;
    let terms = decode_answer(&reply.payload)?;
    terms.check(options.memory.huge_pages)?;
    let [window_fd] = <[OwnedFd; 1]>::try_from(reply.fds).map_err(|fds| WindowError::Malformed {
        what: format!("{} descriptors instead of one", fds.len()),
    })?;
    let peer = connection.peer().clone();
    let parts = terms.join(window_fd, &page, &peer, options)?;
    Ok(SenderParts { credits: parts.credits.holding(connection), ..parts })
}
