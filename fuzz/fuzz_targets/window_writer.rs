//! This target is the sender's end of a window. A hostile receiver controls the count of freed lines, at every look. The
//! sender does not panic, does not hang, and stores neither outside the window nor past the lines that the counts allow. An
//! impossible count is an error for good.
#![no_main]

use std::cell::Cell;
use std::rc::Rc;

use arbitrary::Arbitrary;
use beeline_fuzz::BLANK;
use beeline_fuzz::window::{CountedWindow, Pushed};
use beeline_window::{CreditError, FencePolicy, SendError, WindowConfig, Writer};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    lines_log2: u8,
    observed: bool,
    fences: u8,
    span_lines: u8,
    operations: Vec<Operation<'a>>,
}

#[derive(Arbitrary, Debug)]
enum Operation<'a> {
    /// A count near the truth.
    Freed(i8),
    /// Any count.
    WildFreed(u64),
    Send(Payload<'a>),
    Reserve {
        room: u16,
        pieces: Vec<Payload<'a>>,
        commit: bool,
    },
    Batch {
        room: u16,
        records: Vec<Payload<'a>>,
        send: bool,
    },
    /// The sender looks at the count.
    Refresh,
}

#[derive(Arbitrary, Debug)]
enum Payload<'a> {
    Bytes(&'a [u8]),
    Blanks(u8),
}

impl Payload<'_> {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Payload::Bytes(bytes) => bytes.to_vec(),
            Payload::Blanks(count) => {
                BLANK.to_le_bytes().into_iter().cycle().take(usize::from(*count)).collect()
            }
        }
    }
}

/// Notes the error of the credits, which must stay the same.
fn note<T>(outcome: Result<T, SendError>, failed: &mut Option<CreditError>) {
    if let Err(SendError::Credits(error)) = outcome {
        assert!(failed.is_none_or(|before| before == error), "an error is final");
        *failed = Some(error);
    }
}

fuzz_target!(|input: Input<'_>| {
    let freed = Rc::new(Cell::new(0));
    let window = CountedWindow { lines: 1 << (input.lines_log2 % 6), observed: input.observed, words: 0 };
    let lines = u64::from(window.lines);
    let config = if input.observed { WindowConfig::observed(0) } else { WindowConfig::blank(BLANK, 0) };
    let config = config.with_fences(FencePolicy::ALL[usize::from(input.fences) % FencePolicy::ALL.len()]);
    let mut writer =
        Writer::new(window, Pushed(Rc::clone(&freed)), config).with_reorder_span(input.span_lines.into());
    let (mut failed, mut most) = (None, 0);
    for operation in input.operations {
        let before = (failed, writer.position());
        match operation {
            Operation::Freed(distance) => {
                freed.set(writer.position().0.saturating_add_signed(distance.into()))
            }
            Operation::WildFreed(count) => freed.set(count),
            Operation::Send(payload) => note(writer.try_send(&payload.bytes()), &mut failed),
            Operation::Reserve { room, pieces, commit } => {
                let outcome = writer.reserve(room.into()).map(|open| {
                    let Some(mut open) = open else { return };
                    for piece in &pieces {
                        // More than there is room for is refused.
                        let _ = open.write(&piece.bytes());
                    }
                    if commit { open.commit() } else { drop(open) }
                });
                note(outcome, &mut failed);
            }
            Operation::Batch { room, records, send } => {
                let outcome = writer.batch(room.into()).map(|open| {
                    let Some(mut open) = open else { return };
                    for record in &records {
                        let _ = open.push(&record.bytes());
                    }
                    if send { open.send() } else { drop(open) }
                });
                note(outcome, &mut failed);
            }
            Operation::Refresh => note(writer.refresh(), &mut failed),
        }
        most = most.max(freed.get());
        let position = writer.position();
        assert!(before.0.is_none() || position == before.1, "a store after an impossible count");
        assert!(position.0 <= most.saturating_add(lines), "a store past every count that was pushed");
        assert_eq!(writer.port().words, position.0 * 8, "every word of every line is stored once");
    }
});
