//! All that a platform's files say, by key, before it has types: what parts merge into and what overrides change.

use std::collections::BTreeMap;

use crate::error::nearest;
use crate::value::Quantity;
use crate::{Location, Parameter, PlatformError, Scalar, Source, Value};

/// What a file says of one parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leaf {
    pub value: Scalar,
    pub source: Source,
    pub location: Location,
    /// Whether the value stands in a part.
    pub shared: bool,
}

/// Leaves by `section.name`. Taking one removes it, so that what is left at the end is unknown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leaves {
    by_key: BTreeMap<String, Leaf>,
    /// The platform's own file, for errors about what is missing.
    file: String,
    hops: usize,
    /// Every key that a platform can have.
    known: Vec<String>,
}

impl Leaves {
    /// None yet, of a platform with so many hops, which has parameters of these keys.
    pub(crate) fn new(file: &str, hops: usize, known: Vec<String>) -> Leaves {
        Leaves { by_key: BTreeMap::new(), file: file.to_owned(), hops, known }
    }

    /// Adds a leaf.
    ///
    /// # Errors
    /// The key is not known, or it stands in another file already.
    pub(crate) fn add(&mut self, key: String, leaf: Leaf) -> Result<(), PlatformError> {
        self.check_known(&key, &leaf.location)?;
        if let Some(first) = self.by_key.get(&key) {
            return Err(PlatformError::Twice { key, first: first.location.clone(), second: leaf.location });
        }
        self.by_key.insert(key, leaf);
        Ok(())
    }

    /// Gives a key another value, whether or not it has one.
    ///
    /// # Errors
    /// The key is not known.
    pub(crate) fn set(&mut self, key: &str, leaf: Leaf) -> Result<(), PlatformError> {
        self.check_known(key, &leaf.location)?;
        self.by_key.insert(key.to_owned(), leaf);
        Ok(())
    }

    pub(crate) fn hops(&self) -> usize {
        self.hops
    }

    /// Whether anything of a section is there.
    pub(crate) fn has_section(&self, section: &str) -> bool {
        self.by_key.keys().any(|key| key.strip_prefix(section).is_some_and(|rest| rest.starts_with('.')))
    }

    /// Gives a hop what it leaves out of a link from `[link]`, which has these parameters. Generation and width are the
    /// hop's own.
    pub(crate) fn inherit(&mut self, section: &str, of_link: &[Parameter]) {
        for parameter in of_link.iter().filter(|p| !["generation", "lanes"].contains(&p.name)) {
            let key = format!("{section}.{}", parameter.name);
            let Some(from) = self.by_key.get(&format!("link.{}", parameter.name)) else { continue };
            // It is counted where it stands, so here it is nobody's choice.
            let leaf = Leaf { shared: true, source: inherited(&from.source), ..from.clone() };
            self.by_key.entry(key).or_insert(leaf);
        }
    }

    /// Takes a parameter's value, or its default.
    ///
    /// # Errors
    /// It is missing, or out of bounds.
    pub(crate) fn take<T: Quantity>(
        &mut self,
        section: &str,
        parameter: &Parameter,
        default: Option<T>,
    ) -> Result<Value<T>, PlatformError> {
        let key = format!("{section}.{}", parameter.name);
        let Some(leaf) = self.by_key.remove(&key) else {
            let default = default.ok_or_else(|| PlatformError::Missing {
                file: self.file.clone(),
                key,
                bounds: parameter.bounds.to_string(),
            })?;
            return Ok(Value { value: default, source: None, location: None, shared: false });
        };
        let value = T::from_scalar(&leaf.value).filter(|_| parameter.bounds.allow(&leaf.value));
        let Some(value) = value else {
            return Err(PlatformError::OutOfBounds {
                location: leaf.location,
                key,
                value: leaf.value.to_string(),
                bounds: parameter.bounds,
            });
        };
        Ok(Value { value, source: Some(leaf.source), location: Some(leaf.location), shared: leaf.shared })
    }

    fn check_known(&self, key: &str, location: &Location) -> Result<(), PlatformError> {
        check_known(key, location, &self.known)
    }
}

/// Refuses a key that is none of the known ones.
///
/// # Errors
/// The error names the known key that looks most like it.
pub(crate) fn check_known(key: &str, location: &Location, known: &[String]) -> Result<(), PlatformError> {
    if known.iter().any(|one| one == key) {
        return Ok(());
    }
    // A word that is right in another section is likelier than a misspelt one in this.
    let name = key.rsplit('.').next().unwrap_or(key);
    let elsewhere = known.iter().find(|one| one.ends_with(&format!(".{name}"))).cloned();
    let nearest = elsewhere.or_else(|| nearest(key, known.iter().map(String::as_str)));
    Err(PlatformError::UnknownKey { location: location.clone(), key: key.to_owned(), nearest })
}

/// A fit of `[link]` is not a second one of each hop.
fn inherited(source: &Source) -> Source {
    match source {
        Source::Fitted(text) => Source::Arithmetic(format!("as [link], fitted: {text}")),
        other => other.clone(),
    }
}
