//! Area on UltraScale+, as Yosys maps it, and the record of it in `nic/syn/area.csv`.
//!
//! Yosys is no Vivado: it maps carries to CARRY4 and folds pipelines into SRL. So the figures are compared with
//! themselves, and shown as what they are.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs;

use serde::Deserialize;

use super::depth::longest;
use super::design;
use super::netlist::Graph;
use crate::failure::{Context, Failure, Outcome};
use crate::rtl::Tools;
use crate::rtl::parameters::Parameters;
use crate::run::root;

const FILE: &str = "nic/syn/area.csv";
/// How far a figure may be from the recorded one, in hundredths.
const DRIFT_PERCENT: u64 = 3;
/// Columns of the record and of the table, in the order of [`Area::figures`].
const COLUMNS: [&str; 8] = ["LUT", "FF", "RAMB36", "RAMB18", "URAM", "LUTRAM", "SRL", "CARRY"];

/// Cells by what they are made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Area {
    figures: [u64; COLUMNS.len()],
}

#[derive(Deserialize)]
struct Statistics {
    design: Counts,
}

#[derive(Deserialize)]
struct Counts {
    num_cells_by_type: HashMap<String, u64>,
}

/// A module as it was mapped: its area, and the LUTs between registers on the longest path of the same netlist.
#[derive(Debug, Clone, Copy)]
pub struct Mapped {
    pub area: Area,
    pub levels: u32,
}

/// Synthesises a module for UltraScale+.
pub fn measure(tools: &Tools, work: &str, top: &str, parameters: &Parameters) -> Outcome<Mapped> {
    let stem = design::file_stem(top, parameters);
    let (file, netlist) = (format!("{work}/{stem}.stat"), format!("{work}/{stem}.area.json"));
    let synthesis = "synth_xilinx -family xcup -flatten -noiopad -noclkbuf";
    tools.yosys(&format!(
        "{}; {synthesis}; tee -q -o {file} stat -json; write_json {netlist}",
        design::read_script(top, parameters)
    ))?;
    let read = |name: &str| fs::read_to_string(root().join(name)).while_doing(format!("read {name}"));
    let area = Area::parse(&read(&file)?)?;
    let graph = Graph::parse(&read(&netlist)?, top)?;
    fs::remove_file(root().join(&netlist)).while_doing(format!("remove {netlist}"))?;
    Ok(Mapped { area, levels: longest(&graph)?.inside.levels })
}

impl Area {
    /// Reads what `stat -json` writes.
    fn parse(json: &str) -> Outcome<Self> {
        let statistics: Statistics =
            serde_json::from_str(json).while_doing("understand Yosys' statistics")?;
        let mut area = Area::default();
        for (kind, count) in statistics.design.num_cells_by_type {
            if let Some((column, each)) = weight(&kind).map_err(Failure::new)? {
                area.figures[column] += count * each;
            }
        }
        Ok(area)
    }

    /// The names of the columns, as wide as the figures.
    pub fn head() -> String {
        COLUMNS.map(|column| format!("{column:>7}")).concat()
    }
}

/// The column a cell is counted in, and how many units of it the cell is: LUTRAM and SRL in LUTs. Multiplexers between
/// LUTs, buffers and constants are free.
fn weight(kind: &str) -> Result<Option<(usize, u64)>, String> {
    let counted = match kind {
        "INV" | "LUT1" | "LUT2" | "LUT3" | "LUT4" | "LUT5" | "LUT6" => (0, 1),
        "FDRE" | "FDSE" | "FDCE" | "FDPE" => (1, 1),
        "RAMB36E2" => (2, 1),
        "RAMB18E2" => (3, 1),
        "URAM288" | "URAM288_BASE" => (4, 1),
        "RAM32X1S" | "RAM64X1S" => (5, 1),
        "RAM32X1D" | "RAM64X1D" | "RAM128X1S" => (5, 2),
        "RAM32M" | "RAM64M" | "RAM128X1D" | "RAM256X1S" => (5, 4),
        "RAM32M16" | "RAM64M8" | "RAM256X1D" | "RAM512X1S" => (5, 8),
        "SRL16E" | "SRLC32E" => (6, 1),
        "CARRY4" | "CARRY8" => (7, 1),
        "MUXF7" | "MUXF8" | "MUXF9" | "BUFG" | "VCC" | "GND" | "$scopeinfo" => return Ok(None),
        other => return Err(format!("Yosys made a {other}, which the table of areas does not know")),
    };
    Ok(Some(counted))
}

impl fmt::Display for Area {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.figures.iter().try_for_each(|figure| write!(out, "{figure:>7}"))
    }
}

/// The areas that are committed, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Record {
    rows: BTreeMap<String, Area>,
}

impl Record {
    /// What is committed; nothing where there is no file yet.
    pub fn read() -> Outcome<Self> {
        let path = root().join(FILE);
        if !path.exists() {
            return Ok(Record::default());
        }
        Self::parse(&fs::read_to_string(path).while_doing(format!("read {FILE}"))?)
    }

    fn parse(csv: &str) -> Outcome<Self> {
        let mut lines = csv.lines();
        if lines.next() != Some(&*header()) {
            return Err(Failure::new(format!("{FILE} does not begin with `{}`", header())));
        }
        let mut rows = BTreeMap::new();
        for line in lines {
            let mut cells = line.split(',');
            let name = cells.next().unwrap_or_default().to_owned();
            let figures: Vec<u64> = cells.filter_map(|cell| cell.parse().ok()).collect();
            let figures = figures.try_into();
            let figures = figures.map_err(|_| Failure::new(format!("{FILE}: `{line}` is no row")))?;
            rows.insert(name, Area { figures });
        }
        Ok(Record { rows })
    }

    /// Puts a row in place of the one of that name.
    pub fn set(&mut self, name: &str, area: Area) {
        self.rows.insert(name.to_owned(), area);
    }

    /// Forgets rows that are measured no more.
    pub fn keep_only(&mut self, names: &[String]) {
        self.rows.retain(|name, _| names.contains(name));
    }

    /// Writes the file.
    pub fn write(&self) -> Outcome {
        fs::write(root().join(FILE), self.csv()).while_doing(format!("write {FILE}"))?;
        println!("  {FILE} has {} rows", self.rows.len());
        Ok(())
    }

    fn csv(&self) -> String {
        let row = |(name, area): (&String, &Area)| {
            format!("{name},{}\n", area.figures.map(|figure| figure.to_string()).join(","))
        };
        format!("{}\n{}", header(), self.rows.iter().map(row).collect::<String>())
    }

    /// Each figure that moved.
    pub fn drift(&self, name: &str, now: &Area) -> Vec<String> {
        let Some(then) = self.rows.get(name) else { return Vec::new() };
        let figures = COLUMNS.iter().zip(then.figures.iter().zip(now.figures));
        let moved = figures.filter(|(_, (then, now))| **then != *now);
        moved.map(|(column, (then, now))| format!("{column} {then} -> {now}")).collect()
    }

    /// What is wrong, if the row is missing or a figure moved too far.
    pub fn finding(&self, name: &str, now: &Area) -> Option<String> {
        let advice = "`cargo xtask rtl-synth --update` records it (`--long` for the rows of the long lane)";
        let Some(then) = self.rows.get(name) else {
            return Some(format!("{name} has no row in {FILE}; {advice}"));
        };
        let far = |then: u64, now: u64| then.abs_diff(now) * 100 > then * DRIFT_PERCENT;
        if !then.figures.iter().zip(now.figures).any(|(then, now)| far(*then, now)) {
            return None;
        }
        let drift = self.drift(name, now).join(", ");
        Some(format!(
            "{name}: its area moved by more than {DRIFT_PERCENT} %: {drift}; if it is meant to, {advice}"
        ))
    }
}

fn header() -> String {
    format!("module,{}", COLUMNS.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_summed_by_what_they_cost() {
        let json = r#"{"creator": "Yosys", "modules": {}, "design": {"num_cells": 9, "num_cells_by_type":
            {"LUT2": 3, "LUT6": 4, "INV": 1, "FDRE": 17, "RAM32M16": 37, "CARRY4": 2, "MUXF7": 5, "RAMB36E2": 1}}}"#;
        assert_eq!(Area::parse(json).unwrap().figures, [8, 17, 1, 0, 0, 296, 0, 2]);
        let unknown = json.replace("MUXF7", "DSP48E2");
        assert!(Area::parse(&unknown).unwrap_err().to_string().contains("DSP48E2"));
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut record = Record::default();
        record.set("fifo Width=8", Area { figures: [100, 17, 0, 0, 0, 8, 0, 2] });
        record.set("gone", Area::default());
        record.keep_only(&["fifo Width=8".to_owned()]);
        assert!(record.csv().ends_with("CARRY\nfifo Width=8,100,17,0,0,0,8,0,2\n"), "{}", record.csv());
        assert_eq!(Record::parse(&record.csv()).unwrap(), record);
        assert!(Record::parse("a,b\n").is_err());
        assert!(Record::parse(&format!("{}\nfifo,1,2\n", header())).is_err());
    }

    #[test]
    fn three_percent_may_drift_and_no_more() {
        let mut record = Record::default();
        record.set("fifo", Area { figures: [100, 0, 0, 0, 0, 0, 0, 0] });
        let now = |lut, ramb| Area { figures: [lut, 0, ramb, 0, 0, 0, 0, 0] };
        assert_eq!(
            (record.finding("fifo", &now(103, 0)), record.drift("fifo", &now(103, 0)).len()),
            (None, 1)
        );
        assert!(record.finding("fifo", &now(104, 0)).unwrap().contains("LUT 100 -> 104"));
        assert!(
            record.finding("fifo", &now(96, 0)).is_some() && record.finding("fifo", &now(100, 1)).is_some()
        );
        assert!(record.finding("other", &now(1, 1)).unwrap().contains("no row"));
    }
}
