//! Queues of DMA: transfers between segments that go on while the program does something else.

use core::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use beeline_fabric::{AdapterNumber, DmaEntry, DmaState, Refusal};
use beeline_fabric_process::{DmaDirection, DmaQueue, DmaTransfer};
use beeline_ffi::{Array, Handle, Kind, Out, Outcome};

use crate::callback::{Argument, Caller, check_callback, check_waits};
use crate::constants::{
    SCI_FLAG_BROADCAST, SCI_FLAG_DMA_ADAPTER, SCI_FLAG_DMA_GLOBAL, SCI_FLAG_DMA_PHDMA, SCI_FLAG_DMA_READ,
    SCI_FLAG_DMA_SYSDMA, SCI_FLAG_DMA_USER_MEM, SCI_FLAG_DMA_WAIT, SCI_FLAG_USE_CALLBACK,
};
use crate::edge::{Error, edge, edge_without_code, failure, refused};
use crate::errors;
use crate::flags::Flags;
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
    /// Of the callback of the last transfer that had one.
    caller: Mutex<Caller>,
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
    done: ENGINES | SCI_FLAG_USE_CALLBACK | SCI_FLAG_DMA_WAIT | SCI_FLAG_DMA_READ,
    not_done: SCI_FLAG_DMA_USER_MEM | SCI_FLAG_BROADCAST,
};

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
        let made = Arc::new(session.member().dma_queue(max_entries as usize).map_err(refused)?);
        let make = |belongs| Queue {
            belongs,
            _of_descriptor: of_descriptor,
            queue: made,
            is_told: AtomicBool::new(false),
            caller: Mutex::default(),
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
    removed.caller().stop();
    Ok(())
}

fn remove_by_force(queue: Handle<Queue>) -> Outcome<()> {
    QUEUES.with(queue, |queue| {
        // So that nobody waits for it any more.
        let _state = queue.queue.abort();
        Ok(())
    })?;
    remove(queue)
}

impl Queue {
    fn caller(&self) -> MutexGuard<'_, Caller> {
        self.caller.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a transfer that has ended is to C.
    fn code(queue: &DmaQueue) -> u32 {
        match queue.state() {
            DmaState::Aborted => errors::CANCELLED,
            DmaState::Error => queue.failure().map_or(errors::TRANSFER_FAILED, |refusal| refusal as u32),
            _ => errors::OK,
        }
    }

    /// Begins to wait for the end of a transfer, which the callback is told.
    fn tell(&self, handle: Handle<Queue>, callback: DmaCallback, argument: *mut c_void) -> Outcome<()> {
        let (argument, queue) = (Argument::of(argument), Arc::clone(&self.queue));
        let mut is_told = false;
        let next = move || {
            // Once: the next transfer has a callback of its own.
            if core::mem::replace(&mut is_told, true) {
                return None;
            }
            queue.wait(None).ok().map(|_| Queue::code(&queue))
        };
        let caller = Caller::default();
        caller.begin(next, move |code| callback(argument.get(), handle, code))?;
        *self.caller() = caller;
        Ok(())
    }
}

/// What C asks of a transfer besides its entries.
struct Asked {
    queue: Handle<Queue>,
    local: Handle<Local>,
    remote: Handle<Remote>,
    callback: Option<DmaCallback>,
    argument: *mut c_void,
    flags: u32,
}

fn transfer(asked: &Asked, entries: &[DmaEntry]) -> Outcome<()> {
    let Asked { queue: handle, local, remote, callback, argument, flags } = *asked;
    QUEUES.with(handle, |queue| {
        TRANSFER.check(flags)?;
        check_callback(flags, callback.is_some())?;
        let has_callback = flags & SCI_FLAG_USE_CALLBACK != 0;
        if has_callback && flags & SCI_FLAG_DMA_WAIT != 0 {
            let why = "SCI_FLAG_USE_CALLBACK and SCI_FLAG_DMA_WAIT do not go together";
            return Err(failure(errors::ILLEGAL_FLAG, why));
        }
        let local = LOCALS.with(local, |local| Ok(local.segment))?;
        let remote = REMOTES.with(remote, |remote| Ok(remote.segment))?;
        let is_read = flags & SCI_FLAG_DMA_READ != 0;
        let direction = if is_read { DmaDirection::Read } else { DmaDirection::Write };
        let transfer = DmaTransfer { local, remote, direction, entries };
        if flags & SCI_FLAG_DMA_WAIT != 0 {
            queue.queue.copy(transfer).map_err(refused)?;
            queue.is_told.store(false, Ordering::Relaxed);
            return match Queue::code(&queue.queue) {
                errors::OK => Ok(()),
                code => Err(failure(code, "the transfer has failed")),
            };
        }
        queue.queue.start(transfer).map_err(refused)?;
        queue.is_told.store(has_callback, Ordering::Relaxed);
        match callback.filter(|_| has_callback) {
            Some(callback) => queue.tell(handle, callback, argument),
            None => Ok(()),
        }
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
        let (local_offset, remote_offset) = (local_offset as u64, remote_offset as u64);
        let entry = DmaEntry { local_offset, remote_offset, bytes: bytes as u64 };
        transfer(&Asked { queue, local, remote, callback, argument, flags }, &[entry])
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
        QUEUES.with(queue, |_| TRANSFER.check(flags))?;
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
        transfer(&Asked { queue, local, remote, callback, argument, flags }, &entries)
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
