//! Where a value comes from. A number without a source is refused.

use serde::Serialize;

/// What stands behind a value, as its file says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "text")]
pub enum Source {
    /// A row of the published figures, a data sheet, a specification: what the text names.
    Cited(String),
    /// Computed from what is cited; the text has the formula.
    Arithmetic(String),
    /// No source published the value. The text says why it is this and not another, and may be empty.
    Assumed(String),
    /// Solved so that the model gives the rows that the text names.
    Fitted(String),
}

impl Source {
    /// Reads the words of a file: `assumed`, `assumed: why`, `arithmetic: how`, `fitted: rows, how`, or a citation.
    ///
    /// # Errors
    /// Says what is missing: a citation, a formula or a fit without words is none.
    pub fn parse(text: &str) -> Result<Source, &'static str> {
        let text = text.trim();
        let (word, rest) = text.split_once(':').map_or((text, ""), |(word, rest)| (word.trim(), rest.trim()));
        match (word, rest) {
            ("assumed", why) => Ok(Source::Assumed(why.to_owned())),
            ("arithmetic", "") => {
                Err("arithmetic without a formula; write \"arithmetic: what of which rows\"")
            }
            ("arithmetic", how) => Ok(Source::Arithmetic(how.to_owned())),
            ("fitted", "") => {
                Err("a fit without its rows; write \"fitted: r0001 or the measurement, and the formula\"")
            }
            ("fitted", rows) => Ok(Source::Fitted(rows.to_owned())),
            ("", "") => Err("empty; name a row, a document and its section, or write \"assumed\""),
            _ => Ok(Source::Cited(text.to_owned())),
        }
    }

    /// The words of a file that give this source again.
    pub fn to_text(&self) -> String {
        match self {
            Source::Cited(text) => text.clone(),
            Source::Arithmetic(how) => format!("arithmetic: {how}"),
            Source::Assumed(why) if why.is_empty() => "assumed".to_owned(),
            Source::Assumed(why) => format!("assumed: {why}"),
            Source::Fitted(rows) => format!("fitted: {rows}"),
        }
    }

    /// Rows of the published figures that it names (`r` and four digits), in the order in which it names them.
    pub fn rows(&self) -> Vec<&str> {
        let (Source::Cited(text) | Source::Arithmetic(text) | Source::Assumed(text) | Source::Fitted(text)) =
            self;
        let is_row = |word: &&str| {
            word.len() == 5 && word.starts_with('r') && word[1..].bytes().all(|byte| byte.is_ascii_digit())
        };
        text.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_file_say_what_kind_it_is() {
        for (text, source) in [
            ("assumed", Source::Assumed(String::new())),
            ("assumed: as its kin", Source::Assumed("as its kin".into())),
            ("fitted: r0033, r0049: 64 B / rate", Source::Fitted("r0033, r0049: 64 B / rate".into())),
            ("arithmetic: 64 B / r0049", Source::Arithmetic("64 B / r0049".into())),
            ("r0001", Source::Cited("r0001".into())),
            ("PG213: figure 3", Source::Cited("PG213: figure 3".into())),
        ] {
            assert_eq!(Source::parse(text), Ok(source.clone()));
            assert_eq!(source.to_text(), text);
        }
        for nothing in ["", "  ", "fitted", "fitted:", "arithmetic: "] {
            assert!(Source::parse(nothing).is_err(), "{nothing:?}");
        }
    }

    #[test]
    fn rows_are_found_among_words() {
        let source = Source::Fitted("r0033, r0049 (not r12, r00330 or rate)".into());
        assert_eq!(source.rows(), ["r0033", "r0049"]);
    }
}
