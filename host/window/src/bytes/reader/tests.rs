use super::*;
use crate::bytes::ByteWriter;
use crate::test_memory::TestWindow;
use crate::writer::tests::{BLANK, pair};
use crate::{ReceiveError, Sent, WindowConfig, Writer};

type TestReader = ByteReader<TestWindow, TestWindow>;
type TestWriter = ByteWriter<TestWindow, TestWindow>;

pub(crate) fn stream(lines: u32) -> (TestWindow, TestWriter, TestReader) {
    let (window, writer, receiver) = pair(lines);
    (window, ByteWriter::new(writer), ByteReader::new(receiver.with_coalescing(1)))
}

#[test]
fn lines_of_a_read_prefix_are_freed_and_credited_before_the_message_is_read() -> Result<(), ReceiveError> {
    for escaped in [false, true] {
        let (window, mut writer, mut reader) = stream(64);
        let mut payload = [7; 500];
        if escaped {
            payload[0..8].copy_from_slice(&BLANK.to_le_bytes());
            payload[400..408].copy_from_slice(&BLANK.to_le_bytes());
        }
        assert_eq!(writer.write(&payload), Ok(500));
        let (mut out, mut at) = ([0; 500], 0);
        // 56 bytes share the first line with the header, and 64 are in each of the others.
        for (bytes, freed_lines) in [(55, 0), (1, 1), (63, 1), (1, 2), (130, 4), (249, 7), (1, 8)] {
            assert_eq!(reader.read(&mut out[at..at + bytes])?, ByteRead::Bytes(bytes));
            at += bytes;
            assert_eq!(window.published(), freed_lines, "{at} bytes were read");
            assert_eq!(writer.unacknowledged_bytes(), Ok((8 + 500) - (freed_lines * 64).clamp(8, 508)));
        }
        assert_eq!((&out, window.arrived_words()), (&payload, 0));
        assert_eq!(reader.read(&mut out)?, ByteRead::Nothing);
    }
    Ok(())
}

#[test]
fn end_comes_after_every_byte_and_stays() -> Result<(), ReceiveError> {
    let (window, mut writer, mut reader) = stream(8);
    assert_eq!(writer.write(b"last words"), Ok(10));
    assert_eq!((writer.shut_down(), writer.shut_down()), (Ok(Sent::Sent), Ok(Sent::Sent)));
    assert_eq!((reader.queued_bytes(), reader.is_at_end()), (10, false));
    let mut out = [0; 20];
    assert_eq!(reader.peek(10, &mut out)?, ByteRead::End);
    assert_eq!(reader.read(&mut out)?, ByteRead::Bytes(10));
    for _ in 0..3 {
        assert_eq!(reader.read(&mut out)?, ByteRead::End);
        assert_eq!(reader.read(&mut [])?, ByteRead::Bytes(0));
        assert!(reader.is_at_end() && reader.is_readable());
    }
    reader.sender_gone();
    assert_eq!(reader.read(&mut out)?, ByteRead::End, "an end is not a loss");
    assert_eq!((window.arrived_words(), writer.unacknowledged_bytes()), (0, Ok(0)));
    Ok(())
}

#[test]
fn sender_that_is_gone_without_an_end_is_an_error_after_every_byte() -> Result<(), ReceiveError> {
    let (window, mut writer, mut reader) = stream(8);
    assert_eq!(writer.write(b"abc"), Ok(3));
    window.kill_after(0);
    drop(writer);
    reader.sender_gone();
    let mut out = [0; 2];
    assert!(reader.is_readable());
    let mut slices = [&mut out[..]];
    assert_eq!(reader.read_vectored(&mut slices)?, ByteRead::Bytes(2));
    assert_eq!(reader.queued_bytes(), 1);
    assert_eq!(reader.read(&mut [0; 9])?, ByteRead::Bytes(1), "the error waits for the next read");
    assert!(reader.is_readable(), "the loss is to be read");
    assert_eq!(reader.queued_bytes(), 0);
    assert_eq!(reader.peek(0, &mut [0]), Err(ReceiveError::Gone));
    assert_eq!(reader.read(&mut [0]), Err(ReceiveError::Gone));
    Ok(())
}

#[test]
fn torn_message_is_said_by_one_read() -> Result<(), ReceiveError> {
    let (window, mut writer, mut reader) = stream(8);
    assert_eq!(writer.write(b"whole"), Ok(5));
    window.kill_after(12);
    assert_eq!(writer.write(b"torn"), Ok(4));
    reader.sender_gone();
    assert_eq!(reader.read(&mut [0; 100])?, ByteRead::Bytes(5));
    assert!(reader.is_readable());
    assert!(matches!(reader.peek(0, &mut [0]), Err(ReceiveError::Torn(_))));
    assert!(matches!(reader.read(&mut [0]), Err(ReceiveError::Torn(_))));
    assert_eq!(reader.read(&mut [0]), Err(ReceiveError::Gone));
    Ok(())
}

#[test]
fn counting_looks_at_each_line_once() {
    let (window, mut writer, mut reader) = stream(64);
    let mut expected = 0;
    for bytes in [10, 100, 1, 300] {
        assert_eq!(writer.write(&vec![1; bytes]), Ok(bytes));
        expected += bytes as u64;
        assert_eq!(reader.queued_bytes(), expected);
    }
    // What was counted and is not in hand is not looked at again: were it, this would end the count.
    window.forge(1, 0, u64::MAX);
    assert_eq!(reader.queued_bytes(), expected);
}

#[test]
fn counted_batch_is_walked_once_and_not_for_each_of_its_records() -> Result<(), ReceiveError> {
    const RECORDS: u64 = 50;
    let (window, mut writer, receiver) = pair(64);
    let mut reader = ByteReader::new(receiver);
    assert_eq!(writer.try_send(b"first"), Ok(Sent::Sent));
    let mut batch = writer.batch(1000).ok().flatten().expect("the window is empty");
    (0..RECORDS).for_each(|_| assert_eq!(batch.push(b"record"), Ok(Sent::Sent)));
    batch.send();
    assert_eq!(reader.queued_bytes(), 5 + 6 * RECORDS);
    let before = window.words_loaded();
    assert_eq!(reader.read(&mut [0; 1000])?, ByteRead::Bytes(5 + 6 * RECORDS as usize));
    let loaded = window.words_loaded() - before;
    assert!(loaded < 10 * RECORDS, "{loaded} words of {RECORDS} records were loaded");
    Ok(())
}

/// Credits of a sender that stores the next batch of empty records as soon as it learns of free lines, and at the end of them a
/// record that is not empty.
struct Refilling {
    window: TestWindow,
    writer: Writer<TestWindow, TestWindow>,
    empty_records: u32,
}

impl Refilling {
    /// A batch of one line.
    fn refill(&mut self) {
        let Ok(Some(mut batch)) = self.writer.batch(56) else { return };
        for _ in 0..7 {
            if self.empty_records == 0 {
                assert_eq!(batch.push(b"x"), Ok(Sent::Sent));
                self.empty_records = u32::MAX;
                break;
            } else if self.empty_records < u32::MAX {
                assert_eq!(batch.push(b""), Ok(Sent::Sent));
                self.empty_records -= 1;
            }
        }
        batch.send();
    }
}

impl CreditSink for Refilling {
    fn publish(&mut self, freed_lines: u64) {
        self.window.publish(freed_lines);
        self.refill();
    }
}

#[test]
fn record_behind_any_number_of_empty_ones_is_read() -> Result<(), ReceiveError> {
    for empty_records in 0..100 {
        let (window, writer, _) = pair(8);
        let mut sink = Refilling { window: window.clone(), writer, empty_records };
        sink.refill();
        let receiver = Receiver::new(window, sink, WindowConfig::blank(BLANK, 3)).with_coalescing(1);
        let mut reader = ByteReader::new(receiver);
        let mut out = [0; 9];
        let found = match reader.read(&mut out)? {
            ByteRead::Nothing => reader.read(&mut out)?,
            found => found,
        };
        assert_eq!(found, ByteRead::Bytes(1), "behind {empty_records} empty records");
    }
    Ok(())
}

#[test]
fn observed_window_is_a_stream_too() -> Result<(), ReceiveError> {
    let window = TestWindow::new(8, BLANK);
    window.hold();
    let config = WindowConfig::observed(0);
    let mut writer = ByteWriter::new(Writer::new(window.clone(), window.clone(), config));
    let mut reader = ByteReader::new(Receiver::observed(8, window_sink(&window), config));
    let (mut sent, mut found, mut out) = (Vec::<u8>::new(), Vec::<u8>::new(), [0; 37]);
    while sent.len() < 3000 {
        let bytes: Vec<u8> = (0..150).map(|i| (sent.len() + i) as u8).collect();
        let taken = writer.write(&bytes).expect("an honest receiver");
        sent.extend(&bytes[..taken]);
        while let Some(store) = window.take(window.held() / 2) {
            let offset = u64::from(store.line) * 64 + u64::from(store.word) * 8;
            reader.write_arrived(offset, &store.value.to_le_bytes(), None)?;
        }
        while let ByteRead::Bytes(bytes) = reader.read(&mut out)? {
            found.extend(&out[..bytes]);
        }
    }
    assert_eq!(sent, found);
    Ok(())
}

fn window_sink(window: &TestWindow) -> crate::test_memory::ObservedCredits {
    crate::test_memory::ObservedCredits(window.clone())
}

#[test]
fn std_reads_and_writes_are_those_of_the_stream() -> std::io::Result<()> {
    use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
    let (_, mut writer, mut reader) = stream(4);
    let mut out = [0; 4];
    assert_eq!(Read::read(&mut reader, &mut out).map_err(|e| e.kind()), Err(ErrorKind::WouldBlock));
    assert_eq!(
        Write::write_vectored(&mut writer, &[IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cdef")])?,
        6
    );
    let (mut first, mut second) = ([0; 1], [0; 3]);
    let slices = &mut [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
    assert_eq!(Read::read_vectored(&mut reader, slices)?, 4);
    assert_eq!((&first, &second), (b"a", b"bcd"));
    assert_eq!(Write::write(&mut writer, &[0; 1000])?, 2 * 56, "a line is kept, and a message is a line");
    assert_eq!(Write::write(&mut writer, &[0]).map_err(|e| e.kind()), Err(ErrorKind::WouldBlock));
    Write::flush(&mut writer)?;
    assert_eq!(writer.shut_down(), Ok(Sent::Sent));
    assert_eq!(Write::write(&mut writer, &[0]).map_err(|e| e.kind()), Err(ErrorKind::BrokenPipe));
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest)?;
    assert_eq!((rest.len(), &rest[..2]), (2 + 112, &b"ef"[..]));
    Ok(())
}
