//! Where in a board and in claims each word lies, and what its bits mean. Everything a peer publishes is read through here: any value
//! of a word means something.

use crate::ids::{Name, NameKind, Slot};
use crate::segment::memory::Memory;

/// Entries of a board, and words of claims.
pub const CLAIM_WORDS: u32 = 1 << 16;
/// Words of what a member uses of another one: its claims, then a count of triggers for each entry.
pub const USE_WORDS: u32 = CLAIM_WORDS + CLAIM_WORDS * COUNT_STRIDE;
/// Words that the header and all entries take.
pub const BOARD_WORDS: u32 = HEADER_WORDS + ENTRY_WORDS * CLAIM_WORDS;

/// Words of a board before its entries.
pub const HEADER_WORDS: u32 = 32;
/// Words that each entry takes, one line.
pub const ENTRY_WORDS: u32 = 8;
/// A line for each count: threads that trigger one interrupt do not slow down those that trigger another.
pub const COUNT_STRIDE: u32 = 8;

/// Where the format of a board and its version stand.
pub(crate) const IDENTITY: u32 = 0;
pub(crate) const NODE: u32 = 1;
pub(crate) const LIFE: u32 = 2;
const FIRST_LINK: u32 = 8;

/// What the first word of a board says.
pub const FORMAT_WORD: u64 = 0x0bee_f001 << 32 | 2;

pub(crate) fn link_word(adapter: u32) -> u32 {
    FIRST_LINK + adapter
}

/// The word of an entry that says how it stands: the only one that changes while the entry is not free.
pub(crate) fn entry_state(slot: Slot) -> u32 {
    entry_word(slot, 0)
}

/// The word of an entry that says which segment of several holders it is; zero if its member alone holds it.
pub(crate) fn entry_group(slot: Slot) -> u32 {
    entry_word(slot, 5)
}

/// The word of an entry that is not zero if a list says who may connect to it.
pub(crate) fn entry_listed(slot: Slot) -> u32 {
    entry_word(slot, 6)
}

/// A word of an entry: 1 says what it is and its number, 2 is the size of a segment, 3 the kind and 4 the place of its memory.
pub(crate) fn entry_word(slot: Slot, word: u32) -> u32 {
    HEADER_WORDS + ENTRY_WORDS * u32::from(slot.0) + word
}

/// What an entry is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Free,
    /// It is a segment.
    Open,
    /// It is a segment, whose member is looking whether it may remove it.
    Closing,
}

/// An entry that has come so far is not used again: the next incarnation would be one that there was before.
pub(crate) const LAST_INCARNATION: u32 = u32::MAX;

/// How an entry stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryState {
    /// Raised for each segment or interrupt of the entry, and when connections are ended by force: a claim of another one claims nothing.
    pub(crate) incarnation: u32,
    pub(crate) phase: Phase,
    /// A bit for each adapter by which the segment may be connected to.
    pub(crate) available: u16,
    /// How often its member has asked who is connected to disconnect, modulo 256.
    pub(crate) notices: u8,
}

impl EntryState {
    pub(crate) fn of(word: u64) -> Self {
        let phase = match (word >> 16) as u8 {
            1 => Phase::Open,
            2 => Phase::Closing,
            _ => Phase::Free,
        };
        let (incarnation, notices) = ((word >> 32) as u32, (word >> 24) as u8);
        EntryState { incarnation, phase, available: word as u16, notices }
    }

    pub(crate) fn word(self) -> u64 {
        let phase = match self.phase {
            Phase::Free => 0,
            Phase::Open => 1,
            Phase::Closing => 2,
        };
        let notices = u64::from(self.notices) << 24;
        u64::from(self.incarnation) << 32 | notices | phase << 16 | u64::from(self.available)
    }
}

/// What a member is to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Life {
    /// It has not left the fabric.
    pub(crate) is_open: bool,
    /// It wants to be rung when somebody connects or disconnects.
    pub(crate) is_listening: bool,
}

impl Life {
    pub(crate) fn of(word: u64) -> Self {
        Life { is_open: word & 1 != 0, is_listening: word & 2 != 0 }
    }

    pub(crate) fn word(self) -> u64 {
        u64::from(self.is_open) | u64::from(self.is_listening) << 1
    }
}

/// Which of a member's words for another one counts its triggers of an entry.
pub(crate) fn count_word(slot: Slot) -> u32 {
    CLAIM_WORDS + COUNT_STRIDE * u32::from(slot.0)
}

/// The word of an entry that says what it is, and its number.
pub(crate) fn name_word(name: Name) -> u64 {
    let kind: u64 = match name.kind {
        NameKind::Segment => 1,
        NameKind::Interrupt => 2,
        NameKind::DataInterrupt => 3,
        NameKind::Group => 4,
        NameKind::SharedInterrupt => 5,
        NameKind::GroupInterrupt => 6,
    };
    kind << 32 | u64::from(name.number)
}

/// What an entry is; `None` if this version knows nothing like it.
pub(crate) fn name_of(word: u64) -> Option<Name> {
    let kind = match word >> 32 {
        1 => NameKind::Segment,
        2 => NameKind::Interrupt,
        3 => NameKind::DataInterrupt,
        4 => NameKind::Group,
        5 => NameKind::SharedInterrupt,
        6 => NameKind::GroupInterrupt,
        _ => return None,
    };
    Some(Name { kind, number: word as u32 })
}

const BANK: u64 = 1;

pub(crate) fn memory_words(memory: Memory) -> [u64; 2] {
    match memory {
        Memory::Bank { offset } => [BANK, offset],
        Memory::Own { slot } => [BANK + 1, u64::from(slot.0)],
    }
}

pub(crate) fn memory_of(kind: u64, place: u64) -> Memory {
    match kind {
        BANK => Memory::Bank { offset: place },
        _ => Memory::Own { slot: Slot(place as u16) },
    }
}

/// Bits of a claim that say how many connections there are, and above them and one more bit how many have ended.
const COUNT_BITS: u32 = 11;
const ENDED_BITS: u32 = 20;

/// Connections that have ended, of which a word keeps this many before it begins again at zero.
pub(crate) const ENDED: u32 = 1 << ENDED_BITS;

/// What one member claims of an entry of another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claim {
    /// That of the connection that was made last.
    pub(crate) incarnation: u32,
    /// How many connections to this incarnation the member has ended, modulo [`ENDED`]: who was not looking learns that they were there.
    pub(crate) ended: u32,
    /// It has connections to other incarnations, which are lost.
    pub(crate) has_others: bool,
    /// How many connections that member has to the segment, below 2 to the power of [`COUNT_BITS`].
    pub(crate) count: u32,
}

impl Claim {
    pub(crate) fn of(word: u64) -> Self {
        let low = word as u32;
        Claim {
            incarnation: (word >> 32) as u32,
            ended: low >> (COUNT_BITS + 1),
            has_others: low >> COUNT_BITS & 1 != 0,
            count: low & ((1 << COUNT_BITS) - 1),
        }
    }

    pub(crate) fn word(self) -> u64 {
        let low = self.ended << (COUNT_BITS + 1) | u32::from(self.has_others) << COUNT_BITS | self.count;
        u64::from(self.incarnation) << 32 | u64::from(low)
    }

    /// Whether it keeps a segment from being removed.
    pub(crate) fn is_of(self, incarnation: u32) -> bool {
        self.incarnation == incarnation && self.count != 0
    }

    /// Whether it keeps an entry from being used again.
    pub(crate) fn keeps_entry(self) -> bool {
        self.count != 0 || self.has_others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_a_peer_is_a_state_and_own_words_come_back() {
        for phase in [Phase::Free, Phase::Open, Phase::Closing] {
            let state = EntryState { incarnation: 0xfedc_ba98, phase, available: 0x8001, notices: 0xfe };
            assert_eq!(EntryState::of(state.word()), state);
        }
        assert_eq!(EntryState::of(u64::MAX).phase, Phase::Free);
        let claim = Claim { incarnation: 7, ended: ENDED - 1, has_others: false, count: 1024 };
        assert_eq!(Claim::of(claim.word()), claim);
        assert!(claim.is_of(7) && !claim.is_of(8) && claim.keeps_entry());
        let ended = Claim { count: 0, ..claim };
        assert!(!ended.is_of(7) && !ended.keeps_entry());
        let others = Claim { has_others: true, ..ended };
        assert_eq!(Claim::of(others.word()), others);
        assert!(!others.is_of(7) && others.keeps_entry());
        for memory in [Memory::Bank { offset: 5 << 16 }, Memory::Own { slot: Slot(9) }] {
            let [kind, place] = memory_words(memory);
            assert_eq!(memory_of(kind, place), memory);
        }
    }

    #[test]
    fn names_come_back_and_other_words_name_nothing() {
        let interrupts = [NameKind::Interrupt, NameKind::DataInterrupt];
        let of_several = [NameKind::Group, NameKind::SharedInterrupt, NameKind::GroupInterrupt];
        for kind in [NameKind::Segment].into_iter().chain(interrupts).chain(of_several) {
            let name = Name { kind, number: 0xfedc_ba98 };
            assert_eq!(name_of(name_word(name)), Some(name));
        }
        assert_eq!((name_of(7), name_of(7 << 32), name_of(u64::MAX)), (None, None, None));
    }

    #[test]
    fn counts_lie_behind_the_claims_each_in_a_line() {
        assert_eq!(count_word(Slot(0)), CLAIM_WORDS);
        assert_eq!(count_word(Slot(1)) - count_word(Slot(0)), 8);
        assert!(count_word(Slot(u16::MAX)) < USE_WORDS);
    }

    #[test]
    fn words_of_the_last_entry_are_the_last_of_the_board() {
        assert_eq!(entry_word(Slot(u16::MAX), ENTRY_WORDS - 1) + 1, BOARD_WORDS);
        assert_eq!(entry_state(Slot(0)), HEADER_WORDS);
        assert!(link_word(15) < HEADER_WORDS);
    }
}
