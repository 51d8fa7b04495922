//! A DMA queue of a member, and the job that it has under way: which pieces the engine has, and what they have come to.

use std::collections::{BTreeMap, VecDeque};

use beeline_fabric::{DmaDirection, DmaEntry, DmaQueue, DmaSides, DmaState, Piece, Refusal, SequenceStatus};
use beeline_link_sim::machine::hosts::{Outcome, Region, Transfer, Way};

use crate::mapped::{Mapped, Start};
use crate::programs::Core;
use crate::wiring::{LINE_BYTES, PIECES};

/// A DMA queue of a member, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DmaQueueId(usize);

impl DmaQueueId {
    pub(crate) fn new(number: usize) -> Self {
        DmaQueueId(number)
    }

    pub(crate) fn number(self) -> usize {
        self.0
    }
}

/// The queues of a member.
#[derive(Default)]
pub(crate) struct Queues {
    pub(crate) queues: BTreeMap<DmaQueueId, Queue>,
    /// Ends that are told, oldest first.
    pub(crate) ends: VecDeque<(DmaQueueId, DmaState)>,
    /// Of the last piece that an engine took.
    pub(crate) next_number: u32,
}

/// A queue. Its semantics are those of every kind of member (`host/fabric/src/dma.rs`).
pub(crate) struct Queue {
    pub(crate) queue: DmaQueue,
    /// By whose engine its pieces go.
    pub(crate) adapter: u16,
    /// A line for the status of each piece that is under way.
    pub(crate) statuses: (Region, usize),
    pub(crate) job: Option<Job>,
    /// Whether ends of its jobs are told.
    pub(crate) is_told: bool,
}

/// What a job uses, from its start to its end.
pub(crate) struct Job {
    pub(crate) sides: DmaSides,
    /// Memory of the local segment, and where in it that begins.
    pub(crate) local: (Region, usize),
    pub(crate) mapped: Mapped,
    /// The sequence that all pieces are in.
    pub(crate) start: Start,
    /// By the line of its status, the number of each piece that the engine has.
    under_way: [Option<u32>; PIECES],
}

impl Job {
    pub(crate) fn new(sides: DmaSides, local: (Region, usize), mapped: Mapped, start: Start) -> Self {
        Job { sides, local, mapped, start, under_way: [None; PIECES] }
    }

    fn transfer(&self, piece: Piece, number: u32, status: (Region, usize)) -> Transfer {
        let (region, begins) = self.local;
        let way = match self.sides.direction {
            DmaDirection::Write => Way::Out,
            DmaDirection::Read => Way::In,
        };
        let local = (region, begins + piece.local_offset as usize);
        let remote = self.mapped.io_address() + piece.remote_offset;
        Transfer { number, way, local, remote, bytes: piece.bytes, answer: self.mapped.probe(), status }
    }
}

impl Queue {
    /// Has the engine take pieces as far as there are lines for their status.
    pub(crate) fn begin_pieces(&mut self, core: &Core, next_number: &mut u32) {
        let Queue { queue, adapter, statuses: (region, first), job: Some(job), .. } = self else { return };
        while let Some(line) = job.under_way.iter().position(Option::is_none) {
            let Some(piece) = queue.next_piece() else { return };
            *next_number = next_number.wrapping_add(1);
            let transfer = job.transfer(piece, *next_number, (*region, *first + line * LINE_BYTES));
            if core.start_transfer(*adapter, transfer) {
                job.under_way[line] = Some(*next_number);
            } else {
                queue.copied(Err(Refusal::TransferFailed));
            }
        }
    }

    /// Looks at the status of each piece that is under way.
    pub(crate) fn look(&mut self, core: &Core) {
        let Queue { queue, statuses: (region, first), job: Some(job), .. } = self else { return };
        for line in 0..PIECES {
            let Some(number) = job.under_way[line] else { continue };
            let at = *first + line * LINE_BYTES;
            let Some(outcome) = Outcome::of(core.load(*region, at), number) else { continue };
            job.under_way[line] = None;
            match outcome {
                Outcome::Aborted => queue.cut(),
                Outcome::Failed => queue.copied(Err(Refusal::TransferFailed)),
                // The engine knows of its own link only what it saw of it.
                Outcome::Done => match job.mapped.check_behind(&job.start, core.load(*region, at + 8)) {
                    SequenceStatus::Ok => queue.copied(Ok(())),
                    _ => queue.copied(Err(Refusal::TransferFailed)),
                },
            };
        }
    }

    /// Ends the job that is under way.
    ///
    /// # Errors
    /// [`Refusal::IllegalOperation`]: nothing was started.
    pub(crate) fn abort(&mut self, core: &Core) -> Result<(), Refusal> {
        self.queue.abort()?;
        for number in self.job.iter().flat_map(|job| job.under_way.iter().flatten()) {
            core.abort_transfer(self.adapter, *number);
        }
        Ok(())
    }

    /// What the job used, once it has ended.
    pub(crate) fn take_ended(&mut self) -> Option<Job> {
        if self.queue.state() == DmaState::Posted { None } else { self.job.take() }
    }

    /// Where the entries of a job end in each of its segments. A job of no bytes uses one.
    pub(crate) fn ends(entries: &[DmaEntry]) -> Result<(u64, u64), Refusal> {
        DmaEntry::ends_of(entries).map(|(local, remote)| (local.max(1), remote.max(1)))
    }
}
