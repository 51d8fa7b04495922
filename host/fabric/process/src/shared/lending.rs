//! Passing the memory that one segment has alone, on both sides.

use std::thread::sleep;
use std::time::{Duration, Instant};

use beeline_domain::{ConnectError, Connection, PeerId, Refusal as Refused, Reply};
use beeline_fabric::{Call, Done, Lent, Part, Refusal, SequenceStatus, Value};

use super::{Of, Shared};
use crate::fetch::{FetchError, Found, Own, Place, Wanted, fetch};
use crate::packets::Fetched;
use crate::pair::{PATIENCE, Pair};

/// Between two tries where several hold what is wanted.
const REST: Duration = Duration::from_millis(1);

impl Shared {
    /// The memory of a part, which the other member may have to be asked for: of several holders each in turn, and each for [`PATIENCE`] at
    /// most.
    ///
    /// # Errors
    /// [`Refusal::NotConnected`]: the member has no such segment any more. [`Refusal::NodeNotResponding`]: it does not answer, or passes
    /// something else.
    pub(crate) fn have(&self, found: Found, of: Of, part: Part) -> Result<Place, Refusal> {
        let (mut found, began, mut asked) = (found, Instant::now(), 0);
        loop {
            let (refusal, remote) = match (found, of) {
                (Found::Here(place), _) => return Ok(place),
                (Found::There(Wanted { connection, lent, bytes }), Of::Remote(remote)) => {
                    match self.fetch(&connection, lent, bytes) {
                        // Of two threads that have asked, both use what came first.
                        Ok(own) => return Ok(self.lock().fetched.entry(remote).or_insert(own).place(part)),
                        Err(refusal) => (refusal, remote),
                    }
                }
                // Of several holders the one that it was to be had of has gone.
                (Found::Nowhere | Found::Program(_), Of::Remote(remote)) => (Refusal::NotConnected, remote),
                (_, Of::Local(_)) => return Err(Refusal::IllegalOperation),
            };
            // Looks who is there.
            let call = Call::StartSequence(remote);
            let started = self.enter(|state, now| state.member.call(call, now));
            let is_lost = matches!(started, Ok(Done::Now(Value::Started(SequenceStatus::NotRetriable, _))));
            asked += 1;
            let mut state = self.lock();
            let is_over = asked >= state.member.holders_of(remote) && began.elapsed() >= PATIENCE;
            if is_lost || !state.member.is_held(remote) || is_over {
                return Err(refusal);
            }
            state.member.pass_over_holder(remote);
            found = state.find(remote, part);
            drop(state);
            // That somebody has died is not known at once.
            sleep(REST);
        }
    }

    /// Asks the member of a connection for memory.
    ///
    /// # Errors
    /// As [`Shared::have`].
    pub(crate) fn fetch(&self, connection: &Connection, lent: Lent, bytes: u64) -> Result<Own, Refusal> {
        fetch(connection, lent, bytes, (&self.terms(), &self.domain.disposer())).map_err(|error| {
            tracing::debug!(%error, "the memory of a segment was not passed");
            match error {
                FetchError::Connect(ConnectError::Refused { .. }) => Refusal::NotConnected,
                _ => Refusal::NodeNotResponding,
            }
        })
    }

    /// The answer to a peer that asks for the memory of a segment.
    pub(crate) fn lend(&self, peer: PeerId, lent: Lent) -> Result<Reply, Refused> {
        let own = {
            let mut state = self.lock();
            // Whoever only asks questions is connected, too, and has no pair.
            let is_of = |pair: &Pair| pair.user().is_some() && pair.peer().is_some_and(|it| it.id() == peer);
            let pair = state.pairs.iter().find(|(_, pair)| is_of(pair)).map(|(number, _)| *number);
            let lends = pair.and_then(|pair| state.member.lends(pair, lent));
            lends.and_then(|lends| state.own_of(lends, &self.bank))
        };
        let Own { memory, offset, .. } =
            own.ok_or_else(|| Refused::new("you are connected to no such segment"))?;
        let fds = memory.fds().map_err(|error| Refused::new(error.to_string()))?;
        let (kind, bytes) = (memory.kind(), memory.bytes());
        let fetched = Fetched { kind, bytes, offset: memory.offset_bytes() + offset };
        Ok(Reply { payload: fetched.to_bytes(), fds })
    }
}
