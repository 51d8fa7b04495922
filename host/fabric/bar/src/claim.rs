//! Taking a slot.
//!
//! A slot is free if it has no member, or one that has been silent for the bound, and nobody who lives has memory of it mapped: whoever
//! stored through such a map would store into segments of the next member. Who takes a slot and who begins to use its member each store,
//! pass a barrier and look at the other's word ([`Space::number`], [`Space::holds`]), so at least one of them sees the other.
//!
//! A member that only stood still finds another number in its slot, and stores nothing more (`shared.rs`). Until it looks its program goes on
//! to store where it did: nothing keeps it from that, so slots that nobody had, or whose member has left, are taken first.

use std::thread::sleep;
use std::time::{Duration, Instant};

use beeline_contract_link::Heartbeat;
use beeline_heartbeat::MappedFile;
use beeline_mmio::Word;

use crate::error::OpenError;
use crate::space::Space;

/// Takes a slot, any or the one that is wanted, for the member of a number. With another layout than that of the header it would be words of
/// other members, and is given back.
pub(crate) fn claim(space: &Space, number: u64, wanted: Option<usize>) -> Result<usize, OpenError> {
    let slot = take_one(space, number, wanted, pause)?;
    if let Err(error) = space.check_header() {
        swap(space, slot, (number, 0));
        return Err(error);
    }
    // Before anything else of the slot changes: what several held of its area is gone.
    space.ordered(|| space.tenant(slot).store_release(0));
    Ok(slot)
}

/// Several that come at once take slots from each other, and a slot that one of them has taken may be free a moment later. So slots are tried
/// again after each pause, and none is left only when each has a member that was seen to live.
fn take_one(
    space: &Space,
    number: u64,
    wanted: Option<usize>,
    mut pause: impl FnMut(Duration) -> Duration,
) -> Result<usize, OpenError> {
    let slots = space.layout.members;
    let refused = || wanted.map_or(OpenError::Full { slots }, |slot| OpenError::SlotTaken { slot });
    if wanted.is_some_and(|slot| slot >= slots) {
        return Err(refused());
    }
    let candidates: Vec<usize> = wanted.map_or_else(|| (0..slots).collect(), |slot| vec![slot]);
    let mut watch = Watch::begin(space);
    loop {
        let lives = |slot: usize| !watch.is_silent(slot);
        let take_from = |slot: &usize, before| take(space, *slot, (before, number), lives);
        let free = candidates.iter().find(|slot| take_from(slot, 0));
        let silent = |slot: &&usize| watch.is_silent(**slot);
        let taken = free.or_else(|| {
            let mut silent = candidates.iter().filter(silent);
            silent.find(|slot| take_from(slot, watch.slots[**slot].number))
        });
        if let Some(slot) = taken {
            return Ok(*slot);
        }
        if watch.is_over(&candidates) {
            return Err(refused());
        }
        let time = pause(Heartbeat::of::<MappedFile>().period() / 2);
        watch.look(space, time);
    }
}

/// What was seen of a slot so far.
#[derive(Clone, Copy, Debug)]
struct Watched {
    number: u64,
    beat: u64,
    /// How long both have been the same.
    silent: Duration,
    /// Whether the member of this number has beaten.
    has_beaten: bool,
}

/// All slots while they are watched.
#[derive(Debug)]
struct Watch {
    slots: Vec<Watched>,
    elapsed: Duration,
}

impl Watch {
    fn begin(space: &Space) -> Self {
        let watched = |slot| {
            let (number, beat) = Watch::words(space, slot);
            Watched { number, beat, silent: Duration::ZERO, has_beaten: false }
        };
        Watch { slots: (0..space.layout.members).map(watched).collect(), elapsed: Duration::ZERO }
    }

    fn words(space: &Space, slot: usize) -> (u64, u64) {
        (space.number(slot).load_acquire(), space.beat(slot).load_acquire())
    }

    /// The bound and a period.
    fn limit() -> Duration {
        let heartbeat = Heartbeat::of::<MappedFile>();
        heartbeat.bound() + heartbeat.period()
    }

    /// Looks at all slots after a pause, which counts as a period at most: when all processes were stopped together, those of live members
    /// need the time after it to beat.
    fn look(&mut self, space: &Space, pause: Duration) {
        let time = pause.min(Heartbeat::of::<MappedFile>().period());
        self.elapsed += time;
        for (slot, watched) in self.slots.iter_mut().enumerate() {
            let (number, beat) = Watch::words(space, slot);
            if number != watched.number {
                *watched = Watched { number, beat, silent: Duration::ZERO, has_beaten: false };
            } else if beat != watched.beat {
                *watched = Watched { number, beat, silent: Duration::ZERO, has_beaten: true };
            } else {
                watched.silent += time;
            }
        }
    }

    /// Whether a slot has had nobody, or somebody without a beat, for the bound.
    fn is_silent(&self, slot: usize) -> bool {
        self.slots[slot].silent >= Watch::limit()
    }

    /// Whether there is nothing more to wait for: each of the slots has a member that lives, or is held by one and was for the bound once more.
    fn is_over(&self, candidates: &[usize]) -> bool {
        let all_live =
            || candidates.iter().all(|slot| self.slots[*slot].has_beaten && !self.is_silent(*slot));
        self.elapsed >= 2 * Watch::limit() || self.elapsed >= Watch::limit() && all_live()
    }
}

/// Sleeps; how long it was.
fn pause(time: Duration) -> Duration {
    let begun = Instant::now();
    sleep(time);
    begun.elapsed()
}

/// The slots that were freed, and those that are held.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Freed {
    pub(crate) freed: Vec<usize>,
    /// Somebody who lives has memory of them mapped.
    pub(crate) held: Vec<usize>,
}

/// Makes the slots free whose members have one of these numbers and were silent for the bound, as if `number` had taken them and left: a member
/// that only stood still finds that it is one no more.
pub(crate) fn free_silent(space: &Space, number: u64, is_meant: impl Fn(u64) -> bool) -> Freed {
    let mut watch = Watch::begin(space);
    let meant: Vec<usize> =
        (0..space.layout.members).filter(|slot| is_meant(watch.slots[*slot].number)).collect();
    while watch.elapsed < Watch::limit() && meant.iter().any(|slot| !watch.slots[*slot].has_beaten) {
        let time = pause(Heartbeat::of::<MappedFile>().period() / 2);
        watch.look(space, time);
    }
    let mut found = Freed::default();
    for slot in meant.into_iter().filter(|slot| watch.is_silent(*slot)) {
        let before = watch.slots[slot].number;
        if take(space, slot, (before, number), |other| !watch.is_silent(other)) {
            space.ordered(|| space.tenant(slot).store_release(0));
            space.clear(slot);
            swap(space, slot, (number, 0));
            found.freed.push(slot);
        } else {
            found.held.push(slot);
        }
    }
    found
}

/// Takes a slot that has one number for another, unless somebody who may live has memory of it mapped.
fn take(space: &Space, slot: usize, (before, number): (u64, u64), lives: impl Fn(usize) -> bool) -> bool {
    let is_held = || {
        let mut others = (0..space.layout.members).filter(|other| *other != slot);
        others.any(|other| {
            let is_somebody = space.number(other).load_acquire() != 0;
            is_somebody && lives(other) && space.holds(other, slot).load_acquire() != 0
        })
    };
    if is_held() || !swap(space, slot, (before, number)) {
        return false;
    }
    // Pairs with the barrier of who begins to use the slot's member (`Peer::hold`).
    let is_ordered = space.barrier().is_ok();
    if is_ordered && !is_held() {
        return true;
    }
    swap(space, slot, (number, before));
    false
}

/// Puts a number in the place of another; `false` if that was not there.
fn swap(space: &Space, slot: usize, (before, number): (u64, u64)) -> bool {
    swap_word(space, &space.number(slot), (before, number))
}

/// Puts a number into a word in the place of another; `false` if that was not there.
pub(crate) fn swap_word(space: &Space, word: &Word, (before, number): (u64, u64)) -> bool {
    if !space.is_device() {
        return word.compare_exchange(before, number).is_ok();
    }
    // A device has no such operation. Of several who store, all but the last find another number after a while; whoever stood still for so
    // long finds it when it looks for its peers.
    if word.load_acquire() != before {
        return false;
    }
    space.ordered(|| word.store_release(number));
    sleep(SETTLED);
    space.barrier().is_ok() && word.load_acquire() == number
}

/// How long a number is left alone on a device before it is taken for this member's.
const SETTLED: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use beeline_mmio::OnLoss;

    use super::*;
    use crate::memory::BarMemory;
    use crate::test_members::memory;

    fn space(members: usize) -> (tempfile::TempDir, Arc<Space>) {
        let (dir, memory) = memory(4 << 20);
        let space = Space::open(&memory, members, OnLoss::Fatal).unwrap();
        (dir, space)
    }

    #[test]
    fn members_that_come_at_once_get_a_slot_each() {
        let (_dir, space) = space(8);
        let mut slots: Vec<usize> = std::thread::scope(|scope| {
            let claims = (1..=8).map(|number| {
                let space = &space;
                scope.spawn(move || claim(space, number, None).unwrap())
            });
            let claims: Vec<_> = claims.collect();
            claims.into_iter().map(|claim| claim.join().unwrap()).collect()
        });
        slots.sort_unstable();
        assert_eq!(slots, (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn member_that_was_stopped_together_with_who_watches_has_time_to_beat() {
        let (_dir, space) = space(2);
        (0..2).for_each(|slot| space.number(slot).store(5));
        let mut watch = Watch::begin(&space);
        for beats in 1.. {
            space.beat(1).store(beats / 2);
            watch.look(&space, Duration::from_secs(3600));
            if watch.elapsed >= Watch::limit() {
                break;
            }
        }
        assert_eq!([0, 1].map(|slot| watch.is_silent(slot)), [true, false]);
    }

    /// Two slots whose members are dead and had connected to each other, and what happens after each pause of who claims one.
    fn claim_while(happens: impl Fn(&Space, usize)) -> Result<usize, OpenError> {
        let (_dir, space) = space(2);
        for slot in 0..2 {
            space.number(slot).store(5 + slot as u64);
            space.holds(slot, 1 - slot).store(5 + (1 - slot) as u64);
        }
        let mut pauses = 0;
        take_one(&space, 9, None, |time| {
            pauses += 1;
            happens(&space, pauses);
            time
        })
    }

    fn pauses_of_the_bound() -> usize {
        let half = Heartbeat::of::<MappedFile>().period() / 2;
        Watch::limit().as_nanos().div_ceil(half.as_nanos()) as usize
    }

    /// Who has just taken the other slot has not cleared yet what the dead one held.
    #[test]
    fn slot_is_taken_though_another_was_taken_at_the_last_moment() {
        let last = pauses_of_the_bound();
        let taken = claim_while(|space, pauses| match pauses.cmp(&last) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => space.number(0).store(7),
            std::cmp::Ordering::Greater => {
                space.holds(0, 1).store(0);
                space.beat(0).store(pauses as u64);
            }
        });
        assert!(matches!(taken, Ok(1)), "{taken:?}");
    }

    /// Two others have taken both; one of them gives its slot back.
    #[test]
    fn slot_that_another_takes_and_gives_back_is_free() {
        let last = pauses_of_the_bound();
        let taken = claim_while(|space, pauses| {
            (0..2).for_each(|slot| space.holds(slot, 1 - slot).store(0));
            space.number(0).store(if pauses == last { 7 } else { 0 });
            space.number(1).store(8);
            space.beat(1).store(pauses as u64);
            if pauses < last {
                space.number(0).store(5);
            }
        });
        assert!(matches!(taken, Ok(0)), "{taken:?}");
    }

    #[test]
    fn who_comes_while_others_take_all_slots_is_refused() {
        let taken = claim_while(|space, pauses| {
            (0..2).for_each(|slot| space.number(slot).store(7 + slot as u64));
            (0..2).for_each(|slot| space.beat(slot).store(pauses as u64));
        });
        assert!(matches!(taken, Err(OpenError::Full { slots: 2 })), "{taken:?}");
    }

    #[test]
    fn slot_of_a_memory_that_was_made_anew_meanwhile_is_given_back() {
        let (dir, space) = space(4);
        // As in a device: of two who come first the later has written it.
        space.segment.region().unwrap().fill(0, 64, 0);
        Space::open(&BarMemory::File(dir.path().join("bar")), 8, OnLoss::Fatal).unwrap();
        assert!(matches!(claim(&space, 7, Some(1)), Err(OpenError::Remade)));
        assert_eq!(space.number(1).load(), 0);
    }

    #[test]
    fn slot_of_a_silent_member_is_taken_and_that_of_one_who_beats_is_not() {
        let (_dir, space) = space(2);
        space.number(0).store(5);
        space.number(1).store(6);
        let is_over = AtomicBool::new(false);
        let claims = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    space.beat(1).store(space.beat(1).load() + 1);
                    sleep(Duration::from_millis(10));
                }
            });
            let claims =
                [(7, Some(1)), (7, None), (8, Some(2))].map(|(number, slot)| claim(&space, number, slot));
            is_over.store(true, Ordering::Relaxed);
            claims
        });
        assert!(
            matches!(
                claims,
                [Err(OpenError::SlotTaken { slot: 1 }), Ok(0), Err(OpenError::SlotTaken { slot: 2 })]
            ),
            "{claims:?}"
        );
        assert_eq!((space.number(0).load(), space.number(1).load()), (7, 6));
    }

    #[test]
    fn slot_whose_memory_somebody_has_mapped_is_left_alone() {
        let (_dir, space) = space(3);
        space.number(1).store(6);
        space.holds(1, 0).store(5);
        space.holds(2, 0).store(5);
        assert!(!take(&space, 0, (0, 7), |_| true), "a member that may live has it mapped");
        assert_eq!(space.number(0).load(), 0);
        space.holds(1, 0).store(0);
        assert!(take(&space, 0, (0, 7), |_| true), "nobody has slot 2");
        space.holds(0, 1).store(6);
        assert!(!take(&space, 1, (6, 8), |other| other == 0));
        assert!(take(&space, 1, (6, 8), |_| false));
    }
}
