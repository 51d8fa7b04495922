//! Frames on their way out: whose is next, whether it may leave, and how much of it the wire takes.
//!
//! Every transmit engine keeps its frames until they have left; here they are behind one call each ([`Engines::pop`] and
//! its like), whatever the interface. The arbiter ([`crate::egress`]) chooses among queues, the multiplexer of kPIO+WC drops
//! what it does not forward, and a frame leaves whole or, on a wire that takes beats or cuts through, in parts. Not here:
//! everything else that the device wants (`nic.rs`), how frames come to be (the engines).
//!
//! From: [`Nic`]'s `next`. To: the wire, as a want of the device. Larsen & Lee, NAS'15, §III ("MUX").

use beeline_contract_device::{QueueId, Want};
use beeline_spec::Interface;

use crate::egress::{OnWire, Wire, fill_in};
use crate::engine::FrameSource;
use crate::interfaces::Engines;
use crate::kpio::{Mux, Path};
use crate::nic::Nic;

/// Why a queue has a frame.
const CHOSEN: &str = "the arbiter chose a queue with a frame";

impl Nic {
    /// Lets the frame at the head of a queue go.
    #[inline]
    pub(crate) fn pop(&mut self, queue: QueueId, interface: Interface) {
        self.engines.pop(queue, interface, &mut self.shared);
        // Those that fetch have something to report, or room to go on.
        self.attention |= Engines::read_memory(interface);
    }

    /// The queue whose frame goes out next.
    #[inline]
    fn choose(&mut self) -> Option<(QueueId, Interface, u32)> {
        // Mostly one queue is busy, and then there is nothing to arbitrate.
        if let Some(queue) = self.shared.ready.only_one()
            && let Some(interface) = self.queues[usize::from(queue.0)].transmits
        {
            match self.engines.head_bytes(queue, interface) {
                Some(bytes) if self.is_forwarded(queue, interface) => return Some((queue, interface, bytes)),
                Some(_) => {}
                None => {
                    self.shared.ready.found_nothing();
                    return None;
                }
            }
        }
        self.choose_by_turn()
    }

    /// The same for any number of queues. Frames that the multiplexer does not forward are dropped on the way.
    fn choose_by_turn(&mut self) -> Option<(QueueId, Interface, u32)> {
        loop {
            let Nic { shared, engines, queues, .. } = self;
            let (queue, bytes) = shared
                .ready
                .next(|queue| engines.head_bytes(queue, queues[usize::from(queue.0)].transmits?))?;
            let interface = queues[usize::from(queue.0)].transmits?;
            if self.is_forwarded(queue, interface) {
                return Some((queue, interface, bytes));
            }
            self.shared.counters.mux_mismatches += 1;
            self.pop(queue, interface);
        }
    }

    /// Puts on the wire what it takes now. Nearly always that is a whole frame.
    #[inline]
    pub(crate) fn put_on_wire(&mut self) -> Option<OnWire> {
        if self.wire.beats == 0 {
            return None;
        }
        if !self.wire.is_open() {
            let (queue, interface, bytes) = self.choose()?;
            let is_early = interface == Interface::Mmio && self.engines.mmio.begins_early(queue);
            if !is_early && self.wire.beats == Wire::UNBOUNDED {
                return Some(OnWire::Whole { queue, interface, bytes });
            }
            if is_early {
                self.shared.counters.cut_through_frames += 1;
                self.engines.mmio.begin(queue);
            }
            self.wire.open(queue, interface, is_early);
        }
        self.go_on()
    }

    /// Goes on with the frame that is on the wire, beat by beat. A beat that is taken while nothing is behind it is an
    /// underrun: the wire cannot wait.
    #[cold]
    fn go_on(&mut self) -> Option<OnWire> {
        let (queue, interface, is_early) = self.wire.whose();
        let there = match interface {
            _ if self.wire.is_doomed() => None,
            Interface::Mmio if is_early => self.engines.mmio.open_frame(queue),
            _ => self.engines.head(queue, interface).map(|frame| (frame, true)),
        };
        // The queue failed or was stopped, and the message went with it.
        let Some((there, is_all)) = there else {
            self.wire.close();
            return Some(OnWire::Aborted { queue });
        };
        if !self.wire.take(there) {
            return None;
        }
        self.wire.close();
        if is_all {
            return Some(OnWire::Whole { queue, interface, bytes: there.len() as u32 });
        }
        self.shared.counters.cut_through_underruns += 1;
        self.engines.mmio.abort(queue);
        Some(OnWire::Aborted { queue })
    }

    /// What the wire did, as the link is told it. A whole frame is lent until the next call of `next`.
    #[inline]
    pub(crate) fn leave(&mut self, on_wire: OnWire) -> Want<'_> {
        let (queue, interface, bytes) = match on_wire {
            OnWire::Whole { queue, interface, bytes } => (queue, interface, bytes),
            OnWire::Aborted { queue } => return Want::Aborted { queue, frame: self.wire.taken() },
        };
        self.lent = Some((queue, interface));
        self.shared.counters.tx_frames += 1;
        self.shared.counters.tx_frame_bytes += u64::from(bytes);
        if self.queues[usize::from(queue.0)].fills_in_checksums {
            return self.with_checksums(queue, interface);
        }
        Want::Transmit { queue, frame: self.engines.head(queue, interface).expect(CHOSEN) }
    }

    /// Lets frames of one queue leave one after the other, without asking before each of them whose turn it is and what else
    /// is wanted: only while no other queue has one, nothing else is wanted, and the wire takes whole frames. Of interfaces
    /// whose engines read memory none leave here, because their engines have something to do after each frame.
    #[inline]
    pub(crate) fn leave_in_a_run(&mut self, most: u32, mut wire: impl FnMut(QueueId, &[u8]) -> bool) -> u32 {
        self.invalidate_rest();
        if let Some((queue, interface)) = self.lent.take() {
            self.pop(queue, interface);
        }
        let is_free = self.wire.beats == Wire::UNBOUNDED && !self.wire.is_open();
        if self.attention || !self.shared.dma.is_empty() || !is_free {
            return 0;
        }
        let Some(queue) = self.shared.ready.only_one() else { return 0 };
        let state = &self.queues[usize::from(queue.0)];
        if state.fills_in_checksums {
            return 0;
        }
        let Nic { engines, shared, .. } = self;
        let wire = |frame: &[u8]| wire(queue, frame);
        let left = match state.transmits {
            Some(Interface::Mmio) => engines.mmio.leave(queue, most, shared, wire),
            Some(Interface::Kpio) if self.mux == Mux::Both => engines.kpio.leave(queue, most, shared, wire),
            _ => return 0,
        };
        shared.counters.tx_frames += u64::from(left.frames);
        shared.counters.tx_frame_bytes += left.bytes;
        left.frames
    }

    /// Whether the multiplexer of kPIO+WC lets the frame at the head of a queue out.
    #[inline]
    fn is_forwarded(&mut self, queue: QueueId, interface: Interface) -> bool {
        let Some(path) = Path::of(interface) else { return true };
        let mux = self.mux;
        mux == Mux::Both || self.engines.head(queue, interface).is_none_or(|frame| mux.forwards(path, frame))
    }

    /// The frame at the head of a queue, with its checksums.
    fn with_checksums(&mut self, queue: QueueId, interface: Interface) -> Want<'_> {
        let mut filled = std::mem::take(&mut self.filled);
        let frame = self.engines.head(queue, interface).expect(CHOSEN);
        let bytes = frame.len();
        filled[..bytes].copy_from_slice(frame);
        fill_in(&mut filled[..bytes]);
        self.filled = filled;
        Want::Transmit { queue, frame: &self.filled[..bytes] }
    }
}
