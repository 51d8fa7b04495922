//! No allocation for a message, on either side, whatever its kind: counted by an allocator that counts.

#[allow(dead_code, reason = "the other tests use the rest of it")]
#[path = "../src/test_memory.rs"]
mod test_memory;

use beeline_window::{
    ByteRead, ByteReader, ByteWriter, DataBuffer, Observed, Receiver, Sent, WindowConfig, Writer,
};
use test_memory::{ObservedCredits, TestWindow};

const BLANK: u64 = 0x8000_0000_0000_0001;

/// Sends and receives one message of every kind, several laps long.
fn work(writer: &mut Writer<TestWindow, TestWindow>, receiver: &mut Receiver<TestWindow, TestWindow>) {
    let words = [BLANK.to_le_bytes(); 40];
    let escaped = words.as_flattened();
    let mut out = [0; 400];
    for size in [0, 1, 55, 56, 57, 120, 300, 320] {
        assert_eq!(writer.try_send(&escaped[..size]), Ok(Sent::Sent));
        let mut message = receiver.poll().expect("an honest sender").expect("it was sent");
        assert_eq!(message.copy_out(&mut out), size);
        assert_eq!(message.word(0), if size >= 8 { BLANK } else { BLANK & ((1 << (8 * size)) - 1) });
        drop(message);
        assert!(receiver.poll().is_ok_and(|found| found.is_none()));

        let mut reservation = writer.reserve(size).expect("it fits").expect("the window is empty");
        reservation.write(&escaped[..size / 2]).expect("it was reserved");
        reservation.commit();
        drop(writer.reserve(size).expect("it fits").expect("half the window is empty"));
        let mut batch = writer.batch(100).expect("credits are good").expect("some of the window is empty");
        while batch.push(&escaped[..9]) == Ok(Sent::Sent) {}
        batch.send();
        while let Some(mut message) = receiver.poll().expect("an honest sender") {
            message.copy_out(&mut out);
        }
    }
}

#[test]
fn no_message_through_a_blank_window_allocates() {
    let window = TestWindow::new(32, BLANK);
    let config = WindowConfig::blank(BLANK, 0);
    let mut writer = Writer::new(window.clone(), window.clone(), config);
    let mut receiver = Receiver::new(window.clone(), window.clone(), config);
    let counted = allocation_counter::measure(|| {
        for _ in 0..20 {
            work(&mut writer, &mut receiver);
        }
    });
    assert!(writer.position().0 > 20 * 32, "many laps");
    assert_eq!(counted.count_total, 0);
}

#[test]
fn no_message_through_an_observed_window_allocates() {
    let window = TestWindow::new(8, !0);
    let config = WindowConfig::observed(0);
    let mut writer = Writer::new(window.clone(), window.clone(), config);
    let mut receiver: Receiver<DataBuffer, ObservedCredits, Observed> =
        Receiver::observed(8, ObservedCredits(window.clone()), config);
    // The test window keeps held stores in a queue, which has grown to its size after the first message.
    window.hold();
    let mut pass = || {
        assert_eq!(writer.try_send(&[7; 200]), Ok(Sent::Sent));
        while let Some(store) = window.take(0) {
            let offset = u64::from(store.line) * 64 + u64::from(store.word) * 8;
            receiver.write_arrived(offset, &store.value.to_le_bytes(), None).expect("an honest sender");
        }
        assert!(receiver.poll().expect("an honest sender").is_some());
        assert!(receiver.poll().expect("an honest sender").is_none());
    };
    pass();
    let counted = allocation_counter::measure(|| (0..50).for_each(|_| pass()));
    assert_eq!(counted.count_total, 0);
}

#[test]
fn no_byte_of_a_stream_allocates() {
    let window = TestWindow::new(32, BLANK);
    let config = WindowConfig::blank(BLANK, 0);
    let mut writer = ByteWriter::new(Writer::new(window.clone(), window.clone(), config));
    let mut reader = ByteReader::new(Receiver::new(window.clone(), window.clone(), config));
    let words = [BLANK.to_le_bytes(); 40];
    let (bytes, mut out) = (words.as_flattened(), [0; 400]);
    let mut moved = 0;
    let counted = allocation_counter::measure(|| {
        for size in (1..320).step_by(7) {
            let taken = writer.write(&bytes[..size]).expect("an honest receiver");
            let more = writer.write_more(&bytes[..size / 2]).expect("an honest receiver");
            let slices = [&bytes[..3], &bytes[..size / 9]];
            let gathered = writer.write_vectored(&slices).expect("an honest receiver");
            moved += taken + more + gathered;
            assert_eq!(reader.queued_bytes(), (taken + more + gathered) as u64);
            assert_eq!(writer.unacknowledged_bytes(), Ok((taken + more + gathered) as u64));
            assert_eq!(reader.peek(2, &mut out[..1]), Ok(ByteRead::Bytes(1)));
            while let Ok(ByteRead::Bytes(1..)) = reader.read(&mut out[..99]) {}
        }
    });
    assert!(moved > 10_000, "{moved} bytes");
    assert_eq!(counted.count_total, 0);
}

#[test]
fn the_counter_counts() {
    assert!(allocation_counter::measure(|| drop(std::hint::black_box(vec![1u8; 100]))).count_total > 0);
}
