//! What a client shows: tables for people, JSON and CSV for programs. What was measured here and what was published
//! elsewhere have columns of their own.

use std::path::Path;

use beeline_session::Times;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::published;
use super::transmit::FRAME_BYTES;
use crate::failure::Failure;
use crate::out;
use crate::ping::args::PingArgs;

/// Round trips over one wire with one size of payload. Times are measured here unless they are called published.
#[derive(Serialize)]
pub struct RoundTrips {
    pub uplink: String,
    pub payload_bytes: u32,
    pub count: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub max_ns: u64,
    /// Frames that left, and of those repeated ones; with no loss one a round trip.
    pub frames_sent: u64,
    pub repeats: u64,
    pub published_us: Option<f64>,
}

/// Sending alone.
#[derive(Serialize)]
pub struct Transmit {
    pub uplink: String,
    pub frames_in_a_row: usize,
    pub frame_bytes: usize,
    pub count: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub p50_ns_a_frame: u64,
    pub published_us_a_frame: Option<f64>,
}

/// A wire that this machine refuses.
#[derive(Serialize)]
pub struct Missing {
    pub uplink: String,
    pub why: String,
}

/// Everything a client found.
#[derive(Serialize, Default)]
pub struct Results {
    pub cpu: String,
    pub round_trips: Vec<RoundTrips>,
    pub transmit: Vec<Transmit>,
    pub not_available: Vec<Missing>,
}

impl RoundTrips {
    /// Statistics of these times, without counts of frames.
    pub fn new(uplink: &str, payload_bytes: u32, times: &Times) -> Self {
        RoundTrips {
            uplink: uplink.to_owned(),
            payload_bytes,
            count: times.len(),
            p50_ns: times.value_at_quantile(0.5),
            p99_ns: times.value_at_quantile(0.99),
            p999_ns: times.value_at_quantile(0.999),
            max_ns: times.max(),
            frames_sent: 0,
            repeats: 0,
            published_us: published::round_trip_us(payload_bytes),
        }
    }
}

impl Transmit {
    /// Statistics of these times.
    pub fn new(uplink: &str, frames: usize, times: &Times) -> Self {
        let p50_ns = times.value_at_quantile(0.5);
        Transmit {
            uplink: uplink.to_owned(),
            frames_in_a_row: frames,
            frame_bytes: FRAME_BYTES,
            count: times.len(),
            p50_ns,
            p99_ns: times.value_at_quantile(0.99),
            p50_ns_a_frame: p50_ns / frames as u64,
            published_us_a_frame: published::transmit_us_a_frame(frames),
        }
    }
}

/// Prints the results, and writes them where that was asked for.
pub fn show(args: &PingArgs, results: &Results) -> Result<(), Failure> {
    if let Some(folder) = &args.output.csv {
        write_csv(folder, results)?;
    }
    if args.output.json {
        return out::json(results);
    }
    let (cpu, source) = (&results.cpu, published::SOURCE);
    out::line(format_args!("Round trips over the wire (measured on {cpu}; published: {source})"))?;
    let mut table =
        new_table(&["up-link", "payload", "count", "p50 µs", "p99 µs", "p99.9 µs", "max µs", "published µs"]);
    for row in &results.round_trips {
        table.add_row([
            row.uplink.clone(),
            format!("{} B", row.payload_bytes),
            row.count.to_string(),
            micros(row.p50_ns),
            micros(row.p99_ns),
            micros(row.p999_ns),
            micros(row.max_ns),
            row.published_us.map_or_else(|| "-".to_owned(), |us| us.to_string()),
        ]);
    }
    for missing in &results.not_available {
        let mut row = vec![missing.uplink.clone(), String::new()];
        row.resize(8, "n/a".to_owned());
        table.add_row(row);
    }
    out::line(table)?;
    out::line(format_args!("\nFrom handing over frames of {FRAME_BYTES} B to their being done, in a row"))?;
    let mut table = new_table(&[
        "up-link",
        "frames",
        "count",
        "p50 µs",
        "p99 µs",
        "p50 µs a frame",
        "published µs a frame",
    ]);
    for row in &results.transmit {
        table.add_row([
            row.uplink.clone(),
            row.frames_in_a_row.to_string(),
            row.count.to_string(),
            micros(row.p50_ns),
            micros(row.p99_ns),
            micros(row.p50_ns_a_frame),
            row.published_us_a_frame.map_or_else(|| "-".to_owned(), |us| us.to_string()),
        ]);
    }
    out::line(table)?;
    for missing in &results.not_available {
        out::line(format_args!("\nn/a: {}: {}", missing.uplink, missing.why))?;
    }
    Ok(())
}

fn new_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Nanoseconds as microseconds with two places.
fn micros(ns: u64) -> String {
    format!("{}.{:02}", ns / 1000, ns % 1000 / 10)
}

fn write_csv(folder: &Path, results: &Results) -> Result<(), Failure> {
    let mut text =
        String::from("kind,what,uplink,bytes,frames_in_a_row,count,p50_ns,p99_ns,p999_ns,max_ns\n");
    for row in &results.round_trips {
        let RoundTrips { uplink, payload_bytes, count, p50_ns, p99_ns, p999_ns, max_ns, .. } = row;
        text += &format!(
            "measured,round trip,{uplink},{payload_bytes},1,{count},{p50_ns},{p99_ns},{p999_ns},{max_ns}\n"
        );
    }
    for row in &results.transmit {
        let Transmit { uplink, frames_in_a_row, frame_bytes, count, p50_ns, p99_ns, .. } = row;
        text += &format!(
            "measured,transmit,{uplink},{frame_bytes},{frames_in_a_row},{count},{p50_ns},{p99_ns},,\n"
        );
    }
    let path = folder.join("wire_ping.csv");
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|e| Failure::new(format!("cannot write {}", path.display())).because(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_have_two_places() {
        assert_eq!([0, 9, 12_345, 1_000_000].map(micros), ["0.00", "0.00", "12.34", "1000.00"]);
    }

    #[test]
    fn a_row_names_what_was_published_for_it() {
        let mut times = beeline_session::new_times();
        times.saturating_record(10_000);
        let row = RoundTrips::new("af-xdp eth0", 10, &times);
        assert_eq!((row.count, row.published_us), (1, Some(26.0)));
        let row = Transmit::new("af-xdp eth0", 10, &times);
        assert!((990..=1010).contains(&row.p50_ns_a_frame) && row.published_us_a_frame == Some(5.6));
    }
}
