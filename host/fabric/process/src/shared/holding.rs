//! Segments that several members hold: how a process becomes a holder.
//!
//! All holders that live have one memory, by induction. The first puts the name alone, which is refused if anybody has it who lives, and makes
//! the memory. Every other one asks a holder for it, and puts its name beside the others only if that holder still has the segment
//! when nobody else can put or take out a name of it (`names.rs`). So names of two memories never stand beside each other.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use beeline_fabric::{
    Call, Done, Holder, LocalSegment, MemberRange, Name, NodeId, Refusal, SegmentId, Value,
};
use beeline_mmio::{MemoryOptions, SharedMemory};

use super::Shared;
use crate::fetch::Own;
use crate::pair::Pair;

/// How long a process tries to become a holder, while holders come and go.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it rests between two tries: a holder that has put its name and not said so yet needs less.
const REST: Duration = Duration::from_millis(1);

/// A holder that was found, and its memory.
type Having = Option<(Holder, Own)>;

impl Shared {
    /// Makes this process a holder of a segment of the fabric, which it makes if nobody holds it. Whether it has made it.
    pub(crate) fn join(&self, id: SegmentId, bytes: u64) -> Result<(LocalSegment, bool), Refusal> {
        let node = NodeId::GROUPS;
        if bytes == 0 {
            return Err(Refusal::SizeAlignment);
        }
        self.until_held(|until| {
            // Whether anybody who lives has the name is known when it is put.
            match self.find_held(node, id, until).ok() {
                Some((holder, _)) if holder.bytes != bytes => Err(Refusal::GroupOfAnotherSize),
                having => {
                    let is_first = having.is_none();
                    let held = self.hold(Name::segment_of(node, id), bytes, having)?;
                    Ok(held.map(|local| (local, is_first)))
                }
            }
        })
    }

    /// Makes this process a holder of a segment of its node, which another process has shared. Says how large that is.
    pub(crate) fn attach(&self, id: SegmentId) -> Result<(LocalSegment, u64), Refusal> {
        let node = self.own.node;
        self.until_held(|until| {
            let (holder, own) = self.find_held(node, id, until)?;
            let held = self.hold(Name::segment_of(node, id), holder.bytes, Some((holder, own)))?;
            Ok(held.map(|local| (local, holder.bytes)))
        })
    }

    /// Lets other processes of the node hold a segment of this one.
    pub(crate) fn share(&self, local: LocalSegment) -> Result<(), Refusal> {
        let group = random()?;
        self.call(Call::Share { local, group }).map(drop)
    }

    /// Whether a holder has the segment that it was asked for the memory of.
    pub(super) fn has_open(&self, holder: Holder) -> bool {
        let view = self.lock().member.watch_holder(holder, &self.board_view);
        view.is_some_and(|view| view.is_there())
    }

    /// Tries until this process is a holder, and no longer than [`PATIENCE`] where others come and go.
    fn until_held<T>(
        &self,
        mut attempt: impl FnMut(Instant) -> Result<Option<T>, Refusal>,
    ) -> Result<T, Refusal> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(held) = attempt(until)? {
                return Ok(held);
            }
            if Instant::now() >= until {
                return Err(Refusal::NodeNotResponding);
            }
            sleep(REST);
        }
    }

    /// A holder of a segment that has passed its memory. Each is asked once. Those that do not answer are left behind, and after `until` nobody
    /// else is asked.
    fn find_held(&self, node: NodeId, id: SegmentId, until: Instant) -> Result<(Holder, Own), Refusal> {
        // One that is reached already is found first, also if it dies, so those above it are asked as well as those below.
        let (mut unasked, mut refused) = (vec![MemberRange::default()], Refusal::NoSuchSegment);
        while let Some(among) = unasked.pop() {
            let holder = match self.call(Call::FindHolder { node, id, among }) {
                Ok(Value::Holder(holder)) => holder,
                Ok(_) | Err(Refusal::System) => return Err(Refusal::System),
                Err(Refusal::NoSuchSegment) => continue,
                Err(refusal) => {
                    refused = refusal;
                    continue;
                }
            };
            match self.memory_of(holder) {
                Ok(own) => return Ok((holder, own)),
                Err(refusal) if Instant::now() >= until => return Err(refusal),
                Err(refusal) => {
                    if refusal == Refusal::NodeNotResponding {
                        // There is one, which does not answer.
                        refused = refusal;
                    }
                    unasked.extend(among.without(holder.member));
                }
            }
        }
        Err(refused)
    }

    fn memory_of(&self, holder: Holder) -> Result<Own, Refusal> {
        let connection = {
            let mut state = self.lock();
            let pair = state.pairs.get(&holder.pair).ok_or(Refusal::NodeNotResponding)?;
            match Pair::connection(pair) {
                Some(connection) => Arc::clone(connection),
                None => {
                    let lent = state.member.lends_itself(holder.lent);
                    let own = lent.and_then(|lent| state.own_of(lent, &self.bank));
                    return own.ok_or(Refusal::NotConnected);
                }
            }
        };
        self.fetch(&connection, holder.lent, holder.bytes)
    }

    /// Makes this process a holder, of memory that another one has or of new one. `None` if others have the name, and not that memory.
    fn hold(&self, name: Name, bytes: u64, having: Having) -> Result<Option<LocalSegment>, Refusal> {
        let (of, own, group) = match having {
            Some((holder, own)) => (Some(holder), own, holder.group),
            None => {
                let bytes = usize::try_from(bytes).map_err(|_| Refusal::Nospc)?;
                let memory = SharedMemory::create("beeline-group", bytes, MemoryOptions::default());
                (None, Own::whole(Arc::new(memory.map_err(|_| Refusal::Nospc)?)), random()?)
            }
        };
        self.check_process()?;
        let call = Call::Hold { name, bytes, group, of };
        let ticket = self.enter(|state, now| match state.member.call(call, now)? {
            Done::Wait(ticket) => {
                state.coming.insert(ticket, own);
                Ok(ticket)
            }
            Done::Now(_) => Err(Refusal::System),
        })?;
        match self.wait(ticket) {
            Ok(Value::Local(local, _)) => Ok(Some(local)),
            Ok(_) => Err(Refusal::System),
            Err(Refusal::SegmentidUsed) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }
}

/// Which segment of several holders one is: no two that there are have the same.
fn random() -> Result<NonZeroU64, Refusal> {
    loop {
        let number = getrandom::u64().map_err(|_| Refusal::System)?;
        if let Some(number) = NonZeroU64::new(number) {
            return Ok(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::FabricMember;
    use crate::sole_node::{NODE, adapter, make_available, member, segment};

    fn available(member: &FabricMember, id: SegmentId) -> LocalSegment {
        let local = segment(member, id, 4096);
        make_available(member, local);
        local
    }

    /// It dies: it is found, and passes nothing any more. Its number may be the smaller one or the larger one.
    #[test]
    fn who_is_left_behind_keeps_nobody_from_another_holder_that_was_not_reached_yet() {
        let (shared, own, adapter) = (SegmentId(9), SegmentId(8), adapter());
        for is_smaller in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let owner = member(dir.path());
            let local = available(&owner, shared);
            owner.share(local).unwrap();
            let is_wanted =
                |it: &FabricMember| (it.shared.own.member < owner.shared.own.member) == is_smaller;
            let dying = std::iter::repeat_with(|| member(dir.path())).find(is_wanted).unwrap();
            dying.attach(shared).unwrap();
            available(&dying, own);
            let joins = member(dir.path());
            let (timeout_nanos, is_asynchronous, has_callback) = (None, false, false);
            joins
                .call(Call::Connect {
                    node: NODE,
                    id: own,
                    adapter,
                    timeout_nanos,
                    is_asynchronous,
                    has_callback,
                })
                .unwrap();
            dying.shared.lock().own.clear();
            assert_eq!(joins.attach(shared).map(|held| held.bytes), Ok(4096));
        }
    }
}
