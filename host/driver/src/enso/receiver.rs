//! Many pipes, one place to poll: a ring of notifications that tells of the pipes of several queues.
//!
//! A thread that serves many queues would otherwise look at as many rings. One queue owns the ring ([`RxEnso`]); each
//! other pipe ([`RxEnsoMember`]) is a queue of its own that names the owner, and [`EnsoReceiver`] takes notifications
//! and hands out frames with the queue they came by. What is freed of a pipe is told when the batch that a notification
//! told of is used up, which is also what asks for the next one of that pipe; so a ring needs an entry for each pipe.
//!
//! Lives: the owner is opened first and closed last; when it stops or fails, the device fails the others. A member is
//! opened like any half and joins; to be closed it leaves. What a former life left in the ring carries its epoch and is
//! passed over, so a queue that comes again must have the next epoch, as a half that was closed or recovered has.
//!
//! From: the device's DMA writes. To: the caller, in place ([`RxFrame`]). Sadok et al., OSDI'23 (Ensō: one
//! notification buffer for the pipes of a thread).

use alloc::boxed::Box;
use alloc::vec::Vec;

use beeline_contract_link::{DmaMemory, Doorbell};
use beeline_spec::pipe::Notification;
use beeline_spec::regs::field::{notify_share as f, rx_mode::mode};
use beeline_spec::regs::queue as r;

use crate::enso::pipe::RxPipe;
use crate::enso::receive::RxEnso;
use crate::enso::settings::RxEnsoMemberConfig;
use crate::error::RxError;
use crate::port::half::{Epoch, QueueHalf, moderation};
use crate::receive::{FrameSpan, Receive, RxFrame};

/// A receive pipe told of in the ring of another queue.
#[derive(Debug)]
pub struct RxEnsoMember<M, D> {
    pipe: RxPipe<M, D>,
    queue: u32,
    owner: u32,
    config: RxEnsoMemberConfig,
}

impl<M: DmaMemory, D: Doorbell> RxEnsoMember<M, D> {
    /// A pipe over `memory`, which has the configured lines, told of in the ring of queue `owner`.
    ///
    /// # Panics
    /// If the memory is too small: the port sizes it.
    pub(crate) fn new(
        memory_and_freed: (M, D),
        (queue, owner): (u32, u32),
        config: RxEnsoMemberConfig,
        max_frame_bytes: u32,
    ) -> Self {
        let pipe = RxPipe::new(memory_and_freed, 0, (config.lines, config.freed_coalesce), max_frame_bytes);
        RxEnsoMember { pipe, queue, owner, config }
    }

    /// Frames received so far.
    pub fn frames(&self) -> u64 {
        self.pipe.frames
    }
}

impl<M: DmaMemory, D: Doorbell> QueueHalf for RxEnsoMember<M, D> {
    fn queue(&self) -> u32 {
        self.queue
    }

    fn registers(&self, set: &mut dyn FnMut(u32, u64)) {
        set(r::RX_MODE, mode::PIPE);
        set(r::RX_RING_ADDRESS, self.pipe.address());
        set(r::RX_RING_ENTRIES, self.pipe.lines);
        set(r::RX_NOTIFY_SHARE, 1 << f::SHARED_LSB | u64::from(self.owner) << f::OWNER_LSB);
        set(r::RX_MODERATION, moderation(self.config.interrupts));
    }

    fn control(&self) -> u64 {
        0
    }

    fn epoch(&self) -> Epoch {
        Epoch::Carried(self.config.epoch)
    }

    fn restarted(self) -> Self {
        let config = RxEnsoMemberConfig { epoch: self.config.epoch.wrapping_add(1), ..self.config };
        RxEnsoMember { pipe: self.pipe.restarted(), config, ..self }
    }
}

/// A queue of the group and its state here.
#[derive(Debug)]
struct Slot<M, D> {
    member: Option<RxEnsoMember<M, D>>,
    /// The last notification of it while no member was here: of one that has left, or that runs and will join.
    untaken: Option<Notification>,
}

/// The ring of one queue and the pipes that it tells of.
#[derive(Debug)]
pub struct EnsoReceiver<M, D> {
    owner: RxEnso<M, D>,
    /// One slot for each queue, by number.
    slots: Box<[Slot<M, D>]>,
    /// The member whose batch is being handed out; `None`: the owner's.
    current: Option<u32>,
    /// Members that have joined since: each is looked at before the ring is.
    waiting: Vec<u32>,
    broken: Option<RxError>,
}

/// Reasons for which a pipe cannot join.
#[derive(thiserror::Error)]
pub enum JoinError<M, D> {
    /// It is told of in the ring of another queue, or its queue is here already. The member, untouched.
    #[error("the pipe names the ring of another queue, or its queue is in this receiver already")]
    NotOurs(RxEnsoMember<M, D>),
    /// What the device told of it before it joined cannot be.
    #[error(transparent)]
    Device(RxError),
}

impl<M, D> core::fmt::Debug for JoinError<M, D> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            JoinError::NotOurs(member) => write!(out, "NotOurs(queue {})", member.queue),
            JoinError::Device(error) => write!(out, "Device({error:?})"),
        }
    }
}

impl<M: DmaMemory, D: Doorbell> EnsoReceiver<M, D> {
    /// A receiver with the owner's pipe alone, on a port of so many queues.
    pub(crate) fn new(owner: RxEnso<M, D>, queues: u32) -> Self {
        let slots = (0..queues).map(|_| Slot { member: None, untaken: None }).collect();
        EnsoReceiver { owner, slots, current: None, waiting: Vec::new(), broken: None }
    }

    /// Takes in a pipe whose queue was opened, or that has left and was not closed. What the device has told of it
    /// meanwhile is not lost.
    ///
    /// # Errors
    /// It does not belong here, or the device told what cannot be.
    pub fn join(&mut self, member: RxEnsoMember<M, D>) -> Result<(), JoinError<M, D>> {
        let is_ours = member.owner == self.owner.queue();
        let slot = self.slots.get_mut(member.queue as usize).filter(|slot| is_ours && slot.member.is_none());
        let Some(slot) = slot else { return Err(JoinError::NotOurs(member)) };
        let untaken = slot.untaken.take().filter(|told| told.epoch == member.config.epoch);
        let member = slot.member.insert(member);
        // It may have frames that were told of before, and lines that were freed and not told.
        self.waiting.push(member.queue);
        match untaken {
            Some(told) if !member.pipe.fill_to(told.tail_lines) => {
                let error = RxError::BadCompletion { frame: 0, word: told.tail_lines.into() };
                // The first error stays: what came after it says less.
                Err(JoinError::Device(*self.broken.get_or_insert(error)))
            }
            _ => Ok(()),
        }
    }

    /// Gives a pipe back, to be closed or recovered, which loses the frames that were not taken.
    pub fn leave(&mut self, queue: u32) -> Option<RxEnsoMember<M, D>> {
        self.current = self.current.filter(|current| *current != queue);
        self.waiting.retain(|waiting| *waiting != queue);
        self.slots.get_mut(queue as usize)?.member.take()
    }

    /// The owner, and the pipes that have not left.
    pub fn into_parts(self) -> (RxEnso<M, D>, Vec<RxEnsoMember<M, D>>) {
        (self.owner, self.slots.into_iter().filter_map(|slot| slot.member).collect())
    }

    /// The pipe whose batch is being handed out.
    #[inline]
    fn pipe(&mut self) -> (u32, &mut RxPipe<M, D>) {
        let member = self.current.and_then(|queue| self.slots[queue as usize].member.as_mut());
        match member {
            Some(member) => (member.queue, &mut member.pipe),
            None => (self.owner.queue(), &mut self.owner.pipe),
        }
    }

    /// A notification was taken: whose batch is next. `false` when it cannot be.
    fn told(&mut self, found: Notification) -> bool {
        let queue = u32::from(found.queue);
        if queue == self.owner.queue() {
            self.current = None;
            return found.epoch == 0 && self.owner.pipe.fill_to(found.tail_lines);
        }
        let Some(slot) = self.slots.get_mut(queue as usize) else { return false };
        match &mut slot.member {
            Some(member) if member.config.epoch == found.epoch => {
                self.current = Some(queue);
                member.pipe.fill_to(found.tail_lines)
            }
            // The notification is of an earlier epoch of the queue.
            Some(_) => true,
            None => {
                slot.untaken = Some(found);
                true
            }
        }
    }

    fn step(&mut self) -> Result<Option<FrameSpan>, RxError> {
        // Each round takes a batch that waits or a notification, and a lap of those is as much as can be new at a time.
        for _ in 0..=self.owner.ring.entries as usize + self.waiting.len() {
            let (_, pipe) = self.pipe();
            if let Some(span) = pipe.frame()? {
                return Ok(Some(span));
            }
            pipe.tell();
            if let Some(queue) = self.waiting.pop() {
                self.current = Some(queue);
                continue;
            }
            let taken = self.owner.ring.take(&mut self.owner.pipe.memory);
            let Some((found, word)) = taken else { break };
            if !self.told(found) {
                return Err(self.owner.ring.bad(word));
            }
        }
        Ok(None)
    }

    #[inline]
    fn look(&mut self) -> Result<Option<FrameSpan>, RxError> {
        match self.broken {
            Some(error) => Err(error),
            None => self.step().inspect_err(|error| self.broken = Some(*error)),
        }
    }

    /// The next frame of any pipe, with its queue, as [`Receive::poll`].
    ///
    /// # Errors
    /// As [`Receive::poll`]; one pipe's error is that of all, which share what the device writes.
    #[inline]
    pub fn poll_pipes(&mut self) -> Result<Option<(u32, RxFrame<'_>)>, RxError> {
        let span = self.look()?;
        Ok(span.map(|span| {
            let (queue, pipe) = self.pipe();
            (queue, pipe.hand_out(span))
        }))
    }
}

impl<M: DmaMemory, D: Doorbell> Receive for EnsoReceiver<M, D> {
    #[inline]
    fn poll(&mut self) -> Result<Option<RxFrame<'_>>, RxError> {
        Ok(self.poll_pipes()?.map(|(_, frame)| frame))
    }

    fn wants_interrupt(&mut self) -> Result<bool, RxError> {
        Ok(self.look()?.is_none())
    }
}
