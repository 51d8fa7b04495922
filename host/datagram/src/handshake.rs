//! Sessions, and how one is offered to a peer without state for it.
//!
//! A server keeps nothing for an `open`: the session it offers is a keyed hash (SipHash-2-4) of who asks, with which
//! session, and when. Only a frame that names both sessions makes a connection, so opens cost a server one answer each
//! and no memory, however many come. A key is as old as its endpoint, so an endpoint started again knows no session
//! of before.

use siphasher::sip::SipHasher24;

use crate::Address;
use crate::sequence::Session;
use crate::time::Nanos;

/// An offer holds for the rest of its period and for the next: periods are 2^33 ns, some 8.6 s.
const PERIOD_BITS: u32 = 33;
/// An offer is refused when it is older than this, in nanoseconds.
pub(crate) const OFFER_NS: u64 = 2 << PERIOD_BITS;

/// What hashes are made for; no two uses can give the same.
const OFFERED: u64 = 1;
const OWN: u64 = 2;

/// Makes sessions, and knows those it made.
#[derive(Debug)]
pub(crate) struct Sessions {
    key: SipHasher24,
    made: u64,
    /// Goes up to withdraw all offers.
    round: u64,
}

impl Sessions {
    pub(crate) fn new(key: &[u8; 16]) -> Self {
        Sessions { key: SipHasher24::new_with_key(key), made: 0, round: 0 }
    }

    /// A session for a connection that this side begins.
    pub(crate) fn own(&mut self) -> Session {
        self.made += 1;
        self.hash([OWN, self.made, 0, 0, 0])
    }

    /// The session that this side takes if `client` comes back with it.
    pub(crate) fn offer(&self, client: Address, session: Session, now: Nanos) -> Session {
        self.offered(client, session, now.0 >> PERIOD_BITS)
    }

    /// Whether this side offered `offered` to `client` not long ago.
    pub(crate) fn is_offer(&self, offered: Session, client: Address, session: Session, now: Nanos) -> bool {
        let period = now.0 >> PERIOD_BITS;
        let before = period.checked_sub(1);
        [Some(period), before].into_iter().flatten().any(|p| self.offered(client, session, p) == offered)
    }

    /// Withdraws every offer that was not taken up.
    pub(crate) fn withdraw_offers(&mut self) {
        self.round += 1;
    }

    fn offered(&self, client: Address, session: Session, period: u64) -> Session {
        self.hash([OFFERED, client.key(), session.0, period, self.round])
    }

    fn hash(&self, words: [u64; 5]) -> Session {
        let mut bytes = [0; 40];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        // 0 means that there is no session.
        Session(self.key.hash(&bytes).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MacAddress;

    #[test]
    fn an_offer_holds_for_its_client_and_a_while() {
        let mut sessions = Sessions::new(&[7; 16]);
        let client = Address::from(MacAddress([2, 0, 0, 0, 0, 1]));
        let other = Address::from(MacAddress([2, 0, 0, 0, 0, 2]));
        let (start, theirs) = (Nanos(5), Session(99));
        let offer = sessions.offer(client, theirs, start);
        let later = Nanos(1 << PERIOD_BITS);
        assert!(sessions.is_offer(offer, client, theirs, start));
        assert!(sessions.is_offer(offer, client, theirs, later));
        assert!(!sessions.is_offer(offer, client, theirs, Nanos(OFFER_NS)));
        assert!(!sessions.is_offer(offer, other, theirs, start));
        assert!(!sessions.is_offer(offer, client, Session(98), start));
        assert!(
            !Sessions::new(&[8; 16]).is_offer(offer, client, theirs, start),
            "another start, another key"
        );
        sessions.withdraw_offers();
        assert!(!sessions.is_offer(offer, client, theirs, start));
    }

    #[test]
    fn own_sessions_differ() {
        let mut sessions = Sessions::new(&[7; 16]);
        let (one, two) = (sessions.own(), sessions.own());
        assert_ne!(one, two);
        assert_ne!(one, Session::NONE);
    }
}
