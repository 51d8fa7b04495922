//! The adapter: words that lie in their host's memory and, as copies, in that of those who load them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use beeline_contract_adapter::{Adapter, CountPort, PublishPort, Unconfirmed, ViewPort};
use beeline_link_sim::machine::hosts::{HostId, Region};

use crate::programs::Core;
use crate::session::Sessions;

/// Members on hosts that are joined by links.
#[derive(Debug)]
pub enum Across {}

impl Adapter for Across {
    type Board = Published;
    type Claims = Published;
    type View = View;
}

/// Who loads words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Every host that is there.
    All,
    /// The one that is claimed of.
    One,
}

/// Words that this host publishes. Clones are the same words.
#[derive(Clone)]
pub struct Published {
    sessions: Sessions,
    readers: Readers,
    words: Region,
    /// Where the copy of each peer is.
    copies: Arc<Vec<(HostId, Region)>>,
    /// What was ever published: all that copies must be given if they lost something.
    written: Arc<Mutex<BTreeSet<u32>>>,
}

/// Words of another host, or of this one: copies in this host's memory. Clones are the same words.
#[derive(Clone)]
pub struct View {
    core: Core,
    words: Region,
    last: LastWords,
}

/// What the words of a session were when it ended, once it has. A new session stores to the same memory, and views of the old one show
/// nothing of that. Clones are of the same session.
#[derive(Clone, Default)]
pub(crate) struct LastWords(Arc<OnceLock<Vec<u8>>>);

impl LastWords {
    /// The session ends: views of it show these words from here on, and zero behind them.
    pub(crate) fn end_with(&self, words: Vec<u8>) {
        // A session ends once.
        let _ = self.0.set(words);
    }

    fn load(&self, word: u32) -> Option<u64> {
        let words = self.0.get()?;
        let bytes = words.get(offset(word)..).and_then(|rest| rest.first_chunk());
        Some(bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes)))
    }
}

fn offset(word: u32) -> usize {
    word as usize * 8
}

impl View {
    /// Words that belong to no session.
    pub(crate) fn new(core: Core, words: Region) -> Self {
        View::of_session(core, words, LastWords::default())
    }

    pub(crate) fn of_session(core: Core, words: Region, last: LastWords) -> Self {
        View { core, words, last }
    }
}

impl ViewPort for View {
    fn load(&self, word: u32) -> u64 {
        self.last.load(word).unwrap_or_else(|| self.core.load(self.words, offset(word)))
    }
}

impl Published {
    pub(crate) fn new(
        sessions: Sessions,
        readers: Readers,
        words: Region,
        copies: Vec<(HostId, Region)>,
    ) -> Self {
        Published { sessions, readers, words, copies: Arc::new(copies), written: Arc::default() }
    }

    pub(crate) fn load(&self, word: u32) -> u64 {
        self.sessions.core.load(self.words, offset(word))
    }

    fn store(&self, word: u32, value: u64) {
        let core = &self.sessions.core;
        self.written.lock().unwrap_or_else(PoisonError::into_inner).insert(word);
        core.store(self.words, offset(word), value);
        for (_, copy) in self.copies.iter() {
            core.store_in_order(copy.address + offset(word) as u64, value);
        }
    }

    fn all_written(&self) -> BTreeSet<u32> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Pushes every word to a peer anew.
    pub(crate) fn push_to(&self, peer: HostId) {
        for word in self.all_written() {
            for (_, copy) in self.copies.iter().filter(|(of, _)| *of == peer) {
                self.sessions.core.store_in_order(copy.address + offset(word) as u64, self.load(word));
            }
        }
    }

    /// Makes every word zero.
    pub(crate) fn clear(&self) {
        for word in self.all_written() {
            self.store(word, 0);
        }
    }
}

impl PublishPort for Published {
    fn publish(&mut self, word: u32, value: u64) {
        self.store(word, value);
    }

    fn barrier(&mut self) -> Result<(), Unconfirmed> {
        // Who is gone learns nothing and claims nothing; what is claimed of somebody who is gone is never confirmed.
        let is_asked = |peer: HostId| self.readers == Readers::One || self.sessions.is_there(peer);
        let asked = self.copies.iter().filter(|(peer, _)| is_asked(*peer));
        let confirmed: Vec<_> = asked.map(|(peer, _)| self.sessions.confirm(*peer)).collect();
        confirmed.into_iter().collect()
    }
}

impl CountPort for Published {
    fn raise(&self, word: u32) {
        self.store(word, self.load(word) + 1);
    }
}
