//! The suite: what the white papers on eXpressWare show of SISCI in their figures 2 to 6, measured here.
//!
//! Sending by stores and by `SCIMemCpy`, and there and back, by size, with TCP over loopback beside it; transfers by DMA and what they
//! leave of the program's CPU; interrupts with bytes and without; one store to a group. Figures that others have published are in `published/`, never here.

use super::{Entry, Kind, measure, transfers};
use crate::rivals::{self, ON_ONE_MACHINE};
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
/// Up to this many bytes a program of `rivals/c/sockets.c` sends at a time.
const SOCKET_SIZES: &[usize] = &[4, 16, 64, 256, 1024, 4096];
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
    let sends = sends.map(|rival| Entry { rival, kind: Kind::Stream, sizes: &SIZES, prefix: SEND });
    let trip = |rival, sizes| Entry { rival, kind: Kind::Message, sizes, prefix: THERE_AND_BACK };
    // A message of 4 or 8 bytes is its own flag, which is stored.
    let trips = [trip(rivals::BY_STORES, &SIZES[..]), trip(rivals::BY_MEM_CPY, &SIZES[2..])];
    let sockets = ON_ONE_MACHINE.iter().filter(|rival| rival.name.starts_with("TCP"));
    let sockets = sockets.map(|rival| trip(*rival, SOCKET_SIZES));
    let entries: Vec<_> = sends.into_iter().chain(trips).chain(sockets).collect();
    let (placed, figures, missing) = measure(BENCH, &fewer, &entries)?;
    let mut report = Report { missing, ..placed.report(BENCH, &figures, |_| Vec::new()) };
    report.figures.extend(transfers::measure(BENCH, &fewer)?);
    report.append(wake_up::run_interrupts(&fewer)?);
    report.append(group::run(&fewer)?);
    Ok(report)
}
