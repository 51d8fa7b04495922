//! Memory that the program has already, behind a segment: as it is, or with pages that other processes can map.
//!
//! Nothing that the kernel offers makes pages of private memory another process's too. So they are replaced: a sealed memfd gets their
//! bytes and is mapped in their place, at the same addresses (decision 0048). Whole pages only: whoever maps one has all of it, so
//! nothing that lies beside what was registered is ever exposed.
//!
//! Not here: bytes that are copied once ([`crate::ProgramMemory`]); mappings whose descriptor the caller has ([`super::OwnMemory`]).

mod checks;
mod error;
mod in_place;
mod locked;

use core::ptr::NonNull;
use std::sync::Arc;

use self::in_place::InPlace;
use super::options::Access;
use super::{CopyError, MappedSegment};
use crate::mapping::Mapping;
use crate::{SharedMemory, ThisProcess};

pub use self::error::RegisterError;

/// How memory of the program is registered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterOptions {
    /// It is only read. Memory that others can map is read and written.
    pub is_source_only: bool,
    /// It is locked into RAM, all of it, as long as it is registered at least.
    pub locked: bool,
}

/// Memory of the program that is behind a segment, until this is dropped.
#[derive(Debug)]
pub struct RegisteredMemory {
    kind: Kind,
    start: NonNull<u8>,
    bytes: usize,
    access: Access,
}

#[derive(Debug)]
enum Kind {
    /// This process's alone.
    AsItIs { whole: Arc<Mapping>, locked_in: Option<ThisProcess> },
    /// Others can map it.
    Shared(InPlace),
}

// SAFETY: the memory is any thread's, as whoever made the value says; nothing of the value changes.
unsafe impl Send for RegisteredMemory {}
// SAFETY: as above.
unsafe impl Sync for RegisteredMemory {}

impl RegisteredMemory {
    /// Takes memory of the program as it is, at any address and of any size. Other processes cannot be given it.
    ///
    /// # Errors
    /// [`RegisterError`]: some of it is not mapped, or not for what it is registered for; it is not locked.
    ///
    /// # Safety
    /// As long as the value lives, or a segment that was made of it, the memory stays mapped; any thread may load it at any time and,
    /// unless it is a source only, store to it: no Rust references to it exist meanwhile.
    pub unsafe fn as_it_is(
        start: *mut u8,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<Self, RegisterError> {
        let (start, address) = first(start, bytes)?;
        checks::is_mapped(address, bytes, options.is_source_only)?;
        if options.locked {
            locked::lock(locked::pages_of(address, bytes), locked::of_program(address, bytes)?)?;
        }
        let locked_in = options.locked.then(ThisProcess::get);
        let access = if options.is_source_only { Access::ReadOnly } else { Access::ReadWrite };
        // SAFETY: mapped, as `is_mapped` has found, and it stays so, as the caller says.
        let whole = Arc::new(unsafe { Mapping::of_program(start, bytes) });
        Ok(RegisteredMemory { kind: Kind::AsItIs { whole, locked_in }, start, bytes, access })
    }

    /// Makes memory of the program such that other processes can map it. It keeps its address and its bytes. It is private memory for
    /// loads and stores without a file behind it, of `malloc` or `mmap`, in whole pages, and no stack.
    ///
    /// When this is dropped the memory is made private again: whoever has mapped it keeps what was there then, and cannot store into what
    /// the program does with it afterwards. What the program has unmapped meanwhile, or put something else in the place of, is left alone.
    ///
    /// A child that is forked meanwhile shares the memory with this process, and goes on sharing it with whoever has mapped it. What it
    /// stores there, the allocator's too when the child frees the memory, the parent and its peers see.
    ///
    /// Advice that the program has given of the memory (`madvise`: `MADV_DONTFORK`, `MADV_WIPEONFORK`, `MADV_DONTDUMP`, huge pages), its
    /// NUMA policy and its protection key are those of new memory from then on.
    ///
    /// # Errors
    /// [`RegisterError`], by which nothing has changed.
    ///
    /// # Safety
    /// As for [`RegisteredMemory::as_it_is`], of processes that it is given to, too. Nobody stores into the memory while this runs and
    /// while the value is dropped: such stores may be lost. Whoever allocated it does not free it meanwhile, in no child of fork either
    /// as long as the value lives: `free` stores into memory that the parent uses.
    pub unsafe fn shared(
        start: *mut u8,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<Self, RegisterError> {
        let (start, address) = first(start, bytes)?;
        let page_bytes = rustix::param::page_size();
        if !address.is_multiple_of(page_bytes) {
            return Err(RegisterError::Address { address, page_bytes });
        }
        if !bytes.is_multiple_of(page_bytes) {
            return Err(RegisterError::Bytes { bytes, page_bytes });
        }
        // SAFETY: what the caller says.
        let in_place = unsafe { InPlace::new(start, bytes, options.locked) }?;
        Ok(RegisteredMemory { kind: Kind::Shared(in_place), start, bytes, access: Access::ReadWrite })
    }

    /// Returns the size of the memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where the memory begins.
    pub fn address(&self) -> usize {
        self.start.addr().get()
    }

    /// What other processes can be given: it is the memory, no more and no less. `None` of memory that is as it is.
    pub fn memory(&self) -> Option<&Arc<SharedMemory>> {
        match &self.kind {
            Kind::Shared(in_place) => Some(in_place.memory()),
            Kind::AsItIs { .. } => None,
        }
    }

    /// A part of the memory as a segment at the addresses of the program, which keeps `self`. One for reading is not kept from stores
    /// through its pointer, which are the program's. `None` where others can map it: there a part is mapped as they do.
    ///
    /// # Errors
    /// [`CopyError`]: the part is not in the memory, or is to be written and was registered as a source only.
    pub fn segment(
        self: &Arc<Self>,
        offset_bytes: usize,
        bytes: usize,
        access: Access,
    ) -> Result<Option<MappedSegment>, CopyError> {
        let Kind::AsItIs { whole, .. } = &self.kind else { return Ok(None) };
        if offset_bytes > self.bytes || bytes > self.bytes - offset_bytes {
            return Err(CopyError::Outside { bytes, offset_bytes, whole: self.bytes });
        }
        if access == Access::ReadWrite && self.access == Access::ReadOnly {
            return Err(CopyError::ReadOnly);
        }
        let start = NonNull::new(self.start.as_ptr().wrapping_add(offset_bytes));
        let start = start.expect("inside memory, which is not at 0");
        // SAFETY: the part was found to be in `whole`.
        let mapping =
            unsafe { Mapping::part_of(Arc::clone(whole), start, bytes, Box::new(Arc::clone(self))) };
        Ok(Some(MappedSegment { mapping: Arc::new(mapping), access, has_huge_pages: false }))
    }
}

impl Drop for RegisteredMemory {
    fn drop(&mut self) {
        // A child of fork has no locks of its parent's.
        if let Kind::AsItIs { locked_in: Some(process), .. } = &self.kind
            && process.is_this()
        {
            locked::unlock(locked::pages_of(self.address(), self.bytes));
        }
    }
}

/// The first byte of memory that is some, and its address.
fn first(start: *mut u8, bytes: usize) -> Result<(NonNull<u8>, usize), RegisterError> {
    let address = start.addr();
    NonNull::new(start)
        .filter(|_| bytes != 0 && address.checked_add(bytes).is_some_and(|end| end <= isize::MAX as usize))
        .map(|start| (start, address))
        .ok_or(RegisterError::Nothing { address, bytes })
}
