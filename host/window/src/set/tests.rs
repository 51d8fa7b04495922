use std::collections::HashMap;

use super::pass::LOOKS;
use super::*;
use crate::test_memory::TestWindow;
use crate::writer::tests::{BLANK, pair};
use crate::{Sent, WindowConfig, Writer};

type TestSet = ReceiverSet<TestWindow, TestWindow>;
type TestWriter = Writer<TestWindow, TestWindow>;

/// Miri is thousands of times slower: it has fewer rounds.
const fn rounds(many: usize, few: usize) -> usize {
    if cfg!(miri) { few } else { many }
}

fn member(set: &mut TestSet, lines: u32) -> (MemberId, TestWriter, TestWindow) {
    let (window, writer, receiver) = pair(lines);
    (set.insert(receiver), writer, window)
}

fn send(writer: &mut TestWriter, number: u64) {
    assert_eq!(writer.try_send(&number.to_le_bytes()), Ok(Sent::Sent));
}

/// Who gave what in one pass, a number for each message.
fn pass(set: &mut TestSet, max: usize) -> Vec<(MemberId, u64)> {
    let mut given = Vec::new();
    let taken = set.drain(max, |member, message| given.push((member, message.word(0))));
    assert_eq!(taken, Ok(given.len()));
    given
}

#[test]
fn flooding_member_takes_a_burst_and_no_more_from_the_others() {
    let mut set = ReceiverSet::new(4);
    let lines = rounds(64, 8);
    let (fast, mut flood, _) = member(&mut set, lines as u32);
    let (slow, mut trickle, _) = member(&mut set, 64);
    let mut sent = 0;
    for number in 0..rounds(50, 3) as u64 {
        while flood.try_send(&[7; 8]) == Ok(Sent::Sent) {
            sent += 1;
        }
        send(&mut trickle, number);
        let given = pass(&mut set, usize::MAX);
        assert!(given.contains(&(slow, number)), "{given:?} in pass {number}");
        assert_eq!(given.iter().filter(|(member, _)| *member == fast).count(), 4);
    }
    assert!(sent > lines, "the flood goes round its window");
}

#[test]
fn small_most_goes_on_with_the_next_member() {
    let mut set = ReceiverSet::new(3);
    let mut members: Vec<_> = (0..5).map(|_| member(&mut set, 64)).collect();
    for (_, writer, _) in &mut members {
        (0..10).for_each(|number| send(writer, number));
    }
    let mut given = HashMap::new();
    for _ in 0..20 {
        let most = pass(&mut set, 2);
        assert_eq!(most.len(), 2);
        most.into_iter().for_each(|(member, _)| *given.entry(member).or_insert(0) += 1);
    }
    assert_eq!(given.len(), 5);
    assert!(given.values().all(|count| *count == 8), "{given:?}");
}

#[test]
fn idle_members_are_found_within_the_passes_promised() {
    let mut set = ReceiverSet::new(2);
    let (busy, mut busy_writer, _) = member(&mut set, rounds(1024, 128) as u32);
    let mut idle: Vec<_> = (0..rounds(100, 10)).map(|_| member(&mut set, 2)).collect();
    (0..rounds(900, 90) as u64).for_each(|number| send(&mut busy_writer, number));
    assert_eq!(pass(&mut set, usize::MAX).len(), 2, "from now on the others are idle");
    for round in 0..rounds(20, 2) {
        let (who, writer, _) = &mut idle[round * 5];
        send(writer, round as u64);
        let passes = (1..=IDLE_PASSES)
            .find(|_| pass(&mut set, usize::MAX).contains(&(*who, round as u64)))
            .expect("it is found in time");
        assert!(passes <= IDLE_PASSES);
    }
    assert!(pass(&mut set, usize::MAX).iter().any(|(member, _)| *member == busy));
}

#[test]
fn idle_member_is_found_although_a_busy_one_gives_all_that_each_pass_takes() {
    for most in 1..=4 {
        let mut set = ReceiverSet::new(4);
        let (_, mut flood, _) = member(&mut set, 64);
        let (late, mut trickle, _) = member(&mut set, 2);
        send(&mut flood, 0);
        assert_eq!(pass(&mut set, usize::MAX).len(), 1, "from now on the other one is idle");
        send(&mut trickle, 9);
        (0..60).for_each(|number| send(&mut flood, number));
        let given: Vec<_> = (0..=IDLE_PASSES).flat_map(|_| pass(&mut set, most)).collect();
        assert!(given.contains(&(late, 9)), "{given:?} in passes of {most}");
    }
}

#[test]
fn member_on_whose_message_the_program_panics_stays_in_the_set() {
    let mut set = ReceiverSet::new(4);
    let (only, mut writer, _) = member(&mut set, 8);
    send(&mut writer, 1);
    let panicking = std::panic::AssertUnwindSafe(|| set.drain(9, |_, _| panic!("on purpose")));
    assert!(std::panic::catch_unwind(panicking).is_err());
    assert_eq!(pass(&mut set, 9), [(only, 1)], "the message is given again");
}

#[test]
fn nothing_is_said_only_after_a_look_at_every_member() {
    let mut set = ReceiverSet::new(2);
    let mut members: Vec<_> = (0..rounds(100, 5)).map(|_| member(&mut set, 2)).collect();
    assert_eq!(pass(&mut set, 100), []);
    for (who, writer, _) in &mut members {
        assert!(!set.has_begun());
        send(writer, 9);
        assert!(set.has_begun());
        assert_eq!(pass(&mut set, 100), [(*who, 9)]);
    }
    assert_eq!(pass(&mut set, 0), []);
}

#[test]
fn member_that_gave_something_last_is_found_without_a_look_at_all_others_and_they_have_theirs() {
    let mut set = ReceiverSet::new(4);
    let members = rounds(1000, 300);
    let mut all: Vec<_> = (0..members).map(|_| member(&mut set, 8)).collect();
    assert_eq!(pass(&mut set, 9), []);
    let (who, mut writer, _) = all.swap_remove(members / 2);
    let looks = |all: &[(MemberId, TestWriter, TestWindow)]| -> u64 {
        all.iter().map(|(_, _, window)| window.words_loaded()).sum()
    };
    for number in 0..rounds(20, 3) as u64 {
        send(&mut writer, number);
        let before = looks(&all);
        assert_eq!(pass(&mut set, 9), [(who, number)]);
        let looked = (looks(&all) - before) as usize;
        if number > 0 {
            let share = members.div_ceil(ROUND_SHARES);
            assert!(looked <= LOOKS + share, "{looked} looks");
            assert!(looked + 2 >= share, "{looked} looks keep the others from being found in time");
        }
        assert_eq!(pass(&mut set, 9), [], "it is idle again");
    }
}

#[test]
fn receiver_that_somebody_else_received_from_is_looked_at_where_it_is_now() {
    let mut set = ReceiverSet::new(4);
    let (who, mut writer, _) = member(&mut set, 8);
    let (_, mut other, _) = member(&mut set, 8);
    assert_eq!(pass(&mut set, 9), []);
    for is_one in [true, false, true] {
        send(&mut writer, 1);
        let mut taken = 0;
        if is_one {
            let receiver = set.get_mut(who).expect("it is a member");
            assert_eq!(receiver.drain(9, |_| taken += 1), Ok(1));
        } else {
            set.iter_mut().for_each(|(_, receiver)| taken += receiver.drain(9, |_| {}).unwrap_or(9));
        }
        assert_eq!((taken, set.has_begun()), (1, false));
        assert_eq!(pass(&mut set, 9), []);
        send(&mut writer, 2);
        assert!(set.has_begun());
        assert_eq!(pass(&mut set, 9), [(who, 2)]);
    }
    send(&mut other, 3);
    assert_eq!(pass(&mut set, 9).len(), 1);
}

#[test]
fn receiver_that_was_exchanged_for_another_is_the_one_that_is_looked_at() {
    for (is_active, is_one) in [(false, true), (true, true), (false, false), (true, false)] {
        let mut set = ReceiverSet::new(4);
        let (who, mut first, _) = member(&mut set, 8);
        let (_, mut second, other) = pair(8);
        assert_eq!(pass(&mut set, 9), []);
        if is_active {
            send(&mut first, 0);
            assert_eq!(pass(&mut set, 9), [(who, 0)]);
        }
        let receiver =
            if is_one { set.get_mut(who) } else { set.iter_mut().next().map(|(_, receiver)| receiver) };
        drop(core::mem::replace(receiver.expect("it is a member"), other));
        assert_eq!(pass(&mut set, 9), []);
        send(&mut second, 2);
        assert_eq!(pass(&mut set, 9), [(who, 2)]);
        send(&mut first, 1);
        assert_eq!(pass(&mut set, 9), [], "of a window that is in no set any more");
    }
}

#[test]
fn member_in_the_place_of_a_removed_one_is_looked_at_in_its_own_window() {
    for is_active in [false, true] {
        let mut set = ReceiverSet::new(4);
        let (removed, mut first, _) = member(&mut set, 8);
        assert_eq!(pass(&mut set, 9), []);
        if is_active {
            send(&mut first, 0);
            assert_eq!(pass(&mut set, 9), [(removed, 0)]);
        }
        assert!(set.remove(removed).is_some());
        assert_eq!(pass(&mut set, 9), []);
        let (who, mut second, _) = member(&mut set, 8);
        assert_eq!((pass(&mut set, 9), who.index), (vec![], removed.index));
        send(&mut second, 2);
        assert_eq!(pass(&mut set, 9), [(who, 2)]);
    }
}

#[test]
fn members_come_and_go_while_others_are_received_from() {
    let mut set = ReceiverSet::new(8);
    let mut members: Vec<(MemberId, TestWriter, TestWindow, u64, u64)> = Vec::new();
    let mut random = 7u64;
    let mut below = |end: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % end
    };
    let (mut gone, mut received) = (Vec::new(), 0);
    for _ in 0..rounds(3000, 50) {
        match below(10) {
            0 => {
                let (id, writer, window) = member(&mut set, 16);
                assert!(!gone.contains(&id), "an identity is used once");
                members.push((id, writer, window, 0, 0));
            }
            1 if !members.is_empty() => {
                let (id, _, _, sent, given) = members.swap_remove(below(members.len()));
                let mut receiver = set.remove(id).expect("it was not removed");
                let mut rest = 0;
                assert!(receiver.drain(100, |_| rest += 1).is_ok());
                assert_eq!(given + rest, sent, "what was not given is still in its window");
                assert!(set.remove(id).is_none() && set.get_mut(id).is_none());
                gone.push(id);
            }
            2..7 if !members.is_empty() => {
                let at = below(members.len());
                let (_, writer, _, sent, _) = &mut members[at];
                if writer.try_send(&sent.to_le_bytes()) == Ok(Sent::Sent) {
                    *sent += 1;
                }
            }
            _ => {
                for (id, number) in pass(&mut set, 20) {
                    let found = members.iter_mut().find(|(member, ..)| *member == id);
                    let (.., given) = found.expect("nothing comes from who was removed");
                    assert_eq!(*given, number, "in the order of its sender");
                    *given += 1;
                    received += 1;
                }
            }
        }
        assert_eq!(
            (set.len(), set.iter_mut().count(), set.is_empty()),
            (members.len(), members.len(), members.is_empty())
        );
    }
    assert!(cfg!(miri) || (received > 500 && gone.len() > 100), "{received} received, {} gone", gone.len());
    assert!(set.slots.len() < 100, "slots are used again: {}", set.slots.len());
}

#[test]
fn member_that_fails_says_so_once_and_the_others_go_on() {
    let mut set = ReceiverSet::new(4);
    let (bad, mut bad_writer, window) = member(&mut set, 8);
    let (good, mut writer, _) = member(&mut set, 8);
    send(&mut bad_writer, 1);
    window.forge(1, 0, u64::MAX);
    (1..8).for_each(|word| window.forge(1, word, 1));
    send(&mut writer, 2);
    let mut given = Vec::new();
    let error =
        set.drain(100, |member, message| given.push((member, message.word(0)))).expect_err("malformed");
    assert_eq!((error.member, error.taken, &given[..]), (bad, 1, &[(bad, 1)][..]));
    assert!(matches!(error.error, ReceiveError::Header { .. }) && error.to_string().contains("malformed"));
    assert_eq!(pass(&mut set, 100), [(good, 2)]);
    assert_eq!((pass(&mut set, 100), set.len(), set.has_begun()), (vec![], 2, false));
    assert!(set.remove(bad).is_some());
    let (next, ..) = member(&mut set, 8);
    assert_ne!(next, bad, "its slot is used again, its identity is not");
    assert_eq!(set.slots.len(), 2);
}

#[test]
fn sender_that_is_gone_is_found_although_its_window_is_empty() {
    let mut set = ReceiverSet::new(4);
    let (first, ..) = member(&mut set, 8);
    let (second, mut writer, _) = member(&mut set, 8);
    assert_eq!(pass(&mut set, 100), []);
    set.get_mut(first).expect("it is there").sender_gone();
    assert!(set.has_begun());
    let error = set.drain(100, |_, _| ()).expect_err("its end");
    assert_eq!((error.member, error.error), (first, ReceiveError::Gone));
    send(&mut writer, 3);
    assert_eq!(pass(&mut set, 100), [(second, 3)]);
}

/// A waiter that looks a few times, and knows then that everybody is gone.
struct Looks(Vec<bool>);

impl Wait for Looks {
    fn wait<T, E>(&mut self, mut look: impl FnMut(bool) -> Result<Option<T>, E>) -> Result<Option<T>, E> {
        for is_gone in self.0.drain(..) {
            if let Some(found) = look(is_gone)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

#[test]
fn one_wait_is_for_every_member_and_ends_with_the_last() {
    let mut set = ReceiverSet::new(4);
    assert_eq!(set.drain_wait(9, &mut Looks(vec![true]), |_, _| ()), Ok(0), "nobody is waited for");
    let (_, mut writer, _) = member(&mut set, 8);
    let (other, ..) = member(&mut set, 8);
    assert_eq!(set.drain_wait(9, &mut Looks(vec![false, false]), |_, _| ()), Ok(0));
    send(&mut writer, 5);
    assert_eq!(
        set.drain_wait(9, &mut Looks(vec![false, false]), |_, message| assert_eq!(message.word(0), 5)),
        Ok(1)
    );
    for _ in 0..2 {
        let error = set.drain_wait(9, &mut Looks(vec![false, true]), |_, _| ()).expect_err("all are gone");
        assert_eq!(error.error, ReceiveError::Gone);
    }
    assert_eq!(set.drain_wait(9, &mut Looks(vec![false, true]), |_, _| ()), Ok(0));
    assert!(set.remove(other).is_some());
}

#[test]
fn lines_of_an_idle_member_are_told_of() {
    let mut set = ReceiverSet::new(1);
    let window = TestWindow::new(64, BLANK);
    let config = WindowConfig::blank(BLANK, 0);
    let mut writer = Writer::new(window.clone(), window.clone(), config);
    set.insert(Receiver::new(window.clone(), window.clone(), config).with_coalescing(32));
    send(&mut writer, 1);
    assert_eq!((pass(&mut set, 9).len(), window.published()), (1, 0));
    assert_eq!((pass(&mut set, 9).len(), window.published()), (0, 1));
}

#[test]
fn lines_of_every_member_are_told_of_before_a_sleep() {
    let mut set = ReceiverSet::new(1);
    let window = TestWindow::new(64, BLANK);
    let config = WindowConfig::blank(BLANK, 0);
    let mut writer = Writer::new(window.clone(), window.clone(), config);
    set.insert(Receiver::new(window.clone(), window.clone(), config).with_coalescing(32));
    (0..2).for_each(|number| send(&mut writer, number));
    assert_eq!((pass(&mut set, 9).len(), window.published()), (1, 0));
    set.push_credits();
    assert_eq!(window.published(), 1);
}
