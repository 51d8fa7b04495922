//! A checked range of a mapping, which every handle into mapped memory is made of.

use core::ptr::NonNull;
use std::sync::Arc;

use crate::mapping::Mapping;

/// A range of a mapping, bounds and alignment checked, that keeps the mapping alive.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    start: NonNull<u8>,
    bytes: usize,
    /// Unmapped when the last range of it is dropped.
    mapping: Arc<Mapping>,
}

// SAFETY: a span is an address inside a `Mapping`, which is `Send` and `Sync` and which the span keeps alive.
unsafe impl Send for Span {}
// SAFETY: as for `Send`.
unsafe impl Sync for Span {}

impl Span {
    /// `bytes` bytes of `mapping` from `start` on, which the caller has checked to lie in it.
    pub(crate) fn new(start: NonNull<u8>, bytes: usize, mapping: Arc<Mapping>) -> Self {
        Span { start, bytes, mapping }
    }

    /// The word that begins `offset_bytes` behind the start.
    pub(crate) fn word(&self, offset_bytes: usize) -> Self {
        assert!(
            offset_bytes.is_multiple_of(8) && offset_bytes < self.bytes && self.bytes - offset_bytes >= 8
        );
        let start = NonNull::new(self.start().wrapping_add(offset_bytes));
        let start = start.expect("inside a mapping, which is not at 0");
        Span { start, bytes: 8, mapping: Arc::clone(&self.mapping) }
    }

    #[inline(always)]
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Panics; outside the hot paths, so that they do not even prepare its arguments.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn reaches_outside(bytes: usize, offset_bytes: usize, whole: usize) -> ! {
    panic!("{bytes} bytes at offset {offset_bytes} reach outside a region of {whole} bytes")
}
