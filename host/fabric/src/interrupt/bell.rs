//! Sleeping until an interrupt is triggered, and the look of a triggerer at whether anybody sleeps.
//!
//! An interrupt has one flag, in memory that all who may trigger it store into and in which there is nothing else. Who is about to sleep
//! raises it, passes a *heavy* barrier, and takes once more; a triggerer stores, passes a *light* barrier, and looks at the flag (docs/
//! design.md, decision 5). Either the sleeper sees the trigger, or the triggerer the flag; `bell_loom.rs` runs it.
//!
//! Several threads may sleep on one flag. It has another value each time that it is raised after a triggerer took it down: a thread whose
//! announcement was taken before it slept would otherwise take that of the next thread for its own, and sleep through its trigger.
//!
//! Somebody may also wait for one of several interrupts. Such a thread sleeps on a flag of its member's, and has the flag of each interrupt
//! *watched*: raised, with a mark by which whoever takes it down rouses that other flag, too. The mark stays up while nobody sleeps; then a
//! trigger takes it down and wakes nobody, and it is put up again before the next sleep.
//!
//! A triggerer may be hostile: it can lower the flag and wake nobody, or store anything into it. So each sleep is bounded, and each return from
//! one means "look again".

use core::sync::atomic::{AtomicU16, Ordering};

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
    /// Wakes all who wait for one of several interrupts, on the flag that they sleep on.
    fn wake_watchers(&self);
    /// Between a triggerer's store and its look at the flag.
    fn light(&self);
    /// Between the raising of the flag and the sleeper's last look.
    fn heavy(&self);
}

/// Value of the flag while nobody sleeps.
const AWAKE: u32 = 0;
/// Mark of a flag that is watched; the same in both byte orders.
const WATCHED: u32 = 0x0080_8000;
/// Times that flags are raised until one has the first value again.
const ROUNDS: u16 = 0x7fff;
/// How often any flag of this process was raised. A flag is used again for another interrupt, whose sleepers are not those of the one before: a thread that is about to
/// sleep for that one would take a value that it has again for its own. Relaxed: only that it is another one.
static RAISED: AtomicU16 = AtomicU16::new(0);

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
    let was = bell.swap(AWAKE);
    if was & !WATCHED != AWAKE {
        bell.wake();
    }
    if was & WATCHED != 0 {
        bell.wake_watchers();
    }
    was != AWAKE
}

/// Threads of the interrupt's member that sleep on its flag, or are about to. Kept under the lock that they take with.
#[derive(Debug, Default)]
pub struct Sleepers {
    count: u32,
    /// Those that wait for one of several interrupts, of which this is one.
    watchers: u32,
    /// Which time of all it was that the flag was raised last.
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
            self.raise(bell);
        }
        Announced(self.value())
    }

    /// Takes an announcement back. The flag stays raised as long as others sleep on it.
    pub fn withdraw(&mut self, _: Announced, bell: &impl Bell) {
        self.count -= 1;
        if self.count == 0 {
            bell.swap(self.value());
        }
    }

    /// Has the flag watched by one more thread, which calls [`Sleepers::arm`] before each sleep.
    pub fn watch(&mut self) {
        self.watchers += 1;
    }

    /// Puts the mark up, after the thread that watches has announced itself on the flag that it sleeps on, and before its
    /// [`Announced::order`] and its last look.
    ///
    /// It stores also where the mark is up. A load may miss that a triggerer is taking it down, which then misses the announcement; of two
    /// exchanges the later one sees what comes before the other.
    pub fn arm(&mut self, bell: &impl Bell) {
        if self.count == 0 {
            bell.swap(self.value());
        } else {
            self.raise(bell);
        }
    }

    /// Ends a [`Sleepers::watch`].
    pub fn unwatch(&mut self, bell: &impl Bell) {
        self.watchers -= 1;
        if self.watchers == 0 && self.count == 0 {
            bell.swap(AWAKE);
        }
    }

    /// Raises the flag, to another value than before where anybody sleeps on it.
    fn raise(&mut self, bell: &impl Bell) {
        let mut round = self.round;
        // Others may have raised theirs so often meanwhile that it is the same.
        while round == self.round {
            round = next_round(&RAISED);
        }
        self.round = round;
        bell.swap(self.value());
    }

    /// What the flag is now. It is the same in both byte orders: the kernel compares it in the machine's, and members of both may share it.
    fn value(&self) -> u32 {
        let [low, high] = if self.count == 0 { [0; 2] } else { self.round.to_le_bytes() };
        let mark = if self.watchers == 0 { 0 } else { WATCHED };
        u32::from_le_bytes([low, high, high, low]) | mark
    }
}

/// From 1 to [`ROUNDS`], and each of them once before any comes again: the count starts anew with them, not where its type ends.
fn next_round(raised: &AtomicU16) -> u16 {
    let next = |count: u16| Some((count + 1) % ROUNDS);
    let before = raised.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    before.unwrap_or_else(|same| same) + 1
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
        watchers_woken: Cell<u32>,
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

        fn wake_watchers(&self) {
            self.watchers_woken.set(self.watchers_woken.get() + 1);
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
    fn mark_wakes_watchers_alone_and_stays_until_the_last_one_goes() {
        let (bell, mut sleepers) = (Counted::default(), Sleepers::default());
        sleepers.watch();
        sleepers.arm(&bell);
        assert_eq!(bell.load(), bell.load().swap_bytes());
        assert!(ring(&bell) && !ring(&bell));
        sleepers.arm(&bell);
        let one = sleepers.announce(&bell);
        assert!(ring(&bell));
        assert_eq!((bell.woken.get(), bell.watchers_woken.get()), (1, 2));
        sleepers.withdraw(one, &bell);
        // Somebody who has slept leaves the mark up.
        assert!(ring(&bell));
        sleepers.arm(&bell);
        sleepers.unwatch(&bell);
        assert!(!ring(&bell));
        assert_eq!((bell.woken.get(), bell.watchers_woken.get()), (1, 3));
    }

    #[test]
    fn mark_that_is_put_up_again_does_not_let_a_roused_thread_sleep() {
        let (bell, mut sleepers) = (Counted::default(), Sleepers::default());
        sleepers.watch();
        let roused = sleepers.announce(&bell);
        ring(&bell);
        sleepers.arm(&bell);
        assert_ne!(bell.load(), roused.0);
        sleepers.withdraw(roused, &bell);
        sleepers.unwatch(&bell);
    }

    #[test]
    fn flag_of_another_interrupt_than_the_one_before_is_another_for_those_that_slept_for_that() {
        let bell = Counted::default();
        let before = Sleepers::default().announce(&bell);
        // As its interrupt is removed.
        rouse(&bell);
        let mut sleepers = Sleepers::default();
        for _ in 0..3 {
            let now = sleepers.announce(&bell);
            assert_ne!(bell.load(), before.0, "who slept for the first would sleep on");
            sleepers.withdraw(now, &bell);
        }
    }

    #[test]
    fn every_round_comes_once_before_one_comes_again_also_where_a_count_of_sixteen_bits_ends() {
        let raised = AtomicU16::new(0);
        let mut came = vec![0; usize::from(ROUNDS) + 1];
        for at in 1..=2 * 65536 + 3 {
            let before = std::mem::replace(&mut came[usize::from(next_round(&raised))], at);
            assert!(before == 0 || at - before == i32::from(ROUNDS), "raises {before} and {at}");
        }
        assert_eq!(came[0], 0, "a flag that is raised is never that of nobody");
    }

    #[test]
    fn flag_that_is_raised_anew_is_another_in_both_byte_orders() {
        let (bell, mut sleepers) = (Counted::default(), Sleepers::default());
        let stays = sleepers.announce(&bell);
        let mut last = stays;
        // Other tests raise flags, too.
        for _ in 0..ROUNDS / 2 {
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
