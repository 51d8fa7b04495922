use alloc::vec;

use proptest::prelude::*;

use super::*;
use crate::ids::{LocalSegment, RemoteSegment};

fn entry(bytes: u64) -> DmaEntry {
    DmaEntry { local_offset: 0, remote_offset: 0, bytes }
}

fn sides(local: u64) -> DmaSides {
    DmaSides { local: LocalSegment(local), remote: RemoteSegment(1), direction: DmaDirection::Write }
}

/// A queue in each state, by name.
fn queue(state: DmaState) -> DmaQueue {
    let mut queue = DmaQueue::new(2).unwrap();
    match state {
        DmaState::Idle => {}
        DmaState::Gather => queue.gather(sides(1), entry(1)).unwrap(),
        _ => queue.start(vec![entry(2 * PIECE_BYTES)]).unwrap(),
    }
    match state {
        DmaState::Done => {
            while queue.next_piece().is_some() {
                queue.copied(Ok(()));
            }
        }
        DmaState::Aborted => queue.abort().unwrap(),
        DmaState::Error => {
            queue.next_piece().unwrap();
            assert!(queue.copied(Err(Refusal::TransferFailed)));
        }
        _ => {}
    }
    assert_eq!(queue.state(), state);
    queue
}

/// What each call answers in each state, and how the queue stands after it.
#[test]
fn calls_answer_in_each_state_as_the_table_says() {
    use DmaState::{Aborted, Done, Error, Gather, Idle, Posted};
    use Refusal::{Busy, IllegalOperation};
    type Row = (DmaState, [(Result<(), Refusal>, DmaState); 5]);
    let refused = |refusal, state| (Err(refusal), state);
    let no = |state| refused(IllegalOperation, state);
    // start, gather, post, reset, abort
    let ended = |state| [(Ok(()), Posted), no(state), no(state), (Ok(()), Idle), (Ok(()), state)];
    let table: [Row; 6] = [
        (Idle, [(Ok(()), Posted), (Ok(()), Gather), no(Idle), (Ok(()), Idle), no(Idle)]),
        (Gather, [no(Gather), (Ok(()), Gather), (Ok(()), Posted), (Ok(()), Idle), (Ok(()), Idle)]),
        (Posted, [refused(Busy, Posted), no(Posted), no(Posted), no(Posted), (Ok(()), Aborted)]),
        (Done, ended(Done)),
        (Aborted, ended(Aborted)),
        (Error, ended(Error)),
    ];
    for (state, row) in table {
        let calls: [fn(&mut DmaQueue) -> Result<(), Refusal>; 5] = [
            |queue| queue.start(vec![entry(1)]),
            |queue| queue.gather(sides(1), entry(1)),
            DmaQueue::post,
            DmaQueue::reset,
            DmaQueue::abort,
        ];
        for (at, (call, wanted)) in calls.into_iter().zip(row).enumerate() {
            let mut queue = queue(state);
            assert_eq!((call(&mut queue), queue.state()), wanted, "call {at} in {state:?}");
        }
    }
}

#[test]
fn as_many_entries_are_gathered_as_the_queue_takes_and_none_is_lost() {
    let mut queue = queue(DmaState::Gather);
    assert_eq!(queue.gather(sides(2), entry(2)), Err(Refusal::IllegalOperation), "other segments");
    queue.gather(sides(1), entry(2)).unwrap();
    assert_eq!(queue.gather(sides(1), entry(3)), Err(Refusal::MaxEntries));
    assert_eq!(queue.gathered(), Some((sides(1), &[entry(1), entry(2)][..])));
    queue.post().unwrap();
    assert_eq!(
        (queue.next_piece(), queue.next_piece(), queue.next_piece()),
        (Some(entry(1)), Some(entry(2)), None)
    );
}

#[test]
fn numbers_of_entries_that_no_job_has_are_refused() {
    for entries in [0, MAX_DMA_ENTRIES + 1] {
        assert_eq!(DmaQueue::new(entries).err(), Some(Refusal::IllegalParameter));
        let mut queue = queue(DmaState::Idle);
        assert_eq!(queue.start(vec![entry(1); entries]), Err(Refusal::IllegalParameter));
        assert_eq!(queue.state(), DmaState::Idle);
    }
}

#[test]
fn job_of_no_bytes_is_done_at_once() {
    let mut queue = queue(DmaState::Idle);
    queue.start(vec![entry(0), entry(0)]).unwrap();
    assert_eq!((queue.state(), queue.next_piece()), (DmaState::Done, None));
}

#[test]
fn abort_waits_for_what_is_under_way_and_the_last_piece_is_done() {
    let mut queue = queue(DmaState::Posted);
    queue.next_piece().unwrap();
    queue.abort().unwrap();
    assert_eq!((queue.state(), queue.next_piece(), queue.has_piece()), (DmaState::Posted, None, false));
    assert!(queue.copied(Ok(())));
    assert_eq!(queue.state(), DmaState::Aborted);
    queue.start(vec![entry(1)]).unwrap();
    queue.next_piece().unwrap();
    queue.abort().unwrap();
    assert!(queue.copied(Ok(())));
    assert_eq!(queue.state(), DmaState::Done);
}

#[test]
fn failure_is_not_hidden_by_an_abort() {
    let mut queue = queue(DmaState::Posted);
    queue.next_piece().unwrap();
    queue.abort().unwrap();
    queue.copied(Err(Refusal::TransferFailed));
    assert_eq!((queue.state(), queue.failure()), (DmaState::Error, Some(Refusal::TransferFailed)));
}

proptest! {
    /// Whoever copies, and in whatever order pieces come back: each byte of each entry is in one piece, and the job ends with the last.
    #[test]
    fn pieces_are_the_entries_and_the_job_ends_with_the_last(
        sizes in prop::collection::vec(0..200_000u64, 1..8),
        keep in prop::collection::vec(0..4usize, 0..64),
    ) {
        let mut start = 0;
        let entries: Vec<_> = sizes.iter().map(|bytes| {
            let entry = DmaEntry { local_offset: start, remote_offset: 7 * start + 1, bytes: *bytes };
            start += bytes;
            entry
        }).collect();
        let mut queue = DmaQueue::new(1).unwrap();
        queue.start(entries.clone()).unwrap();
        let mut keep = keep.into_iter();
        let (mut copied, mut under_way) = (Vec::new(), 0);
        while queue.state() == DmaState::Posted {
            while under_way < keep.next().unwrap_or(0) + 1 && let Some(piece) = queue.next_piece() {
                prop_assert!(piece.bytes > 0 && piece.bytes <= PIECE_BYTES);
                copied.push(piece);
                under_way += 1;
            }
            under_way -= 1;
            let has_ended = queue.copied(Ok(()));
            prop_assert_eq!(has_ended, under_way == 0 && !queue.has_piece());
        }
        prop_assert_eq!(queue.state(), DmaState::Done);
        let mut copied = copied.into_iter();
        for entry in entries {
            let mut done = 0;
            while done < entry.bytes {
                let piece = copied.next().unwrap();
                prop_assert_eq!(piece.local_offset, entry.local_offset + done);
                prop_assert_eq!(piece.remote_offset, entry.remote_offset + done);
                done += piece.bytes;
            }
            prop_assert_eq!(done, entry.bytes);
        }
        prop_assert_eq!(copied.next(), None);
    }
}

/// A piece that was cut short is not hidden by its being the last one.
#[test]
fn abort_that_cuts_the_last_piece_leaves_no_job_that_is_done() {
    for is_cut in [false, true] {
        let mut queue = queue(DmaState::Idle);
        queue.start(vec![entry(1), entry(1)]).unwrap();
        assert!(queue.next_piece().is_some() && queue.next_piece().is_some());
        queue.abort().unwrap();
        assert!(!queue.copied(Ok(())));
        assert!(if is_cut { queue.cut() } else { queue.copied(Ok(())) });
        assert_eq!(queue.state(), if is_cut { DmaState::Aborted } else { DmaState::Done });
    }
}
