//! Flow-control credits: what a transmitter may still send, and what a receiver gives back.
//!
//! Base Specification, section 2.6.1. Each class has credits for headers and for data; a packet takes one of the first and
//! one of the second for each 16 bytes of payload. A receiver may advertise infinitely many of a kind.

use thiserror::Error;

use super::{Class, Tlp};

/// How much of a kind a receiver advertises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Finite(u32),
    /// No end of them; they are never given back.
    Infinite,
}

/// Headers and units of 16 bytes of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub headers: u32,
    /// Units of 16 bytes of data.
    pub data_units: u32,
}

impl Amount {
    /// Returns the credits that a packet takes.
    #[inline]
    pub const fn of(tlp: &Tlp) -> Amount {
        Amount { headers: 1, data_units: tlp.data_units() }
    }
}

/// What a receiver advertises for one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertised {
    pub headers: Limit,
    /// Units of 16 bytes of data.
    pub data_units: Limit,
}

impl Advertised {
    /// No limit.
    pub const INFINITE: Advertised = Advertised { headers: Limit::Infinite, data_units: Limit::Infinite };

    /// So many headers and units of 16 bytes.
    pub const fn finite(headers: u32, data_units: u32) -> Advertised {
        Advertised { headers: Limit::Finite(headers), data_units: Limit::Finite(data_units) }
    }
}

/// More came back than was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "credits of {class:?}: {given:?} came back when {left:?} of {advertised:?} were left; give back each packet once"
)]
pub struct TooManyCredits {
    pub class: Class,
    pub given: Amount,
    /// Credits that were out before.
    pub left: Amount,
    /// Credits that the receiver advertised.
    pub advertised: Advertised,
}

/// What a transmitter may still send. Never negative: a packet that does not fit takes nothing.
#[derive(Clone, Debug)]
pub struct Credits {
    advertised: [Advertised; 3],
    /// Of what is infinite, the count stands at its largest and does not move.
    left: [Amount; 3],
}

impl Credits {
    /// All that the receiver advertises, by class in the order of [`Class::ALL`].
    pub fn new(advertised: [Advertised; 3]) -> Credits {
        let count = |limit| match limit {
            Limit::Finite(count) => count,
            Limit::Infinite => u32::MAX,
        };
        let left = advertised
            .map(|class| Amount { headers: count(class.headers), data_units: count(class.data_units) });
        Credits { advertised, left }
    }

    /// Whether a packet fits.
    #[inline]
    pub fn cover(&self, tlp: &Tlp) -> bool {
        let left = self.left[tlp.kind.class() as usize];
        left.headers >= 1 && left.data_units >= tlp.data_units()
    }

    /// Takes what a packet needs; `false` and nothing if it does not fit.
    #[inline]
    pub fn take(&mut self, tlp: &Tlp) -> bool {
        let covered = self.cover(tlp);
        if covered {
            let class = tlp.kind.class() as usize;
            let (advertised, left) = (self.advertised[class], &mut self.left[class]);
            if advertised.headers != Limit::Infinite {
                left.headers -= 1;
            }
            if advertised.data_units != Limit::Infinite {
                left.data_units -= tlp.data_units();
            }
        }
        covered
    }

    /// Credits came back. What is infinite is not counted.
    ///
    /// # Errors
    /// If more were left than the receiver advertised; nothing changes then.
    pub fn give(&mut self, class: Class, given: Amount) -> Result<(), TooManyCredits> {
        let (advertised, left) = (self.advertised[class as usize], self.left[class as usize]);
        let sum = |limit, left: u32, given: u32| match limit {
            Limit::Infinite => Some(left),
            Limit::Finite(all) => left.checked_add(given).filter(|sum| *sum <= all),
        };
        let headers = sum(advertised.headers, left.headers, given.headers);
        let data_units = sum(advertised.data_units, left.data_units, given.data_units);
        let (Some(headers), Some(data_units)) = (headers, data_units) else {
            return Err(TooManyCredits { class, given, left, advertised });
        };
        self.left[class as usize] = Amount { headers, data_units };
        Ok(())
    }

    /// What is left of a class; of what is infinite, 2^32 - 1.
    pub fn left(&self, class: Class) -> Amount {
        self.left[class as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcie::Kind;

    #[test]
    fn a_packet_takes_all_it_needs_or_nothing() {
        let mut credits = Credits::new([Advertised::finite(2, 5); 3]);
        let line = Tlp::new(Kind::MemoryWrite, 0, 64);
        assert!(credits.take(&line));
        assert!(!credits.take(&line), "one unit is left of four");
        assert_eq!(credits.left(Class::Posted), Amount { headers: 1, data_units: 1 });
        assert!(credits.take(&Tlp::new(Kind::MemoryRead, 0, 4096)), "a read has credits of its own");
        credits.give(Class::Posted, Amount::of(&line)).unwrap();
        assert!(credits.take(&line));
    }

    #[test]
    fn credits_that_were_not_taken_do_not_come_back() {
        let mut credits = Credits::new([Advertised::finite(2, 5); 3]);
        let error = credits.give(Class::Completion, Amount { headers: 1, data_units: 0 }).unwrap_err();
        assert!(error.to_string().contains("give back each packet once"), "{error}");
        assert_eq!(credits.left(Class::Completion), Amount { headers: 2, data_units: 5 });
    }

    #[test]
    fn infinite_credits_do_not_run_out() {
        let half = Advertised { headers: Limit::Infinite, data_units: Limit::Finite(4) };
        let mut credits = Credits::new([Advertised::INFINITE, half, Advertised::INFINITE]);
        let line = Tlp::new(Kind::MemoryWrite, 0, 64);
        assert!((0..100).all(|_| credits.take(&line)));
        credits.give(Class::Posted, Amount { headers: 100, data_units: 400 }).unwrap();
        let atomic = Tlp::new(Kind::Atomic, 0, 64);
        assert!(credits.take(&atomic) && !credits.take(&atomic), "only data is finite");
    }
}
