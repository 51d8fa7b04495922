//! `beeline ping`: round trips of small payloads, 10 and 100 bytes as in the RAMCloud and HiStar notes.
//!
//! Two ports of one NIC, both polled by this thread: the question goes from the first through the switch to the second,
//! the answer back. One thread, so that there is one clock and the NIC has the other core for itself.

pub mod args;

use std::time::Duration;

use beeline_driver::{Receive, Transmit};
use beeline_floor::pin;
use beeline_mmio::Traffic;
use beeline_mmio::clock::{Calibration, now_ticks};
use beeline_session::{
    Frames, HEADER_BYTES, Job, NicError, NicOptions, PrivateNic, Queue, Rx, Session, SessionOptions, Times,
    Watchdog, kernel_name, new_times, padded_bytes, receive_one, send_one,
};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use args::PingArgs;

use crate::choices::check_fences;
use crate::cores;
use crate::failure::{Failure, own_program};
use crate::{machine, out, progress, waiting};

/// One line of the result.
#[derive(Serialize)]
struct Row {
    interface: &'static str,
    /// How the lines of a window left the core; `-` where there is none.
    kernel: &'static str,
    fences: &'static str,
    payload_bytes: u32,
    count: u64,
    p50_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    max_ns: u64,
    /// Upper bound of each bucket in ns, and how many round trips fell into it.
    histogram: Vec<(u64, u64)>,
}

/// Runs `beeline ping`.
pub fn run(args: &PingArgs) -> Result<(), Failure> {
    let [host_core, nic_core] = cores::two(&args.cores)?;
    check_fences(args.fences.policy, &args.interface)?;
    if args.reach.owner.is_some() && args.nic.is_none() {
        return Err(Failure::new("--owner names the user of a running NIC, and a private NIC is your own")
            .remedy("--nic NAME beside --owner, or no --owner"));
    }
    let private = match &args.nic {
        Some(_) => None,
        None => {
            let options = NicOptions {
                core: Some(nic_core),
                spin: true,
                root: args.reach.domain.root.root.clone(),
                ..NicOptions::default()
            };
            Some(PrivateNic::start(&own_program()?, &options)?)
        }
    };
    pin(host_core)?;
    let kernel = args.kernel.choose(Traffic::Latency);
    let options = match (&private, &args.nic) {
        (Some(private), _) => private.session_options(kernel),
        (None, nic) => SessionOptions {
            owner_uid: args.reach.owner,
            timeout: Duration::from_millis(args.timeout_ms.unwrap_or(0)),
            ..SessionOptions::new(args.reach.domain.config(), nic.clone().unwrap_or_default(), kernel)
        },
    };
    let what = format!("NIC {} in domain {}", options.nic, options.domain.name);
    let waiting = waiting::say_if_it_takes_long(what, options.timeout);
    let mut asking = Session::open(&options)?;
    drop(waiting);
    let mut answering = Session::open(&options)?;
    let calibration = Calibration::measure();
    let total = args.size.len() * args.interface.len();
    let bar = progress::bar(total as u64, "measurements", args.output.json);
    let mut rows = Vec::with_capacity(total);
    for interface in &args.interface {
        for size in &args.size {
            bar.set_message(format!("{interface}, {size} B"));
            let queue = Queue { fences: args.fences.policy, ..Queue::of(*interface) };
            let frame_bytes = HEADER_BYTES + *size as usize;
            let series = Series { frame_bytes, count: args.count, calibration };
            let times = asking.with_queue(queue, Ask { series, queue, answering: &mut answering })?;
            rows.push(row(queue, kernel_name(*interface, kernel), *size, &times));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    drop((asking, answering));
    if let Some(private) = private {
        private.stop()?;
    }
    show(args, &rows)
}

/// The exchange that is repeated and timed.
#[derive(Clone, Copy)]
struct Series {
    frame_bytes: usize,
    count: u64,
    calibration: Calibration,
}

/// The side that asks; it opens the side that answers and runs both.
struct Ask<'a> {
    series: Series,
    queue: Queue,
    answering: &'a mut Session,
}

impl Job for Ask<'_> {
    type Output = Times;
    type Error = Failure;

    fn run<T: Transmit>(self, session: &mut Session, tx: &mut T, rx: &mut Rx) -> Result<Times, Failure> {
        let both = Both { series: self.series, asking: session, tx, rx };
        self.answering.with_queue(self.queue, both)
    }
}

/// Both sides open: the loop that is timed.
struct Both<'a, A> {
    series: Series,
    asking: &'a mut Session,
    tx: &'a mut A,
    rx: &'a mut Rx,
}

impl<A: Transmit> Job for Both<'_, A> {
    type Output = Times;
    type Error = Failure;

    fn run<T: Transmit>(
        mut self,
        answering: &mut Session,
        tx: &mut T,
        rx: &mut Rx,
    ) -> Result<Times, Failure> {
        let Series { frame_bytes, count, calibration } = self.series;
        let (here, there) = (self.asking.mac(), answering.mac());
        let mut question = Frames::new(frame_bytes, there, here).buffer();
        let mut answer = Frames::new(frame_bytes, here, there).buffer();
        let padded_bytes = padded_bytes(frame_bytes, tx);
        let (mut expected, mut found) = (Vec::new(), Vec::with_capacity(padded_bytes));
        let mut times = new_times();
        self.check_path(&question, rx)?;
        let warm_up = count / 10 + 100;
        for number in 0..warm_up + count {
            Frames::number(&mut question, number);
            Frames::number(&mut answer, number);
            let start = now_ticks();
            send_one(self.asking, self.tx, &question)?;
            receive_one(answering, rx, &mut found)?;
            send_one(answering, tx, &answer)?;
            let end = receive_one(self.asking, self.rx, &mut found)?;
            expected.clone_from(&answer);
            expected.resize(padded_bytes, 0);
            Frames::check(&expected, &found, number)?;
            if number >= warm_up {
                times.saturating_record(calibration.to_ns(end - start) as u64);
            }
        }
        Ok(times)
    }
}

impl<A: Transmit> Both<'_, A> {
    /// Sends a frame ahead of those that are timed and sees at which port it comes out.
    fn check_path(&mut self, frame: &[u8], rx: &mut Rx) -> Result<(), Failure> {
        send_one(self.asking, self.tx, frame)?;
        let mut watchdog = Watchdog::new();
        loop {
            if rx.poll().map_err(NicError::from)?.is_some() {
                return Ok(());
            }
            if self.rx.poll().map_err(NicError::from)?.is_some() {
                return Err(Failure::new(
                    "the NIC gives every frame back to its sender, so none reaches another port",
                )
                .remedy("start the NIC without --loopback, or ping without --nic, by a private one"));
            }
            watchdog.idle(self.asking, "a frame to cross the NIC")?;
        }
    }
}

fn row(queue: Queue, kernel: &'static str, payload_bytes: u32, times: &Times) -> Row {
    Row {
        interface: queue.interface.name(),
        kernel,
        fences: queue.fences.name(),
        payload_bytes,
        count: times.len(),
        p50_ns: times.value_at_quantile(0.5),
        p99_ns: times.value_at_quantile(0.99),
        p999_ns: times.value_at_quantile(0.999),
        max_ns: times.max(),
        histogram: times
            .iter_log(32, 1.25)
            .filter(|bucket| bucket.count_since_last_iteration() > 0)
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_since_last_iteration()))
            .collect(),
    }
}

fn show(args: &PingArgs, rows: &[Row]) -> Result<(), Failure> {
    if let Some(folder) = &args.output.csv {
        write_csv(folder, rows)?;
    }
    if args.output.json {
        return out::json(&rows);
    }
    out::line(format_args!(
        "Round trips between two ports of the NIC process (measured on {})",
        machine::look(&args.cores).cpu
    ))?;
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header([
        "interface",
        "kernel",
        "fences",
        "payload",
        "count",
        "p50 ns",
        "p99 ns",
        "p99.9 ns",
        "max ns",
    ]);
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for row in rows {
        table.add_row([
            row.interface.to_owned(),
            row.kernel.to_owned(),
            row.fences.to_owned(),
            format!("{} B", row.payload_bytes),
            row.count.to_string(),
            row.p50_ns.to_string(),
            row.p99_ns.to_string(),
            row.p999_ns.to_string(),
            row.max_ns.to_string(),
        ]);
    }
    out::line(table)?;
    for row in rows {
        out::line(format_args!("\n{}, {} B payload:", row.interface, row.payload_bytes))?;
        out::text(bars(&row.histogram))?;
    }
    Ok(())
}

/// A histogram in text: buckets that hold at least one in a thousand are bars, the rest is one line.
fn bars(histogram: &[(u64, u64)]) -> String {
    const WIDTH: u64 = 60;
    let total: u64 = histogram.iter().map(|bucket| bucket.1).sum();
    let most = histogram.iter().map(|bucket| bucket.1).max().unwrap_or(1);
    let mut text = String::new();
    let mut rare = 0;
    for (upper_ns, count) in histogram {
        if count * 1000 < total {
            rare += count;
            continue;
        }
        let length = (count * WIDTH).div_ceil(most) as usize;
        text += &format!("  to {upper_ns:>8} ns {:<60} {count}\n", "▇".repeat(length));
    }
    if rare > 0 {
        text += &format!("  elsewhere {rare}\n");
    }
    text
}

fn write_csv(folder: &std::path::Path, rows: &[Row]) -> Result<(), Failure> {
    let mut text = String::from("kind,interface,kernel,fences,payload_bytes,bucket_upper_ns,round_trips\n");
    for row in rows {
        for (upper_ns, count) in &row.histogram {
            let Row { interface, kernel, fences, payload_bytes, .. } = row;
            text += &format!("measured,{interface},{kernel},{fences},{payload_bytes},{upper_ns},{count}\n");
        }
    }
    let path = folder.join("ping.csv");
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|e| Failure::new(format!("cannot write {}", path.display())).because(e))
}

#[cfg(test)]
mod tests {
    #[test]
    fn rare_buckets_are_one_line() {
        let text = super::bars(&[(100, 5000), (125, 2500), (1000, 1)]);
        assert_eq!(text.lines().count(), 3);
        assert!(text.ends_with("elsewhere 1\n"));
        assert!(text.contains(&"▇".repeat(60)));
    }
}
