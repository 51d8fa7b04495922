//! A value: its bytes, up to 40 of them beside its key.

use smallvec::SmallVec;

use beeline_rpc::Request;

use crate::key::KEY_BYTES;

/// Longest value that needs no memory of its own.
const INLINE_BYTES: usize = 40;
/// What an allocator takes for itself and for alignment, at most, for each piece of memory.
pub(crate) const ALLOCATION_BYTES: usize = 24;

/// The bytes under a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Value(SmallVec<[u8; INLINE_BYTES]>);

const _: () = assert!(size_of::<Value>() == 48, "a key and a value are one cache line");

/// There is no memory for a value, whatever the bound says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfMemory;

impl Value {
    /// Its bytes.
    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Memory that a value of so many bytes takes besides its place in a table.
    pub(crate) fn heap_bytes(bytes: usize) -> u64 {
        if bytes <= INLINE_BYTES { 0 } else { (bytes + ALLOCATION_BYTES) as u64 }
    }

    /// Memory that this one takes besides its place in a table.
    pub(crate) fn own_heap_bytes(&self) -> u64 {
        if self.0.spilled() { (self.0.capacity() + ALLOCATION_BYTES) as u64 } else { 0 }
    }

    /// The value that a SET carries behind its key.
    pub(crate) fn of_request(request: &mut Request<'_>) -> Result<Self, OutOfMemory> {
        let mut value = Value::default();
        let bytes = request.len() - KEY_BYTES;
        value.0.try_reserve_exact(bytes).map_err(|_| OutOfMemory)?;
        value.take(request, bytes);
        Ok(value)
    }

    fn take(&mut self, request: &mut Request<'_>, bytes: usize) {
        self.0.resize(bytes, 0);
        request.copy_out_from(KEY_BYTES / 8, &mut self.0);
    }
}
