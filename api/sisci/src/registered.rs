//! Memory of the program behind segments.

use core::ffi::c_void;

use beeline_fabric_process::NotRegistered;
use beeline_ffi::{Failure, Handle, Outcome};
use beeline_mmio::{MapError, RegisterError, RegisterOptions, RegisteredMemory};

use crate::constants::{
    SCI_FLAG_CUDA_BUFFER, SCI_FLAG_LOCK_USER_MEM, SCI_FLAG_PHYSICAL, SCI_FLAG_SCIF_BUFFER,
};
use crate::edge::{Error, edge, failure, refused};
use crate::errors;
use crate::flags::Flags;
use crate::handles::Object;
use crate::local::{LOCALS, Local};

const REGISTER: Flags = Flags {
    done: SCI_FLAG_LOCK_USER_MEM | SCI_FLAG_CUDA_BUFFER | SCI_FLAG_SCIF_BUFFER,
    not_done: SCI_FLAG_PHYSICAL,
};
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
                return Err(failure(
                    errors::NOT_SUPPORTED,
                    "memory of a GPU or a coprocessor is not registered",
                ));
            }
            if address.is_null() {
                return Err(Failure::invalid("address is NULL"));
            }
            let is_locked = flags & SCI_FLAG_LOCK_USER_MEM != 0;
            put_behind(local, address.cast(), bytes, is_locked)
        })
    });
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
