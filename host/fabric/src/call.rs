//! What a program asks of a member, and what it gets.

use core::num::NonZeroU64;

use crate::event::{LocalEvent, RemoteEvent};
use crate::ids::{
    AdapterNumber, InterruptNumber, LocalInterrupt, LocalSegment, MemberRange, Name, NodeId, PairId,
    RemoteInterrupt, RemoteSegment, SegmentId, Ticket,
};
use crate::interrupt::{InterruptKind, Place};
use crate::segment::holder::Holder;
use crate::segment::memory::{Memory, Part};
use crate::sequence::{SequenceStart, SequenceStatus};
use crate::want::Candidate;

/// A call. Times to wait are from the time that the call is made at; `None` is for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Makes a segment. Waits for its name, except if it is private.
    CreateSegment {
        /// Its number; with `is_auto` the first that is tried.
        id: SegmentId,
        /// Takes the next number that is free.
        is_auto: bool,
        /// Its size, ignored if it is empty.
        bytes: u64,
        /// Nobody connects to it.
        is_private: bool,
        /// Its memory is the program's, registered later.
        is_empty: bool,
        /// Events are told as they come, and not waited for.
        has_callback: bool,
    },
    /// Puts the program's memory behind an empty segment; other members can map it or cannot.
    Register {
        local: LocalSegment,
        /// The size of the memory.
        bytes: u64,
        /// Whether other members can map it.
        is_shareable: bool,
    },
    /// Looks for a member that holds a segment together with others, and has it open.
    FindHolder {
        /// Whose segment it is; [`NodeId::GROUPS`]: the fabric's.
        node: NodeId,
        id: SegmentId,
        /// Only among these members. One that is reached is found before those that are not, whatever their numbers.
        among: MemberRange,
    },
    /// Makes this member a holder of a segment, whose memory it has already. Waits for its name, which is refused
    /// ([`Refusal::SegmentidUsed`](crate::Refusal::SegmentidUsed)) if others have it and the holder that it has the memory of is not among them.
    Hold {
        name: Name,
        /// The size of the memory.
        bytes: u64,
        /// Which segment it is.
        group: NonZeroU64,
        /// Of whom the memory is; `None`: it is new.
        of: Option<Holder>,
    },
    /// Lets other members hold a segment together with this one.
    Share {
        local: LocalSegment,
        /// Which segment it is from here on.
        group: NonZeroU64,
    },
    Prepare(LocalSegment, AdapterNumber),
    /// Lets members of other nodes connect over an adapter.
    SetAvailable(LocalSegment, AdapterNumber),
    /// Lets nobody connect any more over an adapter. Connections stay unless they are forced to end.
    SetUnavailable {
        local: LocalSegment,
        adapter: AdapterNumber,
        /// Ends all connections to the segment. Refused ([`Refusal::MaxEntries`](crate::Refusal::MaxEntries)) after some four billion times.
        is_forced: bool,
    },
    /// Asks those who are connected to a segment to disconnect. They stay connected, and are told
    /// ([`RemoteEvent::Disconnect`]).
    Notify(LocalSegment),
    /// Removes a segment that is not used, or whose users are forced off it.
    RemoveSegment {
        local: LocalSegment,
        /// Ends all connections to the segment.
        is_forced: bool,
    },
    /// Maps a part of a segment of this member.
    MapLocal(LocalSegment, Part),
    /// Ends one map of a segment of this member.
    UnmapLocal(LocalSegment),
    /// Waits for an event of a segment of this member.
    WaitLocal {
        local: LocalSegment,
        /// How long to wait.
        timeout_nanos: Option<u64>,
    },
    /// Connects to a segment of a node, as soon as it is available.
    Connect {
        node: NodeId,
        id: SegmentId,
        /// The adapter to go by.
        adapter: AdapterNumber,
        /// How long to try; at 0 once.
        timeout_nanos: Option<u64>,
        /// Returns at once; the outcome is an event.
        is_asynchronous: bool,
        /// Events are told as they come, and not waited for.
        has_callback: bool,
    },
    /// Maps a part of a segment that is connected to.
    MapRemote(RemoteSegment, Part),
    /// Ends one map of a segment that is connected to.
    UnmapRemote(RemoteSegment),
    /// Begins to watch a connection.
    StartSequence(RemoteSegment),
    /// Says what happened to a connection since a sequence began.
    CheckSequence(RemoteSegment, SequenceStart),
    /// Waits for an event of a connection.
    WaitRemote {
        remote: RemoteSegment,
        /// How long to wait.
        timeout_nanos: Option<u64>,
    },
    /// Ends a connection without maps, or the attempt to make one.
    Disconnect(RemoteSegment),
    /// Makes an interrupt. Waits for its number.
    CreateInterrupt {
        /// Its number, which nobody of the node may have; `None`: one that is free.
        number: Option<InterruptNumber>,
        kind: InterruptKind,
    },
    /// Makes an interrupt that is one of several of its number, of this member and others of the node. Waits for its number.
    CreateSharedInterrupt {
        /// Its number, which no interrupt may have that is alone; `None`: one that no other interrupt has, either.
        number: Option<InterruptNumber>,
        is_counting: bool,
    },
    /// Makes an interrupt with messages that is one of several of its number, of members of any nodes. Waits for its number.
    CreateGroupInterrupt {
        /// Its number; `None`: one that no other interrupt of the fabric has that is one of several.
        number: Option<InterruptNumber>,
    },
    /// Connects to one of several interrupts of a number, of a node or, with [`NodeId::GROUPS`], of the fabric. At a time of zero it is connected to only if its member is reached already;
    /// if that is not, it is begun to be reached.
    ConnectSharedInterrupt {
        node: NodeId,
        number: InterruptNumber,
        /// The adapter to go by.
        adapter: AdapterNumber,
        /// The one of them that the registry has told of.
        at: Candidate,
        timeout_nanos: u64,
    },
    /// Removes an interrupt. Who is connected to it sees that when it triggers it.
    RemoveInterrupt(LocalInterrupt),
    /// Connects to an interrupt of a node, as soon as it is there.
    ConnectInterrupt {
        node: NodeId,
        number: InterruptNumber,
        /// Whether it carries messages.
        has_data: bool,
        /// The adapter to go by.
        adapter: AdapterNumber,
        /// How long to try; at 0 once.
        timeout_nanos: Option<u64>,
    },
    /// Ends a connection to an interrupt.
    DisconnectInterrupt(RemoteInterrupt),
    /// Takes the link of an adapter of this node up or down, as this member sees it.
    SetLink(AdapterNumber, bool),
}

/// What becomes of a call that is not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    Now(Value),
    /// It waits; what comes of it is told under this number.
    Wait(Ticket),
}

/// What a call gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing but that it is done.
    Nothing,
    /// A segment that was made, and its number.
    Local(LocalSegment, SegmentId),
    /// A connection, and the size of the segment; zero while it is being made.
    Remote(RemoteSegment, u64),
    /// An interrupt that was made, its number, its kind, and its place on the board.
    Interrupt(LocalInterrupt, InterruptNumber, InterruptKind, Place),
    /// A connection to an interrupt; triggers are made with [`Member::trigger`](crate::Member::trigger).
    Trigger(RemoteInterrupt),
    /// A member that holds what was looked for.
    Holder(Holder),
    /// What is to be mapped, of a segment of this member.
    MapLocal(Memory, Part),
    /// What is to be mapped, of a segment of the other member of a pair.
    MapRemote(PairId, Memory, Part),
    /// A sequence, if it could begin.
    Started(SequenceStatus, Option<SequenceStart>),
    /// What a sequence finds.
    Checked(SequenceStatus),
    /// What happened to a segment of this member.
    LocalEvent(LocalEvent),
    /// What happened to a connection.
    RemoteEvent(RemoteEvent),
}
