//! The two ends of a lap window on one thread, where every step can be chosen. Any order: `tests/properties/laps.rs`.

use beeline_spec::Header;
use beeline_spec::header::HeaderError;
use beeline_spec::lap::{LapHeader, payload_bytes_of, stored};

use super::test_memory::{LapMemory, Replicated};
use super::{LapReceiver, LapSendError, LapWriter, ReaderId};
use crate::error::{ReceiveError, Torn};
use crate::{Position, Sent};

type Writer = LapWriter<LapMemory, Replicated>;
type Receiver = LapReceiver<Replicated, Replicated>;

const EPOCH: u8 = 3;

fn join(memory: &LapMemory, writer: &mut Writer) -> (ReaderId, Replicated, Receiver) {
    let replica = memory.replica(writer.position().0);
    let (reader, start) = writer.join(replica.clone());
    (reader, replica.clone(), LapReceiver::new(replica.clone(), replica, EPOCH, start))
}

fn pair(lines: u32) -> (LapMemory, Writer, Replicated, Receiver) {
    let memory = LapMemory::new(lines);
    let mut writer = LapWriter::new(memory.clone(), EPOCH);
    let (_, replica, receiver) = join(&memory, &mut writer);
    (memory, writer, replica, receiver)
}

fn taken(receiver: &mut Receiver) -> Option<Vec<u8>> {
    receiver.poll().unwrap().map(|mut message| {
        let mut out = Vec::new();
        message.copy_to(&mut out);
        out
    })
}

/// Reads a message in every way there is.
fn check(receiver: &mut Receiver, expected: &[u8]) {
    let mut message = receiver.poll().unwrap().expect("it was sent");
    assert_eq!((message.len(), message.is_empty()), (expected.len(), expected.is_empty()));
    let mut out = vec![0xee; expected.len() + 3];
    assert_eq!(message.copy_out(&mut out), expected.len());
    assert_eq!((&out[..expected.len()], &out[expected.len()..]), (expected, &[0xee; 3][..]));
    let half = expected.len() / 2;
    assert_eq!((message.copy_out(&mut out[..half]), &out[..half]), (half, &expected[..half]));
    let mut words = Vec::new();
    message.for_each_word(|word| words.push(word));
    assert_eq!(words.len(), expected.len().div_ceil(8));
    for (index, bytes) in expected.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        assert_eq!((words[index], message.word(index)), (word, word), "word {index} of {}", expected.len());
    }
    assert_eq!((message.word(words.len()), message.word(usize::MAX)), (0, 0));
}

#[test]
fn every_length_and_pattern_comes_out_as_it_was_sent_lap_after_lap() {
    let (memory, mut writer, _, mut receiver) = pair(32);
    let (_, _, mut other) = join(&memory, &mut writer);
    // Miri is slow: some of each.
    let stride = if cfg!(miri) { 577 } else { 1 };
    for length in (0..=payload_bytes_of(19) as usize).step_by(stride) {
        for pattern in [0x00u8, 0xff, 0x80, 0x7f, 0xa5] {
            let payload: Vec<u8> = match pattern {
                // Every top bit its neighbours' opposite, and bytes that are all different.
                0xa5 => (0..length).map(|i| (i as u8).wrapping_mul(29) ^ ((i / 8) as u8 & 1) << 7).collect(),
                _ => vec![pattern; length],
            };
            assert_eq!(writer.try_send(&payload), Ok(Sent::Sent), "{length} bytes");
            check(&mut receiver, &payload);
            check(&mut other, &payload);
            assert!(taken(&mut receiver).is_none() && taken(&mut other).is_none());
        }
    }
    assert!(cfg!(miri) || writer.position().0 > 1000 * 32, "many laps: {}", writer.position());
}

#[test]
fn longest_message_fits_and_a_longer_one_is_refused() {
    for lines in [1u32, 2, 8, 16] {
        let (_, mut writer, _, mut receiver) = pair(lines);
        let longest = writer.max_payload_bytes();
        for lap in 0..3u8 {
            let payload = vec![0xf0 + lap; longest];
            assert_eq!(writer.try_send(&payload), Ok(Sent::Sent));
            check(&mut receiver, &payload);
            assert!(taken(&mut receiver).is_none());
        }
        let too_long = LapSendError::TooLong { bytes: longest + 1, max_bytes: longest };
        assert_eq!(writer.try_send(&vec![1; longest + 1]), Err(too_long));
        assert_eq!(
            (writer.position().0, receiver.next_start().0),
            (3 * u64::from(lines), 3 * u64::from(lines))
        );
    }
}

#[test]
fn window_is_full_until_the_slowest_receiver_has_freed() {
    let (memory, mut writer, _, mut fast) = pair(4);
    let (slow_id, _, mut slow) = join(&memory, &mut writer);
    for byte in 0..4u8 {
        assert_eq!(writer.try_send(&[byte; 56]), Ok(Sent::Sent));
        assert_eq!(taken(&mut fast), Some(vec![byte; 56]));
    }
    assert_eq!(taken(&mut fast), None);
    assert_eq!((writer.try_send(&[4]), writer.free_lines()), (Ok(Sent::Full), 0));
    assert_eq!(writer.slowest(), Some((slow_id, Position(0))));
    let held = slow.poll().unwrap().unwrap();
    assert_eq!(writer.try_send(&[4]), Ok(Sent::Full), "a message in hand is not free");
    drop(held);
    assert_eq!((writer.try_send(&[4]), writer.try_send(&[5])), (Ok(Sent::Sent), Ok(Sent::Full)));
    assert_eq!(taken(&mut fast), Some(vec![4]));
    for byte in 1..4u8 {
        assert_eq!(taken(&mut slow), Some(vec![byte; 56]));
    }
    assert_eq!((taken(&mut slow), taken(&mut slow)), (Some(vec![4]), None));
    assert_eq!((taken(&mut fast), writer.refresh()), (None, Ok(4)));
}

#[test]
fn removed_receiver_holds_the_others_no_longer() {
    let (memory, mut writer, _, mut alive) = pair(4);
    let (dead, replica, dead_receiver) = join(&memory, &mut writer);
    for byte in 0..4u8 {
        assert_eq!(writer.try_send(&[byte]), Ok(Sent::Sent));
        assert_eq!(taken(&mut alive), Some(vec![byte]));
    }
    assert_eq!(taken(&mut alive), None);
    assert_eq!(writer.try_send(&[4]), Ok(Sent::Full));
    drop(dead_receiver);
    replica.remove();
    assert!(writer.remove(dead).is_some() && writer.remove(dead).is_none());
    for byte in 4..20u8 {
        assert_eq!(writer.try_send(&[byte]), Ok(Sent::Sent));
        assert_eq!((taken(&mut alive), taken(&mut alive)), (Some(vec![byte]), None));
    }
}

#[test]
fn receiver_that_joins_late_gets_what_is_sent_from_then_on() {
    // Miri is slow: before the first lap is over, in the second, and in the third.
    for rounds_before in (0..20u8).step_by(if cfg!(miri) { 7 } else { 1 }) {
        let (memory, mut writer, replica, mut first) = pair(4);
        // Nothing that is sent before has arrived anywhere but at the first receiver.
        memory.hold();
        for round in 0..rounds_before {
            assert_eq!(writer.try_send(&[round; 60]), Ok(Sent::Sent));
            while replica.held() > 0 {
                replica.release(0);
            }
            assert_eq!((taken(&mut first), taken(&mut first)), (Some(vec![round; 60]), None));
        }
        let (_, late, mut second) = join(&memory, &mut writer);
        assert_eq!(taken(&mut second), None, "{rounds_before} rounds were sent before");
        for round in 0..5 {
            assert_eq!(writer.try_send(&[0x80 + round; 60]), Ok(Sent::Sent));
            for (replica, receiver) in [(&late, &mut second), (&replica, &mut first)] {
                while replica.held() > 0 {
                    assert_eq!(taken(receiver), None);
                    replica.release(0);
                }
                assert_eq!((taken(receiver), taken(receiver)), (Some(vec![0x80 + round; 60]), None));
            }
        }
    }
}

#[test]
fn without_receivers_nothing_is_sent() {
    let memory = LapMemory::new(4);
    let mut writer: Writer = LapWriter::new(memory.clone(), EPOCH);
    for payload in [vec![1], vec![1; 100]] {
        assert_eq!(writer.try_send(&payload), Err(LapSendError::NoReader));
    }
    let (reader, replica, mut receiver) = join(&memory, &mut writer);
    assert_eq!((writer.try_send(&[2]), taken(&mut receiver)), (Ok(Sent::Sent), Some(vec![2])));
    replica.remove();
    assert!(writer.remove(reader).is_some());
    assert_eq!((writer.try_send(&[1]), writer.slowest()), (Err(LapSendError::NoReader), None));
}

#[test]
fn counts_that_cannot_be_name_their_receiver_until_it_is_removed() {
    for (before, forged) in [(2, 1), (0, 5), (2, u64::MAX)] {
        let (memory, mut writer, _, mut honest) = pair(4);
        let (hostile, replica, _) = join(&memory, &mut writer);
        for byte in 0..4u8 {
            assert_eq!(writer.try_send(&[byte]), Ok(Sent::Sent));
            assert_eq!(taken(&mut honest), Some(vec![byte]));
        }
        assert_eq!(taken(&mut honest), None);
        replica.forge_credits(before);
        assert_eq!(writer.refresh(), Ok(before as u32));
        replica.forge_credits(forged);
        let error = if forged < before {
            LapSendError::Backwards { reader: hostile, found: forged, before }
        } else {
            LapSendError::Ahead { reader: hostile, found: forged, sent: 4 }
        };
        assert_eq!(writer.refresh(), Err(error));
        replica.forge_credits(before);
        assert_eq!(writer.try_send(&[9]), Err(error), "it stays so");
        assert_eq!(writer.free_lines(), 0);
        replica.remove();
        assert!(writer.remove(hostile).is_some());
        assert_eq!((writer.try_send(&[9]), taken(&mut honest)), (Ok(Sent::Sent), Some(vec![9])));
    }
}

#[test]
fn message_is_given_when_its_last_word_arrives_whichever_that_is() {
    let (memory, mut writer, replica, mut receiver) = pair(16);
    memory.hold();
    for length in [0, 8, 56, 57, 130, 600] {
        let payload = vec![0xff; length];
        assert_eq!(writer.try_send(&payload), Ok(Sent::Sent));
        // From the last store to the first, then the other way round in the next lap.
        while replica.held() > 1 {
            replica.release(if length % 2 == 0 { replica.held() - 1 } else { 0 });
            assert_eq!(taken(&mut receiver), None);
        }
        replica.release(0);
        check(&mut receiver, &payload);
        assert_eq!(taken(&mut receiver), None);
    }
}

#[test]
fn forgotten_handle_is_given_again() {
    let (_, mut writer, replica, mut receiver) = pair(16);
    for payload in [vec![7; 20], vec![0xff; 300]] {
        assert_eq!(writer.try_send(&payload), Ok(Sent::Sent));
        let freed = replica.published();
        std::mem::forget(receiver.poll().unwrap().unwrap());
        assert_eq!(replica.published(), freed);
        check(&mut receiver, &payload);
        assert_eq!(taken(&mut receiver), None);
    }
}

#[test]
fn drain_gives_as_many_as_it_may_and_the_error_after_them() {
    let (memory, mut writer, _, mut receiver) = pair(16);
    for byte in 0..5u8 {
        assert_eq!(writer.try_send(&[byte]), Ok(Sent::Sent));
    }
    memory.forge(5, 0, stored(7, 1 << 63));
    let mut all = Vec::new();
    assert_eq!(receiver.drain(2, |message| all.push(message.word(0))), Ok(2));
    assert_eq!(receiver.drain(100, |message| all.push(message.word(0))), Ok(3));
    assert_eq!(all, [0, 1, 2, 3, 4]);
    for _ in 0..2 {
        assert!(matches!(receiver.drain(9, |_| ()), Err(ReceiveError::Header { .. })));
    }
}

#[test]
fn sender_s_death_is_told_apart_from_its_silence() {
    let (memory, mut writer, replica, mut receiver) = pair(16);
    assert_eq!(writer.try_send(&[1]), Ok(Sent::Sent));
    memory.hold();
    assert_eq!(writer.try_send(&[0x80; 100]), Ok(Sent::Sent));
    assert_eq!(receiver.drain(9, |_| ()), Ok(1));
    (0..3).for_each(|_| replica.release(0));
    assert_eq!(taken(&mut receiver), None);
    receiver.sender_gone();
    let torn = Torn::new(Position(1), 3, Some(14));
    assert_eq!(receiver.poll().unwrap_err(), ReceiveError::Torn(torn));
    for _ in 0..2 {
        assert_eq!(receiver.poll().unwrap_err(), ReceiveError::Gone);
    }
}

#[test]
fn dead_sender_s_whole_messages_come_first_and_torn_is_told_after_a_drain() {
    let (memory, mut writer, replica, mut receiver) = pair(16);
    assert_eq!(writer.try_send(&[1; 90]), Ok(Sent::Sent));
    memory.hold();
    assert_eq!(writer.try_send(&[2; 90]), Ok(Sent::Sent));
    replica.release(9);
    receiver.sender_gone();
    assert_eq!(receiver.drain(9, |message| assert_eq!(message.len(), 90)), Ok(1));
    let torn = Torn::new(Position(2), 1, None);
    assert_eq!(receiver.drain(9, |_| ()), Err(ReceiveError::Torn(torn)));
    assert_eq!(receiver.drain(9, |_| ()), Err(ReceiveError::Gone));
}

#[test]
fn headers_that_no_sender_stores_are_final_errors() {
    let lap = 1 << 63;
    let good = LapHeader { length_bytes: 8, tops: 0, epoch: EPOCH };
    let too_long = LapHeader { length_bytes: payload_bytes_of(8) + 1, ..good };
    for (word, error) in [
        (1 << 40, HeaderError::Reserved(1 << 40 | lap)),
        (0, HeaderError::Kind(0)),
        (Header::new(beeline_spec::Kind::Void, 8, EPOCH).encode(), HeaderError::Kind(2)),
        (LapHeader { epoch: 4, ..good }.encode(), HeaderError::Epoch { found: 4, expected: EPOCH }),
        (too_long.encode(), HeaderError::TooLong { lines: 9, window_lines: 8 }),
    ] {
        let (memory, _, _, mut receiver) = pair(8);
        // The header alone: nothing else needs to have come.
        memory.forge(0, 0, stored(word, lap));
        for _ in 0..2 {
            let position = Position(0);
            assert_eq!(receiver.poll().unwrap_err(), ReceiveError::Header { position, error });
        }
    }
}
