//! This target is both ends of a blank window. They are honest, and the fabric between them is hostile: the fuzzer chooses
//! in which order words arrive. What was sent comes out, byte for byte, in order, and nothing else does. No word is stored
//! over one that is not free, and no line is freed before all of it arrived; the window itself checks both.
#![no_main]

use std::collections::VecDeque;

use arbitrary::Arbitrary;
use beeline_fuzz::BLANK;
use beeline_fuzz::test_memory::TestWindow;
use beeline_window::{FencePolicy, Receiver, Sent, WindowConfig, Writer};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Operation {
    /// A message.
    Send(Payload),
    /// A message in pieces, committed, dropped or forgotten.
    Reserve {
        more: u8,
        payload: Payload,
        piece: u8,
        end: u8,
    },
    Batch(Vec<Payload>),
    /// Stores of these places among those on their way arrive.
    Arrive(Vec<u8>),
    /// Everything arrives, the latest first.
    ArriveAll,
    /// The receiver polls.
    Poll(u8),
}

/// So many bytes, their words the blank where a bit of `blanks` is set.
#[derive(Arbitrary, Debug)]
struct Payload {
    bytes: u16,
    blanks: u16,
    filler: u64,
}

impl Payload {
    fn make(&self, max_bytes: usize) -> Vec<u8> {
        let word = |i: usize| if self.blanks >> (i % 16) & 1 == 1 { BLANK } else { self.filler ^ i as u64 };
        let bytes = usize::from(self.bytes) % (max_bytes + 1);
        (0..bytes.div_ceil(8)).flat_map(|i| word(i).to_le_bytes()).take(bytes).collect()
    }
}

type Expected = VecDeque<Vec<u8>>;

fn send(writer: &mut Writer<TestWindow, TestWindow>, operation: &Operation, expected: &mut Expected) {
    let max_bytes = writer.max_payload_bytes();
    match operation {
        Operation::Send(payload) => {
            let payload = payload.make(max_bytes);
            if writer.try_send(&payload).expect("it fits") == Sent::Sent {
                expected.push_back(payload);
            }
        }
        Operation::Reserve { more, payload, piece, end } => {
            let payload = payload.make(max_bytes);
            let room = max_bytes.min(payload.len() + usize::from(*more));
            let Some(mut open) = writer.reserve(room).expect("it fits") else { return };
            for piece in payload.chunks(usize::from(*piece).max(1)) {
                open.write(piece).expect("it was reserved");
            }
            match end % 4 {
                0 => drop(open),
                1 => std::mem::forget(open),
                _ => {
                    open.commit();
                    expected.push_back(payload);
                }
            }
        }
        Operation::Batch(records) => {
            let Some(mut open) = writer.batch(usize::MAX).expect("credits are good") else { return };
            for record in records {
                let record = record.make((max_bytes - 2).min(200));
                match open.push(&record).expect("it fits a batch") {
                    Sent::Sent => expected.push_back(record),
                    Sent::Full => break,
                }
            }
            open.send();
        }
        _ => {}
    }
}

fn receive(receiver: &mut Receiver<TestWindow, TestWindow>, expected: &mut Expected) -> bool {
    let Some(mut message) = receiver.poll().expect("an honest sender") else { return false };
    let mut bytes = Vec::new();
    message.copy_to(&mut bytes);
    assert_eq!(Some(bytes), expected.pop_front());
    true
}

fuzz_target!(|input: (u8, u8, u8, Vec<Operation>)| {
    let (lines_log2, epoch, fences, operations) = input;
    let window = TestWindow::new(1 << (lines_log2 % 5), BLANK);
    window.hold();
    let config = WindowConfig::blank(BLANK, epoch).with_fences(FencePolicy::ALL[usize::from(fences % 4)]);
    let mut writer = Writer::new(window.clone(), window.clone(), config);
    let mut receiver = Receiver::new(window.clone(), window.clone(), config);
    let mut expected = Expected::new();
    let arrive_all = || (0..window.held()).for_each(|_| window.release(window.held() - 1));
    for operation in &operations {
        match operation {
            Operation::Arrive(places) => {
                places.iter().for_each(|place| window.release(usize::from(*place) * window.held() / 256));
            }
            Operation::ArriveAll => arrive_all(),
            Operation::Poll(times) => drop((0..*times).find(|_| !receive(&mut receiver, &mut expected))),
            _ => send(&mut writer, operation, &mut expected),
        }
    }
    // Ends a reservation that was forgotten.
    writer.refresh().expect("an honest receiver");
    arrive_all();
    while receive(&mut receiver, &mut expected) {}
    assert!(expected.is_empty(), "messages are lost");
    assert_eq!(receiver.next_start(), writer.position());
});
