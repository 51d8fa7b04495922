//! Reports as a table and as raw CSV.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::{BenchError, Bound, Check, Failed, Figure, Missing, Report, Value};

/// The report as lines of at most 100 columns.
pub fn to_table(report: &Report) -> String {
    let mut lines = vec![format!("{:17} {:4} {:34} {:9} {:>32}", "bench", "at", "path", "kernel", "value")];
    lines.extend(report.figures.iter().map(figure_line));
    lines.extend(report.missing.iter().map(missing_line));
    lines.extend(report.checks.iter().map(check_line));
    lines.extend(report.failed.iter().map(|Failed { bench, why }| format!("FAIL  {bench}: {why}")));
    lines.extend(report.notes.iter().map(|note| format!("note  {note}")));
    lines.push(String::new());
    lines.join("\n")
}

fn missing_line(missing: &Missing) -> String {
    let Missing { bench, name, why } = missing;
    format!("{bench:17} {:4} {name:34} n/a: {why}", "")
}

fn check_line(check: &Check) -> String {
    let Check { placement, target, found, bound, pass, .. } = check;
    let outcome = if *pass { "pass" } else { "MISS" };
    let target = match placement.as_str() {
        "" => target.clone(),
        placement => format!("{placement}: {target}"),
    };
    match bound {
        Bound::AtLeast(least) => format!("{outcome}  {target}: {found:.2}, at least {least:.2}"),
        Bound::AtMost(most) => format!("{outcome}  {target}: {found:.2}, at most {most:.2}"),
        Bound::WithinMs(most) => format!("{outcome}  {target}: {found:.2} ms, at most {most} ms"),
        Bound::AtLeastMillions(least) => format!("{outcome}  {target}: {found:.1} M/s, at least {least} M/s"),
        Bound::Shown => format!("shown {target}: {found:.2}"),
    }
}

fn figure_line(figure: &Figure) -> String {
    let value = match figure.value {
        Value::Rate { best_per_second, median_per_second } => {
            let (scale, unit) = if best_per_second < 1e6 { (1e3, 'K') } else { (1e6, 'M') };
            format!("{:.1} {unit}/s, best {:.1}", median_per_second / scale, best_per_second / scale)
        }
        Value::Latency { p50_ns, p99_ns, p999_ns } => {
            format!("p50 {p50_ns:.0} p99 {p99_ns:.0} p99.9 {p999_ns:.0} ns")
        }
        Value::Delay { p50_ns, p99_ns, worst_ns } => {
            let [p50, p99, worst] = [p50_ns, p99_ns, worst_ns].map(|ns| ns / 1e6);
            format!("p50 {p50:.2} p99 {p99:.1} max {worst:.1} ms")
        }
    };
    let Figure { bench, placement, name, kernel, .. } = figure;
    format!("{bench:17} {placement:4} {name:34} {kernel:9} {value:>32}")
}

/// Writes the raw samples, one file for each figure, and `summary.csv`; gives the files.
///
/// # Errors
/// [`BenchError::Write`].
pub fn write_csv(report: &Report, folder: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| BenchError::Write { path, error }
    };
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    let summary = folder.join("summary.csv");
    write_summary(report, &summary).map_err(failed(&summary))?;
    let mut files = vec![summary];
    for figure in &report.figures {
        let placement =
            if figure.placement.is_empty() { String::new() } else { format!("_{}", figure.placement) };
        let name = format!("{}_{}_{}{placement}.csv", figure.bench, figure.name, figure.kernel);
        let name: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' })
            .collect();
        let path = folder.join(name);
        write_samples(figure, &path).map_err(failed(&path))?;
        files.push(path);
    }
    Ok(files)
}

fn write_summary(report: &Report, path: &Path) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "bench,path,kernel,memory,placement,size_bytes,messages_a_round,rounds,quantity,value")?;
    for figure in &report.figures {
        let Figure { bench, name, kernel, memory, placement, size_bytes, count, rounds, .. } = figure;
        let rounds = rounds.len();
        let quantities = match figure.value {
            Value::Rate { best_per_second, median_per_second } => {
                vec![("median_per_second", median_per_second), ("best_per_second", best_per_second)]
            }
            Value::Latency { p50_ns, p99_ns, p999_ns } => {
                vec![("p50_ns", p50_ns), ("p99_ns", p99_ns), ("p99.9_ns", p999_ns)]
            }
            Value::Delay { p50_ns, p99_ns, worst_ns } => {
                vec![("p50_ns", p50_ns), ("p99_ns", p99_ns), ("worst_ns", worst_ns)]
            }
        };
        for (quantity, value) in quantities {
            writeln!(
                out,
                "{bench},\"{name}\",{kernel},\"{memory}\",{placement},{size_bytes},{count},{rounds},{quantity},{value}"
            )?;
        }
    }
    for Missing { bench, name, .. } in &report.missing {
        writeln!(out, "{bench},\"{name}\",-,-,,,,,n/a,")?;
    }
    out.flush()
}

fn write_samples(figure: &Figure, path: &Path) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let unit = match figure.value {
        Value::Rate { .. } => "per_second",
        Value::Latency { .. } | Value::Delay { .. } => "ns",
    };
    writeln!(out, "sample,{unit}")?;
    for (index, sample) in figure.samples.iter().enumerate() {
        writeln!(out, "{index},{sample}")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Latencies;
    use crate::figure::Row;

    fn row() -> Row<'static> {
        Row { bench: "b", name: "a path, 1/2", kernel: "-", memory: "m, n", size_bytes: 64, count: 3 }
    }

    fn report() -> Report {
        let row = row();
        let mut latencies = Latencies::new();
        latencies.add_round(&[100.0, 200.0, 300.0]);
        let delay = Figure::delay(row, vec![vec![1.5e6, 2.5e6, 234.5e6]]);
        let figures = vec![Figure::rate(row, vec![1e6, 3e6, 2e6]), Figure::latency(row, latencies), delay];
        let checks = vec![
            Check::ratio("b", &figures[0], &figures[0], Bound::AtLeast(1.5)),
            Check::ratio("b", &figures[0], &figures[0], Bound::Shown),
            Check::limit("b", &figures[2], 50.0),
            Check::rate("b", &figures[0], 1.5),
        ];
        let [bench, name, why] = ["b", "a rival", "not installed"].map(str::to_owned);
        Report { figures, checks, missing: vec![Missing { bench, name, why }], ..Report::default() }
    }

    #[test]
    fn a_table_fits_100_columns_and_tells_a_miss() {
        let table = to_table(&report());
        assert!(table.lines().all(|line| line.len() <= 100), "{table}");
        assert!(table.contains("2.0 M/s, best 3.0") && table.contains("p50 200 p99 300"), "{table}");
        let slow = Figure::rate(row(), vec![4000.0, 5500.0]);
        assert!(figure_line(&slow).ends_with("5.5 K/s, best 5.5"), "{}", figure_line(&slow));
        assert!(table.contains("p50 2.50 p99 234.5 max 234.5 ms"), "{table}");
        assert!(table.contains("MISS  a path, 1/2 / a path, 1/2: 1.00, at least 1.50"), "{table}");
        assert!(table.contains("shown a path, 1/2 / a path, 1/2: 1.00\n"), "{table}");
        assert!(table.contains("pass  a path, 1/2: 2.0 M/s, at least 1.5 M/s"), "{table}");
        assert!(table.contains("a rival                            n/a: not installed"), "{table}");
        assert!(table.contains("MISS  a path, 1/2, worst: 234.50 ms, at most 50 ms"), "{table}");
    }

    #[test]
    fn raw_samples_are_kept() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let mut report = report();
        report.figures.truncate(1);
        let files = write_csv(&report, folder.path())?;
        assert_eq!(files.len(), 2);
        let summary = std::fs::read_to_string(&files[0])?;
        assert!(
            summary.contains("b,\"a path, 1/2\",-,\"m, n\",,64,3,3,median_per_second,2000000"),
            "{summary}"
        );
        assert!(summary.ends_with("b,\"a rival\",-,-,,,,,n/a,\n"), "{summary}");
        assert_eq!(
            std::fs::read_to_string(&files[1])?,
            "sample,per_second\n0,1000000\n1,3000000\n2,2000000\n"
        );
        Ok(())
    }
}
