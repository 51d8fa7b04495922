//! Maps of segments.

use core::ffi::c_void;
use core::ptr::NonNull;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use beeline_fabric::Part;
use beeline_fabric_process::{MapOptions, NotMapped};
use beeline_ffi::{Failure, Handle, Kind, Out, Outcome};
use beeline_mmio::{Access, PerProcess, SegmentError};

use crate::constants::{
    SCI_FLAG_BROADCAST, SCI_FLAG_CONDITIONAL_INTERRUPT_MAP, SCI_FLAG_DMOVE_MAP, SCI_FLAG_FIXED_MAP_ADDR,
    SCI_FLAG_IO_MAP_IOSPACE, SCI_FLAG_LOCK_OPERATION, SCI_FLAG_NO_MEMORY_LOOPBACK,
    SCI_FLAG_READ_PREFETCH_AGGR_HOLD_MAP, SCI_FLAG_READ_PREFETCH_NO_HOLD_MAP, SCI_FLAG_READONLY_MAP,
    SCI_FLAG_SHARED_MAP, SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP, SCI_FLAG_WRITE_BACK_CACHE_MAP,
};
use crate::edge::{Error, edge, edge_without_code, failure, refused};
use crate::errors;
use crate::flags::{Flags, check_broadcast};
use crate::handles::{Object, Table};
use crate::local::{LOCALS, Local};
use crate::member;
use crate::remote::{REMOTES, Remote};
use crate::session::{self, Belongs, Session};
use crate::uses::Uses;

/// `sci_map_t`.
pub(crate) struct Map {
    belongs: Belongs,
    pub(crate) uses: Uses,
    /// Of a connection; a segment of this process is there as long as it is mapped.
    watch: Option<member::Sequence>,
    mapped: member::Map,
    /// Of `mapped`: loads and stores go straight there.
    start: NonNull<u8>,
    bytes: usize,
    is_device: bool,
    /// Whether it may be stored to, and is memory of the host that the members' processes share.
    takes_short_copies: bool,
}

// SAFETY: `start` is an address of `mapped`, which may be used from any thread, and is there as long as this.
unsafe impl Send for Map {}
// SAFETY: as for `Send`.
unsafe impl Sync for Map {}

impl Kind for Map {
    const NAME: &'static str = "sci_map_t";
    const TAG: u8 = 0x57;
}

impl Object for Map {
    fn belongs(&self) -> &Belongs {
        &self.belongs
    }
}

pub(crate) static MAPS: Table<Map> = Table::new();

/// Maps by their first addresses, for who has an address and no handle. A child of fork has none.
static ADDRESSES: PerProcess<RwLock<Addresses>> = PerProcess::new();

/// Several may begin at one address, where memory of the program is mapped: so each has its number behind it.
type Addresses = BTreeMap<(usize, u64), Handle<Map>>;

/// Maps of segments of this process take the same flags as those of others. Record 0053 says of each why.
const MAP: Flags = Flags {
    done: SCI_FLAG_FIXED_MAP_ADDR
        | SCI_FLAG_READONLY_MAP
        | SCI_FLAG_WRITE_BACK_CACHE_MAP
        | SCI_FLAG_BROADCAST
        | SCI_FLAG_LOCK_OPERATION
        | SCI_FLAG_IO_MAP_IOSPACE
        | SCI_FLAG_SHARED_MAP
        | SCI_FLAG_READ_PREFETCH_AGGR_HOLD_MAP
        | SCI_FLAG_READ_PREFETCH_NO_HOLD_MAP,
    not_done: SCI_FLAG_CONDITIONAL_INTERRUPT_MAP
        | SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP
        | SCI_FLAG_NO_MEMORY_LOOPBACK
        | SCI_FLAG_DMOVE_MAP,
};
/// What memory of the host has, and that of a device has not.
const OF_MEMORY: u32 = SCI_FLAG_LOCK_OPERATION | SCI_FLAG_WRITE_BACK_CACHE_MAP;

impl Map {
    pub(crate) fn watch(&self) -> Option<&member::Sequence> {
        self.watch.as_ref()
    }

    /// Where the map begins on the bus.
    pub(crate) fn bus_address(&self) -> Option<u64> {
        self.mapped.bus_address()
    }

    /// Whether it is memory of a device, to which stores are not cached.
    #[inline(always)]
    pub(crate) fn is_device(&self) -> bool {
        self.is_device
    }

    /// Whether nothing of its memory is known to be gone.
    #[inline(always)]
    pub(crate) fn is_intact(&self) -> bool {
        self.mapped.is_intact()
    }

    pub(crate) fn is_for_reading(&self) -> bool {
        self.mapped.access() == Access::ReadOnly
    }

    /// Whether [`Sequence::is_untouched`](member::Sequence::is_untouched) and a store barrier of cached stores are all that a copy into it needs.
    #[inline(always)]
    pub(crate) fn takes_short_copies(&self) -> bool {
        self.takes_short_copies
    }

    /// Where a part of the map begins.
    ///
    /// # Errors
    /// It reaches beyond the map.
    #[inline(always)]
    pub(crate) fn part(&self, offset: usize, bytes: usize) -> Outcome<*mut u8> {
        self.find_part(offset, bytes).ok_or_else(|| outside(offset, bytes, self.bytes))
    }

    /// As [`Map::part`], without a reason.
    #[inline(always)]
    pub(crate) fn find_part(&self, offset: usize, bytes: usize) -> Option<*mut u8> {
        let is_inside = offset <= self.bytes && bytes <= self.bytes - offset;
        is_inside.then(|| self.start.as_ptr().wrapping_add(offset))
    }

    /// Where the part begins that is at an address.
    ///
    /// # Errors
    /// As for [`Map::part`].
    #[inline(always)]
    pub(crate) fn part_at(&self, address: *mut u8, bytes: usize) -> Outcome<*mut u8> {
        self.part(address.addr().wrapping_sub(self.start.addr().get()), bytes)
    }

    /// Whether a byte of the map has this address.
    #[inline(always)]
    pub(crate) fn has(&self, address: *mut u8) -> bool {
        address.addr().wrapping_sub(self.start.addr().get()) < self.bytes
    }
}

#[cold]
fn outside(offset: usize, bytes: usize, whole: usize) -> Failure {
    let why = format!("{bytes} bytes at {offset:#x} are not all in a map of {whole}");
    failure(errors::OUT_OF_RANGE, why)
}

/// The map that an address is in.
///
/// # Errors
/// There is none.
#[cold]
pub(crate) fn find(address: *mut u8) -> Outcome<Handle<Map>> {
    if !session::is_initialized() {
        return Err(session::not_initialized());
    }
    let below = |so_many: usize| -> Vec<Handle<Map>> {
        let addresses = ADDRESSES.get_or_init(RwLock::default).read().unwrap_or_else(PoisonError::into_inner);
        let below = addresses.range(..=(address.addr(), u64::MAX)).rev();
        below.take(so_many).map(|(_, map)| *map).collect()
    };
    let has = |map: &Handle<Map>| MAPS.with(*map, |map| Ok(map.has(address))).unwrap_or(false);
    // Maps of the program's memory may lie in each other, so that it may not be in the nearest.
    let found = below(1).into_iter().find(has).or_else(|| below(usize::MAX).into_iter().find(has));
    found.ok_or_else(|| failure(errors::ILLEGAL_ADDRESS, format!("{address:?} is in no map")))
}

#[cold]
fn not_mapped(error: &NotMapped) -> Failure {
    let code = match error {
        NotMapped::Refused(refusal) => return refused(*refusal),
        NotMapped::Memory(SegmentError::Taken { .. } | SegmentError::Unaligned { .. }) => {
            errors::ILLEGAL_ADDRESS
        }
        NotMapped::Memory(SegmentError::Access { .. }) => errors::ACCESS,
        NotMapped::Cached => errors::FLAG_NOT_IMPLEMENTED,
        NotMapped::Memory(_) => errors::NOSPC,
        NotMapped::Unexamined(_) => errors::SYSTEM,
    };
    failure(code, error.to_string())
}

/// What C asks of a map, checked as far as that goes without the segment.
fn asked(flags: u32, (offset, bytes, address): (usize, usize, *mut c_void)) -> Outcome<(Part, MapOptions)> {
    MAP.check(flags)?;
    if bytes == 0 {
        return Err(failure(errors::SIZE_ALIGNMENT, "size = 0; a map has at least one byte"));
    }
    let is_fixed = flags & SCI_FLAG_FIXED_MAP_ADDR != 0;
    let access = if flags & SCI_FLAG_READONLY_MAP != 0 { Access::ReadOnly } else { Access::ReadWrite };
    let is_uncached = flags & SCI_FLAG_IO_MAP_IOSPACE != 0;
    if is_uncached && flags & SCI_FLAG_WRITE_BACK_CACHE_MAP != 0 {
        let why = format!("flags = {flags:#x}; a map is cached or it is not");
        return Err(failure(errors::ILLEGAL_FLAG, why));
    }
    let options = MapOptions { access, address: is_fixed.then(|| address.addr()), is_uncached };
    Ok((Part { offset: offset as u64, bytes: bytes as u64 }, options))
}

/// Fails for a flag that memory of a device does not do.
fn check_device(flags: u32, mapped: &member::Map) -> Outcome<()> {
    if flags & OF_MEMORY == 0 || !mapped.is_device() {
        return Ok(());
    }
    let why = format!(
        "flags = {flags:#x}; the segment is of a device, which is not cached and takes part in no atomic operation of a CPU"
    );
    Err(failure(errors::FLAG_NOT_IMPLEMENTED, why))
}

/// Makes the handle of a map, and gives the address of its first byte.
fn make(
    session: &Arc<Session>,
    map: Out<'_, Handle<Map>>,
    mapped: member::Map,
    watch: Option<member::Sequence>,
) -> Outcome<*mut c_void> {
    let (start, bytes, is_device) = (mapped.as_ptr(), mapped.bytes(), mapped.is_device());
    let takes_short_copies = mapped.is_of_processes() && mapped.access() == Access::ReadWrite && !is_device;
    let make = |belongs| Map {
        belongs,
        uses: Uses::default(),
        watch,
        mapped,
        start,
        bytes,
        is_device,
        takes_short_copies,
    };
    let handle = MAPS.make(session, make, remove)?;
    MAPS.with(handle, |map| {
        // `SCITerminate` may be about to remove the map: either that comes first, and no address is left of it, or it must wait for this.
        let _while_it_is_put = map.uses.begin()?;
        addresses(|addresses| addresses.insert((start.addr().get(), map.belongs.number()), handle));
        Ok(())
    })?;
    map.put(handle, "map")?;
    Ok(start.as_ptr().cast())
}

fn addresses<R>(change: impl FnOnce(&mut Addresses) -> R) -> R {
    change(&mut ADDRESSES.get_or_init(RwLock::default).write().unwrap_or_else(PoisonError::into_inner))
}

pub(crate) fn map_local(
    segment: Handle<Local>,
    map: Out<'_, Handle<Map>>,
    offset: usize,
    bytes: usize,
    address: *mut c_void,
    flags: u32,
    error: Error<'_>,
) -> *mut c_void {
    edge("SCIMapLocalSegment", error, core::ptr::null_mut(), || {
        map.put(Handle::NULL, "map")?;
        let (session, mapped) = LOCALS.with(segment, |local| {
            let (part, mut options) = asked(flags, (offset, bytes, address))?;
            check_broadcast(flags, local.is_group)?;
            if local.is_group && flags & SCI_FLAG_BROADCAST == 0 {
                // What is stored here is stored for all. Where each has a copy of its own a program would not know.
                options.access = Access::ReadOnly;
            }
            let session = local.session();
            Ok((session.clone(), session.member().map_local_with(local.segment, part, options)))
        })?;
        let mapped = mapped.map_err(|error| not_mapped(&error))?;
        check_device(flags, &mapped)?;
        make(&session, map, mapped, None)
    })
}

pub(crate) fn map_remote(
    segment: Handle<Remote>,
    map: Out<'_, Handle<Map>>,
    offset: usize,
    bytes: usize,
    address: *mut c_void,
    flags: u32,
    error: Error<'_>,
) -> *mut c_void {
    edge("SCIMapRemoteSegment", error, core::ptr::null_mut(), || {
        map.put(Handle::NULL, "map")?;
        let (session, mapped, watch) = REMOTES.with(segment, |remote| {
            let (part, options) = asked(flags, (offset, bytes, address))?;
            check_broadcast(flags, remote.is_group())?;
            let session = remote.session();
            let mapped = session.member().map_remote_with(remote.segment, part, options);
            let watch = session.member().sequence(remote.segment);
            Ok((session.clone(), mapped, watch))
        })?;
        let mapped = mapped.map_err(|error| not_mapped(&error))?;
        check_device(flags, &mapped)?;
        make(&session, map, mapped, Some(watch.map_err(refused)?))
    })
}

pub(crate) fn unmap(map: Handle<Map>, flags: u32, error: Error<'_>) {
    edge("SCIUnmapSegment", error, (), || {
        MAPS.with(map, |_| Flags::NONE.check(flags))?;
        remove(map)
    });
}

fn remove(map: Handle<Map>) -> Outcome<()> {
    let start = MAPS.with_last(map, |map| {
        map.uses.end()?;
        Ok((map.start.addr().get(), map.belongs.number()))
    })?;
    // While it is mapped, so that nothing else can be there.
    addresses(|addresses| addresses.remove(&start));
    MAPS.remove(map).map(drop)
}

pub(crate) fn pointer(map: Handle<Map>) -> *mut c_void {
    edge_without_code("SCIGetMapPointer", core::ptr::null_mut(), || {
        MAPS.with(map, |map| Ok(map.start.as_ptr().cast()))
    })
}

/// Memory of the host has no address on the bus that a program could use: C gets 0.
pub(crate) fn physical_address(map: Handle<Map>) -> u64 {
    edge_without_code("SCIGetMapPhysAddr", 0, || {
        MAPS.with(map, |map| Ok(map.bus_address().unwrap_or_default()))
    })
}
