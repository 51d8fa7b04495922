//! What a set or a poll watches beside the kernel.

use crate::datagrams::DatagramSocket;
use crate::endpoint::Endpoint;

/// A connection of TCP or a socket of UDP that may have something in windows.
#[derive(Clone, Copy, Debug)]
pub enum Carried {
    Connection(&'static Endpoint),
    Datagrams(&'static DatagramSocket),
}
