//! The two ends of a lap window on the vectors: a receiver finds the messages that a case names, and a sender of these messages
//! stores the words that the case writes.

use std::cell::RefCell;
use std::rc::Rc;

use beeline_contract_memory::{CreditSink, CreditSource, Line, ReadOnlyPort, StorePort, store_port_default};
use beeline_vectors::{LapCase, LapEvent, load_laps};
use beeline_window::lap::{LapReceiver, LapWriter};
use beeline_window::{Position, ReceiveError, Sent};

/// Memory and the count of freed lines.
#[derive(Clone)]
struct Memory(Rc<RefCell<(Vec<Line>, u64)>>);

impl Memory {
    fn new(lines: u32) -> Self {
        Memory(Rc::new(RefCell::new((vec![[0; 8]; lines as usize], 0))))
    }

    fn words(&self) -> Vec<Line> {
        self.0.borrow().0.clone()
    }
}

impl ReadOnlyPort for Memory {
    fn lines(&self) -> u32 {
        self.0.borrow().0.len() as u32
    }

    fn load_word(&self, line: u32, word: u32) -> u64 {
        self.0.borrow().0[line as usize][word as usize]
    }

    fn load_tops(&mut self, line: u32) -> (u8, u64) {
        let words = self.0.borrow().0[line as usize];
        ((0..8).fold(0, |tops, word| tops | ((words[word] >> 63) as u8) << word), words[0])
    }
}

impl StorePort for Memory {
    fn lines(&self) -> u32 {
        ReadOnlyPort::lines(self)
    }

    fn store_line(&mut self, line: u32, words: &Line) {
        self.0.borrow_mut().0[line as usize] = *words;
    }

    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        self.0.borrow_mut().0[line as usize][word as usize] = value;
    }

    fn fence(&mut self) {}

    store_port_default! { composed, hints, wake_receiver, progress }
}

impl CreditSink for Memory {
    fn publish(&mut self, freed_lines: u64) {
        self.0.borrow_mut().1 = freed_lines;
    }
}

impl CreditSource for Memory {
    fn freed_lines(&mut self) -> u64 {
        self.0.borrow().1
    }
}

type Receiver = LapReceiver<Memory, Memory>;

fn messages(receiver: &mut Receiver) -> Result<Vec<Vec<u8>>, ReceiveError> {
    let mut found = Vec::new();
    while let Some(mut message) = receiver.poll()? {
        let mut bytes = Vec::new();
        message.copy_to(&mut bytes);
        found.push(bytes);
    }
    Ok(found)
}

/// A write arrives, and the receiver looks.
fn play(case: &LapCase, event: &LapEvent, memory: &Memory, receiver: &mut Receiver) {
    let place = format!("case {} ({})", case.name, event.note);
    for (at, word) in (event.write.at as usize / 8..).zip(event.write.bytes.as_chunks::<8>().0) {
        memory.0.borrow_mut().0[at / 8][at % 8] = u64::from_le_bytes(*word);
    }
    match messages(receiver) {
        Ok(found) => assert_eq!((found, event.fails), (event.messages.clone(), false), "{place}"),
        Err(error) => assert!(event.fails, "{place}: {error}"),
    }
    assert_eq!(receiver.next_start(), Position(event.next_start), "{place}");
}

#[test]
fn receiver_finds_the_messages_of_every_vector() {
    for case in load_laps().unwrap_or_else(|error| panic!("{error}")) {
        let memory = Memory::new(case.window_lines);
        let mut receiver = LapReceiver::new(memory.clone(), memory.clone(), case.epoch, Position(0));
        for event in &case.events {
            play(&case, event, &memory, &mut receiver);
        }
    }
}

#[test]
fn sender_stores_the_words_of_every_vector() {
    let cases = load_laps().unwrap_or_else(|error| panic!("{error}"));
    let is_honest = |case: &&LapCase| !case.events.iter().any(|event| event.fails);
    assert!(cases.iter().filter(is_honest).count() >= 5, "there are cases that a sender stores");
    for case in cases.iter().filter(is_honest) {
        let (written, stored) = (Memory::new(case.window_lines), Memory::new(case.window_lines));
        let mut receiver = LapReceiver::new(written.clone(), written.clone(), case.epoch, Position(0));
        let mut writer = LapWriter::new(stored.clone(), case.epoch);
        writer.join(written.clone());
        for event in &case.events {
            for message in &event.messages {
                // The credits of the message before are there, since it was received.
                assert_eq!(writer.try_send(message), Ok(Sent::Sent), "case {}", case.name);
            }
            play(case, event, &written, &mut receiver);
            if !event.messages.is_empty() {
                assert_eq!(stored.words(), written.words(), "case {} ({})", case.name, event.note);
            }
        }
    }
}
