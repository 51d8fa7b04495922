//! Leave-one-platform-out: how far a platform's rows are when nothing was fitted for it.
//!
//! The platform's knobs (fitted, and assumed but not shared) take the values of its nearest kin: of the other platforms
//! of its kind, the one that includes most of the same parts; of those, the one whose link's generation is nearest; of
//! those, the first by name. Its declared inputs and the parts it shares stay. A knob that the kin does not have stays
//! too and is named, as is a shared parameter that was solved from the platform's own rows: for those the error is not
//! one of leaving out.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::evaluate::{Bench, figure};
use crate::published::{Row, RowId};
use crate::registry::{Class, Registry};
use crate::score::{NEAR_PERCENT, median};
use crate::simulator::{Card, Replacement, Simulator};

/// A platform left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOut {
    pub platform: String,
    /// Whose knobs it ran with; none has kin of its kind.
    pub kin: Option<String>,
    /// Knobs that were replaced.
    pub replaced: Vec<Replacement>,
    /// Knobs and shared parameters that could not be.
    pub kept: Vec<String>,
    /// Errors of its scored rows then, percent; `None` where there was no figure.
    pub errors_percent: BTreeMap<RowId, Option<f64>>,
    /// Median of their absolute values.
    pub median_percent: Option<f64>,
}

/// The errors of all platforms that were left out. A row that compares two platforms is in it once for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Errors that there are.
    pub rows: usize,
    /// Median of their absolute values, percent.
    pub median_percent: Option<f64>,
    /// Share that is at most [`NEAR_PERCENT`], percent.
    pub near_percent: Option<f64>,
}

/// Sums up what leaving out gave.
pub fn summary(left_out: &[LeftOut]) -> Summary {
    let errors = left_out.iter().flat_map(|left| left.errors_percent.values().flatten());
    let mut sorted: Vec<f64> = errors.map(|error| error.abs()).collect();
    sorted.sort_by(f64::total_cmp);
    let near = sorted.iter().filter(|error| **error <= NEAR_PERCENT).count();
    Summary {
        rows: sorted.len(),
        median_percent: median(&sorted),
        near_percent: (!sorted.is_empty()).then(|| 100.0 * near as f64 / sorted.len() as f64),
    }
}

/// Leaves out each platform that has scored rows.
pub fn all(simulator: &mut dyn Simulator, registry: &Registry, rows: &[Row]) -> Vec<LeftOut> {
    let cards = simulator.platforms();
    let mut results = Vec::new();
    for card in &cards {
        let own: Vec<&Row> = rows
            .iter()
            .filter(|row| {
                let entry = registry.entries.get(&row.id);
                entry.is_some_and(|e| e.class == Class::Scored && e.machines().contains(&card.name))
            })
            .collect();
        if !own.is_empty() {
            results.push(leave_out(simulator, registry, rows, card, &own, nearest_kin(card, &cards)));
        }
    }
    results
}

/// The platform that is most like another.
pub fn nearest_kin<'a>(card: &Card, cards: &'a [Card]) -> Option<&'a Card> {
    let shared = |other: &Card| other.parts.iter().filter(|part| card.parts.contains(part)).count();
    cards.iter().filter(|other| other.name != card.name && other.kind == card.kind).min_by_key(|other| {
        (std::cmp::Reverse(shared(other)), other.generation.abs_diff(card.generation), &other.name)
    })
}

fn leave_out(
    simulator: &mut dyn Simulator,
    registry: &Registry,
    rows: &[Row],
    card: &Card,
    own: &[&Row],
    kin: Option<&Card>,
) -> LeftOut {
    let mut replaced = Vec::new();
    let mut kept = Vec::new();
    for knob in card.knobs() {
        match kin.and_then(|kin| kin.parameter(&knob.key)) {
            Some(other) => {
                replaced.push(Replacement { key: knob.key.clone(), value: other.value.clone() });
            }
            None => kept.push(knob.key.clone()),
        }
    }
    let is_own =
        |id: &RowId| registry.entries.get(id).is_some_and(|entry| entry.machines().contains(&card.name));
    let shared = card.parameters.iter().filter(|parameter| !parameter.is_knob);
    kept.extend(shared.filter(|parameter| parameter.solved_from.iter().any(is_own)).map(|p| p.key.clone()));
    let mut errors_percent = BTreeMap::new();
    if kin.is_some() {
        let mut bench = Bench::without(simulator, &card.name, &replaced);
        for row in own {
            let ours = registry
                .entries
                .get(&row.id)
                .and_then(|entry| figure(&mut bench, row, entry, rows, &BTreeMap::new()).ok());
            let error = ours.zip(row.value()).map(|(ours, value)| 100.0 * (ours - value) / value.abs());
            errors_percent.insert(row.id.clone(), error);
        }
    }
    let mut sorted: Vec<f64> = errors_percent.values().flatten().map(|error| error.abs()).collect();
    sorted.sort_by(f64::total_cmp);
    LeftOut {
        platform: card.name.clone(),
        kin: kin.map(|kin| kin.name.clone()),
        replaced,
        kept,
        errors_percent,
        median_percent: median(&sorted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(name: &str, kind: &str, parts: &[&str], generation: u8) -> Card {
        Card {
            name: name.to_owned(),
            kind: kind.to_owned(),
            parts: parts.iter().map(|part| (*part).to_owned()).collect(),
            generation,
            parameters: Vec::new(),
        }
    }

    #[test]
    fn kin_shares_parts_then_generation_then_name() {
        let cards = [
            card("a", "nic", &["x", "y"], 3),
            card("b", "nic", &["x"], 3),
            card("c", "nic", &["x", "y"], 5),
            card("d", "nic", &["x", "y"], 4),
            card("e", "ntb", &["x", "y"], 3),
        ];
        let kin = |name: &str| {
            let own = cards.iter().find(|card| card.name == name).unwrap();
            nearest_kin(own, &cards).map(|card| card.name.as_str())
        };
        assert_eq!([kin("a"), kin("b"), kin("e")], [Some("d"), Some("a"), None]);
    }
}
