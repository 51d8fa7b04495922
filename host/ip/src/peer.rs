//! Another node: whether it is there, and what was carried to it and from it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use beeline_fabric::{NodeId, Refusal};

use crate::counts::{Count, PeerCounts};
use crate::line::Line;

#[derive(Debug)]
pub(crate) struct Peer {
    pub node: NodeId,
    line: ArcSwapOption<Line>,
    /// Why there is none, as far as it is known.
    refusal: Mutex<Option<Refusal>>,
    /// It has not taken a packet in time, and is waited for no more until it takes one.
    pub is_slow: AtomicBool,
    pub sent_packets: Count,
    pub sent_bytes: Count,
    pub received_packets: Count,
    pub received_bytes: Count,
    pub absent_packets: Count,
    pub full_packets: Count,
    pub too_long_packets: Count,
    pub wrong_packets: Count,
    pub refused_packets: Count,
}

impl Peer {
    pub(crate) fn new(node: NodeId) -> Self {
        Peer {
            node,
            line: ArcSwapOption::empty(),
            refusal: Mutex::new(None),
            is_slow: AtomicBool::new(false),
            sent_packets: Count::default(),
            sent_bytes: Count::default(),
            received_packets: Count::default(),
            received_bytes: Count::default(),
            absent_packets: Count::default(),
            full_packets: Count::default(),
            too_long_packets: Count::default(),
            wrong_packets: Count::default(),
            refused_packets: Count::default(),
        }
    }

    pub(crate) fn line(&self) -> Option<Arc<Line>> {
        self.line.load_full()
    }

    pub(crate) fn is_up(&self) -> bool {
        self.line.load().is_some()
    }

    pub(crate) fn came(&self, line: Line) {
        self.is_slow.store(false, Ordering::Relaxed);
        self.refuse(None);
        self.line.store(Some(Arc::new(line)));
    }

    /// This line is of no use any more. Another one may have taken its place.
    pub(crate) fn went(&self, line: &Arc<Line>) {
        self.line.compare_and_swap(line, None);
    }

    pub(crate) fn refuse(&self, refusal: Option<Refusal>) {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = refusal;
    }

    pub(crate) fn refusal(&self) -> Option<Refusal> {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn counts(&self) -> PeerCounts {
        PeerCounts {
            sent_packets: self.sent_packets.get(),
            sent_bytes: self.sent_bytes.get(),
            received_packets: self.received_packets.get(),
            received_bytes: self.received_bytes.get(),
            absent_packets: self.absent_packets.get(),
            full_packets: self.full_packets.get(),
            too_long_packets: self.too_long_packets.get(),
            wrong_packets: self.wrong_packets.get(),
            refused_packets: self.refused_packets.get(),
        }
    }
}
