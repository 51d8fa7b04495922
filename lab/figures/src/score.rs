//! Errors of the scored rows: median, share near enough, by platform; ranges and shapes apart.
//!
//! Scored are numbers of role outcome that stand in their source and cannot be computed from declared inputs alone, one row an
//! independent quantity, no constant solved from it. A scored row without a figure of ours counts against us: it is missing.
//! Rows of the five sources are scored apart from other people's data, and once more without those that moved after they had
//! been compared.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::evaluate::{Ours, RowResult};
use crate::published::RowId;
use crate::registry::Class;
use crate::simulator::Card;

/// The median error we aim for, percent.
pub const MEDIAN_TARGET_PERCENT: f64 = 5.0;
/// An error up to this, percent, is near.
pub const NEAR_PERCENT: f64 = 15.0;
/// The share of rows that shall be near, percent.
pub const NEAR_TARGET_PERCENT: f64 = 90.0;

/// Count and errors of a group of scored rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// Scored rows that have a figure of ours.
    pub rows: usize,
    /// Scored rows that have none.
    pub missing: Vec<RowId>,
    /// Median of the absolute errors, percent.
    pub median_percent: Option<f64>,
    /// Greatest absolute error, percent.
    pub worst_percent: Option<f64>,
    /// Share of the rows with an error of at most [`NEAR_PERCENT`], missing ones counted as far; percent.
    pub near_percent: Option<f64>,
}

impl Tally {
    /// Counts the scored ones of some rows.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a RowResult>) -> Tally {
        let mut missing = Vec::new();
        let mut errors = Vec::new();
        for row in rows.into_iter().filter(|row| row.class == Class::Scored) {
            match row.error_percent {
                Some(error) => errors.push(error.abs()),
                None => missing.push(row.id.clone()),
            }
        }
        errors.sort_by(f64::total_cmp);
        let all = errors.len() + missing.len();
        let near = errors.iter().filter(|error| **error <= NEAR_PERCENT).count();
        Tally {
            rows: errors.len(),
            missing,
            median_percent: median(&errors),
            worst_percent: errors.last().copied(),
            near_percent: (all > 0).then(|| 100.0 * near as f64 / all as f64),
        }
    }

    /// Whether both targets are met, every scored row answered.
    pub fn is_met(&self) -> bool {
        self.missing.is_empty()
            && self.median_percent.is_some_and(|median| median <= MEDIAN_TARGET_PERCENT)
            && self.near_percent.is_some_and(|near| near >= NEAR_TARGET_PERCENT)
    }
}

/// The middle of sorted values; between the middle two of an even number.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[half]),
        _ => Some(f64::midpoint(sorted[half - 1], sorted[half])),
    }
}

/// Rows that hold, of those that could be tested, and those that could not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Holds {
    /// Rows that hold.
    pub holding: usize,
    /// Rows that do not.
    pub failing: usize,
    /// Rows without a figure of ours.
    pub untested: usize,
}

impl Holds {
    fn count(rows: &[RowResult], class: Class) -> Holds {
        let mut holds = Holds::default();
        for row in rows.iter().filter(|row| row.class == class) {
            let is_holding = match &row.ours {
                Ours::Shape(finding) => Some(finding.holds),
                Ours::Figure(_) | Ours::None(_) => row.is_inside,
            };
            match is_holding {
                Some(true) => holds.holding += 1,
                Some(false) => holds.failing += 1,
                None => holds.untested += 1,
            }
        }
        holds
    }
}

/// A platform's knobs beside its rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlatformScore {
    /// Name; several where a row compares platforms.
    pub platform: String,
    /// Its knobs: fitted, and assumed but not shared.
    pub knobs: Vec<String>,
    /// Rows that its constants were solved from.
    pub fitted_rows: Vec<RowId>,
    pub tally: Tally,
}

/// The score of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Scored rows of the five sources.
    pub own: Tally,
    /// Those of them that never moved after they had been compared.
    pub own_unmoved: Tally,
    /// Scored rows of other people's data.
    pub others: Tally,
    /// Those of them that never moved.
    pub others_unmoved: Tally,
    /// Those of each of the five sources.
    pub seeds: BTreeMap<u8, Tally>,
    pub platforms: Vec<PlatformScore>,
    /// Ranges and limits.
    pub contained: Holds,
    pub shapes: Holds,
    /// Arithmetic on declared inputs.
    pub computed: Holds,
}

impl Score {
    /// The groups of scored rows by name, those of the five sources first.
    pub fn groups(&self) -> [(&'static str, &Tally); 4] {
        [
            ("the five sources", &self.own),
            ("of them never moved", &self.own_unmoved),
            ("other people's data", &self.others),
            ("of them never moved", &self.others_unmoved),
        ]
    }

    /// Scores rows; `cards` are the platforms they were run on.
    pub fn of(rows: &[RowResult], cards: &[Card]) -> Score {
        let mut groups: BTreeMap<String, Vec<&RowResult>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.class == Class::Scored) {
            groups.entry(row.machines.join(" + ")).or_default().push(row);
        }
        for card in cards.iter().filter(|card| card.knobs().next().is_some()) {
            groups.entry(card.name.clone()).or_default();
        }
        let platforms = groups.into_iter().map(|(platform, rows)| {
            let card = cards.iter().find(|card| card.name == platform);
            let mut fitted_rows: Vec<RowId> = card.into_iter().flat_map(Card::fit_set).cloned().collect();
            fitted_rows.sort();
            fitted_rows.dedup();
            let knobs = card.into_iter().flat_map(Card::knobs).map(|knob| knob.key.clone()).collect();
            PlatformScore { platform, knobs, fitted_rows, tally: Tally::of(rows) }
        });
        let seeds =
            (0..5).map(|seed| (seed, Tally::of(rows.iter().filter(|row| row.seed == Some(seed))))).collect();
        let tally = |is_own: bool, with_moved: bool| {
            let is_counted =
                |row: &&RowResult| row.seed.is_some() == is_own && (with_moved || row.seen_before.is_empty());
            Tally::of(rows.iter().filter(is_counted))
        };
        Score {
            own: tally(true, true),
            own_unmoved: tally(true, false),
            others: tally(false, true),
            others_unmoved: tally(false, false),
            seeds,
            platforms: platforms.collect(),
            contained: Holds::count(rows, Class::Contained),
            shapes: Holds::count(rows, Class::Shape),
            computed: Holds::count(rows, Class::Computed),
        }
    }
}

/// How far our figure of an implied row may be from what implies it, percent: the rest is rounding, a fence, a first line.
pub const IMPLIED_WITHIN_PERCENT: f64 = 3.0;

/// What in rows and platforms contradicts each other: a scored row that a platform file used, a fitted row that none did, an
/// implied row that comes out otherwise.
pub fn conflicts(rows: &[RowResult], cards: &[Card]) -> Vec<String> {
    let mut found = Vec::new();
    if cards.is_empty() {
        return found;
    }
    let mut unknown: BTreeMap<&String, Vec<&RowId>> = BTreeMap::new();
    for row in rows {
        for machine in row.machines.iter().filter(|name| cards.iter().all(|card| card.name != **name)) {
            unknown.entry(machine).or_default().push(&row.id);
        }
        if matches!(row.class, Class::Scored | Class::Contained) && row.was_fitted {
            found.push(format!("{} is {}, but a constant was solved from it", row.id, row.class.word()));
        }
        if let Some((ours, implied)) = row.ours.figure().zip(row.implied)
            && (ours - implied).abs() > IMPLIED_WITHIN_PERCENT / 100.0 * implied.abs()
        {
            found.push(format!("{} is implied to be {implied:.4}, but {ours:.4} was measured", row.id));
        }
        if row.class == Class::Fitted && !row.was_fitted {
            found.push(format!("{} is fitted, but no platform was solved from it", row.id));
        }
    }
    found.extend(unknown.into_iter().map(|(machine, rows)| {
        format!("there is no platform `{machine}`, which {} rows from {} on need", rows.len(), rows[0])
    }));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scored row with an error, or without a figure.
    fn row(id: &str, class: Class, error_percent: Option<f64>) -> RowResult {
        RowResult {
            id: id.into(),
            source: String::new(),
            seed: Some(0),
            section: String::new(),
            what: String::new(),
            machines: vec!["m".to_owned()],
            class,
            was_fitted: false,
            printed: String::new(),
            unit: String::new(),
            published: Some(1.0),
            ours: error_percent
                .map_or(Ours::None("why".to_owned()), |error| Ours::Figure(1.0 + error / 100.0)),
            implied: None,
            seen_before: Vec::new(),
            error_percent,
            is_inside: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(
            [median(&[]), median(&[3.0]), median(&[1.0, 2.0]), median(&[1.0, 2.0, 9.0])],
            [None, Some(3.0), Some(1.5), Some(2.0)]
        );
    }

    #[test]
    fn only_scored_rows_count_and_missing_ones_are_far() {
        let rows = [
            row("r0001", Class::Scored, Some(-4.0)),
            row("r0002", Class::Scored, Some(20.0)),
            row("r0003", Class::Fitted, Some(0.0)),
            row("r0004", Class::Scored, None),
        ];
        let tally = Tally::of(&rows);
        assert_eq!((tally.rows, tally.missing.len()), (2, 1));
        assert_eq!((tally.median_percent, tally.worst_percent), (Some(12.0), Some(20.0)));
        assert!((tally.near_percent.unwrap() - 100.0 / 3.0).abs() < 1e-9);
        assert!(!tally.is_met());
        assert!(Tally::of(&rows[..1]).is_met());
        assert!(!Tally::of(&[]).is_met(), "nothing scored is nothing shown");
    }

    #[test]
    fn own_rows_are_scored_apart_from_others_and_from_moved_ones() {
        let others = RowResult { seed: None, ..row("r0200", Class::Scored, Some(1.0)) };
        let moved = crate::moves::Move {
            id: "r0002".into(),
            before: "9".to_owned(),
            after: "1".to_owned(),
            why: String::new(),
        };
        let rows = [
            row("r0001", Class::Scored, Some(20.0)),
            RowResult { seen_before: vec![moved], ..row("r0002", Class::Scored, Some(0.0)) },
            others,
        ];
        let score = Score::of(&rows, &[]);
        assert_eq!((score.own.rows, score.own.median_percent), (2, Some(10.0)));
        assert_eq!((score.own_unmoved.rows, score.own_unmoved.median_percent), (1, Some(20.0)));
        assert_eq!((score.others.rows, score.others.median_percent), (1, Some(1.0)));
        assert_eq!(score.seeds[&0], score.own);
    }

    /// The card of a platform that was solved from no row.
    fn card() -> Card {
        Card {
            name: "m".to_owned(),
            kind: "nic".to_owned(),
            parts: Vec::new(),
            generation: 3,
            parameters: Vec::new(),
        }
    }

    #[test]
    fn implied_row_that_comes_out_otherwise_is_a_conflict() {
        let card = card();
        let implied = |by| RowResult { implied: Some(by), ..row("r0001", Class::Implied, Some(0.0)) };
        assert_eq!(conflicts(&[implied(0.99)], std::slice::from_ref(&card)), [""; 0]);
        assert_eq!(
            conflicts(&[implied(0.9)], &[card]),
            ["r0001 is implied to be 0.9000, but 1.0000 was measured"]
        );
    }

    #[test]
    fn a_scored_row_that_a_file_used_is_a_conflict() {
        let card = card();
        let fitted = |row: RowResult| RowResult { was_fitted: true, ..row };
        let scored = row("r0001", Class::Scored, Some(0.0));
        let rows = [scored.clone(), row("r0002", Class::Fitted, Some(0.0))];
        assert_eq!(
            conflicts(&rows, std::slice::from_ref(&card)),
            ["r0002 is fitted, but no platform was solved from it"]
        );
        let used = conflicts(&[fitted(scored)], std::slice::from_ref(&card));
        assert_eq!(used, ["r0001 is scored, but a constant was solved from it"]);
        let other = Card { name: "other".to_owned(), ..card };
        assert!(conflicts(&rows, &[other]).iter().any(|text| text.contains("no platform `m`, which 2 rows")));
    }
}
