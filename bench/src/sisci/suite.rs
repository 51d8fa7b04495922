//! The suite: what the white papers on eXpressWare show of SISCI in their figures 2 to 6, measured here.
//!
//! Sending by stores and by `SCIMemCpy`, and there and back, by size, with TCP over loopback and AF_UNIX beside it; transfers by DMA and what they
//! leave of the program's CPU; interrupts with bytes and without; one store to a group. Figures that others have published are in `published/`, never here.

use super::{Entry, Kind, measure, transfers};
use crate::rivals::{self, SOCKET_STREAMS, SOCKETS_BY_SIZE};
use crate::{BenchError, Report, Settings, group, wake_up};

pub(super) const BENCH: &str = "sisci";
/// Bytes of a message.
const SIZES: [usize; 17] = {
    let mut sizes = [4; 17];
    let mut at = 0;
    while at < sizes.len() {
        sizes[at] = 4 << at;
        at += 1;
    }
    sizes
};
/// Of sockets, which take far longer at the small ones: their lines have fewer points.
const SOCKET_SIZES: &[usize] = &[4, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10];
/// Messages of a call each, of a stream, in a time that a run has.
const SOCKET_STREAM_SIZES: &[usize] = &[64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10];
pub(super) const SEND: &str = "send by ";
pub(super) const THERE_AND_BACK: &str = "there and back by ";
/// Trips of the settings for one of this suite, which has many sizes.
const FEWER_TRIPS: u32 = 5;

/// Runs all of it.
///
/// # Errors
/// A bench of it has failed.
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let trip_thousands = (settings.trip_thousands / FEWER_TRIPS).max(1);
    let fewer = Settings { trip_thousands, ..settings.clone() };
    let sends = [rivals::STREAMS_BY_STORES, rivals::STREAMS_BY_MEM_CPY];
    let send = |rival, sizes| Entry { rival, kind: Kind::Stream, sizes, prefix: SEND };
    let sends = sends.map(|rival| send(rival, &SIZES[..]));
    let socket_sends = SOCKET_STREAMS.iter().map(|rival| send(*rival, SOCKET_STREAM_SIZES));
    let trip = |rival, sizes| Entry { rival, kind: Kind::Message, sizes, prefix: THERE_AND_BACK };
    // A message of 4 or 8 bytes is its own flag, which is stored.
    let trips = [trip(rivals::BY_STORES, &SIZES[..]), trip(rivals::BY_MEM_CPY, &SIZES[2..])];
    let sockets = SOCKETS_BY_SIZE.iter().map(|rival| trip(*rival, SOCKET_SIZES));
    let entries: Vec<_> = sends.into_iter().chain(socket_sends).chain(trips).chain(sockets).collect();
    let (placed, figures, missing) = measure(BENCH, &fewer, &entries, &[])?;
    let mut report = Report { missing, ..placed.report(BENCH, &figures, |_| Vec::new()) };
    report.figures.extend(transfers::measure(BENCH, &fewer)?);
    report.append(wake_up::run_interrupts(&fewer)?);
    report.append(group::run(&fewer)?);
    Ok(report)
}
