//! A pointer of each thread that is found without a call.
//!
//! A variable of `thread_local!` in a shared library is found by a call of the loader's, before which all that a function keeps in
//! registers is stored to the stack. The variable of this module lies at an offset from the thread's own memory that the loader puts into a
//! word when it loads the library (the model "initial exec"). All variables of threads of the library then lie in the memory that each
//! thread has from its start, in which loaders keep some room for libraries that a running program loads: a library that finds too little is
//! refused. Elsewhere than on Linux of x86-64 it is a variable of `thread_local!`.

use super::pins::Record;

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
mod place {
    use core::arch::{asm, global_asm};

    global_asm!(
        ".section .tbss.beeline_ffi_own_record, \"awT\", @nobits",
        ".hidden beeline_ffi_own_record",
        ".globl beeline_ffi_own_record",
        ".p2align 3",
        ".type beeline_ffi_own_record, @object",
        ".size beeline_ffi_own_record, 8",
        "beeline_ffi_own_record:",
        ".zero 8",
        ".previous",
    );

    #[inline(always)]
    pub(super) fn load() -> usize {
        let found;
        // SAFETY: the word is the calling thread's alone, which the loader has made with the thread, zero at first.
        unsafe {
            asm!(
                "mov {found}, qword ptr [rip + beeline_ffi_own_record@GOTTPOFF]", "mov {found}, qword ptr fs:[{found}]",
                found = out(reg) found, options(nostack, preserves_flags, readonly),
            );
        }
        found
    }

    pub(super) fn store(value: usize) {
        // SAFETY: as in `load`.
        unsafe {
            asm!(
                "mov {offset}, qword ptr [rip + beeline_ffi_own_record@GOTTPOFF]", "mov qword ptr fs:[{offset}], {value}",
                offset = out(reg) _, value = in(reg) value, options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri))))]
mod place {
    use core::cell::Cell;

    thread_local! {
        static WORD: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn load() -> usize {
        WORD.get()
    }

    pub(super) fn store(value: usize) {
        WORD.set(value);
    }
}

/// The record that the calling thread has put here last.
#[inline(always)]
pub(super) fn get() -> Option<&'static Record> {
    let record: *const Record = core::ptr::with_exposed_provenance(place::load());
    // SAFETY: null, or from `set`.
    unsafe { record.as_ref() }
}

pub(super) fn set(record: Option<&'static Record>) {
    place::store(record.map_or(0, |record| core::ptr::from_ref(record).expose_provenance()));
}
