//! A stream of bytes that one member stores into another one's segment, checked by sequences, while links go down and up.
//!
//! The segment has the number of the chunk that was stored last, then the number of the one that was taken last, and from byte 64 on the chunk.

use std::time::{Duration, Instant};

use beeline_fabric::{SequenceStart, SequenceStatus};
use beeline_fabric_process::{Map, Sequence};

use super::random::Random;

pub const CHUNK_BYTES: usize = 3000;
pub const SEGMENT_BYTES: u64 = 64 + CHUNK_BYTES as u64;
const STORED: usize = 0;
const TAKEN: usize = 8;
const CHUNK: usize = 64;
/// What is stored of a chunk at a time.
const PART_BYTES: usize = 100;

/// How long the writer waits for a link or the reader at most. Links are read one after the other, so it may see all down for a moment.
const PATIENCE: Duration = Duration::from_secs(20);

/// The bytes of a chunk.
pub fn chunk(number: u64) -> Vec<u8> {
    let mut random = Random::of(number);
    (0..CHUNK_BYTES).map(|_| random.any() as u8).collect()
}

fn load(map: &Map, at: usize) -> u64 {
    let mut bytes = [0; 8];
    map.copy_out(at, &mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

/// Stores chunks until so many sequences were found to be retriable and the last chunk is taken; says how many chunks that were.
pub fn write(map: &Map, sequence: &Sequence, most_retried: u64) -> String {
    let mut retried = 0;
    for number in 1.. {
        let bytes = chunk(number);
        let stored = store_checked(sequence, &mut retried, |is_again| {
            if is_again {
                // What a sequence calls retriable is taken for lost.
                map.copy_in(CHUNK, &[0; CHUNK_BYTES]).unwrap();
            }
            for (part, bytes) in bytes.chunks(PART_BYTES).enumerate() {
                map.copy_in(CHUNK + part * PART_BYTES, bytes).unwrap();
                // So that links change in the middle of it.
                std::thread::yield_now();
            }
        });
        let told = stored.and_then(|()| {
            store_checked(sequence, &mut retried, |_| map.copy_in(STORED, &number.to_le_bytes()).unwrap())
        });
        if let Err(status) = told {
            return format!("{status:?}");
        }
        let began = Instant::now();
        while load(map, TAKEN) != number {
            if began.elapsed() > PATIENCE {
                return format!("chunk {number} is not taken");
            }
            std::thread::yield_now();
        }
        if retried >= most_retried {
            return format!("ok {number}");
        }
    }
    unreachable!("there are more numbers than chunks")
}

/// Stores over and over until a sequence finds nothing.
fn store_checked(
    sequence: &Sequence,
    retried: &mut u64,
    mut store: impl FnMut(bool),
) -> Result<(), SequenceStatus> {
    let mut is_again = false;
    loop {
        let start = start(sequence)?;
        store(is_again);
        match sequence.check(start) {
            SequenceStatus::Ok => return Ok(()),
            SequenceStatus::NotRetriable => return Err(SequenceStatus::NotRetriable),
            SequenceStatus::Retriable | SequenceStatus::Pending => {
                (*retried, is_again) = (*retried + 1, true)
            }
        }
    }
}

fn start(sequence: &Sequence) -> Result<SequenceStart, SequenceStatus> {
    let began = Instant::now();
    loop {
        match sequence.start() {
            (_, Some(start)) => return Ok(start),
            (SequenceStatus::Pending, None) if began.elapsed() < PATIENCE => std::thread::yield_now(),
            (status, None) => return Err(status),
        }
    }
}

/// Takes the next chunk, if it is there, and says which it is; panics if it is not whole.
pub fn read(map: &Map, last: u64) -> Option<u64> {
    let number = load(map, STORED);
    if number == last {
        return None;
    }
    assert_eq!(number, last + 1);
    let mut bytes = vec![0; CHUNK_BYTES];
    map.copy_out(CHUNK, &mut bytes).unwrap();
    assert!(bytes == chunk(number), "chunk {number} is not what was stored");
    map.copy_in(TAKEN, &number.to_le_bytes()).unwrap();
    Some(number)
}
