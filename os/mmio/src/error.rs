//! Why memory cannot be mapped: the object, the numbers, and the remedy, in words.

use std::path::PathBuf;

use rustix::io::Errno;

/// Why a mapping cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// No memory has this size.
    #[error(
        "{bytes} bytes is not a size of shared memory: it must be at least 1 and less than half the address space"
    )]
    Size {
        /// Bytes asked for.
        bytes: usize,
    },
    /// The kernel refused a memfd.
    #[error("cannot create shared memory `{name}` of {bytes} bytes: {errno}")]
    Create {
        /// Name the memory would have under `/proc/<pid>/fd`.
        name: String,
        /// Bytes asked for.
        bytes: usize,
        errno: Errno,
    },
    /// The process may not have files of this size, which memory between processes is one of.
    #[error(
        "cannot create shared memory `{name}` of {bytes} bytes: this process may make files of {limit_bytes} bytes \
         (RLIMIT_FSIZE), and shared memory is one: raise it with `ulimit -f`"
    )]
    FileSize {
        /// Name the memory would have under `/proc/<pid>/fd`.
        name: String,
        /// Bytes asked for.
        bytes: usize,
        /// Bytes that a file of this process may have.
        limit_bytes: u64,
    },
    /// There are not enough huge pages.
    #[error(
        "cannot back shared memory `{name}` with huge pages: it needs {needed} of {page_bytes} bytes, {free} are free \
         ({errno}); reserve more with `sysctl -w vm.nr_hugepages=<count>`, or turn huge pages off"
    )]
    HugePages {
        /// Name of the memory.
        name: String,
        /// Huge pages it needs.
        needed: usize,
        /// Bytes of a huge page; 0 when the kernel has none.
        page_bytes: usize,
        /// Huge pages that are free.
        free: usize,
        errno: Errno,
    },
    /// The memory may not be locked into RAM.
    #[error(
        "cannot lock {bytes} bytes of shared memory into RAM: {errno}; this process may lock {limit_bytes} bytes \
         (RLIMIT_MEMLOCK): raise it with `ulimit -l <KiB>`, with `memlock` in /etc/security/limits.conf, or turn \
         locking off"
    )]
    Lock {
        /// Bytes to be locked.
        bytes: usize,
        /// Bytes this process may lock.
        limit_bytes: u64,
        errno: Errno,
    },
    #[error(
        "descriptor {fd} is not a memfd that can be sealed ({errno}): the peer must pass memory that it made with \
         memfd_create and MFD_ALLOW_SEALING"
    )]
    NotMemfd {
        /// The descriptor's number.
        fd: i32,
        /// Answer of `F_GET_SEALS`.
        errno: Errno,
    },
    /// Seals are missing, so that the peer could truncate the memory under us, or add seals.
    #[error(
        "the memory in descriptor {fd} lacks the seals {missing}: the peer could change its size under us"
    )]
    Unsealed {
        /// The descriptor's number.
        fd: i32,
        /// The seals that are missing.
        missing: String,
    },
    /// The memory can only be read.
    #[error(
        "the memory in descriptor {fd} cannot be written ({why}): the peer must pass it for reading and writing"
    )]
    ReadOnly {
        /// The descriptor's number.
        fd: i32,
        /// The seal or open mode that forbids it.
        why: &'static str,
    },
    /// The memory is made of huge pages that were not asked for.
    #[error(
        "the memory in descriptor {fd} is made of huge pages: a peer could take them back and so stop this process; \
         allow them in the options if the peer is trusted"
    )]
    UnaskedHugePages {
        /// The descriptor's number.
        fd: i32,
    },
    /// The memory has another size than was agreed.
    #[error("the memory in descriptor {fd} has {found} bytes, {expected} were agreed with the peer")]
    WrongSize {
        /// The descriptor's number.
        fd: i32,
        /// Bytes it has.
        found: u64,
        /// Bytes it should have.
        expected: usize,
    },
    /// A descriptor cannot be examined.
    #[error("cannot examine {object}: {errno}")]
    Examine {
        /// Object that was to be examined.
        object: String,
        errno: Errno,
    },
    /// mmap failed.
    #[error("cannot map {bytes} bytes of {object}: {errno}; {remedy}")]
    Map {
        /// Object that was to be mapped.
        object: String,
        /// Bytes to be mapped.
        bytes: usize,
        errno: Errno,
        remedy: &'static str,
    },
    /// A BAR's file cannot be opened, or is not what it should be.
    #[error("cannot use {}: {why}; {remedy}", path.display())]
    Bar {
        /// The file.
        path: PathBuf,
        why: String,
        remedy: String,
    },
}
