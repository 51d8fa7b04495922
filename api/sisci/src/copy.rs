//! Copies between memory of the program and maps.

use core::cell::Cell;
use core::ffi::c_void;

use beeline_fabric::SequenceStatus;
use beeline_ffi::{Failure, Handle, Outcome, ShortLook};
use beeline_mmio::{copy_in_if_short, copy_in_raw, copy_out_raw, fence, prefetch_copy_in};

use crate::constants::{
    SCI_FLAG_BLOCK_READ, SCI_FLAG_ERROR_CHECK, SCI_FLAG_NO_FLUSH, SCI_FLAG_NO_STORE_BARRIER,
};
use crate::edge::{Error, edge, edge_without_code, failure};
use crate::errors;
use crate::flags::Flags;
use crate::map::{self, MAPS, Map};
use crate::member;
use crate::sequence::{Sequence, after_copy, is_of_or_null};

const COPY: Flags = Flags {
    done: SCI_FLAG_BLOCK_READ | SCI_FLAG_ERROR_CHECK | SCI_FLAG_NO_FLUSH | SCI_FLAG_NO_STORE_BARRIER,
    not_done: 0,
};
const DUAL: Flags = Flags { done: COPY.done & !SCI_FLAG_BLOCK_READ, not_done: 0 };
const WRITE: Flags = Flags { done: SCI_FLAG_NO_FLUSH, not_done: 0 };
const VERSION_1: Flags = Flags { done: SCI_FLAG_ERROR_CHECK | SCI_FLAG_BLOCK_READ, not_done: 0 };

/// What a program gives that orders its copies itself.
const WITHOUT_ORDER: u32 = SCI_FLAG_NO_FLUSH | SCI_FLAG_NO_STORE_BARRIER;

#[cold]
fn transfer_failed() -> Failure {
    failure(errors::TRANSFER_FAILED, "the segment is gone, or a link was down meanwhile")
}

#[cold]
fn null_memory() -> Failure {
    Failure::invalid("memAddr is NULL")
}

/// Copies between memory of the program and a part of a map, and looks how the connection stands.
///
/// One function for all that copy, with arguments that registers take: what is stored to the stack stands between the stores of two
/// messages, of which fewer are then on their way to the cache at the same time.
#[inline(never)]
fn copy(
    sequence: Handle<Sequence>,
    memory: *mut u8,
    handle: Handle<Map>,
    offset: usize,
    bytes: usize,
    flags: u32,
) -> Outcome<()> {
    MAPS.with(handle, |map| {
        let mapped = map.part(offset, bytes)?;
        let is_read = flags & SCI_FLAG_BLOCK_READ != 0;
        if !is_read {
            // While the rest is checked. Otherwise the stores of a message wait for their line one behind the other, and those of the next
            // message behind them.
            prefetch_copy_in(mapped);
        }
        if memory.is_null() && bytes > 0 {
            return Err(null_memory());
        }
        is_of_or_null(sequence, handle)?;
        if is_read {
            // SAFETY: `part` has found so many bytes in the map, which is not unmapped while it is shown; C passes as many at `memory`.
            unsafe { copy_out_raw(mapped, memory, bytes) };
        } else {
            store(map, mapped, memory, bytes)?;
        }
        finish(map, flags);
        if flags & SCI_FLAG_ERROR_CHECK == 0 {
            return map.is_connected();
        }
        let status = if sequence.is_null() { map.standing() } else { after_copy(sequence)? };
        if status == SequenceStatus::Ok { Ok(()) } else { Err(transfer_failed()) }
    })
}

/// How the connection stood after a copy.
#[derive(Clone, Copy)]
enum Stored {
    /// As when the map was made.
    Untouched,
    /// Something has happened, which need not matter.
    Touched,
}

/// Copies bytes of the program into a map, in as few instructions as it takes; `None` if nothing was copied, because it takes more or
/// something is wrong. It calls nothing, so that the stores of many messages are on their way to the cache at the same time.
struct ShortStore {
    memory: *const u8,
    offset: usize,
    bytes: usize,
}

impl ShortLook<Map> for ShortStore {
    type Found = Stored;

    #[inline(always)]
    fn look(self, map: &Map) -> Option<Stored> {
        let mapped = map.find_part(self.offset, self.bytes)?;
        prefetch_copy_in(mapped);
        if self.memory.is_null() || !map.takes_short_copies() {
            return None;
        }
        // SAFETY: `find_part` has found so many bytes in the map, which is not unmapped while it is shown, and which is mapped for stores;
        // C passes as many at `memory`.
        if !unsafe { copy_in_if_short(mapped, self.memory, self.bytes) } {
            return None;
        }
        let is_untouched = map.watch().is_none_or(member::Sequence::is_untouched);
        Some(if is_untouched { Stored::Untouched } else { Stored::Touched })
    }
}

/// Says how the connection stands once bytes were copied.
#[cold]
#[inline(never)]
extern "C" fn look_again(map: Handle<Map>, error: Error<'_>) {
    edge("SCIMemCpy", error, (), || {
        MAPS.with(map, |map| {
            // As if the program had not asked to be spared it.
            finish(map, 0);
            map.is_connected()
        })
    });
}

#[inline(always)]
fn store(map: &Map, mapped: *mut u8, memory: *const u8, bytes: usize) -> Outcome<()> {
    if map.is_for_reading() {
        return Err(failure(errors::ILLEGAL_OPERATION, "the map is for reading"));
    }
    // SAFETY: the caller has found so many bytes in the map, which is not unmapped while it is shown, and which is mapped for stores;
    // C passes as many at `memory`, or they are of another map that is shown, too.
    unsafe { copy_in_raw(mapped, memory, bytes) };
    Ok(())
}

/// What was copied leaves this CPU before what follows it, unless the program does not want that.
#[inline(always)]
fn finish(map: &Map, flags: u32) {
    if flags & WITHOUT_ORDER == 0 {
        if map.is_device() {
            fence::flush_write_combining();
        } else {
            // Copies are made of cached stores.
            fence::order_dma_stores();
        }
    }
}

impl Map {
    /// Fails if the segment is gone. A link that is down does not matter to memory.
    #[inline(always)]
    fn is_connected(&self) -> Outcome<()> {
        let is_there = self.watch().is_none_or(member::Sequence::is_there);
        if is_there && self.is_intact() { Ok(()) } else { Err(transfer_failed()) }
    }

    #[inline(always)]
    fn standing(&self) -> SequenceStatus {
        match self.watch() {
            Some(watch) => watch.start().0,
            None if self.is_intact() => SequenceStatus::Ok,
            None => SequenceStatus::NotRetriable,
        }
    }
}

#[inline(always)]
pub(crate) fn mem_cpy(
    sequence: Handle<Sequence>,
    memory: *mut c_void,
    map: Handle<Map>,
    offset: usize,
    bytes: usize,
    flags: u32,
    error: Error<'_>,
) {
    if flags & !WITHOUT_ORDER != 0 || !sequence.is_null() {
        return mem_cpy_at_length(sequence, memory, map, offset, bytes, flags, error);
    }
    match MAPS.look_if_short(map, ShortStore { memory: memory.cast(), offset, bytes }) {
        Some(Stored::Untouched) => {
            if flags & WITHOUT_ORDER == 0 {
                fence::order_dma_stores();
            }
            error.put_if_wanted(errors::OK);
        }
        Some(Stored::Touched) => look_again(map, error),
        // With the store barrier, whatever the program wants: so the flags need not be kept until here.
        None => mem_cpy_at_length(Handle::NULL, memory, map, offset, bytes, 0, error),
    }
}

/// `SCIMemCpy` where [`ShortStore`] is not enough, and where something is wrong.
///
/// It has the calling convention of C, out of which nothing unwinds: so the caller has nothing to do after it, and jumps here.
#[inline(never)]
extern "C" fn mem_cpy_at_length(
    sequence: Handle<Sequence>,
    memory: *mut c_void,
    map: Handle<Map>,
    offset: usize,
    bytes: usize,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIMemCpy", error, (), || {
        COPY.check(flags)?;
        if flags & SCI_FLAG_ERROR_CHECK != 0 && sequence.is_null() {
            return Err(Failure::invalid("sequence is NULL, and is to be checked"));
        }
        copy(sequence, memory.cast(), map, offset, bytes, flags)
    });
}

#[expect(clippy::too_many_arguments, reason = "the signature of SISCI")]
pub(crate) fn mem_cpy_dual(
    sequence: Handle<Sequence>,
    memory: *mut c_void,
    map: Handle<Map>,
    offset: usize,
    other_sequence: Handle<Sequence>,
    other_map: Handle<Map>,
    other_offset: usize,
    bytes: usize,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIMemCpy_dual", error, (), || {
        DUAL.check(flags)?;
        if flags & SCI_FLAG_ERROR_CHECK != 0 && (sequence.is_null() || other_sequence.is_null()) {
            return Err(Failure::invalid("a sequence is NULL, and is to be checked"));
        }
        copy(sequence, memory.cast(), map, offset, bytes, flags)?;
        copy(other_sequence, memory.cast(), other_map, other_offset, bytes, flags)
    });
}

/// `SCIMemCopy` of version 1.
pub(crate) fn mem_copy(
    memory: *mut c_void,
    map: Handle<Map>,
    offset: u32,
    bytes: u32,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIMemCopy", error, (), || {
        VERSION_1.check(flags)?;
        copy(Handle::NULL, memory.cast(), map, offset as usize, bytes as usize, flags)
    });
}

/// `SCITransferBlock` of version 1.
pub(crate) fn transfer_block(
    source: Handle<Map>,
    source_offset: u32,
    destination: Handle<Map>,
    destination_offset: u32,
    bytes: u32,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCITransferBlock", error, (), || {
        Flags::NONE.check(flags)?;
        MAPS.with(source, |source| {
            let from = source.part(source_offset as usize, bytes as usize)?;
            MAPS.with(destination, |destination| {
                let to = destination.part(destination_offset as usize, bytes as usize)?;
                store(destination, to, from, bytes as usize)?;
                finish(destination, flags);
                source.is_connected()?;
                destination.is_connected()
            })
        })
    });
}

thread_local! {
    /// The map that this thread wrote to last: the next write is mostly to the same.
    static LAST: Cell<Handle<Map>> = const { Cell::new(Handle::NULL) };
}

pub(crate) fn mem_write(
    memory: *mut c_void,
    address: *mut c_void,
    bytes: usize,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIMemWrite", error, (), || {
        WRITE.check(flags)?;
        let address = address.cast::<u8>();
        let write = |map: &Map| {
            let mapped = map.part_at(address, bytes)?;
            if memory.is_null() && bytes > 0 {
                return Err(null_memory());
            }
            store(map, mapped, memory.cast(), bytes)?;
            finish(map, flags);
            map.is_connected()
        };
        let last = LAST.get();
        if !last.is_null() && MAPS.with(last, |map| Ok(map.has(address))).unwrap_or(false) {
            return MAPS.with(last, write);
        }
        let found = map::find(address)?;
        LAST.set(found);
        MAPS.with(found, write)
    });
}

/// Copies are chosen by size, whatever a program asks for.
const CHOSEN_BY_SIZE: u32 = 0;

pub(crate) fn copy_function() -> u32 {
    CHOSEN_BY_SIZE
}

pub(crate) fn set_copy_function(_function: u32) {
    edge_without_code("SetSciMemCopyFunction", (), || Ok(()));
}
