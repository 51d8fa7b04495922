//! Calls on segments of this member.

use alloc::sync::Arc;

use beeline_contract_adapter::Adapter;

use super::Outcome;
use crate::board::layout::EntryState;
use crate::call::{Done, Value};
use crate::claims::{close, force, freed};
use crate::ids::{AdapterNumber, AskId, LocalSegment, Name, Nanos, SegmentId, Slot, Ticket};
use crate::member::{Asked, Member};
use crate::refusal::Refusal;
use crate::segment::local::{Local, LocalMemory};
use crate::segment::memory::{Memory, Part};
use crate::segment::slots::Lingering;
use crate::told::Told;
use crate::want::{Answer, NameOp, Want};

const NOTHING: Done = Done::Now(Value::Nothing);

impl<A: Adapter> Member<A> {
    pub(super) fn create(
        &mut self,
        id: SegmentId,
        is_auto: bool,
        bytes: u64,
        (is_private, is_empty, has_callback): (bool, bool, bool),
    ) -> Outcome {
        if is_auto && is_private {
            return Err(Refusal::IllegalFlag);
        }
        if bytes == 0 && !is_empty {
            return Err(Refusal::SizeAlignment);
        }
        let (slot, entry) = self.take_entry().ok_or(Refusal::MaxEntries)?;
        let memory = match (is_empty, is_private) {
            (true, _) => Some(LocalMemory::Nothing),
            (false, true) => {
                Some(LocalMemory::There { memory: Memory::Own { slot }, bytes, is_shareable: false })
            }
            (false, false) => self.take_memory(bytes).map(|offset| LocalMemory::There {
                memory: Memory::Bank { offset },
                bytes,
                is_shareable: true,
            }),
        };
        let Some(memory) = memory else {
            self.slots.give_back(slot, entry);
            return Err(Refusal::Nospc);
        };
        let mut local = Local::new(Name::segment(id), slot, entry, memory);
        (local.is_private, local.has_callback) = (is_private, has_callback);
        if is_private {
            return Ok(Done::Now(self.created(local)));
        }
        let ticket = Ticket(self.number());
        let first_of_auto = is_auto.then_some(id);
        self.ask(Asked::Create { ticket, local, first_of_auto }, NameOp::Put(Name::segment(id), slot));
        Ok(Done::Wait(ticket))
    }

    /// An entry for a segment or an interrupt, if need be one whose users have let go of it since this member looked.
    pub(super) fn take_entry(&mut self) -> Option<(Slot, EntryState)> {
        self.slots.take().or_else(|| {
            self.settle();
            self.slots.take()
        })
    }

    /// Memory for a segment, all zero, if need be of one whose users have let go of it since this member looked.
    fn take_memory(&mut self, bytes: u64) -> Option<u64> {
        let untouched = self.bank.untouched();
        let offset = self.bank.take(bytes).or_else(|| {
            self.settle();
            self.bank.take(bytes)
        })?;
        // What is given out once more was made zero when it was given back, and nobody has it mapped but where what was kept is used again.
        if untouched.is_some_and(|from| from <= offset) {
            self.punch(Some((offset, bytes)));
        }
        Some(offset)
    }

    /// Goes on with a segment whose name was to be put.
    pub(crate) fn name_put(
        &mut self,
        ticket: Ticket,
        mut local: Local,
        first_of_auto: Option<SegmentId>,
        answer: &Answer,
    ) {
        let next = SegmentId(local.name.number.wrapping_add(1));
        let outcome = match answer {
            Answer::Done => {
                let (memory, bytes) = local.memory.place(local.slot);
                self.board.describe(local.slot, local.name, bytes, memory);
                self.board.set_group(local.slot, local.group);
                self.board.set_entry(local.slot, local.entry);
                Ok(self.created(local))
            }
            Answer::Taken if first_of_auto.is_some_and(|first| first != next) => {
                local.name = Name::segment(next);
                let put = NameOp::Put(local.name, local.slot);
                self.ask(Asked::Create { ticket, local, first_of_auto }, put);
                return;
            }
            answer => {
                self.slots.give_back(local.slot, freed(local.entry));
                self.use_again(local.memory.bank());
                Err(match answer {
                    Answer::Taken => Refusal::SegmentidUsed,
                    Answer::Full => Refusal::MaxEntries,
                    _ => Refusal::System,
                })
            }
        };
        self.told.push_back(Told::Outcome(ticket, outcome));
    }

    fn created(&mut self, local: Local) -> Value {
        let handle = LocalSegment(self.number());
        let id = local.id();
        self.locals_by_slot.insert(local.slot, handle);
        self.locals.insert(handle, local);
        self.note_local(handle);
        self.listen();
        self.tell_of_local(handle);
        Value::Local(handle, id)
    }

    pub(super) fn local(&mut self, local: LocalSegment) -> Result<&mut Local, Refusal> {
        self.locals.get_mut(&local).ok_or(Refusal::IllegalParameter)
    }

    /// Whether memory of so many bytes can be put behind a segment now.
    ///
    /// # Errors
    /// Those of [`Call::Register`](crate::Call::Register).
    pub fn can_register(&self, local: LocalSegment, bytes: u64) -> Result<(), Refusal> {
        let local = self.locals.get(&local).ok_or(Refusal::IllegalParameter)?;
        match (local.is_empty(), bytes) {
            (false, _) => Err(Refusal::IllegalOperation),
            (true, 0) => Err(Refusal::SizeAlignment),
            (true, _) => Ok(()),
        }
    }

    pub(super) fn register(&mut self, local: LocalSegment, bytes: u64, is_shareable: bool) -> Outcome {
        self.can_register(local, bytes)?;
        let local = self.local(local)?;
        let memory = Memory::Own { slot: local.slot };
        local.memory = LocalMemory::There { memory, bytes, is_shareable };
        if !local.is_private {
            // Nobody can connect yet, so nobody believes what the entry says.
            let (slot, name) = (local.slot, local.name);
            self.board.describe(slot, name, bytes, memory);
        }
        Ok(NOTHING)
    }

    pub(super) fn prepare(&mut self, local: LocalSegment, adapter: AdapterNumber) -> Outcome {
        self.local(local)?;
        self.has_adapter(adapter)?;
        for adapter in self.links.paths(adapter).each() {
            let link = self.links.of(adapter).unwrap_or_default();
            self.local(local)?.prepare(adapter, link)?;
        }
        Ok(NOTHING)
    }

    pub(super) fn set_available(&mut self, local: LocalSegment, adapter: AdapterNumber) -> Outcome {
        self.local(local)?;
        self.has_adapter(adapter)?;
        let local = self.local(local)?;
        local.set_available(adapter)?;
        let (slot, entry) = (local.slot, local.entry);
        self.board.set_entry(slot, entry);
        Ok(NOTHING)
    }

    pub(super) fn set_unavailable(
        &mut self,
        handle: LocalSegment,
        adapter: AdapterNumber,
        is_forced: bool,
    ) -> Outcome {
        self.local(handle)?;
        self.has_adapter(adapter)?;
        let local = self.local(handle)?;
        let before = local.entry.incarnation;
        local.set_unavailable(adapter, is_forced)?;
        let (slot, entry, is_private) = (local.slot, local.entry, local.is_private);
        // The board has nothing of a private one, whose removal takes nothing from it.
        match (is_private, is_forced) {
            (true, _) => {}
            (false, true) => self.force(slot, before, entry),
            (false, false) => self.board.set_entry(slot, entry),
        }
        if is_forced {
            self.tell_of_local(handle);
        }
        Ok(NOTHING)
    }

    pub(super) fn notify(&mut self, handle: LocalSegment) -> Outcome {
        let local = self.local(handle)?;
        local.entry.notices = local.entry.notices.wrapping_add(1);
        let (slot, entry) = (local.slot, local.entry);
        if !local.is_private {
            // Before it and after it claims are of the same incarnation: those who have one are rung.
            self.force(slot, entry.incarnation, entry);
        }
        Ok(NOTHING)
    }

    pub(super) fn remove(&mut self, handle: LocalSegment, is_forced: bool) -> Outcome {
        let local = self.local(handle)?;
        if local.maps != 0 {
            return Err(Refusal::Busy);
        }
        let (slot, entry, is_private) = (local.slot, local.entry, local.is_private);
        let access = Arc::clone(&local.access);
        if !is_private {
            if is_forced {
                self.force(slot, entry.incarnation, freed(entry));
            } else if !close(self.board.port(), self.pairs.claims(access), slot, entry) {
                return Err(Refusal::Busy);
            }
        }
        let local = self.locals.remove(&handle).ok_or(Refusal::IllegalParameter)?;
        self.locals_by_slot.remove(&slot);
        self.note_local(handle);
        self.cancel(local.waiters);
        if !is_private {
            let name = NameOp::Remove(local.name, slot);
            let ask = AskId(self.number());
            self.wants.push_back(Want::Name(ask, name));
        }
        // Others may hold what was passed to them.
        let memory = if local.is_lent { LocalMemory::Nothing } else { local.memory };
        self.give_back(slot, freed(entry), memory);
        self.listen();
        Ok(NOTHING)
    }

    /// Gives the memory and the entry of a segment back, the entry as soon as nobody has a claim of it. After the barrier of its removal.
    pub(super) fn give_back(&mut self, slot: Slot, state: EntryState, memory: LocalMemory) {
        let bank = memory.bank();
        self.punch(bank);
        if self.pairs.is_claimed(slot) {
            self.slots.linger(Lingering { slot, state, bank });
        } else {
            self.slots.give_back(slot, state);
            self.use_again(bank);
        }
    }

    /// Frees the entries that nobody has a claim of any more, and gives their memory back once more.
    pub(crate) fn settle(&mut self) {
        for lingering in self.slots.settle(|slot| self.pairs.is_claimed(slot)) {
            self.punch(lingering.bank);
            self.use_again(lingering.bank);
        }
    }

    /// Lets another segment have memory that nobody claims.
    fn use_again(&mut self, bank: Option<(u64, u64)>) {
        if let Some((offset, bytes)) = bank {
            self.bank.give_back(offset, bytes);
        }
    }

    fn punch(&mut self, bank: Option<(u64, u64)>) {
        self.wants.extend(bank.map(|(offset, bytes)| Want::Punch { offset, bytes }));
    }

    /// Takes an entry that was of the incarnation `before` from its users, and rings them.
    pub(super) fn force(&mut self, slot: Slot, before: u32, after: EntryState) {
        let users = force(self.board.port(), self.pairs.claims_by_member(), slot, (before, after));
        self.ring(users);
    }

    pub(super) fn map_local(&mut self, local: LocalSegment, part: Part) -> Outcome {
        let local = self.local(local)?;
        let LocalMemory::There { memory, bytes, .. } = local.memory else {
            return Err(Refusal::IllegalOperation);
        };
        if !part.is_within(bytes) {
            return Err(Refusal::OutOfRange);
        }
        local.maps += 1;
        Ok(Done::Now(Value::MapLocal(memory, part)))
    }

    pub(super) fn unmap_local(&mut self, local: LocalSegment) -> Outcome {
        let local = self.local(local)?;
        local.maps = local.maps.checked_sub(1).ok_or(Refusal::IllegalParameter)?;
        Ok(NOTHING)
    }

    pub(super) fn wait_local(
        &mut self,
        handle: LocalSegment,
        timeout_nanos: Option<u64>,
        now: Nanos,
    ) -> Outcome {
        if self.local(handle)?.has_callback {
            return Err(Refusal::IllegalOperation);
        }
        let ticket = Ticket(self.number());
        let local = self.local(handle)?;
        local.waiters.push(ticket, timeout_nanos.map(|nanos| now.after(nanos)));
        self.note_local(handle);
        self.listen();
        self.tell_of_local(handle);
        self.expire(now);
        Ok(Done::Wait(ticket))
    }
}
