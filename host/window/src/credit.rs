//! The sender's account of free lines.
//!
//! Credits are an absolute count of freed lines that the receiver pushes into memory local to the sender
//! (docs/design.md, decision 3). The account keeps a copy and looks at the pushed word only when the copy allows no
//! more, so that in a stream the word's cache line moves once in many messages. The receiver is not trusted: a count
//! that runs backwards or ahead of what was sent closes the account for good, and no store over an unfreed line can
//! follow.

use beeline_contract_memory::CreditSource;

use crate::error::CreditError;

#[derive(Debug)]
pub(crate) struct Credits<C> {
    pub(crate) source: C,
    /// First position not yet sent.
    next: u64,
    /// First position that may not be stored into; equal to `next` while the account is held or closed.
    limit: u64,
    /// First position at which the line to be prefetched may not be free any more; 0 where nothing is prefetched.
    prefetch_limit: u64,
    prefetch_lines: u64,
    /// Last believed count of freed lines.
    freed: u64,
    window_lines: u64,
    closed: Option<CreditError>,
}

impl<C: CreditSource> Credits<C> {
    /// Every line of the window is free. `prefetch_lines`: how far ahead a sender prefetches, 0 if it does not.
    pub(crate) fn new(source: C, window_lines: u32, prefetch_lines: u32) -> Self {
        let (window_lines, prefetch_lines) = (u64::from(window_lines), u64::from(prefetch_lines));
        let (next, freed, closed) = (0, 0, None);
        let mut credits = Credits {
            source,
            next,
            limit: 0,
            prefetch_limit: 0,
            prefetch_lines,
            freed,
            window_lines,
            closed,
        };
        credits.set_limit(window_lines);
        credits
    }

    fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
        self.prefetch_limit =
            if self.prefetch_lines == 0 { 0 } else { limit.saturating_sub(self.prefetch_lines) };
    }

    /// First position not yet sent.
    #[inline(always)]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether `lines` more may be stored, as far as is known without looking.
    #[inline(always)]
    pub(crate) fn has(&self, lines: u32) -> bool {
        self.next + u64::from(lines) <= self.limit
    }

    /// Whether the line is free that is to be prefetched `ahead` lines from now, as far as is known without looking.
    #[inline(always)]
    pub(crate) fn may_prefetch_after(&self, ahead: u64) -> bool {
        self.next + ahead < self.prefetch_limit
    }

    /// Lines that may be stored, as far as is known without looking.
    pub(crate) fn known_free(&self) -> u32 {
        (self.limit - self.next) as u32
    }

    /// Every line before this position is free, as last believed.
    pub(crate) fn freed(&self) -> u64 {
        self.freed
    }

    /// Lines that are free, as last believed, also while the account is held.
    pub(crate) fn free_lines(&self) -> u32 {
        (self.freed + self.window_lines - self.next) as u32
    }

    /// Looks at the pushed count; then as [`Credits::has`].
    #[cold]
    pub(crate) fn refresh(&mut self, lines: u32) -> Result<bool, CreditError> {
        if let Some(error) = self.closed {
            return Err(error);
        }
        let found = self.source.freed_lines();
        let error = if found < self.freed {
            CreditError::Backwards { found, before: self.freed }
        } else if found > self.next {
            CreditError::Ahead { found, sent: self.next }
        } else {
            self.freed = found;
            self.set_limit(found + self.window_lines);
            return Ok(self.has(lines));
        };
        self.closed = Some(error);
        self.set_limit(self.next);
        Err(error)
    }

    /// Makes [`Credits::has`] say no until [`Credits::refresh`] or [`Credits::spend`]: a reservation is open.
    pub(crate) fn hold(&mut self) {
        self.set_limit(self.next);
    }

    /// Ends a hold.
    pub(crate) fn release(&mut self) {
        if self.closed.is_none() {
            self.set_limit(self.freed + self.window_lines);
        }
    }

    /// Counts `lines` as sent.
    #[inline(always)]
    pub(crate) fn spend(&mut self, lines: u32) {
        self.next += u64::from(lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, rc::Rc};

    struct Pushed(Rc<Cell<u64>>);

    impl CreditSource for Pushed {
        fn freed_lines(&mut self) -> u64 {
            self.0.get()
        }
    }

    fn account() -> (Rc<Cell<u64>>, Credits<Pushed>) {
        let word = Rc::new(Cell::new(0));
        (Rc::clone(&word), Credits::new(Pushed(word), 8, 2))
    }

    #[test]
    fn a_window_is_filled_and_freed() {
        let (word, mut credits) = account();
        assert!(credits.has(8) && !credits.has(9));
        credits.spend(8);
        assert_eq!(credits.refresh(1), Ok(false));
        word.set(3);
        assert!(!credits.has(1), "the pushed word is looked at only on refresh");
        assert_eq!(credits.refresh(3), Ok(true));
        assert_eq!(credits.refresh(4), Ok(false));
        assert_eq!(credits.known_free(), 3);
    }

    #[test]
    fn only_lines_known_to_be_free_are_prefetched() {
        let (word, mut credits) = account();
        credits.spend(5);
        assert!(credits.may_prefetch_after(0), "line 7 of 8 is free");
        credits.spend(1);
        assert!(!credits.may_prefetch_after(0));
        word.set(2);
        assert_eq!(credits.refresh(1), Ok(true));
        assert!(credits.may_prefetch_after(0));
        credits.hold();
        assert!(!credits.may_prefetch_after(0));
        assert!(!Credits::new(Pushed(word), 8, 0).may_prefetch_after(0));
    }

    #[test]
    fn a_count_running_backwards_closes_the_account() {
        let (word, mut credits) = account();
        credits.spend(8);
        word.set(5);
        assert_eq!(credits.refresh(1), Ok(true));
        word.set(4);
        let error = CreditError::Backwards { found: 4, before: 5 };
        assert_eq!(credits.refresh(1), Err(error));
        word.set(8);
        assert!(!credits.has(1));
        assert_eq!(credits.refresh(1), Err(error), "once closed, closed for good");
        credits.release();
        assert!(!credits.has(1));
    }

    #[test]
    fn wild_credits_close_the_account() {
        for wild in [6, 1 << 40, u64::MAX] {
            let (word, mut credits) = account();
            credits.spend(5);
            word.set(wild);
            assert_eq!(credits.refresh(8), Err(CreditError::Ahead { found: wild, sent: 5 }));
            assert!(!credits.has(1));
        }
    }
}
