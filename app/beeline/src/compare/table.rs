//! Results as tables that fit 100 columns.

use beeline_floor::Placement;
use comfy_table::{Cell, CellAlignment, Table, presets};

use super::results::{LatencyKind, LatencyRow, RateRow, Results, UNSTEADY_FROM};

/// Columns a table may take.
pub const WIDTH: u16 = 100;

/// Placements of which there are figures, nearest first.
pub fn placements(results: &Results) -> Vec<Placement> {
    let mut placements = distinct(results.floors.iter().map(|row| row.placement));
    placements.sort();
    placements
}

/// All tables of a run, with headings; those of each placement apart.
pub fn render(results: &Results) -> String {
    let text = |(heading, table): &(String, Table)| format!("\n{heading}\n{}", finish(table));
    tables(results).iter().map(text).collect()
}

/// The tables, each behind its heading.
pub fn tables(results: &Results) -> Vec<(String, Table)> {
    let mut tables = Vec::new();
    for placement in placements(results) {
        let cores = format!("cores {placement}");
        if results.stores.iter().any(|row| row.placement == placement) {
            let heading = format!(
                "Raw stores into a window, {cores}, Gbit/s (measured; HotOS'25 figure 2 on this CPU)"
            );
            tables.push((heading, stores(results, placement)));
        }
        for latency_kind in [LatencyKind::OneWay, LatencyKind::RoundTrip] {
            let is_shown = |row: &LatencyRow| (row.placement, row.latency_kind) == (placement, latency_kind);
            if results.latencies.iter().any(is_shown) {
                let title = title(latency_kind);
                let heading =
                    format!("{title} through the NIC process, {cores}, ns (measured: p50 / p99 / p99.9)");
                tables.push((heading, latencies(results, placement, latency_kind)));
            }
        }
        let parts =
            [("through the NIC process and back", &results.rates), ("put on the wire", &results.transmits)];
        for (part, rows) in parts {
            let rows: Vec<_> = rows.iter().filter(|row| row.placement == placement).collect();
            if !rows.is_empty() {
                let heading =
                    format!("Frames {part}, {cores} (measured: M frames/s, Gbit/s, CPU ns a frame)");
                tables.push((heading, rates(&rows)));
            }
        }
    }
    if !results.checks.is_empty() {
        let heading = "Three processes (sender, NIC, receiver): correctness only, no times".to_owned();
        tables.push((heading, checks(results)));
    }
    tables
}

/// What stands behind a figure whose rounds lie far apart.
fn mark(spread: f64) -> &'static str {
    if spread > UNSTEADY_FROM { "*" } else { "" }
}

fn title(latency_kind: LatencyKind) -> &'static str {
    match latency_kind {
        LatencyKind::OneWay => "One-way",
        LatencyKind::RoundTrip => "Round trip",
    }
}

/// A table without rows: names to the left, figures to the right.
pub fn empty(header: Vec<String>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY).set_width(WIDTH).set_header(header);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((u16::from(index > 0), 0));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn finish(table: &Table) -> String {
    format!("{table}\n")
}

/// The distinct values of a column, in order of appearance.
pub fn distinct<T: PartialEq, I: IntoIterator<Item = T>>(items: I) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

fn stores(results: &Results, placement: Placement) -> Table {
    let rows: Vec<_> = results.stores.iter().filter(|row| row.placement == placement).collect();
    let sizes = distinct(rows.iter().map(|row| row.message_bytes));
    let mut header = vec!["fence policy, kernel".to_owned(), "receiver".to_owned()];
    header.extend(sizes.iter().map(|size| format!("{size} B")));
    let mut table = empty(header);
    for (policy, kernel, receiver) in distinct(rows.iter().map(|row| (row.policy, row.kernel, row.receiver)))
    {
        let mut cells =
            vec![Cell::new(format!("{policy}, {kernel}")), Cell::new(if receiver { "yes" } else { "no" })];
        for size in &sizes {
            let row = rows.iter().find(|row| {
                (row.policy, row.kernel, row.receiver, row.message_bytes) == (policy, kernel, receiver, *size)
            });
            cells.push(Cell::new(
                row.map_or("n/a".to_owned(), |row| format!("{:.1}{}", row.goodput_gbps, mark(row.spread))),
            ));
        }
        table.add_row(cells);
    }
    table
}

fn latencies(results: &Results, placement: Placement, latency_kind: LatencyKind) -> Table {
    let rows =
        results.latencies.iter().filter(|row| (row.placement, row.latency_kind) == (placement, latency_kind));
    let rows: Vec<_> = rows.collect();
    let mut header = vec!["frame".to_owned()];
    let columns = distinct(rows.iter().map(|row| (row.interface, row.kernel)));
    header.extend(columns.iter().map(|(interface, kernel)| match *kernel {
        "-" => interface.to_string(),
        kernel => format!("{interface} ({kernel})"),
    }));
    let mut table = empty(header);
    for size in distinct(rows.iter().map(|row| row.frame_bytes)) {
        let mut cells = vec![Cell::new(format!("{size} B"))];
        for column in &columns {
            let row =
                rows.iter().find(|row| row.frame_bytes == size && (row.interface, row.kernel) == *column);
            cells.push(Cell::new(row.map_or("n/a".to_owned(), |row| {
                format!("{} / {} / {}{}", row.p50_ns, row.p99_ns, row.p999_ns, mark(row.spread))
            })));
        }
        table.add_row(cells);
    }
    table
}

fn rates(rates: &[&RateRow]) -> Table {
    let columns = distinct(rates.iter().map(|row| (row.interface, row.kernel)));
    let mut header = vec!["frame".to_owned()];
    header.extend(columns.iter().map(|(interface, kernel)| match *kernel {
        "-" => interface.to_string(),
        kernel => format!("{interface} ({kernel})"),
    }));
    let mut table = empty(header);
    for size in distinct(rates.iter().map(|row| row.frame_bytes)) {
        let mut cells = vec![Cell::new(format!("{size} B"))];
        for column in &columns {
            let row =
                rates.iter().find(|row| row.frame_bytes == size && (row.interface, row.kernel) == *column);
            cells.push(Cell::new(row.map_or("n/a".to_owned(), |row| {
                format!(
                    "{:.2} / {:.1} / {:.0}{}",
                    row.frames_per_s / 1e6,
                    row.goodput_gbps,
                    row.host_ns_per_frame,
                    mark(row.spread)
                )
            })));
        }
        table.add_row(cells);
    }
    table
}

fn checks(results: &Results) -> Table {
    let mut table = empty(["interface", "frames", "bytes", "result"].map(str::to_owned).to_vec());
    for row in &results.checks {
        table.add_row(vec![
            Cell::new(row.interface),
            Cell::new(row.frames),
            Cell::new(row.bytes),
            Cell::new(&row.result),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::results::sample::sample;
    use super::*;

    #[test]
    fn every_table_fits_100_columns() {
        let text = render(&sample());
        println!("{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH as usize, "too wide: {line}");
        }
        assert!(text.contains("mmio (cached)"), "{text}");
        let wire = text.split("Frames put on the wire, cores near").nth(1).expect("the table of the wire");
        assert!(wire.contains("98.77 / 123.4 / 1234") && !wire.contains("12.35 /"), "{wire}");
    }
}
