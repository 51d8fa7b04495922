//! Which bytes of a BAR or a file are scratched.

use crate::error::{LEAST_BYTES, MOST_BYTES, ScratchError};

/// What is scratched unless more or less is asked for: the range of HotOS'25 figure 2, which address translation holds in its first
/// level.
const DEFAULT_BYTES: u64 = 256 << 10;

/// What is to be scratched.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// The BAR of a function that was named by its address; else the first prefetchable one.
    pub region: Option<u8>,
    /// Where in the BAR the bytes begin: a multiple of 4096.
    pub offset_bytes: u64,
    /// How many, a power of two; else 256 KiB, or as many as there are.
    pub bytes: Option<u64>,
    /// The person says that the bytes of a BAR that is not prefetchable, or of a file with contents, mean nothing.
    pub may_overwrite: bool,
}

/// Where in a BAR or a file the bytes lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) offset_bytes: u64,
    pub(crate) bytes: usize,
}

/// Where the bytes lie in what has `whole` bytes.
pub(crate) fn place(wanted: &Wanted, what: &str, whole: u64) -> Result<Place, ScratchError> {
    let offset_bytes = wanted.offset_bytes;
    if !offset_bytes.is_multiple_of(LEAST_BYTES) {
        return Err(ScratchError::Offset(offset_bytes));
    }
    let room = whole.saturating_sub(offset_bytes);
    let bytes = match wanted.bytes {
        Some(bytes) if bytes.is_power_of_two() && (LEAST_BYTES..=MOST_BYTES).contains(&bytes) => bytes,
        Some(bytes) => return Err(ScratchError::Bytes(bytes)),
        // The largest that fits and is not above the default.
        None => 1 << room.clamp(LEAST_BYTES, DEFAULT_BYTES).ilog2(),
    };
    match usize::try_from(bytes) {
        Ok(taken) if bytes <= room => Ok(Place { offset_bytes, bytes: taken }),
        _ => Err(ScratchError::Beyond { what: what.to_owned(), offset_bytes, bytes, whole }),
    }
}
