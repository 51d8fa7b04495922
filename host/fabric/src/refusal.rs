//! Why a call is refused, by the names and numbers of SISCI.

/// A refusal. Names are those of SISCI without `SCI_ERR_`; the texts say what it means here. Several are one code of SISCI
/// ([`Refusal::code`]) with other texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u32)]
pub enum Refusal {
    /// Something still uses what was to go.
    #[error("it is in use: it is mapped here, a transfer uses it, or somebody is connected to it")]
    Busy = 0x4000_0900,
    /// Flags that do not go together.
    #[error("these flags do not go together")]
    IllegalFlag = 0x4000_0902,
    /// No memory is left for it.
    #[error("no memory is left for it")]
    Nospc = 0x4000_0904,
    /// No node has an adapter of this number.
    #[error("adapters have numbers below 16")]
    IllegalAdapterno = 0x4000_0908,
    /// This node has no adapter of this number.
    #[error("this node has no such adapter")]
    NoSuchAdapterno = 0x4000_0909,
    /// The time is over.
    #[error("the time is over")]
    Timeout = 0x4000_090a,
    /// Beyond the segment.
    #[error("part of it is outside the segment")]
    OutOfRange = 0x4000_090b,
    /// Nobody of the node has a segment of this number.
    #[error("the node has no such segment")]
    NoSuchSegment = 0x4000_090c,
    /// The segment is there, and not available on the adapter.
    #[error("the segment is not available")]
    ConnectionRefused = 0x4000_090e,
    /// The segment is not connected yet.
    #[error("the segment is not connected yet")]
    SegmentNotConnected = 0x4000_090f,
    /// A size that no segment has.
    #[error("a segment has at least one byte")]
    SizeAlignment = 0x4000_0910,
    /// A handle of nothing.
    #[error("the handle names nothing")]
    IllegalParameter = 0x4000_0912,
    /// The member has as many as it can.
    #[error("there are as many as there can be")]
    MaxEntries = 0x4000_0913,
    /// The segment is not prepared for the adapter.
    #[error("the segment is not prepared for this adapter")]
    SegmentNotPrepared = 0x4000_0914,
    /// Nothing, or something else, is where memory was said to be.
    #[error("memory is not where it was said to be")]
    IllegalAddress = 0x4000_0915,
    /// Not in this state.
    #[error("this is not done in the state that it is in")]
    IllegalOperation = 0x4000_0916,
    /// Another living segment of the node has the number.
    #[error("a segment of this node has that number")]
    SegmentidUsed = 0x4000_0918,
    /// The kernel refuses something.
    #[error("the system refuses something that the fabric needs")]
    System = 0x4000_0919,
    /// What was waited on is removed.
    #[error("it was removed while this waited")]
    Cancelled = 0x4000_091a,
    /// The segment that was connected to is gone.
    #[error("what it was connected to is gone")]
    NotConnected = 0x4000_091b,
    /// The caller's buffer is shorter than the message.
    #[error("the buffer is shorter than the message")]
    Overflow = 0x4000_091f,
    /// No node of this number is configured.
    #[error("no such node is configured")]
    NoSuchNodeid = 0x4000_0a00,
    /// No member of the node lives.
    #[error("nobody of the node answers")]
    NodeNotResponding = 0x4000_0a02,
    /// The other side's adapter is down.
    #[error("the link of the other node is down")]
    NoRemoteLinkAccess = 0x4000_0a04,
    /// This side's adapter is down.
    #[error("the link of this node is down")]
    NoLinkAccess = 0x4000_0a05,
    /// What was to be copied may not have been.
    #[error("the other side went, or a link was down, and what was to be copied may not have been")]
    TransferFailed = 0x4000_0a06,
    /// Members of this kind have no such thing.
    #[error("the members of this fabric have no such thing")]
    NotSupported = 0x4000_0e00,
    /// Nobody of the node has an interrupt of this number.
    #[error("the node has no such interrupt")]
    NoSuchIntno = 0x4000_0e0a,
    /// Another living interrupt of the node has the number.
    #[error("an interrupt of this node has that number")]
    IntnoUsed = 0x4000_0e0b,
    /// The time is over, and the node has no such segment.
    #[error("the time is over, and the node has no such segment")]
    TimeoutNoSegment = TEXT_OF_ITS_OWN | 0x090c,
    /// The time is over, and the segment is not available.
    #[error("the time is over, and the segment is not available on this adapter")]
    TimeoutNotAvailable = TEXT_OF_ITS_OWN | 0x090e,
    /// The time is over, and no member of the node has answered.
    #[error("the time is over, and nobody of the node answers")]
    TimeoutNoAnswer = TEXT_OF_ITS_OWN | 0x0a02,
    /// The time is over, and the node has no such interrupt.
    #[error("the time is over, and the node has no such interrupt")]
    TimeoutNoInterrupt = TEXT_OF_ITS_OWN | 0x0e0a,
    /// Another living segment of the group has another size.
    #[error("the group has another size")]
    GroupOfAnotherSize = TEXT_OF_ITS_OWN | 0x0918,
}

/// Numbers with this bit are no codes of SISCI.
const TEXT_OF_ITS_OWN: u32 = 0x8000_0000;

impl Refusal {
    /// The code of SISCI.
    pub const fn code(self) -> u32 {
        match self {
            Refusal::TimeoutNoSegment
            | Refusal::TimeoutNotAvailable
            | Refusal::TimeoutNoAnswer
            | Refusal::TimeoutNoInterrupt => Refusal::Timeout as u32,
            Refusal::GroupOfAnotherSize => Refusal::SegmentidUsed as u32,
            other => other as u32,
        }
    }

    /// Whether a time was over, whatever was found until then.
    pub const fn is_timeout(self) -> bool {
        self.code() == Refusal::Timeout as u32
    }

    /// What an attempt is refused with that has failed for this reason until its time was over.
    pub(crate) fn in_time(self) -> Self {
        match self {
            Refusal::NoSuchSegment => Refusal::TimeoutNoSegment,
            Refusal::ConnectionRefused => Refusal::TimeoutNotAvailable,
            Refusal::NodeNotResponding => Refusal::TimeoutNoAnswer,
            Refusal::NoSuchIntno => Refusal::TimeoutNoInterrupt,
            _ => Refusal::Timeout,
        }
    }
}
