//! The fence table: what a fence after each 64-byte message waits for, as a hypothesis a column, beside what was published.
//!
//! A fence costs about 90 ns on Intel servers and 512 on an EPYC; one mechanism that explains both is worth more than two
//! constants. Each column runs the platform as it is, but for `core.fence_waits_for`.

use serde::Serialize;

use crate::published::{Row, RowId};
use crate::quantity::{Fence, Quantity};
use crate::simulator::{Replacement, Setting, Simulator};

/// Whose acknowledgement a fence may wait for, besides empty buffers.
pub const HYPOTHESES: [&str; 4] = ["none", "uncore", "root-complex", "device"];
/// The parameter that says it.
pub const KEY: &str = "core.fence_waits_for";
/// Platforms whose fenced line was published, and the row that says it in time.
const PUBLISHED: [(&str, &str); 2] = [("xeon-v100", "r0624"), ("epyc-7543-cx6dx", "r0056")];

/// A platform under every hypothesis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FenceRow {
    pub platform: String,
    /// The published row.
    pub row: RowId,
    /// ns a fenced line, published.
    pub published_ns: f64,
    /// Setting in the platform file.
    pub chosen: Option<String>,
    /// ns a fenced line under each of [`HYPOTHESES`], where it could be measured.
    pub ours_ns: Vec<Option<f64>>,
}

/// Returns a row for each platform whose fenced line was published, measured under every hypothesis.
pub fn table(simulator: &mut dyn Simulator, rows: &[Row]) -> Vec<FenceRow> {
    let cards = simulator.platforms();
    let mut table = Vec::new();
    for (platform, id) in PUBLISHED {
        let row = rows.iter().find(|row| row.id == id.into());
        let value = row.and_then(|row| row.value().zip(row.unit()));
        let Some((value, unit)) = value else { continue };
        let card = cards.iter().find(|card| card.name == platform);
        let chosen = card.and_then(|card| card.parameter(KEY)).and_then(|parameter| match &parameter.value {
            Setting::Word(word) => Some(word.clone()),
            Setting::Number(_) => None,
        });
        let ours_ns = HYPOTHESES.map(|word| {
            let replacement = Replacement { key: KEY.to_owned(), value: Setting::Word(word.to_owned()) };
            let fenced = Quantity::StoreTime { bytes: 64, fence: Fence::PerMessage };
            simulator.measure_with(platform, &[replacement], &fenced).ok()
        });
        table.push(FenceRow {
            platform: platform.to_owned(),
            row: id.into(),
            published_ns: value * unit.size,
            chosen,
            ours_ns: ours_ns.to_vec(),
        });
    }
    table
}
