//! What happens to a write, from its bytes to a message that the arbiter can see.
//!
//! Two paths with one meaning: a whole line that is the next one of its queue goes straight to the pool; everything
//! else is cut into pieces and merged in a context first. Failures of the write's own queue end here; they are counted
//! where they are found. Comes from: [`crate::nic`]. Goes to: [`super::tx_queue`]. HotOS'25 §3.1 and 3.3.

use std::slice;

use beeline_contract_device::{Accept, QueueId};
use beeline_spec::formats::MIN_FRAME_BYTES;
use beeline_spec::{Kind, LINE_BYTES};

use crate::counters::{Counters, DISPLACEMENT_BUCKETS, TLP_BYTES_BUCKETS};
use crate::engine::{Cause, Shared};

use super::bar_ingress::{Piece, Pieces};
use super::buffer_pool::{Account, BufferPool, PoolLine};
use super::reorder_unit::{Placed, TEST_VECTOR};
use super::tx_queue::{Appended, LineState, TxQueue};
use super::{MmioEngine, message};

impl MmioEngine {
    /// The fast path: takes whole lines that follow each other, as long as they are the next ones of a queue that takes
    /// writes and holds nothing incomplete. How many; the general path has to look at the next one. Such writes are counted
    /// here, all in one.
    #[inline]
    pub(crate) fn take_next_lines(
        &mut self,
        queue: QueueId,
        line: u32,
        lines: &[PoolLine],
        shared: &mut Shared,
    ) -> usize {
        let Some(state) = self.queues.get(usize::from(queue.0)) else { return 0 };
        let free = match state.account {
            Account::Reserved => state.next_lines(line),
            Account::Shared => state.next_lines(line).min(self.pool.shared_lines()),
        };
        let lines = &lines[..lines.len().min(free as usize)];
        let mut taken = 0;
        while taken < lines.len() {
            match self.lines_arrived(queue, &lines[taken..], shared) {
                Ok(count) => taken += count as usize,
                Err(cause) => {
                    // The line that failed the queue was taken, and is counted.
                    taken += 1;
                    self.fail(queue, cause, shared);
                    break;
                }
            }
        }
        self.next_lines += taken as u64;
        taken
    }

    /// Adds what the fast path counted: whole lines without displacement.
    pub(crate) fn add_next_lines(&self, counters: &mut Counters) {
        counters.tx_writes += self.next_lines;
        counters.tx_write_bytes += self.next_lines * LINE_BYTES as u64;
        counters.tlp_bytes_histogram[TLP_BYTES_BUCKETS - 1] += self.next_lines;
        counters.displacement_histogram[0] += self.next_lines;
    }

    /// Whole lines arrived at the frontier of a queue. Takes them up to the end of a message, and says how many that were.
    /// When they complete a message, that is checked and its frames are shown to the arbiter.
    #[inline]
    fn lines_arrived(
        &mut self,
        queue: QueueId,
        lines: &[PoolLine],
        shared: &mut Shared,
    ) -> Result<u32, Cause> {
        let MmioEngine { queues, pool, credits, complete_shared_lines, .. } = self;
        let state = &mut queues[usize::from(queue.0)];
        let Appended { lines: count, is_whole } = state.append(pool, lines, &mut shared.counters)?;
        if state.account == Account::Shared {
            // The place of a line in the window can be written again as soon as the line is in the pool.
            state.freed = state.frontier;
            credits.freed(queue, state.freed, shared);
        }
        if !is_whole {
            if state.can_begin() {
                shared.frame_ready(queue);
            }
            return Ok(count);
        }
        if !state.incoming_is_plain() {
            return self.release_special(queue, shared).map(|()| count);
        }
        let lines = state.complete_plain();
        if state.account == Account::Shared {
            *complete_shared_lines += lines;
        }
        shared.counters.tx_messages += 1;
        shared.frame_ready(queue);
        Ok(count)
    }

    /// A message is complete that is not plain data, or is too short to be sent.
    #[inline(never)]
    fn release_special(&mut self, queue: QueueId, shared: &mut Shared) -> Result<(), Cause> {
        let state = &mut self.queues[usize::from(queue.0)];
        check_special(state, &mut self.pool, &mut self.scratch, self.max_frame_bytes, shared)?;
        let lines = state.complete_message();
        shared.counters.tx_messages += 1;
        if state.account == Account::Shared {
            self.complete_shared_lines += lines;
        }
        // A message without frames at the head is let go at once.
        let given_back = state.settle_head(&mut self.pool);
        if state.frame().bytes != 0 {
            shared.frame_ready(queue);
        }
        self.given_back(queue, given_back, shared);
        Ok(())
    }

    /// A write that is not a whole line at the frontier of a queue without a context.
    pub(super) fn write_in_pieces(
        &mut self,
        queue: QueueId,
        mut pieces: Pieces<'_>,
        shared: &mut Shared,
    ) -> Accept {
        if self.must_wait(queue, &pieces) {
            shared.counters.refused_writes += 1;
            return Accept::Refused;
        }
        let mut first = true;
        while self.queues[usize::from(queue.0)].active {
            let Some(piece) = pieces.next() else { break };
            if let Err(cause) = self.piece_arrived(queue, &piece, first, shared) {
                self.fail(queue, cause, shared);
            }
            first = false;
        }
        let state = &self.queues[usize::from(queue.0)];
        if let Some(context) = state.context {
            let (frontier, timeout_ns) = (state.frontier, state.hole_timeout_ns);
            let new = self.holes.watch(&self.reorder, context, frontier, timeout_ns, shared.now);
            shared.counters.holes += u64::from(new);
        }
        Accept::Taken
    }

    /// Whether a write must wait until complete messages have left the pool: it may take more lines than are free, and
    /// such messages are there.
    #[inline]
    fn must_wait(&self, queue: QueueId, pieces: &Pieces<'_>) -> bool {
        let state = &self.queues[usize::from(queue.0)];
        if state.account == Account::Reserved || self.complete_shared_lines == 0 {
            return false;
        }
        let held = state.context.map_or(0, |context| self.reorder.lines_held(context));
        self.pool.shared_lines() < pieces.lines_touched() + held
    }

    fn piece_arrived(
        &mut self,
        queue: QueueId,
        piece: &Piece,
        first: bool,
        shared: &mut Shared,
    ) -> Result<(), Cause> {
        let ahead = self.check_line(queue, piece, first, &mut shared.counters)?;
        let state = &mut self.queues[usize::from(queue.0)];
        if state.context.is_none() && ahead == 0 && piece.valid == TEST_VECTOR {
            return self.lines_arrived(queue, slice::from_ref(&piece.bytes), shared).map(|_| ());
        }
        let context = match state.context {
            Some(context) => context,
            None => {
                let context = self.reorder.allocate(queue, state.account).ok_or_else(|| {
                    shared.counters.no_context += 1;
                    Cause::NoContext
                })?;
                *state.context.insert(context)
            }
        };
        match self.reorder.place(context, state.frontier + u64::from(ahead), piece) {
            Placed::Clobber => {
                shared.counters.clobbers += 1;
                return Err(Cause::Clobber);
            }
            Placed::Completed => shared.counters.split_lines += 1,
            Placed::Incomplete | Placed::Whole => {}
        }
        if ahead == 0 {
            while let Some(line) = self.reorder.take(context, self.queues[usize::from(queue.0)].frontier) {
                let line = *line;
                self.lines_arrived(queue, slice::from_ref(&line), shared)?;
            }
        }
        if self.reorder.lines_held(context) == 0 {
            self.release_context(queue);
        }
        Ok(())
    }

    /// How many lines beyond the frontier's a piece lies, if it may lie there. Counts disorder, once a write (`first`).
    fn check_line(
        &self,
        queue: QueueId,
        piece: &Piece,
        first: bool,
        counters: &mut Counters,
    ) -> Result<u32, Cause> {
        let state = &self.queues[usize::from(queue.0)];
        let once = u64::from(first);
        let mut displaced = |ahead: u32| {
            counters.displacement_histogram[(ahead as usize).min(DISPLACEMENT_BUCKETS - 1)] += once;
        };
        let ahead = match state.locate(piece.line, self.reorder.span_lines()) {
            LineState::Ahead(ahead) => ahead,
            LineState::NotFree => {
                counters.overruns += 1;
                return Err(Cause::Overrun);
            }
            LineState::BeyondSpan(ahead) => {
                displaced(ahead);
                counters.span_exceeded += 1;
                return Err(Cause::SpanExceeded);
            }
        };
        displaced(ahead);
        let valid = state.context.map_or(0, |context| self.reorder.valid(context, state.frontier));
        let missing = !valid & valid.wrapping_add(1);
        if ahead > 0 || piece.valid & missing == 0 {
            counters.reordered_writes += once;
            counters.reorder_depth_max = counters.reorder_depth_max.max(u64::from(ahead) + 1);
        }
        Ok(ahead)
    }
}

/// A message that is not plain data, or is too short to be sent: puts words back, counts, and checks what is inside.
fn check_special(
    state: &TxQueue,
    pool: &mut BufferPool,
    scratch: &mut Vec<u32>,
    max_frame_bytes: u32,
    shared: &mut Shared,
) -> Result<(), Cause> {
    let (header, first) = state.incoming();
    let counters = &mut shared.counters;
    if header.escape_last != 0 {
        match message::restore_escapes(pool, first, &header, state.blank, scratch) {
            Ok(count) => counters.tx_escapes += u64::from(count),
            Err(_) => {
                counters.bad_headers += 1;
                return Err(Cause::BadHeader);
            }
        }
    }
    match header.kind {
        Kind::Data => counters.runts += u64::from((header.length_bytes as usize) < MIN_FRAME_BYTES),
        Kind::Void => counters.tx_voids += 1,
        Kind::Batch => match message::check_batch(pool, first, &header, max_frame_bytes) {
            Ok(runts) => {
                counters.tx_batches += 1;
                counters.runts += runts;
            }
            Err(_) => {
                counters.bad_lengths += 1;
                return Err(Cause::BadLength);
            }
        },
    }
    Ok(())
}
