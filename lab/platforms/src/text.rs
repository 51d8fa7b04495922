//! A file of TOML to leaves, with the line of each. Not here: what the values mean (`parameters.rs`).

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::nearest;
use crate::leaves::{Leaf, check_known};
use crate::sections::{SECTIONS, known_keys};
use crate::{Location, PlatformError, Scalar, Source};

/// Contents of `[platform]`.
#[derive(Debug)]
pub(crate) struct Head {
    pub name: (String, Location),
    pub summary: String,
    pub kind: (String, Location),
}

/// A file, before parts are merged into it.
#[derive(Debug, Default)]
pub(crate) struct Text {
    /// `None` in parts.
    pub head: Option<Head>,
    pub includes: Vec<(String, Location)>,
    pub leaves: Vec<(String, Leaf)>,
    pub hops: usize,
}

/// Reads a file's text. `is_part` marks its leaves as shared; a part has neither `[platform]` nor `includes`.
///
/// # Errors
/// It is not TOML, or something in it has the wrong form.
pub(crate) fn parse(file: &str, text: &str, is_part: bool) -> Result<Text, PlatformError> {
    let reader = Reader { file, text, is_part };
    let table = DeTable::parse(text).map_err(|error| PlatformError::NotToml {
        location: reader.location(&error.span().unwrap_or(0..0)),
        message: error.message().to_owned(),
    })?;
    reader.file(table.get_ref())
}

/// A value given by a caller: a number, a quoted word, or a bare one.
pub(crate) fn scalar(text: &str) -> Scalar {
    let text = text.trim();
    text.replace('_', "")
        .parse()
        .map_or_else(|_| Scalar::Word(text.trim_matches('"').to_owned()), Scalar::Number)
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    is_part: bool,
}

impl Reader<'_> {
    fn location(&self, span: &Range<usize>) -> Location {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        Location { file: self.file.to_owned(), line: u32::try_from(line).ok() }
    }

    fn form(&self, key: &str, value: &Spanned<DeValue<'_>>, wanted: &'static str) -> PlatformError {
        let found = format!("{} {}", article(value.get_ref().type_str()), value.get_ref().type_str());
        PlatformError::Form { location: self.location(&value.span()), key: key.to_owned(), found, wanted }
    }

    fn file(&self, table: &DeTable<'_>) -> Result<Text, PlatformError> {
        let mut text = Text::default();
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "includes" if !self.is_part => text.includes = self.includes(value)?,
                "platform" if !self.is_part => text.head = Some(self.head(value)?),
                "hop" => {
                    let wanted = "a [[hop]] for each, in order from the host to the device";
                    let hops = value.get_ref().as_array().ok_or_else(|| self.form("hop", value, wanted))?;
                    text.hops = hops.len();
                    for (index, hop) in hops.iter().enumerate() {
                        self.section(&format!("hop.{index}"), hop, &mut text.leaves)?;
                    }
                }
                section if SECTIONS.iter().any(|(known, _)| *known == section) => {
                    self.section(section, value, &mut text.leaves)?;
                }
                section => {
                    let own =
                        ["hop", "platform", "includes"].into_iter().take(if self.is_part { 1 } else { 3 });
                    let known = SECTIONS.iter().map(|(known, _)| *known).chain(own);
                    let nearest = nearest(section, known);
                    let location = self.location(&key.span());
                    return Err(PlatformError::UnknownKey { location, key: section.to_owned(), nearest });
                }
            }
        }
        Ok(text)
    }

    fn section(
        &self,
        section: &str,
        value: &Spanned<DeValue<'_>>,
        leaves: &mut Vec<(String, Leaf)>,
    ) -> Result<(), PlatformError> {
        let wanted = "a section: [name], and a line for each of its parameters";
        let table = value.get_ref().as_table().ok_or_else(|| self.form(section, value, wanted))?;
        let hops = section.strip_prefix("hop.").and_then(|index| index.parse::<usize>().ok());
        for (name, value) in table {
            let key = format!("{section}.{}", name.get_ref());
            if value.get_ref().as_table().is_none() {
                // A key that is misspelt is that first, whatever stands behind it.
                let known = known_keys(hops.map_or(0, |index| index + 1));
                check_known(&key, &self.location(&name.span()), &known)?;
            }
            let leaf = self.leaf(&key, self.location(&name.span()), value)?;
            leaves.push((key, leaf));
        }
        Ok(())
    }

    fn leaf(
        &self,
        key: &str,
        location: Location,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Leaf, PlatformError> {
        const WANTED: &str = "{ value = ..., source = \"...\" }";
        let table = value.get_ref().as_table().ok_or_else(|| self.form(key, value, WANTED))?;
        let (mut found_value, mut found_source) = (None, None);
        for (name, value) in table {
            match name.get_ref().as_ref() {
                "value" => found_value = Some(self.scalar(key, value)?),
                "source" => {
                    let text = value.get_ref().as_str();
                    let text = text.ok_or_else(|| self.form(&format!("{key}.source"), value, "a string"))?;
                    let source = Source::parse(text).map_err(|problem| PlatformError::Source {
                        location: location.clone(),
                        key: key.to_owned(),
                        problem,
                    })?;
                    found_source = Some(source);
                }
                other => {
                    let location = self.location(&name.span());
                    let nearest = nearest(other, ["value", "source"]).map(|name| format!("{key}.{name}"));
                    return Err(PlatformError::UnknownKey {
                        location,
                        key: format!("{key}.{other}"),
                        nearest,
                    });
                }
            }
        }
        let missing = |found: &str| PlatformError::Form {
            location: location.clone(),
            key: key.to_owned(),
            found: found.to_owned(),
            wanted: WANTED,
        };
        let value = found_value.ok_or_else(|| missing("without a value"))?;
        let source = found_source.ok_or_else(|| missing("without a source"))?;
        Ok(Leaf { value, source, location, shared: self.is_part })
    }

    fn scalar(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Scalar, PlatformError> {
        let number = match value.get_ref() {
            DeValue::String(word) => return Ok(Scalar::Word(word.clone().into_owned())),
            // A number beyond 64 bits is out of all bounds, and may lose digits here.
            DeValue::Integer(integer) => {
                i128::from_str_radix(integer.as_str(), integer.radix()).ok().map(|integer| integer as f64)
            }
            DeValue::Float(float) => float.as_str().parse().ok(),
            _ => None,
        };
        let number =
            number.ok_or_else(|| self.form(&format!("{key}.value"), value, "a number or a string"))?;
        Ok(Scalar::Number(number))
    }

    fn includes(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<(String, Location)>, PlatformError> {
        let wanted = "a list of paths: includes = [\"parts/...\"]";
        let list = value.get_ref().as_array().ok_or_else(|| self.form("includes", value, wanted))?;
        list.iter()
            .map(|path| {
                let text = path.get_ref().as_str().ok_or_else(|| self.form("includes", path, wanted))?;
                Ok((text.to_owned(), self.location(&path.span())))
            })
            .collect()
    }

    fn head(&self, value: &Spanned<DeValue<'_>>) -> Result<Head, PlatformError> {
        let wanted = "a section with name, summary and kind";
        let table = value.get_ref().as_table().ok_or_else(|| self.form("platform", value, wanted))?;
        let mut words: [Option<(String, Location)>; 3] = [None, None, None];
        const NAMES: [&str; 3] = ["name", "summary", "kind"];
        for (name, value) in table {
            let key = format!("platform.{}", name.get_ref());
            let location = self.location(&name.span());
            let Some(index) = NAMES.iter().position(|known| known == name.get_ref()) else {
                let nearest = nearest(name.get_ref(), NAMES).map(|name| format!("platform.{name}"));
                return Err(PlatformError::UnknownKey { location, key, nearest });
            };
            let text = value.get_ref().as_str().ok_or_else(|| self.form(&key, value, "a string"))?;
            words[index] = Some((text.to_owned(), location));
        }
        let [name, summary, kind] = words;
        let missing = |name: &str, bounds: &str| PlatformError::Missing {
            file: self.file.to_owned(),
            key: format!("platform.{name}"),
            bounds: bounds.to_owned(),
        };
        Ok(Head {
            name: name.ok_or_else(|| missing("name", "the file's name without .toml"))?,
            summary: summary.ok_or_else(|| missing("summary", "a line that says what machine it is"))?.0,
            kind: kind.ok_or_else(|| missing("kind", "\"nic\", \"ntb\", \"dma\" or \"memory\""))?,
        })
    }
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'i', 'o', 'u', 'e']) { "an" } else { "a" }
}
