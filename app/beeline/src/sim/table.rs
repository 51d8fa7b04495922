//! Results as tables that fit 100 columns, and as CSV.

use std::fmt::Write;

use comfy_table::Cell;

use super::row::{DeviceFigures, Figures, Row, SPANS};
use crate::compare::table::{distinct, empty as empty_table};

/// What a table has in its heading instead of in its rows.
#[derive(Clone, Copy, PartialEq)]
pub struct Group<'a> {
    platform: &'a str,
    set: &'a str,
    device: &'a str,
    pub arrivals: &'a str,
    cores: u16,
    devices: u16,
    adversary: Option<u64>,
}

pub fn group(row: &Row) -> Group<'_> {
    Group {
        platform: &row.platform,
        set: &row.set,
        device: &row.device,
        arrivals: &row.arrivals,
        cores: row.cores,
        devices: row.devices,
        adversary: row.adversary,
    }
}

/// A group in words.
pub fn heading(group: Group<'_>) -> String {
    let Group { platform, set, device, arrivals, cores, devices, adversary } = group;
    let mut text = platform.to_owned();
    if !set.is_empty() {
        let _ = write!(text, " with {set}");
    }
    if device != "model" {
        let _ = write!(text, ", {device}");
    }
    let _ = write!(text, ", {arrivals}, {cores} core{}", if cores == 1 { "" } else { "s" });
    if devices > 1 {
        let _ = write!(text, ", {devices} devices");
    }
    if let Some(seed) = adversary {
        let _ = write!(text, ", adversary {seed}");
    }
    text
}

/// The interface, with its fences if it has any.
pub fn label(row: &Row) -> String {
    match row.fences.as_str() {
        "-" | "none" => row.interface.clone(),
        fences => format!("{} {fences}", row.interface),
    }
}

/// All tables, with headings.
pub fn render(rows: &[Row]) -> String {
    let mut text = String::new();
    for of in distinct(rows.iter().map(group)) {
        let rows: Vec<&Row> = rows.iter().filter(|row| group(row) == of).collect();
        let _ = writeln!(text, "\n{} (simulated)", heading(of));
        for (_, table) in tables(&rows) {
            let _ = writeln!(text, "{table}");
        }
        for why in why_not(&rows) {
            let _ = writeln!(text, "n/a: {why}");
        }
    }
    text + "\n" + LEGEND
}

/// What the columns of the tables are.
pub const LEGEND: &str = "\
        p50, p99, p99.9: ns from the call (open loop: from the arrival) to the first bit on the wire.\n\
        CPU ns: time of cores a frame. P(>k): share of writes that need a span of more than k lines.\n\
        B a frame: bytes on the link at the root complex, > to the NIC, < to the host, headers included.\n\
        eff: the frames' share of them. mem: bytes of memory that the NIC reads and writes a byte of\n\
        frames. nJ: energy a frame, where the platform says what its parts use.\n";

/// The tables of a group's rows, each with what it is about.
pub fn tables(rows: &[&Row]) -> Vec<(&'static str, comfy_table::Table)> {
    let mut tables = vec![("Times and rates", speed(rows)), ("What crossed the link", cost(rows))];
    if rows.iter().any(|row| row.devices > 1) {
        tables.push(("Shares of the devices", shares(rows)));
    }
    tables
}

/// Why some rows have no figures: each reason once, with the sizes it holds at.
pub fn why_not(rows: &[&Row]) -> Vec<String> {
    let reasons = rows.iter().filter_map(|row| Some((label(row), row.why_not.as_deref()?)));
    let sentence = |(name, why): (String, &str)| {
        let is_meant = |row: &&&Row| (label(row), row.why_not.as_deref()) == (name.clone(), Some(why));
        let sizes = distinct(rows.iter().filter(is_meant).map(|row| size(row)));
        format!("{name}, {} B: {why}", sizes.join(", "))
    };
    distinct(reasons).into_iter().map(sentence).collect()
}

fn size(row: &Row) -> String {
    if row.capture.is_some() { "pcap".to_owned() } else { format!("{}", row.frame_bytes) }
}

fn cells<const N: usize>(row: &Row, of: impl Fn(&Figures) -> [String; N]) -> Vec<Cell> {
    let values = row.figures.as_ref().map_or_else(|| std::array::from_fn(|_| "n/a".to_owned()), of);
    [label(row), size(row)].into_iter().chain(values).map(Cell::new).collect()
}

fn speed(rows: &[&Row]) -> comfy_table::Table {
    let header = [
        "interface",
        "frame",
        "p50 ns",
        "p99",
        "p99.9",
        "Gbit/s",
        "M/s",
        "CPU ns",
        "P(>1)",
        "P(>8)",
        "P(>64)",
    ];
    let mut table = empty_table(header.map(str::to_owned).to_vec());
    for row in rows {
        table.add_row(cells(row, |figures| {
            let ns = |ps: u64| short(ps as f64 / 1000.0);
            let beyond = |lines: usize| {
                let disorder = figures.disorder.as_ref();
                let index = SPANS.iter().position(|span| *span == lines);
                disorder
                    .zip(index)
                    .map_or("n/a".to_owned(), |(disorder, index)| share(disorder.beyond_share(index)))
            };
            [
                ns(figures.p50_ps),
                ns(figures.p99_ps),
                ns(figures.p999_ps),
                short(figures.gbps()),
                format!("{:.3}", figures.frames_m_per_s()),
                short(figures.core_ns_per_frame()),
                beyond(1),
                beyond(8),
                beyond(64),
            ]
        }));
    }
    table
}

fn cost(rows: &[&Row]) -> comfy_table::Table {
    let header = [
        "B a frame",
        "frame",
        "MWr>",
        "MRd>",
        "CplD>",
        "DLLP>",
        "<MWr",
        "<MRd",
        "<CplD",
        "<DLLP",
        "eff %",
        "mem",
        "nJ",
    ];
    let mut table = empty_table(header.map(str::to_owned).to_vec());
    for row in rows {
        table.add_row(cells(row, |figures| {
            let [a, b, c, d] = figures.to_device.parts().map(|bytes| short(figures.per_frame(bytes)));
            let [e, f, g, h] = figures.to_host.parts().map(|bytes| short(figures.per_frame(bytes)));
            let energy = figures.energy_nj_per_frame().map_or("n/a".to_owned(), short);
            let memory = format!("{:.2}", figures.memory_bytes_per_byte());
            [a, b, c, d, e, f, g, h, format!("{:.1}", figures.efficiency_percent()), memory, energy]
        }));
    }
    table
}

/// How even several devices are: each of them is in CSV and JSON.
fn shares(rows: &[&Row]) -> comfy_table::Table {
    let header = ["a device, Gbit/s", "frame", "least", "of device", "most", "of device"];
    let mut table = empty_table(header.map(str::to_owned).to_vec());
    for row in rows {
        table.add_row(cells(row, |figures| {
            let rates = || figures.of_devices.iter().map(DeviceFigures::gbps).enumerate();
            let words = |found: Option<(usize, f64)>| {
                let (device, gbps) = found.unwrap_or_default();
                [short(gbps), device.to_string()]
            };
            let [least, slowest] = words(rates().min_by(|a, b| a.1.total_cmp(&b.1)));
            let [most, fastest] = words(rates().max_by(|a, b| a.1.total_cmp(&b.1)));
            [least, slowest, most, fastest]
        }));
    }
    table
}

/// A figure in few characters.
fn short(value: f64) -> String {
    if value >= 1000.0 {
        format!("{value:.0}")
    } else if value == 0.0 {
        "0".to_owned()
    } else {
        format!("{value:.1}")
    }
}

fn share(value: f64) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else if value < 0.001 {
        format!("{value:.0e}")
    } else {
        format!("{value:.3}")
    }
}

/// The columns of the CSV, in order.
fn columns() -> Vec<String> {
    let named = "label,platform,set,device,interface,fences,adversary,cores,devices,arrivals,frame_bytes,capture,frames_per_core,seed,\
         samples,p50_ns,p99_ns,p999_ns,most_ns,gbps,gbps_of_devices,frames_m_per_s,core_ns_per_frame,core_ns_per_byte,\
         to_device_write_bytes_per_frame,to_device_read_bytes_per_frame,to_device_answer_bytes_per_frame,\
         to_device_control_bytes_per_frame,to_host_write_bytes_per_frame,to_host_read_bytes_per_frame,\
         to_host_answer_bytes_per_frame,to_host_control_bytes_per_frame,efficiency_percent,\
         memory_bytes_per_byte,energy_nj_per_frame,span_writes,span_most_lines";
    let spans = SPANS.map(|span| format!("p_span_over_{span}"));
    named.split(',').map(str::to_owned).chain(spans).chain(["why_not".to_owned()]).collect()
}

/// The results as CSV, one line a point.
pub fn csv(rows: &[Row]) -> String {
    let mut text = columns().join(",") + "\n";
    for row in rows {
        let optional = |value: Option<String>| value.unwrap_or_default();
        let mut cells = vec![
            "simulated".to_owned(),
            quoted(&row.platform),
            quoted(&row.set),
            row.device.clone(),
            row.interface.clone(),
            row.fences.clone(),
            optional(row.adversary.map(|seed| seed.to_string())),
            row.cores.to_string(),
            row.devices.to_string(),
            row.arrivals.clone(),
            row.frame_bytes.to_string(),
            optional(row.capture.as_deref().map(quoted)),
            row.frames.to_string(),
            row.seed.to_string(),
        ];
        let figures = row.figures.as_ref().map(figure_cells);
        cells.extend(
            figures.unwrap_or_else(|| vec![String::new(); columns().len() - cells_before_figures() - 1]),
        );
        cells.push(optional(row.why_not.as_deref().map(quoted)));
        text += &(cells.join(",") + "\n");
    }
    text
}

/// Columns that say which point it is.
fn cells_before_figures() -> usize {
    columns().iter().position(|name| name == "samples").unwrap_or(0)
}

fn figure_cells(figures: &Figures) -> Vec<String> {
    let ns = |ps: u64| format!("{:.3}", ps as f64 / 1000.0);
    let mut cells = vec![
        figures.samples.to_string(),
        ns(figures.p50_ps),
        ns(figures.p99_ps),
        ns(figures.p999_ps),
        ns(figures.most_ps),
        format!("{:.4}", figures.gbps()),
        // With one device this row would repeat the one before it.
        figures.of_devices.iter().map(|of| format!("{:.4}", of.gbps())).collect::<Vec<_>>().join(" "),
        format!("{:.6}", figures.frames_m_per_s()),
        format!("{:.3}", figures.core_ns_per_frame()),
        format!("{:.5}", figures.core_ns_per_byte()),
    ];
    let parts = figures.to_device.parts().into_iter().chain(figures.to_host.parts());
    cells.extend(parts.map(|bytes| format!("{:.3}", figures.per_frame(bytes))));
    cells.push(format!("{:.3}", figures.efficiency_percent()));
    cells.push(format!("{:.4}", figures.memory_bytes_per_byte()));
    cells.push(figures.energy_nj_per_frame().map_or(String::new(), |nj| format!("{nj:.4}")));
    match &figures.disorder {
        None => cells.extend(vec![String::new(); 2 + SPANS.len()]),
        Some(disorder) => {
            cells.extend([disorder.writes.to_string(), disorder.most_lines.to_string()]);
            cells.extend((0..SPANS.len()).map(|index| format!("{:.9}", disorder.beyond_share(index))));
        }
    }
    cells
}

/// A cell that may have commas or quotes in it.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
