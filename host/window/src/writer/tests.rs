use super::*;
use crate::error::CreditError;
use crate::test_memory::TestWindow;
use crate::{ReceiveError, Receiver};
use beeline_contract_memory::LoadPort;

pub(crate) const BLANK: u64 = 1 << 63 | 0x1234_5678;

pub(crate) fn pair(
    lines: u32,
) -> (TestWindow, Writer<TestWindow, TestWindow>, Receiver<TestWindow, TestWindow>) {
    let window = TestWindow::new(lines, BLANK);
    let config = WindowConfig::blank(BLANK, 3);
    let writer = Writer::new(window.clone(), window.clone(), config);
    (window.clone(), writer, Receiver::new(window.clone(), window, config))
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7 + bytes) as u8).collect()
}

#[test]
fn a_one_line_message_is_header_payload_and_zeros() {
    let (mut window, mut writer, _) = pair(8);
    assert_eq!(writer.try_send(b"0123456789"), Ok(Sent::Sent));
    let expected = Header::new(Kind::Data, 10, 3).encode();
    let first = u64::from_le_bytes(*b"01234567");
    assert_eq!(window.load_line(0), [expected, first, u64::from_le_bytes(*b"89\0\0\0\0\0\0"), 0, 0, 0, 0, 0]);
    assert_eq!(window.load_line(1), [BLANK; 8]);
    assert_eq!(writer.position(), Position(1));
}

#[test]
fn every_length_comes_back() -> Result<(), ReceiveError> {
    let (_, mut writer, mut receiver) = pair(16);
    let mut out = Vec::new();
    // Miri is thousands of times slower: there, a stride that meets every remainder of words and lines.
    let stride = if cfg!(miri) { 37 } else { 1 };
    for bytes in (0..=writer.max_payload_bytes()).chain((0..=200).rev()).step_by(stride) {
        let payload = pattern(bytes);
        assert_eq!(writer.try_send(&payload), Ok(Sent::Sent), "{bytes} bytes");
        let mut message = receiver.poll()?.expect("a sent message");
        out.clear();
        message.copy_to(&mut out);
        assert_eq!(out, payload);
        drop(message);
        assert!(receiver.poll()?.is_none());
    }
    Ok(())
}

#[test]
fn full_is_no_error_and_stores_nothing() -> Result<(), SendError> {
    let (window, mut writer, mut receiver) = pair(4);
    for _ in 0..4 {
        assert_eq!(writer.try_send(b"x")?, Sent::Sent);
    }
    let before = window.issued_words();
    assert_eq!(writer.try_send(b"x")?, Sent::Full);
    assert_eq!(writer.try_send(&[0; 57])?, Sent::Full);
    assert!(writer.reserve(1)?.is_none() && writer.batch(8)?.is_none());
    assert_eq!(window.issued_words(), before);
    drop(receiver.poll().expect("a good window"));
    receiver.push_credits();
    assert_eq!(writer.try_send(&[0; 57])?, Sent::Full);
    assert_eq!(writer.try_send(b"y")?, Sent::Sent);
    Ok(())
}

#[test]
fn what_can_never_fit_is_an_error_with_the_numbers() {
    let (_, mut writer, _) = pair(4);
    let error = SendError::TooLong { bytes: 249, max_bytes: 248 };
    assert_eq!(writer.try_send(&[0; 249]), Err(error));
    assert_eq!(writer.reserve(249).map(|_| ()), Err(error));
    assert_eq!(writer.try_send(&[0; 248]), Ok(Sent::Sent));
    let mut narrow = pair(16).1.with_reorder_span(2);
    assert_eq!(narrow.reserve(121).map(|_| ()), Err(SendError::TooLong { bytes: 121, max_bytes: 120 }));
    assert_eq!(narrow.try_send(&[0; 121]), Ok(Sent::Sent));
}

#[test]
fn a_hostile_receiver_gets_no_store_past_the_credits() {
    for wild in [9, u64::MAX] {
        let (window, mut writer, _) = pair(8);
        for _ in 0..8 {
            assert_eq!(writer.try_send(b"x"), Ok(Sent::Sent));
        }
        window.forge_credits(wild);
        let error = SendError::Credits(CreditError::Ahead { found: wild, sent: 8 });
        for _ in 0..3 {
            assert_eq!(writer.try_send(b"x"), Err(error));
            assert_eq!(writer.reserve(100).map(|_| ()), Err(error));
            assert_eq!(writer.batch(100).map(|_| ()), Err(error));
        }
        assert_eq!(window.issued_words(), 64);
    }
}

#[test]
fn escapes_are_chained_from_the_header() {
    let (mut window, mut writer, _) = pair(8);
    let words = [BLANK, 5, BLANK, 6, 7, 8, 9, BLANK, BLANK + 1];
    let payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(writer.try_send(&payload), Ok(Sent::Sent));
    let header = Header { escape_last: 8, ..Header::new(Kind::Data, 72, 3) }.encode();
    assert_eq!(window.load_line(0), [header, 0, 5, 1, 6, 7, 8, 9]);
    assert_eq!(window.load_line(1), [3, BLANK + 1, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn an_observed_window_escapes_nothing() {
    let window = TestWindow::new(8, BLANK);
    let mut writer = Writer::new(window.clone(), window.clone(), WindowConfig::observed(0));
    assert_eq!(writer.try_send(&[0; 24]), Ok(Sent::Sent));
    assert_eq!(window.clone().load_line(0), [Header::new(Kind::Data, 24, 0).encode(), 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(writer.try_send(&[UNLIKELY.to_le_bytes(), [7; 8]].concat()), Ok(Sent::Sent));
    let header = Header::new(Kind::Data, 16, 0).encode();
    assert_eq!(window.clone().load_line(1), [header, UNLIKELY, 0x0707_0707_0707_0707, 0, 0, 0, 0, 0]);
}

#[test]
fn fences_follow_the_policy() {
    // A lap of 16 lines in messages of 1, 5 and 10 lines.
    let expected = [0, 1, 3, 16];
    for (policy, expected) in FencePolicy::ALL.into_iter().zip(expected) {
        let window = TestWindow::new(16, BLANK);
        let config = WindowConfig::blank(BLANK, 0).with_fences(policy);
        let mut writer = Writer::new(window.clone(), window.clone(), config);
        for bytes in [56, 300, 630] {
            assert_eq!(writer.try_send(&vec![1; bytes]), Ok(Sent::Sent));
        }
        assert_eq!(writer.position(), Position(16));
        assert_eq!(window.fences(), expected, "{policy}");
    }
}

#[test]
fn a_wrap_inside_a_message_is_fenced_before_the_first_line() -> Result<(), Box<dyn std::error::Error>> {
    let window = TestWindow::new(8, BLANK);
    let config = WindowConfig::blank(BLANK, 0).with_fences(FencePolicy::PerWrap);
    let mut writer = Writer::new(window.clone(), window.clone(), config);
    let mut receiver = Receiver::new(window.clone(), window.clone(), config);
    let _ = writer.try_send(&[1; 300])?;
    drop(receiver.poll()?);
    assert!(receiver.poll()?.is_none());
    assert_eq!(window.fences(), 0);
    let _ = writer.try_send(&[2; 300])?;
    assert_eq!(window.fences(), 1);
    let mut out = Vec::new();
    receiver.poll()?.expect("a message across the wrap").copy_to(&mut out);
    assert_eq!(out, [2; 300]);
    Ok(())
}
