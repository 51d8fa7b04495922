//! Pages that are replaced in place, and put back.

use core::ffi::c_void;
use core::ptr::{self, NonNull};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags};

use super::super::process_maps::{self, Entry};
use super::checks;
use super::error::RegisterError;
use super::locked::{self, Pages};
use crate::{MemoryOptions, PerProcess, SharedMemory, ThisProcess};

/// Between the look at what is mapped and its replacement nobody else of this crate replaces it.
static ONE_AT_A_TIME: PerProcess<Mutex<()>> = PerProcess::new();

const BOTH: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// Private memory of the program that is shared, until this is dropped.
#[derive(Debug)]
pub(super) struct InPlace {
    start: NonNull<u8>,
    bytes: usize,
    memory: Arc<SharedMemory>,
    /// The pages that the program had locked before.
    locked_before: Vec<Pages>,
    /// All are locked as long as they are shared.
    is_locked_here: bool,
    /// In a child of fork nothing is put back: the memory is the parent's, too.
    process: ThisProcess,
}

impl InPlace {
    /// Replaces whole pages by shared ones with the same bytes.
    ///
    /// # Safety
    /// Nobody has references to the memory as long as the value lives, or stores into it meanwhile.
    pub(super) unsafe fn new(start: NonNull<u8>, bytes: usize, locked: bool) -> Result<Self, RegisterError> {
        let address = start.addr().get();
        let refused = |what| move |errno| RegisterError::Refused { address, bytes, what, errno };
        // What the end of the registration needs is there when that comes.
        process_maps::keep_open().map_err(checks::not_known(address, bytes))?;
        checks::is_private(address, bytes)?;
        let pages = (address, address + bytes);
        let locked_before = locked::of_program(address, bytes)?;
        let memory = SharedMemory::create("beeline-registered", bytes, MemoryOptions::default())?;
        fill(&memory, start, bytes).map_err(refused("copied"))?;
        let beside = Beside::of(&memory, bytes).map_err(refused("mapped"))?;
        let to_lock = if locked { vec![pages] } else { locked::wanted(pages, &locked_before) };
        for (from, to) in to_lock {
            let first = beside.start.addr().get() + (from - address);
            locked::lock_pages((first, first + (to - from)))?;
        }
        let one = ONE_AT_A_TIME.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have registered it meanwhile.
        checks::is_private(address, bytes)?;
        // SAFETY: private pages of the program, as `is_private` has found, with the same bytes and the same access. Nobody stores into
        // them, as the caller says.
        unsafe { beside.move_to(start) }.map_err(refused("replaced"))?;
        drop(one);
        if locked {
            locked::hold(pages, locked_before.clone());
        }
        let (memory, process) = (Arc::new(memory), ThisProcess::get());
        Ok(InPlace { start, bytes, memory, locked_before, is_locked_here: locked, process })
    }

    pub(super) fn memory(&self) -> &Arc<SharedMemory> {
        &self.memory
    }

    /// The parts of the memory that are still mapped from it, each where it was: all, unless the program has unmapped some.
    fn still_there(&self) -> Result<Vec<(usize, usize)>, Errno> {
        let stat = rustix::fs::fstat(self.memory.fd())?;
        let file = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
        let (address, bytes) = (self.start.addr().get(), self.bytes);
        let part = |entry: Entry| {
            let (from, to) = (entry.start.max(address), entry.end.min(address + bytes));
            let offset = entry.offset_bytes + (from - entry.start) as u64;
            let is_it = entry.is_shared && entry.device == file && entry.inode == stat.st_ino;
            (is_it && offset == (from - address) as u64).then_some((from - address, to - from))
        };
        let found = process_maps::inside(address, bytes);
        let found = found.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(found.into_iter().filter_map(part).collect())
    }

    /// Makes a part private again. It is not locked before it is moved: a limit on locked memory keeps nothing shared.
    fn put_back(&self, offset: usize, bytes: usize) -> Result<(), Errno> {
        let beside = Beside::private(&self.memory, offset, bytes)?;
        let start = NonNull::new(self.start.as_ptr().wrapping_add(offset)).ok_or(Errno::FAULT)?;
        // SAFETY: pages that `new` has put there, which nobody has replaced or unmapped since, and the bytes that they have. Nobody
        // stores into them meanwhile, as `RegisteredMemory::shared` was promised.
        unsafe { beside.move_to(start) }?;
        let pages = (start.addr().get(), start.addr().get() + bytes);
        for part in locked::wanted(pages, &self.locked_before) {
            if let Err(error) = locked::lock_pages(part) {
                tracing::warn!(address = part.0, %error, "memory that was locked is not any more");
            }
        }
        Ok(())
    }

    /// Whoever has mapped the memory can go on storing into it.
    fn stays_shared(&self, offset: usize, bytes: usize, errno: Errno) {
        tracing::error!(address = self.start.addr().get() + offset, bytes, %errno, "memory stays shared");
    }
}

/// Takes no lock but to find out what is there: nobody of this crate replaces what is shared.
impl Drop for InPlace {
    fn drop(&mut self) {
        if !self.process.is_this() {
            return;
        }
        if self.is_locked_here {
            let address = self.start.addr().get();
            locked::forget((address, address + self.bytes));
        }
        match self.still_there() {
            Err(errno) => self.stays_shared(0, self.bytes, errno),
            Ok(parts) => {
                for (offset, bytes) in parts {
                    if let Err(errno) = self.put_back(offset, bytes) {
                        self.stays_shared(offset, bytes, errno);
                    }
                }
            }
        }
    }
}

/// Copies memory of the program into what is to replace it. The kernel finds what is not there.
fn fill(memory: &SharedMemory, start: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
    let fd = memory.fd().as_raw_fd();
    in_parts(bytes, |done, part| {
        let from = start.as_ptr().wrapping_add(done).cast::<c_void>();
        // SAFETY: the kernel loads memory of the program, into which nobody stores meanwhile, and says so where there is none.
        unsafe { libc::pwrite64(fd, from, part, done as i64) }
    })
}

/// Has the kernel copy so many bytes, by as many calls as it takes.
fn in_parts(bytes: usize, mut copy: impl FnMut(usize, usize) -> isize) -> Result<(), Errno> {
    let mut done = 0;
    while done < bytes {
        match usize::try_from(copy(done, bytes - done)) {
            Ok(0) => return Err(Errno::FAULT),
            Ok(copied) => done += copied,
            Err(_) => match std::io::Error::last_os_error() {
                error if error.kind() == ErrorKind::Interrupted => {}
                error => return Err(Errno::from_io_error(&error).unwrap_or(Errno::FAULT)),
            },
        }
    }
    Ok(())
}

/// Pages of our own that are to be moved to the place of others.
struct Beside {
    start: NonNull<u8>,
    bytes: usize,
}

impl Beside {
    /// Pages of shared memory.
    fn of(memory: &SharedMemory, bytes: usize) -> Result<Self, Errno> {
        // SAFETY: a fresh address range chosen by the kernel; nothing of this process is replaced.
        let start =
            unsafe { rustix::mm::mmap(ptr::null_mut(), bytes, BOTH, MapFlags::SHARED, memory.fd(), 0) }?;
        Ok(Self::at(start, bytes))
    }

    /// Private pages that have the bytes of shared ones.
    fn private(memory: &SharedMemory, offset: usize, bytes: usize) -> Result<Self, Errno> {
        // SAFETY: as above.
        let start = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, BOTH, MapFlags::PRIVATE) }?;
        let (beside, fd) = (Self::at(start, bytes), memory.fd().as_raw_fd());
        in_parts(bytes, |done, part| {
            let to = start.wrapping_byte_add(done);
            // SAFETY: pages of our own, of which nobody else knows.
            unsafe { libc::pread64(fd, to, part, (offset + done) as i64) }
        })?;
        Ok(beside)
    }

    fn at(start: *mut c_void, bytes: usize) -> Self {
        let start = NonNull::new(start.cast()).expect("mmap without MAP_FIXED never gives address 0");
        Beside { start, bytes }
    }

    /// Moves the pages to the place of others, which are no more. A load by another thread finds the one or the other.
    ///
    /// # Safety
    /// What is there has the same bytes, and nobody stores into it.
    unsafe fn move_to(self, start: NonNull<u8>) -> Result<(), Errno> {
        let (from, to) = (self.start.as_ptr().cast(), start.as_ptr().cast());
        // SAFETY: pages of our own, whole, to the place of others that nobody misses, as the caller says.
        unsafe { rustix::mm::mremap_fixed(from, self.bytes, self.bytes, MremapFlags::MAYMOVE, to) }?;
        // They are where they belong.
        core::mem::forget(self);
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // SAFETY: mapped here, and not moved.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
