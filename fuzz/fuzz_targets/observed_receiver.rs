//! This target is the receiver of an observed window. A hostile sender controls every write: its offset, its bytes and its
//! byte enables. The receiver does not panic and does not hang. A write outside the window or over a byte that is not free
//! is an error for good, and what is delivered was written byte for byte.
#![no_main]

use arbitrary::Arbitrary;
use beeline_contract_memory::CreditSink;
use beeline_fuzz::Word;
use beeline_window::{DataBuffer, Message, Observed, ReceiveError, Receiver, WindowConfig};
use libfuzzer_sys::fuzz_target;

const LINES: u32 = 8;
const WINDOW_BYTES: usize = LINES as usize * 64;

#[derive(Arbitrary, Debug)]
enum Operation<'a> {
    /// Words that look like something, the last bytes cut off.
    Words {
        at: u16,
        words: Vec<Word>,
        cut: u8,
        enables: Option<u64>,
    },
    /// Any bytes at a place inside or near the window.
    Bytes {
        at: u16,
        bytes: &'a [u8],
        enables: Option<u64>,
    },
    /// Any place.
    Far {
        at: u64,
        bytes: &'a [u8],
    },
    Poll {
        times: u8,
    },
    Frontier,
    SenderGone,
}

/// Credits go nowhere: this sender keeps no rule. They must not run backwards all the same.
struct Credits(u64);

impl CreditSink for Credits {
    fn publish(&mut self, freed_lines: u64) {
        assert!(freed_lines >= self.0);
        self.0 = freed_lines;
    }
}

/// The window, and a plain copy of every byte it took.
struct Observer {
    receiver: Receiver<DataBuffer, Credits, Observed>,
    shadow: [u8; WINDOW_BYTES],
    failed: Option<ReceiveError>,
}

impl Observer {
    fn write(&mut self, at: u64, bytes: &[u8], enables: Option<u64>) {
        match self.receiver.write_arrived(at, bytes, enables) {
            Ok(()) => {
                assert!(self.failed.is_none(), "a write was taken after an error");
                for (i, byte) in bytes.iter().enumerate() {
                    if enables.is_none_or(|mask| i < 64 && mask >> i & 1 == 1) {
                        self.shadow[at as usize + i] = *byte;
                    }
                }
            }
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: ReceiveError) {
        // A torn message is reported once by a poll; from then on the sender is simply gone.
        let stays = if let ReceiveError::Torn(_) = error { ReceiveError::Gone } else { error };
        assert_eq!(*self.failed.get_or_insert(stays), stays, "an error is final");
    }

    fn poll(&mut self) {
        // A batch comes record by record from one start, so the bytes are looked for, not their place.
        let start = self.receiver.next_start().0 as usize * 64;
        let mut bytes = Vec::new();
        let read = |mut message: Message<'_, _, _, _>| {
            message.copy_to(&mut bytes);
            let words = (0..bytes.len().div_ceil(8)).flat_map(|index| message.word(index).to_le_bytes());
            assert!(words.zip(&bytes).all(|(word, byte)| word == *byte));
        };
        match self.receiver.poll().map(|message| message.map(read)) {
            Ok(Some(())) => {}
            Ok(None) => return,
            Err(error) => return self.fail(error),
        }
        assert!(self.failed.is_none(), "a message was delivered after an error");
        assert!(bytes.len() <= WINDOW_BYTES - 8);
        let from = start % WINDOW_BYTES;
        let turned = [&self.shadow[from..], &self.shadow[..from]].concat();
        assert!(bytes.is_empty() || turned.windows(bytes.len()).any(|window| window == bytes));
    }
}

fuzz_target!(|operations: Vec<Operation<'_>>| {
    let receiver = Receiver::observed(LINES, Credits(0), WindowConfig::observed(0));
    let mut observer = Observer { receiver, shadow: [0; WINDOW_BYTES], failed: None };
    for operation in operations {
        match operation {
            Operation::Words { at, words, cut, enables } => {
                let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.value().to_le_bytes()).collect();
                bytes.truncate(bytes.len().saturating_sub(usize::from(cut % 8)));
                observer.write(u64::from(at) % WINDOW_BYTES as u64 & !7, &bytes, enables);
            }
            Operation::Bytes { at, bytes, enables } => observer.write(u64::from(at) % 600, bytes, enables),
            Operation::Far { at, bytes } => observer.write(at, bytes, None),
            Operation::Poll { times } => (0..times).for_each(|_| observer.poll()),
            Operation::Frontier => {
                assert!(observer.receiver.frontier() >= observer.receiver.next_start().0 * 64)
            }
            Operation::SenderGone => observer.receiver.sender_gone(),
        }
    }
});
