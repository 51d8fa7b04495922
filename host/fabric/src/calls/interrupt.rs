//! Calls on interrupts of this member, and what threads trigger others' with.

use beeline_contract_adapter::Adapter;

use super::Outcome;
use crate::board::layout::EntryState;
use crate::call::{Done, Value};
use crate::claims::freed;
use crate::ids::{
    AskId, InterruptNumber, LocalInterrupt, Name, NodeId, PairId, RemoteInterrupt, RemoteSegment, Slot,
    Ticket,
};
use crate::interrupt::local::OwnInterrupt;
use crate::interrupt::remote::Trigger;
use crate::interrupt::{InterruptKind, name_of};
use crate::member::{Asked, Member};
use crate::refusal::Refusal;
use crate::segment::local::LocalMemory;
use crate::segment::memory::Memory;
use crate::told::Told;
use crate::want::{Answer, NameOp, Want};

/// How the name of an interrupt is put: a number that this member has found is nobody else's.
fn put(name: Name, slot: Slot, is_auto: bool) -> NameOp {
    if is_auto { NameOp::PutFirst(name, slot) } else { NameOp::Put(name, slot) }
}

impl<A: Adapter> Member<A> {
    pub(super) fn create_interrupt(
        &mut self,
        number: Option<InterruptNumber>,
        kind: InterruptKind,
    ) -> Outcome {
        let node = self.config.node;
        let name = |number| name_of(node, number, kind == InterruptKind::Data);
        self.create_named(number, kind, name)
    }

    pub(super) fn create_shared_interrupt(
        &mut self,
        number: Option<InterruptNumber>,
        is_counting: bool,
    ) -> Outcome {
        let kind = if is_counting { InterruptKind::Counting } else { InterruptKind::Plain };
        let node = self.config.node;
        self.create_named(number, kind, |number| Name::one_of_several(node, number))
    }

    pub(super) fn create_group_interrupt(&mut self, number: Option<InterruptNumber>) -> Outcome {
        let name = |number| Name::one_of_several(NodeId::GROUPS, number);
        self.create_named(number, InterruptKind::Data, name)
    }

    fn create_named(
        &mut self,
        number: Option<InterruptNumber>,
        kind: InterruptKind,
        name: impl FnOnce(InterruptNumber) -> Name,
    ) -> Outcome {
        let (slot, entry) = self.take_entry().ok_or(Refusal::MaxEntries)?;
        let first_of_auto = if number.is_none() { Some(self.next_interrupt) } else { None };
        let number = number.unwrap_or(InterruptNumber(self.next_interrupt));
        let interrupt = OwnInterrupt::new(name(number), kind, slot, entry);
        let ticket = Ticket(self.number());
        let put = put(interrupt.name, slot, first_of_auto.is_some());
        self.ask(Asked::CreateInterrupt { ticket, interrupt, first_of_auto }, put);
        Ok(Done::Wait(ticket))
    }

    /// Goes on with an interrupt whose name was to be put.
    pub(crate) fn interrupt_named(
        &mut self,
        ticket: Ticket,
        mut interrupt: OwnInterrupt,
        first_of_auto: Option<u32>,
        answer: &Answer,
    ) {
        let next = interrupt.name.number.wrapping_add(1);
        let slot = interrupt.slot;
        let outcome = match answer {
            Answer::Done => {
                if first_of_auto.is_some() {
                    self.next_interrupt = next;
                }
                self.board.describe(slot, interrupt.name, 0, Memory::Own { slot });
                self.board.set_entry(slot, interrupt.entry);
                let (handle, place) = (LocalInterrupt(self.number()), interrupt.place());
                let number = InterruptNumber(interrupt.name.number);
                let kind = interrupt.kind;
                self.interrupts.insert(handle, interrupt);
                Ok(Value::Interrupt(handle, number, kind, place))
            }
            Answer::Taken if first_of_auto.is_some_and(|first| first != next) => {
                interrupt.name = Name { number: next, ..interrupt.name };
                let put = put(interrupt.name, slot, true);
                self.ask(Asked::CreateInterrupt { ticket, interrupt, first_of_auto }, put);
                return;
            }
            answer => {
                self.slots.give_back(slot, EntryState { available: 0, ..freed(interrupt.entry) });
                Err(match answer {
                    Answer::Taken => Refusal::IntnoUsed,
                    Answer::Full => Refusal::MaxEntries,
                    _ => Refusal::System,
                })
            }
        };
        self.told.push_back(Told::Outcome(ticket, outcome));
    }

    pub(super) fn remove_interrupt(&mut self, handle: LocalInterrupt) -> Outcome {
        let interrupt = self.interrupts.remove(&handle).ok_or(Refusal::IllegalParameter)?;
        let (slot, entry) = (interrupt.slot, interrupt.entry);
        self.force(slot, entry.incarnation, freed(entry));
        let ask = AskId(self.number());
        self.wants.push_back(Want::Name(ask, NameOp::Remove(interrupt.name, slot)));
        self.give_back(slot, freed(entry), LocalMemory::Nothing);
        Ok(Done::Now(Value::Nothing))
    }

    /// What threads trigger an interrupt with that this member is connected to, and the pair that it is a member of. `own` is this
    /// member's board.
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: there is no such connection. [`Refusal::NotConnected`]: the interrupt or its member is gone.
    pub fn trigger(
        &mut self,
        remote: RemoteInterrupt,
        own: &A::View,
    ) -> Result<(PairId, Trigger<A>), Refusal> {
        let (pair, view) = self.view(RemoteSegment(remote.0), own)?.ok_or(Refusal::NotConnected)?;
        let uses = self.pairs.ports(pair).ok_or(Refusal::NotConnected)?.uses().clone();
        Ok((pair, Trigger { view, uses }))
    }
}
