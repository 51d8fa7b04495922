//! One 64 B frame at a time through the NIC process and back into the same thread's hands: every interface, in turn.
//!
//! From the call that sends to the frame in hand, so a frame crosses from the host to the NIC once and back once: the
//! way of a frame between two hosts whose wire takes no time.

use beeline_mmio::clock::Calibration;
use beeline_mmio::{StoreKernel, Traffic};
use beeline_spec::Interface;

use crate::figure::Row;
use crate::placed::Placed;
use crate::{BenchError, Bound, Check, Figure, Latencies, Report, Settings};
use beeline_floor::{MEMORY, on_core};
use beeline_session::{Latency, NicOptions, PrivateNic, Queue, Session, kernel_name};

const BENCH: &str = "nic-one-way";

const FRAME_BYTES: u32 = 64;

/// Runs every interface.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    on_core::<_, BenchError>(settings.cores.first, || run_here(settings))
}

fn run_here(settings: &Settings) -> Result<Report, BenchError> {
    let kernel = StoreKernel::choose(Traffic::Latency);
    let calibration = Calibration::measure();
    let mut all = Interface::ALL.map(|interface| (interface, Latencies::new()));
    let placed = Placed::run(settings, || {
        // A fresh one each round: where its memory happens to lie is part of a figure.
        let nic = PrivateNic::start(&settings.program, &nic_options(settings, true))?;
        let mut session = Session::open(&nic.session_options(kernel))?;
        for (interface, latencies) in &mut all {
            let mut times = Vec::with_capacity(settings.trips() as usize);
            let job = Latency {
                frame_bytes: FRAME_BYTES as usize,
                passes: 1,
                samples: settings.trips(),
                warm_up: settings.trips() / 10,
                calibration,
                record: |ns| times.push(ns),
            };
            session.with_queue(Queue::of(*interface), job)?;
            latencies.add_round(&times);
        }
        drop(session);
        Ok(nic.stop()?)
    })?;
    let figures = all.map(|(interface, latencies)| {
        let (name, kernel) = (interface.name(), kernel_name(interface, kernel));
        let count = settings.trips();
        let row = Row { bench: BENCH, name, kernel, memory: MEMORY, size_bytes: FRAME_BYTES, count };
        Figure::latency(row, latencies)
    });
    Ok(placed.report(BENCH, &figures, |figures| against_descriptor(BENCH, figures, Bound::AtMost(0.85))))
}

/// A NIC with a core of its own.
pub(crate) fn nic_options(settings: &Settings, loopback: bool) -> NicOptions {
    NicOptions {
        loopback,
        lossless: true,
        spin: true,
        core: Some(settings.cores.second),
        ..NicOptions::default()
    }
}

/// How `mmio` and `kpio` do against `descriptor` in figures of all interfaces, in their order: the first is bound, the second
/// shown.
pub(crate) fn against_descriptor(bench: &str, figures: &[Figure], bound: Bound) -> Vec<Check> {
    let of = |interface: Interface| &figures[interface_index(interface)];
    let check = |interface, bound| Check::ratio(bench, of(interface), of(Interface::Descriptor), bound);
    vec![check(Interface::Mmio, bound), check(Interface::Kpio, Bound::Shown)]
}

fn interface_index(interface: Interface) -> usize {
    Interface::ALL.iter().position(|other| *other == interface).expect("every interface is among all of them")
}
