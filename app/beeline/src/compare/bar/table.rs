//! Results of `compare --bar` as text for a terminal of 80 columns.

use std::fmt::Write;

use bytesize::ByteSize;
use comfy_table::{Cell, Table};

use super::results::{BarFacts, BarResults, BarStoreRow};
use crate::compare::results::UNSTEADY_FROM;
use crate::compare::table::{distinct, empty};

/// Columns of everything that is printed.
const COLUMNS: usize = 80;

/// Facts, both tables, and what follows from them.
pub fn render(results: &BarResults) -> String {
    let machine = &results.machine;
    let mut text = String::new();
    let core = machine.cores.iter().map(usize::to_string).collect::<Vec<_>>().join(" and ");
    let facts = [
        format!("{} ({} CPUs), kernel {}, core {core}", machine.cpu, machine.cpus, machine.kernel),
        of_bar(&results.bar),
        of_mapping(results),
        format!("Scratched: {}.", results.restored),
    ];
    for fact in facts {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "{}", wrapped(&fact));
    }
    let _ = writeln!(
        text,
        "\nStores, Gbit/s (measured, middle of {} rounds)\n{}",
        results.rounds,
        stores(results)
    );
    if results.stores.iter().any(|row| row.spread > UNSTEADY_FROM) {
        let _ =
            writeln!(text, "* the middle half of the rounds is wider than {:.0} %", UNSTEADY_FROM * 100.0);
    }
    let _ = writeln!(text, "\nA line stored and read back, ns (measured)\n{}", reads(results));
    if let Some(summary) = summary(results) {
        let _ = writeln!(text, "\n{}", wrapped(&summary));
    }
    text
}

/// Names of memory types and kernels have hyphens that are no place to break.
fn wrapped(text: &str) -> String {
    textwrap::fill(text, textwrap::Options::new(COLUMNS).word_splitter(textwrap::WordSplitter::NoHyphenation))
}

fn of_bar(bar: &BarFacts) -> String {
    let bytes = ByteSize(bar.bytes).display().iec();
    let range = format!("{bytes} from {:#x} on", bar.offset_bytes);
    match &bar.function {
        None => format!("{}, {range}. A file: no device's figures.", bar.name),
        Some(function) => {
            let kind = if function.is_prefetchable { "prefetchable" } else { "not prefetchable" };
            let whole = ByteSize(function.region_bytes).display().iec();
            format!(
                "{} ({}:{}, {}), {whole}, {kind}, mapped {}; {range}.",
                bar.name, function.vendor, function.device, function.class, bar.mapped_as
            )
        }
    }
}

/// What the mapping is, and that it is not what was asked for, as in a guest whose hypervisor makes another thing of it.
fn of_mapping(results: &BarResults) -> String {
    let (asked, found) = (results.bar.mapped_as, &*results.mapping.memory_type);
    let more = if results.bar.is_device && found != asked {
        format!(" It should be {asked}: the figures are not those of stores to a device.")
    } else {
        String::new()
    };
    format!("Measured: {}.{more}", results.mapping.words)
}

fn stores(results: &BarResults) -> Table {
    let sizes = distinct(results.stores.iter().map(|row| row.message_bytes));
    let mut header = vec!["kernel, fences".to_owned()];
    header.extend(
        sizes.iter().map(
            |bytes| {
                if *bytes < 1024 { format!("{bytes} B") } else { format!("{} KiB", bytes / 1024) }
            },
        ),
    );
    let mut table = empty(header);
    table.set_width(COLUMNS as u16);
    for (kernel, fences) in distinct(results.stores.iter().map(|row| (row.kernel, row.fences))) {
        let mut cells = vec![Cell::new(format!("{kernel}, {fences}"))];
        cells.extend(
            sizes.iter().map(|bytes| {
                Cell::new(found(results, kernel, fences, *bytes).map_or("n/a".to_owned(), figure))
            }),
        );
        table.add_row(cells);
    }
    table
}

fn figure(row: &BarStoreRow) -> String {
    let mark = if row.spread > UNSTEADY_FROM { "*" } else { "" };
    // Three digits: a fence for each line of a slow device leaves less than one.
    match row.gbps {
        gbps if gbps < 10.0 => format!("{gbps:.2}{mark}"),
        gbps if gbps < 100.0 => format!("{gbps:.1}{mark}"),
        gbps => format!("{gbps:.0}{mark}"),
    }
}

fn found<'r>(results: &'r BarResults, kernel: &str, fences: &str, bytes: u32) -> Option<&'r BarStoreRow> {
    results.stores.iter().find(|row| (row.kernel, row.fences, row.message_bytes) == (kernel, fences, bytes))
}

fn reads(results: &BarResults) -> Table {
    let mut table = empty(["kernel", "p50", "p99", "p99.9", "lines", "wrong"].map(str::to_owned).to_vec());
    table.set_width(COLUMNS as u16);
    for row in &results.reads {
        let figures = [row.p50_ns, row.p99_ns, row.p999_ns, row.lines, row.wrong];
        table.add_row([row.kernel.to_owned()].into_iter().chain(figures.map(|figure| figure.to_string())));
    }
    table
}

/// What a fence costs the shortest messages of the kernel that stores them fastest.
fn summary(results: &BarResults) -> Option<String> {
    let shortest = results.stores.iter().map(|row| row.message_bytes).min()?;
    let unfenced = |row: &&BarStoreRow| (row.fences, row.message_bytes) == ("none", shortest);
    let best = results.stores.iter().filter(unfenced).max_by(|a, b| a.gbps.total_cmp(&b.gbps))?;
    let fenced = found(results, best.kernel, "per-message", shortest)?;
    Some(format!(
        "Messages of {shortest} B leave fastest by {}: {:.1} Gbit/s without a fence, {:.2} with one after each, {:.1} times as fast.",
        best.kernel,
        best.gbps,
        fenced.gbps,
        best.gbps / fenced.gbps
    ))
}

#[cfg(test)]
mod tests {
    use super::super::results::{BarReadRow, FunctionFacts, MappingFacts};
    use super::*;
    use crate::compare::results::Machine;

    fn sample(function: Option<FunctionFacts>) -> BarResults {
        let row = |kernel, fences, message_bytes, gbps| BarStoreRow {
            kernel,
            fences,
            message_bytes,
            gbps,
            low_gbps: gbps,
            high_gbps: gbps,
            spread: if gbps > 1000.0 { 0.5 } else { 0.0 },
        };
        let sizes = [64, 128, 256, 512, 1024, 2048, 4096, 8192];
        let mut stores = Vec::new();
        for fences in ["none", "per-wrap", "per-message", "per-line"] {
            stores.extend(
                sizes.map(|bytes| {
                    row("nt-avx512", fences, bytes, if fences == "none" { 1234.0 } else { 5.3 })
                }),
            );
        }
        stores.extend(sizes[..4].iter().map(|bytes| row("cached", "none", *bytes, 99.94)));
        BarResults {
            machine: Machine {
                cpu: "Test CPU of a maker with a long name (family 25 model 17 stepping 1)".to_owned(),
                cpus: 2,
                kernel: "6.1.0".to_owned(),
                hypervisor: String::new(),
                cores: vec![0],
            },
            command: String::new(),
            version: String::new(),
            bar: BarFacts {
                name: "0000:3b:00.0 BAR 2".to_owned(),
                is_device: function.is_some(),
                mapped_as: "write-combining",
                offset_bytes: 8192,
                bytes: 262_144,
                is_kept: true,
                function,
            },
            mapping: MappingFacts {
                memory_type: "cached".to_owned(),
                load_ns: 1.0,
                store_ns: 1.0,
                flushed_line_ns: 30.0,
                words: "this mapping is cached".to_owned(),
            },
            rounds: 7,
            seconds: 20.0,
            stores,
            reads: vec![BarReadRow {
                kernel: "nt-avx512",
                lines: 12_345_678,
                p50_ns: 650,
                p99_ns: 900,
                p999_ns: 123_456,
                wrong: 0,
            }],
            restored: "the bytes are there again".to_owned(),
        }
    }

    #[test]
    fn everything_fits_80_columns_and_says_what_was_measured() {
        let function = FunctionFacts {
            address: "0000:3b:00.0".to_owned(),
            vendor: "1d0f".to_owned(),
            device: "efa1".to_owned(),
            class: "network",
            region: 2,
            region_bytes: 4 << 20,
            is_prefetchable: true,
            driver: None,
        };
        let text = render(&sample(Some(function)));
        println!("{text}");
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in [
            "0000:3b:00.0 BAR 2 (1d0f:efa1, network), 4.0 MiB, prefetchable, mapped write-combining; 256.0 KiB from 0x2000 on",
            "nt-avx512, per-message",
            "Measured: this mapping is cached. It should be write-combining: the figures are not",
            "1234*",
            "* the middle half of the rounds is wider than 15 %",
            "1234.0 Gbit/s without a fence, 5.30 with one after each, 232.8 times",
        ] {
            assert!(words.contains(expected), "{expected}:\n{text}");
        }
        let cached = text.lines().find(|line| line.contains("cached, none")).unwrap();
        assert_eq!((cached.matches("99.9").count(), cached.matches("n/a").count()), (4, 4), "{cached}");
    }

    #[test]
    fn figures_of_a_file_are_called_no_devices() {
        let text = render(&sample(None));
        assert!(text.contains("A file: no device's figures."), "{text}");
        assert!(!text.contains("It should be"), "{text}");
    }
}
