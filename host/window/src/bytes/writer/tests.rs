use std::time::Instant;

use beeline_wait::{Awake, WaitPolicy, Waiter};

use super::*;
use crate::bytes::reader::tests::stream;
use crate::error::CreditError;
use crate::{ByteRead, Position};

#[test]
fn small_writes_share_a_message_only_where_the_caller_asks() {
    let (_, mut writer, mut reader) = stream(64);
    for _ in 0..10 {
        assert_eq!(writer.write(b"0123456789"), Ok(10));
    }
    assert_eq!((writer.position(), reader.queued_bytes()), (Position(10), 100));
    for _ in 0..10 {
        assert_eq!(writer.write_more(b"0123456789"), Ok(10));
    }
    assert_eq!((writer.position(), reader.queued_bytes()), (Position(10), 100), "kept back");
    assert_eq!(writer.unacknowledged_bytes(), Ok(200));
    writer.flush();
    assert_eq!((writer.position(), reader.queued_bytes()), (Position(12), 200), "two lines for ten writes");
    assert_eq!((writer.write_more(b"abc"), writer.write(b"def")), (Ok(3), Ok(3)));
    assert_eq!((writer.position(), reader.queued_bytes()), (Position(13), 206), "the write took both along");
    assert_eq!(writer.write_vectored(&[&b"gh"[..], b"ij", b""]), Ok(4));
    assert_eq!((writer.position(), reader.queued_bytes()), (Position(14), 210));
}

#[test]
fn write_takes_what_there_is_room_for_and_the_end_has_room_always() {
    let (_, mut writer, mut reader) = stream(64);
    // Three messages of a quarter of the window, and all but one line of the last quarter.
    let room_bytes = 3 * (16 * 64 - 8) + (15 * 64 - 8);
    assert_eq!(writer.room_bytes(), Ok(room_bytes));
    assert_eq!(writer.write(&[1; 10_000]), Ok(room_bytes));
    assert_eq!((writer.write(&[1]), writer.write_more(&[1]), writer.room_bytes()), (Ok(0), Ok(0), Ok(0)));
    assert_eq!(writer.shut_down(), Ok(Sent::Sent));
    let mut out = [0; 10_000];
    assert_eq!(reader.read(&mut out), Ok(ByteRead::Bytes(room_bytes)));
    assert_eq!(reader.read(&mut out), Ok(ByteRead::End));
    assert_eq!(writer.write(&[1]), Err(ByteWriteError::Shut));
}

#[test]
#[cfg_attr(miri, ignore = "thousands of words, of which Miri learns nothing that fewer do not show")]
fn write_of_sixteen_kibibytes_is_one_message() {
    let (_, mut writer, mut reader) = stream(2048);
    assert_eq!(writer.write(&[7; 16 << 10]), Ok(16 << 10));
    assert_eq!(writer.position(), Position(u64::from(MESSAGE_LINES)));
    assert_eq!(reader.queued_bytes(), 16 << 10);
    assert_eq!(writer.write(&[7; (16 << 10) + 57]), Ok((16 << 10) + 57));
    assert_eq!(
        writer.position(),
        Position(2 * u64::from(MESSAGE_LINES) + 1),
        "56 bytes more fill its last line"
    );
}

#[test]
fn room_of_an_open_message_is_counted() {
    let (_, mut writer, _reader) = stream(64);
    assert_eq!(writer.write_more(&[1; 100]), Ok(100));
    let room_bytes = writer.room_bytes().expect("an honest receiver");
    assert_eq!(room_bytes, 3 * (16 * 64 - 8) + (15 * 64 - 8) - 100);
    assert_eq!(writer.write(&[1; 10_000]), Ok(room_bytes));
}

#[test]
fn dropped_writer_sends_what_it_kept_and_ends_the_stream() {
    let (_, mut writer, mut reader) = stream(8);
    assert_eq!(writer.write_more(b"kept"), Ok(4));
    assert_eq!(reader.queued_bytes(), 0);
    drop(writer);
    let mut out = [0; 9];
    assert_eq!(reader.read(&mut out), Ok(ByteRead::Bytes(4)));
    assert_eq!((&out[..4], reader.read(&mut [0])), (&b"kept"[..], Ok(ByteRead::End)));
}

#[test]
fn stream_goes_on_behind_messages_that_were_sent_before() {
    let (window, mut writer, receiver) = crate::writer::tests::pair(8);
    let mut receiver = receiver.with_coalescing(1);
    for _ in 0..8 {
        assert_eq!(writer.try_send(b"before"), Ok(Sent::Sent));
    }
    let mut writer = ByteWriter::new(writer);
    assert_eq!((writer.shut_down(), writer.write(b"x")), (Ok(Sent::Full), Ok(0)), "no line is free");
    assert!(receiver.drain(3, |_| ()).is_ok_and(|taken| taken == 3));
    assert_eq!((writer.write(b"after"), writer.unacknowledged_bytes()), (Ok(5), Ok(5)));
    assert!(receiver.drain(5, |_| ()).is_ok_and(|taken| taken == 5));
    assert_eq!((window.published(), writer.unacknowledged_bytes()), (8, Ok(5)));
    let mut reader = crate::ByteReader::new(receiver);
    assert_eq!(reader.read(&mut [0; 9]), Ok(ByteRead::Bytes(5)));
    assert_eq!(writer.unacknowledged_bytes(), Ok(0));
}

#[test]
fn wild_credits_end_a_stream_and_every_count() {
    let (window, mut writer, _reader) = stream(8);
    assert_eq!((writer.write(&[1; 50]), writer.write_more(&[1; 9])), (Ok(50), Ok(9)));
    window.forge_credits(3);
    let error = SendError::Credits(CreditError::Ahead { found: 3, sent: 1 });
    assert_eq!(writer.unacknowledged_bytes(), Err(error));
    assert_eq!(writer.room_bytes(), Err(error.into()));
    assert_eq!(writer.write(&[1; 9]), Ok(9), "the open message had its room");
    assert_eq!(writer.write(&[1; 9]), Err(error.into()));
    assert_eq!(writer.shut_down(), Err(error));
}

/// Waits for nobody: looks a few times.
const LOOK: WaitPolicy = WaitPolicy::new().spins(4).yields(0).sleep(None);

#[test]
fn waits_end_when_all_is_moved_or_the_time_is_over() {
    let past = Some(Instant::now());
    let (_, mut writer, mut reader) = stream(4);
    let mut out = [0; 300];
    assert_eq!(reader.read_wait(&mut out, &mut Waiter::new(&LOOK, &mut Awake, past)), Ok(ByteRead::Nothing));
    assert_eq!(writer.write_all_wait(&[1; 300], &mut Waiter::new(&LOOK, &mut Awake, past)), Ok(168));
    assert_eq!(writer.write_wait(&[1; 300], &mut Waiter::new(&LOOK, &mut Awake, past)), Ok(0));
    assert_eq!(writer.acknowledged_wait(&mut Waiter::new(&LOOK, &mut Awake, past)), Ok(false));
    let mut awake = Awake;
    let mut waiter = Waiter::new(&LOOK, &mut awake, past);
    assert_eq!(reader.read_full_wait(&mut out[..160], &mut waiter), Ok(ByteRead::Bytes(160)));
    assert_eq!(reader.read_full_wait(&mut out[160..], &mut waiter), Ok(ByteRead::Bytes(8)));
    assert_eq!(writer.acknowledged_wait(&mut Waiter::new(&LOOK, &mut Awake, past)), Ok(true));
    assert_eq!(writer.shut_down(), Ok(Sent::Sent));
    assert_eq!(reader.read_full_wait(&mut out, &mut waiter), Ok(ByteRead::End));
}

/// A peer that is known to be gone.
struct Gone;

impl beeline_contract_memory::Wait for Gone {
    fn wait<T, E>(&mut self, mut look: impl FnMut(bool) -> Result<Option<T>, E>) -> Result<Option<T>, E> {
        look(true)
    }
}

#[test]
fn waits_for_a_peer_that_is_gone_are_errors_once_nothing_is_left() {
    let (window, mut writer, mut reader) = stream(4);
    assert_eq!(writer.write_all_wait(&[1; 300], &mut Gone), Ok(168));
    assert_eq!(
        writer.write_all_wait(&[1; 300], &mut Gone),
        Err(ByteWriteError::Send(SendError::ReceiverGone))
    );
    assert!(writer.acknowledged_wait(&mut Gone).is_err());
    window.kill_after(0);
    drop(writer);
    assert_eq!(reader.read_full_wait(&mut [0; 300], &mut Gone), Ok(ByteRead::Bytes(168)));
    assert_eq!(reader.read_full_wait(&mut [0; 300], &mut Gone), Err(crate::ReceiveError::Gone));
}

#[test]
#[should_panic(expected = "a window of two lines")]
fn window_of_one_line_is_no_stream() {
    let (_, writer, _) = crate::writer::tests::pair(1);
    drop(ByteWriter::new(writer));
}
