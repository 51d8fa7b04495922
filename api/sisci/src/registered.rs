//! Memory of the program, and of devices, behind segments.

use core::ffi::c_void;

use beeline_fabric_process::NotRegistered;
use beeline_ffi::{Failure, Handle, Outcome};
use beeline_mmio::{BarPartError, MapError, RegisterError, RegisterOptions, RegisteredMemory};

use crate::constants::{
    SCI_FLAG_CUDA_BUFFER, SCI_FLAG_LOCK_USER_MEM, SCI_FLAG_PHYSICAL, SCI_FLAG_SCIF_BUFFER,
};
use crate::edge::{Error, edge, failure, refused};
use crate::errors;
use crate::flags::Flags;
use crate::handles::Object;
use crate::local::{LOCALS, Local};

const REGISTER: Flags = Flags {
    done: SCI_FLAG_LOCK_USER_MEM | SCI_FLAG_CUDA_BUFFER | SCI_FLAG_SCIF_BUFFER | SCI_FLAG_PHYSICAL,
    not_done: 0,
};
const ATTACH: Flags = Flags { done: SCI_FLAG_CUDA_BUFFER, not_done: 0 };
/// Memory of other processors.
const OF_OTHERS: u32 = SCI_FLAG_CUDA_BUFFER | SCI_FLAG_SCIF_BUFFER;

pub(crate) fn register(
    address: *mut c_void,
    bytes: usize,
    segment: Handle<Local>,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIRegisterSegmentMemory", error, (), || {
        LOCALS.with(segment, |local| {
            REGISTER.check(flags)?;
            if flags & OF_OTHERS != 0 {
                return Err(of_a_processor());
            }
            if flags & SCI_FLAG_PHYSICAL != 0 {
                // Memory of a device is where it is, and is never swapped out.
                return put_device_behind(local, address.addr() as u64, bytes);
            }
            if address.is_null() {
                return Err(Failure::invalid("address is NULL"));
            }
            let is_locked = flags & SCI_FLAG_LOCK_USER_MEM != 0;
            put_behind(local, address.cast(), bytes, is_locked)
        })
    });
}

pub(crate) fn attach(
    bus_address: u64,
    _address: *mut c_void,
    _bus: u32,
    bytes: usize,
    segment: Handle<Local>,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIAttachPhysicalMemory", error, (), || {
        LOCALS.with(segment, |local| {
            ATTACH.check(flags)?;
            if flags & OF_OTHERS != 0 {
                return Err(of_a_processor());
            }
            put_device_behind(local, bus_address, bytes)
        })
    });
}

#[cold]
fn of_a_processor() -> Failure {
    failure(errors::NOT_SUPPORTED, "memory of a GPU or a coprocessor is neither registered nor attached")
}

fn put_device_behind(local: &Local, bus_address: u64, bytes: usize) -> Outcome<()> {
    local.check_bytes(bytes)?;
    let member = local.session().member();
    member.register_device(local.segment, bus_address, bytes as u64).map_err(not_registered)?;
    local.set_memory(bytes, None);
    Ok(())
}

fn put_behind(local: &Local, start: *mut u8, bytes: usize, locked: bool) -> Outcome<()> {
    let options = RegisterOptions { is_source_only: local.is_source_only, locked };
    let (mut not_shared, mut is_too_large) = (None, Ok(()));
    // Runs for a segment that is EMPTY: of another one the size does not matter.
    let make = || {
        is_too_large = local.check_bytes(bytes);
        if is_too_large.is_err() {
            return Err(RegisterError::Nothing { address: start.addr(), bytes });
        }
        if !(local.is_private || local.is_source_only) {
            // SAFETY: C passes memory of its own, which it keeps until the segment is removed, and stores into by no other thread while it is
            // registered or removed; the header says so.
            match unsafe { RegisteredMemory::shared(start, bytes, options) } {
                Err(why) if is_of_its_own(&why) => not_shared = Some(why.to_string()),
                made => return made,
            }
        }
        // SAFETY: as above.
        unsafe { RegisteredMemory::as_it_is(start, bytes, options) }
    };
    let member = local.session().member();
    let registered = member.register_program(local.segment, bytes as u64, make);
    is_too_large?;
    registered.map_err(not_registered)?;
    local.set_memory(bytes, not_shared);
    Ok(())
}

/// Whether memory may be used as it is although others cannot be given it.
fn is_of_its_own(why: &RegisterError) -> bool {
    matches!(
        why,
        RegisterError::Address { .. } | RegisterError::Bytes { .. } | RegisterError::NotThere { .. }
    )
}

fn not_registered(error: NotRegistered) -> Failure {
    let error = match error {
        NotRegistered::Refused(refusal) => return refused(refusal),
        NotRegistered::Device(error) => return not_attached(&error),
        NotRegistered::Memory(error) => error,
    };
    let code = match &error {
        RegisterError::Nothing { .. } | RegisterError::Address { .. } | RegisterError::NotThere { .. } => {
            errors::ILLEGAL_ADDRESS
        }
        RegisterError::Bytes { .. } => errors::SIZE_ALIGNMENT,
        RegisterError::NoMemory(MapError::Lock { .. }) | RegisterError::Refused { .. } => errors::SYSTEM,
        RegisterError::NoMemory(_) => errors::NOSPC,
    };
    failure(code, error.to_string())
}

fn not_attached(error: &BarPartError) -> Failure {
    let code = match error {
        BarPartError::NotABar { .. } | BarPartError::Unaligned { .. } => errors::ILLEGAL_ADDRESS,
        BarPartError::NotPermitted(_) => errors::ACCESS,
        BarPartError::Outside { .. } => errors::OUT_OF_RANGE,
        BarPartError::Bar(_) | BarPartError::NotPassed { .. } => errors::SYSTEM,
    };
    failure(code, error.to_string())
}
