//! Whether the entries describe the rows: each once, each class with what it needs.

use super::{Class, Entry, FILES, MEASURED, Registry};
use crate::error::Error;
use crate::formula::{Formula, Variable};
use crate::published::{Role, Row, RowId, Status};
use crate::unit::Unit;

impl Registry {
    /// The entries of this crate, checked against the rows.
    pub fn of(rows: &[Row]) -> Result<Registry, Error> {
        let registry = Registry::read(&FILES)?;
        let findings = check(&registry, rows);
        if findings.is_empty() { Ok(registry) } else { Err(Error::Rows(findings)) }
    }
}

/// Returns what is wrong, a sentence each.
pub fn check(registry: &Registry, rows: &[Row]) -> Vec<String> {
    let mut findings: Vec<String> =
        registry.twice.iter().map(|row| format!("{row} is named more than once")).collect();
    for row in rows {
        match registry.entries.get(&row.id) {
            None => findings.push(format!("{} ({}) has no entry", row.id, row.quantity)),
            Some(entry) => check_entry(registry, row, entry, rows, &mut findings),
        }
    }
    let is_row = |id: &&RowId| rows.iter().all(|row| row.id != **id);
    findings.extend(registry.entries.keys().filter(is_row).map(|id| format!("{id} is no row of the file")));
    findings
}

fn check_entry(registry: &Registry, row: &Row, entry: &Entry, rows: &[Row], findings: &mut Vec<String>) {
    let mut demand = |is_met: bool, what: &str| {
        if !is_met {
            findings.push(format!("{} is {} and {what}", row.id, entry.class.word()));
        }
    };
    let has_figure = !entry.measures().is_empty() || entry.formula.is_some();
    let is_outcome = row.role == Role::Outcome && row.status == Status::Read;
    match entry.class {
        Class::Scored | Class::Fitted => {
            demand(is_outcome, "not an outcome that stands in its source");
            demand(row.value().is_some() && row.unit().is_some(), "not one number in a unit we measure");
            demand(!entry.measures().is_empty(), "nothing is measured for it");
        }
        Class::Implied => {
            demand(is_outcome, "not an outcome that stands in its source");
            demand(row.value().is_some() && row.unit().is_some(), "not one number in a unit we measure");
            demand(!entry.measures().is_empty(), "nothing is measured for it");
            demand(entry.implied_by.is_some(), "`implied-by` does not say by which arithmetic");
        }
        Class::Contained => {
            demand(is_outcome, "not an outcome that stands in its source");
            let is_two_sided = bounds(row, entry)
                .is_some_and(|(least, most)| least.is_finite() && most.is_finite() && least < most);
            demand(is_two_sided, "not bounded on both sides");
            demand(!entry.measures().is_empty(), "nothing is measured for it");
        }
        Class::Computed => {
            demand(row.value().is_some(), "not one number");
            demand(entry.formula.is_some() && entry.measures().is_empty(), "not by a formula alone");
        }
        Class::SameAs => {
            let is_own = |id| {
                let of = registry.entries.get(id);
                of.is_some_and(|of| !matches!(of.class, Class::SameAs | Class::Lost))
            };
            demand(
                !entry.same_as.is_empty() && entry.same_as.iter().all(is_own),
                "what it depends on is not named, or depends on another row itself",
            );
        }
        Class::Shape => demand(entry.shape.is_some(), "says no shape"),
        Class::Lost | Class::NotModelled => demand(entry.why.is_some() && !has_figure, "does not say why"),
        Class::Input => demand(row.role == Role::Input, "not an input"),
        Class::Said => demand(!is_outcome && row.role != Role::Input, "an outcome or an input of its source"),
    }
    demand(entry.class == Class::SameAs || entry.same_as.is_empty(), "depends on a row");
    demand(
        entry.class == Class::Implied || entry.implied_by.is_none(),
        "follows from declared or fitted values",
    );
    demand(entry.class == Class::Shape || entry.shape.is_none(), "has a shape");
    if entry.formula.is_none() {
        demand(entry.measure.is_empty(), "measures several things without a formula");
        for (_, machine, quantity) in entry.measures() {
            demand(machine.is_some(), "nothing says on which platform");
            let is_same = row.unit().is_some_and(|unit| unit.base == quantity.base());
            demand(is_same, "measured in another unit than it is printed in");
        }
    }
    demand(
        entry.size.is_some() || is_run_with_its_size(row, entry),
        "run with another size; `size` does not say why",
    );
    if let Some(text) = &entry.formula {
        check_formula(row, entry, text, rows, findings);
    }
    if let Some(text) = &entry.implied_by {
        check_implied_by(registry, row, text, rows, findings);
    }
}

/// Whether everything that is measured for a row has the size that the row prints.
fn is_run_with_its_size(row: &Row, entry: &Entry) -> bool {
    entry.measures().into_iter().all(|(_, _, quantity)| match (quantity.bytes(), row.message_bytes()) {
        (Some(ours), Some(printed)) => ours == printed,
        (Some(_), None) => row.message_size.is_empty() || row.message_size.starts_with('>'),
        (None, _) => true,
    })
}

/// What implies a row is arithmetic on rows that are given to the machine, not predicted by it.
fn check_implied_by(registry: &Registry, row: &Row, text: &str, rows: &[Row], findings: &mut Vec<String>) {
    check_formula(row, &Entry::of(Class::Computed, None), text, rows, findings);
    let variables = Formula::read(text).map(|formula| formula.variables()).unwrap_or_default();
    let used: Vec<&RowId> = variables
        .iter()
        .filter_map(|variable| match variable {
            Variable::Published(id) => Some(id),
            Variable::Ours(_) | Variable::Measured(_) => None,
        })
        .collect();
    let is_given = |id: &&RowId| {
        let class = registry.entries.get(*id).map(|entry| entry.class);
        matches!(class, Some(Class::Input | Class::Fitted | Class::Computed))
    };
    if used.is_empty() || !used.iter().all(is_given) {
        findings.push(format!("{}: `{text}` uses what is neither declared nor fitted", row.id));
    }
}

fn check_formula(row: &Row, entry: &Entry, text: &str, rows: &[Row], findings: &mut Vec<String>) {
    let formula = match Formula::read(text) {
        Ok(formula) => formula,
        Err(error) => return findings.push(format!("{}: {error}", row.id)),
    };
    for variable in formula.variables() {
        let problem = match &variable {
            Variable::Published(id) => match rows.iter().find(|other| other.id == *id) {
                _ if *id == row.id => Some("uses its own row"),
                Some(other) if other.value().is_some() => None,
                _ => Some("uses a row that has no value"),
            },
            Variable::Ours(_) if entry.class == Class::Computed => Some("uses more than published rows"),
            Variable::Ours(id) if *id == row.id => Some("uses its own row"),
            Variable::Ours(id) if rows.iter().all(|other| other.id != *id) => Some("uses a row that is none"),
            Variable::Ours(_) => None,
            Variable::Measured(name) if name == MEASURED && entry.quantity.is_some() => None,
            Variable::Measured(name) if entry.measure.contains_key(name) => None,
            Variable::Measured(_) => Some("uses a name that nothing has"),
        };
        findings.extend(problem.map(|problem| format!("{}: the formula `{text}` {problem}", row.id)));
    }
}

/// Share of a limit that ours must reach at least (of "up to" and "less than"), or may pass at most (of "more than", as its
/// inverse): what is nowhere near a limit does not explain it.
const LIMIT_SHARE: f64 = 0.5;

/// Least and greatest that a contained row allows, in the printed unit.
pub fn bounds(row: &Row, entry: &Entry) -> Option<(f64, f64)> {
    use crate::unit::Side;
    if let Some([least, most]) = entry.range {
        return Some((least, most));
    }
    let (lo, hi) = (row.value_lo?, row.value_hi?);
    match Unit::side(&row.printed_unit, &row.printed) {
        Some(Side::AtMost) => Some((LIMIT_SHARE * hi, hi)),
        Some(Side::AtLeast) => Some((lo, lo / LIMIT_SHARE)),
        None if lo < hi => Some((lo, hi)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published;

    const HEADER: &str = "id,source,figure_section,platform,interface,quantity,message_size_B,value,value_lo,\
                          value_hi,unit,role,status,notes\n";

    /// Findings of entries for two rows: an outcome of 64 B in ns, r0001, and a claim, r0002.
    fn findings(entries: &str) -> Vec<String> {
        let rows = published::read(&format!(
            "{HEADER}r0001,s,f,p,i,q,64,100,100,100,ns,outcome,read,\nr0002,s,f,p,i,q,,5,5,5,x,claim,read,\n"
        ));
        check(&Registry::read(&[("test", entries)]).unwrap(), &rows.unwrap())
    }

    #[test]
    fn a_row_without_entry_and_an_entry_without_row_are_found() {
        let found = findings("input = ['r0009']\nsaid = ['r0002']");
        assert_eq!(found, ["r0001 (q) has no entry", "r0009 is no row of the file"]);
    }

    #[test]
    fn a_row_named_twice_is_found() {
        let scored = "[machines.m]\nr0001 = { class = 'scored', quantity = 'line-interval' }";
        assert_eq!(findings(&format!("said = ['r0002']\n{scored}")), [""; 0]);
        assert_eq!(
            findings(&format!("said = ['r0002', 'r0001']\n{scored}")),
            ["r0001 is named more than once"]
        );
    }

    #[test]
    fn only_outcomes_are_scored_and_they_are_not_waved_through() {
        let claim = "[machines.m]\nr0001 = { class = 'scored', quantity = 'line-interval' }\n\
                     r0002 = { class = 'scored', quantity = 'line-interval' }";
        assert!(findings(claim).iter().any(|text| text.starts_with("r0002 is scored and not an outcome")));
        assert_eq!(
            findings("said = ['r0001', 'r0002']"),
            ["r0001 is said and an outcome or an input of its source"]
        );
    }

    #[test]
    fn sizes_and_units_agree_or_are_explained() {
        let with = |quantity: &str, more: &str| {
            findings(&format!(
                "said = ['r0002']\n[machines.m]\nr0001 = {{ class = 'scored', quantity = {quantity}{more} }}"
            ))
        };
        assert_eq!(with("{ write-latency = { bytes = 64 } }", ""), [""; 0]);
        assert_eq!(with("{ write-latency = { bytes = 8 } }", "").len(), 1);
        assert_eq!(with("{ write-latency = { bytes = 8 } }", ", size = 'a word'"), [""; 0]);
        assert_eq!(with("{ dma-push-rate = { bytes = 64 } }", "").len(), 1, "Gbit/s are no ns");
    }

    /// Findings of an entry for an outcome r0001 that is printed as a limit or as one number.
    fn findings_of_limit(unit: &str, entry: &str) -> Vec<String> {
        let rows = published::read(&format!("{HEADER}r0001,s,f,p,i,q,64,100,100,100,{unit},outcome,read,\n"))
            .unwrap();
        check(&Registry::read(&[("test", entry)]).unwrap(), &rows)
    }

    #[test]
    fn contained_row_without_two_bounds_is_found() {
        let with = |unit: &str, range: &str| {
            let quantity = "quantity = { descriptor-share = { bytes = 64, burst = 1 } }";
            findings_of_limit(
                unit,
                &format!("[machines.m]\nr0001 = {{ class = 'contained', {quantity}{range} }}"),
            )
        };
        assert_eq!(with("% (up to)", ""), [""; 0], "a limit has its other side by LIMIT_SHARE");
        assert_eq!(with("% (up to)", ", range = [20, 43]"), [""; 0]);
        for found in [with("%", ""), with("% (up to)", ", range = [-inf, 43]")] {
            assert_eq!(found, ["r0001 is contained and not bounded on both sides"]);
        }
    }

    #[test]
    fn bounds_of_limits_are_a_factor_of_two_apart() {
        let bounds_of = |unit: &str| {
            let rows =
                published::read(&format!("{HEADER}r0001,s,f,p,i,q,64,100,100,100,{unit},outcome,read,\n"));
            bounds(&rows.unwrap()[0], &Entry::of(Class::Contained, None))
        };
        assert_eq!(
            [bounds_of("% (up to)"), bounds_of("ns or more")],
            [Some((50.0, 100.0)), Some((100.0, 200.0))]
        );
    }

    #[test]
    fn row_that_follows_from_a_declared_value_is_not_scored() {
        let with = |class: &str, more: &str| {
            findings(&format!(
                "[rows]\nr0002 = {{ class = 'computed', formula = '2 + 3' }}\n\
                 [machines.m]\nr0001 = {{ class = '{class}', quantity = 'line-interval'{more} }}"
            ))
        };
        assert_eq!(with("implied", ", implied-by = '20 * r0002'"), [""; 0]);
        assert_eq!(
            with("scored", ", implied-by = '20 * r0002'"),
            ["r0001 is scored and follows from declared or fitted values"]
        );
        assert_eq!(
            with("implied", ""),
            ["r0001 is implied and `implied-by` does not say by which arithmetic"]
        );
        assert_eq!(
            with("implied", ", implied-by = '100'"),
            ["r0001: `100` uses what is neither declared nor fitted"]
        );
    }

    #[test]
    fn a_formula_uses_what_there_is() {
        let with = |formula: &str| {
            findings(&format!(
                "said = ['r0002']\n[machines.m]\n\
                 r0001 = {{ class = 'scored', quantity = 'line-interval', formula = '{formula}' }}"
            ))
        };
        assert_eq!(with("measured * r0002"), [""; 0]);
        for (formula, expected) in [
            ("measured + r0001", "uses its own row"),
            ("measured + r0007", "uses a row that has no value"),
            ("measured + other", "uses a name that nothing has"),
            ("measured +", "formula `measured +`"),
        ] {
            let found = with(formula);
            assert!(found.len() == 1 && found[0].contains(expected), "{formula}: {found:?}");
        }
    }
}
