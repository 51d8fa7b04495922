//! `SCIQuery`: structures that C fills with a question, and the library with the answer.

use core::ffi::{CStr, c_void};

use beeline_fabric::{AdapterNumber, PIECE_BYTES};
use beeline_fabric_process::COPIED_AT_ONCE_BYTES;
use beeline_ffi::{Failure, Handle, Outcome};

use crate::constants::*;
use crate::dma::MAX_PIECES;
use crate::edge::{Error, edge, failure, refused};
use crate::errors;
use crate::flags::Flags;
use crate::handles::Object;
use crate::local::{LOCALS, Local};
use crate::map::{MAPS, Map};
use crate::node::SHARED_MEMORY;
use crate::remote::{REMOTES, Remote};
use crate::session;

const VENDOR: &CStr = c"beeline";
const API: &CStr = c"SISCI API of beeline";
const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("a version has no zero byte"),
};

/// `sci_query_string_t`
#[repr(C)]
struct Words {
    text: *mut u8,
    bytes: u32,
}

/// `sci_query_adapter_t`
#[repr(C)]
struct OfAdapter {
    adapter: u32,
    _port: u32,
    subcommand: u32,
    data: *mut u32,
}

/// `sci_query_dma_t`
#[repr(C)]
struct OfDma {
    adapter: u32,
    subcommand: u32,
    data: *mut Capabilities,
}

/// `sci_dma_capabilities_t`
#[repr(C)]
struct Capabilities {
    channels: u32,
    max_transfer_bytes: u32,
    max_pieces: u32,
    has_memory_to_io: u32,
    has_io_to_memory: u32,
    has_io_to_io: u32,
    align_bytes: u32,
    suggested_align_bytes: u32,
}

/// Transfers are copied by a thread of the process, and by whoever waits for them.
const CAPABILITIES: Capabilities = Capabilities {
    channels: 1,
    max_transfer_bytes: u32::MAX,
    max_pieces: MAX_PIECES as u32,
    has_memory_to_io: 0,
    has_io_to_memory: 0,
    has_io_to_io: 0,
    align_bytes: 1,
    suggested_align_bytes: 64,
};

/// What is asked of an object.
#[repr(C)]
struct Of<T> {
    object: Handle<T>,
    subcommand: u32,
    address: u64,
}

/// What can be asked of an adapter.
const OF_ADAPTER: core::ops::RangeInclusive<u32> = SCI_Q_ADAPTER_NODEID..=SCI_Q_ADAPTER_BDF;

/// What C asks.
///
/// # Safety
/// `data` is NULL or points to a `T` of C.
unsafe fn asked<T>(data: *mut c_void) -> Outcome<T> {
    if data.is_null() {
        return Err(Failure::invalid("data is NULL"));
    }
    // SAFETY: not NULL (checked above), so a structure that belongs to the command, by the contract under which C passes it; any
    // pattern of bits is one of its integers, pointers and handles.
    Ok(unsafe { data.cast::<T>().read_unaligned() })
}

#[cold]
fn illegal(command: u32, subcommand: u32) -> Failure {
    failure(errors::ILLEGAL_QUERY, format!("command {command:#x}, subcommand {subcommand:#x}: no such query"))
}

#[cold]
fn not_supported() -> Failure {
    failure(errors::NOT_SUPPORTED, "what is shared is memory of a host, which has no such thing")
}

/// Puts an address on the bus where C wants it.
///
/// # Safety
/// `data` points to an `Of<T>` of C.
unsafe fn put_address<T>(data: *mut c_void, address: Option<u64>) -> Outcome<()> {
    let address = address.ok_or_else(|| {
        let why = "the segment is memory of the host, which has no address on the bus that a program may know; one of a device has";
        failure(errors::NOT_SUPPORTED, why)
    })?;
    let place = data.wrapping_byte_add(core::mem::offset_of!(Of<T>, address)).cast::<u64>();
    // SAFETY: a field of the structure that `data` points to, the caller's promise; it may be anywhere.
    unsafe { place.write_unaligned(address) };
    Ok(())
}

#[cold]
fn no_such_adapter(number: u32) -> Failure {
    failure(errors::NO_SUCH_ADAPTERNO, format!("localAdapterNo = {number}; this node has none"))
}

pub(crate) fn query(command: u32, data: *mut c_void, flags: u32, error: Error<'_>) {
    edge("SCIQuery", error, (), || {
        session::config()?;
        Flags::NONE.check(flags)?;
        match command {
            SCI_Q_VENDORID => put_text(data, VENDOR),
            SCI_Q_API => put_text(data, API),
            SCI_Q_SISCI_DRIVER_VERSION => put_text(data, VERSION),
            SCI_Q_ADAPTER => of_adapter(data),
            SCI_Q_DMA => of_dma(data),
            SCI_Q_LOCAL_SEGMENT => of_local(data),
            SCI_Q_REMOTE_SEGMENT => of_remote(data),
            SCI_Q_MAP => of_map(data),
            SCI_Q_SYSTEM | SCI_Q_DEVICE => Err(not_supported()),
            _ => Err(illegal(command, 0)),
        }
    });
}

fn put_text(data: *mut c_void, text: &CStr) -> Outcome<()> {
    // SAFETY: C passes a `sci_query_string_t` with this command.
    let words: Words = unsafe { asked(data)? };
    if words.text.is_null() || words.bytes == 0 {
        return Err(Failure::invalid("str is NULL, or has no bytes"));
    }
    let text = text.to_bytes();
    let bytes = text.len().min(words.bytes as usize - 1);
    // SAFETY: `bytes` of this library's text, and fewer than C says that there are at `str`.
    unsafe { core::ptr::copy_nonoverlapping(text.as_ptr(), words.text, bytes) };
    // SAFETY: as above: the byte behind the text is one of them.
    unsafe { words.text.wrapping_add(bytes).write(0) };
    Ok(())
}

fn of_adapter(data: *mut c_void) -> Outcome<()> {
    // SAFETY: C passes a `sci_query_adapter_t` with this command.
    let OfAdapter { adapter, subcommand, data, .. } = unsafe { asked(data)? };
    let number = AdapterNumber::new(adapter).map_err(refused)?;
    let fabric = session::config()?.fabric;
    let is_configured = fabric.adapters.contains(&number);
    let value = match subcommand {
        SCI_Q_ADAPTER_CONFIGURED => u32::from(is_configured),
        other if OF_ADAPTER.contains(&other) && !is_configured => {
            return Err(no_such_adapter(adapter));
        }
        SCI_Q_ADAPTER_NODEID => fabric.node.0.into(),
        SCI_Q_ADAPTER_CARD_TYPE => SHARED_MEMORY,
        SCI_Q_ADAPTER_DMA_SIZE_ALIGNMENT | SCI_Q_ADAPTER_DMA_OFFSET_ALIGNMENT => CAPABILITIES.align_bytes,
        SCI_Q_ADAPTER_DMA_MTU => PIECE_BYTES as u32,
        SCI_Q_ADAPTER_SUGGESTED_MIN_DMA_SIZE => COPIED_AT_ONCE_BYTES as u32,
        SCI_Q_ADAPTER_LINK_OPERATIONAL => {
            let session = session::current();
            // A process that has not joined has changed no link.
            u32::from(
                session.map_or(Ok(true), |session| session.member().is_link_up(number)).map_err(refused)?,
            )
        }
        other if OF_ADAPTER.contains(&other) => return Err(not_supported()),
        _ => return Err(illegal(SCI_Q_ADAPTER, subcommand)),
    };
    if data.is_null() {
        return Err(Failure::invalid("data.data is NULL"));
    }
    // SAFETY: not NULL (checked above), so an `unsigned int` of C, by the contract of this command.
    unsafe { data.write(value) };
    Ok(())
}

fn of_dma(data: *mut c_void) -> Outcome<()> {
    // SAFETY: C passes a `sci_query_dma_t` with this command.
    let OfDma { adapter, subcommand, data: answer } = unsafe { asked(data)? };
    let number = AdapterNumber::new(adapter).map_err(refused)?;
    if !session::config()?.fabric.adapters.contains(&number) {
        return Err(no_such_adapter(adapter));
    }
    match subcommand {
        SCI_Q_DMA_CAPABILITIES if answer.is_null() => Err(Failure::invalid("data.data is NULL")),
        SCI_Q_DMA_CAPABILITIES => {
            // SAFETY: not NULL (checked above), so a `sci_dma_capabilities_t` of C, by the contract of this command.
            unsafe { answer.write(CAPABILITIES) };
            Ok(())
        }
        _ => Err(illegal(SCI_Q_DMA, subcommand)),
    }
}

fn of_local(data: *mut c_void) -> Outcome<()> {
    // SAFETY: C passes a `sci_query_local_segment_t` with this command, which begins so.
    let Of::<Local> { object, subcommand, .. } = unsafe { asked(data)? };
    let address = LOCALS.with(object, |local| match subcommand {
        SCI_Q_LOCAL_SEGMENT_IOADDR | SCI_Q_LOCAL_SEGMENT_PHYS_ADDR => {
            Ok(local.session().member().bus_address_of_local(local.segment))
        }
        _ => Err(illegal(SCI_Q_LOCAL_SEGMENT, subcommand)),
    })?;
    // SAFETY: as above; `asked` has found that it is not NULL.
    unsafe { put_address::<Local>(data, address) }
}

fn of_remote(data: *mut c_void) -> Outcome<()> {
    // SAFETY: C passes a `sci_query_remote_segment_t` with this command, which begins so.
    let Of::<Remote> { object, subcommand, .. } = unsafe { asked(data)? };
    let address = REMOTES.with(object, |remote| match subcommand {
        SCI_Q_REMOTE_SEGMENT_IOADDR => {
            remote.session().member().bus_address_of_remote(remote.segment).map_err(refused)
        }
        _ => Err(illegal(SCI_Q_REMOTE_SEGMENT, subcommand)),
    })?;
    // SAFETY: as above; `asked` has found that it is not NULL.
    unsafe { put_address::<Remote>(data, address) }
}

fn of_map(data: *mut c_void) -> Outcome<()> {
    // SAFETY: C passes a `sci_query_map_t` with this command, which begins so.
    let Of::<Map> { object, subcommand, .. } = unsafe { asked(data)? };
    let address = MAPS.with(object, |map| match subcommand {
        SCI_Q_MAP_IOADDR | SCI_Q_MAP_PHYS_ADDR => Ok(map.bus_address()),
        _ => Err(illegal(SCI_Q_MAP, subcommand)),
    })?;
    // SAFETY: as above; `asked` has found that it is not NULL.
    unsafe { put_address::<Map>(data, address) }
}
