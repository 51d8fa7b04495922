//! The adapter: words of one memory that all have mapped.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beeline_contract_adapter::{Adapter, CountPort, PublishPort, Unconfirmed, ViewPort};

use crate::space::{Space, Table};

/// Members that have one file or BAR in common.
#[derive(Clone, Debug)]
pub(crate) enum OneMemory {}

impl Adapter for OneMemory {
    type Board = Published;
    type Claims = Published;
    type View = View;
}

/// Words that this member publishes. Clones are the same words.
///
/// Others can store there, too: what a word is here is what this member has published last, and never loaded.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    space: Arc<Space>,
    table: Table,
    published: Arc<Mutex<BTreeMap<u32, u64>>>,
}

/// Words of a slot's member. Clones are the same words.
#[derive(Clone, Debug)]
pub(crate) struct View(Table);

impl Published {
    /// Words that are all zero.
    pub(crate) fn new(space: &Arc<Space>, table: Table) -> Self {
        Published { space: Arc::clone(space), table, published: Arc::default() }
    }

    pub(crate) fn space(&self) -> &Arc<Space> {
        &self.space
    }

    pub(crate) fn view(&self) -> View {
        View(self.table.clone())
    }

    /// Makes every word zero.
    pub(crate) fn clear(&self) {
        let mut published = self.lock();
        for word in published.keys() {
            self.space.publish(&self.table, *word, 0);
        }
        published.clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, u64>> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PublishPort for Published {
    fn publish(&mut self, word: u32, value: u64) {
        self.lock().insert(word, value);
        self.space.publish(&self.table, word, value);
    }

    fn barrier(&mut self) -> Result<(), Unconfirmed> {
        self.space.barrier()
    }
}

impl CountPort for Published {
    /// A device takes part in no atomic operation, so threads of this process take turns.
    fn raise(&self, word: u32) {
        let mut published = self.lock();
        let value = published.entry(word).or_insert(0);
        *value = value.wrapping_add(1);
        self.space.publish(&self.table, word, *value);
    }
}

impl View {
    pub(crate) fn new(table: Table) -> Self {
        View(table)
    }
}

impl ViewPort for View {
    #[inline]
    fn load(&self, word: u32) -> u64 {
        self.0.load(word)
    }
}
