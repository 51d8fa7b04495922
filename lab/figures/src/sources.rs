//! What the source of a platform's parameter gives away: rows that its value was solved from or chosen by.
//!
//! A source begins with `fitted:`, `arithmetic:` or `assumed:`, or it is a plain citation. The first three turn a row's value
//! into the parameter's, so the row is no prediction any more. A citation names where a condition of the measurement (the width
//! of a link, a clock) stands, and gives nothing of the row's value away.

use crate::error::Error;
use crate::freeze::PlatformFile;
use crate::published::RowId;

/// Rows that a parameter with this source was solved from or chosen by.
pub fn solved_from(source: &str) -> Vec<RowId> {
    let is_solved = ["fitted", "arithmetic", "assumed"].iter().any(|word| source.starts_with(word));
    if !is_solved {
        return Vec::new();
    }
    let is_row = |word: &&str| {
        word.len() == 5 && word.starts_with('r') && word[1..].bytes().all(|digit| digit.is_ascii_digit())
    };
    source.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_row).map(RowId::from).collect()
}

/// Every parameter of a platform file that was solved from rows: its key, and the rows.
pub fn of_file(file: &PlatformFile) -> Result<Vec<(String, Vec<RowId>)>, Error> {
    let table: toml::Table = file.text.parse().map_err(|error: toml::de::Error| Error::Toml {
        file: file.name.clone(),
        problem: error.to_string(),
    })?;
    let mut found = Vec::new();
    walk("", &toml::Value::Table(table), &mut found);
    Ok(found)
}

fn walk(key: &str, value: &toml::Value, found: &mut Vec<(String, Vec<RowId>)>) {
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    match value {
        toml::Value::Table(table) => {
            if let Some(source) = table.get("source").and_then(toml::Value::as_str) {
                let rows = solved_from(source);
                if !rows.is_empty() {
                    found.push((key.to_owned(), rows));
                }
            }
            table.iter().for_each(|(name, value)| walk(&below(name), value, found));
        }
        toml::Value::Array(array) => array.iter().for_each(|value| walk(key, value, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solved_values_give_rows_away_and_citations_do_not() {
        let ids = |source: &str| solved_from(source).into_iter().map(|id| id.0).collect::<Vec<_>>();
        assert_eq!(ids("fitted: r0033, r0049"), ["r0033", "r0049"]);
        assert_eq!(ids("arithmetic: r0308 - r0273"), ["r0308", "r0273"]);
        assert_eq!(ids("assumed: the hypothesis for r0056, a line in 512 ns"), ["r0056"]);
        assert_eq!(ids("r0126"), [""; 0]);
        assert_eq!(ids("fitted: 1 / 47.4 M, revision r12345 of r28"), [""; 0]);
    }

    #[test]
    fn parameters_are_found_wherever_they_stand() {
        let text = "[core]\nstore_ns = { value = 1, source = \"fitted: r0033\" }\nclock_ghz = { value = 2, source = \"r0001\" }\n\
                    [[hop]]\nlatency_ns = { value = 30, source = \"arithmetic: r1011 - 70\" }\n";
        let file = PlatformFile { name: "a.toml".to_owned(), text: text.to_owned() };
        let found = of_file(&file).unwrap();
        let expected = [("core.store_ns", "r0033"), ("hop.latency_ns", "r1011")];
        assert_eq!(found, expected.map(|(key, row)| (key.to_owned(), vec![row.into()])));
    }
}
