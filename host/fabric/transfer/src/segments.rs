//! What is asked of a member.

use std::fmt::Debug;
use std::sync::Arc;

use beeline_fabric::{Call, LocalSegment, Refusal, RemoteSegment, SequenceStart, SequenceStatus, Value};
use beeline_mmio::{Access, CopyError, MappedSegment, ProgramCopyError, ProgramMemory};

/// A segment of this member, or one that it is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    Local(LocalSegment),
    Remote(RemoteSegment),
}

/// A member, to what copies between its segments and sends through them.
pub trait Segments: Debug + Send + Sync {
    /// Whether this is no child of fork of the process that joined.
    fn is_ours(&self) -> bool;

    /// Whether this process still is a member.
    ///
    /// # Errors
    /// Why its calls are refused.
    fn check(&self) -> Result<(), Refusal>;

    /// Makes a call on segments or connections, and waits until it is done.
    ///
    /// # Errors
    /// What is wrong, by the codes of SISCI.
    fn call(&self, call: Call) -> Result<Value, Refusal>;

    /// Maps so many bytes of a segment from its first on. The segment is in use until the map is dropped.
    ///
    /// # Errors
    /// There is no such segment or connection; [`Refusal::OutOfRange`]: it has fewer bytes; [`Refusal::IllegalOperation`]: it may not be
    /// used so; [`Refusal::Nospc`]: there is no room for the map.
    fn map(self: Arc<Self>, of: Of, bytes: u64, access: Access) -> Result<Arc<dyn Mapped>, Refusal>;

    /// The means to learn whether a connection is whole.
    ///
    /// # Errors
    /// There is no such connection.
    fn sequence(self: Arc<Self>, remote: RemoteSegment) -> Result<Arc<dyn Sequences>, Refusal>;
}

/// A part of a segment that is mapped until this is dropped.
pub trait Mapped: Debug + Send + Sync {
    /// Where the part is.
    fn place(&self) -> Place<'_>;
}

/// Bytes of something that is mapped.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub segment: &'a MappedSegment,
    /// Where in it they begin. All of them are inside.
    pub start: usize,
    pub bytes: usize,
}

impl Place<'_> {
    /// Copies bytes of another part into this one, as [`MappedSegment::copy_from`] does.
    pub(crate) fn copy_from(
        &self,
        offset: usize,
        (from, from_offset): (Place<'_>, usize),
        bytes: usize,
    ) -> Result<(), CopyError> {
        let (to, source) = (self.at(offset, bytes)?, from.at(from_offset, bytes)?);
        self.segment.copy_from(to, from.segment, source, bytes)
    }

    pub(crate) fn copy_from_program(
        &self,
        offset: usize,
        (from, from_offset): (&ProgramMemory, usize),
        bytes: usize,
    ) -> Result<(), ProgramCopyError> {
        from.copy_into(from_offset, self.segment, self.at(offset, bytes)?, bytes)
    }

    pub(crate) fn copy_to_program(
        &self,
        offset: usize,
        (to, to_offset): (&ProgramMemory, usize),
        bytes: usize,
    ) -> Result<(), ProgramCopyError> {
        to.copy_out_of(to_offset, self.segment, self.at(offset, bytes)?, bytes)
    }

    /// Where in the mapping an offset of the part is. What lies around the part is another segment's.
    fn at(&self, offset_bytes: usize, bytes: usize) -> Result<usize, CopyError> {
        let whole = self.bytes;
        if offset_bytes > whole || bytes > whole - offset_bytes {
            return Err(CopyError::Outside { bytes, offset_bytes, whole });
        }
        Ok(self.start + offset_bytes)
    }
}

/// Whether a connection is whole. Any thread may ask.
pub trait Sequences: Debug + Send + Sync {
    /// Begins a sequence, if the links are up. What is stored after this is in it.
    fn start(&self) -> (SequenceStatus, Option<SequenceStart>);

    /// Makes every store so far visible, and says what happened to the connection since a sequence began. [`SequenceStatus::Ok`] means that
    /// those stores were there before the segment is taken away, if it ever is.
    fn check(&self, start: SequenceStart) -> SequenceStatus;

    /// Whether the segment and its member are there, whatever the links are.
    fn is_there(&self) -> bool;

    /// Whether the connection goes on by another adapter when the link of one is down.
    fn fails_over(&self) -> bool;
}

#[cfg(test)]
mod tests {
    use beeline_mmio::{MemoryOptions, SegmentOptions, SharedMemory};

    use super::*;

    #[test]
    fn bytes_around_a_part_are_neither_copied_nor_stored_to() {
        let memory = SharedMemory::create("beeline-test", 4096, MemoryOptions::default()).unwrap();
        let segment = MappedSegment::memory(memory.fd(), &SegmentOptions::default()).unwrap();
        let [one, other] = [100, 200].map(|start| Place { segment: &segment, start, bytes: 50 });
        segment.copy_in(100, &[7; 50]).unwrap();
        assert!(other.copy_from(0, (one, 0), 50).is_ok());
        for (to, from, bytes) in [(1, 0, 50), (0, 1, 50), (0, 51, 0), (51, 0, 0), (0, 0, usize::MAX)] {
            let copied = other.copy_from(to, (one, from), bytes);
            assert!(matches!(copied, Err(CopyError::Outside { whole: 50, .. })), "{to} {from} {bytes}");
        }
        let mut found = [0; 52];
        segment.copy_out(199, &mut found).unwrap();
        assert_eq!((found[0], found[1], found[50], found[51]), (0, 7, 7, 0));
    }
}
