//! The table of facts (`facts.toml`).

use std::collections::BTreeMap;

use toml::{Table, Value};

/// What every code of an error has set beside its number.
pub const MASK: i64 = 0x4000_0000;

pub struct Facts {
    table: Table,
    pub functions: BTreeMap<String, Function>,
}

#[derive(Clone)]
pub struct Function {
    pub returns: String,
    pub takes: Vec<String>,
    /// Flags that it knows; `None` if it has no such parameter.
    pub flags: Option<Vec<String>>,
    /// Whether its last parameter is where its code is put.
    pub has_error: bool,
    /// Whether the programs that are known need it.
    pub is_core: bool,
}

impl Facts {
    pub fn read() -> Self {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/facts.toml")).unwrap();
        let table: Table = text.parse().unwrap();
        let entries = table["functions"].as_table().unwrap().iter();
        let functions = entries.map(|(name, fact)| (name.clone(), Function::from(fact))).collect();
        Facts { table, functions }
    }

    pub fn function_names(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    /// Macros with their values.
    pub fn values(&self) -> impl Iterator<Item = (&str, i64)> {
        let codes =
            self.entries("errors").map(|(name, fact)| (name, MASK | fact["code"].as_integer().unwrap()));
        codes.chain(self.symbols()).chain(self.of("numbers"))
    }

    /// Macros that are data symbols of the library, too.
    pub fn symbols(&self) -> impl Iterator<Item = (&str, i64)> {
        self.of("flags").chain(self.of("queries")).chain(self.of("scil_flags"))
    }

    /// Type, name and number of what enumerations have.
    pub fn enumerators(&self) -> impl Iterator<Item = (&str, &str, i64)> {
        self.entries("enums").flat_map(|(kind, fact)| {
            let names = fact["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
            names.zip(fact["first"].as_integer().unwrap()..).map(move |(name, value)| (kind, name, value))
        })
    }

    fn of(&self, section: &str) -> impl Iterator<Item = (&str, i64)> {
        self.entries(section).map(|(name, fact)| (name, fact["value"].as_integer().unwrap()))
    }

    fn entries(&self, section: &str) -> impl Iterator<Item = (&str, &Value)> {
        self.table[section].as_table().unwrap().iter().map(|(name, fact)| (name.as_str(), fact))
    }
}

impl Function {
    fn from(fact: &Value) -> Self {
        let words = |list: &Value| {
            list.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        Function {
            returns: fact["returns"].as_str().unwrap().to_owned(),
            takes: words(&fact["takes"]),
            flags: fact.get("flags").map(words),
            has_error: fact.get("error").is_some(),
            is_core: fact.get("core").is_some(),
        }
    }

    /// Whether it gives a code, by its last parameter or as it returns.
    pub fn gives_code(&self) -> bool {
        self.has_error || self.returns == "sci_error_t"
    }

    /// Types of all parameters.
    pub fn parameters(&self) -> String {
        let mut types = self.takes.clone();
        types.extend(self.flags.as_ref().map(|_| "unsigned int".to_owned()));
        types.extend(self.has_error.then(|| "sci_error_t *".to_owned()));
        if types.is_empty() { "void".to_owned() } else { types.join(", ") }
    }
}

/// Whether a type is that of a handle.
pub fn is_handle(kind: &str) -> bool {
    let others = ["sci_error_t", "sci_ioaddr_t", "sci_address_t", "sci_dma_type_t"];
    kind.starts_with("sci_")
        && kind.ends_with("_t")
        && !kind.starts_with("sci_cb_")
        && !others.contains(&kind)
}
