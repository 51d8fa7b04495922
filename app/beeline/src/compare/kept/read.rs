//! A kept run, read back: what is damaged, foreign, or of two runs is refused.

use std::path::Path;

use beeline_floor::Placement;
use beeline_floor::rounds::Middle;
use beeline_mmio::StoreKernel;
use beeline_spec::Interface;
use beeline_window::FencePolicy;

use super::row::{self, Row};
use super::{CHECK, FLOOR, LATENCY, MEASURED, RATE, ROUNDS, RUN, STORES, TRANSMIT, columns};
use crate::compare::results::{
    CheckRow, DroppedRow, FloorRow, KernelRow, LatencyKind, LatencyRow, Machine, RateRow, Results, RoundRow,
    StoreRow,
};
use crate::compare::rows::{
    FRAMES_PER_S, MESSAGES_PER_S, ONTO_THE_WIRE, P50_NS, STORES_PART, THERE_AND_BACK,
};
use crate::failure::Failure;

const PARTS: [&str; 3] = [STORES_PART, THERE_AND_BACK, ONTO_THE_WIRE];
const LATENCY_KINDS: [LatencyKind; 2] = [LatencyKind::OneWay, LatencyKind::RoundTrip];

/// The run that `--csv` kept in this folder.
///
/// # Errors
/// A file cannot be read, is damaged, or is not of this run.
pub fn read(folder: &Path) -> Result<Results, Failure> {
    let run = Run { rows: row::rows(&folder.join(RUN), columns::RUN)?, folder };
    let rounds = run.file(ROUNDS, columns::ROUNDS, round)?;
    let checked = Checked { rounds: &rounds };
    let results = Results {
        machine: run.machine()?,
        command: run.value("run", "command")?.to_owned(),
        version: run.value("run", "version")?.to_owned(),
        kernels: run.kernels()?,
        dropped: run.dropped()?,
        stores: run.file(STORES, columns::STORES, |row| checked.store(row))?,
        latencies: run.file(LATENCY, columns::LATENCY, |row| checked.latency(row))?,
        rates: run.file(RATE, columns::RATE, |row| checked.rate(row, THERE_AND_BACK))?,
        transmits: run.file(TRANSMIT, columns::RATE, |row| checked.rate(row, ONTO_THE_WIRE))?,
        floors: run.file(FLOOR, columns::FLOOR, floor)?,
        checks: run.file(CHECK, columns::CHECK, check)?,
        rounds: Vec::new(),
    };
    Ok(Results { rounds, ..results })
}

/// `run.csv`, and the folder in which it lies.
struct Run<'a> {
    rows: Vec<Row>,
    folder: &'a Path,
}

impl Run<'_> {
    fn named(&self, what: &'static str) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.text("what") == what)
    }

    fn row(&self, what: &'static str, name: &str) -> Result<&Row, Failure> {
        let found = self.named(what).find(|row| row.text("name") == name);
        found.ok_or_else(|| {
            let last = self.rows.len() as u64 + 1;
            row::at(&self.folder.join(RUN), last, &format!("the file ends without a row {what},{name}"))
        })
    }

    fn value(&self, what: &'static str, name: &str) -> Result<&str, Failure> {
        Ok(self.row(what, name)?.text("value"))
    }

    /// The rows of another file of the run, as many as this one says.
    fn file<T>(
        &self,
        name: &'static str,
        columns: &'static [&'static str],
        read: impl Fn(&Row) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let path = self.folder.join(name);
        let rows = row::rows(&path, columns)?;
        let counted = self.named("rows").find(|row| row.text("name") == name);
        let expected: usize = counted.map_or(Ok(0), |row| row.count("value"))?;
        if rows.len() != expected {
            let what = format!("the file has {} rows, and {RUN} says {expected}", rows.len());
            return Err(row::at(&path, rows.len() as u64 + 1, &what));
        }
        rows.iter()
            .map(|row| {
                if columns.contains(&"kind") {
                    row.one_of("kind", &[MEASURED])?;
                }
                read(row)
            })
            .collect()
    }

    fn machine(&self) -> Result<Machine, Failure> {
        let text = |name| self.value("machine", name).map(str::to_owned);
        let cores = self.row("machine", "cores")?;
        let numbers: Result<Vec<usize>, _> = cores.text("value").split(' ').map(str::parse).collect();
        Ok(Machine {
            cpu: text("cpu")?,
            cpus: self.row("machine", "cpus")?.count("value")?,
            kernel: text("kernel")?,
            hypervisor: text("hypervisor")?,
            cores: numbers.map_err(|_| cores.wrong("value", "numbers of cores"))?,
        })
    }

    fn kernels(&self) -> Result<Vec<KernelRow>, Failure> {
        let row = |row: &Row| {
            let traffic = row.text("name").to_owned();
            let method = self.value("method", &traffic)?.to_owned();
            Ok(KernelRow { kernel: kernel(row, "value")?, traffic, method })
        };
        self.named("store kernel").map(row).collect()
    }

    fn dropped(&self) -> Result<Vec<DroppedRow>, Failure> {
        let row =
            |row: &Row| Ok(DroppedRow { part: row.one_of("name", &PARTS)?, rounds: row.count("value")? });
        self.named("rounds dropped").map(row).collect()
    }
}

/// Rows whose figures are to be the middle of what the rounds found.
struct Checked<'r> {
    rounds: &'r [RoundRow],
}

/// What a row of rounds is about.
type Subject<'a> = (&'static str, Placement, &'a str, &'static str, u32);

impl Checked<'_> {
    /// A column that is the middle of the rounds; gives it with their spread.
    fn middle(&self, row: &Row, column: &str, subject: &Subject<'_>) -> Result<f64, Failure> {
        let found = row.number(column)?;
        let rounds = self.rounds.iter();
        let of_subject = rounds.filter(|round| {
            (round.part, round.placement, round.what.as_str(), round.kernel, round.bytes) == *subject
        });
        let Some(middle) = Middle::of(of_subject.map(|round| round.value)) else {
            return Err(row.wrong(column, &format!("of this run: {ROUNDS} has no round of it")));
        };
        if found != middle.value {
            let wanted = format!("the middle of the rounds in {ROUNDS}, {}", middle.value);
            return Err(row.wrong(column, &wanted));
        }
        if row.number("spread")? != middle.spread() {
            return Err(row.wrong("spread", &format!("that of the rounds in {ROUNDS}, {}", middle.spread())));
        }
        Ok(found)
    }

    fn store(&self, row: &Row) -> Result<StoreRow, Failure> {
        let policy = row.one_of("policy", &FencePolicy::ALL.map(FencePolicy::name))?;
        let receiver = row.parse("receiver", "true or false")?;
        let (placement, kernel) = (placement(row)?, kernel(row, "kernel")?);
        let message_bytes = row.count("message_bytes")?;
        let what = crate::compare::rows::stores_name(policy, receiver);
        let subject = (STORES_PART, placement, what.as_str(), kernel, message_bytes);
        Ok(StoreRow {
            messages_per_s: self.middle(row, "messages_per_s", &subject)?,
            placement,
            policy,
            receiver,
            kernel,
            message_bytes,
            goodput_gbps: row.number("goodput_gbps")?,
            spread: row.number("spread")?,
        })
    }

    fn latency(&self, row: &Row) -> Result<LatencyRow, Failure> {
        let label = row.one_of("way", &LATENCY_KINDS.map(LatencyKind::label))?;
        let latency_kind =
            LATENCY_KINDS.into_iter().find(|kind| kind.label() == label).expect("it is one of them");
        let (placement, interface, kernel) = (placement(row)?, interface(row)?, kernel(row, "kernel")?);
        let frame_bytes = row.count("frame_bytes")?;
        let what = format!("{interface} {label}");
        self.middle(row, "p50_ns", &(THERE_AND_BACK, placement, &what, kernel, frame_bytes))?;
        Ok(LatencyRow {
            placement,
            interface,
            latency_kind,
            kernel,
            frame_bytes,
            samples: row.count("samples")?,
            p50_ns: row.count("p50_ns")?,
            p99_ns: row.count("p99_ns")?,
            p999_ns: row.count("p999_ns")?,
            spread: row.number("spread")?,
        })
    }

    fn rate(&self, row: &Row, part: &'static str) -> Result<RateRow, Failure> {
        let (placement, interface, kernel) = (placement(row)?, interface(row)?, kernel(row, "kernel")?);
        let frame_bytes = row.count("frame_bytes")?;
        let subject = (part, placement, interface.name(), kernel, frame_bytes);
        Ok(RateRow {
            frames_per_s: self.middle(row, "frames_per_s", &subject)?,
            placement,
            interface,
            kernel,
            frame_bytes,
            burst: row.count("burst")?,
            frames: row.count("frames")?,
            goodput_gbps: row.number("goodput_gbps")?,
            host_ns_per_frame: row.number("host_ns_per_frame")?,
            spread: row.number("spread")?,
        })
    }
}

fn floor(row: &Row) -> Result<FloorRow, Failure> {
    Ok(FloorRow {
        part: row.one_of("part", &PARTS)?,
        placement: placement(row)?,
        rounds: row.count("rounds")?,
        bare_line_ns: row.number("bare_line_ns")?,
        bare_copy_ns: row.number("bare_copy_ns")?,
    })
}

fn check(row: &Row) -> Result<CheckRow, Failure> {
    Ok(CheckRow {
        interface: interface(row)?,
        frames: row.count("frames")?,
        bytes: row.count("bytes")?,
        result: row.text("result").to_owned(),
    })
}

fn round(row: &Row) -> Result<RoundRow, Failure> {
    Ok(RoundRow {
        part: row.one_of("part", &PARTS)?,
        placement: placement(row)?,
        round: row.count("round")?,
        bare_line_ns: row.number("bare_line_ns")?,
        what: row.text("what").to_owned(),
        kernel: kernel(row, "kernel")?,
        bytes: row.count("bytes")?,
        value: row.number("value")?,
        unit: row.one_of("unit", &[MESSAGES_PER_S, P50_NS, FRAMES_PER_S])?,
    })
}

fn placement(row: &Row) -> Result<Placement, Failure> {
    let all = [Placement::Near, Placement::Far, Placement::Shared];
    let name = row.one_of("placement", &all.map(Placement::name))?;
    Ok(all.into_iter().find(|placement| placement.name() == name).expect("it is one of them"))
}

fn interface(row: &Row) -> Result<Interface, Failure> {
    let name = row.one_of("interface", &Interface::ALL.map(Interface::name))?;
    Ok(Interface::ALL.into_iter().find(|interface| interface.name() == name).expect("it is one of them"))
}

/// A store kernel, of whatever CPU the run was on; `-` where there is none.
fn kernel(row: &Row, column: &str) -> Result<&'static str, Failure> {
    let names: Vec<&'static str> = StoreKernel::ALL.into_iter().map(StoreKernel::name).chain(["-"]).collect();
    row.one_of(column, &names)
}

#[cfg(test)]
mod tests;
