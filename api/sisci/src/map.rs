//! Maps of segments.

use core::ffi::c_void;

use beeline_fabric::Part;
use beeline_fabric_process::NotMapped;
use beeline_ffi::{Failure, Handle, Kind, Out, Outcome};

use crate::constants::{
    SCI_FLAG_BROADCAST, SCI_FLAG_CONDITIONAL_INTERRUPT_MAP, SCI_FLAG_DMOVE_MAP, SCI_FLAG_FIXED_MAP_ADDR,
    SCI_FLAG_IO_MAP_IOSPACE, SCI_FLAG_LOCK_OPERATION, SCI_FLAG_NO_MEMORY_LOOPBACK,
    SCI_FLAG_READ_PREFETCH_AGGR_HOLD_MAP, SCI_FLAG_READ_PREFETCH_NO_HOLD_MAP, SCI_FLAG_READONLY_MAP,
    SCI_FLAG_SHARED_MAP, SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP, SCI_FLAG_WRITE_BACK_CACHE_MAP,
};
use crate::edge::{Error, edge, edge_without_code, failure, refused};
use crate::errors;
use crate::flags::Flags;
use crate::handles::{Object, Table};
use crate::local::{LOCALS, Local};
use crate::remote::{REMOTES, Remote};
use crate::session::{Belongs, Session};
use crate::uses::Uses;

/// `sci_map_t`.
pub(crate) struct Map {
    belongs: Belongs,
    pub(crate) uses: Uses,
    mapped: beeline_fabric_process::Map,
}

impl Kind for Map {
    const NAME: &'static str = "sci_map_t";
    const TAG: u8 = 0x57;
}

impl Object for Map {
    fn belongs(&self) -> &Belongs {
        &self.belongs
    }
}

static MAPS: Table<Map> = Table::new();

/// Memory that processes of one host share is cached, and nothing else can be had of it.
const MAP: Flags = Flags {
    done: SCI_FLAG_WRITE_BACK_CACHE_MAP,
    not_done: SCI_FLAG_FIXED_MAP_ADDR
        | SCI_FLAG_READONLY_MAP
        | SCI_FLAG_LOCK_OPERATION
        | SCI_FLAG_CONDITIONAL_INTERRUPT_MAP
        | SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP
        | SCI_FLAG_IO_MAP_IOSPACE
        | SCI_FLAG_NO_MEMORY_LOOPBACK
        | SCI_FLAG_SHARED_MAP
        | SCI_FLAG_BROADCAST
        | SCI_FLAG_DMOVE_MAP
        | SCI_FLAG_READ_PREFETCH_AGGR_HOLD_MAP
        | SCI_FLAG_READ_PREFETCH_NO_HOLD_MAP,
};

#[cold]
fn not_mapped(error: &NotMapped) -> Failure {
    match error {
        NotMapped::Refused(refusal) => refused(*refusal),
        NotMapped::Memory(_) => failure(errors::NOSPC, error.to_string()),
    }
}

fn make(
    session: &std::sync::Arc<Session>,
    map: Out<'_, Handle<Map>>,
    mapped: Result<beeline_fabric_process::Map, NotMapped>,
) -> Outcome<*mut c_void> {
    let mapped = mapped.map_err(|error| not_mapped(&error))?;
    let start = mapped.as_ptr().as_ptr().cast();
    let make = |belongs| Map { belongs, uses: Uses::default(), mapped };
    map.put(MAPS.make(session, make, remove)?, "map")?;
    Ok(start)
}

fn part(offset: usize, bytes: usize) -> Part {
    Part { offset: offset as u64, bytes: bytes as u64 }
}

pub(crate) fn map_local(
    segment: Handle<Local>,
    map: Out<'_, Handle<Map>>,
    offset: usize,
    bytes: usize,
    _address: *mut c_void,
    flags: u32,
    error: Error<'_>,
) -> *mut c_void {
    edge("SCIMapLocalSegment", error, core::ptr::null_mut(), || {
        map.put(Handle::NULL, "map")?;
        let (session, mapped) = LOCALS.with(segment, |local| {
            MAP.check(flags)?;
            let session = local.session();
            Ok((session.clone(), session.member().map_local(local.segment, part(offset, bytes))))
        })?;
        make(&session, map, mapped)
    })
}

pub(crate) fn map_remote(
    segment: Handle<Remote>,
    map: Out<'_, Handle<Map>>,
    offset: usize,
    bytes: usize,
    _address: *mut c_void,
    flags: u32,
    error: Error<'_>,
) -> *mut c_void {
    edge("SCIMapRemoteSegment", error, core::ptr::null_mut(), || {
        map.put(Handle::NULL, "map")?;
        let (session, mapped) = REMOTES.with(segment, |remote| {
            MAP.check(flags)?;
            let session = remote.session();
            Ok((session.clone(), session.member().map_remote(remote.segment, part(offset, bytes))))
        })?;
        make(&session, map, mapped)
    })
}

pub(crate) fn unmap(map: Handle<Map>, flags: u32, error: Error<'_>) {
    edge("SCIUnmapSegment", error, (), || {
        MAPS.with(map, |_| Flags::NONE.check(flags))?;
        remove(map)
    });
}

pub(crate) fn remove(map: Handle<Map>) -> Outcome<()> {
    MAPS.with(map, |map| map.uses.end())?;
    MAPS.remove(map).map(drop)
}

pub(crate) fn pointer(map: Handle<Map>) -> *mut c_void {
    edge_without_code("SCIGetMapPointer", core::ptr::null_mut(), || {
        MAPS.with(map, |map| Ok(map.mapped.as_ptr().as_ptr().cast()))
    })
}
