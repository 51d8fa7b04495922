//! How windows are offered and connected to: alike for messages, byte streams and sets.

use beeline::{Receiver, Sender};
use beeline_ffi::{Handle, Options, Outcome, Text};

use super::options::{self, Connecting, beeline_window_receiver_options, beeline_window_sender_options};
use super::status::{of_connect, of_offer};
use crate::domain::{DOMAINS, beeline_rpc_domain};

/// Offers a window as C asks for it.
pub(crate) fn offer(
    domain: Handle<beeline_rpc_domain>,
    name: Text<'_>,
    options: &Options<'_, beeline_window_receiver_options<'_>>,
) -> Outcome<Receiver> {
    let domain = DOMAINS.get(domain)?;
    let (name, options) = (name.read("name")?, options::receiver(options)?);
    let domain = domain.facade()?;
    domain.receiver_with(name, options).map_err(|error| of_offer(&error))
}

/// Connects to a window as C asks for it. The time-out of the options is for the domain and the window together.
pub(crate) fn connect(
    domain: Handle<beeline_rpc_domain>,
    name: Text<'_>,
    options: &Options<'_, beeline_window_sender_options<'_>>,
) -> Outcome<Sender> {
    let domain = DOMAINS.get(domain)?;
    let (name, connecting) = (name.read("name")?, options::sender(options)?);
    let Connecting { options, timeout, token } = connecting;
    let (domain, left) = domain.facade_within(timeout)?;
    let options = options.timeout(left);
    let connected = match token {
        None => domain.sender_with(name, options),
        Some(token) => domain.sender_proving(name, token, options),
    };
    connected.map_err(|error| of_connect(&error))
}
