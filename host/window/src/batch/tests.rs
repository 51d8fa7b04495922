use crate::error::SendError;
use crate::writer::tests::pair;
use crate::{Position, Sent};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn record(i: usize) -> Vec<u8> {
    (0..i % 31).map(|k| (i + k) as u8).collect()
}

#[test]
fn records_come_out_one_by_one_and_few_lines_are_used() -> Outcome {
    let (_, mut writer, mut receiver) = pair(64);
    let mut batch = writer.batch(3000)?.expect("an empty window");
    for i in 0..60 {
        assert_eq!(batch.push(&record(i))?, Sent::Sent);
    }
    assert_eq!(batch.records(), 60);
    batch.send();
    assert!(writer.position() < Position(30), "60 one-line messages would take 60 lines");
    let mut out = Vec::new();
    for i in 0..60 {
        let mut message = receiver.poll()?.expect("a record");
        out.clear();
        message.copy_to(&mut out);
        assert_eq!(out, record(i));
        let words: Vec<u8> = (0..out.len().div_ceil(8)).flat_map(|k| message.word(k).to_le_bytes()).collect();
        assert_eq!(&words[..out.len()], out);
        assert!(words[out.len()..].iter().all(|byte| *byte == 0), "past the end a word is zero");
    }
    assert!(receiver.poll()?.is_none());
    assert_eq!(receiver.next_start(), writer.position());
    Ok(())
}

#[test]
fn a_record_without_room_leaves_the_batch_open_as_it_was() -> Outcome {
    let (_, mut writer, mut receiver) = pair(8);
    let mut batch = writer.batch(56)?.expect("an empty window");
    for _ in 0..7 {
        assert_eq!(batch.push(b"six by")?, Sent::Sent);
    }
    assert_eq!(batch.push(b"")?, Sent::Full);
    assert_eq!(batch.records(), 7);
    assert!(receiver.poll()?.is_none(), "nothing was sent by itself");
    batch.send();
    assert_eq!(writer.position(), Position(1));
    let received = std::iter::from_fn(|| receiver.poll().ok().flatten().map(|record| record.len()));
    assert_eq!(received.collect::<Vec<_>>(), [6; 7]);
    Ok(())
}

#[test]
fn dropped_batch_publishes_nothing_and_the_next_message_arrives() -> Outcome {
    // One record stays staged; ten fill lines that are stored.
    for records in [1, 10] {
        let (_, mut writer, mut receiver) = pair(16);
        let mut batch = writer.batch(400)?.expect("an empty window");
        for _ in 0..records {
            assert_eq!(batch.push(&[7; 30])?, Sent::Sent);
        }
        drop(batch);
        assert!(receiver.poll()?.is_none(), "{records} records");
        assert_eq!(writer.try_send(b"next")?, Sent::Sent);
        assert_eq!(receiver.poll()?.map(|message| message.len()), Some(4), "{records} records");
        assert_eq!(receiver.next_start(), writer.position());
    }
    Ok(())
}

#[test]
fn a_batch_takes_the_lines_there_are() -> Outcome {
    let (_, mut writer, mut receiver) = pair(8);
    for _ in 0..6 {
        let _ = writer.try_send(b"x")?;
    }
    let mut batch = writer.batch(400)?.expect("two free lines");
    assert_eq!(batch.push(&[1; 100])?, Sent::Sent);
    assert_eq!(batch.push(&[1; 100])?, Sent::Full, "it would fit a batch of 400 bytes, but not now");
    let error = SendError::TooLong { bytes: 399, max_bytes: 398 };
    assert_eq!(batch.push(&[1; 399]), Err(error));
    batch.send();
    while receiver.poll()?.is_some() {}
    assert_eq!(receiver.next_start(), Position(8));
    Ok(())
}

#[test]
fn an_empty_batch_leaves_no_trace() -> Outcome {
    let (window, mut writer, mut receiver) = pair(8);
    drop(writer.batch(100)?.expect("an empty window"));
    assert_eq!((window.issued_words(), writer.position(), writer.free_lines()), (0, Position(0), 8));
    assert_eq!(writer.try_send(b"x")?, Sent::Sent);
    assert!(receiver.poll()?.is_some());
    Ok(())
}

#[test]
fn the_lines_of_a_batch_are_freed_with_its_last_record() -> Outcome {
    let (window, mut writer, mut receiver) = pair(8);
    let mut batch = writer.batch(400)?.expect("an empty window");
    let _ = batch.push(b"one")?;
    let _ = batch.push(b"two")?;
    batch.send();
    drop(receiver.poll()?.expect("one"));
    assert_eq!((window.arrived_words(), receiver.next_start()), (8, Position(0)));
    let two = receiver.poll()?.expect("two");
    drop(two);
    assert_eq!((window.arrived_words(), receiver.next_start()), (0, Position(1)));
    Ok(())
}
