//! Which node a process is of, and which nodes there are: from the environment and a file.
//!
//! `BEELINE_CONFIG` names the file; without it `/etc/beeline.toml` is read if it is there. `BEELINE_NODE` says which node the process is
//! of, before `node` in the file. With `polls` in the file nothing of the process sleeps (`FabricMember::set_polling`); `memory` and `sysfs` are the process's
//! [`Terms`]. `fabric` is the memory that members of the fabric share where they have no kernel in common (`config/one_memory.rs`), and
//! `BEELINE_FABRIC_MEMORY` its path, before that in the file. Without a file, nodes have the numbers 1 to 251 and an adapter 0, and the process is of node 4.

mod one_memory;

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

use beeline_domain::DomainConfig;
use beeline_fabric::{AdapterNumber, NodeId};
use serde::Deserialize;
use toml::Spanned;

pub use self::one_memory::{MEMORY_VARIABLE, OneMemory};
use self::one_memory::{OfFabric, Wrong};
use crate::member::FabricConfig;
use crate::terms::Terms;

/// The environment variable that names the node of this process.
pub const NODE_VARIABLE: &str = "BEELINE_NODE";
/// The environment variable that names the file.
pub const FILE_VARIABLE: &str = "BEELINE_CONFIG";

/// Read if the environment names no file.
const FILE: &str = "/etc/beeline.toml";
const DEFAULT_NODE: u16 = 4;
/// Numbers that nodes may have. Those above are of groups.
const NODES: std::ops::RangeInclusive<u16> = 1..=251;

/// The fabric of this process, and the names of its nodes.
#[derive(Clone, Debug)]
pub struct Configuration {
    pub fabric: FabricConfig,
    /// The nodes of the file, in its order.
    pub named: Vec<NamedNode>,
    /// Whether who waits polls and does not sleep.
    pub polls: bool,
    /// Of what memory segments are made, and where devices are found.
    pub terms: Terms,
    /// The one memory in which members meet, in place of a domain.
    pub one_memory: Option<OneMemory>,
}

/// A node of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedNode {
    pub node: NodeId,
    pub name: Option<String>,
    pub adapters: Vec<AdapterNumber>,
}

/// What is wrong with the environment or the file: which file, line and key.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A variable has a value that means nothing.
    #[error("{variable} is {value:?}; nodes have numbers from 1 to 251")]
    Variable { variable: &'static str, value: OsString },
    /// [`MEMORY_VARIABLE`] is no path.
    #[error("{MEMORY_VARIABLE} is empty; it is the path of a file or a BAR")]
    NoPath,
    /// The file is not there, or may not be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    /// The file is not TOML, or has a key that is none.
    #[error("{}: {error}", path.display())]
    Syntax { path: PathBuf, error: Box<toml::de::Error> },
    /// A value means nothing.
    #[error("{}:{line}: {key} = {value}; {why}", path.display())]
    Value { path: PathBuf, line: usize, key: &'static str, value: String, why: &'static str },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    node: Option<Spanned<u32>>,
    domain: Option<String>,
    #[serde(default)]
    polls: bool,
    #[serde(default)]
    memory: OfMemory,
    sysfs: Option<PathBuf>,
    fabric: Option<OfFabric>,
    #[serde(default, rename = "nodes")]
    entries: Vec<Entry>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct OfMemory {
    huge_pages: bool,
    locked: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: Spanned<u32>,
    name: Option<Spanned<String>>,
    #[serde(default)]
    adapters: Vec<Spanned<u32>>,
}

impl Configuration {
    /// Reads what the environment and the file say.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn read() -> Result<Self, ConfigError> {
        let node = std::env::var_os(NODE_VARIABLE);
        let read = match std::env::var_os(FILE_VARIABLE) {
            Some(path) => Self::of_file(Path::new(&path), node),
            None if Path::new(FILE).exists() => Self::of_file(Path::new(FILE), node),
            None => Self::of_environment(node),
        };
        read?.with_memory(std::env::var_os(MEMORY_VARIABLE))
    }

    /// This, with the memory that the environment names.
    fn with_memory(self, path: Option<OsString>) -> Result<Self, ConfigError> {
        if path.as_ref().is_some_and(|path| path.is_empty()) {
            return Err(ConfigError::NoPath);
        }
        let one_memory = OneMemory::with_variable(self.one_memory, path.map(PathBuf::from));
        Ok(Configuration { one_memory, ..self })
    }

    /// Reads a file. `node` is what the environment says of the node.
    ///
    /// # Errors
    /// As for [`Configuration::read`].
    pub fn of_file(path: &Path, node: Option<OsString>) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::Unreadable { path: path.to_owned(), error })?;
        Self::of_text(path, &text, node)
    }

    /// What a file of this text says.
    pub(crate) fn of_text(path: &Path, text: &str, node: Option<OsString>) -> Result<Self, ConfigError> {
        let file: File = toml::from_str(text)
            .map_err(|error| ConfigError::Syntax { path: path.to_owned(), error: Box::new(error) })?;
        Reader { path, text }.configuration(file, node)
    }

    fn of_environment(node: Option<OsString>) -> Result<Self, ConfigError> {
        let node = of_variable(node)?.unwrap_or(NodeId(DEFAULT_NODE));
        let nodes = NODES.map(NodeId).collect();
        let fabric = FabricConfig { domain: DomainConfig::default(), node, adapters: first_adapter(), nodes };
        let terms = Terms::default();
        Ok(Configuration { fabric, named: Vec::new(), polls: false, terms, one_memory: None })
    }
}

/// The adapters of a node that says nothing of them.
fn first_adapter() -> Vec<AdapterNumber> {
    AdapterNumber::new(0).into_iter().collect()
}

fn of_variable(value: Option<OsString>) -> Result<Option<NodeId>, ConfigError> {
    let Some(value) = value else { return Ok(None) };
    let node = value.to_str().and_then(|text| text.trim().parse().ok()).and_then(node_id);
    match node {
        Some(node) => Ok(Some(node)),
        None => Err(ConfigError::Variable { variable: NODE_VARIABLE, value }),
    }
}

fn node_id(number: u32) -> Option<NodeId> {
    u16::try_from(number).ok().filter(|node| NODES.contains(node)).map(NodeId)
}

/// A file, for what is said of its lines.
struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Reader<'_> {
    fn configuration(&self, file: File, node: Option<OsString>) -> Result<Configuration, ConfigError> {
        let mut named: Vec<NamedNode> = Vec::new();
        for entry in file.entries {
            let node = self.node("nodes.id", &entry.id)?;
            let is_twice = named.iter().any(|other| other.node == node);
            let name = entry.name.as_ref().map(|name| name.get_ref().clone());
            if is_twice || name.is_some() && named.iter().any(|other| other.name == name) {
                let why = "two nodes have it";
                return Err(match &entry.name {
                    Some(name) if !is_twice => self.wrong("nodes.name", name.get_ref(), name.span(), why),
                    _ => self.wrong("nodes.id", &node.0, entry.id.span(), why),
                });
            }
            let adapters =
                entry.adapters.iter().map(|adapter| self.adapter(adapter)).collect::<Result<Vec<_>, _>>()?;
            let adapters = if adapters.is_empty() { first_adapter() } else { adapters };
            named.push(NamedNode { node, name, adapters });
        }
        let of_file = file.node.as_ref().map(|node| self.node("node", node)).transpose()?;
        let node = of_variable(node)?.or(of_file).unwrap_or(NodeId(DEFAULT_NODE));
        let own = named.iter().find(|named| named.node == node);
        let (adapters, nodes) = match own {
            Some(own) => (own.adapters.clone(), named.iter().map(|named| named.node).collect()),
            None if named.is_empty() => (first_adapter(), NODES.map(NodeId).collect()),
            None => {
                let span = file.node.as_ref().map(Spanned::span).unwrap_or_default();
                return Err(self.wrong("node", &node.0, span, "it is none of `nodes`"));
            }
        };
        let one_memory = file.fabric.as_ref().map(OfFabric::read).transpose();
        let one_memory =
            one_memory.map_err(|Wrong { key, value, span, why }| self.wrong(key, &value, span, why))?;
        let domain = file.domain.map_or_else(DomainConfig::default, DomainConfig::named);
        let OfMemory { huge_pages, locked } = file.memory;
        let sysfs = file.sysfs.unwrap_or_else(|| Terms::default().sysfs);
        let terms = Terms { huge_pages, locked, sysfs };
        let fabric = FabricConfig { domain, node, adapters, nodes };
        Ok(Configuration { fabric, named, polls: file.polls, terms, one_memory })
    }

    fn node(&self, key: &'static str, number: &Spanned<u32>) -> Result<NodeId, ConfigError> {
        let why = "nodes have numbers from 1 to 251";
        node_id(*number.get_ref()).ok_or_else(|| self.wrong(key, number.get_ref(), number.span(), why))
    }

    fn adapter(&self, number: &Spanned<u32>) -> Result<AdapterNumber, ConfigError> {
        let why = "adapters have numbers from 0 to 15";
        AdapterNumber::new(*number.get_ref())
            .map_err(|_| self.wrong("nodes.adapters", number.get_ref(), number.span(), why))
    }

    fn wrong(
        &self,
        key: &'static str,
        value: &impl ToString,
        span: Range<usize>,
        why: &'static str,
    ) -> ConfigError {
        let before = self.text.get(..span.start).unwrap_or_default();
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        ConfigError::Value { path: self.path.to_owned(), line, key, value: value.to_string(), why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, node: Option<&str>) -> Result<Configuration, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("beeline.toml");
        std::fs::write(&path, text).unwrap();
        let read = Configuration::of_file(&path, node.map(OsString::from));
        read.map_err(|error| error.to_string().replace(&*path.to_string_lossy(), "F"))
    }

    const TWO: &str = "node = 8\ndomain = \"lab\"\n\n[[nodes]]\nid = 4\nname = \"alpha\"\n\n[[nodes]]\nid = 8\nadapters = [0, 3]\n";

    #[test]
    fn file_says_which_nodes_there_are_and_the_environment_which_one_this_is() {
        let read_as = |node| {
            read(TWO, node).map(|it| (it.fabric.node.0, it.fabric.adapters.len(), it.fabric.domain.name))
        };
        assert_eq!(read_as(None), Ok((8, 2, "lab".to_owned())));
        assert_eq!(read_as(Some("4")), Ok((4, 1, "lab".to_owned())));
        let both = read(TWO, None).unwrap();
        assert_eq!(both.fabric.nodes, [NodeId(4), NodeId(8)]);
        assert_eq!(both.named[0].name.as_deref(), Some("alpha"));
        assert_eq!(read_as(Some("5")).unwrap_err(), "F:1: node = 5; it is none of `nodes`");
    }

    #[test]
    fn nothing_said_is_node_4_with_one_adapter_and_all_numbers() {
        let of_environment = |node: Option<&str>| Configuration::of_environment(node.map(OsString::from));
        let default = of_environment(None).unwrap().fabric;
        assert_eq!((default.node, default.adapters.len(), default.nodes.len()), (NodeId(4), 1, 251));
        assert_eq!(of_environment(Some(" 8\n")).unwrap().fabric.node, NodeId(8));
        for wrong in ["0", "252", "-4", "0x4", "", "4.0"] {
            let error = of_environment(Some(wrong)).unwrap_err().to_string();
            assert!(error.starts_with("BEELINE_NODE is "), "{error}");
        }
        assert_eq!(read("", None).unwrap().fabric.node, NodeId(4));
        let polls = ["", "polls = false", "polls = true"].map(|text| read(text, None).unwrap().polls);
        assert_eq!(polls, [false, false, true]);
        let terms = |text| read(text, None).unwrap().terms;
        assert_eq!(terms(""), Terms { huge_pages: false, locked: false, sysfs: PathBuf::from("/sys") });
        let all = "sysfs = \"/mnt/sys\"\n[memory]\nhuge_pages = true\nlocked = true";
        assert_eq!(terms(all), Terms { huge_pages: true, locked: true, sysfs: PathBuf::from("/mnt/sys") });
        assert_eq!(terms("memory.locked = true"), Terms { locked: true, ..Terms::default() });
        assert!(read("[memory]\nhuge = true", None).is_err());
    }

    #[test]
    fn errors_name_file_line_and_key() {
        let wrong = |text: &str| read(text, None).unwrap_err();
        assert_eq!(wrong("\nnode = 300"), "F:2: node = 300; nodes have numbers from 1 to 251");
        let nodes = |rest: &str| wrong(&format!("[[nodes]]\nid = 4\nname = \"a\"\n[[nodes]]\n{rest}"));
        assert_eq!(nodes("id = 4"), "F:5: nodes.id = 4; two nodes have it");
        assert_eq!(nodes("id = 8\nname = \"a\""), "F:6: nodes.name = a; two nodes have it");
        assert_eq!(
            nodes("id = 8\nadapters = [0,\n16]"),
            "F:7: nodes.adapters = 16; adapters have numbers from 0 to 15"
        );
        assert!(wrong("nod = 4").contains("line 1"), "{}", wrong("nod = 4"));
    }

    #[test]
    fn file_says_where_the_one_memory_is_and_how_it_is_made() {
        let memory = |text: &str| read(text, None).unwrap().one_memory;
        assert_eq!(memory(""), None);
        let path = PathBuf::from("/dev/shm/x");
        let least = OneMemory { path: path.clone(), members: 4, bytes: None, slot: None };
        assert_eq!(memory("[fabric]\nmemory = \"/dev/shm/x\""), Some(least));
        let all = "[fabric]\nmemory = \"/dev/shm/x\"\nmembers = 16\nbytes = 1048576\nslot = 15";
        let found = OneMemory { path, members: 16, bytes: Some(1 << 20), slot: Some(15) };
        assert_eq!(memory(all), Some(found));
    }

    #[test]
    fn errors_of_the_one_memory_name_file_line_and_key() {
        let wrong = |rest: &str| read(&format!("[fabric]\nmemory = \"/x\"\n{rest}"), None).unwrap_err();
        assert_eq!(wrong("members = 1"), "F:3: fabric.members = 1; a memory has 2 to 16 members");
        assert_eq!(wrong("members = 17"), "F:3: fabric.members = 17; a memory has 2 to 16 members");
        assert!(wrong("bytes = 0").starts_with("F:3: fabric.bytes = 0; "), "{}", wrong("bytes = 0"));
        assert!(wrong("members = 2\nslot = 2").starts_with("F:4: fabric.slot = 2; "));
        assert!(wrong("entries = 64").contains("line 3"), "{}", wrong("entries = 64"));
        let no_path = read("\n[fabric]\nmemory = \"\"", None).unwrap_err();
        assert_eq!(no_path, "F:3: fabric.memory = \"\"; it is the path of a file or a BAR");
        assert!(read("[fabric]\nmembers = 4", None).unwrap_err().contains("memory"));
    }

    #[test]
    fn environment_names_another_one_memory_than_the_file() {
        let memory = |text: &str, variable: Option<&str>| {
            let read = read(text, None).unwrap().with_memory(variable.map(OsString::from));
            read.map(|read| read.one_memory.map(|memory| (memory.path, memory.members)))
        };
        let of_file = "[fabric]\nmemory = \"/x\"\nmembers = 2";
        assert_eq!(memory(of_file, None).unwrap(), Some((PathBuf::from("/x"), 2)));
        assert_eq!(memory(of_file, Some("/y")).unwrap(), Some((PathBuf::from("/y"), 2)));
        assert_eq!(memory("", Some("/y")).unwrap(), Some((PathBuf::from("/y"), 4)));
        assert!(matches!(memory("", Some("")), Err(ConfigError::NoPath)));
    }
}
