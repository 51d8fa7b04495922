//! A peer whose words are anything, and others with each load: nothing panics, and every call returns.

use std::cell::RefCell;

use beeline_contract_adapter::{PublishPort, Unconfirmed, ViewPort};
use beeline_ledger::*;
use proptest::prelude::*;

struct Nowhere;

impl PublishPort for Nowhere {
    fn publish(&mut self, _word: u32, _value: u64) {}

    fn barrier(&mut self) -> Result<(), Unconfirmed> {
        Ok(())
    }
}

/// Words that a stranger stores while they are looked at: with each load the next one, over and over.
struct Anything(RefCell<(Vec<u64>, usize)>);

impl Anything {
    fn of(words: Vec<u64>) -> Self {
        Anything(RefCell::new((words, 0)))
    }
}

impl ViewPort for Anything {
    fn load(&self, _word: u32) -> u64 {
        let mut words = self.0.borrow_mut();
        words.1 += 1;
        words.0[words.1 % words.0.len()]
    }
}

/// A socket and a window that always have bytes, or never.
struct Full(bool);

impl KernelPath for Full {
    type Error = ();

    fn peek(&mut self, out: &mut [u8]) -> Result<Peeked, ()> {
        Ok(if self.0 { Peeked::Bytes(out.len()) } else { Peeked::Nothing })
    }

    fn take(&mut self, _bytes: usize) -> Result<(), ()> {
        Ok(())
    }
}

impl WindowPath for Full {
    fn read(&mut self, _offset: u64, out: &mut [u8]) -> Result<usize, WindowLost> {
        if self.0 { Ok(out.len()) } else { Err(WindowLost) }
    }

    fn peek(&mut self, offset: u64, out: &mut [u8]) -> Result<usize, WindowLost> {
        self.read(offset, out)
    }
}

/// Words that entries and counts are made of, and others.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        (0..12u64, 0..4u64).prop_map(|(index, kind)| index << 2 | kind),
        0..20u64,
        any::<u64>(),
        (0..6u64).prop_map(|passed| 1 << 63 | passed),
    ]
}

proptest! {
    #[test]
    fn receiver_returns_whatever_the_ledger_says(
        words in prop::collection::vec(word(), 1..40),
        has_bytes in any::<[bool; 2]>(),
    ) {
        let mut receiver = Receiver::new(Nowhere, Anything::of(words), 0);
        let mut out = [0; 4];
        for turn in 0..50 {
            let before = receiver.taken_bytes();
            match receiver.receive(&mut out, &mut Full(has_bytes[0]), &mut Full(has_bytes[1])) {
                Ok(Received::Bytes(bytes)) => prop_assert_eq!(receiver.taken_bytes(), before + bytes as u64),
                Ok(_) => prop_assert_eq!(receiver.taken_bytes(), before),
                Err(_) => break,
            }
            if turn % 7 == 0 {
                let _known = receiver.stop();
            }
        }
    }

    #[test]
    fn sender_returns_whatever_the_answers_say(words in prop::collection::vec(word(), 1..40)) {
        let mut sender = Sender::new(Nowhere, Anything::of(words), 0);
        let mut given = 0;
        for _ in 0..50 {
            let _stays = sender.go_up(given);
            if sender.path() == Path::Kernel {
                given += 3;
            }
            sender.count(3);
            match sender.is_asked_down() {
                Ok(true) => sender.go_down(),
                Ok(false) => {}
                Err(_) => break,
            }
            prop_assert!(sender.untaken_bytes() <= sender.sent_bytes());
            if let Ok(Some(from)) = sender.resume_from() {
                prop_assert!(from <= sender.sent_bytes());
                sender.resume(from);
            }
            if given % 21 == 0 {
                let from = sender.sent_bytes() - sender.untaken_bytes();
                let begun = sender.begin_anew(from);
                prop_assert!(sender.sent_bytes() == from || begun == Ok(Anew::Needless));
                prop_assert_eq!(sender.path(), Path::Kernel);
            }
        }
    }
}

/// Entries that come as fast as they are passed, and no byte.
struct Endless(RefCell<u64>);

impl ViewPort for Endless {
    fn load(&self, word: u32) -> u64 {
        let mut index = self.0.borrow_mut();
        if !word.is_multiple_of(4) {
            return 0;
        }
        *index += 1;
        *index << 2 | if !index.is_multiple_of(2) { 1 } else { 2 }
    }
}

/// Bytes have never come.
struct Empty;

impl WindowPath for Empty {
    fn read(&mut self, _offset: u64, _out: &mut [u8]) -> Result<usize, WindowLost> {
        Ok(0)
    }

    fn peek(&mut self, _offset: u64, _out: &mut [u8]) -> Result<usize, WindowLost> {
        Ok(0)
    }
}

#[test]
fn receiver_does_not_pass_entries_for_ever() {
    let mut receiver = Receiver::new(Nowhere, Endless(RefCell::new(0)), 0);
    assert_eq!(receiver.receive(&mut [0], &mut Full(false), &mut Empty), Ok(Received::Nothing));
}
