//! What the rows ask a machine for: a typed list, each with what exactly is timed. A [`crate::Simulator`] measures them.
//!
//! "Window" is memory of the device (or of a peer) mapped write-combining; a "frame" leaves on the wire, a "message" is only
//! stored. Times are means of a run long enough that its start does not show, unless "one" is said.

pub use beeline_spec::Interface;
use serde::{Deserialize, Serialize};

use crate::unit::Base;

/// When the storing core fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fence {
    /// Never.
    None,
    /// After each message.
    PerMessage,
    /// After each 64-byte line.
    PerLine,
}

/// Where stores go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The device's window, across the link.
    Window,
    /// Write-combined memory of the host.
    Memory,
}

/// Which part of a device reads or writes host memory. The NFP6000 has one for short commands and one for bulk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// Direct commands of a few words.
    Command,
    /// The DMA engine.
    Bulk,
}

/// Direction of DMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    Read,
    Write,
    /// Both, in turn; bytes of one direction count.
    ReadWrite,
}

/// A packet that an analyzer between host and device saw, its time counted from the first packet towards the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stamp {
    /// The device acknowledges the first line of a frame.
    FirstLineAck,
    /// The device acknowledges the second line.
    SecondLineAck,
    /// It writes the looped-back first line to host memory.
    FirstLoopBackWrite,
    SecondLoopBackWrite,
    /// The device acknowledges the doorbell.
    DoorbellAck,
    /// It acknowledges the completion that brings the descriptor.
    DescriptorAck,
    /// It acknowledges the last completion that brings payload.
    PayloadAck,
    /// The last symbol of the completion that brings payload leaves the host: the message is out of the system.
    PayloadSent,
}

/// What a call hands over where a row says nothing of it: a burst as drivers of receive and transmit rings have it.
pub const FRAMES_A_CALL: u32 = 16;

fn frames_a_call() -> u32 {
    FRAMES_A_CALL
}

/// A quantity that a machine has.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Quantity {
    /// ns from one full line to the next at the device, one core storing without end.
    LineInterval,
    /// ns a message: one core stores messages into the window back to back; a fence per message ends each.
    StoreTime {
        /// Bytes of a message.
        bytes: u64,
        fence: Fence,
    },
    /// Gbit/s of payload that cores store, all together.
    StoreRate {
        /// Bytes of a message.
        bytes: u64,
        fence: Fence,
        target: Target,
    },
    /// ns from the first store of one message until its last byte is where the other side may load or use it.
    WriteLatency {
        /// Bytes of the message.
        bytes: u64,
    },
    /// ns of one store, a full fence, and a load of the same word across the link.
    WriteThenRead {
        /// Bytes of the word.
        bytes: u64,
    },
    /// ns of an uncached load across the link.
    ReadRoundTrip {
        /// Bytes of the load.
        bytes: u64,
    },
    /// ns from the first store of one frame (or of its doorbell) until the device has the whole frame.
    TransmitLatency {
        interface: Interface,
        /// Bytes of the frame.
        bytes: u64,
    },
    /// ns a frame from the doorbell until the device reports that so many frames, posted in a row, were fetched.
    TransmitDone { interface: Interface, bytes: u64, frames: u32 },
    /// Gbit/s of frame bytes that leave, without end.
    FrameRate {
        interface: Interface,
        /// Bytes of a frame.
        bytes: u64,
        /// Cores that send, a queue each.
        cores: u32,
        /// Frames a call: a burst has one doorbell.
        #[serde(default = "frames_a_call")]
        burst: u32,
    },
    /// ns between two programs and back, receive path and wire included.
    PingPong {
        interface: Interface,
        /// Bytes of the frame.
        bytes: u64,
    },
    /// % of the bytes on the link, both directions, that are doorbells, descriptors and their headers.
    DescriptorShare {
        /// Bytes of a frame.
        bytes: u64,
        /// Frames a doorbell.
        burst: u32,
    },
    /// ns when a packet passes an analyzer, from the first one.
    TraceStamp(Stamp),
    /// ns of one DMA read, decided until the data are there.
    DmaReadLatency {
        /// The part of the device that reads.
        engine: Engine,
        /// Bytes read.
        bytes: u64,
    },
    /// ns of one DMA write and a read of the same place behind it.
    DmaWriteReadLatency {
        /// Which part of the device does it.
        engine: Engine,
        /// Bytes written, then read.
        bytes: u64,
    },
    /// Gbit/s of DMA.
    DmaRate {
        direction: Direction,
        /// Bytes of a transfer.
        bytes: u64,
    },
    /// ns of one transfer by a DMA queue between two hosts, from the call until the other one's program has found it.
    DmaPushLatency {
        /// Bytes of the transfer.
        bytes: u64,
    },
    /// Gbit/s of such transfers, as entries of one job.
    DmaPushRate {
        /// Bytes of a transfer.
        bytes: u64,
    },
    /// ns of one way of a multicast ping-pong: half of the time from a store, which a switch copies to all others of so many
    /// hosts, until the sender has found the answers of all.
    Multicast {
        /// Nodes, the sender included.
        nodes: u32,
    },
    /// ns from the call of a program that stores a message to memory of another host until the poll of that host's program has found it.
    WindowLatency {
        /// Bytes of the message.
        bytes: u64,
    },
    /// ns from the call that triggers an interrupt of another host until the program that polls there has taken it.
    InterruptLatency,
    /// ns of that with a message, until it is whole and copied out.
    MessageLatency {
        /// Bytes of the message.
        bytes: u64,
    },
    /// ns there and back between programs of two hosts, which poll their own memory and store to the other's.
    WindowPingPong {
        /// Bytes of a message.
        bytes: u64,
    },
}

impl Quantity {
    /// Returns the unit of the simulator's number.
    pub fn base(&self) -> Base {
        use Quantity as Q;
        match self {
            Q::StoreRate { .. } | Q::FrameRate { .. } | Q::DmaRate { .. } | Q::DmaPushRate { .. } => {
                Base::Gbps
            }
            Q::DescriptorShare { .. } => Base::Percent,
            _ => Base::Ns,
        }
    }

    /// What of a figure is no run in virtual time, or `None` where the whole of it is one. Round trips of frames are one way
    /// twice, which is said once for all of them.
    pub fn outside_of_run(&self) -> Option<&'static str> {
        match self {
            Quantity::StoreRate { target: Target::Memory, .. } => {
                Some("ours is a quotient of two constants of the platform file: nothing is run")
            }
            Quantity::WriteThenRead { .. } => Some(
                "the fence costs its constant of the platform file, not the wait that is run for rows of fenced stores",
            ),
            _ => None,
        }
    }

    /// The interface by which it is done, or `None` where it is the machine's own.
    pub fn interface(&self) -> Option<Interface> {
        use Quantity as Q;
        match self {
            Q::TransmitLatency { interface, .. }
            | Q::TransmitDone { interface, .. }
            | Q::FrameRate { interface, .. }
            | Q::PingPong { interface, .. } => Some(*interface),
            Q::DescriptorShare { .. } => Some(Interface::Descriptor),
            Q::TraceStamp(stamp) => Some(match stamp {
                Stamp::FirstLineAck
                | Stamp::SecondLineAck
                | Stamp::FirstLoopBackWrite
                | Stamp::SecondLoopBackWrite => Interface::Kpio,
                Stamp::DoorbellAck | Stamp::DescriptorAck | Stamp::PayloadAck | Stamp::PayloadSent => {
                    Interface::Descriptor
                }
            }),
            _ => None,
        }
    }

    /// Bytes of the message, frame or transfer, where it has a size.
    pub fn bytes(&self) -> Option<u64> {
        use Quantity as Q;
        match self {
            Q::StoreTime { bytes, .. }
            | Q::StoreRate { bytes, .. }
            | Q::WriteLatency { bytes }
            | Q::WriteThenRead { bytes }
            | Q::ReadRoundTrip { bytes }
            | Q::TransmitLatency { bytes, .. }
            | Q::TransmitDone { bytes, .. }
            | Q::FrameRate { bytes, .. }
            | Q::PingPong { bytes, .. }
            | Q::DescriptorShare { bytes, .. }
            | Q::DmaReadLatency { bytes, .. }
            | Q::DmaWriteReadLatency { bytes, .. }
            | Q::DmaRate { bytes, .. }
            | Q::DmaPushLatency { bytes }
            | Q::DmaPushRate { bytes }
            | Q::WindowLatency { bytes }
            | Q::MessageLatency { bytes }
            | Q::WindowPingPong { bytes } => Some(*bytes),
            Q::LineInterval | Q::TraceStamp(_) | Q::Multicast { .. } | Q::InterruptLatency => None,
        }
    }
}
