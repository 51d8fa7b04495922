//! A segment or an interrupt of another member: the attempt to connect to it, the connection, and what the program has been told.

use alloc::vec::Vec;

use super::memory::Memory;
use super::waiters::Waiters;
use crate::event::RemoteEvent;
use crate::ids::{AdapterNumber, MemberRange, Name, Nanos, NodeId, PairId, Slot, Ticket};
use crate::link::Paths;
use crate::refusal::Refusal;
use crate::sequence::{Connected, SequenceStart, Standing};
use crate::want::Candidate;

#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) node: NodeId,
    pub(crate) name: Name,
    pub(crate) adapter: AdapterNumber,
    pub(crate) has_callback: bool,
    pub(crate) stage: Stage,
    pub(crate) maps: u32,
    pub(crate) waiters: Waiters,
    pub(crate) holders: Holders,
    told: ToldOf,
}

/// What a connection to a segment of several holders has beside its first one.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    pub(crate) others: Vec<Connection>,
    /// Who may be another one, and is not reached yet.
    pub(crate) more: Vec<Candidate>,
    /// When the names are looked at for those that came since.
    pub(crate) next_look: Nanos,
    /// None that is known is there, and the names are being looked at.
    pub(crate) is_seeking: bool,
    /// The names could not be looked at, and none that is known is there.
    pub(crate) has_failed: bool,
}

#[derive(Debug)]
pub(crate) enum Stage {
    Connecting(Attempt),
    Connected(Connection),
    NotMade(Refusal),
}

/// An attempt to connect.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Whoever waits for it; nobody if it is asynchronous.
    pub(crate) ticket: Option<Ticket>,
    pub(crate) until: Option<Nanos>,
    /// It is tried once, and refused with the reason.
    pub(crate) is_once: bool,
    pub(crate) aim: Aim,
    pub(crate) step: Step,
}

/// What an attempt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    Connection,
    /// To know a holder among these, without a connection.
    Holder {
        among: MemberRange,
    },
}

#[derive(Debug)]
pub(crate) enum Step {
    /// The name is being looked for.
    Finding,
    /// Who may have the segment; the last is the next that is asked.
    Trying { candidates: Vec<Candidate>, reason: Refusal },
    /// Until it is tried again, after it has failed for the reason.
    Resting { until: Nanos, reason: Refusal },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    pub(crate) pair: PairId,
    pub(crate) slot: Slot,
    pub(crate) incarnation: u32,
    pub(crate) bytes: u64,
    pub(crate) memory: Memory,
    /// Which segment of several holders it is; zero if it is none.
    pub(crate) group: u64,
    /// The adapters by which it could be connected to when it was.
    pub(crate) paths: Paths,
    /// Its member says who may connect.
    pub(crate) is_listed: bool,
    /// How often its member had asked to be disconnected from when that was told last.
    pub(crate) notices: u8,
    /// The same at the last look at how it stands.
    pub(crate) notices_seen: u8,
    /// It never comes back.
    pub(crate) is_lost: bool,
}

impl Connection {
    pub(crate) fn connected(&self) -> Connected {
        Connected { slot: self.slot, incarnation: self.incarnation, paths: self.paths }
    }
}

/// How the program believes that it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToldOf {
    /// That it is being made.
    Connecting,
    /// Up, with the links as they were then.
    Up(SequenceStart),
    Down,
    Over,
}

impl Remote {
    pub(crate) fn new(node: NodeId, name: Name, adapter: AdapterNumber, attempt: Attempt) -> Self {
        Remote {
            node,
            name,
            adapter,
            has_callback: false,
            stage: Stage::Connecting(attempt),
            maps: 0,
            waiters: Waiters::default(),
            holders: Holders::default(),
            told: ToldOf::Connecting,
        }
    }

    /// Why there is no connection so far.
    pub(crate) fn reason_so_far(&self) -> Refusal {
        match &self.stage {
            Stage::Connecting(Attempt { step: Step::Resting { reason, .. }, .. }) => *reason,
            // Members are being reached.
            Stage::Connecting(Attempt { step: Step::Trying { .. }, .. }) => Refusal::NodeNotResponding,
            _ => Refusal::Timeout,
        }
    }

    /// The connection.
    ///
    /// # Errors
    /// There is none yet, or there will be none.
    pub(crate) fn connection(&self) -> Result<&Connection, Refusal> {
        match &self.stage {
            Stage::Connected(connection) => Ok(connection),
            _ => Err(Refusal::SegmentNotConnected),
        }
    }

    /// When somebody's time is over, or the attempt goes on.
    pub(crate) fn next_end(&self) -> Option<Nanos> {
        let attempt = match &self.stage {
            Stage::Connecting(Attempt { step: Step::Resting { until, .. }, .. }) => Some(*until),
            Stage::Connecting(attempt) => attempt.until,
            _ => None,
        };
        attempt.into_iter().chain(self.waiters.next_end()).min()
    }

    /// Whoever waits for the connection itself learns of it, and is not told again.
    pub(crate) fn set_told_connected(&mut self, standing: Standing) {
        self.told = match standing.start() {
            (_, Some(start)) => ToldOf::Up(start),
            _ => ToldOf::Down,
        };
    }

    /// The next event that the program has not been told of. `standing` is what the last look has found of the connection, if there is one.
    pub(crate) fn next_event(&mut self, standing: Option<Standing>) -> Option<RemoteEvent> {
        let (bytes, fails_over) = match &self.stage {
            Stage::Connecting(_) => return None,
            Stage::NotMade(_) if self.told == ToldOf::Over => return None,
            Stage::NotMade(refusal) => {
                self.told = ToldOf::Over;
                return Some(RemoteEvent::NotMade(*refusal));
            }
            Stage::Connected(connection) => (connection.bytes, connection.paths.is_several()),
        };
        let standing = standing?;
        let up = standing.start().1;
        let (told, event) = match (self.told, standing, up) {
            (ToldOf::Over, ..) => return None,
            (ToldOf::Connecting, _, up) => (up.map_or(ToldOf::Down, ToldOf::Up), RemoteEvent::Connect(bytes)),
            (_, Standing::Gone, _) => (ToldOf::Over, RemoteEvent::Lost),
            (told, ..) if self.take_notice() => (told, RemoteEvent::Disconnect),
            (ToldOf::Up(_), _, Some(_)) if fails_over => return None,
            (ToldOf::Up(told), _, up) if up != Some(told) => (ToldOf::Down, RemoteEvent::NotOperational),
            (ToldOf::Down, _, Some(up)) => (ToldOf::Up(up), RemoteEvent::Operational),
            _ => return None,
        };
        self.told = told;
        Some(event)
    }

    /// Whether the last look has found that the connection's member asks to be disconnected from, and the program was not told so.
    /// It counts as told from here on.
    fn take_notice(&mut self) -> bool {
        let Stage::Connected(connection) = &mut self.stage else { return false };
        let seen = connection.notices_seen;
        core::mem::replace(&mut connection.notices, seen) != seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SegmentId;
    use crate::link::LinkWord;
    use crate::sequence::Path;

    fn connected(paths: u16) -> Remote {
        let (ticket, aim, step) = (None, Aim::Connection, Step::Finding);
        let attempt = Attempt { ticket, until: None, is_once: true, aim, step };
        let adapter = AdapterNumber::new(0).unwrap();
        let mut remote = Remote::new(NodeId(8), Name::segment(SegmentId(1)), adapter, attempt);
        let (pair, slot, memory) = (PairId(1), Slot(0), Memory::Bank { offset: 0 });
        let (incarnation, bytes, group, is_lost, paths) = (1, 64, 0, false, Paths::of(paths));
        let (is_listed, notices) = (false, 254);
        remote.stage = Stage::Connected(Connection {
            pair,
            slot,
            incarnation,
            bytes,
            memory,
            group,
            paths,
            is_listed,
            notices,
            notices_seen: notices,
            is_lost,
        });
        remote
    }

    fn links(own: u64, theirs: u64) -> Option<Standing> {
        let link = |epoch| LinkWord { epoch, is_up: epoch % 2 == 1 };
        let adapter = AdapterNumber::FIRST;
        Some(Standing::There(Path { adapter, own: link(own), theirs: link(theirs) }))
    }

    #[test]
    fn links_that_flap_between_two_looks_are_told_as_both_events() {
        let mut remote = connected(1);
        assert_eq!(remote.next_event(links(1, 1)), Some(RemoteEvent::Connect(64)));
        assert_eq!(remote.next_event(links(1, 1)), None);
        assert_eq!(remote.next_event(links(1, 3)), Some(RemoteEvent::NotOperational));
        assert_eq!(remote.next_event(links(1, 3)), Some(RemoteEvent::Operational));
        assert_eq!(remote.next_event(links(2, 3)), Some(RemoteEvent::NotOperational));
        assert_eq!(remote.next_event(links(2, 2)), None);
    }

    #[test]
    fn connection_by_several_adapters_is_told_of_only_when_none_is_up() {
        let mut remote = connected(0b11);
        assert_eq!(remote.next_event(links(1, 1)), Some(RemoteEvent::Connect(64)));
        assert_eq!(remote.next_event(links(3, 1)), None);
        assert_eq!(remote.next_event(links(3, 2)), Some(RemoteEvent::NotOperational));
        assert_eq!(remote.next_event(links(3, 3)), Some(RemoteEvent::Operational));
        assert_eq!(remote.next_event(links(5, 3)), None);
    }

    #[test]
    fn request_to_disconnect_is_told_once_for_all_before_a_look_and_changes_nothing_else() {
        let mut remote = connected(1);
        let mut next = |standing, notices| {
            let Stage::Connected(connection) = &mut remote.stage else { unreachable!("it is connected") };
            connection.notices_seen = notices;
            remote.next_event(standing)
        };
        assert_eq!(next(links(1, 1), 254), Some(RemoteEvent::Connect(64)));
        assert_eq!(next(links(1, 1), 254), None);
        // Two of them, and the number begins anew.
        assert_eq!(next(links(1, 1), 0), Some(RemoteEvent::Disconnect));
        assert_eq!(next(links(1, 1), 0), None);
        assert_eq!(next(links(1, 2), 1), Some(RemoteEvent::Disconnect));
        assert_eq!(next(links(1, 2), 1), Some(RemoteEvent::NotOperational));
        assert_eq!(next(links(1, 3), 1), Some(RemoteEvent::Operational));
        assert_eq!(next(Some(Standing::Gone), 2), Some(RemoteEvent::Lost));
        assert_eq!(next(Some(Standing::Gone), 3), None);
    }

    #[test]
    fn lost_connection_is_told_once_and_nothing_after_it() {
        let mut remote = connected(1);
        assert_eq!(remote.next_event(links(1, 2)), Some(RemoteEvent::Connect(64)));
        assert_eq!(remote.next_event(Some(Standing::Gone)), Some(RemoteEvent::Lost));
        assert_eq!(remote.next_event(Some(Standing::Gone)), None);
        assert_eq!(remote.next_event(links(1, 1)), None);
    }
}
