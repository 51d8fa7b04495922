//! The memory that frames lie in, and whose each piece of it is.
//!
//! It is cut into chunks. At any time a chunk is ours or the kernel's, and a ledger says which: what a ring names is
//! checked against the ledger before it is touched, and only chunks that are ours are lent out as slices.

use super::error::{XskError, XskRing};
use crate::Region;
use crate::span::Span;

/// Bytes of a chunk: what every kernel can use, the page size of most.
pub(super) const CHUNK_BYTES: u32 = 4096;

/// Whose a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Ours: nobody else writes or reads it.
    Us,
    /// The kernel's, to put a frame in.
    KernelToFill,
    /// The kernel's, to send the frame in it.
    KernelToSend,
}

/// A frame in a chunk that is ours.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameSpan {
    pub(super) chunk: u32,
    offset: u32,
    length: u32,
}

/// Chunks and their ledger.
pub(super) struct Frames {
    memory: Span,
    owners: Box<[Owner]>,
}

impl Frames {
    /// Memory for `chunks` chunks, all ours. No other process has it mapped.
    pub(super) fn new(region: &Region, chunks: u32) -> Self {
        let memory = region.span(0, chunks as usize * CHUNK_BYTES as usize, 4096);
        Frames { memory, owners: vec![Owner::Us; chunks as usize].into() }
    }

    /// The address of the memory, for the kernel.
    pub(super) fn start(&self) -> *mut u8 {
        self.memory.start()
    }

    /// Bytes of the memory.
    pub(super) fn bytes_in_all(&self) -> usize {
        self.memory.bytes()
    }

    /// The address of a chunk, as rings name it.
    #[inline]
    pub(super) fn address(chunk: u32) -> u64 {
        u64::from(chunk) * u64::from(CHUNK_BYTES)
    }

    /// Gives a chunk of ours to the kernel.
    #[inline]
    pub(super) fn give(&mut self, chunk: u32, to: Owner) {
        let owner = &mut self.owners[chunk as usize];
        debug_assert!(*owner == Owner::Us && to != Owner::Us);
        *owner = to;
    }

    /// Takes a chunk back that `ring` names with these words, and which the kernel must have as `from`.
    #[inline]
    pub(super) fn take(
        &mut self,
        ring: XskRing,
        (address, length, options): (u64, u32, u32),
        from: Owner,
    ) -> Result<FrameSpan, XskError> {
        let chunk = address / u64::from(CHUNK_BYTES);
        let offset = (address % u64::from(CHUNK_BYTES)) as u32;
        let Some(owner) = usize::try_from(chunk).ok().and_then(|chunk| self.owners.get_mut(chunk)) else {
            return Err(self.bad_address(ring, address, length, options));
        };
        if length > CHUNK_BYTES - offset || options != 0 {
            return Err(self.bad_address(ring, address, length, options));
        }
        let chunk = chunk as u32;
        if *owner != from {
            return Err(XskError::Owner { ring, chunk });
        }
        *owner = Owner::Us;
        Ok(FrameSpan { chunk, offset, length })
    }

    #[cold]
    fn bad_address(&self, ring: XskRing, address: u64, length: u32, options: u32) -> XskError {
        let chunks = self.owners.len() as u32;
        XskError::Address { ring, address, length, options, chunks, chunk_bytes: CHUNK_BYTES }
    }

    /// The bytes of a frame in a chunk that is ours.
    #[inline]
    pub(super) fn bytes(&self, frame: FrameSpan) -> &[u8] {
        assert!(self.owners[frame.chunk as usize] == Owner::Us, "chunk {} is the kernel's", frame.chunk);
        let at = frame.chunk as usize * CHUNK_BYTES as usize + frame.offset as usize;
        // SAFETY: the chunk is one of the ledger's, by the index above, and the frame inside it, by `take`, so that the
        // bytes are inside the span that `new` cut. They are initialised: the mapping began zeroed. Nobody writes them
        // while the slice lives: no other process has the memory mapped, the kernel writes only to chunks it was
        // given, which this one is not and cannot become without `&mut self`, and we write only through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.memory.start().wrapping_add(at), frame.length as usize) }
    }

    /// The bytes of a whole chunk that is ours, to be written.
    #[inline]
    pub(super) fn chunk_mut(&mut self, chunk: u32) -> &mut [u8] {
        assert!(self.owners[chunk as usize] == Owner::Us, "chunk {chunk} is the kernel's");
        let at = chunk as usize * CHUNK_BYTES as usize;
        // SAFETY: as in `bytes`, for the whole chunk; `&mut self` keeps every other slice away.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start().wrapping_add(at), CHUNK_BYTES as usize) }
    }
}
