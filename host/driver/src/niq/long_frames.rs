//! Where frames go that do not fit an entry in the BAR: nowhere, or any of the ways to receive in memory.

use beeline_contract_link::{DmaMemory, Doorbell};

use crate::descriptor::receive::RxDescriptor;
use crate::enso::receive::RxEnso;
use crate::error::RxError;
use crate::port::half::QueueHalf;
use crate::receive::ring::RxRing;
use crate::receive::{FrameOwner, FrameSpan};

/// The half that receives frames too long for an entry.
#[derive(Debug)]
pub(crate) enum LongFrames<M, D> {
    Dropped,
    Ring(RxRing<M, D>),
    Descriptors(RxDescriptor<M, D>),
    Pipe(RxEnso<M, D>),
}

impl<M: DmaMemory, D: Doorbell> LongFrames<M, D> {
    /// Where the next frame lies, if it is there. [`LongFrames::Dropped`] has none.
    pub(crate) fn look(&mut self) -> Result<Option<FrameSpan>, RxError> {
        match self {
            LongFrames::Dropped => Ok(None),
            LongFrames::Ring(half) => half.look(),
            LongFrames::Descriptors(half) => half.look(),
            LongFrames::Pipe(half) => half.look(),
        }
    }

    /// Returns the ring that holds the frame `look` found.
    pub(crate) fn owner(&mut self) -> Option<&mut dyn FrameOwner> {
        match self {
            LongFrames::Dropped => None,
            LongFrames::Ring(half) => Some(half),
            LongFrames::Descriptors(half) => Some(half),
            LongFrames::Pipe(half) => Some(&mut half.pipe),
        }
    }

    /// Passes the registers of the ring that long frames use to `set`, as [`QueueHalf::registers`] does.
    pub(crate) fn registers(&self, set: &mut dyn FnMut(u32, u64)) {
        match self {
            LongFrames::Dropped => {}
            LongFrames::Ring(half) => half.registers(set),
            LongFrames::Descriptors(half) => half.registers(set),
            LongFrames::Pipe(half) => half.registers(set),
        }
    }

    /// Returns the ring for the queue's next start, empty.
    pub(crate) fn restarted(self) -> Self {
        match self {
            LongFrames::Dropped => LongFrames::Dropped,
            LongFrames::Ring(half) => LongFrames::Ring(half.restarted()),
            LongFrames::Descriptors(half) => LongFrames::Descriptors(half.restarted()),
            LongFrames::Pipe(half) => LongFrames::Pipe(half.restarted()),
        }
    }
}
