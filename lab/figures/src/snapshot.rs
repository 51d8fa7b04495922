//! All figures as text tables, one file a source, committed: what a change moves is seen in its diff.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::evaluate::{Ours, RowResult};
use crate::moves::Move;
use crate::published::RowId;

/// A row of a snapshot. `ours` has six digits: less than a picosecond in a microsecond is no move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Line {
    id: RowId,
    class: String,
    fitted: bool,
    published: String,
    unit: String,
    ours: String,
    error_percent: String,
}

/// A figure that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moved {
    pub id: RowId,
    /// Value in the snapshot, with its class.
    pub before: String,
    /// Value in this run, with its class.
    pub after: String,
    /// Our figure in the snapshot; empty if there is none.
    pub ours_before: String,
    /// Our figure in this run.
    pub ours_after: String,
}

impl Moved {
    /// Whether a figure that had been compared is another now.
    pub fn is_seen_move(&self) -> bool {
        !self.ours_before.is_empty() && self.ours_before != self.ours_after
    }
}

/// The files of a run, by name: `seed000.csv` to `seed004.csv`, `others.csv`.
pub fn files(rows: &[RowResult]) -> Result<BTreeMap<String, String>, Error> {
    let mut groups: BTreeMap<String, Vec<&RowResult>> = BTreeMap::new();
    for row in rows {
        let name = row.seed.map_or("others.csv".to_owned(), |seed| format!("seed{seed:03}.csv"));
        groups.entry(name).or_default().push(row);
    }
    groups.into_iter().map(|(name, rows)| Ok((name, text(rows)?))).collect()
}

/// Rows as a snapshot.
pub fn text<'a>(rows: impl IntoIterator<Item = &'a RowResult>) -> Result<String, Error> {
    let fail = |error: String| Error::Output(error);
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(line(row)).map_err(|error| fail(error.to_string()))?;
    }
    let bytes = writer.into_inner().map_err(|error| fail(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| fail(error.to_string()))
}

/// Our side of a row as a snapshot has it; empty if there is none.
pub fn ours(row: &RowResult) -> String {
    match &row.ours {
        Ours::Figure(value) => six_digits(*value),
        Ours::Shape(finding) if finding.holds => "holds".to_owned(),
        Ours::Shape(_) => "does not hold".to_owned(),
        Ours::None(_) => String::new(),
    }
}

fn line(row: &RowResult) -> Line {
    Line {
        id: row.id.clone(),
        class: row.class.word().to_owned(),
        fitted: row.was_fitted,
        published: row.printed.clone(),
        unit: row.unit.clone(),
        ours: ours(row),
        error_percent: row.error_percent.map_or(String::new(), |error| format!("{error:+.2}")),
    }
}

/// A number with six digits that count.
pub fn six_digits(value: f64) -> String {
    let text = format!("{value:.5e}");
    text.parse::<f64>().map_or(text, |rounded| rounded.to_string())
}

/// Which rows two snapshots disagree about, in their class, fit or figure. A row that only one of them has moved too.
pub fn moved(before: &str, after: &str) -> Result<Vec<Moved>, Error> {
    let (before, after) = (read(before)?, read(after)?);
    let mut ids: Vec<&RowId> = before.keys().chain(after.keys()).collect();
    ids.sort();
    ids.dedup();
    let say = |line: Option<&Line>| line.map_or("no such row".to_owned(), say);
    let ours = |line: Option<&Line>| line.map(|line| line.ours.clone()).unwrap_or_default();
    let moves = ids.into_iter().filter(|id| before.get(*id) != after.get(*id)).map(|id| Moved {
        id: id.clone(),
        before: say(before.get(id)),
        after: say(after.get(id)),
        ours_before: ours(before.get(id)),
        ours_after: ours(after.get(id)),
    });
    Ok(moves.collect())
}

/// The moves with those added that a new snapshot makes, as the text of `moves.csv`. A row that gets its first figure has
/// not moved.
pub fn with_moves(moves: &[Move], moved: &[Moved], why: &str) -> Result<String, Error> {
    let fail = |error: String| Error::Output(error);
    let new = moved.iter().filter(|moved| moved.is_seen_move()).map(|moved| Move {
        id: moved.id.clone(),
        before: moved.ours_before.clone(),
        after: moved.ours_after.clone(),
        why: why.to_owned(),
    });
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in moves.iter().cloned().chain(new) {
        writer.serialize(line).map_err(|error| fail(error.to_string()))?;
    }
    let bytes = writer.into_inner().map_err(|error| fail(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| fail(error.to_string()))
}

fn say(line: &Line) -> String {
    let ours = if line.ours.is_empty() { "no figure" } else { &line.ours };
    format!("{ours} ({}{})", line.class, if line.fitted { ", used to fit" } else { "" })
}

fn read(text: &str) -> Result<BTreeMap<RowId, Line>, Error> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let lines: Result<Vec<Line>, _> = reader.deserialize().collect();
    let lines = lines.map_err(|error| Error::Csv(error.to_string()))?;
    Ok(lines.into_iter().map(|line| (line.id.clone(), line)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "id,class,fitted,published,unit,ours,error_percent\n";

    #[test]
    fn a_move_names_both_figures() {
        let before = format!("{HEADER}r0001,scored,false,5,ns,4.9,-2.00\nr0002,scored,false,5,ns,5,+0.00\n");
        let after = format!("{HEADER}r0001,scored,false,5,ns,5.1,+2.00\nr0002,scored,false,5,ns,5,+0.00\n");
        let found = moved(&before, &after).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].before.as_str(), found[0].after.as_str()), ("4.9 (scored)", "5.1 (scored)"));
        assert_eq!(moved(&after, HEADER).unwrap()[0].after, "no such row");
        assert_eq!(moved(&after, &after).unwrap(), []);
    }

    #[test]
    fn moved_figure_is_added_and_first_figure_and_new_class_are_not() {
        let head = "id,class,fitted,published,unit,ours,error_percent\n";
        let before = format!(
            "{head}r0001,scored,false,5,ns,4.9,\nr0002,scored,false,5,ns,,\nr0003,scored,false,5,ns,5,\n"
        );
        let after = format!(
            "{head}r0001,scored,false,5,ns,5.1,\nr0002,scored,false,5,ns,5,\nr0003,implied,false,5,ns,5,\n"
        );
        let first = Move { id: "r0009".into(), before: "1".into(), after: "2".into(), why: "old".into() };
        let text = with_moves(std::slice::from_ref(&first), &moved(&before, &after).unwrap(), "new").unwrap();
        let second =
            Move { id: "r0001".into(), before: "4.9".into(), after: "5.1".into(), why: "new".into() };
        assert_eq!(crate::moves::read(&text).unwrap(), [first, second]);
    }

    #[test]
    fn six_digits_count() {
        assert_eq!(
            [1234567.0, 0.012345678, 1.0, 108.0].map(six_digits),
            ["1234570", "0.0123457", "1", "108"]
        );
    }
}
