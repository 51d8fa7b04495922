//! The device trait: what a link tells a NIC and what the NIC wants next.
//!
//! A device is a pure state machine: it does no I/O, reads no clock and touches no memory but its own. A link calls
//! it when a TLP arrives, a DMA read completes, a frame comes from the wire or time passes, and then asks `next` until
//! nothing is wanted. The behavioural NIC (`nic/model`) and the Verilated one (`nic/rtl`) stand behind this trait; the
//! link may be real memory or virtual PCIe time. Frame layout: Ethernet without FCS.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod watch;

use core::fmt;

pub use watch::{HostMemory, Watches};

/// Time in picoseconds since the device was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SimTime(pub u64);

impl SimTime {
    /// A time of this many nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        SimTime(ns.saturating_mul(1000))
    }

    /// Whole nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1000
    }
}

impl fmt::Display for SimTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{:03} ns", self.0 / 1000, self.0 % 1000)
    }
}

/// A queue of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u16);

/// Names an outstanding DMA read; chosen by the device, echoed by the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DmaTag(pub u16);

/// Names an outstanding register read; chosen by the link, echoed by the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadTag(pub u16);

/// Names an outstanding watch of a line; chosen by the device, echoed by the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchTag(pub u16);

/// Tags of watches are below this, so that a link knows how many there are at most.
pub const MAX_WATCHES: usize = 2048;
/// Most bytes that a watch asks for.
pub const MAX_WATCH_BYTES: usize = 256;

/// A posted memory write that arrived at the BAR.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Offset in the BAR of the first byte of `data`.
    pub offset_bytes: u64,
    /// The bytes, those not enabled included.
    pub data: &'a [u8],
    /// Bytes of the line that are written.
    pub enables: Enables,
}

/// Byte enables of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enables {
    /// Every byte.
    All,
    /// Bit i for byte i; only for writes of at most 64 bytes.
    Mask(u64),
}

impl Enables {
    /// Whether byte `i` is written.
    #[inline]
    pub const fn has(self, i: usize) -> bool {
        match self {
            Enables::All => true,
            Enables::Mask(mask) => i < 64 && mask >> i & 1 == 1,
        }
    }
}

/// Whether the device took what was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Accept {
    /// The device has taken the write.
    Taken,
    /// Back-pressure: the link keeps it, and everything behind it in the same direction, and offers it again after
    /// the device has wanted something or time has passed.
    Refused,
}

/// Why a DMA read brought no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaError {
    /// The address is not device-visible memory of this port (an IOMMU fault, an unsupported request).
    BadAddress,
}

/// Why a watch ended without the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEnd {
    /// The address is not device-visible memory of this port.
    BadAddress,
    /// The device took the watch back ([`Want::ForgetLine`]).
    Forgotten,
    /// The link does not keep a device's copy of host memory coherent: what PCIe answers.
    NotCoherent,
}

/// What a device wants done. Data is borrowed from the device until the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want<'a> {
    /// Read host memory; answered by [`Device::dma_completed`] with the same tag.
    DmaRead {
        /// Bus address.
        address: u64,
        /// Bytes, at most 4096.
        bytes: u32,
        /// Echoed in the answer.
        tag: DmaTag,
    },
    /// Write host memory. Posted; writes of one device become visible in the order in which they were wanted.
    DmaWrite {
        /// Bus address.
        address: u64,
        /// The bytes.
        data: &'a [u8],
    },
    /// Watch a line of host memory of which the device holds a copy: tell when its first word differs from `known`.
    ///
    /// Stands for a device with a coherent cache, which reads a line, keeps it, and reads it again when the interconnect
    /// invalidates its copy. Answered exactly once, by [`Device::line_changed`], however it ends. Exactly:
    /// - The link compares the first word with `known`, at once and whenever the host may have stored to it, and answers
    ///   when they differ. So a change before the watch was wanted is told like one after it, and none that lasts is
    ///   lost. Stores that follow each other are told as one; a word that is `known` again before the link looks is no
    ///   change. How soon it is told is the link's affair.
    /// - The answer has `bytes` bytes from `address` on: the first word as it was compared, and the others as they were
    ///   at that time or later (acquire: what the host stored before a word that it stored with release is seen).
    /// - A watch follows every [`Want::DmaWrite`] wanted before it: it sees what they wrote.
    WatchLine {
        /// Echoed in the answer; not one of another watch that is outstanding.
        tag: WatchTag,
        /// Bus address of the line, a multiple of 64.
        address: u64,
        /// The first word as the device knows it, little-endian.
        known: u64,
        /// Bytes of the answer, a multiple of 8, at most [`MAX_WATCH_BYTES`].
        bytes: u32,
    },
    /// End a watch: it is answered soon, with [`WatchEnd::Forgotten`] unless something else ended it before. Without
    /// meaning when none is outstanding under the tag.
    ForgetLine {
        /// The watch's tag.
        tag: WatchTag,
    },
    /// Put a frame on the wire. Only wanted while the wire is ready.
    Transmit {
        /// Queue it came from.
        queue: QueueId,
        /// The frame, FCS excluded.
        frame: &'a [u8],
    },
    /// Tell the link that a frame which had begun before its message was complete (cut-through) ended with an abort
    /// mark: nobody receives it.
    Aborted {
        /// Queue it came from.
        queue: QueueId,
        /// Bytes of the frame that had left.
        frame: &'a [u8],
    },
    /// Answer a register read.
    ReadCompletion {
        /// The read's tag.
        tag: ReadTag,
        /// The register's value; all ones for an address that is not there.
        value: u64,
    },
    /// Interrupt the host.
    Interrupt {
        /// Vector: the queue it concerns.
        vector: u16,
    },
}

/// A NIC behind its PCIe pins.
pub trait Device {
    /// A posted write arrived. A refused write is offered again and blocks those behind it.
    fn write_arrived(&mut self, write: Write<'_>) -> Accept;

    /// Whole lines of 64 bytes that follow each other from `offset_bytes` on arrived, each as a write of its own, in order.
    /// Returns how many the device has taken, from the first on; the line behind them, if there is one, was refused.
    ///
    /// Means a call of [`Device::write_arrived`] for each. A device may take them for less than so many calls cost.
    #[inline]
    fn lines_arrived(&mut self, offset_bytes: u64, lines: &[[u8; 64]]) -> usize {
        let mut offset_bytes = offset_bytes;
        let mut is_taken = |line: &[u8; 64]| {
            let write = Write { offset_bytes, data: line, enables: Enables::All };
            offset_bytes += line.len() as u64;
            self.write_arrived(write) == Accept::Taken
        };
        lines.iter().take_while(|line| is_taken(line)).count()
    }

    /// How many whole lines from `offset_bytes` on the device waits for before anything comes of those that it has; 0: it does
    /// not know, or it does not wait for so many. A hint: a link that only sees memory looks at the last of them first, because
    /// a look at a line takes it from the sender that is about to store it.
    #[inline]
    fn awaited_lines(&self, offset_bytes: u64) -> u32 {
        let _ = offset_bytes;
        0
    }

    /// A read of one aligned 64-bit register arrived; answered by [`Want::ReadCompletion`], after every write that
    /// arrived before it has taken effect (PCIe: a read pushes posted writes).
    fn read_arrived(&mut self, offset_bytes: u64, tag: ReadTag);

    /// The data of a DMA read; `data` has exactly the bytes asked for.
    fn dma_completed(&mut self, tag: DmaTag, data: Result<&[u8], DmaError>);

    /// The answer to a [`Want::WatchLine`]; `data` has exactly the bytes asked for. A device that watches nothing need
    /// not have it.
    fn line_changed(&mut self, tag: WatchTag, data: Result<&[u8], WatchEnd>) {
        let _ = (tag, data);
    }

    /// A frame came from the wire. A refused frame is offered again, or dropped, as the wire pleases.
    fn frame_arrived(&mut self, frame: &[u8]) -> Accept;

    /// Time is now `now`; it never runs backwards.
    fn time_passed(&mut self, now: SimTime);

    /// Tells whether the wire takes frames; it does at the start.
    fn wire_ready(&mut self, ready: bool);

    /// The wire takes so many beats, each 64 bytes of a frame or its end, and is not ready then. A device that has
    /// frames only as a whole takes it for a wire that is ready.
    fn wire_takes(&mut self, beats: u32) {
        self.wire_ready(beats > 0);
    }

    /// What the device wants next; `None` until something else happens. Call it until it says so.
    fn next(&mut self) -> Option<Want<'_>>;

    /// Gives `wire` frames that leave now, in order, `most` at most, until it returns `false` (it takes no other) or something
    /// else is wanted before the next frame. Returns how many left.
    ///
    /// Means a [`Want::Transmit`] for each. A device that has nothing cheaper than that gives none here, and any device may
    /// give fewer than leave: [`Device::next`] has the others.
    #[inline]
    fn transmit_run(&mut self, most: u32, wire: impl FnMut(QueueId, &[u8]) -> bool) -> u32
    where
        Self: Sized,
    {
        let _ = (most, wire);
        0
    }

    /// The earliest time at which the device wants [`Device::time_passed`] to be called, if any.
    fn wake_at(&self) -> Option<SimTime>;
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::ToString;

    #[test]
    fn a_time_is_whole_picoseconds() {
        assert_eq!(SimTime::from_ns(3).0, 3000);
        assert_eq!(SimTime(2999).as_ns(), 2);
        assert_eq!(SimTime::from_ns(u64::MAX), SimTime(u64::MAX), "saturates");
        assert_eq!(SimTime(1_234_567).to_string(), "1234.567 ns");
    }

    #[test]
    fn enables_pick_bytes() {
        assert!(Enables::All.has(0) && Enables::All.has(4095));
        let mask = Enables::Mask(1 << 63 | 1);
        assert_eq!([0, 1, 62, 63, 64].map(|i| mask.has(i)), [true, false, false, true, false]);
    }
}
