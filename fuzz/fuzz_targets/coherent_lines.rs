//! This target sends and receives by coherent lines. A hostile device controls every word of both rings and of the buffers
//! that their entries name. The host half does not panic, does not hang, does not leave a ring or a buffer, and gives no
//! frame that is longer than its buffer. A frame that was sent lies whole in its entry or in buffers that no other entry
//! names. An entry comes back as it went, or there is an error. What a device that has not lied delivers is received to the
//! byte, and nothing of a life before a recovery is received.
#![no_main]

use std::collections::VecDeque;

use arbitrary::Arbitrary;
use beeline_driver::{CoherentConfig, RxCoherentConfig, Transmit, TxCoherent, TxError};
use beeline_fuzz::Word;
use beeline_fuzz::fillers::{LINE_BUFFERS, LINE_ENTRIES, LINES, LineFiller};
use beeline_fuzz::opened::Opened;
use beeline_fuzz::received::{FuzzedReceiver, Lies, Received, frame};
use beeline_fuzz::scripted::{Memory, Scripted};
use beeline_spec::coherent::{LineBuffer, LineHeader, LineKind, given_back, position_of};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Operation {
    /// Frames are sent, as one burst.
    Send { bytes: Vec<u16>, fill: u8 },
    /// The device gives back the oldest entries that it has; the last of them as something else.
    GiveBack { entries: u8, flip: Option<u8> },
    /// The transmit half looks.
    Progress,
    /// A frame is delivered.
    Deliver { bytes: u16, fill: u8, lies: Lies },
    /// An entry is delivered as this one would be.
    Head { place: u8, buffers: Option<u8>, length_bytes: u16, epoch: u8, index: u8 },
    /// A buffer is named, somewhere around those that are there.
    Name { word: u8, length_bytes: u16, line: i16 },
    /// Frames are received.
    Receive { times: u8 },
    /// The host asks whether it may sleep.
    Look,
    /// A word of the receive ring or its buffers.
    Poke { word: u16, value: Word },
    /// A half is recovered.
    Recover { receives: bool },
}

#[derive(Arbitrary, Debug)]
struct Input {
    entry_lines_log2: u8,
    epoch: u8,
    operations: Vec<Operation>,
}

/// What the device has been passed and has not given back.
struct Sender {
    half: Opened<TxCoherent<Memory>>,
    entry_bytes: usize,
    /// Absolute count of the oldest entry that it has; the frames of each from there on.
    oldest: u64,
    frames: VecDeque<Vec<Vec<u8>>>,
    is_lie: bool,
}

impl Sender {
    fn at(&self, count: u64) -> usize {
        (count % u64::from(LINE_ENTRIES)) as usize * self.entry_bytes / 8
    }

    /// The frames of an entry, by its words.
    fn find(&self, count: u64) -> Vec<(usize, usize)> {
        let words = self.half.words();
        let (words, at) = (words.borrow(), self.at(count));
        let header = LineHeader::decode(words[at], self.half.epoch(), count, self.entry_bytes);
        match header.expect("an entry that was passed and not touched").kind {
            LineKind::Whole(bytes) => vec![((at + 1) * 8, bytes.into())],
            LineKind::Buffers(buffers) => (0..usize::from(buffers))
                .map(|index| {
                    let named = LineBuffer::decode(words[at + 1 + index]);
                    let place = named.address.wrapping_sub(self.half.address) as usize;
                    assert!(place >= LINE_ENTRIES as usize * self.entry_bytes, "a buffer in the ring");
                    assert!(place + usize::from(named.length_bytes) <= words.len() * 8, "past the memory");
                    (place, named.length_bytes.into())
                })
                .collect(),
        }
    }

    /// Everything that the device has is as it was sent.
    fn check(&self) {
        if self.is_lie {
            return;
        }
        let words = self.half.words();
        for (count, frames) in (self.oldest..).zip(&self.frames) {
            let found = self.find(count);
            assert_eq!(found.len(), frames.len(), "frames of entry {count}");
            for ((place, bytes), frame) in found.into_iter().zip(frames) {
                let words = &words.borrow()[place / 8..];
                let found: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take(bytes).collect();
                assert_eq!(&found, frame, "a frame of entry {count}");
            }
        }
    }

    fn send(&mut self, bytes: &[u16], fill: u8) {
        let frames: Vec<Vec<u8>> = bytes.iter().take(64).map(|bytes| frame(*bytes, fill)).collect();
        let views: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        let before = self.half.half.passed();
        let sent = self.half.half.try_send_burst(&views);
        let mut taken = frames.into_iter().take(sent.map_or(0, |taken| taken.0));
        for count in before..self.half.half.passed() {
            let named = if self.is_lie { 1 } else { self.find(count).len() };
            self.frames.push_back(taken.by_ref().take(named).collect());
        }
        assert!(self.is_lie || taken.next().is_none(), "a frame was taken and not passed");
        let is_lies = matches!(sent, Err(TxError::BadReturn { .. }));
        assert!(self.is_lie || !is_lies, "an error without a lie: {sent:?}");
    }

    fn give_back(&mut self, entries: u8, flip: Option<u8>) {
        for left in (0..entries % 8).rev() {
            if self.frames.pop_front().is_none() {
                return;
            }
            let at = self.at(self.oldest);
            let words = self.half.words();
            let header = given_back(words.borrow()[at]);
            let flip = flip.filter(|_| left == 0).map_or(0, |bit| 1 << (bit % 64));
            words.borrow_mut()[at] = header ^ flip;
            self.is_lie |= flip != 0;
            self.oldest += 1;
        }
    }

    fn progress(&mut self) {
        let outcome = self.half.half.progress();
        assert!(self.is_lie || outcome.is_ok(), "an error without a lie: {outcome:?}");
        assert!(self.is_lie || self.half.half.is_idle() == self.frames.is_empty());
    }
}

/// A word of the receive ring that a device may have meant.
fn forged(operation: &Operation, address: u64) -> Option<(usize, u64)> {
    match *operation {
        Operation::Head { place, buffers, length_bytes, epoch, index } => {
            let kind =
                buffers.map_or(LineKind::Whole(length_bytes % 300), |count| LineKind::Buffers(count % 32));
            let position = position_of(index.into());
            Some((usize::from(place) * 8, LineHeader { kind, epoch, position }.encode()))
        }
        Operation::Name { word, length_bytes, line } => {
            let address = address.wrapping_add_signed(i64::from(line) * 64);
            Some((word.into(), LineBuffer { length_bytes: length_bytes % 2048, address }.encode()))
        }
        Operation::Poke { word, value } => Some((word.into(), value.value())),
        _ => None,
    }
}

fuzz_target!(|input: Input| {
    let link = Scripted::sound(LINES);
    let mut port = link.ready();
    let entry_lines_log2 = u32::from(input.entry_lines_log2 % 3);
    let queue = beeline_driver::TxQueueConfig { epoch: input.epoch, ..Default::default() };
    let (entries, short_buffers, long_buffers) = (LINE_ENTRIES, 4, 2);
    let config = CoherentConfig { queue, entries, entry_lines_log2, short_buffers, long_buffers };
    let half = Opened::new(&mut port, &link, |port| port.coherent(0, config)).expect("a sound device");
    let entry_bytes = 64 << entry_lines_log2;
    let mut tx = Sender { half, entry_bytes, oldest: 0, frames: VecDeque::new(), is_lie: false };
    let config = RxCoherentConfig { entries, entry_lines_log2, buffers: LINE_BUFFERS, ..Default::default() };
    let half = Opened::new(&mut port, &link, |port| port.rx_coherent(1, config)).expect("a sound device");
    let (memory, address) = (half.words(), half.address);
    let filler = LineFiller::new(memory.clone(), address, entry_lines_log2);
    let mut rx = Received::new(half, filler);
    for operation in input.operations {
        if let Some((word, value)) = forged(&operation, address) {
            let mut memory = memory.borrow_mut();
            let word = word % memory.len();
            memory[word] = value;
            rx.lied();
        }
        match operation {
            Operation::Send { bytes, fill } => tx.send(&bytes, fill),
            Operation::GiveBack { entries, flip } => tx.give_back(entries, flip),
            Operation::Progress => tx.progress(),
            Operation::Deliver { bytes, fill, lies } => rx.deliver(&link, &frame(bytes, fill), lies),
            Operation::Receive { times } => {
                for _ in 0..times % 16 {
                    rx.poll(&link);
                }
            }
            Operation::Look => rx.look(&link),
            Operation::Recover { receives: true } => assert!(rx.recover(&mut port)),
            Operation::Recover { receives: false } => {
                let half = tx.half.recovered(&mut port).expect("a sound device");
                tx = Sender { half, entry_bytes, oldest: 0, frames: VecDeque::new(), is_lie: false };
            }
            Operation::Head { .. } | Operation::Name { .. } | Operation::Poke { .. } => {}
        }
        tx.check();
    }
});
