//! Why nothing is scratched, in a sentence that says what to do.

use std::io;
use std::path::PathBuf;

use beeline_mmio::{PciAddress, SegmentError};

use crate::obstacle::Obstacle;
use crate::text::SysfsError;

/// Maps and offsets are of pages, the smallest of which this is.
pub(crate) const LEAST_BYTES: u64 = 4096;
/// To keep what was there takes a load of each word, which a device answers in about a microsecond.
pub(crate) const MOST_BYTES: u64 = 64 << 20;

/// Why nothing is scratched.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    #[error(transparent)]
    Sysfs(#[from] SysfsError),
    #[error("{address} has no memory BAR {index}; it has {has}")]
    NoRegion { address: PciAddress, index: u8, has: String },
    #[error(
        "{address} has no prefetchable memory BAR, which is what windows are in; it has {has}: if one of them is no registers, name it \
         with --region and say so with --may-overwrite"
    )]
    NoPrefetchable { address: PciAddress, has: String },
    #[error("BAR {index} of {address} is not touched: {obstacle}{}", waiver(obstacle))]
    Obstacle { address: PciAddress, index: u8, obstacle: Obstacle },
    #[error(
        "{} names one BAR already; leave --region out, or name the function by its address", path.display()
    )]
    TwoRegions { path: PathBuf },
    #[error("{} is a plain file and has no regions; leave --region out", path.display())]
    FileWithRegion { path: PathBuf },
    #[error(
        "{bytes} bytes from offset {offset_bytes} on reach beyond {what}, which has {whole}; a smaller --bytes or --offset fits"
    )]
    Beyond { what: String, offset_bytes: u64, bytes: u64, whole: u64 },
    #[error(
        "--offset {0} is no multiple of {LEAST_BYTES}, which a map of {LEAST_BYTES}-byte pages begins at"
    )]
    Offset(u64),
    #[error("--bytes {0} is no power of two from {LEAST_BYTES} to {MOST_BYTES}")]
    Bytes(u64),
    #[error("{} belongs to the kernel's file system {name}; name a file on a disk or in /dev/shm", path.display())]
    OfTheKernel { path: PathBuf, name: &'static str },
    #[error(
        "{} has {bytes} bytes that this program did not write, and they would be overwritten; name a file that is not there or is empty, \
         or say --may-overwrite", path.display()
    )]
    NotOurs { path: PathBuf, bytes: u64 },
    #[error("{} cannot be used: {error}; name a file that this user may read and write", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("{what} cannot be mapped: {error}")]
    Map { what: String, error: SegmentError },
}

fn waiver(obstacle: &Obstacle) -> &'static str {
    match obstacle {
        Obstacle::NotPrefetchable => "; if its bytes mean nothing to the device, say --may-overwrite",
        _ => "",
    }
}
