//! Boards: what a member publishes of itself, and how others read it.

pub(crate) mod layout;

use core::num::NonZeroU64;

use beeline_contract_adapter::{PublishPort, ViewPort};

use crate::ids::{AdapterNumber, Name, NodeId, Slot};
use crate::link::LinkWord;
use crate::segment::memory::Memory;
use layout::{
    EntryState, FORMAT_WORD, IDENTITY, LIFE, Life, NODE, Phase, entry_group, entry_listed, entry_state,
    entry_word, link_word, memory_of, memory_words, name_of, name_word,
};

/// The board of this member.
#[derive(Debug)]
pub(crate) struct OwnBoard<P> {
    port: P,
    life: Life,
}

impl<P: PublishPort> OwnBoard<P> {
    /// A board in words that are all zero.
    pub(crate) fn new(mut port: P, node: NodeId, links: impl Iterator<Item = (u32, LinkWord)>) -> Self {
        port.publish(NODE, u64::from(node.0));
        for (adapter, link) in links {
            port.publish(link_word(adapter), link.word());
        }
        let life = Life { is_open: true, is_listening: false };
        port.publish(LIFE, life.word());
        // Last: a board without its format is none.
        port.publish(IDENTITY, FORMAT_WORD);
        OwnBoard { port, life }
    }

    pub(crate) fn set_link(&mut self, adapter: AdapterNumber, link: LinkWord) {
        self.port.publish(link_word(adapter.index() as u32), link.word());
    }

    /// Says whether somebody of this member hears of connections. After it this member looks once: who connected before has not rung.
    pub(crate) fn set_listening(&mut self, is_listening: bool) {
        if self.life.is_listening != is_listening {
            self.life.is_listening = is_listening;
            self.port.publish(LIFE, self.life.word());
            // Pairs with the barrier of a claim: either its maker sees that this member listens, or this member's look the claim.
            // Whoever cannot be reached now rings or is looked at when it is there again.
            let _unconfirmed = self.port.barrier();
        }
    }

    /// Ends what this member is to others.
    pub(crate) fn close(&mut self) {
        self.life.is_open = false;
        self.port.publish(LIFE, self.life.word());
    }

    /// Writes what does not change of an entry that is free.
    pub(crate) fn describe(&mut self, slot: Slot, name: Name, bytes: u64, memory: Memory) {
        self.port.publish(entry_word(slot, 1), name_word(name));
        self.port.publish(entry_word(slot, 2), bytes);
        for (word, value) in (3..).zip(memory_words(memory)) {
            self.port.publish(entry_word(slot, word), value);
        }
        self.set_group(slot, 0);
        self.port.publish(entry_listed(slot), 0);
    }

    /// Says that a list says who may connect to an entry.
    pub(crate) fn set_listed(&mut self, slot: Slot) {
        self.port.publish(entry_listed(slot), 1);
    }

    /// Says which segment of several holders an entry is.
    pub(crate) fn set_group(&mut self, slot: Slot, group: u64) {
        self.port.publish(entry_group(slot), group);
    }

    pub(crate) fn set_entry(&mut self, slot: Slot, state: EntryState) {
        self.port.publish(entry_state(slot), state.word());
    }

    /// The port, for the handshake of a removal.
    pub(crate) fn port(&mut self) -> &mut P {
        &mut self.port
    }
}

/// What another member's board says of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) state: EntryState,
    /// Nothing of what this version does not know.
    pub(crate) name: Option<Name>,
    pub(crate) bytes: u64,
    pub(crate) memory: Memory,
    /// Which segment of several holders it is; zero if it is none.
    pub(crate) group: u64,
    /// Its member says who may connect.
    pub(crate) is_listed: bool,
}

/// How often an entry is read that changes meanwhile. Its member changes it a few times in its life; one that does so all the time
/// lies, and is treated as one that has nothing.
const READS: u32 = 8;

/// Reads an entry of another member's board whole; `None` if it changes all the time.
pub(crate) fn read_entry(board: &impl ViewPort, slot: Slot) -> Option<Entry> {
    (0..READS).find_map(|_| {
        let state = EntryState::of(board.load(entry_state(slot)));
        let [name, bytes, memory, number] = [1, 2, 3, 4].map(|word| board.load(entry_word(slot, word)));
        let (memory, group) = (memory_of(memory, number), read_group(board, slot));
        let is_listed = board.load(entry_listed(slot)) != 0;
        let entry = Entry { state, name: name_of(name), bytes, memory, group, is_listed };
        (EntryState::of(board.load(entry_state(slot))) == state).then_some(entry)
    })
}

/// The number of the memory of several holders that an entry of a board is, if the entry has this name.
pub fn group_at(board: &impl ViewPort, slot: Slot, name: Name) -> Option<NonZeroU64> {
    let entry = read_entry(board, slot).filter(|entry| entry.state.phase != Phase::Free)?;
    NonZeroU64::new(entry.group).filter(|_| entry.name == Some(name))
}

/// How an entry stands, and nothing else of it.
#[inline]
pub(crate) fn read_state(board: &impl ViewPort, slot: Slot) -> EntryState {
    EntryState::of(board.load(entry_state(slot)))
}

/// The words of which [`read_state`] and [`read_life`] are made.
pub(crate) fn words_of_presence(slot: Slot) -> [u32; 2] {
    [entry_state(slot), LIFE]
}

#[inline]
pub(crate) fn read_group(board: &impl ViewPort, slot: Slot) -> u64 {
    board.load(entry_group(slot))
}

#[inline]
pub(crate) fn read_life(board: &impl ViewPort) -> Life {
    Life::of(board.load(LIFE))
}

#[inline]
pub(crate) fn read_link(board: &impl ViewPort, adapter: AdapterNumber) -> LinkWord {
    LinkWord::of(board.load(link_word(adapter.index() as u32)))
}

/// Whether these words are a board that this version reads, of the node that they should be of.
pub(crate) fn is_of(board: &impl ViewPort, node: NodeId) -> bool {
    board.load(IDENTITY) == FORMAT_WORD && board.load(NODE) == u64::from(node.0)
}
