//! Maps of segments, and sequences of connections, of either kind of member.

use core::ptr::NonNull;

use beeline_fabric::{Refusal, SequenceStart, SequenceStatus};
use beeline_fabric_bar::{self as bar, BarMap, BarMapOptions, BarSequence};
use beeline_fabric_process::{self as process, MapOptions, NotMapped};
use beeline_mmio::Access;

/// A part of a segment, mapped until it is dropped.
pub(crate) enum Map {
    Process(process::Map),
    Bar(BarMap),
}

/// Whether anything happened to a connection.
#[derive(Clone)]
pub(crate) enum Sequence {
    Process(process::Sequence),
    Bar(BarSequence),
}

impl Map {
    pub(super) fn of_bar(
        map: impl FnOnce(BarMapOptions) -> Result<BarMap, bar::NotMapped>,
        options: MapOptions,
    ) -> Result<Self, NotMapped> {
        let MapOptions { access, address, is_uncached } = options;
        let mapped = map(BarMapOptions { access, address, is_uncached });
        mapped.map(Map::Bar).map_err(|error| match error {
            bar::NotMapped::Refused(refusal) => refusal.into(),
            bar::NotMapped::Outside => Refusal::OutOfRange.into(),
            bar::NotMapped::Memory(error) => error.into(),
            bar::NotMapped::Unexamined(_) => Refusal::System.into(),
            bar::NotMapped::Cached => NotMapped::Cached,
        })
    }

    pub(crate) fn as_ptr(&self) -> NonNull<u8> {
        either!(Map, self, map => map.as_ptr())
    }

    pub(crate) fn bytes(&self) -> usize {
        either!(Map, self, map => map.bytes())
    }

    pub(crate) fn access(&self) -> Access {
        either!(Map, self, map => map.access())
    }

    /// Where the map begins on the bus, as far as a program may know.
    pub(crate) fn bus_address(&self) -> Option<u64> {
        match self {
            Map::Process(map) => map.bus_address(),
            Map::Bar(_) => None,
        }
    }

    /// Whether it is memory of a device, which is not cached.
    pub(crate) fn is_device(&self) -> bool {
        match self {
            Map::Process(map) => map.bus_address().is_some(),
            Map::Bar(map) => map.is_device(),
        }
    }

    /// Whether it is of members of one host.
    pub(crate) fn is_of_processes(&self) -> bool {
        matches!(self, Map::Process(_))
    }

    /// Whether nothing of its memory is known to be gone. That of members of one host cannot go.
    #[inline(always)]
    pub(crate) fn is_intact(&self) -> bool {
        match self {
            Map::Process(_) => true,
            Map::Bar(map) => map.is_intact(),
        }
    }
}

impl Sequence {
    /// Whether nothing has happened to the segment since the connection was mapped; where this is `false`, perhaps nothing that matters.
    #[inline(always)]
    pub(crate) fn is_untouched(&self) -> bool {
        match self {
            Sequence::Process(sequence) => sequence.is_untouched(),
            Sequence::Bar(_) => false,
        }
    }

    #[inline(always)]
    pub(crate) fn start(&self) -> (SequenceStatus, Option<SequenceStart>) {
        either!(Sequence, self, sequence => sequence.start())
    }

    #[inline(always)]
    pub(crate) fn check_unflushed(&self, start: SequenceStart) -> SequenceStatus {
        either!(Sequence, self, sequence => sequence.check_unflushed(start))
    }

    #[inline(always)]
    pub(crate) fn is_there(&self) -> bool {
        either!(Sequence, self, sequence => sequence.is_there())
    }

    /// Has stores that have left this core arrive, where a fence of the core is not enough for that.
    pub(crate) fn flush(&self) {
        match self {
            Sequence::Process(_) => {}
            Sequence::Bar(sequence) => sequence.flush(),
        }
    }
}
