//! This target is the sender's end of a lap window. Hostile receivers control their counts of freed lines, at every look; others
//! are honest. The sender does not panic and does not hang; it stores whole lines in order, each with its lap, and none that an
//! honest receiver has not counted as free. A count that cannot be stops it until that receiver is removed, and names it.
#![no_main]

use std::cell::Cell;
use std::rc::Rc;

use arbitrary::Arbitrary;
use beeline_fuzz::lap::CountedLaps;
use beeline_fuzz::window::Pushed;
use beeline_window::Sent;
use beeline_window::lap::{LapSendError, LapWriter, ReaderId};
use libfuzzer_sys::fuzz_target;

/// Receivers at the same time at most.
const MOST: usize = 6;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    lines_log2: u8,
    epoch: u8,
    operations: Vec<Operation<'a>>,
}

#[derive(Arbitrary, Debug)]
enum Operation<'a> {
    Join {
        is_honest: bool,
    },
    Remove {
        reader: u8,
    },
    /// A receiver has freed so many lines more; a hostile one may say fewer, or more than there are.
    Freed {
        reader: u8,
        lines: i8,
    },
    /// A hostile receiver pushes any count.
    WildFreed {
        reader: u8,
        count: u64,
    },
    Send(&'a [u8]),
    SendWords {
        word: u64,
        bytes: u16,
    },
    /// The sender looks at the counts.
    Refresh,
}

/// A receiver as the target knows it.
#[derive(Debug)]
struct Reader {
    id: ReaderId,
    count: Rc<Cell<u64>>,
    base: u64,
    is_honest: bool,
}

struct Run {
    writer: LapWriter<CountedLaps, Pushed>,
    readers: Vec<Reader>,
    /// The receivers that errors named and that are there still.
    named: Vec<ReaderId>,
    /// All that were removed.
    removed: Vec<ReaderId>,
}

impl Run {
    fn join(&mut self, is_honest: bool) {
        if self.readers.len() == MOST {
            return;
        }
        let count = Rc::new(Cell::new(0));
        let (id, start) = self.writer.join(Pushed(Rc::clone(&count)));
        assert_eq!(start, self.writer.position());
        assert!(
            self.readers.iter().all(|reader| reader.id != id) && !self.removed.contains(&id),
            "{id} is new"
        );
        self.readers.push(Reader { id, count, base: start.0, is_honest });
    }

    fn reader(&mut self, index: u8) -> Option<&mut Reader> {
        let count = self.readers.len();
        self.readers.get_mut(usize::from(index) % count.max(1))
    }

    fn remove(&mut self, index: u8) {
        let Some(id) = self.reader(index).map(|reader| reader.id) else { return };
        self.readers.retain(|reader| reader.id != id);
        self.named.retain(|named| *named != id);
        self.removed.push(id);
        assert!(self.writer.remove(id).is_some());
        assert!(self.writer.remove(id).is_none(), "{id} was removed before");
    }

    fn freed(&mut self, index: u8, lines: i8) {
        let sent = self.writer.position().0;
        let Some(reader) = self.reader(index) else { return };
        let count = reader.count.get().saturating_add_signed(lines.into());
        if !reader.is_honest {
            reader.count.set(count);
        } else if count >= reader.count.get() {
            reader.count.set(count.min(sent - reader.base));
        }
    }

    /// Checks what came of a call that may have sent something or looked at the counts.
    fn check(&mut self, outcome: Result<bool, LapSendError>, before: u64) {
        let sent = self.writer.position().0 - before;
        match outcome {
            Err(LapSendError::Backwards { reader, .. } | LapSendError::Ahead { reader, .. }) => {
                let named = self.readers.iter().find(|known| known.id == reader).expect("it is there");
                assert!(!named.is_honest, "{reader} is honest");
                if !self.named.contains(&reader) {
                    self.named.push(reader);
                }
                assert_eq!(sent, 0);
            }
            Err(LapSendError::NoReader) => assert!(self.readers.is_empty() && sent == 0),
            Err(LapSendError::TooLong { bytes, max_bytes }) => assert!(bytes > max_bytes && sent == 0),
            Ok(has_sent) => {
                assert!(self.named.is_empty(), "{:?} are not to be believed", self.named);
                assert!(!self.readers.is_empty());
                assert_eq!(has_sent, sent > 0);
            }
        }
        for reader in self.readers.iter().filter(|reader| reader.is_honest) {
            let until = reader.base + reader.count.get() + u64::from(self.writer.lines());
            assert!(self.writer.position().0 <= until, "a store over what {} has not freed", reader.id);
        }
        assert_eq!(self.writer.port().stored, self.writer.position().0);
        assert!(self.writer.free_lines() <= self.writer.lines());
        assert_eq!(self.writer.slowest().is_none(), self.readers.is_empty());
    }

    fn send(&mut self, payload: &[u8]) {
        let before = self.writer.position().0;
        let outcome = self.writer.try_send(payload).map(|sent| sent == Sent::Sent);
        self.check(outcome, before);
    }
}

fuzz_target!(|input: Input<'_>| {
    let port = CountedLaps { lines: 1 << (input.lines_log2 % 6), stored: 0 };
    let writer = LapWriter::new(port, input.epoch);
    let mut run = Run { writer, readers: Vec::new(), named: Vec::new(), removed: Vec::new() };
    for operation in input.operations {
        match operation {
            Operation::Join { is_honest } => run.join(is_honest),
            Operation::Remove { reader } => run.remove(reader),
            Operation::Freed { reader, lines } => run.freed(reader, lines),
            Operation::WildFreed { reader, count } => {
                if let Some(reader) = run.reader(reader).filter(|reader| !reader.is_honest) {
                    reader.count.set(count);
                }
            }
            Operation::Send(payload) => run.send(payload),
            Operation::SendWords { word, bytes } => {
                let words = word.to_le_bytes().into_iter().cycle();
                run.send(&words.take(usize::from(bytes % 2560)).collect::<Vec<u8>>());
            }
            Operation::Refresh => {
                let before = run.writer.position().0;
                let outcome = run.writer.refresh().map(|_| false);
                run.check(outcome, before);
            }
        }
    }
});
