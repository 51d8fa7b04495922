//! The window of one sender.

use std::io::IoSliceMut;
use std::sync::Arc;
use std::time::{Duration, Instant};

use beeline_mmio::LoadWindow;
use beeline_socket_rules::{Carrier, Row};
use beeline_window::{ReceiveError, Receiver};

use super::flow::{Flow, Live};
use super::outgoing::{BEGIN_SHIFT, BEGINS, PREFIX_BYTES};
use crate::sleepers::ring_other;
use crate::words::Credits;

/// A sender that was told that no more is taken may be storing one still, for so long.
const STORED_WITHIN: Duration = Duration::from_millis(10);

pub(crate) struct Incoming {
    pub(crate) flow: Arc<Flow>,
    live: Arc<Live>,
    receiver: Receiver<LoadWindow, Credits>,
    /// Bytes of memory that the process has given it.
    pub(crate) window_bytes: usize,
    begin: Begin,
    /// Since when nothing is taken any more but what is in the window.
    ended_at: Option<Instant>,
    /// Which rest of its sender was asked for last.
    rest: u64,
    row: Option<Arc<Row>>,
}

/// How far the first datagram is before which the sender came from the kernel's path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begin {
    NotSeen,
    Seen,
    /// The kernel's queue was empty since it was seen.
    BehindKernel,
}

/// What a look at a window found.
pub(crate) enum Found {
    /// A datagram: bytes that were copied, and how many it has.
    Datagram {
        copied: usize,
        length: usize,
    },
    Nothing,
    /// A datagram that has to wait until the kernel's queue is empty.
    BehindKernel,
}

impl Incoming {
    /// Offers a window, if the other side's words are in order.
    pub(crate) fn offer(flow: &Arc<Flow>, live: Arc<Live>, window_bytes: usize, random: u64) -> Self {
        let receiver = live.slot().offer_window((window_bytes / 64) as u32, random);
        let row = flow.row();
        row.iter().for_each(|row| row.receives_by(Carrier::Window));
        Incoming {
            flow: Arc::clone(flow),
            live,
            receiver,
            window_bytes,
            begin: Begin::NotSeen,
            ended_at: None,
            rest: 0,
            row,
        }
    }

    pub(crate) fn live(&self) -> &Live {
        &self.live
    }

    /// Whether something is there. A sender that stops in the middle of a datagram is found out once.
    #[inline]
    pub(crate) fn has_begun(&mut self) -> bool {
        self.receiver.has_begun()
    }

    /// Copies the next datagram, and takes it unless it is to be left.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        out: &mut [IoSliceMut<'_>],
        leaves: bool,
    ) -> Result<Found, ReceiveError> {
        let Some(mut message) = self.receiver.poll()? else { return Ok(Found::Nothing) };
        // One load; the other side may change it, but not what was read.
        let (prefix, whole) = (message.word(0), message.len());
        let begin = prefix >> BEGIN_SHIFT;
        let is_ended = begin != 0 && self.live.slot().has_ended_begin(begin);
        if prefix & BEGINS != 0 && self.begin != Begin::BehindKernel && !is_ended {
            std::mem::forget(message);
            self.begin = Begin::Seen;
            return Ok(Found::BehindKernel);
        }
        // Shorter than a prefix is nothing that this library sends, and becomes an empty datagram.
        let length = whole.saturating_sub(PREFIX_BYTES);
        let mut copied = 0;
        for place in out.iter_mut() {
            copied += match copied {
                0 => message.copy_out_from(1, place),
                _ => message.copy_out_at(PREFIX_BYTES + copied, place),
            };
            if copied >= length {
                break;
            }
        }
        if leaves {
            // The next poll gives it again.
            std::mem::forget(message);
            return Ok(Found::Datagram { copied, length });
        }
        drop(message);
        if prefix & BEGINS != 0 {
            self.begin = Begin::NotSeen;
            // The sender may go back to the kernel only when it knows of this.
            self.receiver.push_credits();
        }
        self.flow.hear();
        self.row.iter().for_each(|row| row.received(Carrier::Window, length));
        Ok(Found::Datagram { copied, length })
    }

    /// Bytes of the next datagram.
    pub(crate) fn next_length(&mut self) -> Option<usize> {
        let message = self.receiver.poll().ok()??;
        let length = message.len().saturating_sub(PREFIX_BYTES);
        std::mem::forget(message);
        Some(length)
    }

    /// The kernel's queue is empty: what was seen to wait for that need not any more.
    pub(crate) fn kernel_is_empty(&mut self) {
        if self.begin == Begin::Seen {
            self.begin = Begin::BehindKernel;
        }
    }

    /// What the sender would like to know of the kernel's queue, if it does.
    pub(crate) fn question(&self) -> Option<u64> {
        self.live.slot().question()
    }

    /// The kernel's queue was empty behind this question.
    pub(crate) fn answer(&self, question: u64) {
        self.live.slot().answer(question);
    }

    pub(crate) fn waits_for_kernel(&self) -> bool {
        self.begin == Begin::Seen
    }

    /// Asks the sender to use the kernel for a while.
    pub(crate) fn ask_for_rest(&mut self) {
        self.rest += 1;
        self.live.slot().ask_for_rest(self.rest);
    }

    /// Has the other process answer, whose program may send nothing for long.
    pub(crate) fn hurry_rest(&mut self) {
        if !self.live.slot().has_rested(self.rest) {
            let memory = self.live.slot().memory();
            ring_other(memory, &memory.other_sleeper(0));
        }
    }

    pub(crate) fn end_rest(&mut self) {
        self.live.slot().ask_for_rest(0);
    }

    /// Whether the sender uses the kernel, and nothing is left in its window.
    pub(crate) fn rests(&mut self) -> bool {
        // The answer first: what was stored before it is seen behind it.
        self.live.slot().has_rested(self.rest) && !self.has_begun() && !self.waits_for_kernel()
    }

    /// Has the sender send by the kernel from now on.
    pub(crate) fn end(&mut self) {
        self.live.slot().end_datagrams();
        self.ended_at.get_or_insert_with(Instant::now);
    }

    /// Whether nothing comes any more, and nothing is left.
    pub(crate) fn is_over(&mut self) -> bool {
        let is_ended = self.ended_at.is_some_and(|at| at.elapsed() >= STORED_WITHIN)
            || self.live.slot().has_ended_datagrams()
            || self.live.has_departed();
        // Behind the looks: what the sender stored before it ended is seen here.
        is_ended && !matches!(self.receiver.poll().map(|message| message.map(std::mem::forget)), Ok(Some(())))
    }
}
