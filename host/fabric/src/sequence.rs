//! Sequences: whether anything happened to a connection while a program stored.

use beeline_contract_adapter::ViewPort;

use crate::board::layout::{EntryState, Phase};
use crate::board::{read_group, read_life, read_link, read_state, words_of_presence};
use crate::ids::{AdapterNumber, Slot};
use crate::link::{LinkWord, Paths};

/// What a sequence finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceStatus {
    /// Nothing happened.
    Ok,
    /// A link was down, and is up again or the connection goes by another adapter since: what was stored may be stored again, in a new
    /// sequence.
    Retriable,
    /// The segment or its member is gone.
    NotRetriable,
    /// A link is down, and there is no other adapter that the connection may go by.
    Pending,
}

/// How a connection stood when a sequence began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceStart(Path);

/// One adapter of a connection, with the links at its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) adapter: AdapterNumber,
    pub(crate) own: LinkWord,
    pub(crate) theirs: LinkWord,
}

impl Path {
    #[inline]
    fn is_up(self) -> bool {
        self.own.is_up && self.theirs.is_up
    }
}

/// How a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It goes by this adapter: the first that is up at both ends, or the first of all if none is.
    There(Path),
    /// The segment or its member is gone.
    Gone,
}

/// The link of those who hold a segment together, as long as one of them is there.
const HOLDERS_LINK: LinkWord = LinkWord { epoch: 0, is_up: true };

impl Standing {
    /// That of a connection whose last known holder is gone, while another one is looked for.
    pub(crate) fn seeking(own: LinkWord) -> Self {
        let theirs = LinkWord { is_up: false, ..HOLDERS_LINK };
        Standing::There(Path { adapter: AdapterNumber::FIRST, own, theirs })
    }
}

/// What a connection is to, and by which adapters it may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connected {
    pub(crate) slot: Slot,
    pub(crate) incarnation: u32,
    pub(crate) paths: Paths,
}

impl Connected {
    /// Whether what was connected to is there, by the board of the other member. A segment that is being closed is.
    #[inline]
    pub(crate) fn is_there(self, theirs: &impl ViewPort) -> bool {
        self.state(theirs).is_some()
    }

    /// The entry of the segment as it is now; `None` once another one has its slot, or its member has left.
    #[inline]
    pub(crate) fn state(self, theirs: &impl ViewPort) -> Option<EntryState> {
        let state = read_state(theirs, self.slot);
        let is_there = state.incarnation == self.incarnation && state.phase != Phase::Free;
        (is_there && read_life(theirs).is_open).then_some(state)
    }

    /// How the connection stands, by the board of the other member and this side's links.
    #[inline]
    pub(crate) fn standing(
        self,
        theirs: &impl ViewPort,
        own: impl Fn(AdapterNumber) -> LinkWord,
    ) -> Standing {
        if self.is_there(theirs) { self.standing_by_links(theirs, own) } else { Standing::Gone }
    }

    /// How the connection stands to what is there.
    #[inline]
    pub(crate) fn standing_by_links(
        self,
        theirs: &impl ViewPort,
        own: impl Fn(AdapterNumber) -> LinkWord,
    ) -> Standing {
        let mut first = None;
        for adapter in self.paths.each() {
            let path = self.path(adapter, theirs, &own);
            if path.is_up() {
                return Standing::There(path);
            }
            first = first.or(Some(path));
        }
        // Nobody is connected by no adapter.
        first.map_or(Standing::Gone, Standing::There)
    }

    /// What happened since a sequence began. A link that was not in use then does not matter as long as the one in use stays as it was.
    #[inline]
    pub(crate) fn check(
        self,
        start: SequenceStart,
        theirs: &impl ViewPort,
        own: impl Fn(AdapterNumber) -> LinkWord,
    ) -> SequenceStatus {
        if !self.is_there(theirs) {
            return SequenceStatus::NotRetriable;
        }
        if self.path(start.0.adapter, theirs, &own) == start.0 {
            return SequenceStatus::Ok;
        }
        match self.standing(theirs, own) {
            Standing::Gone => SequenceStatus::NotRetriable,
            Standing::There(path) if path.is_up() => SequenceStatus::Retriable,
            Standing::There(_) => SequenceStatus::Pending,
        }
    }

    #[inline]
    fn path(
        self,
        adapter: AdapterNumber,
        theirs: &impl ViewPort,
        own: impl Fn(AdapterNumber) -> LinkWord,
    ) -> Path {
        // What several hold is there whatever the link of one of them is.
        let theirs = match read_group(theirs, self.slot) {
            0 => read_link(theirs, adapter),
            _ => HOLDERS_LINK,
        };
        Path { adapter, own: own(adapter), theirs }
    }
}

/// The words that say how one connection stands. Any thread loads them, and asks neither the member nor anybody's lock.
///
/// Words do not tell that the other member has died: whoever has a view learns that elsewhere, and takes it for
/// [`SequenceStatus::NotRetriable`]. Of a connection that its program has ended it tells no more than that the segment is there.
#[derive(Clone, Debug)]
pub struct ConnectionView<V> {
    pub(crate) own: V,
    pub(crate) theirs: V,
    pub(crate) connected: Connected,
}

impl<V: ViewPort> ConnectionView<V> {
    /// Begins a sequence, if the links are up.
    #[inline]
    pub fn start(&self) -> (SequenceStatus, Option<SequenceStart>) {
        self.standing().start()
    }

    /// Says what happened since a sequence began. It is about every store that was made before a barrier
    /// ([`beeline_contract_adapter::PublishPort::barrier`]) which the program has passed before this: where it finds nothing, whoever takes
    /// the segment away afterwards has those stores.
    #[inline]
    pub fn check(&self, start: SequenceStart) -> SequenceStatus {
        self.connected.check(start, &self.theirs, |adapter| read_link(&self.own, adapter))
    }

    /// Whether the segment is there, whatever the links are.
    #[inline]
    pub fn is_there(&self) -> bool {
        self.connected.is_there(&self.theirs)
    }

    /// The other member's words, and what they are, of which [`ConnectionView::is_there`] finds that the segment is there, if it does. As
    /// long as they are the same, it is.
    pub fn presence(&self) -> Option<[(u32, u64); 2]> {
        let words = words_of_presence(self.connected.slot).map(|word| (word, self.theirs.load(word)));
        // Afterwards: what changes in between is found changed later.
        self.is_there().then_some(words)
    }

    /// The other member's words.
    pub fn theirs(&self) -> &V {
        &self.theirs
    }

    /// Whether others may hold the segment, too: where this says that it is gone, the member may know one of them.
    pub fn has_holders(&self) -> bool {
        read_group(&self.theirs, self.connected.slot) != 0
    }

    /// Whether it goes on by another adapter when the link of one is down.
    pub fn fails_over(&self) -> bool {
        self.connected.paths.is_several()
    }

    #[inline]
    pub(crate) fn standing(&self) -> Standing {
        self.connected.standing(&self.theirs, |adapter| read_link(&self.own, adapter))
    }
}

impl Standing {
    #[inline]
    pub(crate) fn is_up(self) -> bool {
        matches!(self, Standing::There(path) if path.is_up())
    }

    #[inline]
    pub(crate) fn start(self) -> (SequenceStatus, Option<SequenceStart>) {
        match self {
            Standing::Gone => (SequenceStatus::NotRetriable, None),
            Standing::There(path) if self.is_up() => (SequenceStatus::Ok, Some(SequenceStart(path))),
            Standing::There(_) => (SequenceStatus::Pending, None),
        }
    }
}
