//! Where the rules come from: the file, or what `beeline run` resolved; then variables; then options.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::keys::{Given, KEYS, Key, key_names};
use crate::rules::Rules;

/// The variable that names the file.
pub const FILE_VARIABLE: &str = "BEELINE_CONFIG";
/// What begins the variable of each key.
pub const VARIABLE_PREFIX: &str = "BEELINE_SOCKETS_";
/// Rules that were resolved and stand in place of the file: [`Rules::resolved`].
pub const RESOLVED_VARIABLE: &str = "BEELINE_SOCKETS_RULES";
/// The run that a process belongs to, whose boards outlive their processes (`beeline run --why`).
pub const RUN_VARIABLE: &str = "BEELINE_SOCKETS_RUN";
/// The library that `beeline run` preloads.
pub const LIBRARY_VARIABLE: &str = "BEELINE_SOCKETS_LIBRARY";

/// Read if the environment names no file.
const FILE: &str = "/etc/beeline.toml";
const TABLE: &str = "sockets";
/// The tables and keys of the file that are others' to read (`host/fabric/process`).
const TABLES_OF_OTHERS: [&str; 9] =
    ["node", "domain", "polls", "memory", "sysfs", "fabric", "access", "adapters", "nodes"];
/// Variables that are no keys.
const OTHER_VARIABLES: [&str; 3] = [RESOLVED_VARIABLE, RUN_VARIABLE, LIBRARY_VARIABLE];

/// Where a rule was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    File {
        path: PathBuf,
        line: usize,
    },
    Variable(String),
    /// An option of `beeline run`, `--spin`.
    Option(String),
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { path, line } => write!(out, "{}:{line}", path.display()),
            Place::Variable(name) => write!(out, "the variable {name}"),
            Place::Option(name) => out.write_str(name),
        }
    }
}

/// What is wrong with the rules, and where.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    #[error("cannot read {}: {error}; make it readable, or name another with {FILE_VARIABLE}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    /// The file is not TOML.
    #[error("{}: {error}", path.display())]
    Syntax { path: PathBuf, error: Box<toml::de::Error> },
    /// In the table `sockets`, or what a variable says.
    #[error("{place}: there is no key `{key}`{}", said(nearest))]
    UnknownKey { place: Place, key: String, nearest: Option<String> },
    /// A table or key of the file that is nobody's.
    #[error("{place}: there is no table or key `{key}`{}", said(nearest))]
    UnknownTable { place: Place, key: String, nearest: Option<String> },
    /// `sockets` is something else.
    #[error("{place}: `sockets` is a table: write [sockets], and the rules below it")]
    NoTable { place: Place },
    /// A value means nothing.
    #[error("{place}: {key} = {value}; {why}")]
    Value { place: Place, key: String, value: String, why: String },
    #[error("the variable {variable} is {value:?}, which is no text; unset it, or give it a value that is")]
    NoText { variable: String, value: OsString },
    /// [`RESOLVED_VARIABLE`] is not what `beeline run` makes.
    #[error("the variable {RESOLVED_VARIABLE} is not what `beeline run` makes: {why}; unset it")]
    Resolved { why: String },
}

/// Whether these variables have the library work under a filter of system calls that is there already (`under_filter`): the rule's own one, or what `beeline run`
/// resolved. No file is read, since a filter may kill for that.
pub fn works_under_filter(variables: impl IntoIterator<Item = (OsString, OsString)>) -> bool {
    let (mut own, mut resolved) = (None, None);
    for (name, value) in variables {
        match name.to_str() {
            Some("BEELINE_SOCKETS_UNDER_FILTER") => own = Some(value == "true"),
            Some(RESOLVED_VARIABLE) => resolved = value.into_string().ok(),
            _ => {}
        }
    }
    let of_run =
        || resolved.is_some_and(|text| Rules::of_resolved(&text).is_ok_and(|rules| rules.under_filter));
    own.unwrap_or_else(of_run)
}

fn said(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|nearest| format!("; `{nearest}` is the nearest")).unwrap_or_default()
}

impl Rules {
    /// Reads what holds for this process: [`RESOLVED_VARIABLE`] if it is there, else the file, and then variables.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn read() -> Result<Self, RulesError> {
        Self::of(std::env::vars_os(), Path::new(FILE))
    }

    /// As [`Rules::read`], of these variables. `file` is read if they name no file and it is there.
    ///
    /// # Errors
    /// As for [`Rules::read`].
    pub fn of(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        file: &Path,
    ) -> Result<Self, RulesError> {
        let (mut resolved, mut named, mut given) = (None, None, Vec::new());
        for (name, value) in variables {
            let Some(name) = name.to_str() else { continue };
            match name {
                FILE_VARIABLE => named = Some(PathBuf::from(value)),
                RESOLVED_VARIABLE => resolved = Some(text(name, value)?),
                _ if OTHER_VARIABLES.contains(&name) => {}
                _ if name.starts_with(VARIABLE_PREFIX) => given.push((name.to_owned(), text(name, value)?)),
                _ => {}
            }
        }
        let mut rules = match (resolved, named) {
            (Some(resolved), _) => Self::of_resolved(&resolved)?,
            (None, Some(named)) => Self::of_file(&named)?,
            (None, None) if file.exists() => Self::of_file(file)?,
            (None, None) => Rules::default(),
        };
        for (name, value) in given {
            rules.set_variable(&name, value)?;
        }
        Ok(rules)
    }

    /// Reads the table `sockets` of a file.
    ///
    /// # Errors
    /// The file cannot be read, or something in it means nothing. What is in tables of others is theirs to judge.
    pub fn of_file(path: &Path) -> Result<Self, RulesError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| RulesError::Unreadable { path: path.to_owned(), error })?;
        Self::of_text(path, &text)
    }

    /// As [`Rules::of_file`], of a file with this text.
    ///
    /// # Errors
    /// As for [`Rules::of_file`].
    pub fn of_text(path: &Path, text: &str) -> Result<Self, RulesError> {
        let table = DeTable::parse(text)
            .map_err(|error| RulesError::Syntax { path: path.to_owned(), error: Box::new(error) })?;
        let at = |start: usize| {
            let before = text.get(..start).unwrap_or_default();
            let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
            Place::File { path: path.to_owned(), line }
        };
        let mut rules = Rules::default();
        let mut own = None;
        for (key, value) in table.get_ref() {
            let (name, place) = (key.get_ref().as_ref(), at(key.span().start));
            match name {
                TABLE => own = Some((value, place)),
                // The domain of everything else in the file, unless the table names another.
                "domain" => rules.set(name, &given(value), place)?,
                _ if TABLES_OF_OTHERS.contains(&name) => {}
                _ => {
                    let known = TABLES_OF_OTHERS.into_iter().chain([TABLE]);
                    let (key, nearest) = (name.to_owned(), nearest(name, known));
                    return Err(RulesError::UnknownTable { place, key, nearest });
                }
            }
        }
        let Some((value, place)) = own else { return Ok(rules) };
        let DeValue::Table(table) = value.get_ref() else { return Err(RulesError::NoTable { place }) };
        for (key, value) in table {
            rules.set(key.get_ref(), &given(value), at(key.span().start))?;
        }
        Ok(rules)
    }

    /// The rules as the value of [`RESOLVED_VARIABLE`].
    pub fn resolved(&self) -> String {
        let json = |key: &Key| match (key.get)(self) {
            Given::One(text) => Json::from(text),
            Given::Several(texts) => Json::from(texts),
        };
        let keys: serde_json::Map<_, _> = KEYS.iter().map(|key| (key.name.to_owned(), json(key))).collect();
        Json::Object(keys).to_string()
    }

    fn of_resolved(text: &str) -> Result<Self, RulesError> {
        let wrong = |why: &str| RulesError::Resolved { why: why.to_owned() };
        let json: Json = serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        let Json::Object(keys) = json else { return Err(wrong("it is no object of JSON")) };
        let mut rules = Rules::default();
        for (key, value) in keys {
            let given = match value {
                Json::String(text) => Given::One(text),
                Json::Array(values) => {
                    let texts = values.iter().map(|value| value.as_str().map(str::to_owned));
                    let texts: Option<Vec<_>> = texts.collect();
                    Given::Several(texts.ok_or_else(|| wrong("a list has something that is no text"))?)
                }
                other => Given::One(other.to_string()),
            };
            rules.set(&key, &given, Place::Variable(RESOLVED_VARIABLE.to_owned()))?;
        }
        Ok(rules)
    }

    /// Gives a key a value, as an option of `beeline run` does. Lists have commas.
    ///
    /// # Errors
    /// There is no such key, or the value means nothing.
    pub fn set_option(&mut self, key: &str, value: &str) -> Result<(), RulesError> {
        let place = Place::Option(format!("--{}", key.replace('_', "-")));
        self.set(key, &Given::One(value.to_owned()), place)
    }

    fn set_variable(&mut self, variable: &str, value: String) -> Result<(), RulesError> {
        let key = variable.strip_prefix(VARIABLE_PREFIX).unwrap_or(variable).to_ascii_lowercase();
        let place = Place::Variable(variable.to_owned());
        self.set(&key, &Given::One(value), place)
    }

    fn set(&mut self, key: &str, given: &Given, place: Place) -> Result<(), RulesError> {
        let Some(known) = KEYS.iter().find(|known| known.name == key) else {
            let nearest = nearest(key, key_names());
            return Err(RulesError::UnknownKey { place, key: key.to_owned(), nearest });
        };
        let (key, value) = (key.to_owned(), given.to_string());
        (known.set)(self, given).map_err(|why| RulesError::Value { place, key, value, why })
    }
}

fn text(name: &str, value: OsString) -> Result<String, RulesError> {
    value.into_string().map_err(|value| RulesError::NoText { variable: name.to_owned(), value })
}

/// Whether a variable of this name gives a rule: `beeline run` takes it out of what its program gets, because it is resolved.
pub fn is_rule(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        name.starts_with(VARIABLE_PREFIX) && ![RUN_VARIABLE, LIBRARY_VARIABLE].contains(&name)
    })
}

fn given(value: &Spanned<DeValue<'_>>) -> Given {
    let one = |value: &DeValue<'_>| match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => number.to_string(),
            Err(_) => number.as_str().to_owned(),
        },
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        other => format!("a {}", other.type_str()),
    };
    match value.get_ref() {
        DeValue::Array(values) => Given::Several(values.iter().map(|value| one(value.get_ref())).collect()),
        value => Given::One(one(value)),
    }
}

/// The name that looks most like what was given, if one looks enough like it to have been meant.
fn nearest(given: &str, names: impl IntoIterator<Item = &'static str>) -> Option<String> {
    let rated = names.into_iter().map(|name| (strsim::jaro_winkler(given, name), name));
    let best = rated.filter(|(likeness, _)| *likeness > 0.7).max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests;
