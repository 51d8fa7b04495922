//! Calls of a program on its member.

mod connect;
mod export;
mod holders;
mod interrupt;
mod local;
mod probe;
mod remote;

use alloc::vec::Vec;

use beeline_contract_adapter::Adapter;

pub use self::connect::FIRST_CONTACT_NANOS;

use crate::call::{Call, Done, Value};
use crate::ids::{AdapterNumber, Name, Nanos, RemoteSegment};
use crate::interrupt::name_of;
use crate::member::Member;
use crate::refusal::Refusal;
use crate::segment::waiters::Waiters;
use crate::told::Told;

/// What a call gives.
type Outcome = Result<Done, Refusal>;

impl<A: Adapter> Member<A> {
    /// Does what a program asks, at the time `now`.
    ///
    /// # Errors
    /// SISCI's code for what is wrong. Then nothing has changed.
    pub fn call(&mut self, call: Call, now: Nanos) -> Result<Done, Refusal> {
        self.now = now;
        match call {
            Call::CreateSegment { id, is_auto, bytes, is_private, is_empty, has_callback } => {
                self.create(id, is_auto, bytes, (is_private, is_empty, has_callback))
            }
            Call::FindHolder { node, id, among } => self.find_holder(node, id, among, now),
            Call::Hold { name, bytes, group, of } => self.hold(name, bytes, group, of),
            Call::Share { local, group } => self.share(local, group),
            Call::Register { local, bytes, is_shareable } => self.register(local, bytes, is_shareable),
            Call::Prepare(local, adapter) => self.prepare(local, adapter),
            Call::SetAvailable(local, adapter) => self.set_available(local, adapter),
            Call::SetUnavailable { local, adapter, is_forced } => {
                self.set_unavailable(local, adapter, is_forced)
            }
            Call::Notify(local) => self.notify(local),
            Call::RemoveSegment { local, is_forced } => self.remove(local, is_forced),
            Call::MapLocal(local, part) => self.map_local(local, part),
            Call::UnmapLocal(local) => self.unmap_local(local),
            Call::WaitLocal { local, timeout_nanos } => self.wait_local(local, timeout_nanos, now),
            Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, has_callback } => self
                .connect(
                    node,
                    Name::segment_of(node, id),
                    adapter,
                    (timeout_nanos, is_asynchronous, has_callback),
                    now,
                ),
            Call::MapRemote(remote, part) => self.map_remote(remote, part),
            Call::UnmapRemote(remote) => self.unmap_remote(remote),
            Call::StartSequence(remote) => self.start_sequence(remote),
            Call::CheckSequence(remote, start) => self.check_sequence(remote, start),
            Call::WaitRemote { remote, timeout_nanos } => self.wait_remote(remote, timeout_nanos, now),
            Call::Disconnect(remote) => self.disconnect(remote),
            Call::CreateInterrupt { number, kind } => self.create_interrupt(number, kind),
            Call::CreateSharedInterrupt { number, is_counting } => {
                self.create_shared_interrupt(number, is_counting)
            }
            Call::CreateGroupInterrupt { number } => self.create_group_interrupt(number),
            Call::ConnectSharedInterrupt { node, number, adapter, at, timeout_nanos } => {
                let name = Name::one_of_several(node, number);
                self.connect_shared(node, name, adapter, (at, timeout_nanos), now)
            }
            Call::RemoveInterrupt(interrupt) => self.remove_interrupt(interrupt),
            Call::ConnectInterrupt { node, number, has_data, adapter, timeout_nanos } => {
                let name = name_of(node, number, has_data);
                self.connect(node, name, adapter, (timeout_nanos, false, false), now)
            }
            Call::DisconnectInterrupt(remote) => self.disconnect(RemoteSegment(remote.0)),
            Call::SetLink(adapter, is_up) => self.set_link(adapter, is_up),
        }
    }

    fn set_link(&mut self, adapter: AdapterNumber, is_up: bool) -> Outcome {
        self.links.of(adapter).ok_or(Refusal::NoSuchAdapterno)?;
        if let Some(link) = self.links.set(adapter, is_up) {
            self.board.set_link(adapter, link);
            let consumers: Vec<_> = self.pairs.consumers.keys().copied().collect();
            self.ring(consumers);
            self.tell();
        }
        Ok(Done::Now(Value::Nothing))
    }

    /// Ends the calls that wait for an event of what is removed.
    fn cancel(&mut self, mut waiters: Waiters) {
        while let Some(ticket) = waiters.pop() {
            self.told.push_back(Told::Outcome(ticket, Err(Refusal::Cancelled)));
        }
    }

    fn has_adapter(&self, adapter: AdapterNumber) -> Result<(), Refusal> {
        let is_there = self.links.paths(adapter).bits() != 0;
        is_there.then_some(()).ok_or(Refusal::NoSuchAdapterno)
    }

    /// Whether the link of an adapter of this member is up, or of any of them.
    fn is_own_up(&self, adapter: AdapterNumber) -> bool {
        self.links.best(self.links.paths(adapter)).is_some_and(|link| link.is_up)
    }
}
