use proptest::prelude::*;

use super::*;

fn loss() -> Loss {
    Loss::Died { pid: Some(7) }
}

#[test]
fn slots_run_out_and_come_back() {
    let mut calls = Calls::new(2);
    let (one, two) = (calls.begin(None).unwrap(), calls.begin(None).unwrap());
    assert_ne!(one.slot(), two.slot());
    assert_eq!(calls.begin(None), None);
    assert_eq!(calls.answer(one.number), Answered::Call(one));
    assert_eq!(calls.answer(one.number), Answered::Unknown, "answered twice");
    let three = calls.begin(None).unwrap();
    assert_eq!(three.slot(), one.slot());
    assert_ne!(three.number, one.number);
    assert_eq!(calls.answer(one.number), Answered::Unknown, "an answer to an earlier use of the slot");
}

#[test]
fn an_abandoned_slot_waits_for_the_servers_word() {
    let mut calls = Calls::new(1);
    let id = calls.begin(None).unwrap();
    assert!(calls.abandon(id, CallError::Cancelled));
    assert!(!calls.abandon(id, CallError::Cancelled), "a call ends once");
    assert_eq!(calls.next_ended(), Some((id, CallError::Cancelled)));
    assert_eq!((calls.next_ended(), calls.begin(None)), (None, None));
    assert_eq!(calls.answer(id.number), Answered::Late(id));
    assert!(calls.begin(None).is_some());
}

#[test]
fn deadlines_end_calls_in_any_order() {
    let mut calls = Calls::new(4);
    let ids = [30, 10, 20].map(|ns| calls.begin(Some(Deadline::of_ns(ns))).unwrap());
    let forever = calls.begin(None).unwrap();
    let mut expired = Vec::new();
    calls.expire(9, |id| expired.push(id));
    assert!(expired.is_empty());
    calls.expire(20, |id| expired.push(id));
    expired.sort_by_key(|id| id.slot());
    let mut expected = [ids[1], ids[2]];
    expected.sort_by_key(|id| id.slot());
    assert_eq!(expired, expected);
    assert!(calls.has_deadlines());
    calls.expire(30, |id| assert_eq!(id, ids[0]));
    assert!(!calls.has_deadlines());
    assert_eq!(calls.outstanding(), 4, "three ends to be told, one call waits");
    calls.lose(&loss(), Some(forever.number));
    let told: Vec<_> = std::iter::from_fn(|| calls.next_ended()).collect();
    assert_eq!(told.last(), Some(&(forever, CallError::ServerGone { loss: loss(), was_sent: false })));
    assert_eq!(told.len(), 4);
}

#[derive(Clone, Debug)]
enum Step {
    Begin,
    Answer(usize),
    Abandon(usize),
    Lose,
}

proptest! {
    /// Every call ends once for its caller, by an answer or without one, and no slot is lost.
    #[test]
    fn every_call_ends_once(steps in proptest::collection::vec(
        prop_oneof![
            4 => Just(Step::Begin),
            3 => (0..16usize).prop_map(Step::Answer),
            2 => (0..16usize).prop_map(Step::Abandon),
            1 => Just(Step::Lose),
        ], 0..200)) {
        let mut calls = Calls::new(8);
        let (mut waiting, mut late) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Begin => match calls.begin(None) {
                    Some(id) => waiting.push(id),
                    None => prop_assert_eq!(waiting.len() + late.len(), 8),
                },
                Step::Answer(which) if !waiting.is_empty() || !late.is_empty() => {
                    let which = which % (waiting.len() + late.len());
                    if which < waiting.len() {
                        let id: CallId = waiting.remove(which);
                        prop_assert_eq!(calls.answer(id.number), Answered::Call(id));
                    } else {
                        let id: CallId = late.remove(which - waiting.len());
                        prop_assert_eq!(calls.answer(id.number), Answered::Late(id));
                    }
                }
                Step::Abandon(which) if !waiting.is_empty() => {
                    let id = waiting.remove(which % waiting.len());
                    prop_assert!(calls.abandon(id, CallError::Cancelled));
                    prop_assert_eq!(calls.next_ended(), Some((id, CallError::Cancelled)));
                    late.push(id);
                }
                Step::Lose => {
                    calls.lose(&loss(), None);
                    for _ in waiting.drain(..) {
                        prop_assert!(calls.next_ended().is_some());
                    }
                    late.clear();
                }
                Step::Answer(_) | Step::Abandon(_) => {}
            }
            prop_assert_eq!(calls.next_ended(), None);
            prop_assert_eq!(calls.outstanding(), waiting.len());
        }
    }
}
