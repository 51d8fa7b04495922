use std::sync::mpsc;
use std::time::Duration;
use std::vec::Vec;

use super::*;

/// Miri is thousands of times slower.
const ROUNDS: usize = if cfg!(miri) { 10 } else { 500 };

#[test]
fn turn_of_one_thread_is_no_other_threads() {
    let shared = Shared::new(0);
    let mut turn = shared.turn();
    *turn += 1;
    assert!(shared.try_turn().is_none());
    assert!(shared.turn_until(Some(Instant::now())).is_none());
    assert!(shared.turn_until(Some(Instant::now() + Duration::from_millis(1))).is_none());
    drop(turn);
    assert_eq!(shared.try_turn().as_deref(), Some(&1));
    assert_eq!(*shared.turn(), 1, "turns that were given up are nobody's");
}

#[test]
fn waiting_threads_have_their_turns_one_after_the_other() {
    let shared = Shared::new((0, 0));
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let shared = shared.clone();
            std::thread::spawn(move || {
                for round in 0..ROUNDS {
                    let turn = if round % 3 == number % 3 {
                        shared.turn_until(Some(Instant::now() + Duration::from_secs(60)))
                    } else {
                        Some(shared.turn())
                    };
                    let mut turn = turn.expect("a minute is enough");
                    turn.0 += 1;
                    std::hint::black_box(&mut *turn);
                    turn.1 += 1;
                    assert_eq!(turn.0, turn.1);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("it counts only"));
    assert_eq!(*shared.turn(), (4 * ROUNDS, 4 * ROUNDS));
}

#[test]
fn thread_that_waits_comes_before_one_that_comes_later() {
    let shared = Shared::new(Vec::new());
    let turn = shared.turn();
    let (asked, was_asked) = mpsc::channel();
    let waiting = {
        let shared = shared.clone();
        std::thread::spawn(move || {
            asked.send(()).expect("somebody listens");
            shared.turn().push(1);
        })
    };
    was_asked.recv().expect("it asks");
    while shared.0.lock().waiting == 0 {
        std::thread::yield_now();
    }
    drop(turn);
    // Whether the other thread has had its turn yet or not, it comes first.
    assert!(shared.try_turn().is_none_or(|done| *done == [1]));
    shared.turn().push(2);
    waiting.join().expect("it pushes only");
    assert_eq!(*shared.turn(), [1, 2]);
}

#[test]
fn thread_without_time_does_not_take_the_turn_that_another_one_was_promised() {
    let shared = Shared::new(());
    // As between the end of a turn and the moment at which the thread that was woken runs.
    let promise = |waiting, is_promised| {
        let mut state = shared.0.lock();
        (state.waiting, state.is_promised) = (waiting, is_promised);
    };
    promise(1, true);
    assert!(shared.try_turn().is_none());
    assert!(shared.turn_until(Some(Instant::now())).is_none());
    let state = shared.0.lock();
    assert!(state.is_promised && state.waiting == 1, "{state:?}");
    drop(state);
    promise(0, false);
    assert!(shared.turn_until(Some(Instant::now())).is_some());
}

#[test]
fn panic_in_a_turn_gives_it_back() {
    let shared = Shared::new(1);
    let panicking = std::panic::AssertUnwindSafe(|| {
        let _turn = shared.turn();
        panic!("on purpose");
    });
    assert!(std::panic::catch_unwind(panicking).is_err());
    assert_eq!(shared.try_turn().as_deref(), Some(&1));
}
