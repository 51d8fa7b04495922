//! One core stores 64 B messages into a window that nobody reads (HotOS'25 figure 2 on this CPU): unfenced and under
//! every fence policy, beside the bare store loop of the same kernel.

use std::time::Instant;

use beeline_contract_memory::StorePort;
use beeline_mmio::{StoreKernel, StoreWindow};
use beeline_window::{FencePolicy, Sent, Writer};

use crate::LINE_PAYLOAD_BYTES;
use crate::check::fastest;
use crate::figure::Row;
use crate::stream::payloads;
use crate::{BenchError, Bound, Check, Figure, Report, Settings};
use beeline_floor::{MEMORY, Source, Unreceived, WindowMemory, on_core};

const BENCH: &str = "window-store";

/// Fences cost so much that fewer messages give a time long enough to measure.
const FENCED_FRACTION: u64 = 20;

/// Messages a second of one core into a window with no receiver. Runs on the calling thread.
///
/// # Errors
/// [`BenchError::Send`].
pub fn store_rate<P: StorePort>(
    writer: &mut Writer<P, Unreceived>,
    source: &Source,
    messages: u64,
) -> Result<f64, BenchError> {
    let start = Instant::now();
    for number in 0..messages {
        while writer.try_send(&source.message(number)[..LINE_PAYLOAD_BYTES])? == Sent::Full {}
    }
    // Everything stored has to leave the core within the time that is counted.
    writer.fence();
    Ok(beeline_floor::rate(messages, start.elapsed()))
}

/// As [`store_rate`], with messages sent in bulk.
///
/// # Errors
/// [`BenchError::Send`].
pub fn bulk_rate<P: StorePort>(
    writer: &mut Writer<P, Unreceived>,
    source: &Source,
    messages: u64,
) -> Result<f64, BenchError> {
    let payloads = payloads(source);
    let (start, mut number) = (Instant::now(), 0);
    while number < messages {
        let first = number as usize % payloads.len();
        let left = (messages - number).min((payloads.len() - first) as u64) as usize;
        number += writer.try_send_all(&payloads[first..first + left])?.0 as u64;
    }
    writer.fence();
    Ok(beeline_floor::rate(messages, start.elapsed()))
}

/// The rows of one kernel.
struct Rows {
    kernel: StoreKernel,
    bare: Vec<f64>,
    /// In bulk, without fences.
    bulk: (Writer<StoreWindow, Unreceived>, Vec<f64>),
    windows: Vec<(FencePolicy, Writer<StoreWindow, Unreceived>, Vec<f64>)>,
}

impl Rows {
    fn new(memory: &WindowMemory, kernel: StoreKernel) -> Self {
        let window = |policy| {
            let config = memory.config().with_fences(policy);
            let port = memory.store_window(kernel);
            let credits = Unreceived::new(port.lines());
            (policy, Writer::new(port, credits, config), Vec::new())
        };
        let (_, writer, rates) = window(FencePolicy::None);
        Rows { kernel, bare: Vec::new(), bulk: (writer, rates), windows: FencePolicy::ALL.map(window).into() }
    }

    fn round(&mut self, memory: &WindowMemory, source: &Source, messages: u64) -> Result<(), BenchError> {
        self.bare.push(beeline_floor::bare_store_rate(
            &mut memory.store_window(self.kernel),
            source,
            messages,
        ));
        let (writer, rates) = &mut self.bulk;
        rates.push(bulk_rate(writer, source, messages)?);
        for (policy, writer, rates) in &mut self.windows {
            let fenced = matches!(policy, FencePolicy::PerMessage | FencePolicy::PerLine);
            let messages = if fenced { messages / FENCED_FRACTION } else { messages };
            rates.push(store_rate(writer, source, messages)?);
        }
        Ok(())
    }

    /// The bare loop, and the window in bulk and then by each policy.
    fn figures(self, messages: u64) -> (Figure, Vec<Figure>) {
        let kernel = self.kernel.name();
        let row = |name: &str, count, rates| {
            let row = Row { bench: BENCH, name, kernel, memory: MEMORY, size_bytes: 64, count };
            Figure::rate(row, rates)
        };
        let bulk = row("window in bulk, fences none", messages, self.bulk.1);
        let windows = self.windows.into_iter();
        let windows =
            windows.map(|(policy, _, rates)| row(&format!("window, fences {policy}"), messages, rates));
        (row("bare store loop", messages, self.bare), std::iter::once(bulk).chain(windows).collect())
    }
}

/// Runs every available kernel.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    on_core::<_, BenchError>(settings.cores.first, || run_here(settings))
}

fn run_here(settings: &Settings) -> Result<Report, BenchError> {
    let memory = WindowMemory::new(settings.window_lines)?;
    let source = Source::new();
    let messages = settings.stream_messages();
    let kernels = StoreKernel::available().into_iter().filter(|kernel| *kernel != StoreKernel::St64b);
    let mut all: Vec<Rows> = kernels.map(|kernel| Rows::new(&memory, kernel)).collect();
    for _ in 0..settings.rounds {
        for rows in &mut all {
            rows.round(&memory, &source, messages)?;
        }
    }
    let pairs: Vec<_> = all.into_iter().map(|rows| rows.figures(messages)).collect();
    let mut report = Report::default();
    let is_non_temporal = |figure: &&Figure| figure.kernel != StoreKernel::Cached.name();
    // The target is about non-temporal stores: the kernel with which this CPU sends most, against the same bare loop.
    // In bulk, as the bare loop stores, and message by message.
    for way in [0, 1] {
        if let Some(best) = fastest(pairs.iter().map(|(_, windows)| &windows[way]).filter(is_non_temporal))
            && let Some((bare, windows)) = pairs.iter().find(|(bare, _)| bare.kernel == best.kernel)
        {
            report.checks.push(Check::ratio(BENCH, &windows[way], bare, Bound::AtLeast(0.9)));
            if way == 1 {
                report.checks.push(Check::ratio(BENCH, &windows[1], &windows[3], Bound::AtLeast(20.0)));
            }
        }
    }
    report.figures =
        pairs.into_iter().flat_map(|(bare, windows)| std::iter::once(bare).chain(windows)).collect();
    Ok(report)
}
