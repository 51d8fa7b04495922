//! Passing the memory that one segment has alone, on both sides.

use beeline_domain::{ConnectError, PeerId, Refusal as Refused, Reply};
use beeline_fabric::{Lent, Refusal};

use super::Shared;
use crate::fetch::{FetchError, Found, Own, Place, fetch};
use crate::packets::Fetched;
use crate::pair::Pair;

impl Shared {
    /// The memory of a part, which the other member may have to be asked for.
    ///
    /// # Errors
    /// [`Refusal::NotConnected`]: the member has no such segment any more. [`Refusal::NodeNotResponding`]: it does not answer, or passes
    /// something else.
    pub(crate) fn have(&self, found: Found) -> Result<Place, Refusal> {
        let wanted = match found {
            Found::Here(place) => return Ok(place),
            Found::There(wanted) => wanted,
            Found::Nowhere => return Err(Refusal::IllegalOperation),
        };
        let fetched = fetch(&wanted, &self.domain.disposer()).map_err(|error| {
            tracing::debug!(%error, "the memory of a segment was not passed");
            match error {
                FetchError::Connect(ConnectError::Refused { .. }) => Refusal::NotConnected,
                _ => Refusal::NodeNotResponding,
            }
        })?;
        // Of two threads that have asked, both use what came first.
        Ok(self.lock().fetched.entry(wanted.remote).or_insert(fetched).place(wanted.part))
    }

    /// The answer to a peer that asks for the memory of a segment.
    pub(crate) fn lend(&self, peer: PeerId, lent: Lent) -> Result<Reply, Refused> {
        let own = {
            let state = self.lock();
            // Whoever only asks questions is connected, too, and has no pair.
            let is_of = |pair: &Pair| pair.user().is_some() && pair.peer().is_some_and(|it| it.id() == peer);
            let pair = state.pairs.iter().find(|(_, pair)| is_of(pair)).map(|(number, _)| *number);
            let local = pair.and_then(|pair| state.member.lends(pair, lent));
            local.and_then(|local| state.own.get(&local)).cloned()
        };
        let Own { memory, offset } =
            own.ok_or_else(|| Refused::new("you are connected to no such segment"))?;
        let fd = memory.fd().try_clone_to_owned().map_err(|error| Refused::new(error.to_string()))?;
        let fetched = Fetched { bytes: memory.bytes() as u64, offset };
        Ok(Reply { payload: fetched.to_bytes(), fds: vec![fd] })
    }
}
