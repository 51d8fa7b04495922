//! The sender's half: asking for a window by name.

use std::os::fd::OwnedFd;

use super::halves::{CreditPage, SenderParts, UnmappedCreditPage};
use super::hello::{Request, decode_answer};
use super::options::{StoreOptions, WindowError};
use crate::{Connection, Domain, Reply, Token};

/// Asks the receiver that offers `name` for a window. It is fresh and nobody else's.
///
/// # Errors
/// Nobody offers the name; the window is taken; the receiver cannot make one; its answer or memory is not in order.
pub fn connect_window(
    domain: &Domain,
    name: &str,
    options: StoreOptions,
) -> Result<SenderParts, WindowError> {
    connect(domain, name, options, None)
}

/// Asks for a window as [`connect_window`] does, of the process with which a token was exchanged in a connection
/// ([`Domain::connect_proving`]).
///
/// # Errors
/// As [`connect_window`]; the receiver is not that process, or the token is no longer good.
pub fn connect_window_proving(
    domain: &Domain,
    token: &Token,
    name: &str,
    options: StoreOptions,
) -> Result<SenderParts, WindowError> {
    connect(domain, name, options, Some(token))
}

fn connect(
    domain: &Domain,
    name: &str,
    options: StoreOptions,
    token: Option<&Token>,
) -> Result<SenderParts, WindowError> {
    // Before the page is made: the receiver's thread wakes up meanwhile.
    let reached = domain.reach(name, token)?;
    let page = UnmappedCreditPage::create(name)?;
    let request = Request::encode(options.kernel);
    let (connection, reply, region) =
        reached.ask_and(&request, &[page.fd()], || page.region().map_err(WindowError::from))?;
    join(&page.mapped(region), (connection, reply), options)
}

fn join(
    page: &CreditPage,
    (connection, reply): (Connection, Reply),
    options: StoreOptions,
) -> Result<SenderParts, WindowError> {
    let terms = decode_answer(&reply.payload)?;
    terms.check(options.memory.huge_pages)?;
    let [window_fd] = <[OwnedFd; 1]>::try_from(reply.fds).map_err(|fds| WindowError::Malformed {
        what: format!("{} descriptors instead of one", fds.len()),
    })?;
    let peer = connection.peer().clone();
    let parts = terms.join(window_fd, page, &peer, options)?;
    Ok(SenderParts { credits: parts.credits.holding(connection), ..parts })
}
