//! Sleeping until an interrupt is triggered, and the look of a triggerer at whether anybody sleeps.
//!
//! An interrupt has one flag, in memory that all who may trigger it store into and in which there is nothing else. Who is about to sleep
//! raises it, passes a *heavy* barrier, and takes once more; a triggerer stores, passes a *light* barrier, and looks at the flag (docs/
//! design.md, decision 5). Either the sleeper sees the trigger, or the triggerer the flag; `bell_loom.rs` runs it.
//!
//! Several threads may sleep on one flag. It has another value each time that it is raised after a triggerer took it down: a thread whose
//! announcement was taken before it slept would otherwise take that of the next thread for its own, and sleep through its trigger.
//!
//! A triggerer may be hostile: it can lower the flag and wake nobody, or store anything into it. So each sleep is bounded, and each return from
//! one means "look again".

/// The flag of an interrupt, with the barriers of its sides.
pub trait Bell {
    /// Loads the flag; relaxed.
    fn load(&self) -> u32;
    /// Stores into the flag, and gives what it was; acquire and release.
    fn swap(&self, value: u32) -> u32;
    /// Sleeps while the flag is `expected`, for a bounded time.
    fn sleep(&self, expected: u32);
    /// Wakes all who sleep.
    fn wake(&self);
    /// Between a triggerer's store and its look at the flag.
    fn light(&self);
    /// Between the raising of the flag and the sleeper's last look.
    fn heavy(&self);
}

/// Value of the flag while nobody sleeps.
const AWAKE: u32 = 0;

/// Wakes whoever sleeps, after a trigger was stored. While nobody does, this costs one load. Whether somebody was woken.
#[inline]
pub fn ring(bell: &impl Bell) -> bool {
    // Pairs with the heavy barrier of `Announced::order`.
    bell.light();
    bell.load() != AWAKE && rouse(bell)
}

/// Wakes whoever sleeps, and lets nobody fall asleep who is about to. Whether the flag was raised.
#[cold]
pub fn rouse(bell: &impl Bell) -> bool {
    // First, so that a sleeper between its last look and its sleep does not fall asleep any more.
    let was_raised = bell.swap(AWAKE) != AWAKE;
    if was_raised {
        bell.wake();
    }
    was_raised
}

/// Threads of the interrupt's member that sleep on its flag, or are about to. Kept under the lock that they take with.
#[derive(Debug, Default)]
pub struct Sleepers {
    count: u32,
    /// How often the flag was raised.
    round: u16,
}

/// A thread that is about to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Announced(u32);

impl Sleepers {
    /// Announces a thread. Then come [`Announced::order`] without the lock, a last look, [`Announced::park`] if that found nothing, and
    /// [`Sleepers::withdraw`].
    pub fn announce(&mut self, bell: &impl Bell) -> Announced {
        self.count += 1;
        if self.count == 1 || bell.load() != self.value() {
            self.round = self.round.checked_add(1).unwrap_or(1);
            bell.swap(self.value());
        }
        Announced(self.value())
    }

    /// Takes an announcement back. The flag stays raised as long as others sleep on it.
    pub fn withdraw(&mut self, _: Announced, bell: &impl Bell) {
        self.count -= 1;
        if self.count == 0 {
            bell.swap(AWAKE);
        }
    }

    /// What the flag is now. It is the same in both byte orders: the kernel compares it in the machine's, and members of both may share it.
    fn value(&self) -> u32 {
        let [low, high] = self.round.to_le_bytes();
        u32::from_le_bytes([low, high, high, low])
    }
}

impl Announced {
    /// What comes between the announcement and the last look.
    pub fn order(self, bell: &impl Bell) {
        // Pairs with the light barrier of `ring`.
        bell.heavy();
    }

    /// Sleeps, after a last look that found nothing.
    pub fn park(self, bell: &impl Bell) {
        if bell.load() == self.0 {
            bell.sleep(self.0);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[derive(Default)]
    struct Counted {
        flag: Cell<u32>,
        woken: Cell<u32>,
    }

    impl Bell for Counted {
        fn load(&self) -> u32 {
            self.flag.get()
        }

        fn swap(&self, value: u32) -> u32 {
            self.flag.replace(value)
        }

        fn sleep(&self, expected: u32) {
            assert_eq!(self.flag.get(), expected, "who looks last sees that it would not sleep");
        }

        fn wake(&self) {
            self.woken.set(self.woken.get() + 1);
        }

        fn light(&self) {}

        fn heavy(&self) {}
    }

    #[test]
    fn flag_is_up_until_the_last_sleeper_goes_and_wakes_nobody_after_it() {
        let (bell, mut sleepers) = (Counted::default(), Sleepers::default());
        let (one, other) = (sleepers.announce(&bell), sleepers.announce(&bell));
        assert_eq!(one, other);
        sleepers.withdraw(one, &bell);
        assert!(ring(&bell) && !ring(&bell));
        sleepers.withdraw(other, &bell);
        let last = sleepers.announce(&bell);
        sleepers.withdraw(last, &bell);
        assert!(!ring(&bell));
        assert_eq!(bell.woken.get(), 1);
    }

    #[test]
    fn flag_that_is_raised_anew_is_another_in_both_byte_orders() {
        let (bell, mut sleepers) = (Counted::default(), Sleepers::default());
        let stays = sleepers.announce(&bell);
        let mut last = stays;
        for _ in 0..u16::MAX - 1 {
            ring(&bell);
            let next = sleepers.announce(&bell);
            assert!(next != last && next != stays && next.0 != AWAKE && next.0.swap_bytes() == next.0);
            sleepers.withdraw(next, &bell);
            last = next;
        }
        // What a peer has stored is thrown away.
        bell.flag.set(0xdead_beef);
        assert_ne!(sleepers.announce(&bell), last);
    }
}
