//! This target is the reader of a byte stream. A hostile sender controls every word of the window, also between two loads of the
//! reader, and may die at any time. The reader does not panic, does not hang, does not leave the window and writes nothing
//! outside the memory that it is lent. What it counts fits the window, and an error stays as it was.
#![no_main]

use arbitrary::Arbitrary;
use beeline_fuzz::window::{CheckedCredits, HostileMemory, Store};
use beeline_fuzz::{BLANK, Word, message};
use beeline_window::{ByteRead, ByteReader, ReceiveError, Receiver, WindowConfig};
use libfuzzer_sys::fuzz_target;

type Reader = ByteReader<HostileMemory, CheckedCredits>;

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
    /// A message is there at once, so many lines after the last one of this kind.
    Message {
        ahead: u8,
        header: Word,
        words: Vec<Word>,
    },
    Read {
        room: u16,
    },
    ReadVectored {
        rooms: Vec<u8>,
    },
    Peek {
        offset: u16,
        is_wild: bool,
        room: u16,
    },
    Count,
    PushCredits,
    /// The kernel says that the sender has died.
    SenderGone,
}

/// Memory to be read into, and what must not be written behind it.
fn lent(room: usize) -> Vec<u8> {
    vec![0xee; room + 9]
}

fn check(lent: &[u8], room: usize, found: Result<ByteRead, ReceiveError>) -> Result<ByteRead, ReceiveError> {
    let filled = if let Ok(ByteRead::Bytes(bytes)) = found { bytes } else { 0 };
    assert!(filled <= room, "{filled} bytes in room for {room}");
    assert!(lent[filled..].iter().all(|byte| *byte == 0xee), "written behind what was read");
    found
}

/// What a read gives for ever after this error.
fn stays(error: ReceiveError) -> ReceiveError {
    if let ReceiveError::Torn(_) = error { ReceiveError::Gone } else { error }
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    failed: Option<ReceiveError>,
    is_ended: bool,
}

impl End {
    /// A read gave this.
    fn read(&mut self, room: usize, found: Result<ByteRead, ReceiveError>) {
        match (found, self.failed) {
            (Ok(ByteRead::Bytes(0)), _) => assert_eq!(room, 0),
            (found, Some(before)) => assert_eq!(found, Err(before), "an error is final"),
            (found, None) if self.is_ended => assert_eq!(found, Ok(ByteRead::End), "an end is final"),
            (Err(error), None) => self.failed = Some(stays(error)),
            (Ok(found), None) => self.is_ended = found == ByteRead::End,
        }
    }
}

fuzz_target!(|input: Input| {
    let memory = HostileMemory::new(1 << (input.lines_log2 % 5));
    let config = WindowConfig::blank(BLANK, 0);
    let receiver = Receiver::new(memory.clone(), CheckedCredits::of(&memory), config)
        .with_coalescing(input.coalesce_lines.into());
    let mut reader: Reader = ByteReader::new(receiver);
    let most_bytes = u64::from(reader.lines()) * 64;
    let (mut position, mut end) = (0, End::default());
    for operation in input.operations {
        match operation {
            Operation::Store(stores) => memory.schedule(stores),
            Operation::Message { ahead, header, words } => {
                let words = message(header, &words, reader.lines());
                memory.store_words(position + u64::from(ahead % 4), &words);
                position += words.len() as u64 / 8;
            }
            Operation::Read { room } => {
                let room = usize::from(room % 2048);
                let mut bytes = lent(room);
                let found = reader.read(&mut bytes[..room]);
                end.read(room, check(&bytes, room, found));
            }
            Operation::ReadVectored { rooms } => {
                let room = rooms.iter().map(|room| usize::from(*room)).sum();
                let mut bytes = lent(room);
                let mut rest = &mut bytes[..room];
                let mut slices = Vec::new();
                for room in rooms {
                    let (slice, after) = rest.split_at_mut(room.into());
                    slices.push(slice);
                    rest = after;
                }
                let found = reader.read_vectored(&mut slices);
                end.read(room, check(&bytes, room, found));
            }
            Operation::Peek { offset, is_wild, room } => {
                let room = usize::from(room % 2048);
                let offset = if is_wild { u64::MAX - u64::from(offset) } else { u64::from(offset % 2048) };
                let mut bytes = lent(room);
                let found = reader.peek(offset, &mut bytes[..room]);
                // Of the stream it says what a read will say, which is for the read to check.
                let _ = check(&bytes, room, found);
            }
            Operation::Count => {
                let queued = reader.queued_bytes();
                assert!(queued <= most_bytes, "{queued} bytes in a window of {most_bytes}");
            }
            Operation::PushCredits => reader.push_credits(),
            Operation::SenderGone => reader.sender_gone(),
        }
    }
});
