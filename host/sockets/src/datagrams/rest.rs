//! Rests: a receiver that would sleep all the time has its senders use the kernel for a while, whose datagrams wake for less than a bell does.
//!
//! The receiver asks each sender for it by a word, and the sender answers with the same number once nothing that it stores is to be taken before what it gives to the
//! kernel, and stores nothing more until the word is another. For a program that sends nothing the thread in the background answers, which the receiver rings. When all have answered and their windows are empty, a receive is a call of the kernel's, and nobody rings.
//! Behind some datagrams windows are tried again; each time that they were not worth it, the next rest is twice as long.

use beeline_socket_rules::Spin;

use super::incoming::Incoming;

/// Datagrams of the first rest, and how often that is doubled.
const FIRST: u32 = 64;
const MOST_DOUBLINGS: u8 = 10;
/// Halvings of the time of spinning, where it did not pay.
const MOST_SHIFT: u8 = 4;
/// So many waits that paid without one that did not, and the next rest is a first one.
const WORTH_WAITS: u32 = 1024;
/// Senders that have not answered are rung before so many sleeps of a rest: one that is stopped never answers.
const HURRIES: u8 = 3;
/// A wait pays that ends within this part of the time of spinning: what takes longer the kernel would have told as soon.
const PAYS_WITHIN: u32 = 4;

#[derive(Debug, Default)]
pub(crate) struct Rest {
    is_on: bool,
    /// Whether all senders use the kernel, and nothing is left in their windows.
    is_whole: bool,
    /// Sleeps before which senders are rung that have not answered.
    hurries: u8,
    /// Datagrams until windows are tried again.
    left: u32,
    doublings: u8,
    paid: u32,
    /// Whether the last datagram came by a window: a sender that is not there yet says nothing of windows.
    uses_windows: bool,
    /// The time of spinning is halved so often.
    shift: u8,
}

/// How a wait for a datagram ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Slept,
    Spun(std::time::Duration),
}

impl Rest {
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    pub(crate) fn uses_windows(&self) -> bool {
        self.uses_windows
    }

    /// How long a wait spins before it sleeps; `None`: for ever.
    pub(crate) fn spin(&self, spin: Spin) -> Option<std::time::Duration> {
        match spin {
            Spin::For(_) if self.is_on => Some(std::time::Duration::ZERO),
            Spin::For(spin) => Some(spin / (1 << self.shift)),
            Spin::Forever => None,
        }
    }

    /// Whether a rest is due, behind a wait.
    fn is_due_behind(&mut self, waited: Waited, spin: Spin) -> bool {
        let Spin::For(most) = spin else { return false };
        if self.is_on {
            return false;
        }
        if matches!(waited, Waited::Spun(time) if time <= most / PAYS_WITHIN) {
            self.shift = self.shift.saturating_sub(1);
            self.paid = (self.paid + 1).min(WORTH_WAITS);
            if self.paid == WORTH_WAITS {
                self.doublings = 0;
            }
            return false;
        }
        self.paid = 0;
        self.shift = (self.shift + 1).min(MOST_SHIFT);
        self.uses_windows && (self.shift == MOST_SHIFT || most.is_zero())
    }

    fn begin(&mut self) {
        (self.is_on, self.is_whole, self.hurries) = (true, false, HURRIES);
        self.left = FIRST << self.doublings;
        self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
    }

    fn end(&mut self) {
        // Windows get a whole spin.
        (self.is_on, self.is_whole, self.uses_windows, self.shift) = (false, false, false, 0);
    }
}

impl Rest {
    /// A wait has ended, or is about to sleep.
    pub(crate) fn note_wait(&mut self, incoming: &mut [Incoming], waited: Waited, spin: Spin) {
        if self.is_on && !self.is_whole && waited == Waited::Slept && self.hurries > 0 {
            // Those that send have answered by now.
            self.hurries -= 1;
            incoming.iter_mut().for_each(Incoming::hurry_rest);
        }
        if self.is_due_behind(waited, spin) && !incoming.is_empty() {
            self.begin();
            incoming.iter_mut().for_each(Incoming::ask_for_rest);
        }
    }

    /// A datagram is taken.
    #[inline]
    pub(crate) fn note_taken(&mut self, is_of_window: bool) {
        self.uses_windows = is_of_window;
        self.left = self.left.saturating_sub(1);
    }

    /// Whether a receive is the kernel's for now. `is_alone`: no other call is in the kernel, which would not see what comes by windows.
    pub(crate) fn is_kernels(&mut self, incoming: &mut [Incoming], is_alone: impl FnOnce() -> bool) -> bool {
        if !self.is_on {
            return false;
        }
        if self.left == 0 && is_alone() {
            self.end();
            incoming.iter_mut().for_each(Incoming::end_rest);
            return false;
        }
        if !self.is_whole {
            self.is_whole = incoming.iter_mut().all(Incoming::rests);
        }
        self.is_whole
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SPIN: Spin = Spin::For(Duration::from_micros(50));
    const PAID: Waited = Waited::Spun(Duration::from_micros(2));

    fn waits_until_due(rest: &mut Rest, waited: Waited) -> usize {
        (1..100).find(|_| rest.is_due_behind(waited, SPIN)).unwrap()
    }

    #[test]
    fn rest_is_due_behind_sleeps_and_long_spins_and_never_behind_short_ones() {
        for waited in [Waited::Slept, Waited::Spun(Duration::from_micros(30))] {
            let mut rest = Rest { uses_windows: true, ..Rest::default() };
            assert_eq!(waits_until_due(&mut rest, waited), usize::from(MOST_SHIFT));
            assert_eq!(rest.spin(SPIN), Some(Duration::from_micros(50) / 16));
        }
        let mut rest = Rest { uses_windows: true, ..Rest::default() };
        assert!((0..10_000).all(|_| !rest.is_due_behind(PAID, SPIN)));
        assert!((0..10_000).all(|_| !rest.is_due_behind(Waited::Slept, Spin::Forever)));
        assert!(rest.is_due_behind(Waited::Slept, Spin::For(Duration::ZERO)));
        rest.uses_windows = false;
        assert!((0..100).all(|_| !rest.is_due_behind(Waited::Slept, SPIN)));
    }

    #[test]
    fn rests_double_until_windows_are_worth_it_again() {
        let mut rest = Rest::default();
        let lengths: Vec<u32> = (0..13)
            .map(|_| {
                rest.begin();
                let left = rest.left;
                rest.end();
                left
            })
            .collect();
        assert_eq!(lengths[..3], [64, 128, 256]);
        assert_eq!(lengths[11..], [64 << 10, 64 << 10]);
        assert!((0..WORTH_WAITS).all(|_| !rest.is_due_behind(PAID, SPIN)));
        rest.begin();
        assert_eq!(rest.left, 64);
        assert_eq!(rest.spin(SPIN), Some(Duration::ZERO));
    }
}
