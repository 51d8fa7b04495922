//! Many windows received from by one thread: many-to-one, with one wait for all of them.

use std::time::{Duration, Instant};

use beeline_domain::{Armed, Event, MemoryCreditSink, MemorySleeper, Readiness, Source, listen_all};
use beeline_mmio::LoadWindow;
use beeline_tuning::ReceiveTuning;
use beeline_wait::Idle;
use beeline_window::WaitPolicy;

use crate::origin::Origin;
use crate::receiver::{Open, Receiver};
use crate::{MessageRef, ReceiverArena, RecvError};

/// Messages that are taken from one member before the next, unless [`ReceiverSet::with_burst`] says otherwise.
const BURST: usize = 32;
/// In each pass one of so many members is looked at for a new sender and for the end of one; all of them where nothing came.
const LOOK_AFTER: usize = 8;
/// Windows of an arena that are taken in at one look for them.
const ACCEPTED: usize = 32;
/// Longest single sleep; a hostile sender may never wake this side.
const MAX_SLEEP: Duration = Duration::from_secs(1);

type Windows = beeline_window::ReceiverSet<LoadWindow, MemoryCreditSink>;

/// A member of a [`ReceiverSet`]; no later member has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemberId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl MemberId {
    /// A number that no other member of the set has, and that is never 0.
    pub fn number(self) -> u64 {
        (u64::from(self.generation) << 32) + u64::from(self.index) + 1
    }

    fn slot(self) -> usize {
        self.index as usize
    }
}

/// The sender of a member has ended, or is faulty. The member stays and receives from its next sender; a window of an arena has none,
/// and is in the set no more.
#[derive(Debug, thiserror::Error)]
#[error("the window of a member of the set is over")]
#[non_exhaustive]
pub struct MemberError {
    /// Whose sender.
    pub member: MemberId,
    /// Messages that the call had given before, of any member.
    pub taken: usize,
    /// What happened to it.
    #[source]
    pub error: RecvError,
}

impl MemberError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self.error {
            RecvError::SenderFaulty { .. } => self.error.remedy(),
            _ => "drain again: the member waits for its next sender, unless it is of an arena; or remove it",
        }
    }
}

/// Receives from many senders, each of which has a window of its own: no sender waits for another, and none, however fast, keeps
/// the others out. Messages of one member come in order; between members there is none.
///
/// ```no_run
/// # fn main() -> Result<(), beeline::Error> {
/// # use std::time::Duration;
/// let domain = beeline::Domain::open("demo")?;
/// let mut set = beeline::ReceiverSet::new();
/// let (red, blue) = (set.insert(domain.receiver("red")?), set.insert(domain.receiver("blue")?));
/// set.drain_timeout(256, Duration::from_secs(1), |member, message| {
///     println!("{}: {} bytes", if member == red { "red" } else { "blue" }, message.len());
/// })?;
/// # Ok(())
/// # }
/// ```
///
/// A pass costs a look at each member that gave something lately and at an eighth of the others; a member that begins to send is
/// met after eight passes at most. A wait that ends in a sleep costs some ten nanoseconds a member, and a membarrier for all.
#[derive(Debug)]
pub struct ReceiverSet {
    windows: Windows,
    wait: WaitPolicy,
    slots: Vec<Slot>,
    /// Slots without a member, each to be used again.
    free: Vec<u32>,
    /// Whose windows become members.
    arena: Option<ReceiverArena>,
    /// The slot at which the next look for senders begins.
    next_look: usize,
    /// By a window's place in `windows`: the slot of its member.
    owners: Vec<MemberId>,
    /// For sleeps; made by the first one.
    readiness: Option<Readiness>,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    member: Option<Member>,
}

#[derive(Debug)]
struct Member {
    origin: Origin,
    wait: WaitPolicy,
    tuning: Option<ReceiveTuning>,
    /// The window of the sender that is there, in the set of windows.
    window: Option<(beeline_window::MemberId, MemorySleeper)>,
}

impl Default for ReceiverSet {
    fn default() -> Self {
        Self::new()
    }
}

impl ReceiverSet {
    /// An empty set that takes 32 messages from a member before it goes on to the next, and that looks, then sleeps.
    pub fn new() -> Self {
        ReceiverSet {
            windows: Windows::new(BURST),
            wait: WaitPolicy::default(),
            slots: Vec::new(),
            free: Vec::new(),
            arena: None,
            next_look: 0,
            owners: Vec::new(),
            readiness: None,
        }
    }

    /// An empty set that takes at most `messages`, one at least, from a member before it goes on to the next.
    #[must_use]
    pub fn with_burst(messages: usize) -> Self {
        ReceiverSet { windows: Windows::new(messages), ..Self::new() }
    }

    /// As it is, but looks, yields and sleeps as `policy` says while nothing has arrived. The policies of its members do not count.
    #[must_use]
    pub fn wait(mut self, policy: WaitPolicy) -> Self {
        self.wait = policy;
        self
    }

    /// Takes in a receiver, whether it has a sender or not. One of an arena that has told its end is let go, and no member.
    pub fn insert(&mut self, receiver: Receiver) -> MemberId {
        let index = self.free.pop().map_or(self.slots.len(), |index| index as usize);
        if index == self.slots.len() {
            self.slots.push(Slot::default());
        }
        let member = self.id(index);
        let Receiver { origin, wait, tuning, open, is_over } = receiver;
        let open = open.filter(|_| !is_over);
        if open.is_none() && !origin.has_next() {
            self.vacate(index);
            return member;
        }
        self.slots[index].member = Some(Member { origin, wait, tuning, window: None });
        if let Some(open) = open {
            self.open(index, open);
        }
        member
    }

    /// Has the windows that are opened in `arena` become members by themselves from now on; each leaves when its sender has ended
    /// and [`MemberError`] has said so. Returns the arena of before; windows that wait in it are lost if it is dropped.
    pub fn set_arena(&mut self, arena: Option<ReceiverArena>) -> Option<ReceiverArena> {
        if let Some(before) = &self.arena {
            before.signal(None);
        }
        std::mem::replace(&mut self.arena, arena)
    }

    /// Whoever has the id of what was in the slot has it no more.
    fn vacate(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(u32::try_from(index).expect("memory ends before that"));
    }

    fn id(&self, slot: usize) -> MemberId {
        let index = u32::try_from(slot).expect("memory ends before that");
        MemberId { index, generation: self.slots[slot].generation }
    }

    /// Takes a receiver out; `None` if it was taken out before. What its sender has sent stays for it.
    pub fn remove(&mut self, member: MemberId) -> Option<Receiver> {
        let slot = self.slots.get_mut(member.slot())?;
        if slot.generation != member.generation {
            return None;
        }
        let Member { origin, wait, tuning, window } = slot.member.take()?;
        self.vacate(member.slot());
        origin.signal(None);
        let mut receiver = Receiver::new(origin, wait, tuning);
        receiver.open = window.and_then(|(id, mut sleeper)| {
            sleeper.unlisten();
            let receiver = self.windows.remove(id)?;
            Some(Open { receiver, sleeper })
        });
        Some(receiver)
    }

    /// The member whose [`MemberId::number`] this is; `None` once it is out of the set.
    pub fn member(&self, number: u64) -> Option<MemberId> {
        let index = u32::try_from((number & u64::from(u32::MAX)).checked_sub(1)?).ok()?;
        let member = MemberId { index, generation: u32::try_from(number >> 32).ok()? };
        let slot = self.slots.get(member.slot())?;
        (slot.generation == member.generation && slot.member.is_some()).then_some(member)
    }

    /// Members.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives `each` the messages that have arrived, a burst of each member in turn and `max` in all, and frees each when `each`
    /// returns. Returns how many there were; 0 only if no member had any. Never waits.
    ///
    /// # Errors
    /// [`MemberError`], once for each sender that ends: what it completed was given, and so were `taken` messages by this call.
    /// The next call goes on with the next member.
    pub fn drain(
        &mut self,
        max: usize,
        mut each: impl FnMut(MemberId, MessageRef<'_>),
    ) -> Result<usize, MemberError> {
        self.look_for_senders(self.slots.len().div_ceil(LOOK_AFTER));
        match self.pass(max, &mut each)? {
            0 if max > 0 => {
                self.look_for_senders(self.slots.len());
                self.pass(max, &mut each)
            }
            taken => Ok(taken),
        }
    }

    /// As [`ReceiverSet::drain`], waiting for the first message of any member, for at most `timeout`: 0 when none came.
    ///
    /// # Errors
    /// As [`ReceiverSet::drain`].
    pub fn drain_timeout(
        &mut self,
        max: usize,
        timeout: Duration,
        mut each: impl FnMut(MemberId, MessageRef<'_>),
    ) -> Result<usize, MemberError> {
        let deadline = Instant::now().checked_add(timeout);
        let left = || deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
        let mut idle = Idle::new(self.wait);
        loop {
            let taken = self.drain(max, &mut each)?;
            if taken > 0 || max == 0 || idle.is_check_due() && left().is_zero() {
                return Ok(taken);
            }
            if let Some(limit) = idle.pass() {
                self.sleep(limit.min(left()).min(MAX_SLEEP));
                idle.slept();
            }
        }
    }

    fn pass(
        &mut self,
        max: usize,
        each: &mut impl FnMut(MemberId, MessageRef<'_>),
    ) -> Result<usize, MemberError> {
        let owners = &self.owners;
        let passed = self
            .windows
            .drain(max, |window, message| each(owners[window.index()], MessageRef { inner: message }));
        passed.map_err(|failed| self.failed(failed))
    }

    /// The sender of a member is over: its window is let go.
    #[cold]
    fn failed(&mut self, failed: beeline_window::MemberError) -> MemberError {
        let member = self.owners[failed.member.index()];
        self.windows.remove(failed.member);
        let of_slot = self.slots[member.slot()].member.as_mut();
        let window = of_slot.and_then(|of_slot| of_slot.window.take());
        let departure = window.and_then(|(_, sleeper)| sleeper.peer().departure());
        if self.slots[member.slot()].member.take_if(|member| !member.origin.has_next()).is_some() {
            self.vacate(member.slot());
        }
        MemberError { member, taken: failed.taken, error: RecvError::new(failed.error, departure) }
    }

    /// Looks at so many slots, from where the last look ended on, for senders that have come or gone; each time the last slot was
    /// looked at, and in a set without slots, for windows that were opened in the arena.
    #[inline]
    fn look_for_senders(&mut self, slots: usize) {
        for _ in 0..slots.max(1) {
            self.look_for_sender(self.next_look);
            self.next_look += 1;
            if self.next_look >= self.slots.len() {
                self.next_look = 0;
                self.accept_windows();
            }
        }
    }

    /// Takes in windows that were opened in the arena.
    fn accept_windows(&mut self) {
        for _ in 0..ACCEPTED {
            let Some(receiver) = self.arena.as_ref().and_then(ReceiverArena::try_accept) else { return };
            self.insert(receiver);
        }
    }

    /// Has the window of a sender that has come in the set, and the set know of one that has gone.
    fn look_for_sender(&mut self, index: usize) {
        let Some(member) = self.slots.get_mut(index).and_then(|slot| slot.member.as_mut()) else { return };
        match &member.window {
            Some((id, sleeper)) => {
                if beeline_contract_memory::Sleeper::is_peer_gone(sleeper)
                    && let Some(receiver) = self.windows.get_mut(*id)
                {
                    receiver.sender_gone();
                }
            }
            None => {
                if let Some(parts) = member.origin.try_accept() {
                    let open = Open::new(parts, member.tuning);
                    self.open(index, open);
                }
            }
        }
    }

    /// Takes in the window of a member.
    fn open(&mut self, index: usize, open: Open) {
        let id = self.id(index);
        let slot = &mut self.slots[index];
        let window = self.windows.insert(open.receiver);
        if self.owners.len() <= window.index() {
            self.owners.resize(window.index() + 1, id);
        }
        self.owners[window.index()] = id;
        if let Some(member) = &mut slot.member {
            member.window = Some((window, open.sleeper));
        }
    }

    /// Sleeps until a sender wakes this side or comes.
    fn sleep(&mut self, limit: Duration) {
        let Some(mut readiness) = self.readiness.take().or_else(|| Readiness::new().ok()) else {
            // Without a descriptor it looks once a millisecond.
            return std::thread::sleep(limit.min(Duration::from_millis(1)));
        };
        if readiness.arm(self) == Armed::Wait {
            readiness.wait(limit);
            readiness.disarm(self);
        }
        self.readiness = Some(readiness);
    }
}

/// Ready while a message or the end of a sender of any member, or a sender of one, may be there for [`ReceiverSet::drain`].
impl Source for ReceiverSet {
    fn listen(&mut self, event: &Event) -> Armed {
        if let Some(arena) = &self.arena {
            arena.signal(Some(event));
        }
        self.accept_windows();
        for index in 0..self.slots.len() {
            if let Some(member) = &self.slots[index].member {
                member.origin.signal(Some(event));
            }
            // Whoever came before the line above is found by this look, whoever comes after it signals.
            self.look_for_sender(index);
        }
        self.windows.push_credits();
        for (_, sleeper) in windows_of(&mut self.slots) {
            sleeper.announce(event);
        }
        let sleepers = || self.slots.iter().filter_map(|slot| slot.member.as_ref()?.window.as_ref());
        listen_all(sleepers().map(|(_, sleeper)| sleeper));
        let is_over = sleepers().any(|(_, sleeper)| beeline_contract_memory::Sleeper::is_peer_gone(sleeper));
        let has_opened = self.arena.as_ref().is_some_and(ReceiverArena::has_opened);
        if is_over || has_opened || self.windows.has_begun() { Armed::Ready } else { Armed::Wait }
    }

    fn unlisten(&mut self) {
        if let Some(arena) = &self.arena {
            arena.signal(None);
        }
        for slot in &self.slots {
            if let Some(member) = &slot.member {
                member.origin.signal(None);
            }
        }
        windows_of(&mut self.slots).for_each(|(_, sleeper)| sleeper.unlisten());
    }
}

fn windows_of(slots: &mut [Slot]) -> impl Iterator<Item = &mut (beeline_window::MemberId, MemorySleeper)> {
    slots.iter_mut().filter_map(|slot| slot.member.as_mut()?.window.as_mut())
}
