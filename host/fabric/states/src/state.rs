//! What a few members have: segments, connections, links, and what each program has been told.

/// Members, the owners of segments first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub members: Vec<Member>,
}

/// A process that has joined, or has died since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Member {
    pub is_dead: bool,
    /// A bit for each adapter whose link is down.
    pub down: u8,
    /// How often its links have changed.
    pub link_changes: u8,
    /// A bit for each member that it shares words with.
    pub contacts: u8,
    /// A bit for each member whose death it has learned of.
    pub known_dead: u8,
    /// It has been told to look, and has not looked yet.
    pub is_rung: bool,
    /// It looks: whatever waits for something that has happened is told it before anything else happens.
    pub is_looking: bool,
    pub segment: Option<Segment>,
    /// Which entry each of its segments, or of its interrupts, so far had; an entry is called by the first of them.
    pub entries: Vec<u8>,
    /// How often it has taken a segment from its users and kept it.
    pub forces: u8,
    pub connections: Vec<Connection>,
    /// How often it has connected.
    pub connects: u8,
    pub interrupt: Option<Interrupt>,
    /// A bit for each entry whose interrupt was removed while members were connected to it: a member may find out later that nobody is any more.
    pub removed_under_users: u8,
    /// As many places as for connections to segments.
    pub triggers: Vec<Option<Trigger>>,
    /// A bit for each member that it has triggered. No rule asks for this: an interrupt that comes later must not hear of it.
    pub has_triggered: u8,
}

/// An interrupt of the group that its member has not removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interrupt {
    /// The how manieth of its member it is.
    pub life: u8,
    /// A bit for each member that has triggered it.
    pub heard: u8,
}

/// A connection to the interrupt of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Trigger {
    pub owner: u8,
    pub life: u8,
    pub by: u8,
}

/// A segment that its member has not removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The how manieth of its member it is.
    pub life: u8,
    /// How often its users were forced off it.
    pub forced: u8,
    pub is_empty: bool,
    /// Of each adapter that it is prepared for, what its program has been told of the link.
    pub prepared: Vec<Option<ToldOfLink>>,
    /// A bit for each adapter by which it is available.
    pub available: u8,
    pub listener: Listener,
    /// Of each member.
    pub told: Vec<ToldOfUser>,
}

/// What a program has been told of one member's connections to its segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ToldOfUser {
    /// How often the member was forced off when it was told of these.
    pub forced: u8,
    pub count: i8,
    /// Connections that their program has ended, and that were not told of as ended yet.
    pub ended: u8,
}

/// Who is told of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Listener {
    Nobody,
    /// A call waits for the next event.
    Waiting,
    /// Each event is told as it comes.
    Callback,
}

/// What a program has been told of a link of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToldOfLink {
    /// That it is up; whether it has changed since.
    Up {
        is_changed: bool,
    },
    Down,
}

/// What a member has in one of the places for connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Connection {
    None,
    /// An attempt to connect to a node's segment by an adapter, which nothing but its program ends.
    Connecting {
        node: u8,
        by: u8,
        listener: Listener,
    },
    Made(Made),
}

/// A connection that was made, and may be lost since.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Made {
    pub owner: u8,
    pub life: u8,
    pub forced: u8,
    /// A bit for each adapter that it may go by.
    pub paths: u8,
    pub listener: Listener,
    pub told: Told,
    /// The owner has asked to be disconnected from since that was told.
    pub is_asked: bool,
    pub sequence: Option<Started>,
    /// It was taken away by force. Nothing but the properties asks for this.
    pub is_forced: bool,
    /// Its program has been told that it is made. Nothing but the properties asks for this.
    pub was_told_of: bool,
}

/// A sequence that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Started {
    /// The adapter that the connection went by.
    pub by: u8,
    /// Whether a link of that has changed since.
    pub is_changed: bool,
}

/// What a program has been told of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Told {
    /// That it is being made.
    Connecting,
    /// That it is operational; whether a link has changed since, if it may go by one adapter alone.
    Up {
        is_changed: bool,
    },
    Down,
    Lost,
}

/// How a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    Operational,
    NotOperational,
    Gone,
}

impl Segment {
    /// A bit for each adapter that it is prepared for.
    pub(crate) fn has_prepared(&self) -> u8 {
        self.prepared.iter().zip(0..).fold(0, |bits, (told, by)| bits | u8::from(told.is_some()) << by)
    }
}

impl Member {
    pub(crate) fn is_up(&self, by: u8) -> bool {
        self.down & 1 << by == 0
    }

    pub(crate) fn knows_dead(&self, other: usize) -> bool {
        self.known_dead & 1 << other != 0
    }

    pub(crate) fn has_contact(&self, other: usize) -> bool {
        self.contacts & 1 << other != 0
    }

    pub(crate) fn made(&self) -> impl Iterator<Item = &Made> {
        self.connections.iter().filter_map(|connection| match connection {
            Connection::Made(made) => Some(made),
            _ => None,
        })
    }

    /// Which of its segments or interrupts it has.
    pub(crate) fn life(&self) -> Option<u8> {
        self.segment.as_ref().map(|segment| segment.life).or(self.interrupt.map(|interrupt| interrupt.life))
    }

    pub(crate) fn triggers(&self) -> impl Iterator<Item = &Trigger> {
        self.triggers.iter().flatten()
    }
}

impl State {
    /// The connections of a member to an owner's segment, as far as the owner can know of them.
    pub(crate) fn users(&self, owner: usize, user: usize) -> i8 {
        let Some(segment) = &self.members[owner].segment else { return 0 };
        if self.members[owner].knows_dead(user) {
            return 0;
        }
        let is_one = |made: &&Made| {
            (usize::from(made.owner), made.life, made.forced) == (owner, segment.life, segment.forced)
        };
        self.members[user].made().filter(is_one).count() as i8
    }

    /// Whether anybody's connection, lost or not, is to a segment or an interrupt that had this entry.
    pub(crate) fn is_claimed(&self, owner: usize, entry: u8) -> bool {
        let entries = &self.members[owner].entries;
        let is_it = |of: u8, life: u8| usize::from(of) == owner && entries[usize::from(life)] == entry;
        let is_of = |made: &Made| is_it(made.owner, made.life);
        let triggers = |trigger: &Trigger| is_it(trigger.owner, trigger.life);
        (0..self.members.len())
            .filter(|user| !self.members[owner].knows_dead(*user))
            .any(|user| self.members[user].made().any(is_of) || self.members[user].triggers().any(triggers))
    }

    pub(crate) fn standing(&self, user: usize, made: &Made) -> Standing {
        let owner = &self.members[usize::from(made.owner)];
        let is_there = owner
            .segment
            .as_ref()
            .is_some_and(|segment| (segment.life, segment.forced) == (made.life, made.forced));
        if !is_there || self.members[user].knows_dead(usize::from(made.owner)) {
            Standing::Gone
        } else if self.path(user, made).is_some() {
            Standing::Operational
        } else {
            Standing::NotOperational
        }
    }

    /// The adapter that a connection goes by: the first whose links are up at both ends.
    pub(crate) fn path(&self, user: usize, made: &Made) -> Option<u8> {
        let down = self.members[user].down | self.members[usize::from(made.owner)].down;
        let up = made.paths & !down;
        (up != 0).then(|| up.trailing_zeros() as u8)
    }
}
