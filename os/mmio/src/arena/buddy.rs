//! Which pages of an arena are lent: blocks of a power of two of pages, each aligned to its own size, joined with their
//! neighbour as soon as both are free.
//!
//! So a request fails only if no aligned block of its size is wholly free, and when everything has come back the blocks are
//! those that there were at the start. What it costs is up to half of a block whose request is no power of two.

use std::collections::BTreeSet;

/// The blocks of an arena that are free.
#[derive(Debug)]
pub(super) struct Buddy {
    /// The first pages of the free blocks of `1 << order` pages.
    free: Vec<BTreeSet<u32>>,
    free_pages: u32,
}

/// Pages of a block of this order.
pub(super) fn pages_of(order: u32) -> u32 {
    1 << order
}

/// The order of the smallest block that holds so many pages; `None` where no block can.
pub(super) fn order_for(pages: usize) -> Option<u32> {
    let pages = u32::try_from(pages).ok()?.checked_next_power_of_two()?;
    (pages > 0).then(|| pages.trailing_zeros())
}

impl Buddy {
    /// All of `pages` pages are free.
    pub(super) fn new(pages: u32) -> Self {
        let orders = u32::BITS - pages.leading_zeros();
        let mut free = vec![BTreeSet::new(); orders as usize];
        let mut first = 0;
        for order in (0..orders).rev() {
            if pages & pages_of(order) != 0 {
                free[order as usize].insert(first);
                first += pages_of(order);
            }
        }
        Buddy { free, free_pages: pages }
    }

    pub(super) fn free_pages(&self) -> u32 {
        self.free_pages
    }

    /// Pages of the largest free block.
    pub(super) fn largest(&self) -> u32 {
        let order = self.free.iter().rposition(|blocks| !blocks.is_empty());
        order.map_or(0, |order| pages_of(order as u32))
    }

    /// The first page of a block of this order, out of the smallest block that has one and the lowest of those, so that what is
    /// lent stays together; `None` if none is free.
    pub(super) fn take(&mut self, order: u32) -> Option<u32> {
        let enough = self.free.iter().skip(order as usize).position(|blocks| !blocks.is_empty())?;
        let found = order + enough as u32;
        let first = self.free[found as usize].pop_first()?;
        for half in order..found {
            self.free[half as usize].insert(first + pages_of(half));
        }
        self.free_pages -= pages_of(order);
        Some(first)
    }

    /// Gives a block back that was taken with this order.
    pub(super) fn give_back(&mut self, first: u32, order: u32) {
        self.free_pages += pages_of(order);
        let (mut first, mut order) = (first, order);
        // A block at the end of the arena has a buddy that is never there.
        while let Some(blocks) = self.free.get_mut(order as usize)
            && blocks.remove(&(first ^ pages_of(order)))
        {
            first &= !pages_of(order);
            order += 1;
        }
        self.free[order as usize].insert(first);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn orders_hold_what_was_asked_for() {
        for (pages, order) in [(1, Some(0)), (2, Some(1)), (3, Some(2)), (1 << 31, Some(31))] {
            assert_eq!(order_for(pages), order);
        }
        assert_eq!((order_for((1 << 31) + 1), order_for(usize::MAX)), (None, None));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Take(u32),
        GiveBack(prop::sample::Index),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0u32..6).prop_map(Step::Take),
            2 => any::<prop::sample::Index>().prop_map(Step::GiveBack),
        ];
        prop::collection::vec(step, 1..if cfg!(miri) { 20 } else { 200 })
    }

    /// Whether an aligned block of this order has no page that is lent.
    fn has_room(lent: &[bool], order: u32) -> bool {
        lent.chunks_exact(pages_of(order) as usize).any(|block| !block.contains(&true))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 500 }))]

        #[test]
        fn blocks_are_apart_and_there_is_one_whenever_there_can_be(pages in 1u32..200, steps in steps()) {
            let (mut buddy, mut lent, mut blocks) = (Buddy::new(pages), vec![false; pages as usize], Vec::new());
            let whole = buddy.largest();
            for step in steps {
                match step {
                    Step::Take(order) => {
                        let taken = buddy.take(order);
                        prop_assert_eq!(taken.is_some(), has_room(&lent, order));
                        let Some(first) = taken else { continue };
                        prop_assert!(first.is_multiple_of(pages_of(order)));
                        for page in first..first + pages_of(order) {
                            prop_assert!(!std::mem::replace(&mut lent[page as usize], true));
                        }
                        blocks.push((first, order));
                    }
                    Step::GiveBack(which) if !blocks.is_empty() => {
                        let (first, order) = blocks.swap_remove(which.index(blocks.len()));
                        buddy.give_back(first, order);
                        lent[first as usize..(first + pages_of(order)) as usize].fill(false);
                    }
                    Step::GiveBack(_) => {}
                }
                let free = lent.iter().filter(|is_lent| !**is_lent).count();
                prop_assert_eq!(buddy.free_pages() as usize, free);
            }
            blocks.into_iter().for_each(|(first, order)| buddy.give_back(first, order));
            prop_assert_eq!((buddy.free_pages(), buddy.largest()), (pages, whole));
        }
    }
}
