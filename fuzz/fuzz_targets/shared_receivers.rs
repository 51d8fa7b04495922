//! This target is a blank window that several threads receive from, as the requests of an RPC client. A hostile sender controls
//! every word of the window, also between two loads, and the receivers poll, keep and hold messages in any order. None panics,
//! hangs or leaves the window; no message is taken twice; an error is final for all of them.
#![no_main]

use arbitrary::Arbitrary;
use beeline_fuzz::window::{CheckedCredits, HostileMemory, Store};
use beeline_fuzz::{BLANK, Word, message};
use beeline_window::{SharedReceiver, SharedWindow, WindowConfig};
use libfuzzer_sys::fuzz_target;

type Shared = SharedReceiver<HostileMemory, CheckedCredits>;

#[derive(Arbitrary, Debug)]
struct Input {
    lines_log2: u8,
    receivers: u8,
    operations: Vec<Operation>,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    /// The sender stores these words, from the next load on.
    Store(Vec<Store>),
    /// A message is there at once, so many lines after the last one taken.
    Message {
        ahead: u8,
        header: Word,
        words: Vec<Word>,
    },
    /// A receiver takes messages, and keeps the window behind them when their first word says so.
    Poll {
        receiver: u8,
        times: u8,
        keeps_odd: bool,
    },
    /// Two receivers have a message in hand at the same time, and free them in either order.
    Both {
        receiver: u8,
        first_is_freed_first: bool,
    },
    /// A receiver has a message in hand whose handle it forgets.
    Forget {
        receiver: u8,
    },
    GiveUp {
        receiver: u8,
    },
    LookForWork {
        receiver: u8,
    },
}

/// What is the same for all receivers.
struct Window {
    memory: HostileMemory,
    most_bytes: usize,
    /// Lines of the messages taken so far: about where the next one begins.
    taken_lines: u64,
    has_failed: bool,
}

impl Window {
    fn read(&mut self, length: usize, sum_of_words: usize) {
        assert!(length <= self.most_bytes, "{length} bytes in a window that takes {}", self.most_bytes);
        assert_eq!(sum_of_words, length.div_ceil(8));
        self.taken_lines += u64::from(beeline_spec::header::lines_of(length as u32));
    }

    /// Polls once. `false` when nothing came.
    fn poll(&mut self, receiver: &mut Shared, keeps_odd: bool) -> bool {
        match receiver.poll_where(|word| keeps_odd && word & 1 == 1) {
            Ok(Some(message)) => {
                let mut words = 0;
                message.for_each_word(|_| words += 1);
                let length = message.len();
                drop(message);
                self.read(length, words);
                true
            }
            Ok(None) => {
                assert!(!self.has_failed, "an error is final");
                false
            }
            Err(_) => {
                self.has_failed = true;
                false
            }
        }
    }

    fn poll_both(&mut self, first: &mut Shared, second: &mut Shared, first_is_freed_first: bool) {
        let (Ok(one), Ok(other)) = (first.poll(), second.poll()) else {
            self.has_failed = true;
            return;
        };
        let lengths = [one.as_ref().map(|one| one.len()), other.as_ref().map(|other| other.len())];
        if first_is_freed_first {
            drop(one);
            drop(other);
        } else {
            drop(other);
            drop(one);
        }
        for length in lengths.into_iter().flatten() {
            self.read(length, length.div_ceil(8));
        }
    }
}

fuzz_target!(|input: Input| {
    let lines = 2 << (input.lines_log2 % 4);
    let count = usize::from(input.receivers % 3) + 1;
    let memory = HostileMemory::new(lines);
    let shared = SharedWindow::new(lines, CheckedCredits::of(&memory), WindowConfig::blank(BLANK, 0), count);
    let mut receivers: Vec<Shared> = (0..count).map(|_| shared.receiver(memory.clone())).collect();
    let most_bytes = lines as usize * 64 - 8;
    let mut window = Window { memory, most_bytes, taken_lines: 0, has_failed: false };
    for operation in input.operations {
        match operation {
            Operation::Store(stores) => window.memory.schedule(stores),
            Operation::Message { ahead, header, words } => {
                let position = window.taken_lines + u64::from(ahead % 4);
                window.memory.store_words(position, &message(header, &words, lines));
            }
            Operation::Poll { receiver, times, keeps_odd } => {
                let receiver = &mut receivers[usize::from(receiver) % count];
                for _ in 0..times {
                    if !window.poll(receiver, keeps_odd) {
                        break;
                    }
                }
            }
            Operation::Both { receiver, first_is_freed_first } if count > 1 => {
                let at = 1 + usize::from(receiver) % (count - 1);
                let (first, rest) = receivers.split_at_mut(at);
                window.poll_both(&mut first[0], &mut rest[0], first_is_freed_first);
            }
            Operation::Both { .. } => {}
            Operation::Forget { receiver } => match receivers[usize::from(receiver) % count].poll() {
                // It is given again.
                Ok(message) => core::mem::forget(message),
                Err(_) => window.has_failed = true,
            },
            Operation::GiveUp { receiver } => {
                let receiver = &mut receivers[usize::from(receiver) % count];
                if receiver.keeps() {
                    receiver.give_up();
                }
            }
            Operation::LookForWork { receiver } => {
                let _ = receivers[usize::from(receiver) % count].has_work();
            }
        }
    }
});
