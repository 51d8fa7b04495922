//! The reads that are under way: which queue asked, and what the answer is for.
//!
//! Answers come in any order and perhaps never. A bounded table gives each read a tag; a queue that stops leaves its
//! reads in the table until they are answered, and its next life has another number, so that a late answer is not
//! taken for a new one. An answer to a tag that is not outstanding is the link's error and is ignored.
//!
//! Used by the transmit engines ([`super::Fetching`]) and the receive engine ([`crate::rx`]), a table each.

use beeline_contract_device::{DmaError, QueueId};

use crate::engine::{DmaOwner, Shared};

/// Reads that may be under way in one engine: enough for 64-byte frames at 100 Gbps over a microsecond.
pub(crate) const MAX_READS: u16 = 256;

/// What a read brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Descriptors of a ring, the first of them by its absolute index.
    Descriptors {
        /// Absolute index of the first.
        first: u64,
    },
    /// Bytes of a frame.
    Payload {
        /// Absolute index of the frame in its queue.
        index: u64,
        /// Offset in the frame.
        offset: u32,
    },
    /// Lines of a ring of entries or of a pipe, the first of them by its absolute position.
    Lines {
        /// Absolute position of the first.
        first: u64,
    },
}

/// A read that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    pub queue: QueueId,
    /// Life of the queue that asked.
    pub life: u32,
    pub purpose: Purpose,
    /// Bytes asked for.
    pub bytes: u32,
}

impl Read {
    /// The answer, if it is as long as was asked for; counts it if it brings no data.
    #[inline]
    pub(crate) fn checked<'a>(
        &self,
        data: Result<&'a [u8], DmaError>,
        shared: &mut Shared,
    ) -> Result<&'a [u8], DmaError> {
        match data {
            Ok(data) if data.len() == self.bytes as usize => Ok(data),
            _ => {
                shared.counters.dma_errors += 1;
                Err(DmaError::BadAddress)
            }
        }
    }
}

/// The table.
#[derive(Debug)]
pub(crate) struct Reads {
    slots: Box<[Option<Read>]>,
    free: Vec<u16>,
}

impl Reads {
    /// A table with nothing under way.
    pub(crate) fn new() -> Self {
        Reads {
            slots: vec![None; usize::from(MAX_READS)].into_boxed_slice(),
            free: (0..MAX_READS).rev().collect(),
        }
    }

    /// Asks the DMA port for a read of one to 4096 bytes that crosses no boundary, and enters it. `false`: there is no
    /// tag or no room in the port, and nothing was asked.
    #[inline]
    #[must_use]
    pub(crate) fn ask(&mut self, owner: DmaOwner, address: u64, read: Read, shared: &mut Shared) -> bool {
        let Some(tag) = self.next_tag() else { return false };
        let is_asked = shared.dma.read(owner, address, read.bytes, tag);
        if is_asked {
            self.start(read);
        }
        is_asked
    }

    /// The tag that the next [`Reads::start`] will use; `None` while all are in use.
    #[inline]
    pub(crate) fn next_tag(&self) -> Option<u16> {
        self.free.last().copied()
    }

    /// Enters a read under the tag that [`Reads::next_tag`] gave.
    #[inline]
    pub(crate) fn start(&mut self, read: Read) {
        if let Some(tag) = self.free.pop() {
            self.slots[usize::from(tag)] = Some(read);
        }
    }

    /// Takes the read of a tag out; `None` when none is outstanding under it.
    #[inline]
    pub(crate) fn finish(&mut self, tag: u16) -> Option<Read> {
        let read = self.slots.get_mut(usize::from(tag))?.take()?;
        self.free.push(tag);
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_answered_once_and_then_free_again() {
        let mut reads = Reads::new();
        let read = Read { queue: QueueId(3), life: 1, purpose: Purpose::Descriptors { first: 9 }, bytes: 16 };
        let tag = reads.next_tag().unwrap();
        reads.start(read);
        assert_eq!(reads.finish(tag), Some(read));
        assert_eq!(reads.finish(tag), None);
        assert_eq!(reads.finish(u16::MAX), None);
        for _ in 0..MAX_READS {
            assert!(reads.next_tag().is_some());
            reads.start(read);
        }
        assert_eq!(reads.next_tag(), None);
    }
}
