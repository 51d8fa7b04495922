//! Sequences of a connection, without the member's lock.

use beeline_domain::Peer;
use beeline_fabric::{ConnectionView, SequenceStart, SequenceStatus};
use beeline_mmio::ThisProcess;
use beeline_mmio::fence::order_all;

use crate::words::View;

/// The means to learn whether anything happened to a connection while a program stored: its start and its check are some loads, and
/// neither takes a lock nor asks the kernel. Any thread may use it, several at the same time.
///
/// It keeps no connection and no map alive. Once its connection has been ended it tells no more than whether the segment is still there.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Nothing of a connection that was lost from the beginning.
    words: Option<Words>,
    process: ThisProcess,
}

#[derive(Clone, Debug)]
struct Words {
    view: ConnectionView<View>,
    /// The other process; `None` if it is this one.
    peer: Option<Peer>,
}

impl Sequence {
    pub(crate) fn new(found: Option<(ConnectionView<View>, Option<Peer>)>, process: ThisProcess) -> Self {
        Sequence { words: found.map(|(view, peer)| Words { view, peer }), process }
    }

    /// Begins a sequence, if the links are up. What is stored after this is in it.
    #[inline]
    pub fn start(&self) -> (SequenceStatus, Option<SequenceStart>) {
        self.there().map_or((SequenceStatus::NotRetriable, None), ConnectionView::start)
    }

    /// Makes every store so far visible, of whatever kind it was, and says what happened to the connection since a sequence began.
    /// [`SequenceStatus::Ok`] means that those stores were there before the segment is taken away, if it ever is. That the other
    /// process has died is known some milliseconds later than it happens.
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
        self.there().map_or(SequenceStatus::NotRetriable, |view| view.check(start))
    }

    /// Whether the segment and its member are there, whatever the links are.
    #[inline]
    pub fn is_there(&self) -> bool {
        self.there().is_some_and(ConnectionView::is_there)
    }

    /// The words, as long as they are to be looked at. A child of fork has none of them mapped.
    #[inline]
    fn there(&self) -> Option<&ConnectionView<View>> {
        let words = self.words.as_ref().filter(|_| self.process.is_this())?;
        words.peer.as_ref().is_none_or(Peer::is_alive).then_some(&words.view)
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
