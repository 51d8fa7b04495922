use super::*;
use crate::test_memory::{ObservedCredits, TestWindow};
use crate::writer::tests::pair;
use crate::{Sent, Torn, Writer};
use beeline_spec::HeaderError;
use beeline_spec::batch::BatchError;
use beeline_spec::escape::EscapeError;

const BLANK: u64 = 1 << 63 | 0x1234_5678;
const EPOCH: u8 = 3;

/// A window into which a peer stored these words and padding up to whole lines.
fn forged(words: &[u64]) -> Receiver<TestWindow, TestWindow> {
    let (window, _, receiver) = pair(8);
    let padded = words.len().next_multiple_of(8);
    for (index, word) in words.iter().copied().chain(core::iter::repeat(0)).take(padded).enumerate() {
        window.forge(index as u32 / 8, index as u32 % 8, word);
    }
    receiver
}

fn final_error(mut receiver: Receiver<TestWindow, TestWindow>) -> ReceiveError {
    let error = loop {
        match receiver.poll() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a malformed message was waited for"),
            Err(error) => break error,
        }
    };
    for _ in 0..3 {
        assert_eq!(receiver.poll().map(|_| ()), Err(error), "an error is final");
    }
    assert!(!error.to_string().is_empty());
    error
}

#[test]
fn next_start_and_frontier_move_as_the_words_arrive() -> Result<(), ReceiveError> {
    let (window, mut writer, mut receiver) = pair(8);
    window.hold();
    assert_eq!(writer.try_send(&[1; 100]), Ok(Sent::Sent));
    for word in (1..16).rev() {
        window.release(word);
        assert!(receiver.poll()?.is_none());
        assert_eq!((receiver.next_start(), receiver.frontier()), (Position(0), 0));
    }
    window.release(0);
    assert_eq!((receiver.next_start(), receiver.frontier()), (Position(0), 128));
    drop(receiver.poll()?.expect("the header came last"));
    assert_eq!((receiver.next_start(), receiver.frontier()), (Position(2), 128));
    assert_eq!(writer.try_send(&[1; 100]), Ok(Sent::Sent));
    for _ in 0..9 {
        window.release(0);
    }
    assert_eq!((receiver.next_start(), receiver.frontier()), (Position(2), 128 + 72));
    Ok(())
}

#[test]
fn credits_are_coalesced_and_flushed_when_idle() -> Result<(), ReceiveError> {
    let (window, mut writer, receiver) = pair(64);
    let mut receiver = receiver.with_coalescing(10).with_prefetch(4);
    for _ in 0..25 {
        assert_eq!(writer.try_send(b"x"), Ok(Sent::Sent));
    }
    for _ in 0..25 {
        drop(receiver.poll()?.expect("a message"));
    }
    assert_eq!((window.publications(), window.published()), (2, 20));
    assert!(receiver.poll()?.is_none());
    assert!(receiver.poll()?.is_none());
    assert_eq!((window.publications(), window.published()), (3, 25));
    Ok(())
}

#[test]
fn credits_that_are_due_stay_due_when_the_tuning_changes() -> Result<(), ReceiveError> {
    let (window, mut writer, receiver) = pair(64);
    let mut receiver = receiver.with_coalescing(32);
    for _ in 0..40 {
        assert_eq!(writer.try_send(b"x"), Ok(Sent::Sent));
    }
    for taken in 1..=20 {
        drop(receiver.poll()?.expect("a message"));
        receiver.set_prefetch(taken % 9);
        receiver.set_groups(taken % 2 == 0);
    }
    assert_eq!(window.published(), 0);
    receiver.set_coalescing(4);
    drop(receiver.poll()?.expect("a message"));
    assert_eq!(window.published(), 21, "what was freed before counts");
    assert_eq!(receiver.drain(19, |_| ())?, 19);
    receiver.set_coalescing(32);
    assert!(receiver.poll()?.is_none());
    assert_eq!(window.published(), 40, "nothing is there to receive");
    Ok(())
}

/// Whoever waits asks this before it sleeps: half a message must not keep it awake.
#[test]
fn a_message_that_stops_in_the_middle_is_worth_one_poll() -> Result<(), ReceiveError> {
    for words in [0, 1, 7, 8, 23] {
        let (window, mut writer, mut receiver) = pair(8);
        window.hold();
        assert!(!receiver.has_begun());
        assert_eq!(writer.try_send(&[7; 130]), Ok(Sent::Sent));
        (0..=words).for_each(|_| window.release(0));
        let is_whole = words == 23;
        assert!(receiver.has_begun(), "its header is there");
        assert_eq!(receiver.poll()?.map(|message| message.len()), is_whole.then_some(130));
        for _ in 0..3 {
            assert!(!receiver.has_begun(), "{words} words: nothing has come since");
            assert!(receiver.poll()?.is_none());
        }
        if !is_whole {
            (words + 1..24).for_each(|_| window.release(0));
            assert!(receiver.has_begun(), "{words} words, and then the rest");
            assert_eq!(receiver.poll()?.map(|message| message.len()), Some(130));
        }
        assert!(!receiver.has_begun());
    }
    // The end of a sender is to be heard of, whatever it left.
    let (window, mut writer, mut receiver) = pair(8);
    window.hold();
    assert_eq!(writer.try_send(&[7; 130]), Ok(Sent::Sent));
    (0..9).for_each(|_| window.release(0));
    assert!(receiver.poll()?.is_none() && !receiver.has_begun());
    receiver.sender_gone();
    assert!(receiver.has_begun() && matches!(receiver.poll(), Err(ReceiveError::Torn(_))));
    Ok(())
}

#[test]
fn drain_without_groups_gives_the_same_messages_and_asks_for_no_group() -> Result<(), ReceiveError> {
    for in_groups in [true, false] {
        let (window, mut writer, receiver) = pair(512);
        let mut receiver = receiver.with_groups(in_groups);
        for number in 0..300u64 {
            assert_eq!(writer.try_send(&number.to_le_bytes()), Ok(Sent::Sent));
        }
        let mut found = Vec::new();
        assert_eq!(receiver.drain(1000, |message| found.push(message.word(0)))?, 300);
        assert_eq!((found, window.arrived_words()), ((0..300).collect(), 0));
        let groups = window.groups_looked_at();
        assert_eq!(groups > 0, in_groups, "{groups} groups");
    }
    Ok(())
}

#[test]
fn hostile_headers_are_errors_with_numbers() {
    let position = Position(0);
    let good = Header::new(Kind::Data, 20, EPOCH);
    let long = Header::new(Kind::Data, 8 * 64 - 7, EPOCH).encode();
    let escape = Header { escape_last: 4, ..good }.encode();
    let cases = [
        (0, HeaderError::Kind(0)),
        (u64::MAX, HeaderError::Reserved(u64::MAX)),
        (Header::new(Kind::Data, 20, 4).encode(), HeaderError::Epoch { found: 4, expected: EPOCH }),
        (long, HeaderError::TooLong { lines: 9, window_lines: 8 }),
        (escape, HeaderError::Escape { index: 4, words: 4 }),
    ];
    for (word, error) in cases {
        assert_eq!(final_error(forged(&[word])), ReceiveError::Header { position, error }, "{word:#x}");
    }
}

#[test]
fn hostile_escapes_are_errors_with_numbers() {
    let position = Position(0);
    let header = Header { escape_last: 4, ..Header::new(Kind::Data, 56, EPOCH) }.encode();
    for link in [4, 5, 1 << 22, u64::MAX] {
        let error = EscapeError { index: 4, word: link };
        let found = final_error(forged(&[header, 0, 0, 0, link]));
        assert_eq!(found, ReceiveError::Escape { position, error });
    }
    let error = EscapeError { index: 2, word: 2 };
    let found = final_error(forged(&[header, 0, 2, 0, 2]));
    assert_eq!(found, ReceiveError::Escape { position, error }, "a chain that does not go down ends");
}

#[test]
fn hostile_batches_are_errors_with_numbers() {
    let position = Position(0);
    let header = |bytes| Header::new(Kind::Batch, bytes, EPOCH).encode();
    let error = BatchError { offset_bytes: 8, length_bytes: 15, left_bytes: 14 };
    let found = final_error(forged(&[header(24), 6, 15, 0]));
    assert_eq!(found, ReceiveError::Batch { position, error });
    let error = BatchError { offset_bytes: 8, length_bytes: 0, left_bytes: 0 };
    let found = final_error(forged(&[header(9), 6, 0]));
    assert_eq!(found, ReceiveError::Batch { position, error });
    assert!(forged(&[header(0)]).poll().is_ok_and(|found| found.is_none()), "an empty batch is skipped");
}

#[test]
fn a_header_that_changes_after_it_was_read_changes_nothing() -> Result<(), ReceiveError> {
    let (window, _, mut receiver) = pair(8);
    window.forge(0, 0, Header::new(Kind::Data, 100, EPOCH).encode());
    assert!(receiver.poll()?.is_none());
    window.forge(0, 0, Header::new(Kind::Data, 8 * 64 - 8, EPOCH).encode());
    for index in 1..16 {
        window.forge(index / 8, index % 8, 1);
    }
    let mut message = receiver.poll()?.expect("two lines, as read first");
    assert_eq!(message.len(), 100);
    assert_eq!(message.copy_out(&mut [0; 500]), 100);
    drop(message);
    assert_eq!(receiver.next_start(), Position(2));
    Ok(())
}

#[test]
fn a_sender_of_nothing_but_void_messages_cannot_hold_a_poll() -> Result<(), ReceiveError> {
    let (window, _, mut receiver) = pair(8);
    for line in 0..8 {
        window.forge(line, 0, Header::new(Kind::Void, 0, EPOCH).encode());
        (1..8).for_each(|word| window.forge(line, word, 0));
    }
    assert!(receiver.poll()?.is_none());
    assert_eq!(receiver.next_start(), Position(8));
    Ok(())
}

#[test]
fn a_dead_senders_messages_are_delivered_then_its_torn_one_then_the_end() -> Result<(), ReceiveError> {
    let (window, mut writer, mut receiver) = pair(16);
    assert_eq!(writer.try_send(b"whole"), Ok(Sent::Sent));
    window.kill_after(8 + 11);
    assert_eq!(writer.try_send(&[1; 100]), Ok(Sent::Sent));
    receiver.sender_gone();
    assert_eq!(receiver.poll()?.expect("it was complete").len(), 5);
    let torn = Torn::new(Position(1), 11, Some(14));
    assert_eq!(receiver.poll().map(|_| ()), Err(ReceiveError::Torn(torn)));
    assert_eq!(receiver.poll().map(|_| ()), Err(ReceiveError::Gone));
    assert_eq!(receiver.poll().map(|_| ()), Err(ReceiveError::Gone));
    Ok(())
}

#[test]
fn a_torn_message_without_its_header_is_seen_too() {
    let (window, mut writer, mut receiver) = pair(16);
    window.hold();
    assert_eq!(writer.try_send(&[1; 100]), Ok(Sent::Sent));
    window.release(12);
    receiver.sender_gone();
    let torn = Torn::new(Position(0), 1, None);
    assert_eq!(receiver.poll().map(|_| ()), Err(ReceiveError::Torn(torn)));
}

#[test]
fn a_sender_that_died_between_messages_is_just_gone() {
    let (_, mut writer, mut receiver) = pair(16);
    assert_eq!(writer.try_send(b"x"), Ok(Sent::Sent));
    assert!(receiver.poll().is_ok_and(|found| found.is_some()));
    receiver.sender_gone();
    assert_eq!(receiver.poll().map(|_| ()), Err(ReceiveError::Gone));
}

#[test]
fn observed_writes_outside_or_over_each_other_are_final_errors() {
    let window = TestWindow::new(4, BLANK);
    let fresh = || Receiver::observed(4, window.clone(), WindowConfig::observed(0));
    for (offset_bytes, bytes) in [(250, 7), (256, 1), (u64::MAX, 2)] {
        let mut receiver = fresh();
        let error = ReceiveError::Outside { offset_bytes, bytes, window_bytes: 256 };
        assert_eq!(receiver.write_arrived(offset_bytes, &vec![0; bytes], None), Err(error));
        assert_eq!(receiver.poll().map(|_| ()), Err(error));
    }
    let mut receiver = fresh();
    assert_eq!(receiver.write_arrived(8, &[1; 8], Some(0x0f)), Ok(()));
    assert_eq!(receiver.write_arrived(8, &[1; 8], Some(0xf0)), Ok(()));
    let error = ReceiveError::Clobber { offset_bytes: 15 };
    assert_eq!(receiver.write_arrived(15, &[1], None), Err(error));
    assert_eq!(receiver.write_arrived(100, &[1], None), Err(error), "an error is final");
}

#[test]
fn an_observed_window_has_no_escapes() {
    let window = TestWindow::new(4, BLANK);
    let mut receiver = Receiver::observed(4, window, WindowConfig::observed(0));
    let header = Header { escape_last: 1, ..Header::new(Kind::Data, 8, 0) }.encode();
    assert_eq!(receiver.write_arrived(0, &header.to_le_bytes(), None), Ok(()));
    assert_eq!(receiver.write_arrived(8, &[0; 56], None), Ok(()));
    let error = ReceiveError::UnexpectedEscape { position: Position(0), index: 1 };
    assert_eq!(receiver.poll().map(|_| ()), Err(error));
}

#[test]
fn an_observed_frontier_is_counted_in_bytes() {
    let window = TestWindow::new(4, BLANK);
    let mut receiver = Receiver::observed(4, ObservedCredits(window.clone()), WindowConfig::observed(0));
    let mut lines = window.clone();
    let mut writer = Writer::new(lines.clone(), window, WindowConfig::observed(0));
    assert_eq!(writer.try_send(&[5; 70]), Ok(Sent::Sent));
    let bytes: Vec<u8> = (0..2).flat_map(|line| crate::payload::line_bytes(&lines.load_line(line))).collect();
    assert_eq!(receiver.write_arrived(3, &bytes[3..], None), Ok(()));
    assert_eq!(receiver.frontier(), 0);
    assert_eq!(receiver.write_arrived(0, &bytes[..2], None), Ok(()));
    assert_eq!(receiver.frontier(), 2);
    assert!(receiver.poll().is_ok_and(|found| found.is_none()));
    assert_eq!(receiver.write_arrived(2, &bytes[2..3], None), Ok(()));
    assert_eq!(receiver.frontier(), 128);
    assert!(
        receiver.poll().is_ok_and(|found| found.is_some_and(|message| message.word(8) == 0x0505_0505_0505))
    );
}
