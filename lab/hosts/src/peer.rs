//! Another host, as a member sees it: whether it lives, by its heartbeat.

use std::time::Duration;

use beeline_contract_link::{Evidence, Heartbeat, LinkKind};
use beeline_contract_memory::Line;
use beeline_fabric::PairId;
use beeline_heartbeat::{Acceptance, LinkState, Session};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::hosts::HostId;

use crate::programs::Core;
use crate::wiring::{Wiring, line_of};
use crate::words::LastWords;

/// Hosts whose memories are joined: nobody sees both but by what they push.
pub(crate) enum Bridged {}

impl LinkKind for Bridged {
    const EVIDENCE: Evidence = Evidence::Heartbeat(Heartbeat::from_millis(1, 4));
}

pub(crate) struct Peer {
    pub host: HostId,
    beat: LinkState,
    /// The session that the member knows of.
    session: Option<Session>,
    next_beat: Picoseconds,
    /// What the member has with it, while it uses its segments and is used.
    pub provider: Option<PairId>,
    pub consumer: Option<PairId>,
    /// The last words of its board and of its claims, once the session has ended that it is in or will be.
    pub board: LastWords,
    pub claimed: LastWords,
    /// How often it has rung, as far as the member has looked; and has been rung.
    pub rung: u64,
    pub rings: u64,
}

/// What has become of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Came,
    Went,
    /// It went and came since the last look.
    CameAnew,
}

impl Peer {
    pub(crate) fn new(host: HostId, random: u64) -> Self {
        let beat = LinkState::new::<Bridged>(Acceptance::AtOnce, random, None);
        let (provider, consumer) = (None, None);
        Peer {
            host,
            beat,
            session: None,
            next_beat: Picoseconds::ZERO,
            provider,
            consumer,
            board: LastWords::default(),
            claimed: LastWords::default(),
            rung: 0,
            rings: 0,
        }
    }

    /// Looks at the peer's heartbeat and pushes this side's, if it is time.
    pub(crate) fn look(&mut self, core: &Core, wiring: &Wiring) -> Option<Change> {
        let now = core.now();
        if now < self.next_beat {
            return None;
        }
        let half = Heartbeat::of::<Bridged>().period().as_nanos() as u64 / 2;
        self.next_beat = now + Picoseconds::from_ns(half);
        let mut heard: Line = [0; 8];
        for (word, value) in heard.iter_mut().enumerate() {
            *value = core.load(wiring.of(core.host()).beats, line_of(self.host) + word * 8);
        }
        if let Some(line) = self.beat.look(Duration::from_nanos(now.as_ns()), &heard, None) {
            core.store_line(wiring.of(self.host).beats.address + line_of(core.host()) as u64, &line);
        }
        let before = std::mem::replace(&mut self.session, self.beat.status().session());
        match (before, self.session) {
            (None, Some(_)) => Some(Change::Came),
            (Some(_), None) => Some(Change::Went),
            (Some(before), Some(now)) if before != now => Some(Change::CameAnew),
            _ => None,
        }
    }

    pub(crate) fn is_there(&self) -> bool {
        self.session.is_some()
    }

    pub(crate) fn next_beat(&self) -> Picoseconds {
        self.next_beat
    }
}
