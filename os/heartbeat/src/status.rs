//! How a link stands, and what has become of it so far.

use std::fmt;
use std::time::Duration;

/// One time that a link is up, from both sides having taken each other until one of them gives it up. It never comes back.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Session {
    ours: u32,
    theirs: u32,
}

impl Session {
    pub(crate) fn new(ours: u32, theirs: u32) -> Self {
        Session { ours, theirs }
    }

    /// A number that both sides give the session, not 0. What is stored for a session carries it, or something made of it, so
    /// that what a side stores late for another session is not taken.
    pub fn number(self) -> u64 {
        let (low, high) = (self.ours.min(self.theirs), self.ours.max(self.theirs));
        u64::from(high) << 32 | u64::from(low)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Session({:#018x})", self.number())
    }
}

/// Why a link that was up is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Down {
    /// The peer was silent past the bound: it ended, or hangs, or nothing comes through. Its stores may still come.
    Silent {
        /// What was counted of it: no more than a period from one look to the next.
        silence: Duration,
    },
    /// The peer has declared this side down, because this side was silent past the bound.
    DeclaredDown,
    /// The peer came anew.
    Restarted,
    /// The peer has left in order.
    Left,
    /// Somebody has taken the link down on this side ([`crate::HeartbeatLink::disable`]). It stays down until it is enabled.
    Disabled,
    /// Somebody has taken the link down on the peer's side. It stays down until it is enabled there.
    PeerDisabled,
    /// The peer takes back what it said, as no sound one does.
    Unsound,
    /// Somebody else stores where this side does: another process has taken its place. The link stays down.
    Displaced,
    /// The port of this side ([`beeline_contract_link::StatePort`]) panicked. The link stays down.
    Failed,
    /// This side has left. The link stays down.
    Closed,
    /// This process was forked from the one whose link it is.
    Forked,
}

impl Down {
    /// Whether the link stays down whatever comes.
    pub fn is_final(self) -> bool {
        matches!(self, Down::Displaced | Down::Failed | Down::Closed | Down::Forked)
    }
}

impl fmt::Display for Down {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Down::Silent { silence } => write!(out, "the peer was silent for {silence:?}"),
            Down::DeclaredDown => out.write_str("the peer has declared this side down"),
            Down::Restarted => out.write_str("the peer came anew"),
            Down::Left => out.write_str("the peer has left"),
            Down::Disabled => out.write_str("the link was taken down on this side"),
            Down::PeerDisabled => out.write_str("the link was taken down on the peer's side"),
            Down::Unsound => out.write_str("the peer took back what it had said"),
            Down::Displaced => out.write_str("somebody else has taken this side of the link"),
            Down::Failed => out.write_str("the memory of this side's line failed"),
            Down::Closed => out.write_str("this side has left"),
            Down::Forked => out.write_str("this process was forked from the one whose link it is"),
        }
    }
}

/// How a link stands. Times are those of the link's clock: of [`crate::HeartbeatLink`], since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has not been up yet.
    NeverUp,
    /// Both sides have taken each other, as far as this side can know.
    Up { session: Session, since: Duration },
    /// It was up, or somebody has taken it down.
    Down { reason: Down, since: Duration },
}

impl Status {
    /// Whether the link is up.
    pub fn is_up(&self) -> bool {
        self.session().is_some()
    }

    /// Returns the session, while the link is up.
    pub fn session(&self) -> Option<Session> {
        match self {
            Status::Up { session, .. } => Some(*session),
            Status::NeverUp | Status::Down { .. } => None,
        }
    }
}

/// What one side has counted since it opened the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub times_up: u64,
    pub times_down: u64,
    /// Of [`Counters::times_down`]: for silence of the peer.
    pub silent: u64,
    /// Of [`Counters::times_down`]: because the peer had declared this side down.
    pub declared_down: u64,
    /// Of [`Counters::times_down`]: because somebody had taken the link down, on either side.
    pub disabled: u64,
    pub beats_heard: u64,
    /// Lines that no side says: of two incarnations at once, or of another format. Some are seen while a peer comes anew.
    pub unreadable: u64,
    /// The longest that a peer was silent while the link was up, as far as it was counted.
    pub longest_silence: Duration,
    /// The longest that this side did not look: what a peer saw as this side's silence, about.
    pub longest_pause: Duration,
}
