//! Calls on connections to segments of other members.

use beeline_contract_adapter::Adapter;

use super::Outcome;
use crate::board::read_group;
use crate::call::{Done, Value};
use crate::ids::{Nanos, PairId, RemoteSegment, Ticket};
use crate::member::Member;
use crate::refusal::Refusal;
use crate::segment::memory::Part;
use crate::segment::remote::{Remote, Stage};
use crate::sequence::{ConnectionView, SequenceStart, SequenceStatus, Standing};

impl<A: Adapter> Member<A> {
    pub(super) fn remote(&mut self, remote: RemoteSegment) -> Result<&mut Remote, Refusal> {
        self.remotes.get_mut(&remote).ok_or(Refusal::IllegalParameter)
    }

    /// How a connection stands at this moment; what is lost stays so. Of several holders the first that is there counts. `None` without a
    /// connection.
    pub(crate) fn standing(&mut self, handle: RemoteSegment) -> Option<Standing> {
        loop {
            let standing = self.standing_of_first(handle)?;
            if standing != Standing::Gone {
                return Some(standing);
            }
            let remote = self.remotes.get_mut(&handle)?;
            let Stage::Connected(connection) = &mut remote.stage else { return None };
            if connection.is_lost {
                return Some(Standing::Gone);
            }
            if let Some(next) = remote.holders.others.pop() {
                let gone = core::mem::replace(connection, next);
                self.let_go(&gone);
                continue;
            }
            let own = self.links.best(connection.paths);
            match own.filter(|_| connection.group != 0) {
                Some(own) => {
                    self.seek_holders(handle);
                    return Some(Standing::seeking(own));
                }
                None => connection.is_lost = true,
            }
        }
    }

    /// How a connection stands as far as its first holder goes.
    pub(crate) fn standing_of_first(&mut self, handle: RemoteSegment) -> Option<Standing> {
        let remote = self.remotes.get_mut(&handle)?;
        let Stage::Connected(connection) = &mut remote.stage else { return None };
        let board = self.pairs.board(connection.pair).filter(|_| !connection.is_lost);
        if let Some(board) = board {
            // It may be held by several since it was connected to.
            connection.group = read_group(board, connection.slot);
        }
        let own = |adapter| self.links.of(adapter).unwrap_or_default();
        let connected = connection.connected();
        let found = board.and_then(|board| Some((board, connected.state(board)?)));
        let Some((board, state)) = found else { return Some(Standing::Gone) };
        connection.notices_seen = state.notices;
        Some(connected.standing_by_links(board, own))
    }

    /// The words of a connection, with its pair; `None` once it is lost. Of several holders those of the first; `own` is this member's own
    /// board.
    ///
    /// # Errors
    /// There is no such connection, or it is not made.
    pub fn view(
        &mut self,
        handle: RemoteSegment,
        own: &A::View,
    ) -> Result<Option<(PairId, ConnectionView<A::View>)>, Refusal>
    where
        A::View: Clone,
    {
        if self.standing_of(handle)? == Standing::Gone {
            return Ok(None);
        }
        let remote = self.remote(handle)?;
        let connection = *remote.connection()?;
        let theirs = self.pairs.board(connection.pair).cloned();
        Ok(theirs.map(|theirs| {
            let connected = connection.connected();
            (connection.pair, ConnectionView { own: own.clone(), theirs, connected })
        }))
    }

    fn standing_of(&mut self, handle: RemoteSegment) -> Result<Standing, Refusal> {
        self.remote(handle)?;
        self.standing(handle).ok_or(Refusal::SegmentNotConnected)
    }

    pub(super) fn map_remote(&mut self, handle: RemoteSegment, part: Part) -> Outcome {
        if self.standing_of(handle)? == Standing::Gone {
            return Err(Refusal::NotConnected);
        }
        let remote = self.remote(handle)?;
        let connection = *remote.connection()?;
        if !part.is_within(connection.bytes) {
            return Err(Refusal::OutOfRange);
        }
        remote.maps += 1;
        Ok(Done::Now(Value::MapRemote(connection.pair, connection.memory, part)))
    }

    pub(super) fn unmap_remote(&mut self, handle: RemoteSegment) -> Outcome {
        let remote = self.remote(handle)?;
        remote.maps = remote.maps.checked_sub(1).ok_or(Refusal::IllegalParameter)?;
        Ok(Done::Now(Value::Nothing))
    }

    pub(super) fn start_sequence(&mut self, handle: RemoteSegment) -> Outcome {
        let (status, start) = self.standing_of(handle)?.start();
        Ok(Done::Now(Value::Started(status, start)))
    }

    pub(super) fn check_sequence(&mut self, handle: RemoteSegment, start: SequenceStart) -> Outcome {
        let standing = self.standing_of(handle)?;
        // It may be another holder than when the sequence began.
        let connection = *self.remote(handle)?.connection()?;
        let own = |adapter| self.links.of(adapter).unwrap_or_default();
        let status = match (standing, self.pairs.board(connection.pair)) {
            (Standing::Gone, _) => SequenceStatus::NotRetriable,
            (Standing::There(_), Some(board)) => match connection.connected().check(start, board, own) {
                // It went after the look at its standing. The next look asks for another holder, if there may be one.
                SequenceStatus::NotRetriable if connection.group != 0 => SequenceStatus::Pending,
                status => status,
            },
            (Standing::There(_), None) => SequenceStatus::Pending,
        };
        Ok(Done::Now(Value::Checked(status)))
    }

    pub(super) fn wait_remote(
        &mut self,
        handle: RemoteSegment,
        timeout_nanos: Option<u64>,
        now: Nanos,
    ) -> Outcome {
        if self.remote(handle)?.has_callback {
            return Err(Refusal::IllegalOperation);
        }
        let ticket = Ticket(self.number());
        self.remote(handle)?.waiters.push(ticket, timeout_nanos.map(|nanos| now.after(nanos)));
        self.note_remote(handle);
        self.tell_of_remote(handle);
        self.expire(now);
        Ok(Done::Wait(ticket))
    }

    pub(super) fn disconnect(&mut self, handle: RemoteSegment) -> Outcome {
        let remote = self.remote(handle)?;
        if remote.maps != 0 {
            return Err(Refusal::Busy);
        }
        let first = remote.connection().copied();
        let others = core::mem::take(&mut remote.holders.others);
        first.into_iter().chain(others).for_each(|connection| self.let_go(&connection));
        self.held.remove(&handle);
        if let Some(remote) = self.remotes.remove(&handle) {
            self.note_remote(handle);
            self.cancel(remote.waiters);
        }
        Ok(Done::Now(Value::Nothing))
    }
}
