//! Segments that several members hold: how a process becomes a holder.
//!
//! All holders that live have one memory, by induction. The first puts the name alone, which is refused if anybody has it who lives, and makes
//! the memory. Every other one asks a holder for it, and puts its name beside the others only if that holder still has the segment
//! when nobody else can put or take out a name of it (`names.rs`). So names of two memories never stand beside each other.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use beeline_fabric::{Call, Done, Holder, LocalSegment, Name, NodeId, Refusal, SegmentId, Value};
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

    /// A holder of a segment that has passed its memory. Those that do not answer are left behind, and after `until` nobody else is asked.
    fn find_held(&self, node: NodeId, id: SegmentId, until: Instant) -> Result<(Holder, Own), Refusal> {
        let (mut below, mut is_silent) = (None, false);
        loop {
            let holder = match self.call(Call::FindHolder { node, id, below }) {
                Ok(Value::Holder(holder)) => holder,
                Ok(_) => return Err(Refusal::System),
                // There is one, which does not answer.
                Err(Refusal::NoSuchSegment) if is_silent => return Err(Refusal::NodeNotResponding),
                Err(refusal) => return Err(refusal),
            };
            match self.memory_of(holder) {
                Ok(own) => return Ok((holder, own)),
                Err(refusal) if Instant::now() >= until => return Err(refusal),
                Err(refusal) => {
                    is_silent |= refusal == Refusal::NodeNotResponding;
                    below = Some(holder.member);
                }
            }
        }
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
