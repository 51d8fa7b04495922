//! Links of adapters: whether each is up, and how often that has changed.

use crate::ids::{ADAPTERS, AdapterNumber};

/// What a member says of one of its adapters. The epoch counts changes, so that who looks rarely learns of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkWord {
    pub(crate) epoch: u64,
    pub(crate) is_up: bool,
}

impl LinkWord {
    pub(crate) fn of(word: u64) -> Self {
        LinkWord { epoch: word >> 1, is_up: word & 1 == 1 }
    }

    pub(crate) fn word(self) -> u64 {
        self.epoch << 1 | u64::from(self.is_up)
    }
}

/// The adapters of this member.
#[derive(Debug)]
pub(crate) struct Links([Option<LinkWord>; ADAPTERS as usize]);

impl Links {
    /// Adapters of these numbers, all up.
    pub(crate) fn up(adapters: &[AdapterNumber]) -> Self {
        let mut links = Links([None; ADAPTERS as usize]);
        for adapter in adapters {
            links.0[adapter.index()] = Some(LinkWord { epoch: 1, is_up: true });
        }
        links
    }

    pub(crate) fn of(&self, adapter: AdapterNumber) -> Option<LinkWord> {
        self.0[adapter.index()]
    }

    /// What is to be published if that changes anything; `None` if it does not, or the adapter is not there.
    pub(crate) fn set(&mut self, adapter: AdapterNumber, is_up: bool) -> Option<LinkWord> {
        let link = self.0[adapter.index()].as_mut().filter(|link| link.is_up != is_up)?;
        *link = LinkWord { epoch: link.epoch + 1, is_up };
        Some(*link)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, LinkWord)> {
        self.0.iter().zip(0..).filter_map(|(link, number)| Some((number, (*link)?)))
    }
}
