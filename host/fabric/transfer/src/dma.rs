//! DMA queues of a member: threads of its process copy between its segments and others'.
//!
//! Nothing here is hardware. A job is copied by one thread of the process, which gives each queue its turn, and by everybody who waits
//! for it meanwhile: handing all over would cost the waiter more than copying does. What a job uses stays mapped until its segment is
//! removed or disconnected from, because mapping it for each job would cost more than many a job.

mod engine;
mod job;
mod queue;
mod turns;

pub use beeline_fabric::DmaDirection;
pub use engine::Engine;
pub use job::{DmaLocal, DmaTransfer};
pub use queue::{COPIED_AT_ONCE_BYTES, DmaJob, DmaQueue};
