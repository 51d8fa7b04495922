//! What all receive queues have in common: a poll that yields a frame in place, freed when the handle is dropped.
//!
//! The handle is zero-copy: [`RxFrame::word`] reads a word where the device put it, [`RxFrame::copy_out`] copies the
//! frame to the caller. Lengths were checked before the handle was made, so no access through it leaves the frame.
//! The device may still change bytes under a reader; what is read twice may differ.

mod factory;
pub(crate) mod ring;
pub(crate) mod settings;

use alloc::vec::Vec;

use beeline_spec::WORD_BYTES;

use crate::error::RxError;

/// A receive queue.
pub trait Receive {
    /// The next frame if there is one. Never blocks, allocates or reads the device; costs one load of a word that
    /// stays in this core's cache until the device writes it. Finding nothing tells the device what was freed. The
    /// exception is a queue that receives by reads of the BAR: it starts a read, or looks for the answer of one.
    ///
    /// # Errors
    /// The device wrote what it must not. The queue is unusable from then on and repeats the error.
    fn poll(&mut self) -> Result<Option<RxFrame<'_>>, RxError>;

    /// Looks, without taking anything, and says whether the caller may sleep: nothing is there, and the device knows
    /// of all that was freed. For a waiter, after it has made sure that it will be woken ([`crate::Port::arm`]).
    ///
    /// # Errors
    /// Those of [`Receive::poll`].
    fn wants_interrupt(&mut self) -> Result<bool, RxError>;
}

/// Memory that holds received frames; implemented by the rings.
pub(crate) trait FrameOwner {
    /// Loads payload word `index` of the frame at `span`; inside the frame's padded words.
    fn frame_word(&mut self, span: FrameSpan, index: usize) -> u64;
    /// Copies the frame's first `bytes.len()` bytes out; at most its length.
    fn frame_copy_out(&mut self, span: FrameSpan, bytes: &mut [u8]);
    /// Gives the frame's memory back to the device.
    fn frame_freed(&mut self, span: FrameSpan);
}

/// The bytes of a ring that a frame takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameSpan {
    /// Byte offset in the ring's memory of the first byte.
    pub first_byte: usize,
    pub length_bytes: usize,
}

/// A received frame, in place. Dropping it frees its memory for the device.
#[must_use = "a frame that is dropped is gone"]
pub struct RxFrame<'a> {
    owner: &'a mut dyn FrameOwner,
    span: FrameSpan,
}

impl<'a> RxFrame<'a> {
    /// `inline`, so that the owner's type is known where the handle is made and the calls below need no table.
    #[inline(always)]
    pub(crate) fn new(owner: &'a mut dyn FrameOwner, span: FrameSpan) -> Self {
        RxFrame { owner, span }
    }

    /// Bytes of the frame, FCS excluded.
    #[inline]
    pub fn len(&self) -> usize {
        self.span.length_bytes
    }

    /// Whether the frame has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes `8 * index` to `8 * index + 7` as a little-endian word; those past the frame's end are zero. `None` past
    /// the last word.
    #[inline]
    pub fn word(&mut self, index: usize) -> Option<u64> {
        let left = self.len().checked_sub(index.checked_mul(WORD_BYTES)?).filter(|left| *left > 0)?;
        let word = self.owner.frame_word(self.span, index);
        let kept_bits = 8 * left.min(WORD_BYTES) as u32;
        Some(word & (u64::MAX >> (64 - kept_bits)))
    }

    /// Copies the frame to the front of `bytes` and says how many bytes it had; copies what fits when `bytes` is
    /// shorter.
    #[inline]
    pub fn copy_out(&mut self, bytes: &mut [u8]) -> usize {
        let count = self.len().min(bytes.len());
        self.owner.frame_copy_out(self.span, &mut bytes[..count]);
        self.len()
    }

    /// Replaces the contents of `bytes` with the frame. Allocates only when its capacity is too small.
    pub fn copy_to(&mut self, bytes: &mut Vec<u8>) {
        bytes.clear();
        bytes.resize(self.len(), 0);
        self.owner.frame_copy_out(self.span, bytes);
    }
}

impl Drop for RxFrame<'_> {
    #[inline]
    fn drop(&mut self) {
        self.owner.frame_freed(self.span);
    }
}

impl core::fmt::Debug for RxFrame<'_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("RxFrame").field("place", &self.span).finish_non_exhaustive()
    }
}
