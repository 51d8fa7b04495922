//! A sender killed at any store: everything it completed is delivered, then what it left torn is reported, then the
//! end.

use beeline_window::{ReceiveError, Receiver, WindowConfig, Writer};
use proptest::prelude::*;

use crate::plan::{Sender, Step, drain, receive, steps};
use crate::test_memory::TestWindow;
use crate::{BLANK, check};

/// Runs a plan whose sender dies after `killed_at` words, and gives whether something was torn.
fn die(lines: u32, plan: &[Step], killed_at: u64, seed: u64) -> bool {
    let window = TestWindow::new(lines, BLANK);
    window.kill_after(killed_at);
    let config = WindowConfig::blank(BLANK, 0);
    let mut sender = Sender::new(Writer::new(window.clone(), window.clone(), config), seed);
    let mut receiver = Receiver::new(window.clone(), window.clone(), config);
    let mut polls = 0;
    for step in plan {
        window.hold();
        sender.act(step, &|| window.issued_words());
        while window.held() > 0 {
            window.release(sender.random.below(window.held()));
        }
        if let Step::Poll(times) = step {
            polls += times;
            for _ in 0..*times {
                // Only what was whole before the kill can come out, and it is checked against what was sent.
                receive(&mut receiver, &mut sender.expected);
            }
        }
        if let Step::Drain(max) = step {
            polls += 1;
            drain(&mut receiver, &mut sender.expected, *max);
        }
        if window.issued_words() >= killed_at && polls % 3 == 0 {
            break;
        }
    }
    receiver.sender_gone();
    let last = loop {
        match receiver.poll() {
            Ok(Some(mut message)) => {
                let expected = sender.expected.pop_front().expect("nothing is received that was not sent");
                assert!(
                    expected.stored_words <= killed_at,
                    "a message was delivered whose last words were lost"
                );
                let mut out = Vec::new();
                message.copy_to(&mut out);
                assert_eq!(out, expected.payload);
            }
            Ok(None) => panic!("a dead sender's receiver still waits"),
            Err(error) => break error,
        }
    };
    let lost = sender.expected.iter().find(|expected| expected.stored_words <= killed_at);
    assert!(lost.is_none(), "{lost:?} was complete and not delivered");
    let torn = match last {
        ReceiveError::Torn(torn) => {
            assert_eq!(torn.words_seen, window.arrived_words());
            assert_eq!(torn.position, receiver.next_start());
            true
        }
        ReceiveError::Gone => {
            assert_eq!(window.arrived_words(), 0);
            false
        }
        other => panic!("{other}"),
    };
    assert_eq!(receiver.poll().map(|_| ()), Err(ReceiveError::Gone));
    torn
}

#[test]
fn a_sender_may_die_at_any_store() {
    let lines = prop_oneof![Just(4u32), Just(16)];
    let strategy = lines.prop_flat_map(|lines| (Just(lines), steps(lines), 0..600u64, any::<u64>()));
    let torn = std::cell::Cell::new(0);
    check(500, strategy, |(lines, plan, killed_at, seed)| {
        torn.set(torn.get() + u32::from(die(lines, &plan, killed_at, seed)));
        Ok(())
    });
    assert!(cfg!(miri) || torn.get() > 50, "only {} deaths tore a message", torn.get());
}

#[test]
fn every_single_store_of_a_plan_is_a_place_to_die() {
    let plan =
        [Step::Send(100), Step::Batch(vec![3, 50, 70]), Step::Poll(1), Step::Send(20), Step::Send(300)];
    let torn = (0..120).filter(|killed_at| die(16, &plan, *killed_at, 7)).count();
    assert!(torn > 80, "{torn} of 120");
}
