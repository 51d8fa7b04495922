//! What happens to segments and connections that have a callback, and waiting for any of it.

use std::time::{Duration, Instant};

use beeline_contract_memory::WaitPolicy;
use beeline_fabric::{LocalEvent, LocalSegment, Refusal, RemoteEvent, RemoteSegment, Told};

use crate::member::BarMember;
use crate::waiting::wait_with;

impl BarMember {
    /// Waits until `look` finds something. It looks over and over, some 200 µs apart after a while, so whatever happens is found.
    ///
    /// # Errors
    /// [`Refusal::Timeout`]: it has found nothing in the time.
    pub fn wait_until<T>(
        &self,
        timeout: Option<Duration>,
        mut look: impl FnMut() -> Option<T>,
    ) -> Result<T, Refusal> {
        self.shared.check_process()?;
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let policy = self.shared.policy(WaitPolicy::new().spins(100));
        let found = wait_with(policy, until, |_| {
            self.shared.tend();
            Ok::<_, Refusal>(look())
        })?;
        found.ok_or(Refusal::Timeout)
    }

    /// Gives a segment a callback after it was made: its events are told, and not waited for by calls.
    pub fn tell_segment(&self, local: LocalSegment) {
        if self.shared.check_process().is_ok() {
            self.shared.enter(|state, _| state.member.tell_segment(local));
        }
    }

    /// Gives a connection a callback, as [`BarMember::tell_segment`] does.
    pub fn tell_connection(&self, remote: RemoteSegment) {
        if self.shared.check_process().is_ok() {
            self.shared.enter(|state, _| state.member.tell_connection(remote));
        }
    }

    /// The next event of any segment or connection that has a callback.
    pub fn next_event(&self) -> Option<Told> {
        self.shared.check_process().ok()?;
        self.shared.tend();
        let told = self.shared.enter(|state, _| state.member.next_callback())?;
        Some(match told {
            Told::OfLocal(local, event) => Told::OfLocal(local, self.shared.believed(event)),
            told => told,
        })
    }

    /// The next event of a segment that has a callback, if something has happened to it.
    pub fn next_event_of_segment(&self, local: LocalSegment) -> Option<LocalEvent> {
        self.shared.check_process().ok()?;
        let event = self.shared.lock().member.next_of_local(local)?;
        Some(self.shared.believed(event))
    }

    /// The next event of a connection that has a callback, if something has happened to it.
    pub fn next_event_of_connection(&self, remote: RemoteSegment) -> Option<RemoteEvent> {
        self.shared.check_process().ok()?;
        self.shared.lock().member.next_of_remote(remote)
    }

    /// Ends the calls of other threads that wait until they are connected to a segment or an interrupt: they are refused with
    /// [`Refusal::Cancelled`]. Calls that begin later wait as before.
    pub fn cancel_attempts(&self) {
        if self.shared.check_process().is_ok() {
            self.shared.enter(|state, _| state.member.cancel_attempts());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use beeline_fabric::{AdapterNumber, Call, NodeId, SegmentId, Value};
    use beeline_mmio::{FaultGuard, OnLoss};

    use super::*;
    use crate::{BarConfig, BarMemory};

    #[test]
    fn user_whose_words_are_gone_with_the_file_is_lost_and_has_not_disconnected() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("bar");
        BarMemory::make_file(&path, 8 << 20, 2).unwrap();
        let [owner, user] = [4, 8].map(|node| {
            let (node, adapter, nodes) = (NodeId(node), AdapterNumber::new(0).unwrap(), [4, 8].map(NodeId));
            let on_loss = OnLoss::Guarded(FaultGuard::install().unwrap());
            let memory = BarMemory::of_path(&path);
            let (members, slot, nodes) = (2, None, nodes.to_vec());
            BarMember::open(BarConfig { memory, members, slot, node, adapter, nodes, on_loss }).unwrap()
        });
        let (id, is_auto, is_private, is_empty, has_callback) = (SegmentId(7), false, false, false, true);
        let create = Call::CreateSegment { id, is_auto, bytes: 4096, is_private, is_empty, has_callback };
        let Ok(Value::Local(local, _)) = owner.call(create) else { panic!("no segment was made") };
        let adapter = AdapterNumber::new(0).unwrap();
        owner.call(Call::Prepare(local, adapter)).unwrap();
        owner.call(Call::SetAvailable(local, adapter)).unwrap();
        let (node, timeout_nanos, is_asynchronous, has_callback) = (NodeId(4), None, false, false);
        let connect = Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, has_callback };
        user.call(connect).unwrap();
        let next = || owner.wait_until(None, || owner.next_event_of_segment(local)).unwrap();
        assert_eq!(next(), LocalEvent::Connect(NodeId(8)));
        // The member, and the engine of its DMA queues.
        let owners = 2;
        // Nobody looks who would notice the loss first.
        owner.shared.ended.set();
        while Arc::strong_count(&owner.shared) > owners {
            std::thread::yield_now();
        }
        File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
        assert_eq!(owner.next_event_of_segment(local), Some(LocalEvent::Lost(NodeId(8))));
    }
}
