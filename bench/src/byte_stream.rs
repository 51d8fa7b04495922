//! A byte stream between two cores, by the size of a write: our window as a stream, `memcpy` through a ring of as many bytes
//! with one publication of its indices a write, and a pair of Unix sockets.
//!
//! Every path takes a write in one call, in parts where there is no room for all of it, and gives what has arrived to a reader
//! with room for more than one write. Each write ends in its number, which the reader compares.

use std::hint::spin_loop;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use beeline_floor::{FloorError, Sides, Start, WindowMemory};
use beeline_mmio::StoreKernel;
use beeline_window::{ByteRead, ByteReader, ByteWriter};
use rtrb::RingBuffer;

use crate::check::fastest;
use crate::paths::{self, Path};
use crate::{BenchError, Bound, Check, Figure, Report, Settings};

const BENCH: &str = "window-byte-stream";
/// Bytes of a write.
const SIZES: [usize; 3] = [64, 1024, 16_384];
/// Room of a read.
const READ_BYTES: usize = 65_536;

/// Writes a round: a quarter of the bytes of a stream of lines, so that sockets take no longer than the others.
fn writes(settings: &Settings, bytes: usize) -> u64 {
    (settings.stream_messages() / 4 / (bytes as u64 / 64)).max(1)
}

/// Checks the numbers of writes in what a reader gets, however it is cut.
struct Checked {
    path: &'static str,
    /// Bytes of a write.
    bytes: usize,
    room: Vec<u8>,
    /// Bytes at the front of the room, of a write that is not whole.
    carried: usize,
    /// Writes that were whole.
    writes: u64,
}

impl Checked {
    fn new(path: &'static str, bytes: usize) -> Self {
        Checked { path, bytes, room: vec![0; READ_BYTES + bytes], carried: 0, writes: 0 }
    }

    /// Where the next bytes go.
    fn room(&mut self) -> &mut [u8] {
        &mut self.room[self.carried..][..READ_BYTES]
    }

    /// So many bytes were read.
    fn read(&mut self, count: usize) -> Result<(), FloorError> {
        let end = self.carried + count;
        for write in self.room[..end].chunks_exact(self.bytes) {
            let found = write.last_chunk().map_or(u64::MAX, |last| u64::from_le_bytes(*last));
            if found != self.writes {
                let (path, expected) = (self.path.to_owned(), self.writes);
                return Err(FloorError::Corrupt { path, found, expected });
            }
            self.writes += 1;
        }
        self.carried = end % self.bytes;
        self.room.copy_within(end - self.carried..end, 0);
        Ok(())
    }
}

/// Writes a second between two sides. `write` takes some of the bytes it is given, 0 when there is no room, `read` fills some of
/// the room it is given, 0 when nothing is there.
fn rate(
    path: &'static str,
    settings: &Settings,
    bytes: usize,
    mut write: impl FnMut(&[u8]) -> Result<usize, BenchError> + Send,
    mut read: impl FnMut(&mut [u8]) -> Result<usize, BenchError> + Send,
) -> Result<f64, BenchError> {
    let writes = writes(settings, bytes);
    let both = Sides::run::<BenchError>(
        settings.cores,
        move |start: Start<'_>| {
            let mut source: Vec<u8> = (0..bytes).map(|at| (at * 7 + 1) as u8 & 0x7f).collect();
            let started = start.wait();
            for number in 0..writes {
                source[bytes - 8..].copy_from_slice(&number.to_le_bytes());
                let mut left = &source[..];
                while !left.is_empty() {
                    match write(left)? {
                        0 if start.is_over() => return Ok(started),
                        0 => spin_loop(),
                        taken => left = &left[taken..],
                    }
                }
            }
            Ok(started)
        },
        move |start| {
            let mut checked = Checked::new(path, bytes);
            start.wait();
            while checked.writes < writes {
                match read(checked.room())? {
                    0 if start.is_over() => break,
                    0 => spin_loop(),
                    count => checked.read(count)?,
                }
            }
            Ok(Instant::now())
        },
    )?;
    Ok(beeline_floor::rate(writes, both.second - both.first))
}

/// Writes a second through a window.
///
/// # Errors
/// [`BenchError`].
pub fn window_rate(settings: &Settings, kernel: StoreKernel, bytes: usize) -> Result<f64, BenchError> {
    let memory = WindowMemory::new(settings.window_lines)?;
    let mut writer = ByteWriter::new(memory.writer(kernel));
    let mut reader = ByteReader::new(memory.receiver(kernel));
    rate(
        "byte stream of a window",
        settings,
        bytes,
        move |bytes| Ok(writer.write(bytes)?),
        move |room| match reader.read(room)? {
            ByteRead::Bytes(count) => Ok(count),
            ByteRead::Nothing | ByteRead::End => Ok(0),
        },
    )
}

/// Writes a second through a ring of as many bytes as the window has.
///
/// # Errors
/// [`BenchError`].
pub fn ring_rate(settings: &Settings, bytes: usize) -> Result<f64, BenchError> {
    let (mut producer, mut consumer) = RingBuffer::<u8>::new(settings.window_lines as usize * 64);
    rate(
        "ring of bytes",
        settings,
        bytes,
        move |bytes| {
            let taken = if producer.slots() < bytes.len() { 0 } else { bytes.len() };
            let Ok(mut slots) = producer.write_chunk(taken) else { return Ok(0) };
            let (first, second) = slots.as_mut_slices();
            let (front, back) = bytes[..taken].split_at(first.len());
            first.copy_from_slice(front);
            second.copy_from_slice(back);
            slots.commit_all();
            Ok(taken)
        },
        move |room| {
            let count = consumer.slots().min(room.len());
            let Ok(slots) = consumer.read_chunk(count) else { return Ok(0) };
            let (first, second) = slots.as_slices();
            let (front, back) = room[..count].split_at_mut(first.len());
            front.copy_from_slice(first);
            back.copy_from_slice(second);
            slots.commit_all();
            Ok(count)
        },
    )
}

/// Writes a second through a pair of Unix sockets that block.
///
/// # Errors
/// [`BenchError`].
pub fn socket_rate(settings: &Settings, bytes: usize) -> Result<f64, BenchError> {
    let failed = |error: std::io::Error| BenchError::Rival {
        rival: "a pair of Unix sockets".to_owned(),
        what: error.to_string(),
    };
    let (mut there, mut here) = UnixStream::pair().map_err(failed)?;
    rate(
        "socket pair",
        settings,
        bytes,
        move |bytes| there.write(bytes).map_err(failed),
        move |room| here.read(room).map_err(failed),
    )
}

/// Runs every size, the window with every kernel for memory.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let path = |name, kernel, bytes: usize, round| Path {
        name,
        kernel,
        size_bytes: bytes as u32,
        count: writes(settings, bytes),
        round,
    };
    let mut all = Vec::new();
    for bytes in SIZES {
        for kernel in StoreKernel::available().into_iter().filter(|kernel| kernel.is_for_memory()) {
            let round = Box::new(move || window_rate(settings, kernel, bytes));
            all.push(path(
                format!("window as a stream, writes of {bytes} B"),
                kernel.name(),
                bytes,
                round as _,
            ));
        }
        let round = Box::new(move || ring_rate(settings, bytes));
        all.push(path(format!("memcpy through a ring, writes of {bytes} B"), "-", bytes, round as _));
        let round = Box::new(move || socket_rate(settings, bytes));
        all.push(path(format!("pair of Unix sockets, writes of {bytes} B"), "-", bytes, round as _));
    }
    paths::measure(BENCH, settings, &all, checks)
}

/// The best window against the ring, which is shown, and against the sockets, at each size.
fn checks(figures: &[Figure]) -> Vec<Check> {
    let best = |bytes: usize, prefix: &'static str| {
        fastest(
            figures
                .iter()
                .filter(move |figure| figure.size_bytes as usize == bytes && figure.name.starts_with(prefix)),
        )
    };
    let against = |bytes, rival, bound| {
        let (window, rival) = (best(bytes, "window")?, best(bytes, rival)?);
        Some(Check::ratio(BENCH, window, rival, bound))
    };
    let both = |bytes| [against(bytes, "memcpy", Bound::Shown), against(bytes, "pair", Bound::AtLeast(2.0))];
    SIZES.into_iter().flat_map(both).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_floor::rounds::Keep;

    #[test]
    fn every_path_carries_writes_of_every_size() -> Result<(), BenchError> {
        let Ok(settings) = Settings::quick() else { return Ok(()) };
        let settings =
            Settings { rounds: 1, stream_thousands: 40, window_lines: 512, keep: Keep::All, ..settings };
        let report = run(&settings)?;
        assert_eq!(report.checks.len(), 2 * SIZES.len());
        assert!(report.figures.iter().all(|figure| figure.rounds.len() == 1 && figure.rounds[0] > 0.0));
        Ok(())
    }

    #[test]
    fn numbers_are_found_however_reads_cut_the_writes() {
        let stream: Vec<u8> =
            (0..50u64).flat_map(|number| [0, number].map(u64::to_le_bytes)).flatten().collect();
        for step in [1, 7, 16, 100] {
            let mut checked = Checked::new("path", 16);
            for piece in stream.chunks(step) {
                checked.room()[..piece.len()].copy_from_slice(piece);
                assert!(checked.read(piece.len()).is_ok());
            }
            assert_eq!((checked.writes, checked.carried), (50, 0));
        }
        let mut checked = Checked::new("path", 16);
        checked.room()[..16].copy_from_slice(&stream[16..32]);
        assert!(checked.read(16).is_err(), "the second write is not the first");
    }
}
