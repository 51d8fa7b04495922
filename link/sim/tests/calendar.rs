//! The event core: order, determinism, and no allocation once it runs.

use beeline_link_sim::des::{Calendar, Model, Picoseconds, run, stream};
use proptest::prelude::*;
use rand::RngExt;

#[test]
fn events_of_one_time_happen_in_the_order_in_which_they_were_scheduled() {
    let mut calendar = Calendar::new();
    for (at, name) in [(20, "c"), (10, "a"), (20, "d"), (10, "b"), (20, "e")] {
        calendar.schedule(Picoseconds(at), name);
    }
    let order: Vec<_> = std::iter::from_fn(|| calendar.next_event()).collect();
    assert_eq!(order, ["a", "b", "c", "d", "e"]);
    assert_eq!((calendar.now(), calendar.happened(), calendar.len()), (Picoseconds(20), 5, 0));
}

#[test]
fn nothing_happens_after_the_end() {
    let mut calendar = Calendar::new();
    calendar.schedule(Picoseconds(10), ());
    calendar.schedule(Picoseconds(11), ());
    assert_eq!(calendar.next_until(Picoseconds(10)), Some(()));
    assert_eq!(calendar.next_until(Picoseconds(10)), None);
    assert_eq!(calendar.next_at(), Some(Picoseconds(11)));
    calendar.pass_to(Picoseconds(11));
    assert_eq!(calendar.now(), Picoseconds(11));
}

#[test]
#[should_panic(expected = "schedule it now or later")]
fn an_event_in_the_past_is_an_error_of_the_model() {
    let mut calendar = Calendar::new();
    calendar.schedule(Picoseconds(10), ());
    calendar.next_event();
    calendar.schedule(Picoseconds(9), ());
}

proptest! {
    /// The heap agrees with a stable sort, whatever is scheduled and whenever it is taken.
    #[test]
    fn the_order_is_a_stable_sort(batches in prop::collection::vec(prop::collection::vec(0u64..8, 0..40), 1..8)) {
        let mut calendar = Calendar::new();
        let mut expected: Vec<(u64, u64)> = Vec::new();
        let mut number = 0;
        for batch in batches {
            for delay in batch {
                let at = calendar.now() + Picoseconds(delay);
                calendar.schedule(at, (at.0, number));
                expected.push((at.0, number));
                number += 1;
            }
            expected.sort();
            for next in expected.drain(..expected.len() / 2) {
                prop_assert_eq!(calendar.next_event(), Some(next));
                prop_assert_eq!(calendar.now().0, next.0);
            }
        }
        for next in expected {
            prop_assert_eq!(calendar.next_event(), Some(next));
        }
        prop_assert!(calendar.is_empty());
    }
}

/// Each event schedules one more at a random distance: as many stay scheduled.
struct Churn {
    random: beeline_link_sim::des::Stream,
    sum: u64,
}

impl Model for Churn {
    type Event = u32;

    fn happen(&mut self, event: u32, calendar: &mut Calendar<u32>) {
        let delay_ps = self.random.random_range(0..1000);
        self.sum = self.sum.wrapping_mul(31).wrapping_add(calendar.now().0 ^ u64::from(event));
        calendar.schedule_in(Picoseconds(delay_ps), event);
    }
}

fn churn(seed: u64) -> (Churn, Calendar<u32>) {
    let mut calendar = Calendar::new();
    for event in 0..100 {
        calendar.schedule(Picoseconds(u64::from(event)), event);
    }
    (Churn { random: stream(seed, "churn"), sum: 0 }, calendar)
}

#[test]
fn a_seed_determines_a_run() {
    let sum = |seed| {
        let (mut model, mut calendar) = churn(seed);
        let events = run(&mut model, &mut calendar, Picoseconds::from_ns(100));
        assert!(events > 10_000);
        model.sum
    };
    assert_eq!(sum(1), sum(1));
    assert_ne!(sum(1), sum(2));
}

#[test]
fn a_run_allocates_nothing_once_it_is_under_way() {
    let (mut model, mut calendar) = churn(3);
    run(&mut model, &mut calendar, Picoseconds::from_ns(10));
    let made = allocation_counter::measure(|| {
        run(&mut model, &mut calendar, Picoseconds::from_ns(200));
    });
    assert_eq!(made.count_total, 0);
}
