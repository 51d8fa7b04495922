//! Sequences: whether stores through a map arrived; fences.

use std::sync::{Mutex, PoisonError};

use beeline_fabric::{SequenceStart, SequenceStatus};
use beeline_ffi::{Failure, Handle, Kind, Out, Outcome};
use beeline_mmio::fence;

use crate::constants::{
    SCI_FLAG_CACHE_FLUSH, SCI_FLAG_CACHE_INVALIDATE, SCI_FLAG_FAST_BARRIER, SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY,
    SCI_FLAG_NO_FLUSH, SCI_FLAG_NO_STORE_BARRIER, SCI_SEQ_NOT_RETRIABLE, SCI_SEQ_OK, SCI_SEQ_PENDING,
    SCI_SEQ_RETRIABLE,
};
use crate::edge::{Error, edge, edge_without_code, failure};
use crate::errors;
use crate::flags::Flags;
use crate::handles::{Object, Table};
use crate::map::{MAPS, Map};
use crate::member;
use crate::session::{self, Belongs};
use crate::uses::Use;

/// `sci_sequence_t`.
pub(crate) struct Sequence {
    belongs: Belongs,
    _of_map: Use,
    map: Handle<Map>,
    /// Of a segment of this process there is nothing to watch: it is there as long as it is mapped.
    watch: Option<member::Sequence>,
    start: Mutex<Start>,
}

/// Where a sequence began.
#[derive(Clone, Copy)]
enum Start {
    /// It was not started, or of a connection that is lost.
    None,
    /// A link was down: nothing that was stored since is known to have arrived.
    Pending,
    Own,
    At(SequenceStart),
}

impl Kind for Sequence {
    const NAME: &'static str = "sci_sequence_t";
    const TAG: u8 = 0x59;
}

impl Object for Sequence {
    fn belongs(&self) -> &Belongs {
        &self.belongs
    }
}

static SEQUENCES: Table<Sequence> = Table::new();

/// All barriers are fast where memory is shared.
const CREATE: Flags = Flags { done: SCI_FLAG_FAST_BARRIER, not_done: 0 };
const LOOK: Flags = Flags { done: SCI_FLAG_NO_FLUSH | SCI_FLAG_NO_STORE_BARRIER, not_done: 0 };
const FLUSH: Flags = Flags { done: SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY, not_done: 0 };
const SYNC: Flags = Flags { done: SCI_FLAG_CACHE_FLUSH | SCI_FLAG_CACHE_INVALIDATE, not_done: 0 };

fn status(status: SequenceStatus) -> u32 {
    match status {
        SequenceStatus::Ok => SCI_SEQ_OK,
        SequenceStatus::Retriable => SCI_SEQ_RETRIABLE,
        SequenceStatus::NotRetriable => SCI_SEQ_NOT_RETRIABLE,
        SequenceStatus::Pending => SCI_SEQ_PENDING,
    }
}

impl Sequence {
    /// What comes before a look at how the connection stands, as far as the program wants it: its stores leave this CPU, and are visible.
    fn settle(&self, flags: u32) {
        if flags & SCI_FLAG_NO_STORE_BARRIER == 0 {
            fence::order_all();
            self.watch.iter().for_each(member::Sequence::flush);
        } else if flags & SCI_FLAG_NO_FLUSH == 0 {
            fence::flush_write_combining();
        }
    }

    fn start(&self) -> SequenceStatus {
        let (status, start) = match &self.watch {
            None => (SequenceStatus::Ok, Start::Own),
            Some(watch) => {
                let (status, start) = watch.start();
                let found_down = if status == SequenceStatus::Pending { Start::Pending } else { Start::None };
                (status, start.map_or(found_down, Start::At))
            }
        };
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) = start;
        status
    }

    fn check(&self) -> Outcome<SequenceStatus> {
        let start = *self.start.lock().unwrap_or_else(PoisonError::into_inner);
        match (start, &self.watch) {
            (Start::Own, _) => Ok(SequenceStatus::Ok),
            (Start::At(start), Some(watch)) => Ok(watch.check_unflushed(start)),
            // Where the links are up again, the program must know that before it starts anew.
            (Start::Pending, Some(watch)) => Ok(match watch.start().0 {
                SequenceStatus::Ok => SequenceStatus::Retriable,
                down_or_lost => down_or_lost,
            }),
            // Of a connection that is lost no sequence can be started.
            (Start::None, Some(watch)) if watch.start().0 == SequenceStatus::NotRetriable => {
                Ok(SequenceStatus::NotRetriable)
            }
            _ => Err(failure(errors::ILLEGAL_OPERATION, "the sequence is not started")),
        }
    }
}

/// What a sequence says at the end of a copy.
pub(crate) fn after_copy(sequence: Handle<Sequence>) -> Outcome<SequenceStatus> {
    SEQUENCES.with(sequence, Sequence::check)
}

/// Fails if C passes a handle that names nothing; NULL is none.
fn is_one_or_null(sequence: Handle<Sequence>) -> Outcome<()> {
    if sequence.is_null() { Ok(()) } else { SEQUENCES.with(sequence, |_| Ok(())) }
}

/// As [`is_one_or_null`], and fails if it is a sequence of another map.
#[inline(always)]
pub(crate) fn is_of_or_null(sequence: Handle<Sequence>, map: Handle<Map>) -> Outcome<()> {
    if sequence.is_null() {
        return Ok(());
    }
    SEQUENCES.with(sequence, |sequence| if sequence.map == map { Ok(()) } else { Err(of_another_map()) })
}

#[cold]
fn of_another_map() -> Failure {
    Failure::invalid("sequence is of another map")
}

pub(crate) fn create(map: Handle<Map>, sequence: Out<'_, Handle<Sequence>>, flags: u32, error: Error<'_>) {
    edge("SCICreateMapSequence", error, (), || {
        sequence.put(Handle::NULL, "sequence")?;
        let (session, of_map, watch) = MAPS.with(map, |map| {
            CREATE.check(flags)?;
            Ok((map.session().clone(), map.uses.begin()?, map.watch().cloned()))
        })?;
        let start = Mutex::new(Start::None);
        let make = |belongs| Sequence { belongs, _of_map: of_map, map, watch, start };
        sequence.put(SEQUENCES.make(&session, make, remove)?, "sequence")
    });
}

pub(crate) fn remove_sequence(sequence: Handle<Sequence>, flags: u32, error: Error<'_>) {
    edge("SCIRemoveSequence", error, (), || {
        SEQUENCES.with(sequence, |_| Flags::NONE.check(flags))?;
        remove(sequence)
    });
}

fn remove(sequence: Handle<Sequence>) -> Outcome<()> {
    SEQUENCES.remove(sequence).map(drop)
}

pub(crate) fn start(sequence: Handle<Sequence>, flags: u32, error: Error<'_>) -> u32 {
    edge("SCIStartSequence", error, SCI_SEQ_NOT_RETRIABLE, || {
        SEQUENCES.with(sequence, |sequence| {
            LOOK.check(flags)?;
            sequence.settle(flags);
            Ok(status(sequence.start()))
        })
    })
}

pub(crate) fn check(sequence: Handle<Sequence>, flags: u32, error: Error<'_>) -> u32 {
    edge("SCICheckSequence", error, SCI_SEQ_NOT_RETRIABLE, || {
        SEQUENCES.with(sequence, |sequence| {
            LOOK.check(flags)?;
            sequence.settle(flags);
            sequence.check().map(status)
        })
    })
}

pub(crate) fn store_barrier(sequence: Handle<Sequence>, flags: u32) {
    edge_without_code("SCIStoreBarrier", (), || {
        // First: whatever the program passes, what it stored before is ordered.
        fence::order_all();
        is_one_or_null(sequence)?;
        Flags::NONE.check(flags)
    });
}

pub(crate) fn flush(sequence: Handle<Sequence>, flags: u32) {
    edge_without_code("SCIFlush", (), || {
        fence::flush_write_combining();
        is_one_or_null(sequence)?;
        FLUSH.check(flags)
    });
}

pub(crate) fn flush_read_buffers(sequence: Handle<Sequence>) {
    edge_without_code("SCIFlushReadBuffers", (), || {
        fence::order_all();
        is_one_or_null(sequence)
    });
}

pub(crate) fn cache_sync(
    map: Handle<Map>,
    address: *mut core::ffi::c_void,
    bytes: usize,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCICacheSync", error, (), || {
        let check_flags = || {
            SYNC.check(flags)?;
            let why = "neither SCI_FLAG_CACHE_FLUSH nor SCI_FLAG_CACHE_INVALIDATE";
            if flags == 0 { Err(failure(errors::ILLEGAL_FLAG, why)) } else { Ok(()) }
        };
        if map.is_null() {
            session::config()?;
            check_flags()?;
        } else {
            MAPS.with(map, |map| {
                check_flags()?;
                map.part_at(address.cast(), bytes).map(|_| ())
            })?;
        }
        // Caches are coherent with everything that reaches memory that processes share.
        fence::order_all();
        Ok(())
    });
}
