//! Our figure for every row: each quantity is measured once for its row, each formula computed behind what it needs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::error::Error;
use crate::formula::{Formula, Variable};
use crate::moves::Move;
use crate::published::{Row, RowId};
use crate::quantity::Quantity;
use crate::registry::{Class, Entry, Registry};
use crate::shape::Finding;
use crate::simulator::{Card, NotModelled, Replacement, Simulator};
use crate::unit::Unit;

/// Our side of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ours {
    /// A figure in the row's printed unit.
    Figure(f64),
    /// A shape that was tested.
    Shape(Finding),
    /// No figure, and why.
    None(String),
}

impl Ours {
    /// Returns our figure, or `None` where the row has none.
    pub fn figure(&self) -> Option<f64> {
        match self {
            Ours::Figure(value) => Some(*value),
            Ours::Shape(_) | Ours::None(_) => None,
        }
    }
}

/// A published row beside ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowResult {
    /// Name of the row.
    pub id: RowId,
    /// Document it stands in.
    pub source: String,
    /// Which of the five sources, 0 to 4.
    pub seed: Option<u8>,
    /// Section or figure of the document.
    pub section: String,
    /// The source's words for the quantity, with the size.
    pub what: String,
    /// Platforms it was run on.
    pub machines: Vec<String>,
    pub class: Class,
    /// Whether a constant of a platform was solved from it, or from a row that is not independent of it.
    pub was_fitted: bool,
    pub printed: String,
    /// The printed unit.
    pub unit: String,
    pub published: Option<f64>,
    /// Our side.
    pub ours: Ours,
    /// What the arithmetic gives that implies the row, if one does.
    pub implied: Option<f64>,
    /// Our figures before, oldest first: the row moved after it had been set beside the published one.
    pub seen_before: Vec<Move>,
    /// (ours - published) / published, in percent.
    pub error_percent: Option<f64>,
    /// Whether a range or limit holds, or a computed figure is as near as its entry says.
    pub is_inside: Option<bool>,
    /// What in the source disagrees with what; which size stands for the printed words; why there is nothing.
    pub notes: Vec<String>,
}

/// Measures with some parameters of one platform replaced: for leaving that platform out.
pub struct Bench<'a> {
    simulator: &'a mut dyn Simulator,
    /// Platform and its replacements.
    left_out: Option<(&'a str, &'a [Replacement])>,
}

impl<'a> Bench<'a> {
    /// Every platform as its file has it.
    pub fn new(simulator: &'a mut dyn Simulator) -> Self {
        Bench { simulator, left_out: None }
    }

    /// Measures on one platform with parameters replaced.
    pub fn without(
        simulator: &'a mut dyn Simulator,
        platform: &'a str,
        replacements: &'a [Replacement],
    ) -> Self {
        Bench { simulator, left_out: Some((platform, replacements)) }
    }

    fn measure(&mut self, platform: &str, quantity: &Quantity) -> Result<f64, NotModelled> {
        let replacements = match self.left_out {
            Some((name, replacements)) if name == platform => replacements,
            _ => &[],
        };
        let value = self.simulator.measure_with(platform, replacements, quantity)?;
        if value.is_finite() { Ok(value) } else { Err(NotModelled::because(format!("measured {value}"))) }
    }
}

/// Why a figure could not be had.
enum Missing {
    Formula(Error),
    Modelled(NotModelled),
}

impl From<Error> for Missing {
    fn from(error: Error) -> Self {
        Missing::Formula(error)
    }
}

impl From<NotModelled> for Missing {
    fn from(error: NotModelled) -> Self {
        Missing::Modelled(error)
    }
}

/// Our figure for a row, in its printed unit. `done` has the figures of rows that a formula may use.
pub fn figure(
    bench: &mut Bench<'_>,
    row: &Row,
    entry: &Entry,
    rows: &[Row],
    done: &BTreeMap<RowId, f64>,
) -> Result<f64, String> {
    let mut measured = BTreeMap::new();
    for (name, machine, quantity) in entry.measures() {
        let machine = machine.ok_or("no platform")?;
        let value = bench.measure(machine, quantity).map_err(|error| error.why)?;
        let unit = row.unit().filter(|unit| unit.base == quantity.base());
        measured.insert(name.to_owned(), value / unit.map_or(1.0, |unit: Unit| unit.size));
    }
    let Some(text) = &entry.formula else {
        return measured.into_values().next().ok_or_else(|| "nothing of ours to compare".to_owned());
    };
    let value = |variable: &Variable| -> Result<f64, Missing> {
        let found = match variable {
            Variable::Published(id) => rows.iter().find(|row| row.id == *id).and_then(Row::value),
            Variable::Ours(id) => done.get(id).copied(),
            Variable::Measured(name) => measured.get(name).copied(),
        };
        found.ok_or_else(|| NotModelled::because(format!("`{text}` needs a figure that is missing")).into())
    };
    Formula::read(text).map_err(Missing::from).and_then(|formula| formula.compute(value)).map_err(|missing| {
        match missing {
            Missing::Formula(error) => error.to_string(),
            Missing::Modelled(error) => error.why,
        }
    })
}

/// Evaluates all rows. Rows whose formulas use figures of ours follow those they use. `moves` are those of earlier runs.
pub fn all(
    simulator: &mut dyn Simulator,
    registry: &Registry,
    rows: &[Row],
    moves: &[Move],
) -> Vec<RowResult> {
    let cards = simulator.platforms();
    let fitted = with_dependents(registry, cards.iter().flat_map(Card::fit_set).collect());
    let mut done = BTreeMap::new();
    let mut failed: BTreeMap<RowId, String> = BTreeMap::new();
    let mut waiting: Vec<&Row> = rows.iter().collect();
    while !waiting.is_empty() {
        let before = waiting.len();
        waiting.retain(|row| {
            let Some(entry) = registry.entries.get(&row.id) else { return false };
            if needs(entry).iter().any(|id| !done.contains_key(id) && !failed.contains_key(id)) {
                return true;
            }
            match figure(&mut Bench::new(simulator), row, entry, rows, &done) {
                Ok(value) => _ = done.insert(row.id.clone(), value),
                Err(why) => _ = failed.insert(row.id.clone(), why),
            }
            false
        });
        // Formulas that use each other would wait for ever.
        if waiting.len() == before {
            failed.extend(waiting.drain(..).map(|row| (row.id.clone(), "a circle of formulas".to_owned())));
        }
    }
    let mut results = Vec::new();
    for row in rows {
        let Some(entry) = registry.entries.get(&row.id) else { continue };
        let ours = match (&entry.shape, done.get(&row.id)) {
            (Some(shape), _) => match shape.test(simulator, entry.machine.as_deref()) {
                Ok(finding) => Ours::Shape(finding),
                Err(error) => Ours::None(error.why),
            },
            (None, Some(value)) => Ours::Figure(*value),
            (None, None) => Ours::None(reason(entry, failed.get(&row.id))),
        };
        let implied = implied(entry, rows);
        let seen_before = moves.iter().filter(|moved| moved.id == row.id).cloned().collect();
        let was_fitted = fitted.contains(&row.id);
        results.push(RowResult { implied, seen_before, was_fitted, ..result(row, entry, ours) });
    }
    results
}

/// The fit set, and the rows that rows of it are not independent of: who knows one knows the other.
pub fn with_dependents<'a>(registry: &'a Registry, fit_set: BTreeSet<&'a RowId>) -> BTreeSet<&'a RowId> {
    let behind = |id: &&'a RowId| registry.entries.get(*id).map_or(&[][..], |entry| &entry.same_as[..]);
    let dependents: Vec<&RowId> = fit_set.iter().flat_map(behind).collect();
    fit_set.into_iter().chain(dependents).collect()
}

/// Rows whose figures an entry's formula uses.
fn needs(entry: &Entry) -> Vec<RowId> {
    let formula = entry.formula.as_deref().and_then(|text| Formula::read(text).ok());
    let variables = formula.map(|formula| formula.variables()).unwrap_or_default();
    variables
        .into_iter()
        .filter_map(|variable| match variable {
            Variable::Ours(id) => Some(id),
            Variable::Published(_) | Variable::Measured(_) => None,
        })
        .collect()
}

fn reason(entry: &Entry, failed: Option<&String>) -> String {
    let listed = match entry.class {
        Class::Lost => Some(format!("lost in the text: {}", entry.why.as_deref().unwrap_or_default())),
        Class::NotModelled => entry.why.clone(),
        Class::Input | Class::Said if entry.formula.is_none() && entry.quantity.is_none() => {
            Some(String::new())
        }
        Class::SameAs if entry.formula.is_none() && entry.quantity.is_none() => {
            Some("the same figure".to_owned())
        }
        _ => None,
    };
    listed.or_else(|| failed.cloned()).unwrap_or_default()
}

/// What the arithmetic gives that implies an entry.
fn implied(entry: &Entry, rows: &[Row]) -> Option<f64> {
    let formula = Formula::read(entry.implied_by.as_deref()?).ok()?;
    let value = |variable: &Variable| -> Result<f64, Error> {
        let Variable::Published(id) = variable else { return Ok(f64::NAN) };
        Ok(rows.iter().find(|row| row.id == *id).and_then(Row::value).unwrap_or(f64::NAN))
    };
    formula.compute(value).ok()
}

/// The result of a row, but for what other rows and earlier runs say of it.
fn result(row: &Row, entry: &Entry, ours: Ours) -> RowResult {
    let published = row.value();
    // A limit is held or not; how far below "up to" a figure is, is no error.
    let compared = published.filter(|value| *value != 0.0 && entry.class != Class::Contained);
    let error_percent =
        ours.figure().zip(compared).map(|(ours, published)| 100.0 * (ours - published) / published.abs());
    let is_inside = match entry.class {
        Class::Contained => ours
            .figure()
            .zip(crate::registry::bounds(row, entry))
            .map(|(ours, (least, most))| (least..=most).contains(&ours)),
        Class::Computed => error_percent
            .map(|error| error.abs() <= entry.within_percent.unwrap_or_else(|| rounding_percent(row))),
        _ => None,
    };
    let mut notes = Vec::new();
    notes.extend(entry.size.iter().map(|size| format!("size: {size}")));
    if !entry.same_as.is_empty() {
        let ids: Vec<&str> = entry.same_as.iter().map(|id| id.0.as_str()).collect();
        notes.push(format!("not independent of {}", ids.join(", ")));
    }
    notes.extend(
        entry
            .implied_by
            .iter()
            .map(|arithmetic| format!("follows from declared or fitted rows: {arithmetic}")),
    );
    notes.extend(
        entry.measures().iter().filter_map(|(_, _, quantity)| quantity.outside_of_run().map(str::to_owned)),
    );
    notes.extend(entry.disagrees.clone());
    notes.extend(entry.remark.clone());
    RowResult {
        id: row.id.clone(),
        source: row.source.clone(),
        seed: row.seed(),
        section: row.figure_section.clone(),
        what: match row.message_size.as_str() {
            "" => row.quantity.clone(),
            size if size.bytes().all(|byte| byte.is_ascii_digit()) => format!("{}, {size} B", row.quantity),
            size => format!("{}, {size}", row.quantity),
        },
        machines: entry.machines(),
        class: entry.class,
        was_fitted: false,
        printed: row.printed.clone(),
        unit: row.printed_unit.clone(),
        published,
        ours,
        implied: None,
        seen_before: Vec::new(),
        error_percent,
        is_inside,
        notes,
    }
}

/// What rounding a number as printed can change, in percent of it: half of its last digit, and the twentieth of a percent that
/// rounding a rate of the link before it was used changes.
fn rounding_percent(row: &Row) -> f64 {
    let digits = row.printed.trim_end_matches(|c: char| !c.is_ascii_digit());
    let decimals = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    // Numbers such as 125000000.0 are printed with a decimal that says nothing.
    let half = if digits.ends_with(".0") { 0.5 } else { 0.5 * 10f64.powi(-(decimals as i32)) };
    let value = row.value().unwrap_or(f64::INFINITY).abs();
    100.0 * half / value + 0.05
}
