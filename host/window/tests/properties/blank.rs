//! Blank windows: the receiver sees memory only, words become visible in any order.

use std::cell::RefCell;

use beeline_contract_memory::{Adversary, Tolerance};
use beeline_window::{FencePolicy, Receiver, WindowConfig, Writer};
use proptest::prelude::*;

use crate::plan::{NEAR_BLANK, PLAIN, Random, Sender, Tally, run, steps};
use crate::test_memory::TestWindow;
use crate::{BLANK, check};

fn windows() -> impl Strategy<Value = u32> {
    prop_oneof![Just(2u32), Just(4), Just(16), Just(64)]
}

fn policies() -> impl Strategy<Value = FencePolicy> {
    prop_oneof![3 => Just(FencePolicy::None), 1 => proptest::sample::select(FencePolicy::ALL.to_vec())]
}

/// Adds up what the cases of a property did, and checks that they did what they are for.
#[derive(Default)]
struct Totals(RefCell<Tally>);

impl Totals {
    fn add(&self, tally: &Tally) {
        let mut total = self.0.borrow_mut();
        total.messages += tally.messages;
        total.escaped += tally.escaped;
        total.laps += tally.laps;
    }

    fn check(&self) {
        let total = self.0.borrow();
        println!("{total:?}");
        if !cfg!(miri) {
            assert!(total.escaped * 2 > total.messages, "most messages are to be escaped: {total:?}");
            assert!(total.laps > 1000, "many laps are to be made: {total:?}");
        }
    }
}

/// Sends messages made of `words` whose stores become visible in any order.
fn in_any_order(words: [u64; 4]) -> Totals {
    let totals = Totals::default();
    let strategy = windows().prop_flat_map(|lines| (Just(lines), steps(lines), policies(), any::<u64>()));
    check(400, strategy, |(lines, plan, policy, seed)| {
        let window = TestWindow::new(lines, BLANK);
        window.hold();
        let config = WindowConfig::blank(BLANK, seed as u8).with_fences(policy);
        let mut sender = Sender::new(Writer::new(window.clone(), window.clone(), config), seed);
        sender.words = words;
        let mut receiver = Receiver::new(window.clone(), window.clone(), config);
        run(&plan, &mut sender, &mut receiver, |_, random: &mut Random, pieces| {
            for _ in 0..pieces.min(window.held()) {
                window.release(random.below(window.held()));
            }
            window.held()
        });
        totals.add(&sender.tally);
        Ok(())
    });
    totals
}

#[test]
fn words_in_any_order_come_out_as_the_messages_sent() {
    in_any_order(NEAR_BLANK).check();
}

/// The receiver's short way, which escaped messages never take.
#[test]
fn plain_words_in_any_order_come_out_as_the_messages_sent() {
    let total = in_any_order(PLAIN).0.into_inner();
    println!("{total:?}");
    assert_eq!(total.escaped, 0);
    assert!(cfg!(miri) || total.laps > 1000, "many laps are to be made: {total:?}");
}

#[test]
fn the_adversary_changes_nothing_but_the_order() {
    let totals = Totals::default();
    let overtakings = RefCell::new(0);
    let tolerance = (prop_oneof![Just(0u32), Just(1), Just(4), Just(64)], any::<bool>());
    let strategy =
        windows().prop_flat_map(move |lines| (Just(lines), steps(lines), tolerance.clone(), any::<u64>()));
    check(400, strategy, |(lines, plan, (span_lines, split_lines), seed)| {
        let window = TestWindow::new(lines, BLANK);
        let config = WindowConfig::blank(BLANK, 0);
        let port = Adversary::new(window.clone(), Tolerance { span_lines, split_lines }, seed);
        let mut sender = Sender::new(Writer::new(port, window.clone(), config), seed);
        let mut receiver = Receiver::new(window.clone(), window.clone(), config);
        run(&plan, &mut sender, &mut receiver, |_, _, _| 0);
        *overtakings.borrow_mut() += sender.writer.port().overtakings();
        totals.add(&sender.tally);
        Ok(())
    });
    totals.check();
    assert!(cfg!(miri) || *overtakings.borrow() > 10_000, "the adversary is to reorder");
}
