//! Memory that a device or a peer can write, and the stores that reach it.
//!
//! This is the only crate that touches such memory, and the only one with `unsafe` code besides those that are FFI. It
//! maps it ([`SharedMemory`], [`ReadOnlyMemory`], [`PciBar`]), hands out bounds-checked handles into it ([`Word`], [`Flag`],
//! [`StoreWindow`], [`LoadWindow`], [`ReadWindow`], [`ReadWords`], [`DmaRegion`]; [`XskRings`] for what the kernel shares), and defines how a line
//! leaves the core ([`StoreKernel`], [`fence`]).
//!
//! It does not know messages, credits or devices: a line here is 64 bytes that go somewhere. Frames come from
//! `host/window` and `host/driver` through the traits of `contract/link`, and go on to whatever the mapping is: a
//! peer's memory or a BAR. There is never a Rust reference into mapped memory, only asm, atomics and raw pointers.
//!
//! Papers: HotOS'25 §2.1 (write-combined stores reach the line rate when they are not fenced), kPIO+WC §III (64-byte
//! lines, `movntdq`).
#![expect(unsafe_code, reason = "mapped memory, store instructions and futexes have no safe interface")]

mod arch;
mod arena;
mod bar;
mod bar_part;
#[cfg(test)]
mod child;
pub mod clock;
mod copy;
pub mod cpu;
mod dma;
mod error;
pub mod fence;
mod flag;
mod generation;
mod groups;
mod guard;
mod huge_pages;
mod kernel;
mod load;
mod mapping;
pub mod membarrier;
mod memfd;
mod memory;
mod pace;
mod pci;
mod per_process;
mod populate;
mod private_memory;
mod process;
mod program_memory;
mod read;
mod read_words;
mod region;
pub mod rights;
mod segment;
#[cfg(fuzzing)]
pub mod fuzzing {
    //! What the kernel lists, reachable for the fuzz targets alone (`fuzz/`).
    pub use crate::segment::process_maps_fuzzed as process_maps;
}
pub mod selftest;
mod span;
mod store;
mod sync;
pub mod thread;
mod word;
#[cfg(target_os = "linux")]
mod xsk;

pub use arena::{ARENA_PAGE_BYTES, Arena, ArenaError, Part};
pub use bar::{BarKind, PciBar};
pub use bar_part::{BarPart, BarPartError, SYSFS};
pub use copy::{copy_in_if_short, copy_in_raw, copy_out_raw, prefetch_copy_in};
pub use dma::DmaRegion;
pub use error::MapError;
pub use flag::{Flag, MAX_FLAGS, WaitOutcome};
pub use groups::{WindowGroup, WindowGroups};
pub use guard::FaultGuard;
pub use kernel::{
    Choice, KERNEL_VARIABLE, KernelState, KernelTiming, NotChosen, Reason, StoreKernel, Traffic,
    UnknownKernel, kernel_from_environment, kernel_report,
};
pub use load::{LoadWindow, WindowHeaders};
pub use memory::{MemoryOptions, ReadOnlyMemory, ReadOnlyRegion, SharedMemory, is_small_memory};
pub use pace::{PIECE_BYTES, Pace, Unpaced};
pub use pci::{NotPciAddress, PciAddress};
pub use per_process::PerProcess;
pub use private_memory::PrivateMemory;
pub use process::{ThisProcess, end_child};
pub use program_memory::{ProgramCopyError, ProgramMemory};
pub use read::ReadWindow;
pub use read_words::{ReadWord, ReadWords};
pub use region::Region;
pub use segment::{
    Access, CopyError, DmaBuf, GuardError, HugePages, InUse, MappedPointer, MappedSegment, OnLoss, OwnMemory,
    Pages, RegisterError, RegisterOptions, RegisteredMemory, SegmentError, SegmentOptions, StillMapped,
};
pub use store::StoreWindow;
pub use word::{Word, Words};
#[cfg(target_os = "linux")]
pub use xsk::{XskError, XskRing, XskRings, XskSizes, XskStep};

/// Returns the bytes of an ordinary page: what mappings and their offsets in a memory are multiples of.
pub fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// Bytes of a line: what a write-combining buffer holds and a 64-byte store writes.
pub const LINE_BYTES: usize = 64;
/// Bytes of a word: what is single-copy atomic.
pub const WORD_BYTES: usize = 8;
