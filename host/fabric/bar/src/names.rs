//! Names: who has a segment or an interrupt of a number.
//!
//! Each member has a table of its own, which others look through. Of two members that put the same name at the same time, each stores it,
//! passes a barrier and looks at the other's table: at least one sees the other, and perhaps neither gets it.

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
    /// Where in the table each is, with the entry of the board: a member may hold a group twice.
    put: BTreeMap<(Name, Slot), usize>,
}

/// A name that others may see already.
pub(crate) struct Putting {
    name: Name,
    slot: Slot,
    /// Where in the table it is.
    at: usize,
}

const KIND_LSB: u32 = 32;

/// A name as a word that is not zero.
fn word_of(name: Name) -> u64 {
    kind_of(name.kind) << KIND_LSB | u64::from(name.number)
}

fn kind_of(kind: NameKind) -> u64 {
    match kind {
        NameKind::Segment => 1,
        NameKind::Interrupt => 2,
        NameKind::DataInterrupt => 3,
        NameKind::Group => 4,
        NameKind::SharedInterrupt => 5,
        NameKind::GroupInterrupt => 6,
    }
}

/// The entries that a member's table has for a name.
pub(crate) fn find(words: &Words, name: Name) -> impl Iterator<Item = Slot> {
    let wanted = word_of(name);
    let found = (0..words.count() / 2).filter(move |at| wanted == words.load_acquire(2 * at));
    found.map(|at| Slot(words.load_acquire(2 * at + 1) as u16))
}

/// Whether a member's table has a name that is not of its node alone.
pub(crate) fn has_of_fabric(words: &Words) -> bool {
    let kinds = [NameKind::Group, NameKind::GroupInterrupt].map(kind_of);
    (0..words.count() / 2).any(|at| kinds.contains(&(words.load_acquire(2 * at) >> KIND_LSB)))
}

impl OwnNames {
    /// A table of zeros.
    pub(crate) fn new(space: &Arc<Space>, slot: usize) -> Self {
        OwnNames { words: space.names(slot), space: Arc::clone(space), put: BTreeMap::new() }
    }

    /// The entries of this member's board that have a name.
    pub(crate) fn find(&self, name: Name) -> impl Iterator<Item = Slot> {
        self.put.range((name, Slot(0))..=(name, Slot(u16::MAX))).map(|((_, slot), _)| *slot)
    }

    /// Stores a name, which this member has when [`OwnNames::end`] says so: in between it looks at the tables of others.
    ///
    /// # Errors
    /// [`Answer::Full`]; [`Answer::Failed`]: nothing is ordered.
    pub(crate) fn begin(&mut self, name: Name, slot: Slot) -> Result<Putting, Answer> {
        let is_used = |at: &usize| self.put.values().any(|used| used == at);
        let at = (0..self.words.count() / 2).find(|at| !is_used(at)).ok_or(Answer::Full)?;
        self.store(2 * at + 1, u64::from(slot.0));
        self.store(2 * at, word_of(name));
        // Pairs with that of another member.
        if self.space.barrier().is_err() {
            self.store(2 * at, 0);
            return Err(Answer::Failed);
        }
        Ok(Putting { name, slot, at })
    }

    /// Keeps a name that was begun, or takes it back.
    pub(crate) fn end(&mut self, Putting { name, slot, at }: Putting, is_kept: bool) -> Answer {
        if !is_kept {
            self.store(2 * at, 0);
            return Answer::Taken;
        }
        self.put.insert((name, slot), at);
        Answer::Done
    }

    pub(crate) fn remove(&mut self, name: Name, slot: Slot) {
        if let Some(at) = self.put.remove(&(name, slot)) {
            self.store(2 * at, 0);
        }
    }

    /// Takes every name out.
    pub(crate) fn clear(&mut self) {
        for at in std::mem::take(&mut self.put).into_values() {
            self.store(2 * at, 0);
        }
    }

    fn store(&self, at: usize, value: u64) {
        self.space.ordered(|| self.words.store_release(at, value));
    }
}
