//! This target is the receiver of a blank window. A hostile sender controls every word of the window, also between two
//! loads of the receiver, and may die at any time. The receiver does not panic, does not hang and does not leave the
//! window. Lengths fit the window, and nothing is delivered after an error, which stays as it was.
#![no_main]

use arbitrary::Arbitrary;
use beeline_fuzz::window::{CheckedCredits, HostileMemory, Store};
use beeline_fuzz::{BLANK, Word, message};
use beeline_window::{ReceiveError, Receiver, WindowConfig};
use libfuzzer_sys::fuzz_target;

type Blank = Receiver<HostileMemory, CheckedCredits>;

#[derive(Arbitrary, Debug)]
struct Input {
    lines_log2: u8,
    coalesce_lines: u8,
    operations: Vec<Operation>,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    /// The sender stores these words, from the next load on.
    Store(Vec<Store>),
    /// A message is there at once, so many lines after the next start.
    Message { ahead: u8, header: Word, words: Vec<Word> },
    /// The receiver polls, and reads with room for so many bytes.
    Poll { times: u8, read: Read, room: u16 },
    /// It is asked how far the words have come.
    Frontier,
    /// The receiver pushes credits.
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

/// Polls once and reads what comes. `false` when nothing did.
fn poll(receiver: &mut Blank, read: Read, room: usize) -> Result<bool, ReceiveError> {
    let most = receiver.lines() as usize * 64 - 8;
    let Some(mut message) = receiver.poll()? else { return Ok(false) };
    let length = message.len();
    assert!(length <= most, "{length} bytes in a window that takes {most}");
    if matches!(read, Read::Words | Read::Everything) {
        for index in 0..length.div_ceil(8) + 2 {
            let word = message.word(index);
            assert!(index * 8 < length || word == 0, "words past the end are zero");
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
    Ok(true)
}

/// What a poll gives for ever after this error.
fn stays(error: ReceiveError) -> ReceiveError {
    if let ReceiveError::Torn(_) = error { ReceiveError::Gone } else { error }
}

fuzz_target!(|input: Input| {
    let memory = HostileMemory::new(1 << (input.lines_log2 % 5));
    let config = WindowConfig::blank(BLANK, 0);
    let mut receiver: Blank = Receiver::new(memory.clone(), CheckedCredits::of(&memory), config)
        .with_coalescing(input.coalesce_lines.into());
    let mut failed = None;
    for operation in input.operations {
        match operation {
            Operation::Store(stores) => memory.schedule(stores),
            Operation::Poll { times, read, room } => {
                for _ in 0..times {
                    let start = receiver.next_start();
                    let outcome = poll(&mut receiver, read, usize::from(room % 2048));
                    assert!(receiver.next_start() >= start);
                    match (outcome, failed) {
                        (Ok(true), None) => {}
                        (Ok(false), None) => break,
                        (Err(error), None) => failed = Some(stays(error)),
                        (outcome, Some(before)) => assert_eq!(outcome, Err(before), "an error is final"),
                    }
                }
            }
            Operation::Message { ahead, header, words } => {
                let position = receiver.next_start().0 + u64::from(ahead % 4);
                memory.store_words(position, &message(header, &words, receiver.lines()));
            }
            Operation::Frontier => assert!(receiver.frontier() >= receiver.next_start().0 * 64),
            Operation::PushCredits => receiver.push_credits(),
            Operation::SenderGone => receiver.sender_gone(),
        }
    }
});
