//! Queues of DMA: transfers between segments that go on while the program does something else.

use core::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use beeline_fabric::{
    AdapterNumber, DmaEntry, DmaState, LocalSegment, MAX_DMA_ENTRIES, Refusal, RemoteSegment,
};
use beeline_fabric_process::{DmaDirection, DmaJob, DmaLocal, DmaQueue, DmaTransfer};
use beeline_ffi::{Array, Failure, Handle, Kind, Out, Outcome};

use beeline_mmio::ProgramMemory;

use crate::callback::{Argument, CONTINUE, Caller, check_callback, check_waits};
use crate::constants::{
    SCI_FLAG_BROADCAST, SCI_FLAG_DMA_ADAPTER, SCI_FLAG_DMA_GLOBAL, SCI_FLAG_DMA_PHDMA, SCI_FLAG_DMA_POST,
    SCI_FLAG_DMA_READ, SCI_FLAG_DMA_RESET, SCI_FLAG_DMA_SYSDMA, SCI_FLAG_DMA_USER_MEM, SCI_FLAG_DMA_WAIT,
    SCI_FLAG_USE_CALLBACK,
};
use crate::edge::{Error, code_of, edge, edge_without_code, failure, refused};
use crate::errors;
use crate::flags::{Flags, check_broadcast};
use crate::handles::{Object, Table};
use crate::lifecycle::{DESCRIPTORS, Descriptor};
use crate::local::{LOCALS, Local};
use crate::node::timeout_nanos;
use crate::remote::{REMOTES, Remote};
use crate::session::Belongs;
use crate::uses::Use;

/// `DIS_DMA_MAX_VECLEN`
pub(crate) const MAX_PIECES: usize = 256;

/// `sci_dma_queue_t`.
pub(crate) struct Queue {
    belongs: Belongs,
    _of_descriptor: Use,
    queue: Arc<DmaQueue>,
    /// Whether the last transfer has a callback.
    is_told: AtomicBool,
    /// Who tells the ends of transfers that have a callback, from the first of these on.
    teller: Mutex<Option<Teller>>,
    adapter: AdapterNumber,
}

/// The thread that tells the ends of a queue's transfers, one after the other.
struct Teller {
    caller: Caller,
    told: Sender<Told>,
}

/// A transfer whose end is told.
struct Told {
    job: DmaJob,
    callback: DmaCallback,
    argument: Argument,
}

impl Kind for Queue {
    const NAME: &'static str = "sci_dma_queue_t";
    const TAG: u8 = 0x5b;
}

impl Object for Queue {
    fn belongs(&self) -> &Belongs {
        &self.belongs
    }
}

static QUEUES: Table<Queue> = Table::new();

/// `sci_cb_dma_t`.
pub(crate) type DmaCallback = extern "C" fn(*mut c_void, Handle<Queue>, u32) -> u32;

/// `dis_dma_vec_t`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Piece {
    bytes: u32,
    local_offset: u32,
    remote_offset: u32,
    flags: u32,
}

/// Engines that a program may wish for: there is one kind, threads of the process.
const ENGINES: u32 = SCI_FLAG_DMA_GLOBAL | SCI_FLAG_DMA_SYSDMA | SCI_FLAG_DMA_ADAPTER;
const CREATE: Flags = Flags { done: ENGINES, not_done: SCI_FLAG_DMA_PHDMA };
const TRANSFER: Flags = Flags {
    done: ENGINES | SCI_FLAG_USE_CALLBACK | SCI_FLAG_DMA_WAIT | SCI_FLAG_DMA_READ | SCI_FLAG_BROADCAST,
    not_done: SCI_FLAG_DMA_USER_MEM,
};
const MEMORY: Flags = Flags { done: TRANSFER.done | SCI_FLAG_DMA_USER_MEM, not_done: 0 };
const ENQUEUE: Flags =
    Flags { done: SCI_FLAG_DMA_READ | SCI_FLAG_DMA_POST | SCI_FLAG_DMA_RESET, not_done: 0 };
const POST: Flags = Flags { done: SCI_FLAG_USE_CALLBACK | SCI_FLAG_DMA_WAIT, not_done: 0 };

pub(crate) fn create(
    descriptor: Handle<Descriptor>,
    queue: Out<'_, Handle<Queue>>,
    adapter: u32,
    max_entries: u32,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCICreateDMAQueue", error, (), || {
        queue.put(Handle::NULL, "dq")?;
        let (session, of_descriptor) = DESCRIPTORS.with(descriptor, |descriptor| {
            CREATE.check(flags)?;
            Ok((descriptor.session().clone(), descriptor.uses.begin()?))
        })?;
        let adapter = AdapterNumber::new(adapter).map_err(refused)?;
        // For what it says of an adapter that is not there.
        session.member().is_link_up(adapter).map_err(refused)?;
        let adapter = session.adapter(adapter.number())?;
        let made = session.member().dma_queue(max_entries as usize).map_err(|refusal| match refusal {
            Refusal::IllegalParameter => {
                let why = format!("maxEntries is {max_entries}, and not 1 to {MAX_DMA_ENTRIES}");
                Failure::invalid(why)
            }
            other => refused(other),
        })?;
        let made = Arc::new(made);
        let make = |belongs| Queue {
            belongs,
            _of_descriptor: of_descriptor,
            queue: made,
            is_told: AtomicBool::new(false),
            teller: Mutex::default(),
            adapter,
        };
        queue.put(QUEUES.make(&session, make, remove_by_force)?, "dq")
    });
}

pub(crate) fn remove_queue(queue: Handle<Queue>, flags: u32, error: Error<'_>) {
    edge("SCIRemoveDMAQueue", error, (), || {
        QUEUES.with(queue, |queue| {
            Flags::NONE.check(flags)?;
            match queue.queue.state() {
                DmaState::Posted => Err(refused(Refusal::IllegalOperation)),
                _ => Ok(()),
            }
        })?;
        remove(queue)
    });
}

/// A transfer that another thread starts meanwhile is aborted.
fn remove(queue: Handle<Queue>) -> Outcome<()> {
    let removed = QUEUES.remove(queue)?;
    // Nothing was started, or it has ended, or it is aborted.
    let _state = removed.queue.abort();
    if let Some(Teller { caller, told }) = removed.teller().take() {
        // The thread waits for no further transfer.
        drop(told);
        caller.stop();
    }
    Ok(())
}

fn remove_by_force(queue: Handle<Queue>) -> Outcome<()> {
    QUEUES.with_last(queue, |queue| {
        // So that nobody waits for it any more.
        let _state = queue.queue.abort();
        Ok(())
    })?;
    remove(queue)
}

impl Queue {
    fn teller(&self) -> MutexGuard<'_, Option<Teller>> {
        self.teller.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where transfers of this queue are put whose ends are to be told. Made before a transfer is started, which could not be told
    /// otherwise.
    fn told(&self, handle: Handle<Queue>) -> Outcome<Sender<Told>> {
        let mut teller = self.teller();
        if let Some(teller) = &*teller {
            return Ok(teller.told.clone());
        }
        let (told, jobs) = channel::<Told>();
        let caller = Caller::default();
        let next = move || {
            let Told { job, callback, argument } = jobs.recv().ok()?;
            Some((code(job.wait(None), job.failure()), callback, argument))
        };
        // Each start wants one call: what a callback wants next is said by the next start.
        let call = move |(code, callback, argument): (_, DmaCallback, Argument)| {
            let _wanted = callback(argument.get(), handle, code);
            CONTINUE
        };
        caller.begin(next, call)?;
        *teller = Some(Teller { caller, told: told.clone() });
        Ok(told)
    }

    /// Starts a transfer as C asks: it is waited for, its end is told, or the program asks.
    fn start(&self, ask: &Ask, start: impl FnOnce() -> Result<DmaJob, Refusal>) -> Outcome<()> {
        let told = ask.callback.map(|callback| Ok((callback, self.told(ask.queue)?))).transpose()?;
        let job = start().map_err(refused)?;
        self.is_told.store(told.is_some(), Ordering::Relaxed);
        if let Some((callback, told)) = told {
            // It is received until the queue is removed.
            let _ = told.send(Told { job, callback, argument: Argument::of(ask.argument) });
            return Ok(());
        }
        if ask.flags & SCI_FLAG_DMA_WAIT == 0 {
            return Ok(());
        }
        match code(job.wait(None), job.failure()) {
            errors::OK => Ok(()),
            code => Err(failure(code, "the transfer has not copied all")),
        }
    }

    /// The connection to a segment, if it is by the queue's adapter.
    fn remote(&self, remote: Handle<Remote>) -> Outcome<RemoteSegment> {
        REMOTES.with(remote, |remote| {
            if remote.adapter != self.adapter {
                let why = "the segment is connected to by another adapter than the queue's";
                return Err(failure(errors::ILLEGAL_OPERATION, why));
            }
            Ok(remote.segment)
        })
    }
}

/// What a transfer that has ended is to C.
fn code(state: Result<DmaState, Refusal>, why: Option<Refusal>) -> u32 {
    match state {
        Ok(DmaState::Aborted) => errors::CANCELLED,
        Ok(DmaState::Error) => why.map_or(errors::TRANSFER_FAILED, Refusal::code),
        Ok(_) => errors::OK,
        Err(refusal) => refusal.code(),
    }
}

/// What C asks of a transfer besides what is copied.
#[derive(Clone, Copy)]
struct Ask {
    queue: Handle<Queue>,
    /// Nothing if it is not wanted.
    callback: Option<DmaCallback>,
    argument: *mut c_void,
    flags: u32,
}

impl Ask {
    /// Checks what C asks of a function that takes these flags.
    fn new(
        (queue, known): (Handle<Queue>, &Flags),
        callback: Option<DmaCallback>,
        argument: *mut c_void,
        flags: u32,
    ) -> Outcome<Self> {
        QUEUES.with(queue, |_| known.check(flags))?;
        check_callback(flags, callback.is_some())?;
        let has_callback = flags & SCI_FLAG_USE_CALLBACK != 0;
        if has_callback && flags & SCI_FLAG_DMA_WAIT != 0 {
            let why = "SCI_FLAG_USE_CALLBACK and SCI_FLAG_DMA_WAIT do not go together";
            return Err(failure(errors::ILLEGAL_FLAG, why));
        }
        Ok(Ask { queue, callback: callback.filter(|_| has_callback), argument, flags })
    }

    /// As [`Ask::transfer`], of a segment.
    fn transfer_segment(
        &self,
        segment: Handle<Local>,
        remote: Handle<Remote>,
        entries: &[DmaEntry],
    ) -> Outcome<()> {
        let local = QUEUES.with(self.queue, |queue| local(segment, queue.adapter, self.flags))?;
        self.transfer(DmaLocal::Segment(local), remote, entries)
    }

    /// Starts a transfer, or copies it here if it is waited for.
    fn transfer(&self, local: DmaLocal, remote: Handle<Remote>, entries: &[DmaEntry]) -> Outcome<()> {
        QUEUES.with(self.queue, |queue| {
            REMOTES.with(remote, |remote| check_broadcast(self.flags, remote.is_group()))?;
            let remote = queue.remote(remote)?;
            let transfer = DmaTransfer { local, remote, direction: direction(self.flags), entries };
            let begin = if self.flags & SCI_FLAG_DMA_WAIT != 0 { DmaQueue::begin } else { DmaQueue::start };
            queue.start(self, || begin(&queue.queue, transfer))
        })
    }
}

fn direction(flags: u32) -> DmaDirection {
    if flags & SCI_FLAG_DMA_READ != 0 { DmaDirection::Read } else { DmaDirection::Write }
}

/// A segment of this process, to be copied from or to by a queue of an adapter.
fn local(segment: Handle<Local>, adapter: AdapterNumber, flags: u32) -> Outcome<LocalSegment> {
    LOCALS.with(segment, |local| {
        local.check_prepared(adapter)?;
        if direction(flags) == DmaDirection::Read {
            local.check_not_source_only()?;
        }
        Ok(local.segment)
    })
}

#[expect(clippy::too_many_arguments, reason = "the signature of SISCI")]
pub(crate) fn start(
    queue: Handle<Queue>,
    local: Handle<Local>,
    remote: Handle<Remote>,
    local_offset: usize,
    bytes: usize,
    remote_offset: usize,
    callback: Option<DmaCallback>,
    argument: *mut c_void,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIStartDmaTransfer", error, (), || {
        let ask = Ask::new((queue, &TRANSFER), callback, argument, flags)?;
        let (local_offset, remote_offset) = (local_offset as u64, remote_offset as u64);
        let entry = DmaEntry { local_offset, remote_offset, bytes: bytes as u64 };
        ask.transfer_segment(local, remote, &[entry])
    });
}

#[expect(clippy::too_many_arguments, reason = "the signature of SISCI")]
pub(crate) fn start_vector(
    queue: Handle<Queue>,
    local: Handle<Local>,
    remote: Handle<Remote>,
    count: usize,
    pieces: Array<'_, Piece>,
    callback: Option<DmaCallback>,
    argument: *mut c_void,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIStartDmaTransferVec", error, (), || {
        let ask = Ask::new((queue, &TRANSFER), callback, argument, flags)?;
        let pieces = pieces.read(count, MAX_PIECES, "vec")?;
        let entry = |piece: &Piece| match piece.flags {
            0 => Ok(DmaEntry {
                local_offset: piece.local_offset.into(),
                remote_offset: piece.remote_offset.into(),
                bytes: piece.bytes.into(),
            }),
            _ => Err(failure(errors::ILLEGAL_FLAG, "flags of a piece: none is defined")),
        };
        let entries = pieces.iter().map(entry).collect::<Outcome<Vec<_>>>()?;
        ask.transfer_segment(local, remote, &entries).map_err(|failure| {
            // What is wrong besides comes first.
            let is_of_count = count == 0 && code_of(failure.status) == errors::ILLEGAL_PARAMETER;
            let why = || Failure::invalid(format!("vecLength is 0, and not 1 to {MAX_PIECES}"));
            if is_of_count { why() } else { failure }
        })
    });
}

#[expect(clippy::too_many_arguments, reason = "the signature of SISCI")]
pub(crate) fn start_memory(
    queue: Handle<Queue>,
    address: *mut c_void,
    remote: Handle<Remote>,
    bytes: usize,
    remote_offset: usize,
    callback: Option<DmaCallback>,
    argument: *mut c_void,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIStartDmaTransferMem", error, (), || {
        let ask = Ask::new((queue, &MEMORY), callback, argument, flags)?;
        if address.is_null() {
            return Err(Failure::invalid("localAddress is NULL"));
        }
        // SAFETY: C passes memory of its own, which stays as it is but for what this transfer stores until that has ended; the header
        // says so. Memory that is not there is found by the kernel.
        let memory = unsafe { ProgramMemory::new(address.cast(), bytes) };
        let entry = DmaEntry { local_offset: 0, remote_offset: remote_offset as u64, bytes: bytes as u64 };
        ask.transfer(DmaLocal::Program(Arc::new(memory)), remote, &[entry])
    });
}

#[expect(clippy::too_many_arguments, reason = "the signature of SISCI")]
pub(crate) fn enqueue(
    queue: Handle<Queue>,
    local: Handle<Local>,
    remote: Handle<Remote>,
    local_offset: u32,
    remote_offset: u32,
    bytes: u32,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIEnqueueDMATransfer", error, (), || {
        QUEUES.with(queue, |queue| {
            ENQUEUE.check(flags)?;
            let local = self::local(local, queue.adapter, flags)?;
            let remote = queue.remote(remote)?;
            let (local_offset, remote_offset) = (local_offset.into(), remote_offset.into());
            let entry = DmaEntry { local_offset, remote_offset, bytes: bytes.into() };
            let dma = &queue.queue;
            if flags & SCI_FLAG_DMA_RESET != 0 {
                dma.reset().map_err(refused)?;
            }
            dma.gather((local, remote), direction(flags), entry).map_err(refused)?;
            if flags & SCI_FLAG_DMA_POST != 0 {
                dma.post().map_err(refused)?;
                queue.is_told.store(false, Ordering::Relaxed);
            }
            Ok(())
        })
    });
}

pub(crate) fn post(
    queue: Handle<Queue>,
    callback: Option<DmaCallback>,
    argument: *mut c_void,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIPostDMAQueue", error, (), || {
        let ask = Ask::new((queue, &POST), callback, argument, flags)?;
        QUEUES.with(queue, |queue| queue.start(&ask, || queue.queue.post()))
    });
}

pub(crate) fn reset(queue: Handle<Queue>, flags: u32, error: Error<'_>) {
    edge("SCIResetDMAQueue", error, (), || {
        QUEUES.with(queue, |queue| {
            Flags::NONE.check(flags)?;
            queue.queue.reset().map_err(refused)
        })
    });
}

pub(crate) fn state(queue: Handle<Queue>) -> u32 {
    let idle = DmaState::Idle as u32;
    edge_without_code("SCIDMAQueueState", idle, || QUEUES.with(queue, |queue| Ok(queue.queue.state() as u32)))
}

pub(crate) fn wait(queue: Handle<Queue>, timeout: u32, flags: u32, error: Error<'_>) -> u32 {
    let given = edge("SCIWaitForDMAQueue", error, None, || {
        QUEUES.with(queue, |queue| {
            Flags::NONE.check(flags)?;
            check_waits(queue.is_told.load(Ordering::Relaxed))?;
            let timeout = timeout_nanos(timeout).map(Duration::from_nanos);
            match queue.queue.wait(timeout).map_err(refused)? {
                DmaState::Posted => Err(failure(errors::TIMEOUT, "the transfer is still under way")),
                ended => Ok(Some(ended as u32)),
            }
        })
    });
    given.unwrap_or_else(|| state(queue))
}

pub(crate) fn abort(queue: Handle<Queue>, flags: u32, error: Error<'_>) {
    edge("SCIAbortDMAQueue", error, (), || {
        QUEUES.with(queue, |queue| {
            Flags::NONE.check(flags)?;
            queue.queue.abort().map(drop).map_err(refused)
        })
    });
}
