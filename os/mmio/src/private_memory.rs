//! Memory of this process alone, a mapping for itself: a page of it takes memory from when it is touched.
//!
//! For who owns its memory and bounds it. An allocator keeps what is freed in pieces, and what of that can be used again
//! depends on what is asked for next.
//!
//! The first touch of a page waits until the kernel has cleared it: a huge page takes milliseconds on some machines. A thread of the
//! memory's own may do that before (`ahead.rs`).

mod ahead;

use std::io;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise};

use crate::populate::bring_in;
use crate::{MapError, Unpaced};
use ahead::Ahead;

/// Zeroed memory that nobody else has. Aligned to a page.
#[derive(Debug)]
pub struct PrivateMemory {
    start: NonNull<u8>,
    bytes: usize,
    ahead: Option<Ahead>,
}

// SAFETY: it is owned memory, reached through `&` and `&mut` of this handle alone, as a `Box<[u8]>` is.
unsafe impl Send for PrivateMemory {}
// SAFETY: as above; `&` only reads.
unsafe impl Sync for PrivateMemory {}

impl PrivateMemory {
    /// Bytes after each of which [`note_use`](Self::note_use) is to be called.
    pub const NOTE_BYTES: usize = ahead::PIECE_BYTES;
    /// Bytes beyond what was noted to which [`bring_in_ahead`](Self::bring_in_ahead) takes memory: to the end of the piece of 2 MiB in
    /// which the last of them lies.
    pub const AHEAD_BYTES: usize = ahead::AHEAD_BYTES;

    /// Maps so many bytes, none of which takes memory yet. Where the system grants huge pages to who asks, it is taken by those.
    ///
    /// # Errors
    /// The size is 0 or more than half the address space, or the kernel refuses it.
    pub fn zeroed(bytes: usize) -> Result<Self, MapError> {
        if bytes == 0 || bytes > isize::MAX as usize {
            return Err(MapError::Size { bytes });
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // Not counted against what the system has promised to others: it may be much, and only what is touched is taken.
        let flags = if cfg!(miri) { MapFlags::PRIVATE } else { MapFlags::PRIVATE | MapFlags::NORESERVE };
        // SAFETY: a fresh address range chosen by the kernel; nothing of this process is replaced.
        let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) };
        let start = start.map_err(|errno| MapError::Map {
            object: "memory of its own".to_owned(),
            bytes,
            errno,
            remedy: "ask for less, or raise the limits on it (`ulimit -v`)",
        })?;
        let start = NonNull::new(start.cast::<u8>()).expect("mmap without MAP_FIXED never gives address 0");
        if !cfg!(miri) {
            // A wish, so that its lack is no error. SAFETY: our own range, of which no byte changes.
            let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
        }
        Ok(PrivateMemory { start, bytes, ahead: None })
    }

    /// Starts a thread that brings memory in ahead of its use: [`AHEAD_BYTES`](Self::AHEAD_BYTES) beyond what
    /// [`note_use`](Self::note_use) has said, to the end of the piece of 2 MiB in which that lies, and never more than there is. It
    /// runs only on cores that would rest otherwise, and nobody waits for it: what it has not brought in yet, an access does.
    ///
    /// # Errors
    /// The process is out of threads.
    pub fn bring_in_ahead(&mut self) -> io::Result<()> {
        if self.ahead.is_none() && !cfg!(miri) {
            // SAFETY: our own mapping, and `drop` ends the thread's use of it before it unmaps.
            self.ahead = Some(unsafe { Ahead::start(self.start, self.bytes) }?);
        }
        Ok(())
    }

    /// Says that the first so many bytes are used, or are about to be.
    pub fn note_use(&self, bytes: usize) {
        if let Some(ahead) = &self.ahead {
            ahead.note_use(bytes);
        }
    }

    /// Has every page take its memory now, so that no later access waits for one. What is in it stays. Takes some 0.1 to 3 s
    /// for each GiB.
    ///
    /// # Errors
    /// A limit on the memory of this process is reached. Where the whole system has too little, the kernel ends a process instead.
    pub fn populate(&mut self) -> Result<(), MapError> {
        if cfg!(miri) {
            return Ok(());
        }
        let (start, bytes) = (self.start.as_ptr(), self.bytes);
        let by_hand = |offset, bytes| touch(&mut self.bytes_mut()[offset..offset + bytes]);
        // SAFETY: our own range; the advice changes no bytes.
        let populated = unsafe { bring_in(start, bytes, &Unpaced, Advice::LinuxPopulateWrite, by_hand) };
        populated.map_err(|errno| MapError::Map {
            object: "memory of its own, to be taken at once".to_owned(),
            bytes,
            errno,
            remedy: "ask for less, or raise the limits on it (`ulimit -v`, the memory of the container)",
        })
    }

    /// Lends what it holds, zeros where nothing was written.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `zeroed` mapped these bytes, initialised, for as long as the handle lives; `&self` keeps every writer away.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// The bytes, to be changed.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; `&mut self` keeps everybody else away.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

/// Stores into every page what is there.
fn touch(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().step_by(4096) {
        // SAFETY: a byte of the slice. Volatile, so that storing what was loaded is not left out.
        unsafe { std::ptr::from_mut(byte).write_volatile(*byte) };
    }
}

impl Drop for PrivateMemory {
    fn drop(&mut self) {
        if let Some(ahead) = self.ahead.take() {
            ahead.end();
        }
        // SAFETY: our own mapping, whole, which nobody can reach any more: its thread does not, and there is no handle but this.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_when_it_comes_and_keeps_what_is_written() {
        let mut memory = PrivateMemory::zeroed(3 * 4096 + 5).unwrap();
        assert!(memory.bytes().len() == 3 * 4096 + 5 && memory.bytes().iter().all(|byte| *byte == 0));
        assert!(memory.bytes().as_ptr().addr().is_multiple_of(4096));
        memory.bytes_mut()[3 * 4096 + 4] = 9;
        assert_eq!(memory.bytes()[3 * 4096 + 4], 9);
    }

    #[test]
    fn sizes_that_nothing_has_are_refused() {
        for bytes in [0, usize::MAX] {
            assert!(matches!(PrivateMemory::zeroed(bytes), Err(MapError::Size { .. })), "{bytes}");
        }
    }

    /// Which of the pages of its first so many bytes have taken memory; an emulator of another machine says that only of pages that
    /// can be read. Not from the kernel's list of mappings, which has two that touch each other as one.
    #[cfg(not(miri))]
    pub(super) fn resident_pages(memory: &PrivateMemory, bytes: usize) -> Vec<bool> {
        assert!(bytes <= memory.bytes);
        let mut pages = vec![0u8; bytes.div_ceil(4096)];
        let start = memory.start.as_ptr().cast();
        // SAFETY: memory that is mapped, and a byte for each of its pages.
        let result = unsafe { libc::mincore(start, bytes, pages.as_mut_ptr()) };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
        pages.into_iter().map(|page| page & 1 == 1).collect()
    }

    #[cfg(not(miri))]
    fn resident_kib(memory: &PrivateMemory) -> usize {
        resident_pages(memory, memory.bytes).into_iter().filter(|there| *there).count() * 4
    }

    #[cfg(not(miri))]
    #[test]
    fn only_what_was_touched_takes_memory() {
        const BYTES: usize = 1 << 30;
        let mut memory = PrivateMemory::zeroed(BYTES).unwrap();
        assert_eq!(resident_kib(&memory), 0);
        memory.bytes_mut()[..16 << 20].fill(1);
        // Where the system makes huge pages by itself, the last one may reach further.
        let touched_kib = resident_kib(&memory);
        assert!((16 << 10..=20 << 10).contains(&touched_kib), "{touched_kib} KiB");
    }

    /// Whether a page comes in when the kernel says so. An emulator of another machine may say so and do nothing.
    #[cfg(not(miri))]
    fn kernel_brings_in(memory: &mut PrivateMemory) -> bool {
        let (start, before_kib) = (memory.start.as_ptr(), resident_kib(memory));
        // SAFETY: the first page of a mapping that the caller has alone; its bytes stay as they are.
        let answer = unsafe { libc::madvise(start.cast(), 4096, libc::MADV_POPULATE_WRITE) };
        // A kernel that does not know how says so, and the pages are touched instead.
        let brings_in = answer != 0 || resident_kib(memory) > before_kib;
        assert!(
            brings_in || cfg!(not(target_arch = "x86_64")),
            "a kernel of this machine's own brings pages in"
        );
        brings_in
    }

    #[cfg(not(miri))]
    #[test]
    fn all_memory_is_taken_at_once_where_that_is_asked_for() {
        const BYTES: usize = (9 << 20) + 5;
        for by_hand in [false, true] {
            let mut memory = PrivateMemory::zeroed(BYTES).unwrap();
            memory.bytes_mut()[BYTES - 1] = 7;
            if by_hand {
                touch(memory.bytes_mut());
            } else if kernel_brings_in(&mut memory) {
                memory.populate().unwrap();
            } else {
                continue;
            }
            let taken_kib = resident_kib(&memory);
            assert!(taken_kib >= BYTES.div_ceil(4096) * 4, "{taken_kib} KiB");
            assert!(
                memory.bytes()[..BYTES - 1].iter().all(|byte| *byte == 0) && memory.bytes()[BYTES - 1] == 7
            );
        }
    }
}
