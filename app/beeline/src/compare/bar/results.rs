//! What `compare --bar` measured, for tables and JSON.

use beeline_link_bar::{MappedAs, Restored, Scratch};
use beeline_mmio::selftest::MappingReport;
use serde::Serialize;

use crate::compare::results::Machine;

/// Everything one run measured, with what is needed to judge it.
#[derive(Clone, Debug, Serialize)]
pub struct BarResults {
    pub machine: Machine,
    /// The command line that made it.
    pub command: String,
    /// Version of the program.
    pub version: String,
    pub bar: BarFacts,
    pub mapping: MappingFacts,
    pub rounds: u32,
    /// What all rounds were to take together.
    pub seconds: f64,
    pub stores: Vec<BarStoreRow>,
    pub reads: Vec<BarReadRow>,
    /// What became of the bytes that were there before, in words.
    pub restored: String,
}

/// What was stored into.
#[derive(Clone, Debug, Serialize)]
pub struct BarFacts {
    pub name: String,
    /// Whether there is a device: figures of a plain file are those of this machine's memory.
    pub is_device: bool,
    pub mapped_as: &'static str,
    pub offset_bytes: u64,
    pub bytes: u64,
    /// Whether what was there could be read, and is restored.
    pub is_kept: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionFacts>,
}

/// The function of a BAR.
#[derive(Clone, Debug, Serialize)]
pub struct FunctionFacts {
    pub address: String,
    pub vendor: String,
    pub device: String,
    pub class: &'static str,
    pub region: u8,
    pub region_bytes: u64,
    pub is_prefetchable: bool,
    pub driver: Option<String>,
}

/// What the CPU makes of the mapping, measured.
#[derive(Clone, Debug, Serialize)]
pub struct MappingFacts {
    pub memory_type: String,
    pub load_ns: f64,
    pub store_ns: f64,
    pub flushed_line_ns: f64,
    #[serde(skip)]
    pub words: String,
}

/// Stores of messages of one size by one kernel under one fence policy.
#[derive(Clone, Debug, Serialize)]
pub struct BarStoreRow {
    pub kernel: &'static str,
    pub fences: &'static str,
    pub message_bytes: u32,
    /// Middle of the rounds.
    pub gbps: f64,
    pub low_gbps: f64,
    pub high_gbps: f64,
    /// Width of the middle half of the rounds, as a share of the middle.
    pub spread: f64,
}

/// Lines that were stored by one kernel and read back.
#[derive(Clone, Debug, Serialize)]
pub struct BarReadRow {
    pub kernel: &'static str,
    pub lines: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    /// Lines that read back otherwise than they were stored.
    pub wrong: u64,
}

impl BarFacts {
    pub fn of(scratch: &Scratch) -> Self {
        let function = scratch.function().and_then(|(function, index)| {
            let region = function.region(index)?;
            Some(FunctionFacts {
                address: function.address.to_string(),
                vendor: format!("{:04x}", function.vendor),
                device: format!("{:04x}", function.device),
                class: function.class_name(),
                region: index,
                region_bytes: region.bytes,
                is_prefetchable: region.is_prefetchable,
                driver: function.driver.clone(),
            })
        });
        BarFacts {
            name: scratch.title().to_owned(),
            is_device: function.is_some(),
            mapped_as: match scratch.mapped_as() {
                MappedAs::WriteCombining => "write-combining",
                MappedAs::Uncached => "uncached",
                MappedAs::File => "file",
            },
            offset_bytes: scratch.offset_bytes(),
            bytes: scratch.region().bytes() as u64,
            is_kept: scratch.is_kept(),
            function,
        }
    }
}

impl MappingFacts {
    pub fn of(report: &MappingReport) -> Self {
        MappingFacts {
            memory_type: report.memory_type.to_string(),
            load_ns: report.load_ns,
            store_ns: report.store_ns,
            flushed_line_ns: report.flushed_line_ns,
            words: report.to_string(),
        }
    }
}

/// What became of the bytes that were there before.
pub fn in_words(restored: Restored) -> String {
    match restored {
        Restored::AsBefore => "the bytes that were there are there again, as was read back".to_owned(),
        Restored::Differs { first_offset_bytes, words } => format!(
            "the bytes that were there were stored again, but {words} words read back otherwise, the first at {first_offset_bytes:#x} of \
             the range: the device changes them"
        ),
        Restored::NotKept => {
            "the bytes that were there are lost: what is stored there does not read back, so they could not be kept".to_owned()
        }
    }
}
