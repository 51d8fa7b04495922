//! What can go wrong, with the numbers and what to do about it. Full and empty are not errors.

use beeline_contract_link::LinkError;
use beeline_spec::Interface;
use beeline_spec::caps::CapsError;
use beeline_window::SendError;

use crate::port::status::QueueStatus;

/// Why a port or one of its queues cannot be brought up, read, recovered or closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// The link refused a request.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The mark register reads as that of another device, or of none.
    #[error(
        "register 0 reads {magic:#018x}, not the mark of a Beeline NIC; check that the path names a Beeline \
         device and that its BAR is mapped (all ones mean that nothing answers)"
    )]
    NotBeeline { magic: u64 },
    /// A device made for other software.
    #[error(
        "the device has register map {found_major}.{found_minor}, this driver speaks {supported_major}.x; \
         install the release that goes with the device"
    )]
    Version {
        /// Major version of the device.
        found_major: u16,
        /// Minor version of the device.
        found_minor: u16,
        /// Major version of this driver.
        supported_major: u16,
    },
    /// The capability list does not lie where one can be.
    #[error(
        "the capability list would be {bytes} bytes at {offset:#x}, outside its place; the device is faulty"
    )]
    CapsPlace {
        /// Byte offset of the list.
        offset: u32,
        /// Bytes of the list.
        bytes: u32,
    },
    /// The capability list cannot be read.
    #[error("{0}; the device is faulty")]
    Caps(CapsError),
    /// The capability list says something impossible, or not what is needed.
    #[error(
        "the device's capability `{name}` is {value:?}, which no Beeline NIC can mean; the device is faulty"
    )]
    Capability {
        /// Name of the capability.
        name: &'static str,
        /// Its value; `None` when the list is silent.
        value: Option<u64>,
    },
    /// A queue was asked for before the port was ready.
    #[error("the port is still being brought up; call `poll` until it says ready")]
    NotReady,
    #[error("queue {queue} of a port that has {queues} (0 to {})", queues.saturating_sub(1))]
    NoSuchQueue {
        /// Queue asked for.
        queue: u32,
        queues: u32,
    },
    /// The device does not have this interface.
    #[error("the device has no `{interface}` interface (bits {mask:#x}); choose another with --interface")]
    NoInterface {
        /// Interface asked for.
        interface: Interface,
        /// The device's interface bits.
        mask: u32,
    },
    /// The device cannot do what the queue's configuration asks for.
    #[error("the device does not {feature}; leave that out of the queue's configuration")]
    NoFeature { feature: &'static str },
    /// The link's window and the device's register disagree, or the size is no window.
    #[error(
        "queue {queue} has a window of {register} lines by its register and of {window} by the link; link and \
         device must agree on a power of two"
    )]
    WindowSize {
        queue: u32,
        /// Lines by the register.
        register: u64,
        /// Lines by the link.
        window: u32,
    },
    /// Two halves of a queue that do not fit each other.
    #[error("the halves of queue {queue} have {what} {first} and {second}; configure both with the same")]
    HalvesDiffer {
        queue: u32,
        /// Name of the setting in which the halves differ.
        what: &'static str,
        first: u64,
        second: u64,
    },
    /// Two halves that do not belong to one queue.
    #[error("halves of queues {first} and {second} cannot be opened together; open each by itself")]
    DifferentQueues {
        /// Queue of the first half.
        first: u32,
        /// Queue of the second half.
        second: u32,
    },
    /// A setting is out of range.
    #[error("{what} is {value}, it must be {must}; change it in the queue's configuration")]
    Config {
        /// Name of the setting.
        what: &'static str,
        value: u64,
        must: Must,
    },
    /// The device did not do what was asked in time, or gave no answer.
    #[error(
        "the device did not {what} within {waited_ns} ns (register {offset:#x}, last value {last:?}); if the NIC \
         process is alive and not starved of CPU, reset the port"
    )]
    NoAnswer {
        /// The event that did not come.
        what: &'static str,
        /// Register read.
        offset: u32,
        /// Last value read; `None` when none was.
        last: Option<u64>,
        /// How long it was awaited, in ns of the caller's clock.
        waited_ns: u64,
    },
    /// A queue failed the moment it was started.
    #[error(
        "queue {queue} failed while it was started: {status}; open it again, with another epoch if it was quarantined"
    )]
    FailedAtStart { queue: u32, status: QueueStatus },
    /// The ticket is not one of this port's.
    #[error("operation {ticket} is not one of this port's, or its result was taken before")]
    NoSuchOperation {
        /// The ticket's number.
        ticket: u64,
    },
}

/// A condition that a setting must meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Must {
    /// A power of two between the two numbers, ends included.
    PowerOfTwo(u64, u64),
    /// A multiple of the first between the others.
    MultipleOf(u64, u64, u64),
    /// A number between the two, ends included.
    Between(u64, u64),
}

impl core::fmt::Display for Must {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Must::PowerOfTwo(low, high) => write!(out, "a power of two from {low} to {high}"),
            Must::MultipleOf(unit, low, high) => write!(out, "a multiple of {unit} from {low} to {high}"),
            Must::Between(low, high) => write!(out, "from {low} to {high}"),
        }
    }
}

impl Must {
    pub(crate) const fn holds(self, value: u64) -> bool {
        match self {
            Must::PowerOfTwo(low, high) => value.is_power_of_two() && low <= value && value <= high,
            Must::MultipleOf(unit, low, high) => value.is_multiple_of(unit) && low <= value && value <= high,
            Must::Between(low, high) => low <= value && value <= high,
        }
    }

    /// `value` of setting `what`, or the error that says what it must be.
    pub(crate) fn check(self, what: &'static str, value: u64) -> Result<(), PortError> {
        if self.holds(value) { Ok(()) } else { Err(PortError::Config { what, value, must: self }) }
    }
}

/// Reasons for which a frame cannot be sent, now or ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TxError {
    /// The frame is longer than the device or the window bears.
    #[error("a frame of {bytes} bytes; this queue carries {min_bytes} to {max_bytes}")]
    Length {
        /// Bytes of the frame.
        bytes: usize,
        /// Bytes of the shortest frame: an Ethernet header.
        min_bytes: usize,
        /// Bytes of the longest frame.
        max_bytes: usize,
    },
    /// The window's writer refused; wild credits come out here.
    #[error(transparent)]
    Window(#[from] SendError),
    /// The device's count of finished work runs backwards or ahead.
    #[error(
        "the device says it has finished {found} {unit}, between {low} and {high} are possible; the device is \
         faulty, close the queue and open it again"
    )]
    WildCount {
        /// What is counted: `descriptors`, `lines` or `entries`.
        unit: &'static str,
        /// The count read.
        found: u64,
        /// Count of finished frames at the last look.
        low: u64,
        /// Count of frames that were handed over.
        high: u64,
    },
    /// The header of an entry that the device has is neither as it was passed nor given back.
    #[error(
        "entry {entry} was passed to the device as {passed:#018x} and is now {found:#018x}, which does not give it \
         back; the device is faulty, close the queue and open it again"
    )]
    BadReturn {
        /// Absolute count of the entry.
        entry: u64,
        /// The word read.
        found: u64,
        /// The word stored.
        passed: u64,
    },
    /// kPIO+WC has no escapes: a word equal to its signature, or to a blank window's blank, cannot be carried.
    #[error(
        "the frame's word at byte {at_byte} is {word:#018x}, the end-of-packet signature or the blank of the \
         window; kPIO+WC cannot carry it (its paper loses such a frame), send it by mmio or descriptor"
    )]
    HoldsMark {
        /// Byte offset of the word.
        at_byte: usize,
        word: u64,
    },
}

/// What the device wrote into receive memory that it must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RxError {
    /// The word at the next frame's start is no header.
    #[error(
        "line {line} of the receive ring (frame {frame}) starts with {word:#018x}, which is no frame header; the \
         device is faulty, close the queue and open it again"
    )]
    BadHeader {
        /// Absolute line count of the header.
        line: u64,
        /// Frames received before.
        frame: u64,
        /// The word as read.
        word: u64,
    },
    /// The head of an entry that was read is none: of another place, epoch or kind.
    #[error(
        "entry {entry} reads {word:#018x}, which is not its head; the device is faulty, or gone where it is all ones"
    )]
    BadEntry {
        /// Absolute count of the entry.
        entry: u64,
        /// The word as read.
        word: u64,
    },
    /// The frame in memory is not the one that its entry tells of.
    #[error(
        "entry {entry} tells of a frame of {entry_bytes} bytes in memory, where the next one has {found_bytes}; the \
         device is faulty, close the queue and open it again"
    )]
    OtherLength {
        /// Absolute count of the entry.
        entry: u64,
        entry_bytes: u32,
        /// Bytes of the frame in memory.
        found_bytes: u32,
    },
    /// A completion with bits that must be zero.
    #[error(
        "completion {frame} of the receive ring is {word:#018x}, which is no completion; the device is faulty, \
         close the queue and open it again"
    )]
    BadCompletion {
        /// Absolute count of the completion.
        frame: u64,
        /// The word as read.
        word: u64,
    },
    /// A frame longer than what it lies in.
    #[error(
        "frame {frame} claims {bytes} bytes where {max_bytes} are possible; the device is faulty, close the queue \
         and open it again"
    )]
    BadLength {
        /// Frames received before.
        frame: u64,
        /// Bytes claimed.
        bytes: u32,
        /// Bytes possible.
        max_bytes: u32,
    },
}
