//! Byte streams: whatever the sizes of writes, reads and peeks, and in whatever order stores arrive, the bytes come out as they
//! were written, and every count is what a model of the messages says.

use std::collections::VecDeque;

use beeline_contract_memory::{Adversary, StorePort, Tolerance};
use beeline_spec::header::lines_of;
use beeline_spec::{Header, Kind};
use beeline_window::{ByteRead, ByteReader, ByteWriter, ReceiveError, Receiver, Sent, WindowConfig, Writer};
use proptest::prelude::*;

use crate::plan::{NEAR_BLANK, PLAIN, Random};
use crate::test_memory::TestWindow;
use crate::{BLANK, check};

#[derive(Clone, Debug)]
enum Step {
    Write(usize),
    WriteMore(usize),
    WriteVectored(Vec<usize>),
    Flush,
    /// Let so many words arrive.
    Arrive(usize),
    Read(usize),
    ReadVectored(Vec<usize>),
    /// Peek at this offset for so many bytes.
    Peek(usize, usize),
    /// Compare every count with the model.
    Count,
    /// Write one byte more than there is said to be room for.
    FillRoom,
    PushCredits,
}

fn steps(lines: u32) -> impl Strategy<Value = Vec<Step>> {
    let most = lines as usize * 80;
    let size = move || prop_oneof![3 => 1..=60usize, 2 => 1..=200usize, 1 => 0..=most];
    let step = prop_oneof![
        6 => size().prop_map(Step::Write),
        4 => size().prop_map(Step::WriteMore),
        2 => proptest::collection::vec(size(), 0..5).prop_map(Step::WriteVectored),
        1 => Just(Step::Flush),
        8 => (0..200usize).prop_map(Step::Arrive),
        8 => size().prop_map(Step::Read),
        2 => proptest::collection::vec(size(), 0..5).prop_map(Step::ReadVectored),
        4 => (0..most, size()).prop_map(|(offset, bytes)| Step::Peek(offset, bytes)),
        6 => Just(Step::Count),
        1 => Just(Step::FillRoom),
        2 => Just(Step::PushCredits),
    ];
    proptest::collection::vec(step, 1..150)
}

/// A message as the sender stored it.
#[derive(Clone, Copy, Debug)]
struct Stored {
    start: u64,
    bytes: u64,
    lines: u64,
}

/// What both ends are to say, from the words that were stored, those that arrived and the credits.
struct Model {
    window: TestWindow,
    lines: u64,
    /// Messages from the first one that may not be read wholly.
    messages: VecDeque<Stored>,
    /// Position after the last of them.
    end: u64,
    /// Bytes of the first that were read.
    read_of_first: u64,
    /// All messages, for the credits.
    all: Vec<Stored>,
    /// Bytes written and not read, in order.
    bytes: VecDeque<u8>,
    most_queued: u64,
    partly_freed: u64,
}

impl Model {
    fn new(window: &TestWindow, lines: u32) -> Self {
        Model {
            window: window.clone(),
            lines: u64::from(lines),
            messages: VecDeque::new(),
            end: 0,
            read_of_first: 0,
            all: Vec::new(),
            bytes: VecDeque::new(),
            most_queued: 0,
            partly_freed: 0,
        }
    }

    /// Takes note of the messages before `position`, by their headers.
    fn stored_until(&mut self, position: u64) {
        while self.end < position {
            let word = self.window.issued_word((self.end % self.lines) as u32, 0);
            let header = Header::decode(word, self.lines as u32, 0).expect("an honest sender");
            assert_eq!(header.kind, Kind::Data);
            let lines = u64::from(lines_of(header.length_bytes));
            let stored = Stored { start: self.end, bytes: u64::from(header.length_bytes), lines };
            self.messages.push_back(stored);
            self.all.push(stored);
            self.end += lines;
        }
        assert_eq!(self.end, position);
    }

    /// Bytes of the messages in front of the first one of which a word is missing.
    fn queued(&self) -> u64 {
        let whole = self.messages.iter().enumerate().take_while(|(index, message)| {
            // Of a message that is partly read, lines may be in use again.
            (*index == 0 && self.read_of_first > 0)
                || (message.start..message.start + message.lines)
                    .all(|position| !self.window.holds_line((position % self.lines) as u32))
        });
        whole.map(|(_, message)| message.bytes).sum::<u64>().saturating_sub(self.read_of_first)
    }

    /// Bytes in lines that no credit covers, and those kept back.
    fn unacknowledged(&mut self, kept_bytes: u64) -> u64 {
        let published = self.window.published();
        let mut bytes = kept_bytes;
        for message in &self.all {
            let freed = published.saturating_sub(message.start).min(message.lines);
            let covered = if freed == 0 { 0 } else { (freed * 64 - 8).min(message.bytes) };
            self.partly_freed += u64::from(freed > 0 && covered < message.bytes);
            bytes += message.bytes - covered;
        }
        bytes
    }

    fn read(&mut self, out: &[u8]) {
        for byte in out {
            assert_eq!(self.bytes.pop_front(), Some(*byte));
        }
        self.read_of_first += out.len() as u64;
        while let Some(first) = self.messages.front().copied()
            && self.read_of_first >= first.bytes
        {
            self.read_of_first -= first.bytes;
            self.messages.pop_front();
        }
    }
}

struct Run<P: StorePort> {
    writer: ByteWriter<P, TestWindow>,
    reader: ByteReader<TestWindow, TestWindow>,
    model: Model,
    random: Random,
    words: [u64; 4],
    written: u64,
    stored: u64,
}

impl<P: StorePort> Run<P> {
    fn new(window: &TestWindow, port: P, lines: u32, seed: u64, words: [u64; 4]) -> Self {
        let config = WindowConfig::blank(BLANK, 0);
        let receiver = Receiver::new(window.clone(), window.clone(), config);
        Run {
            writer: ByteWriter::new(Writer::new(port, window.clone(), config)),
            reader: ByteReader::new(receiver),
            model: Model::new(window, lines),
            random: Random(seed),
            words,
            written: 0,
            stored: 0,
        }
    }

    fn wrote(&mut self, payload: &[u8], taken: usize) {
        assert!(taken <= payload.len());
        self.model.bytes.extend(&payload[..taken]);
        self.written += taken as u64;
        self.model.stored_until(self.writer.position().0);
        self.stored = self.model.all.iter().map(|message| message.bytes).sum();
    }

    fn kept(&self) -> u64 {
        self.written - self.stored
    }

    fn write(&mut self, step: &Step) {
        let size = match step {
            Step::Write(size) | Step::WriteMore(size) => *size,
            Step::WriteVectored(sizes) => sizes.iter().sum(),
            Step::FillRoom => self.writer.room_bytes().expect("an honest receiver") + 1,
            _ => 0,
        };
        let payload = self.random.payload(self.words, size);
        let taken = match step {
            Step::WriteMore(_) => self.writer.write_more(&payload),
            Step::WriteVectored(sizes) => {
                let mut rest = &payload[..];
                let slices: Vec<&[u8]> = sizes
                    .iter()
                    .map(|size| {
                        let (slice, after) = rest.split_at(*size);
                        rest = after;
                        slice
                    })
                    .collect();
                self.writer.write_vectored(&slices)
            }
            _ => self.writer.write(&payload),
        };
        let taken = taken.expect("an honest receiver");
        self.wrote(&payload, taken);
        if matches!(step, Step::FillRoom) {
            assert_eq!(taken + 1, size, "what there is said to be room for is taken, and no more");
        }
        if size > 0 && !matches!(step, Step::WriteMore(_)) {
            assert_eq!(self.kept(), 0, "nothing is kept back after a write");
        }
    }

    fn read(&mut self, sizes: &[usize]) -> ByteRead {
        let queued = self.model.queued();
        let size: usize = sizes.iter().sum();
        let mut out = vec![0xee; size + 1];
        let found = if let [size] = sizes {
            self.reader.read(&mut out[..*size])
        } else {
            let mut rest = &mut out[..size];
            let mut slices = Vec::new();
            for size in sizes {
                let (slice, after) = rest.split_at_mut(*size);
                slices.push(slice);
                rest = after;
            }
            self.reader.read_vectored(&mut slices)
        };
        let found = found.expect("an honest sender");
        let bytes = if let ByteRead::Bytes(bytes) = found { bytes } else { 0 };
        assert_eq!(bytes as u64, queued.min(size as u64), "a read gives what is queued");
        assert_eq!(out[size], 0xee);
        self.model.read(&out[..bytes]);
        found
    }

    fn peek(&mut self, offset: usize, size: usize) {
        let mut out = vec![0xee; size + 1];
        let queued = self.model.queued() as usize;
        let found = self.reader.peek(offset as u64, &mut out[..size]).expect("an honest sender");
        let expected = queued.saturating_sub(offset).min(size);
        match found {
            ByteRead::Bytes(bytes) => assert_eq!(bytes, expected),
            _ => assert_eq!(expected, 0),
        }
        let same = self.model.bytes.iter().skip(offset).take(expected).eq(&out[..expected]);
        assert!(same, "{expected} bytes at {offset} of {queued}");
        assert!(out[expected..].iter().all(|byte| *byte == 0xee));
    }

    fn count(&mut self) {
        let queued = self.model.queued();
        assert_eq!(self.reader.queued_bytes(), queued);
        self.model.most_queued = self.model.most_queued.max(queued);
        let kept = self.kept();
        let expected = self.model.unacknowledged(kept);
        assert_eq!(self.writer.unacknowledged_bytes(), Ok(expected));
    }

    fn act(&mut self, step: &Step) {
        match step {
            Step::Flush => {
                self.writer.flush();
                self.wrote(&[], 0);
                assert_eq!(self.kept(), 0);
            }
            Step::Arrive(words) => {
                self.writer.progress();
                let window = self.model.window.clone();
                for _ in 0..(*words).min(window.held()) {
                    window.release(self.random.below(window.held()));
                }
            }
            Step::Read(size) => {
                let _ = self.read(&[*size]);
            }
            Step::ReadVectored(sizes) => {
                let _ = self.read(sizes);
            }
            Step::Peek(offset, size) => self.peek(*offset, *size),
            Step::Count => self.count(),
            Step::PushCredits => self.reader.push_credits(),
            Step::Write(_) | Step::WriteMore(_) | Step::WriteVectored(_) | Step::FillRoom => self.write(step),
        }
    }

    /// Ends the stream and reads the rest.
    fn end(&mut self) {
        assert_eq!(self.writer.shut_down(), Ok(Sent::Sent), "an end has room always");
        self.wrote(&[], 0);
        assert!(self.writer.write(b"more").is_err() && self.writer.write_more(b"more").is_err());
        let mut reads = 0;
        while self.read(&[97]) != ByteRead::End {
            self.act(&Step::Arrive(50));
            reads += 1;
            assert!(reads < 10_000, "the end never comes");
        }
        assert!(self.model.bytes.is_empty() && self.reader.is_at_end());
        assert_eq!((self.reader.queued_bytes(), self.writer.unacknowledged_bytes()), (0, Ok(0)));
        assert_eq!(self.reader.peek(0, &mut [0]), Ok(ByteRead::End));
        assert_eq!((self.model.window.arrived_words(), self.model.window.held()), (0, 0));
    }
}

/// What the cases of a property did.
#[derive(Default)]
struct Tally {
    written: u64,
    most_queued: u64,
    partly_freed: u64,
    laps: u64,
}

impl Tally {
    fn add<P: StorePort>(&mut self, run: &Run<P>, lines: u32) {
        self.written += run.written;
        self.most_queued = self.most_queued.max(run.model.most_queued);
        self.partly_freed += run.model.partly_freed;
        self.laps += run.writer.position().0 / u64::from(lines);
    }

    fn check(&self) {
        println!("{} bytes, {} laps", self.written, self.laps);
        println!("at most {} queued, {} messages partly freed", self.most_queued, self.partly_freed);
        let enough = self.laps > 300 && self.most_queued > 1000 && self.partly_freed > 100;
        assert!(cfg!(miri) || enough, "the cases are to do more than that");
    }
}

fn windows() -> impl Strategy<Value = u32> {
    prop_oneof![Just(2u32), Just(4), Just(16), Just(64)]
}

fn in_any_order(words: [u64; 4]) {
    let tally = std::cell::RefCell::new(Tally::default());
    let strategy = windows().prop_flat_map(|lines| (Just(lines), steps(lines), any::<u64>()));
    check(400, strategy, |(lines, plan, seed)| {
        let window = TestWindow::new(lines, BLANK);
        window.hold();
        let mut run = Run::new(&window, window.clone(), lines, seed, words);
        plan.iter().for_each(|step| run.act(step));
        run.end();
        tally.borrow_mut().add(&run, lines);
        Ok(())
    });
    tally.borrow().check();
}

#[test]
fn escaped_stream_in_any_order_comes_out_byte_for_byte_and_counts_are_exact() {
    in_any_order(NEAR_BLANK);
}

#[test]
fn plain_stream_in_any_order_comes_out_byte_for_byte_and_counts_are_exact() {
    in_any_order(PLAIN);
}

/// The adversary holds stores back itself, so what has arrived is not known to the model: bytes only.
#[test]
fn stream_through_the_adversary_comes_out_byte_for_byte() {
    let tolerance = (prop_oneof![Just(0u32), Just(1), Just(4), Just(64)], any::<bool>());
    let sizes = proptest::collection::vec((0..700usize, 0..700usize, any::<bool>()), 1..100);
    check(
        300,
        (windows(), sizes, tolerance, any::<u64>()),
        |(lines, sizes, (span_lines, split_lines), seed)| {
            let window = TestWindow::new(lines, BLANK);
            let config = WindowConfig::blank(BLANK, 0);
            let port = Adversary::new(window.clone(), Tolerance { span_lines, split_lines }, seed);
            let mut writer = ByteWriter::new(Writer::new(port, window.clone(), config));
            let mut reader = ByteReader::new(Receiver::new(window.clone(), window, config));
            let (mut random, mut sent, mut found) = (Random(seed), Vec::<u8>::new(), Vec::<u8>::new());
            let mut read = |reader: &mut ByteReader<_, _>, size| {
                let mut out = vec![0; size];
                let answer = reader.read(&mut out).expect("an honest sender");
                if let ByteRead::Bytes(bytes) = answer {
                    found.extend(&out[..bytes]);
                }
                answer
            };
            for (write_size, read_size, more) in sizes {
                let payload = random.payload(NEAR_BLANK, write_size);
                let taken = if more { writer.write_more(&payload) } else { writer.write(&payload) };
                sent.extend(&payload[..taken.expect("an honest receiver")]);
                let _ = read(&mut reader, read_size);
                writer.progress();
            }
            assert_eq!(writer.shut_down(), Ok(Sent::Sent));
            let mut reads = 0;
            while read(&mut reader, 100) != ByteRead::End {
                writer.progress();
                reads += 1;
                assert!(reads < 10_000, "the end never comes");
            }
            assert!(sent == found, "{} bytes sent, {} found", sent.len(), found.len());
            Ok(())
        },
    );
}

/// A sender that knows nothing of streams: batches and abandoned reservations stand among its messages.
#[test]
fn stream_of_messages_of_every_kind_comes_out_byte_for_byte() {
    let kinds = proptest::collection::vec((0..4u32, 1..150usize, 0..120usize), 1..120);
    check(400, (kinds, any::<u64>()), |(kinds, seed)| {
        let window = TestWindow::new(64, BLANK);
        let config = WindowConfig::blank(BLANK, 0);
        let mut writer = Writer::new(window.clone(), window.clone(), config);
        let mut reader = ByteReader::new(Receiver::new(window.clone(), window.clone(), config));
        let (mut random, mut queued) = (Random(seed), VecDeque::new());
        for (kind, size, read_size) in kinds {
            let payload = random.payload(NEAR_BLANK, size);
            match kind {
                0 => {
                    if writer.try_send(&payload) == Ok(Sent::Sent) {
                        queued.extend(&payload);
                    }
                }
                1 => {
                    if let Some(mut void) = writer.reserve(size).expect("it fits") {
                        void.write(&payload).expect("it was reserved");
                    }
                }
                _ => {
                    let Some(mut batch) = writer.batch(1000).expect("credits are good") else { continue };
                    for piece in payload.chunks(1 + random.below(40)).chain([&[][..]]) {
                        if batch.push(piece) == Ok(Sent::Sent) {
                            queued.extend(piece);
                        } else {
                            break;
                        }
                    }
                    batch.send();
                }
            }
            let (offset, mut out) = (random.below(200), [0; 120]);
            if random.below(2) == 0 {
                assert_eq!(reader.queued_bytes(), queued.len() as u64);
            }
            let expected: Vec<u8> = queued.iter().skip(offset).take(read_size).copied().collect();
            let found = reader.peek(offset as u64, &mut out[..read_size]).expect("an honest sender");
            let bytes = if let ByteRead::Bytes(bytes) = found { bytes } else { 0 };
            assert_eq!(&out[..bytes], expected);
            let found = reader.read(&mut out[..read_size]).expect("an honest sender");
            let bytes = if let ByteRead::Bytes(bytes) = found { bytes } else { 0 };
            assert_eq!(bytes, read_size.min(queued.len()));
            assert!(queued.drain(..bytes).eq(out[..bytes].iter().copied()));
            if random.below(2) == 0 {
                assert_eq!(reader.queued_bytes(), queued.len() as u64);
            }
        }
        Ok(())
    });
}

/// Everything whole is read before the loss of its sender is said, and the loss is not an end.
#[test]
fn stream_of_a_sender_that_dies_is_read_and_then_an_error() {
    check(300, (0..1500u64, any::<u64>()), |(killed_at, seed)| {
        let window = TestWindow::new(64, BLANK);
        window.kill_after(killed_at);
        let config = WindowConfig::blank(BLANK, 0);
        let mut writer = ByteWriter::new(Writer::new(window.clone(), window.clone(), config));
        let mut reader = ByteReader::new(Receiver::new(window.clone(), window.clone(), config));
        let (mut random, mut sent, mut whole, mut found) =
            (Random(seed), Vec::<u8>::new(), 0, Vec::<u8>::new());
        let mut out = [0; 300];
        while window.issued_words() < killed_at {
            let payload = random.payload(NEAR_BLANK, 1 + random.clone().below(600));
            let taken = writer.write(&payload).expect("an honest receiver");
            sent.extend(&payload[..taken]);
            if window.issued_words() <= killed_at {
                whole = sent.len();
            }
            if let ByteRead::Bytes(bytes) = reader.read(&mut out).expect("nobody is known to be dead") {
                found.extend(&out[..bytes]);
            }
        }
        reader.sender_gone();
        let error = loop {
            match reader.read(&mut out) {
                Ok(ByteRead::Bytes(bytes)) => found.extend(&out[..bytes]),
                Ok(other) => panic!("{other:?} from a dead sender"),
                Err(error) => break error,
            }
        };
        assert!(found.len() >= whole && sent.starts_with(&found), "{} of {whole}", found.len());
        assert_eq!(matches!(error, ReceiveError::Torn(_)), window.arrived_words() > 0);
        assert_eq!(reader.read(&mut out), Err(ReceiveError::Gone));
        Ok(())
    });
}
