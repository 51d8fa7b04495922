//! 64 B there and back by a connection between two cores, as the socket library carries it: by its windows, by windows of a connection that
//! keeps a copy, by the kernel's socket behind the ledger; beside the socket alone, looked at again and again or slept on, and the bare copy.
//!
//! Both ends of the sockets are of this process; what a call of the kernel costs is the same.

use std::hint::spin_loop;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use beeline_contract_adapter::{PublishPort, Unconfirmed, ViewPort};
use beeline_floor::{FloorError, LocalCredits, MEMORY, Sides, Start, WindowMemory};
use beeline_ledger::{RECEIVER_WORDS, Received, Receiver, SENDER_WORDS, Sender, WindowPath};
use beeline_mmio::{LoadWindow, Region, StoreKernel, StoreWindow, clock, fence};
use beeline_stream::{
    CheckedReader, CheckedWriter, Incoming, Outgoing, PlainReader, PlainWriter, Sent, StreamId, Tcp,
    TcpError, WindowSink,
};
use beeline_tcp::Side;

use crate::figure::Row;
use crate::placed::Placed;
use crate::{BenchError, Bound, Check, Figure, Latencies, Report, Settings};

const BENCH: &str = "connection-round-trip";
const BYTES: usize = 64;
/// 64 KiB a direction, so that a thousand connections are 128 MiB; the bare copy goes round as many lines.
const WINDOW_LINES: u32 = 1024;
/// Rounds by the kernel take a hundred times as long.
const KERNEL_SHARE: u64 = 20;

/// Words that one end publishes and the other one loads.
#[derive(Clone)]
struct Words(beeline_mmio::Words);

impl PublishPort for Words {
    fn publish(&mut self, word: u32, value: u64) {
        self.0.store_release(word as usize, value);
    }

    fn barrier(&mut self) -> Result<(), Unconfirmed> {
        fence::order_all();
        Ok(())
    }
}

impl ViewPort for Words {
    #[inline]
    fn load(&self, word: u32) -> u64 {
        self.0.load_acquire(word as usize)
    }
}

/// One side of a connection.
struct End<O, I> {
    tcp: Tcp<TcpStream>,
    outgoing: Outgoing<Words, Words, O>,
    incoming: Incoming<Words, Words, I, TcpError>,
}

fn failed(what: impl std::fmt::Display) -> BenchError {
    BenchError::Rival { rival: "a connection".to_owned(), what: what.to_string() }
}

fn connection() -> Result<[TcpStream; 2], std::io::Error> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let there = TcpStream::connect(listener.local_addr()?)?;
    let here = listener.accept()?.0;
    there.set_nodelay(true)?;
    here.set_nodelay(true)?;
    Ok([there, here])
}

impl<O: WindowSink, I: WindowPath> End<O, I> {
    fn send(&mut self, payload: &[u8; BYTES]) -> Result<(), BenchError> {
        while self.outgoing.send(payload, &mut self.tcp).map_err(failed)? != Sent::Bytes(BYTES) {
            spin_loop();
        }
        Ok(())
    }

    /// Whether all of a message came, before the other side failed.
    #[inline]
    fn receive(&mut self, payload: &mut [u8; BYTES], start: &Start<'_>) -> Result<bool, BenchError> {
        let mut filled = 0;
        while filled < BYTES {
            // A program that waits looks at the window, and at the socket every few microseconds.
            let mut looks = 0;
            let found = loop {
                match self.incoming.read_window(&mut payload[filled..]) {
                    Some(bytes) => break Received::Bytes(bytes),
                    None if looks == 200 => {
                        break self
                            .incoming
                            .receive(&mut payload[filled..], &mut self.tcp)
                            .map_err(failed)?;
                    }
                    None => {
                        looks =
                            if self.incoming.path() == beeline_ledger::Path::Kernel { 200 } else { looks + 1 }
                    }
                }
                spin_loop();
            };
            match found {
                Received::Bytes(bytes) => filled += bytes,
                Received::Nothing if start.is_over() => return Ok(false),
                Received::Nothing => {}
                Received::End => return Err(failed("it ended")),
            }
        }
        Ok(true)
    }
}

/// Nanoseconds of each round trip between two sides.
fn trips<S: Send>(
    settings: &Settings,
    trips: u64,
    [mut there, mut here]: [S; 2],
    send: impl Fn(&mut S, &[u8; BYTES]) -> Result<(), BenchError> + Sync,
    receive: impl Fn(&mut S, &mut [u8; BYTES], &Start<'_>) -> Result<bool, BenchError> + Sync,
) -> Result<Vec<f64>, BenchError> {
    let calibration = clock::Calibration::measure();
    let (send, receive) = (&send, &receive);
    let both = Sides::run::<BenchError>(
        settings.cores,
        move |start| {
            let mut ticks = Vec::with_capacity(trips as usize);
            start.wait();
            for stamp in 0..trips {
                let mut payload = [0; BYTES];
                payload[..8].copy_from_slice(&stamp.to_le_bytes());
                let sent = clock::now_ticks();
                send(&mut there, &payload)?;
                if !receive(&mut there, &mut payload, &start)? {
                    break;
                }
                ticks.push(clock::now_ticks() - sent);
                let found = u64::from_le_bytes(*payload.first_chunk().expect("the payload has 64 bytes"));
                if found != stamp {
                    let path = BENCH.to_owned();
                    return Err(FloorError::Corrupt { path, found, expected: stamp }.into());
                }
            }
            Ok(ticks)
        },
        move |start| {
            start.wait();
            let mut payload = [0; BYTES];
            for _ in 0..trips {
                if !receive(&mut here, &mut payload, &start)? {
                    break;
                }
                send(&mut here, &payload)?;
            }
            Ok(())
        },
    )?;
    Ok(both.first.into_iter().map(|ticks| calibration.to_ns(ticks)).collect())
}

/// Both ends of a connection, of which each has a window to the other, and is in it if `is_up`.
fn ends<O: WindowSink, I: WindowPath>(
    kept_bytes: usize,
    is_up: bool,
    sink: impl Fn(beeline_window::Writer<StoreWindow, LocalCredits>) -> O,
    source: impl Fn(beeline_window::Receiver<LoadWindow, LocalCredits>) -> I,
) -> Result<[End<O, I>; 2], BenchError> {
    let region = Region::private(4096);
    let words = |at, count: u32| Words(region.words(at, count as usize));
    let ledgers = [0, 1024].map(|at| (words(at, SENDER_WORDS), words(at + 512, RECEIVER_WORDS)));
    let memory = [WindowMemory::new(WINDOW_LINES)?, WindowMemory::new(WINDOW_LINES)?];
    let [there, here] = connection().map_err(failed)?;
    let mut made = [(there, Side::Connected), (here, Side::Accepted)].map(|(stream, side)| {
        let number = usize::from(side == Side::Accepted);
        let ((own, theirs), (ledger, answers)) = (&ledgers[number], &ledgers[1 - number]);
        let outgoing = Outgoing::new(Sender::new(own.clone(), theirs.clone(), 0)).keeping(kept_bytes);
        let mut incoming = Incoming::new(Receiver::new(answers.clone(), ledger.clone(), 0));
        incoming.set_window(source(memory[1 - number].receiver(StoreKernel::Cached)));
        End { tcp: Tcp::new(stream, side), outgoing, incoming }
    });
    for (end, memory) in made.iter_mut().zip(&memory) {
        end.outgoing
            .set_window(sink(memory.writer(StoreKernel::Cached)))
            .map_err(|_| failed("it has a window"))?;
        if is_up {
            end.outgoing.go_up(&mut end.tcp).map_err(|why| failed(format!("{why:?}")))?;
        }
    }
    Ok(made)
}

/// Round trips by a connection's windows: nanoseconds of each. `is_up`: by the windows; else by the socket, by the ledger's rules.
///
/// # Errors
/// [`BenchError`].
pub fn plain_trips(settings: &Settings, is_up: bool) -> Result<Vec<f64>, BenchError> {
    let ends = ends(0, is_up, PlainWriter::new, PlainReader::new)?;
    let count = if is_up { settings.trips() } else { kernel_trips(settings) };
    trips(settings, count, ends, End::send, End::receive)
}

/// As [`plain_trips`] by windows whose bytes are kept and checked.
///
/// # Errors
/// [`BenchError`].
pub fn kept_trips(settings: &Settings) -> Result<Vec<f64>, BenchError> {
    // One for both directions: nobody writes messages of the one over the other here.
    let stream = StreamId::new(0, 1);
    let ends = ends(
        1 << 20,
        true,
        |writer| CheckedWriter::new(writer, stream),
        |reader| CheckedReader::new(reader, stream),
    )?;
    trips(settings, settings.trips(), ends, End::send, End::receive)
}

/// Round trips by sockets alone: by calls that never wait, or by calls that sleep.
///
/// # Errors
/// [`BenchError`].
pub fn socket_trips(settings: &Settings, is_sleeping: bool) -> Result<Vec<f64>, BenchError> {
    let ends = connection().map_err(failed)?;
    ends.iter().try_for_each(|end| end.set_nonblocking(!is_sleeping)).map_err(failed)?;
    trips(
        settings,
        kernel_trips(settings),
        ends,
        |end, payload| end.write_all(payload).map_err(failed),
        |end, payload, start| {
            let mut filled = 0;
            while filled < BYTES {
                match end.read(&mut payload[filled..]) {
                    Ok(0) => return Ok(false),
                    Ok(bytes) => filled += bytes,
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                        if start.is_over() {
                            return Ok(false);
                        }
                    }
                    Err(error) => return Err(failed(error)),
                }
            }
            Ok(true)
        },
    )
}

fn kernel_trips(settings: &Settings) -> u64 {
    (settings.trips() / KERNEL_SHARE).max(100)
}

/// Runs every path.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let mut all: [Latencies; 6] = std::array::from_fn(|_| Latencies::new());
    let placed = Placed::run(settings, || {
        let bare = beeline_floor::bare_trips(settings.cores, WINDOW_LINES, settings.trips(), 1)?;
        all[0].add_round(&bare);
        all[1].add_round(&plain_trips(settings, true)?);
        all[2].add_round(&kept_trips(settings)?);
        all[3].add_round(&plain_trips(settings, false)?);
        all[4].add_round(&socket_trips(settings, false)?);
        all[5].add_round(&socket_trips(settings, true)?);
        Ok(())
    })?;
    let names = [
        ("bare copy", settings.trips()),
        ("connection by windows", settings.trips()),
        ("connection by windows, kept", settings.trips()),
        ("connection by its socket", kernel_trips(settings)),
        ("TCP, looking", kernel_trips(settings)),
        ("TCP, sleeping", kernel_trips(settings)),
    ];
    let figures: Vec<_> = names
        .into_iter()
        .zip(all)
        .map(|((name, count), latencies)| {
            let kernel = if name.starts_with("TCP") { "" } else { StoreKernel::Cached.name() };
            let row = Row { bench: BENCH, name, kernel, memory: MEMORY, size_bytes: BYTES as u32, count };
            Figure::latency(row, latencies)
        })
        .collect();
    Ok(placed.report(BENCH, &figures, checks))
}

fn checks(figures: &[Figure]) -> Vec<Check> {
    let [bare_copy, windows, kept, _, looking, sleeping] = figures else { return Vec::new() };
    vec![
        Check::ratio(BENCH, windows, bare_copy, Bound::AtMost(2.0)),
        Check::ratio(BENCH, kept, bare_copy, Bound::AtMost(2.5)),
        Check::ratio(BENCH, looking, windows, Bound::AtLeast(15.0)),
        Check::ratio(BENCH, sleeping, windows, Bound::AtLeast(15.0)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_floor::rounds::Keep;

    #[test]
    fn messages_go_round_by_every_path() -> Result<(), BenchError> {
        let Ok(settings) = Settings::quick() else { return Ok(()) };
        let settings = Settings { rounds: 2, trip_thousands: 1, keep: Keep::All, ..settings };
        let report = run(&settings)?;
        assert!(report.figures.iter().all(|figure| figure.samples.len() >= 200 && figure.rounds.len() == 2));
        assert_eq!(report.checks.len(), 4);
        Ok(())
    }
}
