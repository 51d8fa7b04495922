//! Addresses to which a socket sends, and that are of other hosts.

use std::net::IpAddr;
use std::time::{Duration, Instant};

/// How long an address that this host is given may be taken for another host's.
const FOUND_FOR: Duration = Duration::from_millis(100);
const MOST: usize = 64;

/// Addresses that were found to be of other hosts, and when: it costs three system calls, and a program may send to one port of several hosts.
#[derive(Default)]
pub(crate) struct Elsewhere(Vec<(IpAddr, Instant)>);

impl Elsewhere {
    /// Whether datagrams to an address come to no socket of this host.
    pub(crate) fn has(&mut self, address: IpAddr) -> bool {
        let now = Instant::now();
        self.0.retain(|(_, found)| now - *found < FOUND_FOR);
        if self.0.iter().any(|(known, _)| *known == address) {
            return true;
        }
        if beeline_tcp::may_come_to_this_host(address) {
            return false;
        }
        if self.0.len() < MOST {
            self.0.push((address, now));
        }
        true
    }
}
