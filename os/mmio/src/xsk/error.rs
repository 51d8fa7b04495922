//! Why the rings of an AF_XDP socket cannot be had, or cannot be gone on with.

use std::fmt;

use rustix::io::Errno;

/// The four rings of an AF_XDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XskRing {
    /// Empty chunks, to the kernel.
    Fill,
    /// Frames that came in, from the kernel.
    Receive,
    /// Frames to send, to the kernel.
    Transmit,
    /// Chunks whose frames are sent, from the kernel.
    Completion,
}

impl fmt::Display for XskRing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            XskRing::Fill => "fill",
            XskRing::Receive => "receive",
            XskRing::Transmit => "transmit",
            XskRing::Completion => "completion",
        })
    }
}

/// A step of setting up the memory of an AF_XDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XskStep {
    /// Getting memory for frames.
    Memory,
    /// Telling the kernel where frames lie; it pins their pages.
    Register,
    /// Telling the kernel how large a ring is.
    Size(XskRing),
    /// Asking where in a ring what lies.
    Layout,
    /// Mapping a ring.
    Map(XskRing),
}

impl fmt::Display for XskStep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XskStep::Memory => out.write_str("get memory for frames"),
            XskStep::Register => out.write_str("register and pin the memory for frames"),
            XskStep::Size(ring) => write!(out, "set the size of the {ring} ring"),
            XskStep::Layout => out.write_str("ask for the layout of the rings"),
            XskStep::Map(ring) => write!(out, "map the {ring} ring"),
        }
    }
}

/// What is wrong with the memory of an AF_XDP socket. Except for [`XskError::Setup`] and [`XskError::Sizes`] the kernel
/// broke its side of the contract, and nothing in the rings can be believed from then on.
#[derive(Debug, thiserror::Error)]
pub enum XskError {
    /// The memory cannot be set up.
    #[error("cannot {step} ({bytes} bytes): {errno}")]
    Setup {
        step: XskStep,
        /// Bytes of the memory or ring.
        bytes: usize,
        errno: Errno,
    },
    /// No ring has this many entries.
    #[error("{receive} receive and {transmit} transmit frames: each must be a power of two from 1 to {most}")]
    Sizes {
        /// Frames to receive asked for.
        receive: u32,
        /// Frames to send asked for.
        transmit: u32,
        most: u32,
    },
    /// The kernel's layout of a ring makes no sense.
    #[error(
        "the kernel puts a part of the {ring} ring at byte {offset}, outside its {bytes} bytes or not aligned"
    )]
    Layout {
        ring: XskRing,
        offset: u64,
        /// Bytes of the ring's mapping.
        bytes: usize,
    },
    /// An index cannot be.
    #[error(
        "the indices of the {ring} ring cannot be: producer {producer}, consumer {consumer}, {entries} entries; \
         something wrote over the ring, open the socket again"
    )]
    Index {
        ring: XskRing,
        /// Producer index that the kernel wrote.
        producer: u32,
        /// Consumer index that the kernel wrote.
        consumer: u32,
        /// Entries of the ring.
        entries: u32,
    },
    /// An entry names memory that is not there.
    #[error(
        "the {ring} ring gives {length} bytes at {address:#x} (options {options:#x}): not inside one of the {chunks} \
         chunks of {chunk_bytes} bytes; open the socket again"
    )]
    Address {
        ring: XskRing,
        /// The address inside the memory for frames.
        address: u64,
        /// Bytes of the frame.
        length: u32,
        /// Flags of the entry; none is expected.
        options: u32,
        chunks: u32,
        chunk_bytes: u32,
    },
    /// An entry names a chunk that the kernel was not given.
    #[error("the {ring} ring gives chunk {chunk}, which the kernel does not have; open the socket again")]
    Owner { ring: XskRing, chunk: u32 },
}
