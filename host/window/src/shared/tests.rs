//! Two receivers of one window on one thread, where every step can be chosen. Real interleavings: `tests/loom.rs`.

use beeline_contract_memory::Line;
use proptest::prelude::*;

use super::*;
use crate::test_memory::TestWindow;
use crate::{Sent, Writer};

const BLANK: u64 = 0xb1a4_0000_0000_0001;

/// The credits of [`TestWindow`] for many threads: the tests have one, but the type must allow more.
#[derive(Clone, Debug)]
struct Port(TestWindow);

impl LoadPort for Port {
    beeline_contract_memory::group_line_by_line! {}

    fn lines(&self) -> u32 {
        LoadPort::lines(&self.0)
    }
    fn load_word(&self, line: u32, word: u32) -> u64 {
        self.0.load_word(line, word)
    }
    fn load_line(&mut self, line: u32) -> Line {
        self.0.load_line(line)
    }
    fn blank_line(&mut self, line: u32, blank: u64) {
        self.0.blank_line(line, blank);
    }
}

type Ends = (TestWindow, Writer<TestWindow, TestWindow>, Vec<SharedReceiver<Port, TestWindow>>);

fn ends(lines: u32, receivers: usize) -> Ends {
    let window = TestWindow::new(lines, BLANK);
    let config = WindowConfig::blank(BLANK, 3);
    let writer = Writer::new(window.clone(), window.clone(), config);
    let shared = SharedWindow::new(lines, window.clone(), config, receivers);
    let receivers = (0..receivers).map(|_| shared.receiver(Port(window.clone()))).collect();
    (window, writer, receivers)
}

fn taken(receiver: &mut SharedReceiver<Port, TestWindow>) -> Option<Vec<u8>> {
    receiver.poll().unwrap().map(|mut message| {
        let mut out = Vec::new();
        message.copy_to(&mut out);
        out
    })
}

#[test]
fn each_message_goes_to_one_receiver_and_is_freed_in_any_order() {
    let (window, mut writer, mut receivers) = ends(8, 2);
    for byte in 1..=3u8 {
        assert_eq!(writer.try_send(&[byte; 60]), Ok(Sent::Sent));
    }
    let [first, second] = &mut receivers[..] else { panic!("two receivers") };
    let one = first.poll().unwrap().unwrap();
    let two = second.poll().unwrap().unwrap();
    assert_eq!((one.word(0), two.word(0)), (0x0101_0101_0101_0101, 0x0202_0202_0202_0202));
    drop(two);
    assert_eq!(taken(second), Some(vec![3; 60]));
    assert_eq!(taken(second), None);
    assert_eq!(window.published(), 0, "the first message is still in hand");
    drop(one);
    assert_eq!(taken(first), None);
    assert_eq!(window.published(), 6);
}

#[test]
fn line_of_the_last_lap_held_by_another_receiver_is_no_new_message() {
    let (_, mut writer, mut receivers) = ends(4, 2);
    for byte in 1..=4u8 {
        assert_eq!(writer.try_send(&[byte; 8]), Ok(Sent::Sent));
    }
    let [first, second] = &mut receivers[..] else { panic!("two receivers") };
    let held = first.poll().unwrap().unwrap();
    for byte in 2..=4u8 {
        assert_eq!(taken(second), Some(vec![byte; 8]));
    }
    assert_eq!(taken(second), None, "line 0 still has message 1, in the hands of the first receiver");
    assert!(!second.has_work());
    drop(held);
    assert_eq!(taken(second), None);
    assert_eq!(writer.try_send(&[5; 8]), Ok(Sent::Sent));
    assert!(second.has_work());
    assert_eq!(taken(second), Some(vec![5; 8]));
}

#[test]
fn a_kept_window_gives_the_others_nothing_until_it_is_given_up() {
    let (_, mut writer, mut receivers) = ends(8, 2);
    for byte in 1..=4u8 {
        assert_eq!(writer.try_send(&[byte; 8]), Ok(Sent::Sent));
    }
    let [first, second] = &mut receivers[..] else { panic!("two receivers") };
    drop(first.poll_where(|word| word == 0x0101_0101_0101_0101).unwrap().unwrap());
    assert!(first.keeps() && !second.has_work());
    assert_eq!(taken(second), None);
    assert_eq!(taken(first), Some(vec![2; 8]));
    assert_eq!(taken(second), None);
    first.give_up();
    assert_eq!(taken(second), Some(vec![3; 8]));
    assert_eq!(taken(first), Some(vec![4; 8]));
    assert!(!first.keeps());
}

#[test]
fn a_receiver_that_goes_while_it_keeps_the_window_ends_it_for_all() {
    let (_, mut writer, mut receivers) = ends(8, 2);
    assert_eq!(writer.try_send(&[1; 8]), Ok(Sent::Sent));
    let mut second = receivers.pop().unwrap();
    drop(receivers[0].poll_where(|_| true).unwrap().unwrap());
    drop(receivers);
    assert_eq!(second.poll().unwrap_err(), ReceiveError::SharedFailed);
    assert_eq!(second.poll().unwrap_err(), ReceiveError::SharedFailed);
}

#[test]
fn what_is_malformed_ends_the_window_for_all() {
    for forged in [7, Header::new(Kind::Data, 1 << 20, 3).encode(), Header::new(Kind::Data, 8, 4).encode()] {
        let (window, _, mut receivers) = ends(4, 2);
        (0..8).for_each(|word| window.forge(0, word, forged));
        assert!(matches!(receivers[1].poll(), Err(ReceiveError::Header { .. })), "{forged:#x}");
        assert_eq!(receivers[0].poll().unwrap_err(), ReceiveError::SharedFailed);
        assert!(matches!(receivers[1].poll(), Err(ReceiveError::Header { .. })));
    }
    let (_, mut writer, mut receivers) = ends(4, 2);
    let mut batch = writer.batch(50).unwrap().unwrap();
    assert_eq!(batch.push(&[1]), Ok(Sent::Sent));
    batch.send();
    assert!(matches!(receivers[0].poll(), Err(ReceiveError::SharedBatch { .. })));
}

#[test]
fn a_broken_chain_of_escapes_ends_the_window_for_all() {
    let (window, _, mut receivers) = ends(4, 2);
    (0..8).for_each(|word| window.forge(0, word, 1 << 40));
    window.forge(0, 0, Header { escape_last: 3, ..Header::new(Kind::Data, 40, 3) }.encode());
    for _ in 0..2 {
        assert!(matches!(receivers[0].poll(), Err(ReceiveError::Escape { .. })));
    }
    assert_eq!(receivers[1].poll().unwrap_err(), ReceiveError::SharedFailed);
}

#[test]
fn a_forgotten_handle_is_given_again() {
    let (window, mut writer, mut receivers) = ends(4, 2);
    for payload in [[9; 8], BLANK.to_le_bytes()] {
        assert_eq!(writer.try_send(&payload), Ok(Sent::Sent));
        std::mem::forget(receivers[0].poll().unwrap());
        assert_eq!(taken(&mut receivers[1]), None);
        assert_eq!(taken(&mut receivers[0]), Some(payload.to_vec()));
    }
    assert_eq!(taken(&mut receivers[0]), None);
    assert_eq!(window.published(), 2);
}

#[test]
fn a_look_for_work_leaves_a_forgotten_message_alone() {
    let (_, mut writer, mut receivers) = ends(4, 1);
    for byte in 1..=2u8 {
        assert_eq!(writer.try_send(&[byte; 8]), Ok(Sent::Sent));
    }
    std::mem::forget(receivers[0].poll().unwrap());
    assert!(receivers[0].has_work());
    assert_eq!(taken(&mut receivers[0]), Some(vec![1; 8]));
    assert_eq!(taken(&mut receivers[0]), Some(vec![2; 8]));
}

#[test]
fn a_message_is_work_when_all_of_it_has_come() {
    let (window, mut writer, mut receivers) = ends(8, 2);
    window.hold();
    assert_eq!(writer.try_send(&[3; 200]), Ok(Sent::Sent));
    while window.held() > 1 {
        window.release(0);
        assert!(!receivers[0].has_work());
    }
    window.release(0);
    assert!(receivers[0].has_work());
    drop(receivers[0].poll_where(|_| true).unwrap().unwrap());
    assert!(!receivers[0].has_work() && !receivers[1].has_work());
    window.forge(4, 0, 7);
    assert!(receivers[0].has_work(), "what is malformed is found by a poll");
    assert!(!receivers[1].has_work(), "not by one that gets nothing");
}

#[test]
fn a_receiver_that_goes_with_a_forgotten_message_ends_the_window() {
    let (_, mut writer, mut receivers) = ends(4, 2);
    assert_eq!(writer.try_send(&[1; 8]), Ok(Sent::Sent));
    std::mem::forget(receivers[0].poll().unwrap());
    let mut second = receivers.pop().unwrap();
    drop(receivers);
    assert_eq!(second.poll().unwrap_err(), ReceiveError::SharedFailed);
}

#[test]
#[should_panic(expected = "made for one receiver")]
fn a_window_made_for_one_has_one() {
    let window = TestWindow::new(4, BLANK);
    let shared = SharedWindow::new(4, window.clone(), WindowConfig::blank(BLANK, 0), 1);
    let _first = shared.receiver(Port(window.clone()));
    let _second = shared.receiver(Port(window));
}

/// One step of a plan.
#[derive(Clone, Debug)]
enum Step {
    Send {
        bytes: usize,
        blank: bool,
    },
    Abandon(usize),
    /// Lets a held store arrive.
    Arrive(usize),
    /// A receiver takes a message into its hands, or finishes the one it has.
    Work(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..=300usize, any::<bool>()).prop_map(|(bytes, blank)| Step::Send { bytes, blank }),
        1 => (0..=120usize).prop_map(Step::Abandon),
        12 => (0..64usize).prop_map(Step::Arrive),
        5 => (0..3usize).prop_map(Step::Work),
    ];
    proptest::collection::vec(step, 1..if cfg!(miri) { 12 } else { 400 })
}

proptest! {
    // Miri interprets: a few plans are minutes there.
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever order words arrive in, whoever takes and finishes messages when: each comes out once, whole, in the order
    /// of taking, and every line comes back.
    #[test]
    fn messages_are_taken_once_and_in_order(steps in steps(), receivers in 1..=3usize) {
        let (window, mut writer, receivers) = ends(8, receivers);
        window.hold();
        let (mut sent, mut next) = (std::collections::VecDeque::new(), 0u8);
        // Taking a message needs a handle that outlives the step, so "in hand" is a forgotten handle here.
        let mut hands: Vec<_> = receivers.into_iter().map(|receiver| (receiver, false)).collect();
        let work = |hand: &mut (SharedReceiver<Port, TestWindow>, bool),
                        sent: &mut std::collections::VecDeque<Vec<u8>>| {
            if hand.1 {
                drop(hand.0.poll().unwrap().unwrap());
                hand.1 = false;
            } else if let Some(mut message) = hand.0.poll().unwrap() {
                let mut out = Vec::new();
                message.copy_to(&mut out);
                std::mem::forget(message);
                hand.1 = true;
                assert_eq!(Some(out), sent.pop_front());
            }
        };
        for step in steps {
            match step {
                Step::Send { bytes, blank } => {
                    next = next.wrapping_add(1);
                    let mut payload = vec![next; bytes];
                    if blank {
                        payload.chunks_exact_mut(8).skip(1).for_each(|c| c.copy_from_slice(&BLANK.to_le_bytes()));
                    }
                    let (head, rest) = payload.split_at(bytes.min(HEAD_BYTES));
                    if writer.try_send_parts(head, rest).unwrap() == Sent::Sent {
                        sent.push_back(payload);
                    }
                }
                Step::Abandon(bytes) => drop(writer.reserve(bytes).unwrap()),
                Step::Arrive(index) => window.release(index % window.held().max(1)),
                Step::Work(who) => {
                    let count = hands.len();
                    work(&mut hands[who % count], &mut sent);
                }
            }
        }
        while window.held() > 0 {
            window.release(0);
        }
        for _ in 0..64 {
            hands.iter_mut().for_each(|hand| work(hand, &mut sent));
        }
        prop_assert!(sent.is_empty());
        prop_assert_eq!(writer.refresh(), Ok(8));
    }
}
