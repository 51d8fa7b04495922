//! Sequences of a connection, without the member's lock.

use std::sync::{Arc, Weak};

use beeline_domain::Peer;
use beeline_fabric::{Call, ConnectionView, Refusal, RemoteSegment, SequenceStart, SequenceStatus, Value};
use beeline_mmio::fence::order_all;
use beeline_mmio::{ReadWord, ThisProcess};

use crate::words::View;

/// Who makes calls on the member that a connection is of.
pub(crate) trait Calls: Send + Sync + std::fmt::Debug {
    fn call(&self, call: Call) -> Result<Value, Refusal>;
}

/// The means to learn whether anything happened to a connection while a program stored: its start and its check are some loads, and
/// neither takes a lock nor asks the kernel. Any thread may use it, several at the same time.
///
/// It keeps no connection and no map alive. Once its connection has been ended it tells no more than whether the segment is still there.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Nothing of a connection that was lost from the beginning.
    words: Option<Words>,
    /// What said that the segment was there when this was made, if it was.
    presence: Option<Presence>,
    /// Of holders of the same segment beside the first.
    others: Box<[Words]>,
    /// Who knows of holders that came since.
    member: Weak<dyn Calls>,
    remote: RemoteSegment,
    process: ThisProcess,
}

#[derive(Clone, Debug)]
struct Words {
    view: ConnectionView<View>,
    /// The other process; `None` if it is this one.
    peer: Option<Peer>,
}

/// What has said that a segment was there.
#[derive(Clone, Debug)]
struct Presence {
    peer: Option<Peer>,
    words: [(ReadWord, u64); 2],
}

impl Presence {
    fn of(words: &Words) -> Option<Self> {
        let view = &words.view;
        let found = view.presence()?.map(|(word, value)| (view.theirs().word(word), value));
        Some(Presence { peer: words.peer.clone(), words: found })
    }

    #[inline(always)]
    fn is_same(&self) -> bool {
        let [(state, of_segment), (life, of_member)] = &self.words;
        self.peer.as_ref().is_none_or(Peer::is_surely_alive)
            && state.load_acquire() == *of_segment
            && life.load_acquire() == *of_member
    }
}

impl Words {
    #[inline]
    fn is_alive(&self) -> bool {
        self.peer.as_ref().is_none_or(Peer::is_alive)
    }
}

impl Sequence {
    pub(crate) fn new(
        views: Vec<(ConnectionView<View>, Option<Peer>)>,
        (member, remote): (Weak<dyn Calls>, RemoteSegment),
        process: ThisProcess,
    ) -> Self {
        let mut words = views.into_iter().map(|(view, peer)| Words { view, peer });
        let first = words.next();
        let presence = first.as_ref().and_then(Presence::of);
        Sequence { words: first, presence, others: words.collect(), member, remote, process }
    }

    /// Begins a sequence, if the links are up. What is stored after this is in it.
    #[inline]
    pub fn start(&self) -> (SequenceStatus, Option<SequenceStart>) {
        match self.there().map(|words| words.view.start()) {
            Some((SequenceStatus::NotRetriable, _)) | None => self.start_with_others(),
            Some(started) => started,
        }
    }

    /// Makes every store so far visible, of whatever kind it was, and says what happened to the connection since a sequence began.
    /// [`SequenceStatus::Ok`] means that those stores were there before the segment is taken away, if it ever is. That the other
    /// process has died is known some milliseconds later than it happens.
    ///
    /// A segment that several members hold is there as long as one of them has it; their links do not count.
    #[inline]
    pub fn check(&self, start: SequenceStart) -> SequenceStatus {
        // Pairs with the barrier of who takes the segment away (`beeline_fabric`, `claims.rs`).
        order_all();
        self.check_unflushed(start)
    }

    /// Says what happened to the connection since a sequence began, without a barrier: a store that is still on its way may come after
    /// what is found here.
    #[inline]
    pub fn check_unflushed(&self, start: SequenceStart) -> SequenceStatus {
        match self.there().map(|words| words.view.check(start)) {
            Some(SequenceStatus::NotRetriable) | None => self.check_with_others(start),
            Some(status) => status,
        }
    }

    /// Whether the segment and its member are there, whatever the links are.
    #[inline(always)]
    pub fn is_there(&self) -> bool {
        self.there().is_some_and(|words| words.view.is_there()) || self.is_with_others()
    }

    /// Whether nothing has happened to the segment since this was made, in the process that made it: a shorter look than
    /// [`Sequence::is_there`], which may find the segment there where this has found that something happened.
    #[inline(always)]
    pub fn is_untouched(&self) -> bool {
        self.presence.as_ref().is_some_and(Presence::is_same)
    }

    /// Whether the connection goes on by another adapter when the link of one is down.
    pub(crate) fn fails_over(&self) -> bool {
        self.words.as_ref().is_some_and(|words| words.view.fails_over())
    }

    /// The words, as long as they are to be looked at. A child of fork has none of them mapped.
    #[inline(always)]
    fn there(&self) -> Option<&Words> {
        self.words.as_ref().filter(|words| self.process.is_this() && words.is_alive())
    }

    /// Another holder that is there.
    #[cold]
    fn other(&self) -> Option<&Words> {
        let others = self.others.iter().filter(|_| self.process.is_this());
        others.filter(|words| words.is_alive()).find(|words| words.view.is_there())
    }

    /// Asks the member, which takes its lock and may look at the names, where the first holder is gone: a holder may have come since.
    fn member(&self) -> Option<Arc<dyn Calls>> {
        // A child of fork does not have the words mapped.
        let words = self.words.as_ref().filter(|_| self.process.is_this())?;
        self.member.upgrade().filter(|_| words.view.has_holders())
    }

    #[cold]
    #[inline(never)]
    fn is_with_others(&self) -> bool {
        self.start_with_others().0 != SequenceStatus::NotRetriable
    }

    #[cold]
    fn start_with_others(&self) -> (SequenceStatus, Option<SequenceStart>) {
        if let Some(words) = self.other() {
            return words.view.start();
        }
        let started = self.member().map(|member| member.call(Call::StartSequence(self.remote)));
        match started {
            Some(Ok(Value::Started(status, start))) => (status, start),
            _ => (SequenceStatus::NotRetriable, None),
        }
    }

    #[cold]
    fn check_with_others(&self, start: SequenceStart) -> SequenceStatus {
        if let Some(words) = self.other() {
            return words.view.check(start);
        }
        let Some(member) = self.member() else { return SequenceStatus::NotRetriable };
        let check = || match member.call(Call::CheckSequence(self.remote, start)) {
            Ok(Value::Checked(status)) => status,
            _ => SequenceStatus::NotRetriable,
        };
        match check() {
            // The names have been looked at for it.
            SequenceStatus::Pending => check(),
            status => status,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use beeline_domain::DomainConfig;
    use beeline_fabric::{AdapterNumber, Call, NodeId, SegmentId, Value};

    use super::*;
    use crate::member::{FabricConfig, FabricMember};

    #[test]
    fn check_waits_for_nobody_who_has_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let (node, adapter) = (NodeId(4), AdapterNumber::new(0).unwrap());
        let domain = DomainConfig { root: Some(dir.path().to_owned()), name: "fabric".to_owned() };
        let member =
            FabricMember::open(FabricConfig { domain, node, adapters: vec![adapter], nodes: vec![node] })
                .unwrap();
        let (id, is_auto, is_private, is_empty, has_callback) = (SegmentId(7), false, false, false, false);
        let create = Call::CreateSegment { id, is_auto, bytes: 64, is_private, is_empty, has_callback };
        let Ok(Value::Local(local, _)) = member.call(create) else { panic!("no segment was made") };
        member.call(Call::Prepare(local, adapter)).unwrap();
        member.call(Call::SetAvailable(local, adapter)).unwrap();
        let (timeout_nanos, is_asynchronous) = (Some(0), false);
        let connect = Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, has_callback };
        let Ok(Value::Remote(remote, _)) = member.call(connect) else { panic!("not connected") };
        let sequence = member.sequence(remote).unwrap();

        let held = member.shared.state.lock().unwrap();
        let (said, hears) = channel();
        let checker = std::thread::spawn(move || {
            let (_, start) = sequence.start();
            said.send(sequence.check(start.unwrap())).unwrap();
        });
        assert_eq!(hears.recv_timeout(Duration::from_secs(30)), Ok(SequenceStatus::Ok));
        drop(held);
        checker.join().unwrap();
    }
}
