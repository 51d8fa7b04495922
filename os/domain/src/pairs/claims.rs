//! Connections between hosts: two network namespaces of one machine, where neither process can ask its kernel for the socket at the other end.
//!
//! Each says which socket it has with which addresses, and what went through it so far. The other one compares that with its own socket of
//! the same addresses, by its own kernel's word, and takes the cookie that it was told for the other end's. From there on they agree as
//! on any connection (record 0086). Nothing is compared or sent here.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use beeline_tcp::Tuple;

use super::link::ProcessKey;
use super::said::Claim;
use crate::connection_table::ConnectionEnds;

/// Until a process is told again what it may not have heard of: its connection was not looked for yet. Each time twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// To whom a socket was claimed last, and when it may be again.
#[derive(Clone, Copy, Debug)]
struct Claimed {
    to: ProcessKey,
    pause: Duration,
    due: Instant,
}

/// Connections of this process between hosts that are looked for, and whose other end is whose, as far as others have said so and it fits.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// Cookies of this process's sockets, by their addresses.
    looked_for: BTreeMap<(SocketAddr, SocketAddr), u64>,
    /// The process and the cookie at the other end, by the own cookie.
    believed: BTreeMap<u64, (ProcessKey, u64)>,
    claimed: BTreeMap<u64, Claimed>,
}

impl Claims {
    /// A connection is looked for, unless it is not one between hosts.
    pub(super) fn look_for(&mut self, own_cookie: u64, ends: &ConnectionEnds) {
        if ends.are_between_hosts() {
            self.looked_for.insert(key(ends.tuple()), own_cookie);
        }
    }

    /// The own socket has been closed: neither claims nor belief outlive it.
    pub(super) fn forget(&mut self, own_cookie: u64, ends: &ConnectionEnds) {
        self.believed.remove(&own_cookie);
        self.found(own_cookie, ends);
    }

    /// It is agreed on, so that no claim says anything new of it.
    pub(super) fn found(&mut self, own_cookie: u64, ends: &ConnectionEnds) {
        self.claimed.remove(&own_cookie);
        // Another one that has its addresses now stays.
        if self.looked_for.get(&key(ends.tuple())) == Some(&own_cookie) {
            self.looked_for.remove(&key(ends.tuple()));
        }
    }

    /// Whether a socket is to be claimed to a process now, and not later.
    pub(super) fn is_due(&self, own_cookie: u64, process: ProcessKey, now: Instant) -> bool {
        self.claimed.get(&own_cookie).is_none_or(|claimed| claimed.to != process || claimed.due <= now)
    }

    /// A pause begins until it may be again, twice as long as the last one.
    pub(super) fn has_claimed(&mut self, own_cookie: u64, process: ProcessKey, now: Instant) {
        let before = self.claimed.get(&own_cookie).filter(|claimed| claimed.to == process);
        let pause = before.map_or(FIRST_PAUSE, |claimed| (2 * claimed.pause).min(LONGEST_PAUSE));
        self.claimed.insert(own_cookie, Claimed { to: process, pause, due: now + pause });
    }

    /// The own cookie of the connection whose other end is claimed.
    pub(super) fn own_cookie_of(&self, claim: &Claim) -> Option<u64> {
        self.looked_for.get(&key(claim.tuple.mirrored())).copied()
    }

    /// What a process claims fits to what this one's kernel says; whether that is new.
    pub(super) fn believe(&mut self, own_cookie: u64, process: ProcessKey, claim: &Claim) -> bool {
        let believed = (process, claim.cookie);
        self.believed.insert(own_cookie, believed) != Some(believed)
    }

    /// The cookie that a process has claimed for the other end of a connection.
    pub(super) fn other_cookie(&self, own_cookie: u64, process: ProcessKey) -> Option<u64> {
        self.believed.get(&own_cookie).filter(|(of, _)| *of == process).map(|(_, cookie)| *cookie)
    }

    pub(super) fn clear(&mut self) {
        *self = Claims::default();
    }
}

fn key(tuple: Tuple) -> (SocketAddr, SocketAddr) {
    (tuple.local, tuple.remote)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::num::NonZeroU64;

    use beeline_tcp::Progress;

    use super::*;

    fn claim(cookie: u64, local: &str, remote: &str) -> Claim {
        let tuple = Tuple::new(local.parse().unwrap(), remote.parse().unwrap());
        Claim { cookie, tuple, progress: Progress::default() }
    }

    #[test]
    fn claim_is_of_the_connection_with_its_addresses_the_other_way_round() {
        let process = |number| ProcessKey { uid: 0, number: NonZeroU64::new(number).unwrap() };
        let mut claims = Claims::default();
        let (local, remote) = ("10.0.0.1:7", "10.0.0.2:8");
        let ends = ConnectionEnds::new(1, local.parse().unwrap(), remote.parse().unwrap());
        claims.look_for(5, &ends);
        let theirs = claim(6, remote, local);
        assert_eq!(claims.own_cookie_of(&theirs), None, "it is not one between hosts");
        claims.look_for(5, &ends.between_hosts());
        assert_eq!(claims.own_cookie_of(&claim(6, local, remote)), None);
        assert_eq!(claims.own_cookie_of(&theirs), Some(5));
        assert!(claims.believe(5, process(1), &theirs) && !claims.believe(5, process(1), &theirs));
        assert_eq!(claims.other_cookie(5, process(1)), Some(6));
        assert_eq!(claims.other_cookie(5, process(2)), None, "another process has not said so");
        // The addresses are used again before the old one is let go of.
        claims.look_for(15, &ends.between_hosts());
        claims.forget(5, &ends.between_hosts());
        assert_eq!(claims.own_cookie_of(&theirs), Some(15));
        assert_eq!(claims.other_cookie(5, process(1)), None);
        claims.forget(15, &ends.between_hosts());
        assert_eq!(claims.own_cookie_of(&theirs), None);
    }
    #[test]
    fn socket_is_claimed_again_later_and_later_and_to_another_process_at_once() {
        let process = |number| ProcessKey { uid: 0, number: NonZeroU64::new(number).unwrap() };
        let (mut claims, start) = (Claims::default(), Instant::now());
        let mut times = Vec::new();
        for millisecond in 0..20_000 {
            let now = start + Duration::from_millis(millisecond);
            if claims.is_due(5, process(1), now) {
                claims.has_claimed(5, process(1), now);
                times.push(millisecond);
            }
        }
        assert_eq!(times[..7], [0, 50, 150, 350, 750, 1550, 3150]);
        assert!(times[7..].windows(2).all(|two| two[1] - two[0] == 3000), "{times:?}");
        assert!(claims.is_due(5, process(2), start), "it has heard nothing");
        let ends = ConnectionEnds::new(1, "10.0.0.1:7".parse().unwrap(), "10.0.0.2:8".parse().unwrap());
        claims.look_for(5, &ends.between_hosts());
        claims.believe(5, process(1), &claim(6, "10.0.0.2:8", "10.0.0.1:7"));
        claims.found(5, &ends);
        assert_eq!(claims.own_cookie_of(&claim(6, "10.0.0.2:8", "10.0.0.1:7")), None, "nothing is compared");
        assert_eq!(claims.other_cookie(5, process(1)), Some(6), "and what was is known");
    }
}
