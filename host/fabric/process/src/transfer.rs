//! The segments of this member, for its DMA and message queues (`host/fabric/transfer`).

use std::sync::Arc;

use beeline_fabric::{Call, Part, Refusal, RemoteSegment, SequenceStart, SequenceStatus, Value};
use beeline_fabric_transfer::{Mapped, Of, Place, Segments, Sequences};
use beeline_mmio::Access;

use crate::error::NotMapped;
use crate::map::{Map, MapOptions};
use crate::sequence::Sequence;
use crate::shared::Shared;

impl Segments for Shared {
    fn is_ours(&self) -> bool {
        self.process.is_this()
    }

    fn check(&self) -> Result<(), Refusal> {
        self.check_process()
    }

    fn call(&self, call: Call) -> Result<Value, Refusal> {
        match call {
            Call::RemoveSegment { local, is_forced } => self.remove(local, is_forced),
            Call::Disconnect(remote) => self.disconnect(remote),
            call => Shared::call(self, call),
        }
    }

    fn map(self: Arc<Self>, of: Of, bytes: u64, access: Access) -> Result<Arc<dyn Mapped>, Refusal> {
        let options = MapOptions { access, ..MapOptions::default() };
        match Map::new(&self, of, Part { offset: 0, bytes }, options) {
            Ok(map) => Ok(Arc::new(map)),
            Err(NotMapped::Refused(refusal)) => Err(refusal),
            Err(error) => {
                tracing::debug!(%error, bytes, "the kernel does not map a segment");
                Err(Refusal::Nospc)
            }
        }
    }

    fn sequence(self: Arc<Self>, remote: RemoteSegment) -> Result<Arc<dyn Sequences>, Refusal> {
        Ok(Arc::new(Shared::sequence(&self, remote)?))
    }
}

impl Mapped for Map {
    fn place(&self) -> Place<'_> {
        let (segment, start) = self.mapping();
        Place { segment, start, bytes: self.bytes() }
    }
}

impl Sequences for Sequence {
    fn start(&self) -> (SequenceStatus, Option<SequenceStart>) {
        Sequence::start(self)
    }

    fn check(&self, start: SequenceStart) -> SequenceStatus {
        Sequence::check(self, start)
    }

    fn is_there(&self) -> bool {
        Sequence::is_there(self)
    }

    fn fails_over(&self) -> bool {
        Sequence::fails_over(self)
    }
}
