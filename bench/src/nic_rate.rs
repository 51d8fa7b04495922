//! 64 B frames a second through the NIC process, in bursts, by every interface in turn: onto the wire with nothing that
//! comes back, and there and back with both halves on one thread.
//!
//! Onto the wire is the target: it is what an interface can do. There and back, the receive ring and the comparing of
//! every byte are the same for all interfaces and most of the time, so that ratio is shown and binds nothing.

use beeline_mmio::clock::Calibration;
use beeline_mmio::{StoreKernel, Traffic};
use beeline_spec::Interface;

use crate::figure::Row;
use crate::nic_one_way::{against_descriptor, nic_options};
use crate::placed::Placed;
use crate::{BenchError, Bound, Figure, Report, Settings};
use beeline_floor::{MEMORY, on_core};
use beeline_session::{
    BURST, IN_FLIGHT, PrivateNic, Queue, Rated, Session, ThereAndBack, TransmitRate, kernel_name,
};

const BENCH: &str = "nic-rate";

const FRAME_BYTES: u32 = 64;
/// A frame through the NIC takes so much longer than a message through a window that fewer will do.
const FRACTION: u64 = 10;

/// Frames a second of every interface, by round.
type Rates = [Vec<f64>; Interface::ALL.len()];

/// Runs every interface both ways.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    on_core::<_, BenchError>(settings.cores.first, || run_here(settings))
}

fn run_here(settings: &Settings) -> Result<Report, BenchError> {
    let kernel = StoreKernel::choose(Traffic::Stream);
    let calibration = Calibration::measure();
    let frames = settings.stream_messages() / FRACTION;
    let frame_bytes = FRAME_BYTES as usize;
    let (mut out, mut there_and_back) = (Rates::default(), Rates::default());
    let placed = Placed::run(settings, || {
        round(settings, kernel, false, &mut out, |session, queue| {
            let job = TransmitRate { frame_bytes, frames, burst: BURST, calibration };
            Ok(session.with_queue(queue, job)?)
        })?;
        round(settings, kernel, true, &mut there_and_back, |session, queue| {
            let job = ThereAndBack { frame_bytes, frames, burst: BURST, in_flight: IN_FLIGHT, calibration };
            Ok(session.with_queue(queue, job)?)
        })
    })?;
    let out = figures("onto the wire", kernel, frames, out);
    let there_and_back = figures("there and back", kernel, frames, there_and_back);
    Ok(placed.report(BENCH, &[out, there_and_back].concat(), |figures| {
        let parts = figures.chunks(Interface::ALL.len()).zip([Bound::AtLeast(2.0), Bound::Shown]);
        parts.flat_map(|(figures, bound)| against_descriptor(BENCH, figures, bound)).collect()
    }))
}

/// Every interface once through a fresh NIC: where its memory happens to lie is part of a figure.
fn round(
    settings: &Settings,
    kernel: StoreKernel,
    loopback: bool,
    rates: &mut Rates,
    rate: impl Fn(&mut Session, Queue) -> Result<Rated, BenchError>,
) -> Result<(), BenchError> {
    let nic = PrivateNic::start(&settings.program, &nic_options(settings, loopback))?;
    let mut session = Session::open(&nic.session_options(kernel))?;
    for (interface, rates) in Interface::ALL.into_iter().zip(rates) {
        rates.push(rate(&mut session, Queue::of(interface))?.frames_per_second());
    }
    drop(session);
    Ok(nic.stop()?)
}

fn figures(direction: &str, kernel: StoreKernel, count: u64, rates: Rates) -> Vec<Figure> {
    let figure = |(interface, rates): (Interface, _)| {
        let (name, kernel) = (format!("{interface}, {direction}"), kernel_name(interface, kernel));
        let row = Row { bench: BENCH, name: &name, kernel, memory: MEMORY, size_bytes: FRAME_BYTES, count };
        Figure::rate(row, rates)
    };
    Interface::ALL.into_iter().zip(rates).map(figure).collect()
}
