//! Hostile peers: whatever is in the window or in the credit word, the other end gives an error or waits. It does not
//! crash, hang or touch anything outside.

use beeline_spec::{Header, Kind};
use beeline_window::{
    ByteRead, ByteReader, ByteWriteError, ByteWriter, DataBuffer, Observed, ReceiveError, Receiver,
    SendError, Sent, WindowConfig, Writer,
};
use proptest::prelude::*;

use crate::given::Given;
use crate::plan::{NEAR_BLANK, Random};
use crate::test_memory::TestWindow;
use crate::{BLANK, check};

const LINES: u32 = 8;

/// Words that a hostile sender would try: near misses of every structure.
fn hostile_word(random: &mut Random) -> u64 {
    let kind = [Kind::Data, Kind::Void, Kind::Batch][random.below(3)];
    let length_bytes = [0, 1, 8, 9, 56, 57, 120, 503, 504, 505, 1 << 20][random.below(11)];
    match random.below(8) {
        0 => random.next(),
        1 => BLANK,
        2 => random.next() & 0x3f_ffff,
        3 => random.next() & 0xff,
        4 => Header { escape_last: random.below(70) as u32, ..Header::new(kind, length_bytes, 0) }.encode(),
        5 => random.next() & 0xffff,
        _ => Header::new(kind, length_bytes, 0).encode(),
    }
}

/// Reads everything of a message, and past its end.
fn read(mut message: impl Given) {
    assert!(message.len() <= LINES as usize * 64 - 8);
    let words = message.len().div_ceil(8) + 1;
    std::hint::black_box((0..words).fold(0, |sum, i| sum ^ message.word(i)));
    std::hint::black_box(message.copy_out(&mut [0; 600]));
}

/// Reads everything of what a receiver gives, for as long as it gives something, at most `polls` times; every other time
/// in bulk.
fn drain<L, S, A>(receiver: &mut Receiver<L, S, A>, polls: usize) -> Option<ReceiveError>
where
    L: beeline_contract_memory::LoadPort,
    S: beeline_contract_memory::CreditSink,
    A: beeline_window::ArrivalTest,
{
    for number in 0..polls {
        let outcome = if number % 2 == 0 {
            receiver.poll().map(|message| message.into_iter().for_each(read))
        } else {
            receiver.drain(10, |message| read(message)).map(|taken| assert!(taken <= 10))
        };
        if let Err(error) = outcome {
            assert_eq!(receiver.poll().map(|_| ()), Err(error), "an error is final");
            return Some(error);
        }
    }
    None
}

#[test]
fn any_words_in_a_blank_window_are_borne() {
    let errors = std::cell::Cell::new(0);
    check(3000, any::<u64>(), |seed| {
        let mut random = Random(seed);
        let window = TestWindow::new(LINES, BLANK);
        let config = WindowConfig::blank(BLANK, 0);
        let mut receiver = Receiver::new(window.clone(), window.clone(), config);
        for _ in 0..20 {
            for _ in 0..random.below(100) {
                let (line, word) = (random.below(LINES as usize) as u32, random.below(8) as u32);
                window.forge(line, word, hostile_word(&mut random));
            }
            if drain(&mut receiver, 5).is_some() {
                errors.set(errors.get() + 1);
                break;
            }
        }
        Ok(())
    });
    assert!(cfg!(miri) || errors.get() > 1000, "{} of 3000 were found out", errors.get());
}

/// Reads, peeks and counts at random; gives the error that ends it.
fn read_stream(reader: &mut ByteReader<TestWindow, TestWindow>, random: &mut Random) -> Option<ReceiveError> {
    let (mut out, most) = ([0xee; 700], u64::from(LINES) * 64);
    for _ in 0..8 {
        let size = random.below(700);
        match random.below(4) {
            0 => assert!(reader.queued_bytes() <= most),
            1 => {
                let offset = if random.below(9) == 0 { random.next() } else { random.below(600) as u64 };
                if let Ok(ByteRead::Bytes(bytes)) = reader.peek(offset, &mut out[..size]) {
                    assert!(bytes <= size);
                }
            }
            _ => match reader.read(&mut out[..size]) {
                Ok(ByteRead::Bytes(bytes)) => assert!(bytes <= size),
                Ok(ByteRead::Nothing) => {}
                Ok(ByteRead::End) => return None,
                Err(error) => {
                    assert_eq!(reader.read(&mut [0]), Err(error), "an error is final");
                    assert_eq!(reader.peek(0, &mut [0]), Err(error));
                    return Some(error);
                }
            },
        }
        assert!(out[size..].iter().all(|byte| *byte == 0xee), "written outside what was lent");
        out.fill(0xee);
    }
    None
}

#[test]
fn any_words_under_a_stream_are_borne() {
    let errors = std::cell::Cell::new(0);
    check(3000, any::<u64>(), |seed| {
        let mut random = Random(seed);
        let window = TestWindow::new(LINES, BLANK);
        let config = WindowConfig::blank(BLANK, 0);
        let mut reader = ByteReader::new(Receiver::new(window.clone(), window.clone(), config));
        for _ in 0..20 {
            for _ in 0..random.below(100) {
                let (line, word) = (random.below(LINES as usize) as u32, random.below(8) as u32);
                window.forge(line, word, hostile_word(&mut random));
            }
            if read_stream(&mut reader, &mut random).is_some() {
                errors.set(errors.get() + 1);
                break;
            }
        }
        Ok(())
    });
    assert!(cfg!(miri) || errors.get() > 1000, "{} of 3000 were found out", errors.get());
}

#[test]
fn any_credits_under_a_stream_are_borne_and_no_unfreed_line_is_stored() {
    check(1000, any::<u64>(), |seed| {
        let mut random = Random(seed);
        let window = TestWindow::new(LINES, BLANK);
        let mut writer =
            ByteWriter::new(Writer::new(window.clone(), window.clone(), WindowConfig::blank(BLANK, 0)));
        let mut failed = None;
        for _ in 0..50 {
            // Ahead of all that one write may have sent when it looks again: what is plausible then cannot be told from the truth.
            let sent_at_most = writer.position().0 + u64::from(LINES);
            window.forge_credits(match random.below(4) {
                0 => sent_at_most + 1 + random.next() % 1000,
                1 => random.next() | 1 << 32,
                _ => 0,
            });
            let payload = random.payload(NEAR_BLANK, random.clone().below(300));
            let outcome = match random.below(4) {
                0 => writer.write(&payload).map(|_| ()),
                1 => writer.write_more(&payload).map(|_| ()),
                2 => writer.room_bytes().map(|_| ()),
                _ => writer.unacknowledged_bytes().map(|bytes| assert!(bytes <= 512)).map_err(Into::into),
            };
            match outcome {
                Ok(()) => {}
                Err(ByteWriteError::Send(SendError::Credits(error))) => {
                    assert!(failed.is_none_or(|before| before == error), "an error is final");
                    failed = Some(error);
                }
                Err(other) => panic!("{other}"),
            }
            assert!(window.issued_words() <= u64::from(LINES) * 8);
        }
        Ok(())
    });
}

#[test]
fn any_writes_into_an_observed_window_are_borne() {
    check(1000, any::<u64>(), |seed| {
        let mut random = Random(seed);
        let sink = TestWindow::new(LINES, BLANK);
        let mut receiver: Receiver<DataBuffer, Quiet, Observed> =
            Receiver::observed(LINES, Quiet(sink), WindowConfig::observed(0));
        for _ in 0..200 {
            let word = hostile_word(&mut random);
            let bytes: Vec<u8> = word.to_le_bytes().repeat(1 + random.below(9));
            let offset = match random.below(20) {
                0 => random.next(),
                _ => random.below(LINES as usize * 64) as u64 & !7,
            };
            let enables = (random.below(3) == 0).then(|| random.next());
            // Both outcomes are right; what counts is what a poll does afterwards.
            let _ = receiver.write_arrived(offset, &bytes[..bytes.len() - random.below(8)], enables);
            if drain(&mut receiver, 3).is_some() {
                break;
            }
        }
        Ok(())
    });
}

/// Credits that go nowhere: the sender keeps no rule anyway.
struct Quiet(#[allow(dead_code, reason = "kept alive only")] TestWindow);

impl beeline_contract_memory::CreditSink for Quiet {
    fn publish(&mut self, _freed_lines: u64) {}
}

#[test]
fn any_credits_are_borne_and_no_unfreed_line_is_stored() {
    check(1000, any::<u64>(), |seed| {
        let mut random = Random(seed);
        let window = TestWindow::new(LINES, BLANK);
        let mut writer = Writer::new(window.clone(), window.clone(), WindowConfig::blank(BLANK, 0));
        let mut failed = None;
        for _ in 0..50 {
            let sent = writer.position().0;
            // A count that may be believed frees nothing here, so any store past the first lap is caught; except the
            // ones that tell the truth.
            window.forge_credits(match random.below(4) {
                0 => sent + 1 + random.next() % 1000,
                1 => random.next() | 1 << 32,
                _ => 0,
            });
            match writer.try_send(&random.payload(NEAR_BLANK, random.clone().below(300))) {
                Ok(Sent::Sent) => assert!(failed.is_none()),
                Ok(Sent::Full) => assert!(failed.is_none()),
                Err(SendError::Credits(error)) => {
                    assert!(failed.is_none_or(|before| before == error), "an error is final");
                    failed = Some(error);
                }
                Err(other) => panic!("{other}"),
            }
            assert!(window.issued_words() <= u64::from(LINES) * 8);
        }
        Ok(())
    });
}
