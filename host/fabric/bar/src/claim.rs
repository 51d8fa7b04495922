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

use crate::error::OpenError;
use crate::space::Space;

/// Takes a slot, any or the one that is wanted, for the member of a number. With another layout than that of the header it would be words of
/// other members, and is given back.
pub(crate) fn claim(space: &Space, number: u64, wanted: Option<usize>) -> Result<usize, OpenError> {
    let slot = take_one(space, number, wanted)?;
    if let Err(error) = space.check_header() {
        swap(space, slot, (number, 0));
        return Err(error);
    }
    Ok(slot)
}

fn take_one(space: &Space, number: u64, wanted: Option<usize>) -> Result<usize, OpenError> {
    let slots = space.layout.members;
    if let Some(slot) = wanted.filter(|slot| *slot >= slots) {
        return Err(OpenError::SlotTaken { slot });
    }
    let candidates: Vec<usize> = wanted.map_or_else(|| (0..slots).collect(), |slot| vec![slot]);
    let any = |_| true;
    if let Some(slot) = candidates.iter().find(|slot| take(space, **slot, (0, number), any)) {
        return Ok(*slot);
    }
    let watched = watch(space, pause);
    let silent = |slot: &&usize| watched[**slot].silent.is_some();
    let taken = candidates.iter().filter(silent).find(|slot| {
        let before = watched[**slot].silent.unwrap_or(0);
        take(space, **slot, (before, number), |other| watched[other].silent.is_none())
    });
    match (taken, wanted) {
        (Some(slot), _) => Ok(*slot),
        (None, Some(slot)) => Err(OpenError::SlotTaken { slot }),
        (None, None) => Err(OpenError::Full { slots }),
    }
}

/// What a slot was while it was watched.
#[derive(Clone, Copy, Debug)]
struct Watched {
    /// The number that it had all the time, without a beat; zero is nobody's. `None`: its member lives.
    silent: Option<u64>,
}

/// Watches all slots for the bound and a period. A pause counts as a period at most: when all processes were stopped together, those of live
/// members need the time after it to beat.
fn watch(space: &Space, mut pause: impl FnMut(Duration) -> Duration) -> Vec<Watched> {
    let heartbeat = Heartbeat::of::<MappedFile>();
    let words = |slot| (space.number(slot).load_acquire(), space.beat(slot).load_acquire());
    let first: Vec<_> = (0..space.layout.members).map(words).collect();
    let mut watched: Vec<_> = first.iter().map(|(number, _)| Watched { silent: Some(*number) }).collect();
    let mut elapsed = Duration::ZERO;
    while elapsed < heartbeat.bound() + heartbeat.period() {
        elapsed += pause(heartbeat.period() / 2).min(heartbeat.period());
        for (slot, watched) in watched.iter_mut().enumerate() {
            if words(slot) != first[slot] {
                watched.silent = None;
            }
        }
    }
    watched
}

/// Sleeps; how long it was.
fn pause(time: Duration) -> Duration {
    let begun = Instant::now();
    sleep(time);
    begun.elapsed()
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
    let word = space.number(slot);
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
    use std::fs::File;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use beeline_mmio::OnLoss;

    use super::*;
    use crate::memory::BarMemory;

    fn space(members: usize) -> (tempfile::TempDir, Arc<Space>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bar");
        File::create(&path).unwrap().set_len(4 << 20).unwrap();
        let space = Space::open(&BarMemory::File(path), members, OnLoss::Fatal).unwrap();
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
        let mut pauses = 0;
        let watched = watch(&space, |_| {
            pauses += 1;
            space.beat(1).store(pauses / 2);
            Duration::from_secs(3600)
        });
        assert_eq!([0, 1].map(|slot| watched[slot].silent), [Some(5), None]);
    }

    #[test]
    fn slot_of_a_memory_that_was_made_anew_meanwhile_is_given_back() {
        let (dir, space) = space(4);
        space.segment.region().unwrap().word(0).store(0);
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
