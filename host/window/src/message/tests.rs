use crate::error::ReceiveError;
use crate::writer::tests::{BLANK, pair};
use crate::{Position, Sent};

#[test]
fn a_message_is_freed_when_its_handle_is_dropped() -> Result<(), ReceiveError> {
    let (window, mut writer, mut receiver) = pair(8);
    assert_eq!(writer.try_send(&[1; 100]), Ok(Sent::Sent));
    let message = receiver.poll()?.expect("a message");
    assert_eq!((message.len(), message.is_empty()), (100, false));
    assert_eq!(window.arrived_words(), 16);
    drop(message);
    assert_eq!((window.arrived_words(), receiver.next_start()), (0, Position(2)));
    Ok(())
}

#[test]
fn the_message_of_a_forgotten_handle_is_given_again() -> Result<(), ReceiveError> {
    let (window, mut writer, mut receiver) = pair(8);
    for length in [3, 100] {
        assert_eq!(writer.try_send(&vec![1; length]), Ok(Sent::Sent));
        for _ in 0..3 {
            core::mem::forget(receiver.poll()?);
        }
        assert_eq!(receiver.poll()?.expect("the same message").len(), length);
        assert_eq!(window.arrived_words(), 0);
        assert!(receiver.poll()?.is_none());
    }
    let mut batch = writer.batch(100).expect("credits are good").expect("an empty window");
    assert_eq!(batch.push(b"one"), Ok(Sent::Sent));
    assert_eq!(batch.push(b"second"), Ok(Sent::Sent));
    batch.send();
    core::mem::forget(receiver.poll()?);
    assert_eq!(receiver.poll()?.expect("the next record").len(), 6);
    assert_eq!(window.arrived_words(), 0);
    Ok(())
}

#[test]
fn copying_out_begins_at_any_byte() -> Result<(), ReceiveError> {
    let (_, mut writer, mut receiver) = pair(64);
    // One line, several, escaped ones, and a record; the last two handed out singly and in bulk.
    for length in [20, 56, 57, 200] {
        let mut payload: Vec<u8> = (1..=length).map(|i| i as u8).collect();
        for is_escaped in [false, true] {
            if is_escaped {
                payload[8..16].copy_from_slice(&BLANK.to_le_bytes());
            }
            for first in (0..length + 2).step_by(if cfg!(miri) { 9 } else { 1 }) {
                let expected = payload.get(first..).unwrap_or(&[]);
                let check = |copy: &mut dyn FnMut(&mut [u8]) -> usize| {
                    let mut out = [0xee; 210];
                    assert_eq!(copy(&mut out), expected.len());
                    assert_eq!(&out[..expected.len()], expected);
                    assert_eq!(out[expected.len()], 0xee);
                    let mut short = [0; 3];
                    let bytes = copy(&mut short);
                    assert_eq!(short[..bytes], expected[..expected.len().min(3)]);
                };
                assert_eq!(writer.try_send(&payload), Ok(Sent::Sent));
                let mut message = receiver.poll()?.expect("it was sent");
                check(&mut |out| message.copy_out_at(first, out));
                drop(message);
                let mut batch = writer.batch(1000).expect("credits are good").expect("an empty window");
                assert_eq!(batch.push(&payload), Ok(Sent::Sent));
                batch.send();
                (0..8).for_each(|_| assert_eq!(writer.try_send(&payload), Ok(Sent::Sent)));
                let given =
                    receiver.drain(9, |mut message| check(&mut |out| message.copy_out_at(first, out)))?;
                assert_eq!(given, 9);
                assert!(receiver.poll()?.is_none());
            }
        }
    }
    Ok(())
}

#[test]
fn copying_out_takes_what_fits() -> Result<(), ReceiveError> {
    let (_, mut writer, mut receiver) = pair(8);
    let payload: Vec<u8> = (0..250).map(|i| i as u8).collect();
    assert_eq!(writer.try_send(&payload), Ok(Sent::Sent));
    let mut message = receiver.poll()?.expect("a message");
    for room in (0..300).step_by(if cfg!(miri) { 13 } else { 1 }) {
        let mut out = vec![0xee; room];
        let copied = message.copy_out(&mut out);
        assert_eq!(copied, room.min(250));
        assert_eq!(out[..copied], payload[..copied]);
        assert!(out[copied..].iter().all(|byte| *byte == 0xee));
    }
    assert_eq!(message.word(31), 0xf9f8, "two bytes and zeros");
    assert_eq!((message.word(32), message.word(usize::MAX)), (0, 0));
    Ok(())
}
