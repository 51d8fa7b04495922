//! What members do, and what comes of it.

/// Each adapter, to an owner; to who connects, one that is up.
pub const ANY: u8 = u8::MAX;

/// Something that a member does or that happens to it, with what comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    pub who: usize,
    pub call: Call,
    pub answer: Answer,
}

/// Adapters, nodes and connections are numbers from zero on; an adapter may be [`ANY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    Create {
        is_empty: bool,
    },
    Register,
    Prepare(u8),
    SetAvailable(u8),
    SetUnavailable {
        by: u8,
        is_forced: bool,
    },
    /// Asks those who are connected to disconnect.
    Notify,
    Remove {
        is_forced: bool,
    },
    /// Waits for an event of the segment, or asks for one.
    WaitLocal {
        is_blocking: bool,
    },
    /// Connects at once or not at all.
    Connect {
        at: usize,
        node: u8,
        by: u8,
    },
    /// Begins to connect, for as long as it takes.
    Seek {
        at: usize,
        node: u8,
        by: u8,
    },
    Disconnect(usize),
    StartSequence(usize),
    CheckSequence(usize),
    /// Waits for an event of a connection, or asks for one.
    WaitRemote {
        at: usize,
        is_blocking: bool,
    },
    /// Makes an interrupt of the group.
    CreateInterrupt,
    RemoveInterrupt,
    /// Connects to the interrupt of one member, at once or not at all.
    ConnectInterrupt {
        at: usize,
        owner: usize,
        by: u8,
    },
    DisconnectInterrupt(usize),
    Trigger(usize),
    /// Asks which members have triggered the member's interrupt.
    Hear,
    SetLink {
        by: u8,
        is_up: bool,
    },
    Kill,
    /// The member looks, which another one has asked for.
    Look,
    /// The member learns of another one's death.
    Learn(usize),
    /// Attempts to connect are made again.
    Tick,
    /// A program is told what it waits for, or what its callback is for.
    Told(Of),
}

/// What an event is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Of {
    Segment,
    Connection(usize),
}

/// What comes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    Done,
    /// Done, and the call that waited for an event of it is cancelled.
    DoneAndCancelled,
    /// A segment or an interrupt was made, in an entry that is called by the first that had it.
    Created {
        entry: u8,
    },
    Refused(Refused),
    Event(Event),
    /// Nothing has happened.
    NoEvent,
    /// The call waits.
    Waits,
    Sequence(Sequence),
    /// A bit for each member that has triggered.
    Heard(u8),
}

/// The documented codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refused {
    Busy,
    ConnectionRefused,
    IllegalOperation,
    NoLinkAccess,
    NoRemoteLinkAccess,
    NoSuchSegment,
    NotConnected,
    NodeNotResponding,
    SegmentNotConnected,
    SegmentNotPrepared,
    SegmentidUsed,
}

/// Of segments with the node or the adapter, of connections with nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    Connect(u8),
    Disconnect(u8),
    LostBy(u8),
    NotOperational(u8),
    Operational(u8),
    Connected,
    IsNotOperational,
    IsOperational,
    IsLost,
    /// The owner asks to be disconnected from.
    IsAsked,
}

/// What a sequence finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sequence {
    Ok,
    Retriable,
    NotRetriable,
    Pending,
}
