//! Numbers that must not be mixed.

use crate::refusal::Refusal;

/// Adapters of a node.
pub(crate) const ADAPTERS: u8 = 16;

/// A time of the embedding program's monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub u64);

impl Nanos {
    pub(crate) fn after(self, nanos: u64) -> Self {
        Nanos(self.0.saturating_add(nanos))
    }
}

/// A configured node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub u16);

impl NodeId {
    /// The number under which members of all nodes find groups. No node has it.
    pub const GROUPS: NodeId = NodeId(252);
}

/// The number of a segment, by which members of other nodes find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentId(pub u32);

/// The number of an interrupt, by which members find it. Plain interrupts and data interrupts have numbers of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InterruptNumber(pub u32);

impl InterruptNumber {
    /// The number of an interrupt that has a name: 2^31 and 31 bits of the name's FNV-1a, so that whoever knows the name connects. Programs
    /// give other interrupts smaller numbers.
    pub fn of_name(name: &[u8]) -> Self {
        let hash = name
            .iter()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
        InterruptNumber(hash | 1 << 31)
    }
}

/// What is found under a name, and what an entry of a board is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameKind {
    Segment,
    /// An interrupt that carries nothing.
    Interrupt,
    /// One of several interrupts that have one number and carry nothing. They are found as [`NameKind::Interrupt`].
    SharedInterrupt,
    /// An interrupt that carries messages.
    DataInterrupt,
    /// One of several interrupts of members of any nodes that have one number and carry messages.
    GroupInterrupt,
    /// A segment that members of any nodes hold together.
    Group,
}

impl NameKind {
    /// Whether several members may each have an interrupt of one name of this kind.
    pub fn is_of_several(self) -> bool {
        matches!(self, NameKind::SharedInterrupt | NameKind::GroupInterrupt)
    }

    /// Whether names of this kind are those of [`NodeId::GROUPS`], and not of the node of who has them.
    pub fn is_of_fabric(self) -> bool {
        matches!(self, NameKind::Group | NameKind::GroupInterrupt)
    }
}

/// A name of a node: of a segment or an interrupt, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    pub kind: NameKind,
    /// Its number among those of its kind.
    pub number: u32,
}

impl Name {
    /// The name under which others look for a segment.
    pub fn segment(id: SegmentId) -> Self {
        Name { kind: NameKind::Segment, number: id.0 }
    }

    /// The name under which others look for a segment of a node, or of the fabric if the node is [`NodeId::GROUPS`].
    pub fn segment_of(node: NodeId, id: SegmentId) -> Self {
        let kind = if node == NodeId::GROUPS { NameKind::Group } else { NameKind::Segment };
        Name { kind, number: id.0 }
    }

    /// The name of one of several interrupts of a node, or of the fabric if the node is [`NodeId::GROUPS`].
    pub fn one_of_several(node: NodeId, number: InterruptNumber) -> Self {
        let kind = if node == NodeId::GROUPS { NameKind::GroupInterrupt } else { NameKind::SharedInterrupt };
        Name { kind, number: number.0 }
    }

    /// The refusal of who looks for it where it is not.
    pub(crate) fn missing(self) -> Refusal {
        match self.kind {
            NameKind::Segment | NameKind::Group => Refusal::NoSuchSegment,
            NameKind::Interrupt
            | NameKind::SharedInterrupt
            | NameKind::DataInterrupt
            | NameKind::GroupInterrupt => Refusal::NoSuchIntno,
        }
    }

    /// Whether who looks for this finds what has the name `other`.
    pub(crate) fn finds(self, other: Name) -> bool {
        let is_one_of_several = other.kind == NameKind::SharedInterrupt && self.kind == NameKind::Interrupt;
        self.number == other.number && (self.kind == other.kind || is_one_of_several)
    }
}

/// The number under which a member is offered, random and not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberNumber(pub u64);

impl MemberNumber {
    /// A number for a member of a node, of 48 random bits. Whoever knows it knows the node: names of groups say no more of a member.
    pub fn new(node: NodeId, random: u64) -> Self {
        MemberNumber(u64::from(node.0) << 48 | random >> 16)
    }

    /// The node that it was made for.
    pub fn node(self) -> NodeId {
        NodeId((self.0 >> 48) as u16)
    }
}

/// Members by their numbers: those between two of them, those beyond one, or all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberRange {
    /// Only those with larger numbers than this one.
    pub above: Option<MemberNumber>,
    /// Only those with smaller numbers than this one.
    pub below: Option<MemberNumber>,
}

impl MemberRange {
    pub(crate) fn has(self, member: MemberNumber) -> bool {
        self.above.is_none_or(|above| member > above) && self.below.is_none_or(|below| member < below)
    }

    /// All of them but one that is among them: those above it, and those below it.
    pub fn without(self, member: MemberNumber) -> [Self; 2] {
        [MemberRange { above: Some(member), ..self }, MemberRange { below: Some(member), ..self }]
    }
}

/// An entry of a member's board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub u16);

/// An adapter of a node, 0 to 15, or [`AdapterNumber::ANY`] of them. Adapters of one number are joined to each other, and to no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AdapterNumber(u8);

impl AdapterNumber {
    /// Of who connects: whichever adapter is up at both ends, and another one from when that is down. Of who makes a segment: each
    /// adapter of its node. No adapter has it as its number.
    pub const ANY: AdapterNumber = AdapterNumber(u8::MAX);

    /// That of what goes by none.
    pub(crate) const FIRST: AdapterNumber = AdapterNumber(0);

    /// The adapter of a number.
    ///
    /// # Errors
    /// [`Refusal::IllegalAdapterno`]: no node has so many.
    pub fn new(number: u32) -> Result<Self, Refusal> {
        u8::try_from(number)
            .ok()
            .filter(|number| *number < ADAPTERS)
            .map(AdapterNumber)
            .ok_or(Refusal::IllegalAdapterno)
    }

    /// The number, 0 to 15; 255 is that of [`AdapterNumber::ANY`].
    pub fn number(self) -> u32 {
        self.0.into()
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// A bit for each adapter that it names.
    pub fn bits(self) -> u16 {
        if self == AdapterNumber::ANY { u16::MAX } else { 1 << self.0 }
    }
}

/// Declares numbers that a member gives out, each once.
macro_rules! given_once {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub(crate) u64);
    )*};
}

given_once! {
    /// A segment that this member has made.
    LocalSegment,
    /// A segment that this member has connected to, or is connecting to.
    RemoteSegment,
    /// An interrupt that this member has made.
    LocalInterrupt,
    /// An interrupt that this member has connected to.
    RemoteInterrupt,
    /// A call that waits; what comes of it is told under this number.
    Ticket,
    /// What this member has with another one in one direction: it uses the other's segments, or is used.
    PairId,
    /// A want that is answered.
    AskId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_a_member_says_its_node() {
        let number = MemberNumber::new(NodeId(251), u64::MAX);
        assert_eq!((number.node(), number.0), (NodeId(251), 251 << 48 | u64::MAX >> 16));
    }

    #[test]
    fn number_of_a_name_is_that_of_fnv_1a_above_all_others() {
        // Published values of the hash.
        let numbers = ["", "a", "foobar"].map(|name| InterruptNumber::of_name(name.as_bytes()).0);
        assert_eq!(numbers, [0x811c_9dc5, 0xe40c_292c, 0xbf9c_f968]);
    }

    #[test]
    fn number_of_an_adapter_is_below_sixteen() {
        assert_eq!(AdapterNumber::new(15).map(|it| (it.index(), it.bits())), Ok((15, 0x8000)));
        for number in [16, 255, 256, u32::MAX] {
            assert_eq!(AdapterNumber::new(number), Err(Refusal::IllegalAdapterno));
        }
    }
}
