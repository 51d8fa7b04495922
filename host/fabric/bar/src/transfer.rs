//! The segments of this member, for its DMA and message queues (`host/fabric/transfer`).

use std::sync::Arc;

use beeline_fabric::{Call, Part, Refusal, RemoteSegment, SequenceStart, SequenceStatus, Value};
use beeline_fabric_transfer::{Mapped, Of, Place, Segments, Sequences};
use beeline_mmio::Access;

use crate::error::NotMapped;
use crate::map::{BarMap, BarMapOptions};
use crate::sequence::BarSequence;
use crate::shared::Shared;

impl Segments for Shared {
    fn is_ours(&self) -> bool {
        self.process.is_this()
    }

    fn check(&self) -> Result<(), Refusal> {
        Shared::check(self)
    }

    fn call(&self, call: Call) -> Result<Value, Refusal> {
        Shared::call(self, call)
    }

    fn map(self: Arc<Self>, of: Of, bytes: u64, access: Access) -> Result<Arc<dyn Mapped>, Refusal> {
        let options = BarMapOptions { access, ..BarMapOptions::default() };
        match BarMap::new(&self, of, Part { offset: 0, bytes }, options) {
            Ok(map) => Ok(Arc::new(map)),
            Err(NotMapped::Refused(refusal)) => Err(refusal),
            // No sound member says so of a segment.
            Err(NotMapped::Outside) => Err(Refusal::NotConnected),
            Err(error) => {
                tracing::debug!(%error, bytes, "the kernel does not map a segment");
                Err(Refusal::Nospc)
            }
        }
    }

    fn sequence(self: Arc<Self>, remote: RemoteSegment) -> Result<Arc<dyn Sequences>, Refusal> {
        Ok(Arc::new(BarSequence::new(&self, remote)?))
    }
}

impl Mapped for BarMap {
    fn place(&self) -> Place<'_> {
        BarMap::place(self)
    }
}

impl Sequences for BarSequence {
    fn start(&self) -> (SequenceStatus, Option<SequenceStart>) {
        BarSequence::start(self)
    }

    fn check(&self, start: SequenceStart) -> SequenceStatus {
        BarSequence::check(self, start)
    }

    fn is_there(&self) -> bool {
        BarSequence::is_there(self)
    }

    /// A member has one adapter, the memory.
    fn fails_over(&self) -> bool {
        false
    }
}
