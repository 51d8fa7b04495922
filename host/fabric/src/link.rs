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

/// Adapters that a connection goes by, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paths(u16);

impl Paths {
    pub(crate) fn of(bits: u16) -> Self {
        Paths(bits)
    }

    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    #[inline]
    pub(crate) fn is_several(self) -> bool {
        self.0.count_ones() > 1
    }

    /// Each adapter, the one of the smallest number first.
    #[inline]
    pub(crate) fn each(self) -> impl Iterator<Item = AdapterNumber> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let first = AdapterNumber::new(left.trailing_zeros()).ok()?;
            left &= left - 1;
            Some(first)
        })
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
        *self.0.get(adapter.index())?
    }

    /// The adapters of this member that a program means, which may be any of them.
    pub(crate) fn paths(&self, adapter: AdapterNumber) -> Paths {
        let there = self.all().fold(0, |bits, (number, _)| bits | 1 << number);
        Paths(there & adapter.bits())
    }

    /// The first of these adapters whose link is up, or the first of them if none is.
    pub(crate) fn best(&self, paths: Paths) -> Option<LinkWord> {
        let links = || paths.each().filter_map(|adapter| self.of(adapter));
        links().find(|link| link.is_up).or_else(|| links().next())
    }

    /// What is to be published if that changes anything; `None` if it does not, or the adapter is not there.
    pub(crate) fn set(&mut self, adapter: AdapterNumber, is_up: bool) -> Option<LinkWord> {
        let link = self.0.get_mut(adapter.index())?.as_mut().filter(|link| link.is_up != is_up)?;
        *link = LinkWord { epoch: link.epoch + 1, is_up };
        Some(*link)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, LinkWord)> {
        self.0.iter().zip(0..).filter_map(|(link, number)| Some((number, (*link)?)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn adapters(numbers: &[u32]) -> Vec<AdapterNumber> {
        numbers.iter().filter_map(|number| AdapterNumber::new(*number).ok()).collect()
    }

    #[test]
    fn any_adapter_is_each_of_the_member_and_the_best_is_the_first_that_is_up() {
        let mut links = Links::up(&adapters(&[2, 15]));
        let any = links.paths(AdapterNumber::ANY);
        assert_eq!(any.each().collect::<Vec<_>>(), adapters(&[2, 15]));
        assert_eq!(links.paths(AdapterNumber::new(3).unwrap()).each().count(), 0);
        let up = |epoch| Some(LinkWord { epoch, is_up: true });
        links.set(adapters(&[15])[0], false).unwrap();
        links.set(adapters(&[15])[0], true).unwrap();
        assert_eq!(links.best(any), up(1));
        links.set(adapters(&[2])[0], false).unwrap();
        assert_eq!(links.best(any), up(3));
        links.set(adapters(&[15])[0], false).unwrap();
        assert_eq!(links.best(any), Some(LinkWord { epoch: 2, is_up: false }));
        assert_eq!((links.of(AdapterNumber::ANY), links.set(AdapterNumber::ANY, true)), (None, None));
    }
}
