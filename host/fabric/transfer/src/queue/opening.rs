//! How two ends of a message queue become a pair.
//!
//! Each makes its segment with a random number in it, connects to the other's, and stores the other's number into its own. An end stores one
//! number as long as its segment is there, and only if the other end has stored none or its own: so two ends that each find their own number at
//! the other are a pair, and no third one is. An end whose number was taken for a peer that has gone makes its segment anew.

use std::sync::Arc;
use std::time::Duration;

use beeline_fabric::{Call, LocalSegment, Refusal, RemoteSegment, Value};
use beeline_mmio::Access;

use super::ends::Ends;
use super::header::{Header, Room, Words};
use super::terms::QueueConfig;
use crate::segments::{Mapped, Of, Segments, Sequences};

/// How long an end sleeps that waits for the other one to look. It is woken when the other end connects.
const REST: Duration = Duration::from_millis(1);

/// What an end has reached.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    own: Option<Own>,
    other: Option<Other>,
}

#[derive(Debug)]
pub(crate) enum Step {
    /// Both ends have each other.
    Open(Box<Ends>),
    /// The other end does not have this one yet.
    Waiting,
    /// The other end has another peer, or is none.
    Refused,
}

/// This end's segment.
#[derive(Debug)]
struct Own {
    words: Words,
    _map: Arc<dyn Mapped>,
    local: LocalSegment,
    header: Header,
    /// The number that was stored into it.
    peer: Option<u64>,
}

/// The other end's segment.
#[derive(Debug)]
struct Other {
    words: Words,
    _map: Arc<dyn Mapped>,
    remote: RemoteSegment,
    header: Header,
    sequence: Arc<dyn Sequences>,
}

impl Opening {
    /// Goes on by what can be done now, or waits for a part of `left`.
    pub(crate) fn step(
        &mut self,
        member: &Arc<dyn Segments>,
        config: &QueueConfig,
        room: &Room,
        left: Duration,
    ) -> Result<Step, Refusal> {
        let own = match self.own.take() {
            Some(own) => self.own.insert(own),
            None => self.own.insert(Own::make(member, config, room)?),
        };
        let other = match self.other.take() {
            Some(other) => self.other.insert(other),
            None => match Other::connect(member, config, left)? {
                Some(other) => self.other.insert(other),
                None => return self.rest(member, left).map(|()| Step::Refused),
            },
        };
        let (its_peer, is_there) = (other.words.peer(), other.sequence.is_there());
        if is_there && its_peer == own.header.number && own.peer == Some(other.header.number) {
            return Ok(Step::Open(Box::new(pair(own, other))));
        }
        if !is_there || its_peer != 0 && its_peer != own.header.number {
            self.begin_again(member);
            self.rest(member, left)?;
            return Ok(Step::Refused);
        }
        if own.peer.is_none() {
            own.peer = Some(other.header.number);
            own.words.take_peer(other.header.number);
            // The other end may have this one already.
            return Ok(Step::Waiting);
        }
        self.rest(member, left).map(|()| Step::Waiting)
    }

    /// Lets go of the other end, and of this one's segment if that has a peer.
    fn begin_again(&mut self, member: &Arc<dyn Segments>) {
        self.let_go_of_other(member);
        if self.own.as_ref().is_some_and(|own| own.peer.is_some()) {
            self.remove_own(member);
        }
    }

    /// Sleeps until somebody connects, or for a while.
    fn rest(&self, member: &Arc<dyn Segments>, left: Duration) -> Result<(), Refusal> {
        let Some(own) = &self.own else { return Ok(()) };
        let timeout_nanos = Some(left.min(REST).as_nanos() as u64);
        match member.call(Call::WaitLocal { local: own.local, timeout_nanos }) {
            Ok(_) | Err(Refusal::Timeout) => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }

    /// Lets go of everything.
    pub(crate) fn end(&mut self, member: &Arc<dyn Segments>) {
        self.let_go_of_other(member);
        self.remove_own(member);
    }

    fn let_go_of_other(&mut self, member: &Arc<dyn Segments>) {
        if let Some(Other { words, _map, remote, .. }) = self.other.take() {
            drop((words, _map));
            done(member.call(Call::Disconnect(remote)));
        }
    }

    fn remove_own(&mut self, member: &Arc<dyn Segments>) {
        if let Some(Own { words, _map, local, .. }) = self.own.take() {
            drop((words, _map));
            done(member.call(Call::RemoveSegment { local, is_forced: true }));
        }
    }
}

impl Own {
    fn make(member: &Arc<dyn Segments>, config: &QueueConfig, room: &Room) -> Result<Self, Refusal> {
        let (bytes, [is_auto, is_private, is_empty, has_callback]) = (room.segment_bytes(), [false; 4]);
        let create =
            Call::CreateSegment { id: config.local, is_auto, bytes, is_private, is_empty, has_callback };
        let Value::Local(local, _) = member.call(create)? else { return Err(Refusal::System) };
        let made = mapped(member, Of::Local(local), bytes).and_then(|(words, map)| {
            let header = words.begin(*room, random()?);
            member.call(Call::Prepare(local, config.adapter))?;
            member.call(Call::SetAvailable(local, config.adapter))?;
            Ok(Own { words, _map: map, local, header, peer: None })
        });
        made.inspect_err(|_| done(member.call(Call::RemoveSegment { local, is_forced: true })))
    }
}

impl Other {
    /// Connects to the other end; nothing if what is there is none.
    fn connect(
        member: &Arc<dyn Segments>,
        config: &QueueConfig,
        left: Duration,
    ) -> Result<Option<Self>, Refusal> {
        let connect = Call::Connect {
            node: config.node,
            id: config.remote,
            adapter: config.adapter,
            timeout_nanos: Some(left.as_nanos() as u64),
            is_asynchronous: false,
            has_callback: false,
        };
        // Whatever the connection lacked, the other end did not come.
        let connected = member.call(connect);
        let connected = connected.map_err(|why| if why.is_timeout() { Refusal::Timeout } else { why });
        let Value::Remote(remote, bytes) = connected? else { return Err(Refusal::System) };
        let other = mapped(member, Of::Remote(remote), bytes).and_then(|(words, map)| {
            let sequence = Arc::clone(member).sequence(remote)?;
            let header = words.read(bytes);
            Ok(header.map(|header| Other { words, _map: map, remote, header, sequence }))
        });
        if !matches!(other, Ok(Some(_))) {
            done(member.call(Call::Disconnect(remote)));
        }
        other
    }
}

/// The whole of a segment, mapped.
fn mapped(member: &Arc<dyn Segments>, of: Of, bytes: u64) -> Result<(Words, Arc<dyn Mapped>), Refusal> {
    let map = Arc::clone(member).map(of, bytes, Access::ReadWrite)?;
    let place = map.place();
    let region = place.segment.region().ok_or(Refusal::System)?;
    Ok((Words::new(region, place.start), Arc::clone(&map)))
}

fn pair(own: &Own, other: &Other) -> Ends {
    let sender = other.words.sender(&other.header, &own.words);
    let inlet = own.words.inlet(&own.header, &other.words);
    let longest = own.header.room.max_message_bytes.min(other.header.room.max_message_bytes);
    Ends::new(sender, inlet, Arc::clone(&other.sequence), longest, own.words.is_device())
}

fn random() -> Result<[u64; 2], Refusal> {
    match (getrandom::u64(), getrandom::u64()) {
        (Ok(number), Ok(blank)) => Ok([number, blank]),
        _ => Err(Refusal::System),
    }
}

/// What is let go of may be gone already.
fn done(outcome: Result<Value, Refusal>) {
    if let Err(refusal) = outcome {
        tracing::debug!(%refusal, "the segment of a message queue is let go of where there is none");
    }
}
