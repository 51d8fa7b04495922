//! Memory of the program by its address, copied by the kernel: the kernel finds that it is not there any more, where an access of ours
//! would end the process.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::copy::{copy_in_raw, copy_out_raw};
use crate::segment::{CopyError, MappedSegment};

/// Bytes at an address of this process, which are copied to segments and from them.
#[derive(Debug)]
pub struct ProgramMemory {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: whoever made it said that every thread may copy these bytes.
unsafe impl Send for ProgramMemory {}
// SAFETY: as above.
unsafe impl Sync for ProgramMemory {}

/// Why memory of the program is not copied, or not all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramCopyError {
    /// What the segment says.
    #[error(transparent)]
    Segment(#[from] CopyError),
    /// The bytes reach outside the memory; none was copied.
    #[error("{bytes} bytes at offset {offset_bytes} reach outside memory of {whole} bytes")]
    Outside { bytes: usize, offset_bytes: usize, whole: usize },
    /// Some of the memory is not there, or not for what is to be done with it; what lies before it may have been copied.
    #[error("memory of the program at {address:#x} or in the {bytes} bytes that follow is not there")]
    NotThere { address: usize, bytes: usize },
}

/// Whether the kernel copies for this process. A filter of system calls may forbid that.
static IS_FORBIDDEN: AtomicBool = AtomicBool::new(false);

impl ProgramMemory {
    /// Takes so many bytes at an address for memory of the program. They need not be mapped.
    ///
    /// # Safety
    /// As long as the value lives, whatever is mapped there may be loaded and, by [`ProgramMemory::copy_out_of`], stored to, by any thread
    /// at any time: it is no stack that goes on in use and no memory that references of Rust are to. Where the kernel does not copy for this
    /// process, all of it is mapped whenever it is copied.
    pub unsafe fn new(start: *mut u8, bytes: usize) -> Self {
        ProgramMemory { start, bytes }
    }

    /// Returns the bytes of the memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies bytes of the memory into a segment.
    ///
    /// # Errors
    /// [`ProgramCopyError`].
    pub fn copy_into(
        &self,
        offset_bytes: usize,
        segment: &MappedSegment,
        segment_offset_bytes: usize,
        bytes: usize,
    ) -> Result<(), ProgramCopyError> {
        let from = self.at(offset_bytes, bytes)?;
        let to = segment.writable_at(segment_offset_bytes, bytes)?;
        self.copy(libc::process_vm_readv, (to, from, bytes), || {
            // SAFETY: `writable_at` checked the bytes of the segment; those of the program are mapped, as `new` was promised.
            unsafe { copy_in_raw(to, from, bytes) };
        })?;
        Ok(segment.intact()?)
    }

    /// Copies bytes of a segment into the memory.
    ///
    /// # Errors
    /// [`ProgramCopyError`].
    pub fn copy_out_of(
        &self,
        offset_bytes: usize,
        segment: &MappedSegment,
        segment_offset_bytes: usize,
        bytes: usize,
    ) -> Result<(), ProgramCopyError> {
        let to = self.at(offset_bytes, bytes)?;
        let from = segment.at(segment_offset_bytes, bytes)?;
        self.copy(libc::process_vm_writev, (from, to, bytes), || {
            // SAFETY: `at` checked the bytes of the segment; those of the program are mapped, as `new` was promised.
            unsafe { copy_out_raw(from, to, bytes) };
        })?;
        Ok(segment.intact()?)
    }

    fn at(&self, offset_bytes: usize, bytes: usize) -> Result<*mut u8, ProgramCopyError> {
        let whole = self.bytes;
        if offset_bytes > whole || bytes > whole - offset_bytes {
            return Err(ProgramCopyError::Outside { bytes, offset_bytes, whole });
        }
        Ok(self.start.wrapping_add(offset_bytes))
    }

    /// Has the kernel copy between the segment's bytes and the program's, which a copy of our own does where the kernel refuses to.
    fn copy(
        &self,
        call: KernelCopy,
        (mapped, own, bytes): (*mut u8, *mut u8, usize),
        by_hand: impl FnOnce(),
    ) -> Result<(), ProgramCopyError> {
        let (pid, mut done) = (std::process::id().cast_signed(), 0);
        // Relaxed: the flag says nothing of other memory.
        while done < bytes && !IS_FORBIDDEN.load(Ordering::Relaxed) {
            let part = |start: *mut u8| libc::iovec {
                iov_base: start.wrapping_add(done).cast(),
                iov_len: bytes - done,
            };
            let (local, remote) = (part(mapped), part(own));
            // SAFETY: the first part is checked bytes of a segment, which nobody has references to. The second is memory that may be
            // loaded and stored to, as `new` was promised; the kernel finds out whether it is there.
            let copied = unsafe { call(pid, &raw const local, 1, &raw const remote, 1, 0) };
            match usize::try_from(copied) {
                Ok(copied) if copied > 0 => done += copied,
                Ok(_) => return Err(gone(pid, (mapped, own), done, bytes)),
                Err(_) => match io::Error::last_os_error().raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EPERM | libc::ENOSYS | libc::EACCES) => {
                        IS_FORBIDDEN.store(true, Ordering::Relaxed);
                    }
                    _ => return Err(gone(pid, (mapped, own), done, bytes)),
                },
            }
        }
        if done < bytes {
            by_hand();
        }
        Ok(())
    }
}

type KernelCopy = unsafe extern "C" fn(
    libc::pid_t,
    *const libc::iovec,
    libc::c_ulong,
    *const libc::iovec,
    libc::c_ulong,
    libc::c_ulong,
) -> isize;

/// Which side the kernel has not found, after so many bytes. It does not say: it is asked for one byte of the segment.
fn gone(pid: libc::pid_t, (mapped, own): (*mut u8, *mut u8), done: usize, bytes: usize) -> ProgramCopyError {
    let mut byte = 0u8;
    let local = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: mapped.wrapping_add(done).cast(), iov_len: 1 };
    // SAFETY: a byte of our own is stored to, and one of the segment loaded if it is there.
    let found = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    if found == 1 {
        ProgramCopyError::NotThere { address: own.addr().wrapping_add(done), bytes: bytes - done }
    } else {
        ProgramCopyError::Segment(CopyError::Lost)
    }
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use std::os::fd::AsFd;
    use std::ptr;

    use rustix::fs::MemfdFlags;
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    use super::*;
    use crate::memfd::create_memfd;
    use crate::segment::{OnLoss, SegmentOptions};

    const PAGE_BYTES: usize = 4096;

    fn segment() -> MappedSegment {
        let fd = create_memfd("beeline-test", MemfdFlags::empty()).unwrap();
        rustix::fs::ftruncate(&fd, 4 * PAGE_BYTES as u64).unwrap();
        let seals = rustix::fs::SealFlags::SHRINK | rustix::fs::SealFlags::GROW;
        rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
        MappedSegment::memory(fd.as_fd(), &SegmentOptions::default()).unwrap()
    }

    /// Four pages of which the third is not there.
    fn with_a_hole() -> ProgramMemory {
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: new memory, of which nobody has references.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), 4 * PAGE_BYTES, flags, MapFlags::PRIVATE) };
        let start = start.unwrap().cast::<u8>();
        // SAFETY: a page of it. The test leaves the others mapped, and uses them by copies alone.
        unsafe { munmap(start.wrapping_add(2 * PAGE_BYTES).cast(), PAGE_BYTES) }.unwrap();
        // SAFETY: as above.
        unsafe { ProgramMemory::new(start, 4 * PAGE_BYTES) }
    }

    #[test]
    fn bytes_come_back_as_they_went_and_nothing_beside_them_changes() {
        let (segment, memory) = (segment(), with_a_hole());
        let text: Vec<u8> = (0..5000).map(|at| (at % 251) as u8).collect();
        segment.copy_in(3, &text).unwrap();
        memory.copy_out_of(1, &segment, 3, 5000).unwrap();
        segment.copy_in(0, &[0xfe; 4 * PAGE_BYTES]).unwrap();
        memory.copy_into(1, &segment, 100, 5000).unwrap();
        let mut found = vec![0; 5002];
        segment.copy_out(99, &mut found).unwrap();
        assert_eq!((found[0], &found[1..5001], found[5001]), (0xfe, &text[..], 0xfe));
    }

    #[test]
    fn memory_that_is_not_there_is_an_error_and_no_signal() {
        let (segment, memory) = (segment(), with_a_hole());
        memory.copy_into(0, &segment, 0, 1).unwrap();
        if IS_FORBIDDEN.load(Ordering::Relaxed) {
            eprintln!("the kernel copies nothing for this process here; not looked at");
            return;
        }
        let hole = memory.start.addr() + 2 * PAGE_BYTES;
        let bytes = 100;
        for copied in [
            memory.copy_into(2 * PAGE_BYTES - 50, &segment, 0, bytes),
            memory.copy_out_of(2 * PAGE_BYTES - 50, &segment, 0, bytes),
        ] {
            let Err(ProgramCopyError::NotThere { address, bytes }) = copied else { panic!("{copied:?}") };
            assert!((hole - 50..=hole).contains(&address) && address + bytes == hole + 50);
        }
        memory.copy_into(3 * PAGE_BYTES, &segment, 0, PAGE_BYTES).unwrap();
        // SAFETY: nothing is at NULL, which nobody has references to.
        let nothing = unsafe { ProgramMemory::new(ptr::null_mut(), 8) };
        assert!(matches!(nothing.copy_into(0, &segment, 0, 8), Err(ProgramCopyError::NotThere { .. })));
    }

    /// What the kernel does not find is the segment's, and no signal comes of that either.
    #[test]
    fn segment_that_is_gone_is_not_taken_for_memory_of_the_program() {
        let fd = create_memfd("beeline-test", MemfdFlags::empty()).unwrap();
        rustix::fs::ftruncate(&fd, 2 * PAGE_BYTES as u64).unwrap();
        let options = SegmentOptions { on_loss: OnLoss::Fatal, ..SegmentOptions::default() };
        let (segment, memory) = (MappedSegment::file(fd.as_fd(), &options).unwrap(), with_a_hole());
        memory.copy_into(0, &segment, 0, 8).unwrap();
        if IS_FORBIDDEN.load(Ordering::Relaxed) {
            eprintln!("the kernel copies nothing for this process here; not looked at");
            return;
        }
        rustix::fs::ftruncate(&fd, PAGE_BYTES as u64).unwrap();
        let lost = Err(ProgramCopyError::Segment(CopyError::Lost));
        assert_eq!(memory.copy_into(0, &segment, PAGE_BYTES - 8, 16), lost);
        assert_eq!(memory.copy_out_of(0, &segment, PAGE_BYTES, 8), lost);
        memory.copy_into(0, &segment, PAGE_BYTES - 8, 8).unwrap();
    }

    #[test]
    fn parts_outside_either_side_are_refused() {
        let (segment, memory) = (segment(), with_a_hole());
        let outside = |copied| matches!(copied, Err(ProgramCopyError::Outside { .. }));
        assert!(outside(memory.copy_into(4 * PAGE_BYTES, &segment, 0, 1)));
        assert!(outside(memory.copy_out_of(usize::MAX, &segment, 0, 2)));
        let beyond = memory.copy_into(0, &segment, 4 * PAGE_BYTES, 1);
        assert!(matches!(beyond, Err(ProgramCopyError::Segment(CopyError::Outside { .. }))));
    }
}
