//! A crate as its modules: what each defines and imports, and every path that its code names.

use std::collections::{BTreeMap, BTreeSet};

/// The modules of a crate, the root first.
#[derive(Default)]
pub struct Modules {
    pub all: Vec<Module>,
    pub mentions: Vec<Mention>,
}

#[derive(Default)]
pub struct Module {
    /// Path of the file that holds its text; an inline module shares it with its parent.
    pub file: String,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    /// Types, traits, functions and constants.
    pub items: BTreeSet<String>,
    /// Macros by example.
    pub macros: BTreeSet<String>,
    /// The path that each `use` gives a name to.
    pub imports: BTreeMap<String, Vec<String>>,
    /// Paths of `use …::*`.
    pub globs: Vec<Vec<String>>,
}

/// A path in the code of a module.
pub struct Mention {
    pub module: usize,
    pub path: Vec<String>,
    pub line: usize,
    pub kind: Kind,
}

/// Where a path stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Expressions, types, bounds, patterns: never the name of a macro.
    Code,
    /// A `use` or a macro call.
    UseOrMacro,
}
