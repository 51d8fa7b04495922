//! The state of a link by heartbeats, as one side sees it: a state machine without a clock, a thread or memory of its own.
//!
//! At each look the caller gives it the time and what the peer has pushed last, and gets what to push. It looks first and speaks
//! afterwards, so that a beat shows that its sender has seen everything that had come before.
//!
//! # What it guarantees
//! - *Bound.* A peer is declared down when none of its beats was seen for the bound. A stretch between two looks counts with a
//!   period at most, however long it was: whoever did not look cannot know, and when both were stopped the other has to get
//!   its chance. While this side looks in each half period, a peer that stops is down a bound and a period after its last beat.
//! - *Sessions.* A link is up in a session: the incarnations of both sides. Each names the other's in its line, once for each
//!   incarnation of its own, and takes another one of its own whenever it gives a session up. So a session is up on a side once,
//!   and only if the other has taken it; and whoever has declared a peer down takes nothing that the peer stores until it has come
//!   as another incarnation, having seen this side's new one.
//! - *Symmetry.* Who sees that the other has taken another incarnation gives the session up too. So both learn of every end, the
//!   second one at its first look at what the first has pushed since, or by silence.
//!
//! It cannot be that both know an end at one moment, or that one knows that the other knows (two generals): until it looks, a side
//! that was stopped goes on as if the link were up, and what it stores comes through. Fencing is by what both look at: sessions.
//!
//! Incarnations are random numbers of 32 bits, and one that follows another differs from it. A peer that guesses or repeats
//! one deceives about itself alone: whatever it pushes, the link is up or down.

use std::time::Duration;

use beeline_contract_link::{Heartbeat, LinkKind};
use beeline_contract_memory::Line;

use crate::line::{LEFT, Said, is_later, next_beat};
use crate::status::{Counters, Down, Session, Status};

/// Beats of a peer, counted from one seen after this side's incarnation was pushed, until it is taken. The first was stored after
/// this side's line could be seen, and the second after its sender has looked since the first. So the second is of a peer that
/// does not hold on to an older incarnation of this side, and no two sides take each other's old incarnations for ever.
const BEATS_BEFORE_ACCEPTED: u32 = 2;

/// When a peer that comes is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acceptance {
    /// As soon as it beats.
    #[default]
    AtOnce,
    /// When it is told so, for a session that is on offer: [`LinkState::accept`]. Until then the link is up on neither side, and
    /// what the session needs can be prepared.
    WhenTold,
}

/// One side of a link.
#[derive(Clone, Debug)]
pub struct LinkState {
    declared: Heartbeat,
    acceptance: Acceptance,
    random: u64,
    ours: Said,
    is_pushed: bool,
    /// What somebody has asked for; a look makes it so, because nothing but a look changes what this side says.
    wants_disabled: bool,
    peer: Option<Peer>,
    offered: Option<Session>,
    told: Option<Session>,
    status: Status,
    mismatch: bool,
    looked_at: Option<Duration>,
    counters: Counters,
}

/// The incarnation that the peer had at the last look.
#[derive(Clone, Copy, Debug)]
struct Peer {
    incarnation: u32,
    beat: u32,
    /// The beat at the first look since this side has pushed its present incarnation.
    first: Option<u32>,
    silence: Duration,
    is_disabled: bool,
}

impl LinkState {
    /// A side of a link of kind `K`. `random` makes its incarnations: another number each time, in each process. `before` is what
    /// stands where this side pushes to, if that can be seen.
    pub fn new<K: LinkKind>(acceptance: Acceptance, random: u64, before: Option<&Line>) -> Self {
        Self::declaring(Heartbeat::of::<K>(), acceptance, random, before)
    }

    pub(crate) fn declaring(
        declared: Heartbeat,
        acceptance: Acceptance,
        random: u64,
        before: Option<&Line>,
    ) -> Self {
        let before = before.map_or(0, |line| (line[0] >> 32) as u32);
        let ours = Said {
            incarnation: before,
            beat: 0,
            accepted: 0,
            declared_down: 0,
            declared: declared.to_bits(),
            is_disabled: false,
        };
        let mut state = LinkState {
            declared,
            acceptance,
            random,
            ours,
            is_pushed: false,
            wants_disabled: false,
            peer: None,
            offered: None,
            told: None,
            status: Status::NeverUp,
            mismatch: false,
            looked_at: None,
            counters: Counters::default(),
        };
        state.come_anew(0);
        state
    }

    /// Looks at what the peer has pushed, and returns what this side has to push now; `None` once the link is down for good.
    /// `pushed` is what stands where this side pushed to last, if that can be seen.
    #[must_use = "a side whose line is not pushed is silent"]
    pub fn look(&mut self, now: Duration, heard: &Line, pushed: Option<&Line>) -> Option<Line> {
        if self.is_over() {
            return None;
        }
        if pushed.is_some_and(|pushed| !self.is_own(pushed)) {
            self.give_up(Down::Displaced, now);
            return None;
        }
        self.obey(now);
        let looked_at = self.looked_at.replace(now).unwrap_or(now);
        let pause = now.saturating_sub(looked_at);
        self.counters.longest_pause = self.counters.longest_pause.max(pause);
        let counted = pause.min(self.declared.period());
        match Said::decode(heard) {
            Some(said) => self.hear(&said, counted, now),
            None => {
                self.counters.unreadable += u64::from(*heard != [0; 8]);
                self.hear_nothing(counted, now);
            }
        }
        self.ours.beat = next_beat(self.ours.beat);
        self.is_pushed = true;
        Some(self.ours.encode())
    }

    /// Whether a line that stands where this side pushes to is its own, or that of nobody whom it has displaced.
    pub fn is_own(&self, pushed: &Line) -> bool {
        !self.is_pushed || *pushed == self.ours.encode()
    }

    /// Takes a peer that is on offer; `false` if it is no longer. The link is up when the peer has taken this side too.
    pub fn accept(&mut self, session: Session) -> bool {
        let is_on_offer = self.offered == Some(session);
        if is_on_offer {
            self.told = self.offered.take();
        }
        is_on_offer
    }

    /// Returns the session that waits for [`LinkState::accept`].
    pub fn offered(&self) -> Option<Session> {
        self.offered
    }

    /// Ends the link in order; the peer is told by what is returned, which is to be pushed. `None` if somebody else has taken this
    /// side.
    pub fn leave(&mut self, now: Duration) -> Option<Line> {
        if self.is_over() {
            return None;
        }
        let farewell = Said { beat: LEFT, ..self.ours };
        self.give_up(Down::Closed, now);
        Some(farewell.encode())
    }

    /// Takes the link down at the next look, until it is enabled: this side goes on beating, and the peer learns why.
    pub fn disable(&mut self) {
        self.wants_disabled = true;
    }

    /// Lets the link come up again after [`LinkState::disable`], in another session.
    pub fn enable(&mut self) {
        self.wants_disabled = false;
    }

    /// Whether the link stays down until it is enabled on this side.
    pub fn is_disabled(&self) -> bool {
        self.wants_disabled
    }

    /// Whether the link stays down until it is enabled on the peer's side, as that has said within the bound.
    pub fn is_peer_disabled(&self) -> bool {
        self.peer.is_some_and(|peer| peer.is_disabled && peer.silence < self.declared.bound())
    }

    /// Ends the link because this side's own memory cannot be used.
    pub(crate) fn fail(&mut self, now: Duration) {
        if !self.is_over() {
            self.give_up(Down::Failed, now);
        }
    }

    /// Returns how the link stands.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Whether the peer declares another period or bound: then the link does not come up.
    pub fn is_mismatch(&self) -> bool {
        self.mismatch
    }

    /// Returns what was counted so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether the link is down for good.
    pub fn is_over(&self) -> bool {
        matches!(self.status, Status::Down { reason, .. } if reason.is_final())
    }

    /// Takes the link down, or lets it come up, as somebody has asked.
    fn obey(&mut self, now: Duration) {
        if std::mem::replace(&mut self.ours.is_disabled, self.wants_disabled) == self.wants_disabled {
            return;
        }
        if self.wants_disabled {
            self.give_up(Down::Disabled, now);
        } else {
            self.come_anew(0);
        }
    }

    fn hear(&mut self, said: &Said, counted: Duration, now: Duration) {
        let Some(peer) = self.peer.as_mut().filter(|peer| peer.incarnation == said.incarnation) else {
            return self.hear_another(said, now);
        };
        if said.beat == LEFT {
            (self.offered, self.told) = (None, None);
            if self.ours.accepted == said.incarnation {
                self.give_up(Down::Left, now);
            }
            return;
        }
        let first = *peer.first.get_or_insert(said.beat);
        if !is_later(said.beat, peer.beat) {
            return self.hear_nothing(counted, now);
        }
        (peer.beat, peer.silence) = (said.beat, Duration::ZERO);
        self.counters.beats_heard += 1;
        let is_old = is_later(said.beat, first.wrapping_add(BEATS_BEFORE_ACCEPTED - 1));
        if self.ours.accepted == said.incarnation {
            self.agree(said, now);
        } else if is_old && !self.ours.is_disabled && may_be_taken(said, self.ours.incarnation) {
            self.take(said, now);
        }
    }

    /// An incarnation that the last look did not see.
    fn hear_another(&mut self, said: &Said, now: Duration) {
        if self.ours.accepted != 0 {
            let is_of_us = said.declared_down == self.ours.incarnation;
            let reason = match said.is_disabled {
                _ if is_of_us => Down::DeclaredDown,
                true => Down::PeerDisabled,
                false => Down::Restarted,
            };
            self.give_up(reason, now);
        }
        (self.offered, self.told, self.mismatch) = (None, None, false);
        self.peer = Some(Peer {
            incarnation: said.incarnation,
            beat: said.beat,
            first: None,
            silence: Duration::ZERO,
            is_disabled: said.is_disabled,
        });
    }

    fn hear_nothing(&mut self, counted: Duration, now: Duration) {
        let Some(peer) = &mut self.peer else { return };
        peer.silence = peer.silence.saturating_add(counted);
        let silence = peer.silence;
        if self.status.is_up() {
            self.counters.longest_silence = self.counters.longest_silence.max(silence);
        }
        if silence >= self.declared.bound() {
            self.offered = None;
            if self.ours.accepted != 0 {
                self.give_up(Down::Silent { silence }, now);
            }
        }
    }

    /// A peer that beats, and that holds on to no older incarnation of this side.
    fn take(&mut self, said: &Said, now: Duration) {
        let session = Session::new(self.ours.incarnation, said.incarnation);
        self.mismatch = said.declared != self.ours.declared;
        if self.mismatch {
            return;
        }
        if self.acceptance == Acceptance::WhenTold && self.told != Some(session) {
            self.offered = Some(session);
            return;
        }
        self.ours.accepted = said.incarnation;
        self.agree(said, now);
    }

    /// A peer that this side has taken.
    fn agree(&mut self, said: &Said, now: Duration) {
        // A side that is disabled takes nobody, and an incarnation does not become so.
        let is_taken = said.accepted == self.ours.incarnation && !said.is_disabled;
        if is_taken && !self.status.is_up() {
            let session = Session::new(self.ours.incarnation, said.incarnation);
            self.status = Status::Up { session, since: now };
            self.counters.times_up += 1;
        }
        // Before it has taken this side it may still say nothing.
        if !is_taken && (said.accepted != 0 || self.status.is_up()) {
            self.give_up(Down::Unsound, now);
        }
    }

    /// Gives up the session, if there is one, and comes anew.
    fn give_up(&mut self, reason: Down, now: Duration) {
        let declared_down = match reason {
            Down::Silent { .. } | Down::Unsound => self.ours.accepted,
            _ => 0,
        };
        if self.status.is_up() {
            self.counters.times_down += 1;
            self.counters.silent += u64::from(matches!(reason, Down::Silent { .. }));
            self.counters.declared_down += u64::from(reason == Down::DeclaredDown);
            self.counters.disabled += u64::from(matches!(reason, Down::Disabled | Down::PeerDisabled));
        }
        if self.status.is_up() || reason.is_final() || reason == Down::Disabled {
            self.status = Status::Down { reason, since: now };
        }
        self.come_anew(declared_down);
    }

    fn come_anew(&mut self, declared_down: u32) {
        let before = self.ours.incarnation;
        let another = loop {
            let random = self.next_random();
            if random != 0 && random != before {
                break random;
            }
        };
        self.ours = Said { incarnation: another, beat: 0, accepted: 0, declared_down, ..self.ours };
        (self.offered, self.told) = (None, None);
        if let Some(peer) = &mut self.peer {
            peer.first = None;
        }
    }

    /// SplitMix64: every state gives another number, and the next 2^64 are all different.
    fn next_random(&mut self) -> u32 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 32) as u32
    }
}

/// Whether a peer that beats holds on to no older incarnation of this side, and nobody has taken the link down there.
fn may_be_taken(said: &Said, ours: u32) -> bool {
    !said.is_disabled && (said.accepted == 0 || said.accepted == ours)
}

#[cfg(test)]
#[cfg(not(loom))]
#[path = "state_tests.rs"]
mod tests;

#[cfg(test)]
#[cfg(not(loom))]
#[path = "state_properties.rs"]
mod properties;
