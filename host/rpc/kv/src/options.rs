//! The bounds of a store.

use beeline_spec::formats::RPC_MAX_PAYLOAD_BYTES;

use crate::error::OpenError;
use crate::key::KEY_BYTES;

/// Longest value that any store takes: a SET carries its key too.
pub const MAX_VALUE_BYTES: usize = RPC_MAX_PAYLOAD_BYTES - KEY_BYTES;

/// Least memory that a store is given: its empty table and some items.
const MIN_MEMORY_BYTES: u64 = 1 << 16;

/// Settings of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvOptions {
    /// Memory of items and their table, in bytes; from 64 KiB. A SET that would need more is refused.
    ///
    /// With one thread that is all the memory that the store takes from the system, however values of different lengths came
    /// and went. With several it counts what is asked of the allocator, which may keep about as much again for each of them
    /// when values are replaced (glibc does, unless `MALLOC_ARENA_MAX` is 1).
    pub max_memory_bytes: u64,
    /// Longest value, in bytes; at most [`MAX_VALUE_BYTES`].
    pub max_value_bytes: usize,
    /// Hash function for keys.
    pub hashing: Hashing,
    /// Takes all memory when the store is opened, so that no request waits for a page: 0.1 to 3 s for each GiB. Otherwise a thread of
    /// the store's own takes it ahead of its use, up to 20 MiB, whenever a core of those that the opening thread may use has nothing
    /// else to do; a request that comes before it waits for the kernel to clear a huge page, which takes milliseconds on some
    /// machines. Of a store with one thread only: the memory of others is the allocator's.
    pub is_preallocated: bool,
}

/// How keys are hashed: with a random number either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hashing {
    /// foldhash: no list of keys slows every store down.
    #[default]
    Quick,
    /// SipHash-1-3: nor does a client that measures the store for as long as it likes. Some 9 ns a GET more.
    Secret,
}

impl Default for KvOptions {
    /// 1 GiB, taken as it is needed and somewhat ahead; values of any length.
    fn default() -> Self {
        KvOptions {
            max_memory_bytes: 1 << 30,
            max_value_bytes: MAX_VALUE_BYTES,
            hashing: Hashing::Quick,
            is_preallocated: false,
        }
    }
}

impl KvOptions {
    pub(crate) fn check(&self, workers: usize) -> Result<(), OpenError> {
        if self.is_preallocated && workers != 1 {
            let (option, value) = ("threads of a store that takes its memory at once", workers as u64);
            return Err(OpenError::Option { option, value, bounds: "1" });
        }
        if self.max_memory_bytes < MIN_MEMORY_BYTES {
            let (option, value) = ("max_memory_bytes", self.max_memory_bytes);
            return Err(OpenError::Option { option, value, bounds: "at least 65536" });
        }
        if self.max_value_bytes > MAX_VALUE_BYTES {
            let (option, value) = ("max_value_bytes", self.max_value_bytes as u64);
            return Err(OpenError::Option { option, value, bounds: "at most 1048560" });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_bounds_are_refused() {
        assert_eq!(KvOptions::default().check(2), Ok(()));
        assert_eq!(MAX_VALUE_BYTES, 1_048_560, "the message of `check` says so");
        let small = KvOptions { max_memory_bytes: MIN_MEMORY_BYTES - 1, ..KvOptions::default() };
        assert_eq!(
            small.check(1).unwrap_err().to_string(),
            "max_memory_bytes = 65535; it must be at least 65536"
        );
        let long = KvOptions { max_value_bytes: MAX_VALUE_BYTES + 1, ..KvOptions::default() };
        assert!(long.check(1).is_err());
        let preallocated = KvOptions { is_preallocated: true, ..KvOptions::default() };
        assert_eq!(preallocated.check(1), Ok(()));
        assert_eq!(
            preallocated.check(2).unwrap_err().to_string(),
            "threads of a store that takes its memory at once = 2; it must be 1"
        );
    }
}
