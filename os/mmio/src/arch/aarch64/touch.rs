//! Writing to a page without changing it.

/// Whether [`touch`] does anything.
pub(crate) const TOUCHES: bool = true;

/// Has the page of a byte present and writable, and changes nothing. For the compiler it is no access to the memory, as a system call
/// that brings the page in is none: others may own the byte, and load and store it meanwhile.
///
/// # Safety
/// `byte` is mapped and writable.
#[inline(always)]
pub(crate) unsafe fn touch(byte: *mut u8) {
    // SAFETY: the byte is mapped and writable (the caller's promise). The store takes place only if nobody has stored since the load, so
    // it changes no bit: no store of another thread is lost, and no byte has another value at any time.
    unsafe {
        core::arch::asm!(
            "2: ldxrb {value:w}, [{byte}]",
            "stxrb {failed:w}, {value:w}, [{byte}]",
            "cbnz {failed:w}, 2b",
            byte = in(reg) byte,
            value = out(reg) _,
            failed = out(reg) _,
            options(nostack, preserves_flags)
        )
    }
}
