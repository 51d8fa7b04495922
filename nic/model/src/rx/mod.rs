//! Receive: frames from the wire into host memory, which the host polls without ever reading the device.
//!
//! Several ways, chosen for each queue, so that they can be compared: a contiguous ring ([`ring`]), descriptors
//! ([`crate::descriptor`]), a pipe with notifications ([`crate::enso`]), coherent lines ([`crate::coherent`]), and
//! entries that the host reads in the BAR, with one of the others for longer frames ([`crate::niq`]). [`steer`] picks
//! the queue. A frame is copied once, into the DMA port. What happens while the host lends no room is the port's
//! choice: the wire keeps the frame, or it is dropped and counted. Receive interrupts are moderated by count and time;
//! they follow the frame's last write.
//!
//! From: the wire. To: host memory, through the DMA port. Not here: transmit completions ([`crate::descriptor`]).
//! HotOS'25 §4.1; Larsen & Lee, NAS'15, §V.

mod delivery;
mod ring;
mod steer;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use beeline_contract_device::{Accept, DmaError, QueueId, ReadTag, SimTime, WatchEnd};

use crate::NicConfig;
use crate::coherent::RxLines;
use crate::deadlines::Deadlines;
use crate::descriptor::RxDescriptors;
use crate::engine::{Cause, Engine, IrqCause, QueueSettings, ReceiveEngine, Shared};
use crate::enso::{NotifyRings, RxPipe};
use crate::fetch::{Moderation, Reads};
use crate::niq::{Found, HeldReads, RxEntries};
pub(crate) use delivery::Delivery;
use ring::RxRing;

#[derive(Debug)]
enum Mode {
    /// The queue writes nothing to host memory.
    Off,
    Ring(RxRing),
    Descriptors(RxDescriptors),
    Pipe(Box<RxPipe>),
    Lines(Box<RxLines>),
}

/// A queue that receives.
#[derive(Debug)]
struct RxQueue {
    mode: Mode,
    /// Entries that the host reads in the BAR; what does not fit one goes where `mode` says.
    entries: Option<RxEntries>,
    interrupts: Moderation,
}

/// A pipe whose ring goes is stopped with it.
const RING: &str = "a started pipe has a ring";

/// The receive engine.
#[derive(Debug)]
pub(crate) struct RxEngine {
    queues: Box<[Option<Box<RxQueue>>]>,
    /// The queues that receive, in ascending order.
    receiving: Vec<QueueId>,
    longest_frame_bytes: u32,
    is_lossless: bool,
    reads: Reads,
    /// Queues with descriptors that may be able to fetch more, each at most once.
    work: VecDeque<QueueId>,
    is_at_work: Box<[bool]>,
    lives: u32,
    held_reads: HeldReads,
    /// The rings of notifications.
    rings: NotifyRings,
    /// When a queue's interrupt is due for its time alone.
    deadlines: Deadlines,
}

impl RxEngine {
    /// An engine with no queue started.
    pub(crate) fn new(config: &NicConfig) -> Self {
        let queues = config.queues as usize;
        RxEngine {
            queues: (0..queues).map(|_| None).collect(),
            receiving: Vec::with_capacity(queues),
            longest_frame_bytes: config.max_frame_bytes,
            is_lossless: config.rx_lossless,
            reads: Reads::new(),
            work: VecDeque::with_capacity(queues),
            is_at_work: vec![false; queues].into_boxed_slice(),
            lives: 0,
            held_reads: HeldReads::new(),
            rings: NotifyRings::new(queues),
            deadlines: Deadlines::new(queues),
        }
    }

    fn queue_mut(&mut self, queue: QueueId) -> Option<&mut RxQueue> {
        self.queues.get_mut(usize::from(queue.0))?.as_deref_mut()
    }

    #[inline]
    fn put_to_work(&mut self, queue: QueueId) {
        let is_at_work = &mut self.is_at_work[usize::from(queue.0)];
        if !*is_at_work {
            *is_at_work = true;
            self.work.push_back(queue);
        }
    }

    /// The queue that a frame goes to, if any receives.
    #[inline]
    fn steer(&self, frame: &[u8]) -> Option<QueueId> {
        match self.receiving.as_slice() {
            [] => None,
            [only] => Some(*only),
            queues => Some(queues[steer::flow_hash(frame) as usize % queues.len()]),
        }
    }

    /// Offers a frame to a queue that receives.
    #[inline]
    fn deliver(&mut self, id: QueueId, frame: &[u8], shared: &mut Shared) -> Delivery {
        let started = self.queues.get_mut(usize::from(id.0)).and_then(Option::as_deref_mut);
        let queue = started.expect("a receiving queue is started");
        let entries = queue.entries.as_mut();
        if entries.as_ref().is_some_and(|entries| !entries.has_room()) {
            return Delivery::NoSpace;
        }
        let delivery = match &mut queue.mode {
            _ if entries.as_ref().is_some_and(|entries| entries.fits(frame)) => Delivery::Done,
            Mode::Off => Delivery::TooLong,
            Mode::Ring(ring) => ring.deliver(frame, shared),
            Mode::Pipe(pipe) => {
                let ring = self.rings.of(pipe.owner().0).expect(RING);
                pipe.deliver(frame, ring, shared)
            }
            Mode::Lines(lines) => lines.deliver(frame, shared),
            Mode::Descriptors(descriptors) => descriptors.deliver(frame, shared),
        };
        if let Some(entries) = entries
            && delivery == Delivery::Done
        {
            let index = entries.put(frame);
            self.held_reads.answer(id, index, |word| entries.word(index, word), shared);
        }
        if matches!(queue.mode, Mode::Descriptors(_)) {
            self.put_to_work(id);
        }
        delivery
    }

    /// The ring of `owner` is gone, and so is all that would be told in it.
    fn fail_sharers(&mut self, owner: QueueId, shared: &mut Shared) {
        for id in 0..self.queues.len() as u16 {
            let is_sharer =
                |queue: &RxQueue| matches!(&queue.mode, Mode::Pipe(pipe) if pipe.owner() == owner);
            if self.queues[usize::from(id)].as_deref().is_some_and(is_sharer) {
                shared.counters.bad_accesses += 1;
                shared.fail(QueueId(id), Cause::NoRing);
                self.stop(QueueId(id), shared);
            }
        }
    }

    #[inline]
    fn delivered(&mut self, id: QueueId, bytes: usize, shared: &mut Shared) {
        shared.counters.rx_frames += 1;
        shared.counters.rx_frame_bytes += bytes as u64;
        let Some(queue) = self.queue_mut(id) else { return };
        queue.interrupts.note(1, shared.now);
        // A queue may always be the last one to receive something, so it counts as idle.
        if queue.interrupts.is_due(shared.now, true) {
            queue.interrupts.clear();
            shared.interrupts.raise(IrqCause::RxFrame, id);
        } else if let Some(at) = queue.interrupts.deadline() {
            self.deadlines.arm(usize::from(id.0), at);
        }
    }
}

impl RxEngine {
    /// The answer to the watch of a queue's oldest entry of lines. One that was not given back properly fails the queue.
    pub(crate) fn line_changed(&mut self, id: QueueId, data: Result<&[u8], WatchEnd>, shared: &mut Shared) {
        let Some(Mode::Lines(lines)) = self.queue_mut(id).map(|queue| &mut queue.mode) else { return };
        match lines.line_changed(data) {
            Ok(()) => self.put_to_work(id),
            Err(cause) => {
                let counters = &mut shared.counters;
                *(if cause == Cause::DmaError {
                    &mut counters.dma_errors
                } else {
                    &mut counters.bad_headers
                }) += 1;
                shared.fail(id, cause);
            }
        }
    }
}

impl ReceiveEngine for RxEngine {
    #[inline]
    fn frame_arrived(&mut self, frame: &[u8], shared: &mut Shared) -> Accept {
        if frame.is_empty() {
            shared.counters.runts += 1;
            return Accept::Taken;
        }
        if frame.len() > self.longest_frame_bytes as usize {
            shared.counters.rx_oversize += 1;
            return Accept::Taken;
        }
        let Some(id) = self.steer(frame) else {
            shared.counters.rx_no_space += 1;
            return Accept::Taken;
        };
        match self.deliver(id, frame, shared) {
            Delivery::Done => self.delivered(id, frame.len(), shared),
            Delivery::TooLong => shared.counters.rx_oversize += 1,
            Delivery::NoSpace if !self.is_lossless => shared.counters.rx_no_space += 1,
            Delivery::NoSpace | Delivery::Later => return Accept::Refused,
        }
        Accept::Taken
    }

    /// A value that cannot be is counted as a bad access and otherwise ignored. Without a ring it says nothing.
    fn freed(&mut self, queue: QueueId, count: u64, shared: &mut Shared) {
        let started = self.queues.get_mut(usize::from(queue.0)).and_then(Option::as_deref_mut);
        let is_sound = match started.map(|queue| &mut queue.mode) {
            Some(Mode::Ring(ring)) => ring.freed(count),
            Some(Mode::Pipe(pipe)) => {
                let ring = self.rings.of(pipe.owner().0).expect(RING);
                let is_sound = pipe.freed(count, ring);
                self.put_to_work(queue);
                is_sound
            }
            Some(Mode::Descriptors(descriptors)) => {
                let is_sound = descriptors.lent_again(count);
                self.put_to_work(queue);
                is_sound
            }
            // Entries of lines come back by themselves.
            Some(Mode::Off | Mode::Lines(_)) | None => true,
        };
        shared.counters.bad_accesses += u64::from(!is_sound);
    }

    /// A value that cannot be is counted as a bad access and otherwise ignored. Without entries it says nothing.
    fn entries_freed(&mut self, queue: QueueId, count: u64, shared: &mut Shared) {
        let entries = self.queue_mut(queue).and_then(|queue| queue.entries.as_mut());
        let is_sound = entries.is_none_or(|entries| entries.freed(count));
        shared.counters.bad_accesses += u64::from(!is_sound);
    }

    fn read_arrived(&mut self, queue: QueueId, offset_bytes: u64, tag: ReadTag, shared: &mut Shared) -> bool {
        let started = self.queues.get(usize::from(queue.0)).and_then(Option::as_ref);
        let Some(entries) = started.and_then(|queue| queue.entries.as_ref()) else { return false };
        let value = match entries.read(offset_bytes) {
            Found::Nothing => return false,
            Found::Word(value) => value,
            Found::NotYet(entry, word) => {
                let until = entries.hold_until(shared.now);
                let held = &mut self.held_reads;
                if until.is_some_and(|until| held.hold(queue, (entry, word), tag, until)) {
                    shared.counters.entry_reads += 1;
                    shared.counters.held_reads += 1;
                    return true;
                }
                0
            }
        };
        shared.counters.entry_reads += 1;
        shared.answer(tag, value);
        true
    }
}

impl Engine for RxEngine {
    /// Mode 0 receives nothing; an unknown mode fails the queue.
    fn start(&mut self, queue: QueueId, settings: &QueueSettings, shared: &mut Shared) -> Result<(), Cause> {
        self.lives = self.lives.wrapping_add(1);
        let mode = match settings.rx_mode {
            0 if settings.rx_lines => RxLines::new(queue, settings, self.longest_frame_bytes)
                .map(|lines| Mode::Lines(Box::new(lines))),
            _ if settings.rx_lines => Err(Cause::BadLength),
            0 if !settings.rx_reads => return Ok(()),
            0 => Ok(Mode::Off),
            1 => RxRing::new(settings).map(Mode::Ring),
            2 => RxDescriptors::new(queue, self.lives, settings).map(Mode::Descriptors),
            3 => {
                RxPipe::new(queue, settings, self.longest_frame_bytes).map(|pipe| Mode::Pipe(Box::new(pipe)))
            }
            _ => Err(Cause::BadLength),
        };
        let entries = match settings.rx_reads {
            true => RxEntries::new(settings).map(Some),
            false => Ok(None),
        };
        let (mode, entries) = mode
            .and_then(|mode| Ok((mode, entries?)))
            .and_then(|both| {
                let is_pipe = matches!(both.0, Mode::Pipe(_));
                is_pipe.then(|| self.rings.start(queue.0.into(), settings, shared)).transpose()?;
                Ok(both)
            })
            .inspect_err(|cause| shared.counters.bad_lengths += u64::from(*cause == Cause::BadLength))?;
        let interrupts = Moderation::new(settings.rx_moderation_frames, settings.rx_moderation_ns);
        self.queues[usize::from(queue.0)] = Some(Box::new(RxQueue { mode, entries, interrupts }));
        if let Err(place) = self.receiving.binary_search(&queue) {
            self.receiving.insert(place, queue);
        }
        // A queue with descriptors fetches the first of them before a frame comes.
        self.put_to_work(queue);
        Ok(())
    }

    fn stop(&mut self, queue: QueueId, shared: &mut Shared) {
        self.held_reads.stop(queue, shared);
        self.receiving.retain(|receiving| *receiving != queue);
        self.deadlines.disarm(usize::from(queue.0));
        let stopped = self.queues[usize::from(queue.0)].take();
        match stopped.map(|stopped| stopped.mode) {
            Some(Mode::Pipe(pipe)) if pipe.owner() == queue => {
                self.rings.stop(queue.0);
                self.fail_sharers(queue, shared);
            }
            Some(Mode::Pipe(pipe)) => {
                if let Some(ring) = self.rings.of(pipe.owner().0) {
                    pipe.leave(ring);
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn progress(&mut self, shared: &mut Shared) {
        for _ in 0..self.work.len() {
            let Some(id) = self.work.pop_front() else { return };
            self.is_at_work[usize::from(id.0)] = false;
            let Some(queue) = self.queues[usize::from(id.0)].as_deref_mut() else { continue };
            let had_room = match &mut queue.mode {
                Mode::Descriptors(descriptors) => descriptors.fetch(&mut self.reads, shared),
                Mode::Pipe(pipe) => pipe.notify(self.rings.of(pipe.owner().0).expect(RING), shared),
                Mode::Lines(lines) => {
                    lines.watch(shared);
                    true
                }
                Mode::Off | Mode::Ring(_) => true,
            };
            if !had_room {
                self.put_to_work(id);
            }
        }
    }

    fn time_passed(&mut self, shared: &mut Shared) {
        self.held_reads.expire(shared);
        while let Some(index) = self.deadlines.take_due(shared.now) {
            if let Some(queue) = self.queues[index].as_deref_mut() {
                queue.interrupts.clear();
                shared.interrupts.raise(IrqCause::RxFrame, QueueId(index as u16));
            }
        }
    }

    #[inline]
    fn wake_at(&self) -> SimTime {
        self.deadlines.earliest().min(self.held_reads.earliest())
    }

    #[inline]
    fn dma_completed(&mut self, tag: u16, data: Result<&[u8], DmaError>, shared: &mut Shared) {
        let Some(read) = self.reads.finish(tag) else { return };
        let Some(queue) = self.queue_mut(read.queue) else { return };
        if let Mode::Descriptors(descriptors) = &mut queue.mode
            && descriptors.life() == read.life
        {
            descriptors.answered(read, data, shared);
            self.put_to_work(read.queue);
        }
    }
}
