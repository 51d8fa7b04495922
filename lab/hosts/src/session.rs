//! Whether what a host has pushed to another one is there, and what that one has pushed is here.
//!
//! A link that goes down loses words, and nobody at the other end learns which. So each host has, for each other one, a *session word* in its
//! own memory: how often its own link had gone down, and the other's, when it last pushed everything. It pushes the word behind that. Copies
//! are whole as long as the word that came with them names both links as they are now, and the barrier looks: it reads the other
//! host's word where that host stores it.
//!
//! - Words of this host are lost by its own link: it finds that before its barrier ends, and its session word is void before it loads what others claim.
//! - Words are lost by the other's link: that host finds it in its own barrier, since the word names its link as it was.
//! - A host that is gone has no session word, so it confirms nothing, and nobody asks it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use beeline_contract_adapter::Unconfirmed;
use beeline_link_sim::machine::hosts::{HostId, LOST};

use crate::programs::Core;
use crate::wiring::{Wiring, line_of};

/// In the line of a peer: what this host says to it, what it has said, and how often it has rung.
const SAID: usize = 0;
const HEARD: usize = 8;
const RUNG: usize = 16;

/// How often a host's own link and the other's had gone down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    own: u32,
    theirs: u32,
}

/// How often the links of two hosts have gone down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Losses(Said);

impl Said {
    const VALID: u64 = 1 << 63;

    /// Nothing of a word that says nothing.
    fn of(word: u64) -> Option<Said> {
        let is_valid = word & Said::VALID != 0 && word != LOST;
        is_valid
            .then_some(Said { own: (word & !Said::VALID) as u32, theirs: (word >> 32) as u32 & 0x7fff_ffff })
    }

    fn word(self) -> u64 {
        Said::VALID | u64::from(self.theirs) << 32 | u64::from(self.own)
    }
}

/// What one host has with each other one.
#[derive(Clone)]
pub(crate) struct Sessions {
    pub core: Core,
    pub wiring: Wiring,
    /// By host, whether it lives.
    there: Arc<Vec<AtomicBool>>,
    /// By host, whether its claims count.
    counts: Arc<Vec<AtomicBool>>,
}

impl Sessions {
    pub(crate) fn new(core: Core, wiring: Wiring) -> Self {
        let hosts = wiring.others(core.host()).count() + 1;
        let none = || Arc::new((0..hosts).map(|_| AtomicBool::new(false)).collect());
        Sessions { core, wiring, there: none(), counts: none() }
    }

    pub(crate) fn is_there(&self, peer: HostId) -> bool {
        self.there[usize::from(peer.0)].load(Relaxed)
    }

    /// From here on the claims of a peer count, and it is believed what it confirms.
    pub(crate) fn count(&self, peer: HostId) {
        self.counts[usize::from(peer.0)].store(true, Relaxed);
    }

    /// From here on everything is pushed to a peer.
    pub(crate) fn begin(&self, peer: HostId) {
        self.there[usize::from(peer.0)].store(true, Relaxed);
    }

    /// A peer is gone. What it confirms fails before its claims do not count any more.
    pub(crate) fn leave(&self, peer: HostId) {
        self.end(peer);
        self.there[usize::from(peer.0)].store(false, Relaxed);
        self.counts[usize::from(peer.0)].store(false, Relaxed);
        // It says anew that its words are here.
        self.core.store(self.wiring.of(self.core.host()).sessions, line_of(peer) + HEARD, 0);
    }

    fn own(&self, peer: HostId, word: usize) -> u64 {
        self.core.load(self.wiring.of(self.core.host()).sessions, line_of(peer) + word)
    }

    fn say(&self, peer: HostId, word: u64) {
        self.core.store(self.wiring.of(self.core.host()).sessions, line_of(peer) + SAID, word);
    }

    /// The address of this host's line at a peer.
    fn there(&self, peer: HostId, word: usize) -> u64 {
        self.wiring.of(peer).sessions.address + (line_of(self.core.host()) + word) as u64
    }

    fn downs(&self) -> u32 {
        self.core.downs() as u32
    }

    /// How often links have gone down between this host and a peer, if copies are whole.
    pub(crate) fn losses(&self, peer: HostId) -> Option<Losses> {
        let heard = Said::of(self.own(peer, HEARD)).filter(|_| self.is_whole(peer));
        heard.map(Losses)
    }

    /// Whether the copies of a peer's words are whole, and its copies of this host's, as far as can be known without asking.
    pub(crate) fn is_whole(&self, peer: HostId) -> bool {
        let downs = self.downs();
        let heard = Said::of(self.own(peer, HEARD)).filter(|heard| heard.theirs == downs);
        heard.is_some_and(|heard| self.own(peer, SAID) == Said { own: downs, theirs: heard.own }.word())
    }

    /// Waits until all stores so far are in the peer's memory, and what the peer has pushed before that is here.
    pub(crate) fn confirm(&self, peer: HostId) -> Result<(), Unconfirmed> {
        self.core.fence();
        if !self.counts[usize::from(peer.0)].load(Relaxed) {
            return Err(Unconfirmed);
        }
        let says = self.core.load_across(self.said_by(peer));
        self.confirm_behind(peer, says)
    }

    /// The address of the word that a peer has for this host: what is to be read across behind what is to be confirmed.
    pub(crate) fn said_by(&self, peer: HostId) -> u64 {
        self.there(peer, SAID)
    }

    /// As [`Sessions::confirm`], of what was written in front of a read of that word, which has shown `says`.
    pub(crate) fn confirm_behind(&self, peer: HostId, says: u64) -> Result<(), Unconfirmed> {
        if !self.counts[usize::from(peer.0)].load(Relaxed) {
            return Err(Unconfirmed);
        }
        if says == self.own(peer, HEARD) && self.is_whole(peer) {
            return Ok(());
        }
        // Void before anything is loaded that the peer has pushed.
        self.end(peer);
        Err(Unconfirmed)
    }

    /// Nothing is confirmed to this peer until everything was pushed anew.
    fn end(&self, peer: HostId) {
        self.say(peer, 0);
    }

    /// Pushes everything anew if that is wanted; `push` does so.
    pub(crate) fn renew(&self, peer: HostId, push: impl FnOnce()) {
        let downs = self.downs();
        let heard = Said::of(self.own(peer, HEARD)).map_or(0, |heard| heard.own);
        let said = Said { own: downs, theirs: heard }.word();
        if self.own(peer, SAID) == said || !self.core.is_link_up() || !self.is_there(peer) {
            return;
        }
        self.end(peer);
        push();
        self.core.fence();
        // It is answered behind what was pushed; if no link was down meanwhile, all of that is there.
        let is_there = self.core.load_across(self.there(peer, SAID)) != LOST;
        if is_there && self.downs() == downs {
            self.say(peer, said);
            self.core.store_in_order(self.there(peer, HEARD), said);
        }
    }

    /// How often a peer has rung.
    pub(crate) fn rung(&self, peer: HostId) -> u64 {
        self.own(peer, RUNG)
    }

    /// Rings a peer for the `nth` time.
    pub(crate) fn ring(&self, peer: HostId, nth: u64) {
        self.core.store_in_order(self.there(peer, RUNG), nth);
    }
}

#[cfg(test)]
mod tests {
    use beeline_contract_adapter::{PublishPort, ViewPort};
    use beeline_link_sim::des::Picoseconds;
    use beeline_link_sim::machine::hosts::Hosts;
    use beeline_platforms::Platform;

    use super::*;
    use crate::assembly::{Shape, hosts};
    use crate::programs::{Program, run};
    use crate::words::{Published, Readers, View};

    const FIRST: HostId = HostId(0);
    const SECOND: HostId = HostId(1);

    fn at(us: u64) -> Picoseconds {
        Picoseconds::from_ns(us * 1000)
    }

    /// The sessions of a host that knows that the other one lives, and whose copies are whole.
    fn begun(core: &Core, wiring: &Wiring, peer: HostId) -> Sessions {
        let sessions = Sessions::new(core.clone(), wiring.clone());
        sessions.begin(peer);
        sessions.count(peer);
        while !sessions.is_whole(peer) {
            sessions.renew(peer, || {});
            core.sleep_until(core.now() + at(1));
        }
        sessions
    }

    /// The link of the second host goes down from 100 to 110 us, and a word of the first is lost. Copies are not confirmed until the first
    /// has pushed everything anew, although the link is up and everything else arrives.
    #[test]
    fn copies_that_lost_a_word_are_not_confirmed_until_it_is_pushed_anew() {
        let settings = hosts(&Platform::named("vpx3-1259-gen2x4-linux").unwrap(), &Shape::Pair).unwrap();
        let mut hosts = Hosts::new(settings, 1).unwrap();
        let wiring = Wiring::new(&mut hosts, 2);
        hosts.link_will_change(SECOND, at(100), false);
        hosts.link_will_change(SECOND, at(110), true);
        let other = wiring.clone();
        let first = move |core: Core| {
            let sessions = begun(&core, &wiring, SECOND);
            let copies = vec![(SECOND, wiring.of(SECOND).boards[0])];
            let mut words = Published::new(sessions.clone(), Readers::All, wiring.of(FIRST).board, copies);
            core.sleep_until(at(105));
            words.publish(7, 1);
            core.sleep_until(at(120));
            words.publish(8, 1);
            core.sleep_until(at(300));
            sessions.renew(SECOND, || words.push_to(SECOND));
        };
        let second = move |core: Core| {
            let sessions = begun(&core, &other, FIRST);
            let view = View::new(core.clone(), other.of(SECOND).boards[0]);
            core.sleep_until(at(200));
            sessions.renew(FIRST, || {});
            assert_eq!((view.load(7), view.load(8)), (0, 1), "one is lost, and the next one came");
            assert_eq!(sessions.confirm(FIRST), Err(Unconfirmed));
            core.sleep_until(at(400));
            sessions.renew(FIRST, || {});
            assert_eq!((view.load(7), sessions.confirm(FIRST)), (1, Ok(())));
        };
        let programs: Vec<Program<'_, ()>> = vec![(FIRST, Box::new(first)), (SECOND, Box::new(second))];
        run(hosts, programs);
    }

    /// What a host's own link has lost is found by its barrier, and nobody confirms anything with it until it has pushed that anew.
    #[test]
    fn barrier_finds_what_the_own_link_lost_and_is_void_for_the_other() {
        let settings = hosts(&Platform::named("vpx3-1259-gen2x4-linux").unwrap(), &Shape::Pair).unwrap();
        let mut hosts = Hosts::new(settings, 1).unwrap();
        let wiring = Wiring::new(&mut hosts, 2);
        hosts.link_will_change(FIRST, at(100), false);
        hosts.link_will_change(FIRST, at(110), true);
        let other = wiring.clone();
        let first = move |core: Core| {
            let sessions = begun(&core, &wiring, SECOND);
            core.sleep_until(at(200));
            let confirmed = sessions.confirm(SECOND);
            core.sleep_until(at(300));
            confirmed
        };
        let second = move |core: Core| {
            let sessions = begun(&core, &other, FIRST);
            core.sleep_until(at(250));
            sessions.confirm(FIRST)
        };
        let programs: Vec<Program<'_, _>> = vec![(FIRST, Box::new(first)), (SECOND, Box::new(second))];
        assert_eq!(run(hosts, programs).0, [Err(Unconfirmed), Err(Unconfirmed)]);
    }
}
