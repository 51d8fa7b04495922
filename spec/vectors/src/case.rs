//! A case in memory: what the files say, with bytes and words already decoded.

use std::collections::BTreeMap;

use beeline_spec::Interface;

use crate::host::Area;

/// One vector: a device, what happens to it, and how it must end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Name, which is the file's without its ending.
    pub name: String,
    /// The rule that the case shows, in a sentence.
    pub why: String,
    /// Paper, section or page that states the rule.
    pub source: String,
    /// The device it is played on.
    pub device: DeviceParameters,
    /// Events, in order.
    pub events: Vec<Event>,
    /// What must be so in the end.
    pub expect: Expectation,
}

/// The device and its one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceParameters {
    /// Transmit interface of the queue.
    pub interface: Interface,
    /// What the receiver sees of the window.
    pub window: WindowKind,
    /// Lines of the window, a power of two.
    pub window_lines: u32,
    /// Reorder span in lines, a power of two.
    pub span_lines: u32,
    /// Reorder contexts of the device.
    pub contexts: u32,
    /// Lines of the device's buffer pool.
    pub pool_lines: u32,
    /// Longest frame in bytes.
    pub max_frame_bytes: u32,
    /// Epoch of the queue at the start.
    pub epoch: u8,
    /// How long a hole may stand, in ns; 0: for ever.
    pub hole_timeout_ns: u64,
    /// Whether complete messages may wait without credits (queue control `backpressure`).
    pub backpressure: bool,
    /// Whether the device fills in checksums (queue control `checksums`).
    pub checksums: bool,
    /// Lines with which a frame may begin before its message is complete; 0: it never does.
    pub cut_through_lines: u16,
    /// End-of-packet signature of kPIO+WC.
    pub kpio_eop: u64,
    /// What the queue has beside its window.
    pub host: HostSide,
}

/// Rings in the host's memory, and what else the interfaces that use them are told; 0 where nothing is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostSide {
    /// Whether there is memory that the device may read and write.
    pub has_memory: bool,
    /// Lines of the transmit ring or pipe.
    pub ring_lines: u32,
    /// Every so many pushes one is not used.
    pub self_test: u32,
    /// Power of two of an entry's lines.
    pub entry_lines_log2: u32,
    /// How long a read of an entry may be held, in ns.
    pub entry_hold_ns: u32,
    /// Receive mode: a value of `rx_mode`.
    pub rx_mode: u8,
    /// Lines of the receive ring or pipe.
    pub rx_lines: u32,
    /// Entries of the notification ring.
    pub notifications: u32,
    /// Whether short frames are kept in the BAR.
    pub rx_reads: bool,
    /// Of coherent lines that are received, the power of two of an entry's lines.
    pub rx_entry_lines_log2: Option<u32>,
    /// Buffers beside them, at the start of their area.
    pub rx_buffers: u32,
}

/// What the receiver sees of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowKind {
    /// Every write, with its byte enables.
    Observed,
    /// Memory in which a free word holds this value.
    Blank(u64),
}

impl WindowKind {
    /// The blank, 0 for an observed window: the value of queue register `blank`.
    pub fn blank(self) -> u64 {
        match self {
            WindowKind::Observed => 0,
            WindowKind::Blank(blank) => blank,
        }
    }
}

/// Something that happens, and what must come of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What a reader should know about it; may be empty.
    pub note: String,
    pub action: Action,
    /// Expectation behind the event.
    pub then: Then,
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A write arrives at the queue's window.
    Write(Write),
    /// This much time passes, in ns.
    Time(u64),
    /// The wire takes frames, or stops taking them.
    WireReady(bool),
    /// The wire takes so many beats of 64 bytes, and is not ready then. A device may have taken more of the frame out of
    /// its pool meanwhile.
    WireBeats(u32),
    /// The host stores into its own memory.
    Memory(Bytes),
    /// The host rings a doorbell.
    Doorbell(Doorbell, u64),
    /// A frame comes from the wire.
    Frame(Vec<u8>),
    /// The host reads words at the queue's window.
    Read {
        /// Byte offset in the window of the first.
        at: u64,
        words: u32,
    },
    /// The host's memory answers reads, or stops answering them.
    DmaReady(bool),
    /// The host disables the queue and enables it with another epoch.
    Restart {
        /// The new epoch.
        epoch: u8,
    },
}

/// Bytes in an area of the host's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bytes {
    pub area: Area,
    /// Byte offset in it.
    pub at: u64,
    pub bytes: Vec<u8>,
}

/// A doorbell of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doorbell {
    /// How far the host has filled the transmit ring.
    TxTail,
    /// How far it has freed the receive ring.
    RxFreed,
    /// Entries that the host has read.
    EntriesFreed,
}

/// A posted write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Byte offset in the window.
    pub at: u64,
    /// The bytes, those not enabled included.
    pub bytes: Vec<u8>,
    /// Byte enables, bit i for byte i; `None`: all.
    pub enables: Option<u64>,
}

/// What must come of an event once the device wants nothing more. `None` is not looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Then {
    /// Frames that leave because of this event, in order, and no others.
    pub frames: Vec<Vec<u8>>,
    /// What may have left of each frame that ended with an abort mark because of this event: what was there of it.
    pub aborted: Vec<Vec<u8>>,
    /// Next start in lines since the queue was enabled.
    pub next_start: Option<u64>,
    /// Lines freed since the queue was enabled, as last pushed; 0 while nothing was pushed.
    pub freed_lines: Option<u64>,
    /// State of the queue.
    pub status: Option<QueueStatus>,
    /// Whether the device refused the write (back-pressure); the link keeps it and offers it again. Or the frame, which
    /// the wire drops then.
    pub refused: bool,
    /// Answers to reads of the window that come because of this event, in order, and no others.
    pub answers: Vec<u64>,
    /// Bytes of the host's memory.
    pub memory: Vec<Bytes>,
}

/// State of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueStatus {
    /// The queue takes writes.
    pub active: bool,
    /// Writes to the queue are dropped and counted.
    pub quarantined: bool,
    /// Why: a value of queue status `cause`.
    pub cause: u8,
}

/// What must be so in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// State of the queue.
    pub status: QueueStatus,
    /// Lines freed since the queue was enabled, as last pushed.
    pub freed_lines: u64,
    /// Counters, by name in `nic.rdl` (`tx_writes`, `tlp_bytes_histogram[7]`). [`Case::counters`] adds those that a
    /// case need not list.
    pub counters: BTreeMap<String, Count>,
}

/// What a counter must read in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    Exactly(u64),
    /// So many or more: where the link decides how often, as with the retries of a refused write.
    AtLeast(u64),
}

impl Count {
    /// Whether `found` is as it must be.
    pub fn admits(self, found: u64) -> bool {
        match self {
            Count::Exactly(count) => found == count,
            Count::AtLeast(count) => found >= count,
        }
    }
}

/// Counters of things that go wrong with any interface: 0 in every case that does not list them, as are those of
/// [`Interface::faults`].
const FAULTS: [&str; 17] = [
    "hole_timeouts",
    "quarantined_writes",
    "clobbers",
    "overruns",
    "span_exceeded",
    "runts",
    "bad_lengths",
    "bad_headers",
    "bad_accesses",
    "no_context",
    "no_pool",
    "refused_writes",
    "kpio_malformed",
    "mux_mismatches",
    "dma_errors",
    "rx_no_space",
    "rx_oversize",
];

impl Case {
    /// Every frame that leaves, in order.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.events.iter().flat_map(|event| &event.then.frames).map(Vec::as_slice)
    }

    /// Every counter that must be looked at: those listed, frames and their bytes, and 0 for every fault not listed.
    pub fn counters(&self) -> BTreeMap<String, Count> {
        let bytes = self.frames().map(|frame| frame.len() as u64).sum();
        let mut counters: BTreeMap<String, Count> = FAULTS
            .iter()
            .chain(self.device.interface.faults())
            .map(|name| ((*name).to_owned(), Count::Exactly(0)))
            .collect();
        counters.insert("tx_frames".to_owned(), Count::Exactly(self.frames().count() as u64));
        counters.insert("tx_frame_bytes".to_owned(), Count::Exactly(bytes));
        counters.extend(self.expect.counters.clone());
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_counters_of_the_register_map() {
        for name in FAULTS.iter().chain(Interface::ALL.iter().flat_map(|interface| interface.faults())) {
            assert!(beeline_spec::regs::counter::ALL.iter().any(|(known, _)| known == name), "{name}");
        }
    }

    #[test]
    fn a_count_admits_what_it_says() {
        assert!(Count::Exactly(2).admits(2) && !Count::Exactly(2).admits(3));
        assert!(Count::AtLeast(2).admits(3) && !Count::AtLeast(2).admits(1));
    }
}
