//! This target is a receiver of a lap window. A hostile sender controls every word of the window, also between two loads of the
//! receiver, where the receiver joins, and when it dies. The receiver does not panic, does not hang and does not leave the
//! window. Lengths fit the window, no message is given before every word of it was there, credits are for lines that were given,
//! and nothing is delivered after an error, which stays as it was.
#![no_main]

use std::cell::Cell;
use std::rc::Rc;

use arbitrary::Arbitrary;
use beeline_fuzz::lap::{CheckedCounts, HostileLaps, LapStore, LapWord};
use beeline_spec::lap::{lines_of, payload_bytes_of};
use beeline_window::lap::{LapMessage, LapReceiver};
use beeline_window::{Position, ReceiveError};
use libfuzzer_sys::fuzz_target;

type Receiver = LapReceiver<HostileLaps, CheckedCounts>;

#[derive(Arbitrary, Debug)]
struct Input {
    lines_log2: u8,
    epoch: u8,
    coalesce_lines: u8,
    start: u64,
    operations: Vec<Operation>,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    /// The sender stores these words, from the next load on.
    Store(Vec<LapStore>),
    /// A message is there at once, so many lines after the next start: all of it or its first lines, perhaps without a word.
    Message {
        ahead: u8,
        header: LapWord,
        words: Vec<LapWord>,
        lines: u8,
        missing: Option<u8>,
    },
    /// The receiver polls, and reads with room for so many bytes.
    Poll {
        times: u8,
        read: Read,
        room: u16,
    },
    /// It drains so many at most.
    Drain {
        max: u8,
        read: Read,
        room: u16,
    },
    PushCredits,
    /// The kernel says that the sender has died.
    SenderGone,
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum Read {
    Nothing,
    Words,
    EachWord,
    CopyOut,
    Everything,
}

/// A message in hand: its length, and what it gives however it is read.
fn look(
    message: &mut LapMessage<'_, HostileLaps, CheckedCounts>,
    most: usize,
    read: Read,
    room: usize,
) -> u64 {
    let length = message.len();
    assert!(length <= most, "{length} bytes in a window that takes {most}");
    if matches!(read, Read::Words | Read::Everything) {
        for index in (0..length.div_ceil(8) + 2).chain([usize::MAX / 8, usize::MAX]) {
            let word = message.word(index);
            assert!(index.saturating_mul(8) < length || word == 0, "words past the end are zero");
        }
    }
    if matches!(read, Read::EachWord | Read::Everything) {
        let mut words = 0;
        message.for_each_word(|_| words += 1);
        assert_eq!(words, length.div_ceil(8));
    }
    if matches!(read, Read::CopyOut | Read::Everything) {
        let mut bytes = vec![0xee; room];
        assert_eq!(message.copy_out(&mut bytes), length.min(room));
        assert!(bytes[length.min(room)..].iter().all(|byte| *byte == 0xee));
        bytes.clear();
        message.copy_to(&mut bytes);
        assert_eq!(bytes.len(), length);
    }
    u64::from(lines_of(length as u32))
}

/// A message as a sender stores it: whole lines with zeros behind the words, `lines` of them at most.
fn message(header: LapWord, words: &[LapWord], epoch: u8, lines: u32) -> Vec<u64> {
    let all = [header].into_iter().chain(words.iter().copied()).map(|word| word.value(epoch));
    let mut all: Vec<u64> = all.take(lines as usize * 8).collect();
    all.resize(lines as usize * 8, 0);
    all
}

/// What a poll gives for ever after this error.
fn stays(error: ReceiveError) -> ReceiveError {
    if let ReceiveError::Torn(_) = error { ReceiveError::Gone } else { error }
}

/// Checks an outcome, how many messages there were, against the error that is final, if there is one; notes a new one.
fn check(outcome: Result<usize, ReceiveError>, failed: &mut Option<ReceiveError>) {
    match (outcome, *failed) {
        (Ok(_), None) => {}
        (Err(error), None) => *failed = Some(stays(error)),
        (outcome, Some(before)) => assert_eq!(outcome, Err(before), "an error is final"),
    }
}

fuzz_target!(|input: Input| {
    let (lines, epoch) = (1 << (input.lines_log2 % 6), input.epoch);
    let (memory, given_lines) = (HostileLaps::new(lines, epoch), Rc::new(Cell::new(0)));
    let (start, most) = (input.start >> 2, payload_bytes_of(lines) as usize);
    let counts = CheckedCounts::new(Rc::clone(&given_lines));
    let mut receiver: Receiver = LapReceiver::new(memory.clone(), counts, epoch, Position(start))
        .with_coalescing(input.coalesce_lines.into());
    let mut failed = None;
    for operation in input.operations {
        match operation {
            Operation::Store(stores) => memory.schedule(stores),
            Operation::Message { ahead, header, words, lines: stored, missing } => {
                let position = receiver.next_start().0 + u64::from(ahead % 4);
                let stored = u32::from(stored).clamp(1, lines);
                let words = message(header, &words, epoch, stored);
                memory.store_words(position, &words, missing.map(|word| usize::from(word) % words.len()));
            }
            Operation::Poll { times, read, room } => {
                for _ in 0..times {
                    let outcome = receiver.poll().map(|message| {
                        let Some(mut message) = message else { return 0 };
                        let lines = look(&mut message, most, read, usize::from(room % 2048));
                        memory.given(start + given_lines.get(), lines);
                        given_lines.set(given_lines.get() + lines);
                        1
                    });
                    let ended = outcome == Ok(0);
                    check(outcome, &mut failed);
                    if ended {
                        break;
                    }
                }
            }
            Operation::Drain { max, read, room } => {
                let outcome = receiver.drain(max.into(), |message| {
                    let lines = look(message, most, read, usize::from(room % 2048));
                    memory.given(start + given_lines.get(), lines);
                    given_lines.set(given_lines.get() + lines);
                });
                assert!(outcome.is_err() || outcome.is_ok_and(|count| count <= usize::from(max)));
                if max > 0 {
                    check(outcome, &mut failed);
                }
            }
            Operation::PushCredits => receiver.push_credits(),
            Operation::SenderGone => receiver.sender_gone(),
        }
        assert_eq!(
            receiver.next_start().0,
            start + given_lines.get(),
            "what is in front of the next start was given"
        );
    }
});
