//! How much of everything there is, so that states have an end.

use crate::step::ANY;

/// What members may do.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The node of each member.
    pub nodes: Vec<u8>,
    /// So many of the first members make segments, one at a time each. The others connect.
    pub owners: usize,
    pub adapters: u8,
    /// Segments that each owner makes, one after another.
    pub lives: u8,
    /// Connections that a member has at the same time.
    pub connections: usize,
    /// Connections that a member makes.
    pub connects: u8,
    /// Changes of the links of each member.
    pub link_changes: u8,
    /// How often an owner takes a segment from its users and keeps it.
    pub forces: u8,
    pub deaths: u8,
    /// Whoever names an adapter may name [`ANY`](crate::ANY) of them.
    pub has_any: bool,
    /// Owners ask their users to disconnect.
    pub has_notices: bool,
    /// Owners make interrupts, all of one group, in place of segments; the others trigger them.
    pub is_of_interrupts: bool,
    /// Segments are made empty, too.
    pub has_empty: bool,
    /// Connections are made with and without waiting.
    pub has_seekers: bool,
    pub has_sequences: bool,
    /// Calls wait for events, beside those that ask for one.
    pub has_waits: bool,
    /// Every segment and every connection has a callback.
    pub has_callbacks: bool,
    /// What is on its way arrives before anything else happens.
    pub is_prompt: bool,
    /// A rule that is left out, to see that the properties find it.
    pub fault: Option<Fault>,
}

/// A rule of the fabric that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A segment is removed under its users, without force.
    RemovalForgetsUsers,
    EntryIsUsedAgainUnderAClaim,
    ConnectDoesNotRing,
    DisconnectDoesNotRing,
    ForceDoesNotRing,
    LinkDoesNotRing,
    NotifyDoesNotRing,
    /// The end of one connection counts as that of two.
    DeathIsTwoEvents,
    LostBeforeConnect,
}

impl Scope {
    /// An owner and one member that connects to it, once at a time.
    pub fn pair() -> Self {
        Scope {
            nodes: vec![0, 1],
            owners: 1,
            adapters: 1,
            lives: 1,
            connections: 1,
            connects: 1,
            link_changes: 0,
            forces: 0,
            deaths: 0,
            has_any: false,
            has_notices: false,
            is_of_interrupts: false,
            has_empty: false,
            has_seekers: false,
            has_sequences: false,
            has_waits: false,
            has_callbacks: false,
            is_prompt: false,
            fault: None,
        }
    }

    /// Segments that come and go under their users.
    pub fn lives() -> Self {
        Scope { lives: 3, connections: 2, connects: 3, forces: 1, has_empty: true, ..Scope::pair() }
    }

    /// As [`Scope::lives`], with calls that wait.
    pub fn waits() -> Self {
        Scope {
            lives: 2,
            connections: 2,
            connects: 2,
            forces: 1,
            deaths: 1,
            has_waits: true,
            ..Scope::pair()
        }
    }

    /// Links that go down and come up under segments, connections and sequences.
    pub fn links() -> Self {
        Scope {
            connects: 2,
            link_changes: 3,
            has_seekers: true,
            has_sequences: true,
            has_waits: true,
            ..Scope::pair()
        }
    }

    /// Two adapters with links of their own.
    pub fn adapters() -> Self {
        Scope { adapters: 2, connections: 2, connects: 2, link_changes: 1, ..Scope::pair() }
    }

    /// As [`Scope::adapters`], of one connection that may go on by the other adapter when a link is down.
    pub fn any() -> Self {
        Scope {
            adapters: 2,
            link_changes: 2,
            has_any: true,
            has_seekers: true,
            has_sequences: true,
            has_callbacks: true,
            ..Scope::pair()
        }
    }

    /// An owner asks its user to disconnect, who is told of other things beside.
    pub fn notices() -> Self {
        Scope {
            connects: 2,
            link_changes: 1,
            forces: 1,
            has_notices: true,
            has_seekers: true,
            has_waits: true,
            ..Scope::pair()
        }
    }

    /// Interrupts of one group that members of two nodes make, and one member that triggers them.
    pub fn groups() -> Self {
        Scope {
            nodes: vec![0, 1, 1],
            owners: 2,
            lives: 2,
            connections: 2,
            connects: 2,
            deaths: 1,
            is_of_interrupts: true,
            ..Scope::pair()
        }
    }

    /// Two members connect to a third one, and any of them dies.
    pub fn deaths() -> Self {
        Scope {
            nodes: vec![0, 1, 2],
            lives: 2,
            forces: 1,
            deaths: 2,
            has_seekers: true,
            has_callbacks: true,
            ..Scope::pair()
        }
    }

    /// Two members of one node, whose segments have one number, and who connects.
    pub fn names() -> Self {
        Scope { nodes: vec![0, 0, 1], owners: 2, lives: 2, deaths: 1, has_seekers: true, ..Scope::pair() }
    }

    /// All of them, by name.
    pub fn all() -> [(&'static str, Scope); 9] {
        [
            ("lives", Scope::lives()),
            ("waits", Scope::waits()),
            ("links", Scope::links()),
            ("adapters", Scope::adapters()),
            ("any", Scope::any()),
            ("notices", Scope::notices()),
            ("groups", Scope::groups()),
            ("deaths", Scope::deaths()),
            ("names", Scope::names()),
        ]
    }

    /// A bit for each adapter that a number means.
    pub(crate) fn adapters_of(&self, by: u8) -> u8 {
        if by == ANY { (1 << self.adapters) - 1 } else { 1 << by }
    }

    /// The numbers that programs name an adapter by.
    pub(crate) fn numbers_of_adapters(&self) -> impl Iterator<Item = u8> {
        (0..self.adapters).chain(self.has_any.then_some(ANY))
    }
}
