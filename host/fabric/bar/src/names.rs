//! Names: who has a segment or an interrupt of a number.
//!
//! Each member has a table of its own, which others look through. Of two members of a node that put the same name at the same time, each
//! stores it, passes a barrier and looks at the other's table: at least one sees the other, and perhaps neither gets it.

use std::collections::BTreeMap;
use std::sync::Arc;

use beeline_fabric::{Answer, Name, NameKind, Slot};
use beeline_mmio::Words;

use crate::space::Space;

/// The names of this member. They are kept here, and in words for others.
#[derive(Debug)]
pub(crate) struct OwnNames {
    space: Arc<Space>,
    words: Words,
    /// Where in the table each is, and the entry of the board.
    put: BTreeMap<Name, (usize, Slot)>,
}

/// A name as a word that is not zero; `None` for one that several members may have, which are not built.
fn word_of(name: Name) -> Option<u64> {
    let kind: u64 = match name.kind {
        NameKind::Segment => 1,
        NameKind::Interrupt => 2,
        NameKind::DataInterrupt => 3,
        NameKind::Group | NameKind::SharedInterrupt | NameKind::GroupInterrupt => return None,
    };
    Some(kind << 32 | u64::from(name.number))
}

/// The entry that a member's table has for a name.
pub(crate) fn find(words: &Words, name: Name) -> Option<Slot> {
    let wanted = word_of(name)?;
    let at = (0..words.count() / 2).find(|at| words.load_acquire(2 * at) == wanted)?;
    Some(Slot(words.load_acquire(2 * at + 1) as u16))
}

impl OwnNames {
    /// A table of zeros.
    pub(crate) fn new(space: &Arc<Space>, slot: usize) -> Self {
        OwnNames { words: space.names(slot), space: Arc::clone(space), put: BTreeMap::new() }
    }

    /// The entry of this member's board that has a name.
    pub(crate) fn find(&self, name: Name) -> Option<Slot> {
        self.put.get(&name).map(|(_, slot)| *slot)
    }

    /// Puts a name, unless one of these tables, of members of the same node, has it.
    pub(crate) fn put<'a>(
        &mut self,
        name: Name,
        slot: Slot,
        others: impl Iterator<Item = &'a Words>,
    ) -> Answer {
        let Some(word) = word_of(name) else { return Answer::Failed };
        if self.put.contains_key(&name) {
            return Answer::Taken;
        }
        let is_used = |at: &usize| self.put.values().any(|(used, _)| used == at);
        let Some(at) = (0..self.words.count() / 2).find(|at| !is_used(at)) else { return Answer::Full };
        self.store(2 * at + 1, u64::from(slot.0));
        self.store(2 * at, word);
        // Pairs with that of another member.
        if self.space.barrier().is_err() {
            self.store(2 * at, 0);
            return Answer::Failed;
        }
        if others.map(|words| find(words, name)).any(|found| found.is_some()) {
            self.store(2 * at, 0);
            return Answer::Taken;
        }
        self.put.insert(name, (at, slot));
        Answer::Done
    }

    pub(crate) fn remove(&mut self, name: Name) {
        if let Some((at, _)) = self.put.remove(&name) {
            self.store(2 * at, 0);
        }
    }

    /// Takes every name out.
    pub(crate) fn clear(&mut self) {
        for (at, _) in std::mem::take(&mut self.put).into_values() {
            self.store(2 * at, 0);
        }
    }

    fn store(&self, at: usize, value: u64) {
        self.space.ordered(|| self.words.store_release(at, value));
    }
}
