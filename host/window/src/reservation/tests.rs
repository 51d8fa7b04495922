use std::io::Write as _;

use super::*;
use crate::error::{ReceiveError, SendError};
use crate::writer::tests::pair;
use crate::{Position, Sent};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn the_header_of_a_long_message_is_stored_last_and_every_word_once() -> Outcome {
    let (window, mut writer, mut receiver) = pair(16);
    window.hold();
    let mut reservation = writer.reserve(500)?.expect("an empty window");
    for i in 0..62u64 {
        reservation.put_u64(i)?;
    }
    assert_eq!((reservation.written_bytes(), reservation.left_bytes()), (496, 4));
    reservation.write(&[9; 4])?;
    reservation.commit();
    let stores: Vec<_> = (0..window.held()).filter_map(|_| window.take(0)).collect();
    assert_eq!(stores.len(), 64, "eight lines, each word once");
    let last = stores.last().expect("stores were held");
    assert_eq!((last.line, last.word), (0, 0), "the header word is last");
    for store in stores {
        assert!(receiver.poll()?.is_none(), "complete only with its last word");
        window.forge(store.line, store.word, store.value);
    }
    let message = receiver.poll()?.expect("all words are there");
    assert_eq!(message.len(), 500);
    assert!((0..62).all(|i| message.word(i) == i as u64));
    assert_eq!(message.word(62), 0x0909_0909);
    Ok(())
}

#[test]
fn a_one_line_reservation_is_stored_whole_and_a_short_one_takes_only_its_lines() -> Outcome {
    let (window, mut writer, mut receiver) = pair(16);
    let mut reservation = writer.reserve(900)?.expect("an empty window");
    reservation.write(&[7; 56])?;
    assert_eq!(window.issued_words(), 0, "one line is staged, nothing stored");
    reservation.commit();
    assert_eq!((window.issued_words(), writer.position()), (8, Position(1)));
    let mut out = Vec::new();
    receiver.poll()?.expect("it was committed").copy_to(&mut out);
    assert_eq!(out, [7; 56]);
    Ok(())
}

#[test]
fn a_dropped_reservation_with_stored_lines_is_a_void_message_over_its_lines() -> Outcome {
    for (reserved, written) in [(57, 57), (500, 57), (500, 130), (500, 500)] {
        let (window, mut writer, mut receiver) = pair(16);
        let mut reservation = writer.reserve(reserved)?.expect("an empty window");
        reservation.write(&vec![1; written])?;
        drop(reservation);
        let lines = u64::from(lines_of(reserved as u32));
        assert_eq!(writer.position(), Position(lines));
        assert_eq!(window.issued_words(), lines * 8);
        let header = Header::decode(window.clone().load_word_of(0), 16, 3)?;
        assert_eq!((header.kind, header.length_bytes), (Kind::Void, reserved as u32));
        assert_eq!(writer.try_send(b"next")?, Sent::Sent);
        let mut out = Vec::new();
        receiver.poll()?.expect("the void message is skipped").copy_to(&mut out);
        assert_eq!(out, b"next");
    }
    Ok(())
}

#[test]
fn a_dropped_reservation_without_stored_lines_leaves_no_trace() -> Outcome {
    for (reserved, written) in [(1, 0), (56, 56), (57, 0), (500, 56)] {
        let (window, mut writer, mut receiver) = pair(16);
        let mut reservation = writer.reserve(reserved)?.expect("an empty window");
        reservation.write(&vec![1; written])?;
        drop(reservation);
        assert_eq!((window.issued_words(), writer.position(), writer.free_lines()), (0, Position(0), 16));
        assert_eq!(writer.try_send(b"next")?, Sent::Sent);
        assert_eq!(receiver.poll()?.map(|message| message.len()), Some(4));
    }
    Ok(())
}

trait FirstWord {
    fn load_word_of(self, line: u32) -> u64;
}

impl FirstWord for crate::test_memory::TestWindow {
    fn load_word_of(self, line: u32) -> u64 {
        beeline_contract_memory::LoadPort::load_word(&self, line, 0)
    }
}

#[test]
fn a_forgotten_reservation_is_made_void_by_the_next_message() -> Outcome {
    let (_, mut writer, mut receiver) = pair(16);
    let mut reservation = writer.reserve(200)?.expect("an empty window");
    reservation.write(&[1; 100])?;
    core::mem::forget(reservation);
    assert_eq!(writer.try_send(b"next")?, Sent::Sent);
    assert_eq!(writer.position(), Position(5));
    assert_eq!(receiver.poll()?.expect("the void message is skipped").len(), 4);
    let mut batch = writer.batch(100)?.expect("room");
    let _ = batch.push(b"lost")?;
    core::mem::forget(batch);
    drop(writer.reserve(10)?.expect("room"));
    assert!(receiver.poll()?.is_none());
    assert_eq!(receiver.next_start(), writer.position());
    Ok(())
}

#[test]
fn too_much_is_refused_whole() -> Outcome {
    let (_, mut writer, _) = pair(4);
    let mut reservation = writer.reserve(10)?.expect("an empty window");
    reservation.write(&[1; 8])?;
    let error = WriteError { bytes: 3, written_bytes: 8, reserved_bytes: 10 };
    assert_eq!(reservation.write(&[1; 3]), Err(error));
    assert_eq!(std::io::Write::write(&mut reservation, &[1; 3])?, 2, "io::Write takes what fits");
    assert!(reservation.write_all(&[1]).is_err());
    Ok(())
}

#[test]
fn escapes_are_found_however_the_bytes_come() -> Outcome {
    const BLANK: u64 = 1 << 63 | 0x1234_5678;
    let words: Vec<u64> = (0..60).map(|i| if i % 3 == 0 { BLANK } else { BLANK + i % 2 }).collect();
    let payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    for piece in [1, 3, 8, 13, 64, 100, 480] {
        let (_, mut writer, mut receiver) = pair(16);
        let mut reservation = writer.reserve(480)?.expect("an empty window");
        for bytes in payload.chunks(piece) {
            reservation.write(bytes)?;
        }
        reservation.commit();
        let mut message = receiver.poll()?.expect("it was committed");
        assert!(words.iter().enumerate().all(|(i, word)| message.word(i) == *word), "pieces of {piece}");
        let mut out = Vec::new();
        message.copy_to(&mut out);
        assert_eq!(out, payload, "pieces of {piece}");
    }
    Ok(())
}

#[test]
fn an_open_reservation_holds_its_lines() -> Result<(), SendError> {
    let (_, mut writer, mut receiver) = pair(4);
    let mut reservation = writer.reserve(240)?.expect("an empty window");
    reservation.write(&[1; 100]).expect("it was reserved");
    drop(reservation);
    assert_eq!(writer.free_lines(), 0);
    assert_eq!(receiver.poll().map(|found| found.is_some()), Ok::<_, ReceiveError>(false));
    assert_eq!(writer.try_send(b"again")?, Sent::Sent, "an idle poll pushed the credits of the void message");
    Ok(())
}
