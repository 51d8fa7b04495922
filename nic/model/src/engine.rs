//! What the engines of the model (one for each interface, and `rx`) and the device around them tell each other.
//!
//! The device ([`crate::Nic`]) decodes the BAR, keeps the registers and asks the arbiter what goes on the wire; an
//! engine knows one way of getting frames in or out. An engine never sees the BAR, another engine or the wire: it
//! gets decoded calls and a [`Shared`] to leave its wants, counts and failures in. Every call must be bounded, must not
//! allocate per frame, and must bear any value a host can write.
//!
//! Constructors: `KpioEngine::new(&NicConfig)`, `DescriptorEngine::new(&NicConfig)`, `RxEngine::new(&NicConfig)`; reset
//! makes a new engine. The multiplexer of kPIO+WC is not an engine's affair: the device asks `kpio::Mux::forwards(path,
//! frame)` when a `kpio` or `descriptor` frame is about to go out, pops it all the same when it is not forwarded, and
//! counts `mux_mismatches`.
//!
//! A queue has one transmit interface at a time, so of the transmit engines only one holds frames of a queue.

use std::collections::VecDeque;

use beeline_contract_device::{Accept, DmaError, Enables, QueueId, ReadTag, SimTime};
use beeline_spec::Interface;
use beeline_spec::regs::field::queue_status::cause;

use crate::egress::Scheduler;

pub(crate) use crate::counters::Counters;
pub(crate) use crate::dma_port::{DmaOwner, DmaPort};
pub(crate) use crate::interrupts::{Interrupts, IrqCause};
use crate::watch_port::WatchPort;

/// Complete frames of a transmit engine, oldest first in each queue.
pub(crate) trait FrameSource {
    /// The oldest complete frame of `queue`, Ethernet without FCS. Stays the same until [`FrameSource::pop`]. An
    /// engine whose frame does not lie in one piece may gather it here; it is asked once a frame.
    fn head(&mut self, queue: QueueId) -> Option<&[u8]>;

    /// Bytes of the frame that `head` would give; asked for arbitration, perhaps often.
    fn head_bytes(&self, queue: QueueId) -> Option<u32>;

    /// The oldest frame has been transmitted (or filtered): lets it go. The engine returns credits or completions.
    fn pop(&mut self, queue: QueueId, shared: &mut Shared);

    /// Gives `wire` frames of `queue` and lets them go, until it takes no other, `most` have left, there is none, or memory
    /// is to be accessed. Returns how many left, and their bytes. Means `head` and `pop` for each.
    #[inline(always)]
    fn leave(
        &mut self,
        queue: QueueId,
        most: u32,
        shared: &mut Shared,
        mut wire: impl FnMut(&[u8]) -> bool,
    ) -> Left {
        let (mut left, mut goes_on) = (Left::default(), true);
        while goes_on && left.frames < most {
            let Some(frame) = self.head(queue) else { break };
            left.count(frame);
            goes_on = wire(frame);
            self.pop(queue, shared);
            // What is to be written (credits, say) is written before the next frame leaves.
            goes_on &= shared.dma.is_empty();
        }
        left
    }
}

/// Frames that have left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    pub frames: u32,
    pub bytes: u64,
}

impl Left {
    #[inline(always)]
    pub(crate) fn count(&mut self, frame: &[u8]) {
        self.frames += 1;
        self.bytes += frame.len() as u64;
    }
}

/// What every engine, the receiving one included, does.
pub(crate) trait Engine {
    /// The host enabled the queue. `Err` fails the queue with that cause. Never called twice without a `stop`.
    fn start(&mut self, queue: QueueId, settings: &QueueSettings, shared: &mut Shared) -> Result<(), Cause>;

    /// The host disabled the queue, or the device. Lets everything of the queue go, complete frames included, and
    /// ignores completions of reads that are under way. Does nothing for a queue that is not started.
    fn stop(&mut self, queue: QueueId, shared: &mut Shared);

    /// The queue failed (the engine called [`Shared::fail`], or another one that shares the queue did): takes nothing
    /// more and starts no DMA until `stop` and `start`. An engine may let frames that are complete still go out.
    fn quarantine(&mut self, queue: QueueId, shared: &mut Shared) {
        self.stop(queue, shared);
    }

    /// Called before the device looks for wants: starts what has become possible, for example because
    /// [`DmaPort`] has room again. One comparison when there is nothing to do.
    fn progress(&mut self, shared: &mut Shared);

    /// `shared.now` has moved on to or past [`Engine::wake_at`].
    fn time_passed(&mut self, shared: &mut Shared);

    /// The earliest time at which the engine wants [`Engine::time_passed`], [`NEVER`](crate::deadlines::NEVER) if it
    /// does not. Cheap: asked in every round.
    fn wake_at(&self) -> SimTime;

    /// The answer to a read that this engine asked of [`DmaPort`]. A tag that is not outstanding is ignored.
    fn dma_completed(&mut self, tag: u16, data: Result<&[u8], DmaError>, shared: &mut Shared);
}

/// A transmit engine whose queues have a window in the aperture.
pub(crate) trait WindowEngine: Engine + FrameSource {
    /// A write that lies wholly inside the window of a started queue: `offset_bytes` from the window's start. It is
    /// not empty; with [`Enables::Mask`] it has at most 64 bytes. The device counts writes and their sizes (`tx_writes`,
    /// `tx_write_bytes`, the histogram of sizes), the engine everything else.
    fn write_arrived(
        &mut self,
        queue: QueueId,
        offset_bytes: u64,
        data: &[u8],
        enables: Enables,
        shared: &mut Shared,
    ) -> Accept;
}

/// A transmit engine that fetches frames from host memory when a doorbell is rung.
pub(crate) trait FetchEngine: Engine + FrameSource {
    /// The host wrote the absolute transmit tail of a started queue. The device has counted the doorbell.
    fn doorbell(&mut self, queue: QueueId, tail: u64, shared: &mut Shared);
}

/// The engine that hands frames from the wire to the host (`rx`). It is started for every queue that is enabled with
/// a receive mode other than 0.
pub(crate) trait ReceiveEngine: Engine {
    /// A frame came from the wire, Ethernet without FCS, of any length. `Refused` while [`DmaPort`] has no room or
    /// descriptors are on their way and, where the port is lossless, while the host lends no room; a frame that no
    /// queue can ever take is `Taken`, dropped and counted.
    fn frame_arrived(&mut self, frame: &[u8], shared: &mut Shared) -> Accept;

    /// The host wrote the absolute count of freed lines or of lent descriptors of a started queue. The device has
    /// counted the doorbell.
    fn freed(&mut self, queue: QueueId, count: u64, shared: &mut Shared);

    /// The host wrote the absolute count of entries that it has done with. The device has counted the doorbell.
    fn entries_freed(&mut self, queue: QueueId, count: u64, shared: &mut Shared);

    /// A read of one aligned word, `offset_bytes` from the start of a queue's window. `false`: nothing is read there;
    /// otherwise it is answered, now or later, by [`Shared::answers`].
    fn read_arrived(&mut self, queue: QueueId, offset_bytes: u64, tag: ReadTag, shared: &mut Shared) -> bool;
}

/// Why a queue failed: the values of queue status `cause`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Cause {
    /// A hole stood longer than the queue's time-out.
    HoleTimeout = cause::HOLE_TIMEOUT as u8,
    /// A write lay beyond the reorder span.
    SpanExceeded = cause::SPAN_EXCEEDED as u8,
    /// A message began with something that is not a header for this queue.
    BadHeader = cause::BAD_HEADER as u8,
    /// A byte was written twice in the same lap.
    Clobber = cause::CLOBBER as u8,
    /// A write lay where no line was free.
    Overrun = cause::OVERRUN as u8,
    /// No reorder context was free for incomplete data.
    NoContext = cause::NO_CONTEXT as u8,
    /// No pool line was free for incomplete data.
    NoPool = cause::NO_POOL as u8,
    /// A DMA read or write failed.
    DmaError = cause::DMA_ERROR as u8,
    /// A length makes no sense: of a batch record, a descriptor or a ring.
    BadLength = cause::BAD_LENGTH as u8,
    /// The notification ring that the queue names is not there, or has no entry for its pipe.
    NoRing = cause::NO_RING as u8,
}

/// The registers of one queue, decoded, as they were when it was enabled.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueSettings {
    /// Transmit interface; `None` for a queue that only receives.
    pub interface: Option<Interface>,
    /// Epoch that headers must carry.
    pub epoch: u8,
    /// Whether complete messages may wait in the pool without credits.
    pub backpressure: bool,
    /// Frames leave with checksums filled in.
    pub checksums: bool,
    /// Lines of the transmit window, a power of two.
    pub window_lines: u32,
    /// The blank of a blank window; 0 for an observed one.
    pub blank: u64,
    /// Bus address of the credit word; 0: none is pushed.
    pub credit_address: u64,
    /// Freed lines after which credits are pushed, at least 1.
    pub credit_lines: u32,
    /// Time after which credits are pushed, in ns.
    pub credit_time_ns: u32,
    /// How long a hole may stand, in ns; 0: for ever.
    pub hole_timeout_ns: u64,
    /// Lines of a message with which its frame may begin before it is complete; 0: it never does.
    pub cut_through_lines: u32,
    /// Bus address of the transmit ring: of descriptors, entries or a pipe's lines.
    pub tx_ring_address: u64,
    /// Entries of that ring; not checked.
    pub tx_ring_entries: u32,
    /// Bus address of the word that takes the absolute transmit head count.
    pub tx_head_address: u64,
    /// Frames after which a completion is written, at least 1.
    pub tx_moderation_frames: u32,
    /// Time after which a completion is written, in ns.
    pub tx_moderation_ns: u32,
    /// Receive mode: 0 off, 1 contiguous ring, 2 descriptors; other values are as written.
    pub rx_mode: u8,
    /// Bus address of the receive ring (of lines or of descriptors).
    pub rx_ring_address: u64,
    /// Lines or entries of that ring; not checked.
    pub rx_ring_entries: u32,
    /// Bus address of the receive completion ring.
    pub rx_completion_address: u64,
    /// Received frames after which an interrupt is raised, at least 1.
    pub rx_moderation_frames: u32,
    /// Time after which a receive interrupt is raised, in ns.
    pub rx_moderation_ns: u32,
    /// End-of-packet signature of kPIO+WC.
    pub kpio_eop: u64,
    /// Every so many whole pushes one is not used; 0: none.
    pub tx_self_test: u32,
    /// Lines of an entry in the BAR, or of coherent lines to send, a power of two; not checked.
    pub entry_lines: u32,
    /// How long a read of an entry may be held, in ns.
    pub entry_hold_ns: u32,
    /// Whether frames that fit an entry are kept in the BAR.
    pub rx_reads: bool,
    /// Entries of the notification ring, or buffers beside coherent lines; not checked.
    pub rx_notify_entries: u32,
    /// The queue whose notification ring tells of this one's pipe, if it is not its own; not checked.
    pub rx_notify_owner: Option<QueueId>,
    /// Whether frames go into coherent lines.
    pub rx_lines: bool,
    /// Lines of an entry of those, a power of two; not checked.
    pub rx_entry_lines: u32,
}

/// Answers to reads, oldest first. An answer passes no access to memory that was asked for before it (PCIe: a
/// completion does not pass posted writes), so what a read says has happened in memory has happened.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// Tag, value, and the accesses asked for before it.
    waiting: VecDeque<(ReadTag, u64, u64)>,
}

impl Answers {
    #[inline]
    pub(crate) fn push(&mut self, tag: ReadTag, value: u64, dma: &DmaPort) {
        self.waiting.push_back((tag, value, dma.asked()));
    }

    /// Whether none waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The oldest answer, if it may go now.
    #[inline]
    pub(crate) fn take(&mut self, dma: &DmaPort) -> Option<(ReadTag, u64)> {
        let (tag, value, _) = self.waiting.pop_front_if(|(_, _, asked)| dma.has_given(*asked))?;
        Some((tag, value))
    }
}

/// What all engines share: time, counts, and where they leave what they want.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The time, as the link last told.
    pub now: SimTime,
    /// Counters by cause.
    pub counters: Counters,
    /// Host memory accesses that wait for the link.
    pub dma: DmaPort,
    /// Watches of lines, those that wait for the link and those that are outstanding.
    pub watches: WatchPort,
    /// Answers to reads that wait for the link.
    pub answers: Answers,
    /// Interrupt causes and interrupts that wait for the link.
    pub interrupts: Interrupts,
    /// Queues that have a frame at their head; the arbiter's.
    pub(crate) ready: Scheduler,
    /// Queues that failed since the device last looked.
    pub(crate) failed: Vec<(QueueId, Cause)>,
}

impl Shared {
    /// Time 0, nothing counted, nothing wanted.
    pub(crate) fn new(queues: u32) -> Self {
        Shared {
            now: SimTime(0),
            counters: Counters::default(),
            dma: DmaPort::new(),
            watches: WatchPort::new(queues),
            answers: Answers::default(),
            interrupts: Interrupts::new(queues),
            ready: Scheduler::new(queues),
            failed: Vec::with_capacity(queues as usize),
        }
    }

    /// The queue has at least one complete frame; said whenever one completes (saying it again is harmless).
    #[inline]
    pub(crate) fn frame_ready(&mut self, queue: QueueId) {
        self.ready.frame_ready(queue);
    }

    #[inline]
    pub(crate) fn answer(&mut self, tag: ReadTag, value: u64) {
        self.answers.push(tag, value, &self.dma);
    }

    /// The queue failed. The device calls [`Engine::quarantine`] before anything else happens and raises the
    /// interrupt; the engine counts the cause itself.
    #[cold]
    pub(crate) fn fail(&mut self, queue: QueueId, cause: Cause) {
        self.failed.push((queue, cause));
    }
}
